package session

import (
	"cmp"
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/ptx"
)

// LaunchTemplate returns a launch file to start from: the first kernel of the input with its parameters. It assumes
// that 8-byte integers are pointers. PTX that is invalid or has no kernel is an error.
func LaunchTemplate(in *Input) (string, error) {
	for _, im := range in.Images {
		tree, err := ptx.Parse(im.Name, im.Text)
		if err != nil {
			return "", err
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ptx.Func); ok && f.Entry {
				return kernelTemplate(f), nil
			}
		}
	}
	return "", fmt.Errorf("%s holds no kernel (no .entry)", in.Images[0].Name)
}

// elemTypeOf maps types of the source to element types of launch files.
var elemTypeOf = map[string]string{"float": "f32", "double": "f64", "char": "i8", "signed char": "i8", "unsigned char": "u8", "bool": "u8",
	"short": "i16", "unsigned short": "u16", "int": "i32", "unsigned int": "u32", "long": "i64", "unsigned long": "u64",
	"long long": "i64", "unsigned long long": "u64"}

// sourceTypes returns the types of a kernel's n parameters from its mangled name, or "" for each if they are not there.
func sourceTypes(kernel string, n int) []string {
	none := make([]string, n)
	full := report.Demangle(kernel)
	from := strings.LastIndex(full, report.BareName(kernel)+"(")
	if from < 0 || !strings.HasSuffix(full, ")") {
		return none
	}
	var types []string
	depth, begin := 0, from+len(report.BareName(kernel))+1
	for i := begin; i < len(full); i++ {
		switch full[i] {
		case '<', '(':
			depth++
		case '>':
			depth--
		case ',', ')':
			if depth == 0 {
				types = append(types, strings.TrimSpace(full[begin:i]))
				begin = i + 1
			} else if full[i] == ')' {
				depth--
			}
		}
	}
	if len(types) != n {
		return none
	}
	return types
}

// pointee is the type to which a pointer of the source points: "float" for "float const*", and for "float (*) [32]",
// which points to rows.
func pointee(t string) string {
	t, _, rows := strings.Cut(t, " (*) [")
	t, ok := strings.CutSuffix(t, "*")
	if !ok && !rows {
		return ""
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(t), "const"))
}

// argument is a suitable argument for a parameter: a buffer of elements of a type, or a number of that type. A
// parameter of 8 bytes whose type is unknown is assumed to be a pointer.
func argument(source, ptxKind string, size int) (elem string, buffer bool) {
	elem, number := elemTypeOf[source]
	switch {
	case number:
		return elem, false
	case ptxKind == "f":
		return fmt.Sprintf("f%d", size*8), false
	case size == 8:
		return cmp.Or(elemTypeOf[pointee(source)], "i32"), true
	}
	return fmt.Sprintf("i%d", size*8), false
}

func kernelTemplate(f *ptx.Func) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kernel = %q # %s\ngrid = [1]\nblock = [32]\nargs = [\n", CallName(f.Name), report.Demangle(f.Name))
	types := sourceTypes(f.Name, len(f.Params))
	for i, p := range f.Params {
		size := map[string]int{"8": 1, "16": 2, "32": 4, "64": 8}[strings.TrimLeft(p.Type, "busf")]
		kind := strings.TrimRight(p.Type, "0123456789")
		dims := []int64(nil)
		if len(p.Names) > 0 {
			dims = p.Names[0].Dims
		}
		if len(dims) > 0 {
			n := size
			for _, d := range dims {
				n *= int(max(d, 0))
			}
			fmt.Fprintf(&b, "  { bytes = %q },\n", strings.Repeat("00", min(n, 64)))
			continue
		}
		switch elem, buffer := argument(types[i], kind, size); {
		case buffer:
			fmt.Fprintf(&b, "  { buffer = \"p%d\", type = %q, shape = [1024], fill = \"iota\" },\n", i, elem)
		case elem[0] == 'f':
			fmt.Fprintf(&b, "  { %s = 1.0 },\n", elem)
		default:
			fmt.Fprintf(&b, "  { %s = 1 },\n", elem)
		}
	}
	b.WriteString("]\n")
	return b.String()
}
