package report

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"fencepost.dev/fencepost/internal/detect"
)

// cFile matches the names of files in C++.
var cFile = regexp.MustCompile(`\.(cu|cuh|h|hpp|hh|c|cc|cpp|cxx|inl)$`)

// lexeme is a name, a number, or an operator.
var lexeme = regexp.MustCompile(`[A-Za-z_]\w*|\.?\d[\w.]*|->|\+\+|--|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||<<|>>|::|\S`)

// token is a lexeme and where it is in the line, in bytes.
type token struct {
	text     string
	from, to int
}

// operand is an expression of a source line that may access memory, as a range of tokens.
type operand struct {
	from, to    int
	name        string // the first one in it that is not a type
	read, write bool
}

// marked returns the part of a source line, in bytes, that the caret of an access marks: the expression that makes the
// access, or an empty part at the column of the line table.
func (t *Text) marked(a *Access, line string, column int) (from, to int) {
	if from, to, ok := t.expression(a, line); ok {
		return from, to
	}
	if column < 1 || column > len(line) {
		column = len(line) - len(strings.TrimLeft(line, " \t")) + 1
	}
	return column - 1, column - 1
}

// expression finds the expression of a source line that makes an access. If several could, it returns the range from
// the first to the last. It is not ok if the line cannot be analysed. The column in nvcc's line table does not help: it
// is that of the line's first token.
func (t *Text) expression(a *Access, line string) (from, to int, ok bool) {
	p := a.Place()
	if line == "" || !cFile.MatchString(path.Base(p.File)) || a.Op == OpWait || a.Host != "" {
		return 0, 0, false
	}
	s, ok := tokens(line)
	if !ok {
		return 0, 0, false
	}
	if at := userIndex(a.Frames); at > 0 {
		name, _, _ := strings.Cut(BareName(a.Frames[at-1].Function), "<")
		return callOf(s, name)
	}
	in := t.declarations(p.File)
	if a.Op == detect.AtomicOp || in.hasMacro(s) {
		return 0, 0, false
	}
	variable := ""
	if a.Object.Named {
		variable = BareName(a.Object.Name)
	}
	all, ok := operands(s, func(name string) bool { return name == variable || in.isReference(name) })
	if !ok {
		return 0, 0, false
	}
	all = slices.DeleteFunc(all, func(o operand) bool { return a.Op == detect.Read && !o.read || a.Op == detect.Write && !o.write })
	for _, better := range []func(o operand) bool{
		func(o operand) bool { return o.name == variable },
		func(o operand) bool { return o.name != variable || dereferences(s[o.from:o.to]) }, // an array's plain name is not an access
	} {
		if slices.ContainsFunc(all, better) {
			all = slices.DeleteFunc(all, func(o operand) bool { return !better(o) })
		}
	}
	if len(all) == 0 {
		return 0, 0, false
	}
	last := all[0].to
	for _, o := range all {
		last = max(last, o.to)
	}
	return s[all[0].from].from, s[last-1].to, true
}

// tokens splits a source line. It is not ok if the line contains something that is not analysed: string literals,
// preprocessing, a conditional expression, or a bracket that another line opens or closes.
func tokens(line string) (s []token, ok bool) {
	text, _, _ := strings.Cut(line, "//")
	if strings.ContainsAny(text, "\"'#\\?") || strings.Contains(text, "/*") || strings.Contains(text, "*/") {
		return nil, false
	}
	depth := 0
	for _, at := range lexeme.FindAllStringIndex(text, -1) {
		x := token{text[at[0]:at[1]], at[0], at[1]}
		switch x.text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		case ":":
			return nil, false
		}
		if depth < 0 {
			return nil, false
		}
		s = append(s, x)
	}
	return s, depth == 0
}

// callOf finds the only call of a function in a line.
func callOf(s []token, name string) (from, to int, ok bool) {
	for i, x := range s {
		if x.text != name {
			continue
		}
		if ok || i+1 == len(s) || s[i+1].text != "(" {
			return 0, 0, false
		}
		from, to, ok = x.from, s[closing(s, i+1)].to, true
	}
	return from, to, ok
}

// closing is the index of the token that closes the bracket at i. tokens has checked that there is one.
func closing(s []token, i int) int {
	depth := 0
	for {
		switch s[i].text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
		if depth == 0 {
			return i
		}
		i++
	}
}

