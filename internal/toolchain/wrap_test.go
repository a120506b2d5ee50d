package toolchain

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

const ours = "-L /rt -I /rt -Xcompiler -g1 -Xcompiler -fno-optimize-sibling-calls -lineinfo -Xcicc -O0 -gencode arch=compute_80,code=compute_80 -cudadevrt none"

func TestWrap(t *testing.T) {
	files := map[string]string{
		"includes.rsp": "-I/a -I\"/with blank\"",
		"arch.rsp":     "-O2\n-arch=sm_90 -DNAME=\\\"x\\\" -I\"/with blank\"",
		"nested.rsp":   "-optf arch.rsp",
		"loop.rsp":     "-optf loop.rsp",
	}
	read := func(name string) ([]byte, error) {
		if s, ok := files[name]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
	at := func(archs ...string) string {
		s := "-L /rt -I /rt -Xcompiler -g1 -Xcompiler -fno-optimize-sibling-calls -lineinfo -Xcicc -O0"
		for _, a := range archs {
			s += " -gencode arch=compute_" + a + ",code=compute_" + a
		}
		return s + " -cudadevrt none"
	}
	for _, c := range []struct{ in, out, notes string }{
		{"a.cu -o a", ours + " a.cu -o a", ""},
		{"", ours, ""},
		{"-O3 -std=c++17 -Iinc -DX=1 -lm a.cu", ours + " -O3 -std=c++17 -Iinc -DX=1 -lm a.cu", ""},
		{"-lineinfo a.cu -Xcicc -O0", ours + " a.cu", ""},
		{"--generate-line-info a.cu", ours + " a.cu", ""},
		{"-line-info a.cu", ours + " a.cu", ""},

		// Programs that start themselves under the checker.
		{"--instrument hirace a.cu", strings.Replace(ours, "-L /rt -I /rt", "-L /rt -I /rt -include /rt/instrumented.h -DFENCEPOST_INSTRUMENT=hirace", 1) + " a.cu", ""},
		{"-dc a.cu --instrument=log", strings.Replace(ours, "-L /rt -I /rt", "-L /rt -I /rt -include /rt/instrumented.h -DFENCEPOST_INSTRUMENT=log", 1) + " -dc a.cu", ""},

		// Lines of host code, unless the caller asks for more.
		{"-g a.cu", "-L /rt -I /rt -Xcompiler -fno-optimize-sibling-calls -lineinfo -Xcicc -O0 -gencode arch=compute_80,code=compute_80 -cudadevrt none -g a.cu", ""},
		{"-Xcompiler -O2,-ggdb a.cu", "-L /rt -I /rt -Xcompiler -fno-optimize-sibling-calls -lineinfo -Xcicc -O0 -gencode arch=compute_80,code=compute_80 -cudadevrt none -Xcompiler -O2,-ggdb a.cu", ""},

		// Architectures: PTX instead of machine code, the same list.
		{"-arch=sm_90 a.cu", at("90") + " a.cu", ""},
		{"-arch sm_90a a.cu", at("90a") + " a.cu", ""},
		{"--gpu-architecture=compute_75 a.cu", at("75") + " a.cu", ""},
		{"-arch=compute_75 -code=sm_80,sm_86 a.cu", at("75") + " a.cu", ""},
		{"-gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 a.cu", at("80", "90") + " a.cu", ""},
		{"--generate-code=arch=compute_86,code=[compute_86,sm_86] a.cu", at("86") + " a.cu", ""},
		{`-gencode arch=compute_80,code="sm_80,compute_80" -gencode arch=compute_80,code=compute_80 a.cu`, at("80") + " a.cu", ""},
		{"-arch=sm_75 -gencode arch=compute_90,code=sm_90 a.cu", at("75", "90") + " a.cu", ""},
		{"-arch=native a.cu", ours + " a.cu", "-arch=native: compiled for compute_80 alone"},
		{"-arch=all-major a.cu", ours + " a.cu", "-arch=all-major: compiled for compute_80 alone"},
		{"-arch=all -gencode arch=compute_90,code=sm_90 a.cu", at("90") + " a.cu", ""},
		{"-gencode arch=compute_90,code=lto_90 -dc a.cu", at("90") + " -dc a.cu", ""},
		{"-arch=lto_90 -dc a.cu", at("90") + " -dc a.cu", ""},

		// Optimisation of device code.
		{"-Xcicc -O3 a.cu", ours + " a.cu", "-Xcicc -O3 left out"},
		{"-Xcicc=-O1,-keep a.cu", ours + " -Xcicc -keep a.cu", "-Xcicc -O1 left out"},
		{"--cicc-options -O0 a.cu", ours + " a.cu", ""},
		{"-Ofc max a.cu", ours + " a.cu", "-Ofc max left out"},
		{"--Ofast-compile=min a.cu", ours + " a.cu", "--Ofast-compile=min left out"},
		{"-dopt=on a.cu", ours + " a.cu", "-dopt=on left out"},
		{"-extra-device-vectorization a.cu", ours + " a.cu", "-extra-device-vectorization left out"},
		{"-dlto -dc a.cu", ours + " -dc a.cu", "-dlto left out"},
		{"-Xptxas -O3,-v -Xptxas=-v a.cu", ours + " -Xptxas -O3,-v -Xptxas=-v a.cu", ""},
		{"-G a.cu", "-L /rt -I /rt -Xcompiler -fno-optimize-sibling-calls -gencode arch=compute_80,code=compute_80 -cudadevrt none -G a.cu", ""},
		{"--device-debug -lineinfo -Xcicc -O0 a.cu", "-L /rt -I /rt -Xcompiler -fno-optimize-sibling-calls -gencode arch=compute_80,code=compute_80 -cudadevrt none --device-debug a.cu", ""},

		// Values are not options, options of the host compiler are not ours.
		{"-Xcompiler -G -o -G a.cu", ours + " -Xcompiler -G -o -G a.cu", ""},
		{"-o -arch a.cu", ours + " -o -arch a.cu", ""},
		{"-Xlinker -dlto a.cu", ours + " -Xlinker -dlto a.cu", ""},
		{"-link -keep -time t.csv a.cu", ours + " -link -keep -time t.csv a.cu", ""},
		{"-forward-unknown-to-host-compiler -fopenmp --foo=-G a.cu", ours + " -forward-unknown-to-host-compiler -fopenmp --foo=-G a.cu", ""},

		// Libraries.
		{"-cudart shared a.cu", ours + " -cudart shared a.cu", ""},
		{"--cudart=none a.cu -lcudart_static", ours + " --cudart=none a.cu -lcudart_static", ""},
		{"a.o /usr/local/cuda/lib64/libcudart_static.a", ours + " a.o /rt/libcudart_static.a", "/usr/local/cuda/lib64/libcudart_static.a: our own"},
		{"-cudadevrt static a.cu", ours + " a.cu", ""},
		{"-dlink a.o -lcudadevrt -l cudadevrt -lcudart_static", ours + " -dlink a.o -lcudart_static", ""},
		{"-Xcompiler -L/x,-O2 a.o", "-L /rt -I /rt -Xcompiler -L/rt -Xcompiler -g1 -Xcompiler -fno-optimize-sibling-calls -lineinfo -Xcicc -O0 -gencode arch=compute_80,code=compute_80 -cudadevrt none -Xcompiler -L/x,-O2 a.o", ""},

		// Other modes.
		{"-dlink a.o b.o -o d.o", ours + " -dlink a.o b.o -o d.o", ""},
		{"--dryrun -c a.cu", ours + " --dryrun -c a.cu", ""},
		{"-E -arch=sm_90 a.cu", at("90") + " -E a.cu", ""},
		{"-ptx -arch=sm_90 a.cu", at("90") + " -ptx a.cu", ""},
		{"-cubin -arch=sm_90 a.cu", "-cubin -arch=sm_90 a.cu", "-cubin makes no PTX"},
		{"--optix-ir a.cu", "--optix-ir a.cu", "-optix-ir makes no PTX"},
		{"--version", "--version", ""},
		{"-V", "-V", ""},
		{"--list-gpu-arch", "--list-gpu-arch", ""},

		// Response files.
		{"--options-file includes.rsp a.cu", ours + " --options-file includes.rsp a.cu", ""},
		{"-optf=includes.rsp,arch.rsp a.cu", at("90") + ` -I/a -I/with_blank -O2 -DNAME="x" -I/with_blank a.cu`, ""},
		{"-optf nested.rsp a.cu", at("90") + ` -O2 -DNAME="x" -I/with_blank a.cu`, ""},
	} {
		var in []string
		if c.in != "" {
			in = strings.Split(c.in, " ")
		}
		got, notes, err := Wrap(in, Rewrite{RuntimeDir: "/rt", ReadFile: read})
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], "with blank", "with_blank")
		}
		if g := strings.Join(got, " "); g != c.out {
			t.Errorf("%s:\n got %s\nwant %s", c.in, g, c.out)
		}
		if n := strings.Join(notes, "; "); (c.notes == "") != (n == "") || !strings.Contains(n, c.notes) {
			t.Errorf("%s: notes %q, want %q", c.in, n, c.notes)
		}
	}

	var usage *UsageError
	for _, in := range []string{"a.cu -o", "-gencode code=sm_80 a.cu", "-optf loop.rsp"} {
		if _, _, err := Wrap(strings.Split(in, " "), Rewrite{ReadFile: read}); !errors.As(err, &usage) {
			t.Errorf("%s: error %v, want a usage error", in, err)
		}
	}
	if _, _, err := Wrap([]string{"-optf", "absent"}, Rewrite{ReadFile: read}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing response file: error %v", err)
	}
}

