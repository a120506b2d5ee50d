package report

import (
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// internalPrefix is the prefix that nvcc gives to names with internal linkage: _INTERNAL_ and a hash of the unit.
var internalPrefix = regexp.MustCompile(`_INTERNAL_[0-9a-f]+_\d+_[A-Za-z0-9_]*?_[0-9a-f]{8}::|\(anonymous namespace\)::`)

// Demangle returns a linker name as in the source, "reduce(int const*, int*, int)"; a name that is not mangled is
// unchanged. Names longer than 4096 bytes stay mangled: demangling hostile ones can take exponential space.
func Demangle(name string) string {
	if len(name) > 4096 || !strings.HasPrefix(name, "_Z") {
		return name
	}
	out, err := demangle.ToString(name, demangle.LLVMStyle, demangle.MaxLength(12))
	if err != nil {
		return name
	}
	return numbaTags.ReplaceAllString(internalPrefix.ReplaceAllString(out, ""), "")
}

// numbaTags are the tags that numba adds to the name of a kernel: its number and a digest of its compilation options.
var numbaTags = regexp.MustCompile(`\[abi:v\d+\]|\[abi:cw[0-9A-Za-z]+\]`)

var mangled = regexp.MustCompile(`\b_Z[A-Za-z0-9_$]+`)

// DemangleIn demangles the linker names in a text.
func DemangleIn(text string) string { return mangled.ReplaceAllStringFunc(text, Demangle) }

// BareName is a demangled name without its parameter list, return type and template arguments of enclosing functions:
// "reduce" for "void reduce<int>(int const*)", "tile" for the variable of "reduce(int)::tile".
func BareName(name string) string {
	s := Demangle(name)
	s = strings.TrimSuffix(s, " const")
	if strings.HasSuffix(s, ")") {
		s = s[:openParen(s)]
	}
	return lastName(s)
}

// openParen is the index of the parenthesis that the last one closes.
func openParen(s string) int {
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')':
			depth++
		case '(':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return len(s)
}

// lastName removes scopes and a return type from a qualified name; it does not look inside brackets.
func lastName(s string) string {
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '<', '(', '[', '{':
			depth++
		case '>', ')', ']', '}':
			depth--
		case ' ':
			if depth == 0 {
				start = i + 1
			}
		case ':':
			if depth == 0 && i+1 < len(s) && s[i+1] == ':' {
				start = i + 2
				i++
			}
		}
	}
	return s[start:]
}

// longName is the greatest number of characters of a demangled name in messages: those of templates can have thousands.
const longName = 100

// ShortName removes the template arguments from a long name, and then the parameters: "sort<...>(...)".
func ShortName(name string) string {
	if len(name) <= longName {
		return name
	}
	name = elideInside(name, '<', '>')
	if len(name) <= longName {
		return name
	}
	return elideInside(name, '(', ')')
}

// elideInside replaces the text between the outermost brackets by "...".
func elideInside(name string, begin, end byte) string {
	var out strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case strings.HasSuffix(name[:i], "operator") || depth > 0 && c == '>' && name[i-1] == '-':
			if depth == 0 {
				out.WriteByte(c)
			}
			continue
		case c == end && depth > 0:
			depth--
		}
		if depth == 0 {
			out.WriteByte(c)
		}
		if c == begin {
			if depth == 0 {
				out.WriteString("...")
			}
			depth++
		}
	}
	return out.String()
}
