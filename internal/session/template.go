package session

import (
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/ptx"
)

// LaunchTemplate is a launch file to start from: the first kernel of the input with its parameters, of which 8-byte
// integers are taken for pointers. PTX that cannot be read or holds no kernel is an error.
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

func kernelTemplate(f *ptx.Func) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kernel = %q # %s\ngrid = [1]\nblock = [32]\nargs = [\n", callName(f.Name), report.Demangle(f.Name))
	for i, p := range f.Params {
		size := map[string]int{"8": 1, "16": 2, "32": 4, "64": 8}[strings.TrimLeft(p.Type, "busf")]
		kind := strings.TrimRight(p.Type, "0123456789")
		dims := []int64(nil)
		if len(p.Names) > 0 {
			dims = p.Names[0].Dims
		}
		switch {
		case len(dims) > 0:
			n := size
			for _, d := range dims {
				n *= int(max(d, 0))
			}
			fmt.Fprintf(&b, "  { bytes = %q },\n", strings.Repeat("00", min(n, 64)))
		case kind == "f":
			fmt.Fprintf(&b, "  { f%d = 1.0 },\n", size*8)
		case size == 8:
			fmt.Fprintf(&b, "  { buffer = \"p%d\", type = \"i32\", shape = [1024], fill = \"iota\" },\n", i)
		default:
			fmt.Fprintf(&b, "  { i%d = 1 },\n", size*8)
		}
	}
	b.WriteString("]\n")
	return b.String()
}
