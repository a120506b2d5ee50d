package report

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestBarrierBetween checks that a barrier is proposed at a place between two lines, marked a and b, that all threads
// of the block pass, and nowhere else.
func TestBarrierBetween(t *testing.T) {
	for name, c := range map[string]struct {
		source, want string // want: the line in front of which it goes
	}{
		"statements":       {"__global__ void k(int *x) {\n  x[0] = 1; // a\n  x[2] = 3;\n  x[1] = x[0]; // b\n}", "  x[1] = x[0]; // b"},
		"loop behind":      {"__global__ void k(int *x) {\n  if (x) {\n    x[0] = 1; // a\n  }\n  for (;;) {\n    x[1] = x[0]; // b\n  }\n}", "  for (;;) {"},
		"statement's line": {"__global__ void k(int *x) {\n  x[0] = 1; // a\n  x[1] =\n    x[0]; // b\n}", "  x[1] ="},
		"branch":           {"__global__ void k(int *x) {\n  x[0] = 1; // a\n  if (x)\n    x[1] = x[0]; // b\n}", "  if (x)"},
		"else":             {"__global__ void k(int *x) {\n  if (x) x[0] = 1; // a\n  else x[1] = x[0]; // b\n}", ""},
		"one loop":         {"__global__ void k(int *x) {\n  for (;;) {\n    x[0] = 1; // a\n    x[1] = x[0]; // b\n  }\n}", ""},
		"return":           {"__global__ void k(int *x) {\n  if (!x) return;\n  x[0] = 1; // a\n  x[1] = x[0]; // b\n}", ""},
		"no kernel":        {"__device__ void k(int *x) {\n  x[0] = 1; // a\n  x[1] = x[0]; // b\n}", ""},
		"two functions":    {"__global__ void k(int *x) {\n  x[0] = 1; // a\n}\n__global__ void l(int *x) {\n  x[1] = x[0]; // b\n}", ""},
		"preprocessor":     {"__global__ void k(int *x) {\n  x[0] = 1; // a\n#if 1\n  x[1] = x[0]; // b\n#endif\n}", ""},
		"comment":          {"__global__ void k(int *x) {\n  x[0] = 1; // a\n  /* }\n  */\n  x[1] = x[0]; // b\n}", ""},
		"before":           {"__global__ void k(int *x) {\n  x[1] = x[0]; // b\n  x[0] = 1; // a\n}", ""},
		"text":             {"__global__ void k(int *x) {\n  x[0] = '{'; // a\n  printf(\"{\");\n  x[1] = x[0]; // b\n}", "  x[1] = x[0]; // b"},
	} {
		lines := strings.Split(c.source, "\n")
		f := Finding{Class: detect.Race, Kind: detect.MissingBarrier}
		for _, mark := range []string{"// a", "// b"} {
			for i, text := range lines {
				if strings.HasSuffix(text, mark) {
					f.Accesses = append(f.Accesses, Access{Frames: []event.Frame{{File: "k.cu", Line: i + 1, Function: "k"}}})
				}
			}
		}
		fs := []Finding{f}
		Patches(fs, func(string) []string { return lines })
		switch p := fs[0].Patch; {
		case p == nil && c.want == "":
		case p == nil || c.want == "":
			t.Errorf("%s: patch %+v", name, p)
		default:
			after := p.Apply(lines)
			at := p.Edits[0].Line - 1
			if len(after) != len(lines)+1 || strings.TrimSpace(after[at]) != "__syncthreads();" || after[at+1] != c.want {
				t.Errorf("%s:\n%s", name, p.Diff)
			}
		}
	}
}

// TestWiderScope checks that the lines of a race between blocks are changed to device scope, once each.
func TestWiderScope(t *testing.T) {
	lines := []string{"__threadfence_block(); // atomic_block", "atomicCAS_block(x, atomicAdd_block(x, 1), 2);", "use(cuda::thread_scope_block);", "x_block();"}
	const second = "l" // kernel
	access := func(block uint32, n, sync int) Access {
		return Access{Block: event.Dim3{X: block}, Frames: []event.Frame{{File: "k.cu", Line: n}}, Sync: &Sync{Frames: []event.Frame{{File: "k.cu", Line: sync}}}}
	}
	f := Finding{Class: detect.Race, Kind: detect.AtomicScope, Accesses: []Access{access(0, 2, 3), access(1, 2, 1)}}
	same := Finding{Class: detect.Race, Kind: detect.AtomicScope, Accesses: []Access{access(0, 2, 3), access(0, 2, 1)}}
	other := Finding{Class: detect.Race, Kernel: second, Kind: detect.AtomicScope, Accesses: []Access{access(0, 4, 4), access(1, 4, 4)}}
	fs := []Finding{f, same, other}
	Patches(fs, func(string) []string { return lines })
	if fs[1].Patch != nil || fs[2].Patch != nil {
		t.Errorf("patches %+v, %+v", fs[1].Patch, fs[2].Patch)
	}
	got := strings.Join(fs[0].Patch.Apply(lines), "\n")
	if want := "__threadfence(); // atomic_block\natomicCAS(x, atomicAdd(x, 1), 2);\nuse(cuda::thread_scope_device);\nx_block();"; got != want {
		t.Errorf("got\n%s", got)
	}
}