func TestWrapFolders(t *testing.T) {
	got, _, err := Wrap([]string{"a.cu"}, Rewrite{})
	if err != nil || slices.Contains(got, "-L") {
		t.Errorf("without folders: %q, %v", got, err)
	}
	got, _, err = Wrap([]string{"-L/user", "a.cu"}, Rewrite{RuntimeDir: "/rt"})
	if err != nil || !slices.Equal(got[:2], []string{"-L", "/rt"}) {
		t.Errorf("ours must come first: %q, %v", got, err)
	}
}

// TestWrapTwice checks that wrapping twice, like a wrapper around a wrapper, changes nothing.
func TestWrapTwice(t *testing.T) {
	for _, in := range []string{"a.cu", "-G a.cu", "-arch=sm_90 -rdc=true a.cu b.cu", "-cudart shared -Xcompiler -fPIC a.cu"} {
		once, _, err := Wrap(strings.Fields(in), Rewrite{})
		if err != nil {
			t.Fatal(err)
		}
		twice, notes, err := Wrap(once, Rewrite{})
		if err != nil || len(notes) > 0 {
			t.Fatalf("%s: %v, notes %q", in, err, notes)
		}
		slices.Sort(once)
		slices.Sort(twice)
		if !slices.Equal(once, twice) {
			t.Errorf("%s:\n once %q\ntwice %q", in, once, twice)
		}
	}
}

func TestEveryOptionOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range options {
		if seen[o.long] || o.long == "" || o.short == "" {
			t.Errorf("option %q stands twice or lacks a name", o.long)
		}
		seen[o.long] = true
	}
}

func TestSplitWords(t *testing.T) {
	for in, want := range map[string][]string{
		"":                         nil,
		" -a\t-b\n\n-c \r\n":       {"-a", "-b", "-c"},
		`-I"/x y" -DS=\"q\" "a b"`: {"-I/x y", `-DS="q"`, "a b"},
		`a\\b ""`:                  {`a\b`, ""},
		`"open`:                    {"open"},
	} {
		if got := splitWords(in); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("-gencode arch=compute_80,code=[sm_80,compute_80] -Xcicc -O3 -optf x a.cu -o a")
	f.Fuzz(func(t *testing.T, line string) {
		out, _, err := Wrap(splitWords(line), Rewrite{RuntimeDir: "/rt", ReadFile: func(n string) ([]byte, error) { return []byte(n), nil }})
		if err == nil && len(out) == 0 && line != "" && len(splitWords(line)) > 0 {
			t.Errorf("nothing left of %q", line)
		}
	})
}