// operands finds the subscripts, members through pointers, and dereferences of a line, and the names that are known to
// be memory. It is not ok if the accessed object has no name: a subscript of the result of a call or a cast.
func operands(s []token, memory func(name string) bool) (all []operand, ok bool) {
	text := func(i int) string {
		if i < 0 || i >= len(s) {
			return ""
		}
		return s[i].text
	}
	cast := -1 // the operand of a cast that is dereferenced
	for i := range s {
		o := operand{from: i}
		before := text(i - 1)
		switch {
		case s[i].text == "[" && before == ")":
			return nil, false
		case s[i].text == "*" && !endsOperand(s, i-1):
			o.to, cast = dereference(s, i+1)
			if o.to == i+1 {
				return nil, false
			}
			if next := text(o.to); next == "++" || next == "--" {
				o.to++ // of the pointer
			}
			named := s[max(i, cast):o.to]
			if k := slices.IndexFunc(named, func(x token) bool { return isName(x.text) }); k >= 0 {
				o.name = named[k].text
			}
		case isName(s[i].text) && before != "." && before != "->" && i != cast:
			o.to, o.name = chain(s, i), s[i].text
			if !dereferences(s[i:o.to]) && !memory(o.name) || isName(before) || before == "&" && !endsOperand(s, i-2) {
				continue // a plain name, a declaration, or an address
			}
		default:
			continue
		}
		switch next := text(o.to); {
		case next == "(": // a member function, whose accesses have frames of their own
			continue
		case next == "=":
			o.write = true
		case next == "++", next == "--", before == "++", before == "--", strings.HasSuffix(next, "=") && !slices.Contains(comparisons, next):
			o.read, o.write = true, true
		default:
			o.read = true
		}
		all = append(all, o)
	}
	return all, true
}

var comparisons = []string{"==", "!=", "<=", ">="}

// dereference is the end of the operand of a * before token i: a name, or a bracket and the operand that it casts,
// which begins at cast.
func dereference(s []token, i int) (end, cast int) {
	for i < len(s) && (s[i].text == "*" || s[i].text == "&") {
		i++
	}
	switch {
	case i == len(s):
	case s[i].text == "(":
		i = closing(s, i) + 1
		if i < len(s) && (isName(s[i].text) || s[i].text == "&" || s[i].text == "(") {
			end, _ = dereference(s, i)
			if s[i].text == "&" {
				i++
			}
			return end, i
		}
	case isName(s[i].text):
		i = chain(s, i)
	}
	return i, -1
}

// chain is the end of the name at i and of the subscripts and members after it.
func chain(s []token, i int) int {
	for i++; i < len(s); {
		switch s[i].text {
		case "[":
			i = closing(s, i) + 1
		case ".", "->":
			i += 2
		default:
			return i
		}
	}
	return min(i, len(s))
}

// dereferences reports whether an expression accesses memory whatever its names mean.
func dereferences(s []token) bool {
	return s[0].text == "*" || slices.ContainsFunc(s, func(x token) bool { return x.text == "[" || x.text == "->" })
}

// isName reports whether a token is a relevant name of the program.
func isName(s string) bool {
	return s != "" && s != "return" && s != "else" && s[0] < utf8.RuneSelf && isWordByte(s[0]) && (s[0] < '0' || s[0] > '9')
}

// endsOperand reports whether token i ends an operand: a * or & after it is a binary operator, or belongs to a
// declared type.
func endsOperand(s []token, i int) bool {
	switch {
	case i < 0:
		return false
	case s[i].text == ")":
		depth := 0
		for ; i > 0; i-- {
			switch s[i].text {
			case ")", "]":
				depth++
			case "(", "[":
				depth--
			}
			if depth == 0 {
				return !slices.Contains([]string{"if", "while", "for"}, s[i-1].text)
			}
		}
		return true
	}
	return s[i].text == "]" || isName(s[i].text) || s[i].text[0] >= '0' && s[i].text[0] <= '9'
}

// hasMacro reports whether a name of a line may be a macro that accesses memory: it is called and in capitals, or
// defined in the file as a text with a name.
func (d *declarations) hasMacro(s []token) bool {
	for i, x := range s {
		if !isName(x.text) {
			continue
		}
		if i+1 < len(s) && s[i+1].text == "(" && strings.ToUpper(x.text) == x.text {
			return true
		}
		if d.declares(x.text, `^\s*#\s*define\s+`+x.text+`(\(|\b.*\b[A-Za-z_])`) {
			return true
		}
	}
	return false
}

// isReference reports whether the file declares a reference with that name.
func (d *declarations) isReference(name string) bool {
	return d.declares(name, `[\w>\]]\s*&{1,2}\s*`+name+`\s*[=,){;]`)
}

// declarations are the lines of a file and the results of earlier queries. Thousands of findings query a few names.
type declarations struct {
	lines []string
	known map[string]bool // by expression
}

func (t *Text) declarations(file string) *declarations {
	d := t.declared[file]
	if d == nil {
		d = &declarations{t.Source(file), map[string]bool{}}
		if t.declared == nil {
			t.declared = map[string]*declarations{}
		}
		t.declared[file] = d
	}
	return d
}

// declares reports whether a line contains a name and matches an expression.
func (d *declarations) declares(name, expression string) bool {
	found, ok := d.known[expression]
	if !ok {
		e := regexp.MustCompile(expression)
		found = slices.ContainsFunc(d.lines, func(l string) bool { return strings.Contains(l, name) && e.MatchString(l) })
		d.known[expression] = found
	}
	return found
}
