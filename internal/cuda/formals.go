package cuda

import (
	"slices"
	"strconv"
	"strings"
)

// formal is a parameter of a kernel as CUDA C++ declares it. name is "" if it has none. element is the type to which it
// points, and "" if that is not known.
type formal struct{ name, element string }

// elementSizes are the sizes, in bytes, of element types.
var elementSizes = map[string]int{
	"bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "int8_t": 1, "uint8_t": 1,
	"short": 2, "unsigned short": 2, "int16_t": 2, "uint16_t": 2, "__half": 2, "half": 2, "__nv_bfloat16": 2, "nv_bfloat16": 2,
	"int": 4, "unsigned": 4, "unsigned int": 4, "float": 4, "int32_t": 4, "uint32_t": 4,
	"long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "double": 8, "int64_t": 8, "uint64_t": 8, "size_t": 8,
	"char2": 2, "char4": 4, "uchar4": 4, "short2": 4, "half2": 4, "__half2": 4, "int2": 8, "uint2": 8, "float2": 8, "int4": 16, "uint4": 16,
	"float4": 16, "double2": 16,
}

// formals finds the n parameters of a kernel with a linker name in CUDA C++. It returns nil if they are not there, as
// for a kernel that a macro makes, or if several kernels with that name and number of parameters name them differently.
func formals(source, kernel string, n int) []formal {
	var found []formal
	tokens := tokensOf(source)
	for i, t := range tokens {
		if t != "__global__" {
			continue
		}
		name, list := declarator(tokens[i+1:])
		if name == "" || kernel != name && !strings.Contains(kernel, strconv.Itoa(len(name))+name) {
			continue
		}
		got, ok := formalsOf(list)
		if !ok || len(got) != n || !slices.ContainsFunc(got, func(f formal) bool { return f.name != "" }) {
			continue
		}
		if found != nil && !slices.Equal(found, got) {
			return nil
		}
		found = got
	}
	return found
}

// declarator returns the name that a declaration declares and the tokens between the brackets after it. The name is ""
// if it declares no function.
func declarator(tokens []string) (name string, list []string) {
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i]; t {
		case ";", "{", "}":
			return "", nil
		case "<":
			i += closing(tokens[i:])
		case "(":
			end := i + closing(tokens[i:])
			if end == len(tokens) {
				return "", nil
			}
			// An attribute may precede the rest of the declaration: __launch_bounds__(256) scale(...).
			if name != "" && (end+1 == len(tokens) || strings.Contains("{;-", tokens[end+1])) { // "-" of "-> void"
				return name, tokens[i+1 : end]
			}
			i = end
		default:
			if isIdentifier(t) {
				name = t
			}
		}
	}
	return "", nil
}

var closers = map[string]string{"(": ")", "[": "]", "{": "}", "<": ">"}

// closing returns the index of the bracket that closes the first token, and the number of tokens if none does.
func closing(tokens []string) int {
	var open []string
	for i, t := range tokens {
		if c := closers[t]; c != "" {
			open = append(open, c)
		} else if t == open[len(open)-1] {
			if open = open[:len(open)-1]; len(open) == 0 {
				return i
			}
		}
	}
	return len(tokens)
}

// formalsOf reads a list of parameters. ok is false if their number is not known, because of a parameter pack.
func formalsOf(list []string) (all []formal, ok bool) {
	if slices.Contains(list, "...") {
		return nil, false
	}
	if len(list) == 0 || len(list) == 1 && list[0] == "void" {
		return nil, true
	}
	from := 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i == len(list) || list[i] == ",":
			all = append(all, formalOf(list[from:i]))
			from = i + 1
		case closers[list[i]] != "":
			i = min(i+closing(list[i:]), len(list)-1)
		}
	}
	return all, true
}

// formalOf reads a parameter.
func formalOf(tokens []string) formal {
	if i := slices.Index(tokens, "="); i >= 0 {
		tokens = tokens[:i]
	}
	pointers := 0
	for len(tokens) > 0 && tokens[len(tokens)-1] == "]" { // an array is a pointer to its first element
		from := slices.Index(tokens, "[")
		if from < 0 {
			return formal{}
		}
		tokens, pointers = tokens[:from], strings.Count(strings.Join(tokens, ""), "[")
	}
	var words []string // the words of the type, then the name
	simple := true
	for _, t := range tokens {
		switch t {
		case "const", "volatile", "restrict", "__restrict", "__restrict__", "__grid_constant__", "struct":
		case "*":
			pointers++
		default:
			simple = simple && isIdentifier(t)
			words = append(words, t)
		}
	}
	last := len(words) - 1
	if last < 1 || tokens[len(tokens)-1] != words[last] || !isIdentifier(words[last]) || words[last-1] == ":" || elementSizes[words[last]] > 0 {
		return formal{}
	}
	f := formal{name: words[last]}
	if element := strings.Join(words[:last], " "); simple && pointers == 1 && elementSizes[element] > 0 {
		f.element = element
	}
	return f
}

func isIdentifier(t string) bool { return t != "" && (t[0] == '_' || isLetter(t[0])) }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80 }

// tokensOf splits C++ into identifiers, numbers, "..." and single characters. It drops comments, preprocessor lines and
// the contents of literals.
func tokensOf(source string) (tokens []string) {
	for s := source; s != ""; {
		n := 1
		switch c := s[0]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\\':
			s = s[1:]
			continue
		case strings.HasPrefix(s, "//") || c == '#':
			s = s[lineEnd(s):]
			continue
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s[2:], "*/")
			continue
		case strings.HasPrefix(s, `R"`):
			delimiter, rest, _ := strings.Cut(s[2:], "(")
			_, s, _ = strings.Cut(rest, ")"+delimiter+`"`)
			continue
		case c == '"' || c == '\'':
			s = s[literalEnd(s):]
			continue
		case strings.HasPrefix(s, "..."):
			n = 3
		case isIdentifier(s) || '0' <= c && c <= '9':
			for n < len(s) && (isIdentifier(s[n:]) || '0' <= s[n] && s[n] <= '9') {
				n++
			}
		}
		tokens = append(tokens, s[:n])
		s = s[n:]
	}
	return tokens
}

// lineEnd is the length of the first line, including lines that a backslash joins to it.
func lineEnd(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' && (i == 0 || s[i-1] != '\\') {
			return i
		}
	}
	return len(s)
}

// literalEnd is the length of the literal at the start of s.
func literalEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0], '\n':
			return i + 1
		}
	}
	return len(s)
}
