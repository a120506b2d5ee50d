package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const reduceName = "_Z6reducePKiPii"

// reduceSource is what the findings of the tests are about.
var reduceSource = []string{
	"__global__ void reduce(const int *in, int *out, int n) {",
	"\t__shared__ int tile[256];",
	"\tint t = threadIdx.x;",
	"\ttile[t] = in[t];",
	"\tif (t < 128) tile[t] += tile[t + 128];",
	"\tif (t == 0) atomicAdd(out, tile[0]);",
	"}",
}

func testSource(file string) []string {
	if filepath.Base(file) == "reduce.cu" {
		return reduceSource
	}
	return nil
}

func frame(line, column, ptx int, inst string) event.Frame {
	return event.Frame{Function: reduceName, File: "/home/ada/proj/reduce.cu", Line: line, Column: column,
		PTXFile: "reduce.ptx", PTXLine: ptx, Inst: inst}
}

func access(op detect.Op, thread uint32, offset uint64, frames ...event.Frame) Access {
	return Access{Op: op, Space: event.Shared, Kernel: reduceName, Launch: 1, Grid: event.Dim3{X: 4, Y: 1, Z: 1},
		Shape: event.Dim3{X: 256, Y: 1, Z: 1}, Thread: event.Dim3{X: thread}, Address: offset, Size: 4,
		Object: Object{Name: "_ZZ6reducePKiPiiE4tile", Named: true, Offset: offset, Size: 1024}, Frames: frames}
}

func race() Finding {
	f := Finding{Class: detect.Race, Kind: detect.MissingBarrier, Severity: detect.Error, Detector: "hb", Kernel: reduceName,
		Count: 128, Addresses: 512,
		Message: "both threads are of one block and no barrier stands between the write and the read.",
		Fix:     "put __syncthreads() between the two.",
		Accesses: []Access{
			access(detect.Write, 128, 512, frame(4, 2, 40, "st.u32 [%rd1], %r1")),
			access(detect.Read, 0, 512, frame(5, 23, 52, "ld.u32 %r2, [%rd2]")),
		}}
	return f
}

// inAtomic is a race of an atomic, called through the toolkit's headers, with a plain host copy.
func inAtomic() Finding {
	atomic := access(detect.AtomicOp, 0, 0,
		event.Frame{Function: "__iAtomicAdd", PTXFile: "reduce.ptx", PTXLine: 11, Inst: "atom.global.add.s32 ..."},
		event.Frame{Function: "_Z9atomicAddPii", File: "/opt/nvidia/include/device_atomic_functions.hpp", Line: 107, Column: 3, PTXLine: 20},
		frame(6, 14, 80, "call"),
		event.Frame{Function: "_Z5outerPi", File: "/home/ada/proj/outer.cu", Line: 900, Column: 5, PTXLine: 99})
	atomic.Space, atomic.Order, atomic.Scope = event.Global, event.Relaxed, event.ScopeGPU
	atomic.Address = 0x2000_0000_1000
	atomic.Object = Object{Name: "cudaMalloc #2 (4 bytes)", Size: 4}
	atomic.Sync = &Sync{What: "bar.sync 0", Frames: []event.Frame{frame(5, 2, 50, "bar.sync 0")}}
	host := Access{Op: detect.Read, Host: "cudaMemcpyAsync (stream 2)", Space: event.Global, Address: 0x2000_0000_1000, Size: 4,
		Object: atomic.Object}
	return Finding{Class: detect.Race, Kind: detect.InterKernel, Severity: detect.Warning, Detector: "hb", Predicted: true,
		Kernel: reduceName, Count: 1, Addresses: 4, Message: "Nothing orders the copy after the kernel.",
		Fix: "Synchronise the streams.", Accesses: []Access{atomic, host}, Sections: sections()}
}

// sections are two critical sections. Functions of the program acquire and release the lock of one. The end of the
// other was not observed.
func sections() []Section {
	lock := Access{Space: event.Shared, Address: 0x40, Object: Object{Name: "mutex", Named: true, Size: 4}}
	header := event.Frame{Function: "__threadfence", File: "/opt/nvidia/include/device_functions.hpp", Line: 88, PTXLine: 15}
	taken := []event.Frame{header, frame(6, 3, 16, "call"), frame(40, 3, 70, "call"), frame(50, 3, 90, "call")}
	given := []event.Frame{header, frame(11, 3, 26, "call"), frame(43, 3, 76, "call"), frame(50, 3, 90, "call")}
	first, second := Section{Lock: lock, From: taken, To: given}, Section{Lock: lock, From: taken}
	second.Lock.Block.X = 1
	return []Section{first, second}
}

func outOfBounds() Finding {
	a := access(detect.Write, 31, 0, event.Frame{Function: "scale", PTXFile: "scale.ptx", PTXLine: 33, Inst: "st.global.v2.u32"})
	a.Kernel, a.Space, a.Address, a.Size = "scale", event.Global, 0x2000_0000_2040, 8
	a.Object = Object{Name: "in", Named: true, Offset: 64, Size: 64, Elem: 4}
	return Finding{Class: detect.MemoryFault, Kind: "out-of-bounds", Severity: detect.Error, Detector: "engine", Kernel: "scale", Count: 3,
		Message: "The write ends 8 bytes behind the allocation.", Accesses: []Access{a}}
}

func deadlock() Finding {
	stand := func(line int, threads int, doing string) Access {
		a := access(OpWait, 0, 0, frame(line, 2, line*10, "bar.sync 0"))
		a.Space, a.Object, a.Size, a.Threads, a.Doing = event.NoSpace, Object{}, 0, threads, doing
		return a
	}
	return Finding{Class: detect.Deadlock, Kind: "deadlock", Severity: detect.Error, Detector: "engine", Kernel: reduceName, Count: 1,
		Message:  "No warp can make a step.",
		Accesses: []Access{stand(4, 128, "waits at barrier 0"), stand(5, 1, "waits at barrier 1")}}
}

func TestTextGolden(t *testing.T) {
	findings := Merge([]Finding{race(), inAtomic(), outOfBounds(), deadlock()})
	for _, color := range []bool{false, true} {
		var b bytes.Buffer
		text := &Text{Color: color, Dir: "/home/ada/proj", Source: testSource}
		for i := range findings {
			text.Finding(&b, &findings[i])
		}
		name := "findings.txt"
		if color {
			name = "findings.color.txt"
		}
		golden(t, name, b.Bytes())
	}
}

func TestJSONGolden(t *testing.T) {
	r := &Report{Verdict: Found, Program: &Program{Exit: 139, Signal: "segmentation fault"},
		Kernels: []Kernel{{Name: reduceName, Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 256, Y: 1, Z: 1},
			Launches: 2, Seconds: 0.25}},
		Skipped:  []Skipped{{"cudaGraphLaunch", "Graphs are not supported."}},
		Findings: Merge([]Finding{race(), inAtomic(), outOfBounds(), deadlock()}),
		Notes:    []string{"A remark."}}
	Fingerprint(r.Findings, testSource)
	r.Findings[2].Suppressed = &Suppressed{By: "comment", At: "reduce.cu:4", Reason: "known"}
	var b bytes.Buffer
	if err := JSON(&b, r, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", b.Bytes())
	var timed bytes.Buffer
	if err := JSON(&timed, r, true); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(timed.String(), `"seconds": 0.25`, `"seconds": 0`); got != b.String() {
		t.Error("times change more than the seconds")
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", path, got)
	}
}

func TestMergeIsScheduleIndependent(t *testing.T) {
	a := race()
	b := race()
	b.Accesses[0], b.Accesses[1] = b.Accesses[1], b.Accesses[0]
	b.Accesses[0].Thread.X, b.Accesses[0].Frames[0].PTXLine = 77, 9999
	for i := range b.Accesses {
		b.Accesses[i].Frames[0].File = "/elsewhere/reduce.cu"
	}
	b.Count = 2
	ab, ba := Merge([]Finding{a, b}), Merge([]Finding{b, a})
	if len(ab) != 1 || len(ba) != 1 {
		t.Fatalf("%d and %d findings, want one each", len(ab), len(ba))
	}
	if ab[0].ID != ba[0].ID || ab[0].Count != 130 || ba[0].Count != 130 {
		t.Errorf("got %s x%d and %s x%d", ab[0].ID, ab[0].Count, ba[0].ID, ba[0].Count)
	}
	c := race()
	c.Accesses[1].Frames[0].Column = 1
	if got := Merge([]Finding{a, c}); len(got) != 2 || got[0].ID == got[1].ID {
		t.Error("findings at different columns were merged")
	}
	kinds := func(kind detect.Kind, severity detect.Severity, predicted bool) Finding {
		f := race()
		f.Kind, f.Severity, f.Predicted, f.Count = kind, severity, predicted, 1
		return f
	}
	// From the gravest to the mildest.
	order := []Finding{kinds(detect.MissingBarrier, detect.Error, false), kinds(detect.Unordered, detect.Error, false),
		kinds(detect.FenceScope, detect.Error, true), kinds(detect.SameValue, detect.Warning, false)}
	for i, f := range order {
		for _, g := range order[i:] {
			for _, list := range [][]Finding{{f, g}, {g, f}} {
				if got := Merge(list); len(got) != 1 || got[0].Kind != f.Kind || got[0].Count != 2 || got[0].ID != ab[0].ID {
					t.Errorf("%s and %s at one pair of places are %d findings, the first %s %s", f.Kind, g.Kind, len(got), got[0].ID, got[0].Kind)
				}
			}
		}
	}
	fault := race()
	fault.Class, fault.Kind = detect.MemoryFault, "out-of-bounds"
	if got := Merge([]Finding{a, fault}); len(got) != 2 || got[0].ID == got[1].ID {
		t.Error("a race and a fault at the same places were merged")
	}
	mild := race()
	mild.Severity, mild.Accesses[0].Frames[0].Line = detect.Warning, 1
	if got := Merge([]Finding{mild, a}); len(got) != 2 || got[0].Severity != detect.Error {
		t.Error("a warning stands before an error")
	}
	w := race()
	w.Accesses[1].Op = detect.Write
	if got := Merge([]Finding{a, w}); len(got) != 1 || got[0].Count != 256 || got[0].Accesses[1].Op != detect.Read {
		t.Error("the read and the write of one place were not merged")
	}
	update, both := race(), race()
	update.Accesses[1].Frames[0] = update.Accesses[0].Frames[0]
	both.Accesses[1].Op, both.Accesses[1].Frames[0] = detect.Write, both.Accesses[0].Frames[0]
	for _, list := range [][]Finding{{update, both}, {both, update}} {
		if got := Merge(list); len(got) != 1 || got[0].Count != 256 || got[0].Accesses[1].Op != detect.Write {
			t.Error("of the races of an update with itself not that of the two writes is told")
		}
	}
	d := race()
	d.Detector = "gwcp"
	if got := Merge([]Finding{a, d}); len(got) != 1 || got[0].Detector != a.Detector || len(got[0].Also) != 1 {
		t.Error("findings of two detectors must be one")
	}
}

func TestSystemFile(t *testing.T) {
	for name, want := range map[string]bool{
		"/usr/include/c++/12/bits/move.h": true,
		"/x/lib/python3.11/site-packages/nvidia/cu13/bin/../include/device_atomic_functions.hpp": true,
		"/x/site-packages/nvidia/cu13/include/cccl/cuda/__atomic/atomic.h":                       true,
		"/usr/local/cuda-13.0/targets/x86_64-linux/include/sm_20_intrinsics.hpp":                 true,
		"/home/me/toolkit/include/cooperative_groups/details/sync.h":                             true,
		"/home/me/toolkit/include/sm_60_atomic_functions.hpp":                                    true,
		"/home/me/cccl/libcudacxx/include/cuda/atomic":                                           true,
		"/home/me/proj/include/lock.cuh":                                                         false,
		"/home/me/proj/include/queue.hpp":                                                        false,
		"/home/me/nvidia/samples/reduce.cu":                                                      false,
		"/home/me/cuda/reduce.cu":                                                                false,
		"/home/me/thrust/mine.cu":                                                                false,
		"reduce.cu":                                                                              false,
	} {
		if got := systemFile(name); got != want {
			t.Errorf("systemFile(%q) = %v", name, got)
		}
	}
}

func TestDemangleIn(t *testing.T) {
	for in, want := range map[string]string{
		"function _Z3addPii is missing": "function add(int*, int) is missing",
		"_Z, a_Z3addv, _Z9param_0":      "_Z, a_Z3addv, _Z9param_0",
	} {
		if got := DemangleIn(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDemangle(t *testing.T) {
	for name, want := range map[string][2]string{
		reduceName:               {"reduce(int const*, int*, int)", "reduce"},
		"_ZZ6reducePKiPiiE4tile": {"reduce(int const*, int*, int)::tile", "tile"},
		"_ZN34_INTERNAL_f613278f_4_a_cu_da2c3aa39atomicAddEPii": {"atomicAdd(int*, int)", "atomicAdd"},
		"_ZN8__main__4turnB2v1B10cw51cXTLSUEi":                  {"__main__::turn(int)", "turn"},
		"plain":                                                 {"plain", "plain"},
		"_Znonsense":                                            {"_Znonsense", "_Znonsense"},
		"_ZN2ns4scanIfLi4EEEvPT_":                               {"void ns::scan<float, 4>(float*)", "scan<float, 4>"},
		"_ZNK3cub5Block3SumIfEEvRT_":                            {"void cub::Block::Sum<float>(float&) const", "Sum<float>"},
		"_Z" + strings.Repeat("N", 5000) + "1aE":                {"_Z" + strings.Repeat("N", 5000) + "1aE", "_Z" + strings.Repeat("N", 5000) + "1aE"},
	} {
		if got := Demangle(name); got != want[0] {
			t.Errorf("Demangle(%q) = %q, want %q", name, got, want[0])
		}
		if got := BareName(name); got != want[1] {
			t.Errorf("BareName(%q) = %q, want %q", name, got, want[1])
		}
	}
}

func TestSubscripts(t *testing.T) {
	for line, want := range map[string]bool{
		"tile[t] = in[t];":               true,
		"tile[t] += tile[t + s];":        true,
		"tile[f(a[1])] = 0;":             true,
		"tile [t] = 0;":                  true,
		"tile[ty][tx] = 0;":              false,
		"tile[t].x = 0;":                 false,
		"tile[t]->x = 0;":                false,
		"tile[t] = 0; p = tile;":         false,
		"f(tile, t);":                    false,
		"mytile[t] = 0;":                 false,
		"tiles[t] = 0;":                  false,
		"tile[t] = mytile.x + tiles.y;":  true,
		"tile[t":                         false,
		"*tile = 0;":                     false,
		"tile[t] = tile[t + 1].a; // hm": false,
	} {
		if got := subscripts(line, "tile"); got != want {
			t.Errorf("subscripts(%q) = %v", line, got)
		}
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("a", 200) + "X" + strings.Repeat("b", 200)
	for _, c := range []struct {
		line        string
		column      int
		shown, mark string
	}{
		{"\tx = 1;", 2, "    x = 1;", "x"},
		{"\tx = 1;", 0, "    x = 1;", "x"},
		{"\tx = 1;", 99, "    x = 1;", "x"},
		{"é = y;", 6, "é = y;", "y"},
		{"a\x1b[31m = y;", 1, "a?[31m = y;", "a"},
		{long, 201, "", "X"},
	} {
		from, to := (&Text{}).marked(&Access{}, c.line, c.column)
		shown, caret, mark := excerpt(c.line, from, to)
		if c.shown != "" && shown != c.shown {
			t.Errorf("excerpt(%q) shows %q", c.line, shown)
		}
		if r := []rune(shown); mark != "^" || len(caret) >= len(r) || string(r[len(caret)]) != c.mark {
			t.Errorf("excerpt(%q, %d): caret at %d of %q, want it under %q", c.line, c.column, len(caret), shown, c.mark)
		}
		if len(shown) > 110 {
			t.Errorf("excerpt is %d bytes long", len(shown))
		}
	}
}

func TestExcerptOfPart(t *testing.T) {
	line := "\té[t]\t= " + strings.Repeat("b", 200)
	for _, c := range []struct {
		from, to int
		marked   string
	}{
		{1, 6, "é[t]"},
		{5, 8, "]    ="},
		{8, 9, " "},
		{9, 209, strings.Repeat("b", 82)}, // to the cut
		{109, 119, strings.Repeat("b", 10)},
	} {
		shown, space, caret := excerpt(line, c.from, c.to)
		part := []rune(shown)[len(space):]
		if got := string(part[:len(caret)]); got != c.marked {
			t.Errorf("%d to %d marks %q of %q, want %q", c.from, c.to, got, shown, c.marked)
		}
	}
}

func TestClean(t *testing.T) {
	if got := clean("a\x1b[2Jb\xff"); got != "a?[2Jb\uFFFD" {
		t.Errorf("clean left %q", got)
	}
}

func TestShortName(t *testing.T) {
	long := strings.Repeat("abcdefghij", 10)
	for name, want := range map[string]string{
		"void reduce<int>(int*)":                      "void reduce<int>(int*)",
		"void sort<" + long + ", 2>(int*, int)":       "void sort<...>(int*, int)",
		"run<A<" + long + ">, B>(C<int>)::operator()": "run<...>(C<...>)::operator()",
		"k(" + long + ", int)":                        "k(...)",
		"bool operator<<" + long + ">(T const&)":      "bool operator<<...>(T const&)",
		"f<" + long + " -> int>::g":                   "f<...>::g",
		"unbalanced>" + long:                          "unbalanced>" + long,
	} {
		if got := ShortName(name); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestToolkitHeaderName(t *testing.T) {
	for name, want := range map[string]string{
		"/opt/x/site-packages/nvidia/cu13/include/cccl/cub/agent/agent_scan.cuh": "<cub/agent/agent_scan.cuh>",
		"/usr/local/cuda/include/device_functions.h":                             "<device_functions.h>",
		"/home/ada/proj/include/mine.h":                                          "",
		"/usr/local/cuda/samples/a.cu":                                           "",
	} {
		if got, ok := toolkitHeaderName(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestInternal(t *testing.T) {
	header := event.Frame{Function: "store", File: "/usr/local/cuda/include/cub/store.cuh", Line: 7}
	first, second := frame(4, 2, 50, "call"), frame(9, 2, 60, "call")
	intrinsic := event.Frame{Function: "__uAtomicCAS"}
	cas := event.Frame{Function: "_Z9atomicCASPjjj", File: "/usr/local/cuda/include/device_atomic_functions.hpp", Line: 9}
	add := event.Frame{Function: "_Z9atomicAddP14__nv_bfloat162S_", File: "/usr/local/cuda/include/cuda_bf16.hpp", Line: 5}
	of := func(kind detect.Kind, a, b []event.Frame) bool {
		f := race()
		f.Kind, f.Accesses[0].Frames, f.Accesses[1].Frames = kind, a, b
		return f.Internal(nil) != ""
	}
	volatile := func(kind detect.Kind, a, b []event.Frame) bool {
		f := race()
		f.Kind, f.Accesses[0].Frames, f.Accesses[1].Frames = kind, a, b
		f.Accesses[0].Order, f.Accesses[1].Order = event.Volatile, event.Volatile
		return f.Internal(nil) != ""
	}
	atomics := func(first detect.Op, a, b []event.Frame) bool {
		f := race()
		f.Kind, f.Accesses[0].Frames, f.Accesses[1].Frames = detect.MixedAtomic, a, b
		f.Accesses[0].Op, f.Accesses[1].Op = first, detect.AtomicOp
		return f.Internal(nil) != ""
	}
	stack := func(f ...event.Frame) []event.Frame { return f }
	for i, c := range []struct {
		got, want bool
	}{
		{volatile(detect.MissingFence, stack(header, first), stack(header, first)), true},
		{volatile(detect.MissingFence, stack(first), stack(first)), false},
		{of(detect.VolatileOnly, stack(header, first), stack(header, first)), true},
		{of(detect.SameValue, stack(header), stack(header)), true},
		{of(detect.VolatileOnly, stack(header, first), stack(header, second)), false}, // between two calls the user can order
		{of(detect.VolatileOnly, stack(header, first), stack(first)), false},
		{of(detect.VolatileOnly, stack(first), stack(first)), false},
		{of(detect.MissingBarrier, stack(header, first), stack(header, first)), false},
		{atomics(detect.Read, stack(intrinsic, cas, add, first), stack(add, second)), true},
		{atomics(detect.Write, stack(intrinsic, cas, add, first), stack(add, second)), false}, // initialises
		{atomics(detect.Read, stack(intrinsic, cas, add, first), stack(second)), false},       // the user's own plain access
		{atomics(detect.Read, stack(header, first), stack(add, second)), false},
	} {
		if c.got != c.want {
			t.Errorf("case %d: %t", i, c.got)
		}
	}
}

// TestSharesStorage checks that two warps that write volatile variables of the toolkit share its temporary storage, and
// that lanes of one warp do not.
func TestSharesStorage(t *testing.T) {
	header := event.Frame{Function: "store", File: "/usr/local/cuda/include/cub/warp/store.cuh", Line: 7}
	for _, c := range []struct {
		name   string
		change func(f *Finding)
		want   bool
	}{
		{"two warps", func(f *Finding) {}, true},
		{"one warp", func(f *Finding) { f.Accesses[1].Thread = event.Dim3{X: 15, Y: 1} }, false},
		{"two blocks", func(f *Finding) { f.Accesses[1].Block.X++ }, false},
		{"a read", func(f *Finding) { f.Accesses[0].Op = detect.Read }, false},
		{"global memory", func(f *Finding) { f.Accesses[0].Space, f.Accesses[1].Space = event.Global, event.Global }, false},
		{"the user's own", func(f *Finding) { f.Accesses[0].Frames = f.Accesses[0].Frames[1:] }, false},
		{"not volatile", func(f *Finding) { f.Kind = detect.SameValue }, false},
	} {
		f := race()
		f.Kind = detect.VolatileOnly
		for i := range f.Accesses {
			f.Accesses[i] = Access{Op: detect.Write, Order: event.Volatile, Space: event.Shared, Shape: event.Dim3{X: 16, Y: 4, Z: 1},
				Thread: event.Dim3{X: 3, Y: 2 * uint32(i)}, Frames: []event.Frame{header, frame(4, 2, 50, "call")}}
		}
		c.change(&f)
		if got := f.SharesStorage(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestCopiesInBulk recognises a function of the toolkit that copies in bulk, but not a user's function of that name.
func TestCopiesInBulk(t *testing.T) {
	header := event.Frame{Function: "cp_async_bulk", File: "/usr/local/cuda/include/cccl/cuda/__ptx/cp_async_bulk.h", Line: 7}
	for _, c := range []struct {
		kind detect.Kind
		call event.Frame
		want bool
	}{
		{detect.MissingProxyFence, event.Frame{Function: "_ZN4cuda12memcpy_asyncIiEEvPi", File: "/usr/local/cuda/include/cccl/cuda/barrier", Line: 3}, true},
		{detect.MissingProxyFence, event.Frame{Function: "_Z12memcpy_asyncIiEvPi", File: "mine.cu", Line: 3}, false},
		{detect.MissingProxyFence, event.Frame{Function: "_ZN4cuda3ptx13cp_async_bulkEv", File: "/usr/local/cuda/include/cccl/cuda/ptx", Line: 3}, false},
		{detect.MissingBarrier, event.Frame{Function: "_ZN4cuda12memcpy_asyncIiEEvPi", File: "/usr/local/cuda/include/cccl/cuda/barrier", Line: 3}, false},
	} {
		f := race()
		f.Kind = c.kind
		f.Accesses[0].Frames = []event.Frame{frame(4, 2, 50, "k")}
		f.Accesses[1].Frames = []event.Frame{header, c.call, frame(5, 2, 50, "k")}
		if got := f.CopiesInBulk(); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestSources checks that different texts of the same name are not shown, and that a file is read if no text has its
// name.
func TestSources(t *testing.T) {
	var s *Sources
	s.Add("a", "lost")
	s = &Sources{}
	for _, add := range [][2]string{{"a", "one\ntwo"}, {"a", "one\ntwo"}, {"b", "one"}, {"b", "two"}, {"b", "one"}} {
		s.Add(add[0], add[1])
	}
	if got := s.Read("a"); len(got) != 2 || got[1] != "two" {
		t.Errorf("%q", got)
	}
	if got := s.Read("b"); len(got) != 1 || got[0] != "" {
		t.Errorf("%q", got)
	}
	if got := s.Name("/folder/a"); got != "a" {
		t.Errorf("%q", got)
	}
	if got := s.Name("/folder/c"); got != "/folder/c" {
		t.Errorf("%q", got)
	}
	if got := s.Read("source.go"); len(got) == 0 || got[0] != "package report" {
		t.Errorf("%q", got)
	}
}

// TestInternalCalls distinguishes races within one call of a toolkit function from races between two calls.
func TestInternalCalls(t *testing.T) {
	const groups = "/usr/local/cuda/include/cooperative_groups.h"
	first, second := frame(4, 2, 50, "call"), frame(9, 2, 60, "call")
	part := event.Frame{Function: "_ZZ4partvENKUlvE_clEv", File: "/usr/local/cuda/include/cooperative_groups/details/reduce.h", Line: 283}
	scheme := func(line, ptx int, outer ...event.Frame) []event.Frame {
		return append([]event.Frame{part, {Function: "collectives_scheme<int>", File: groups, Line: line, PTXLine: ptx}}, outer...)
	}
	tile := func(line int, call event.Frame, f func(a *Access)) Access {
		a := race().Accesses[0]
		a.Frames = scheme(line, 100+line, call)
		f(&a)
		return a
	}
	is := func(op detect.Op) func(a *Access) { return func(a *Access) { a.Op = op } }
	other := func(a *Access) { a.Op, a.Launch = detect.Read, a.Launch+1 }
	kernel := event.Frame{Function: "_ZN3cub23DeviceSelectSweepKernelIPiEEvT_", File: "/usr/local/cuda/include/cub/device/dispatch/dispatch_select_if.cuh", Line: 383}
	inner := event.Frame{Function: "load", File: "/usr/local/cuda/include/cub/thread/thread_load.cuh", Line: 353}
	setup := event.Frame{Function: "clusterInitSync<352>", File: "/usr/local/cuda/include/cub/detail/warpspeed/sync_handler.cuh", Line: 126}
	sweep := func(op detect.Op, frames ...event.Frame) Access {
		a := race().Accesses[0]
		a.Op, a.Frames = op, frames
		return a
	}
	at := func(b ...byte) [][]byte {
		var params [][]byte
		for _, x := range b {
			params = append(params, []byte{x, 0, 0, 0, 0, 2, 0, 0})
		}
		return params
	}
	for _, c := range []struct {
		name   string
		a, b   Access
		params [][]byte
		want   bool
	}{
		{"parts are written, then combined", tile(10, first, is(detect.Write)), tile(16, first, is(detect.Read)), nil, true},
		{"parts are written, then overwritten", tile(10, first, is(detect.Write)), tile(16, first, is(detect.Write)), nil, true},
		{"by two calls", tile(10, first, is(detect.Write)), tile(16, second, is(detect.Read)), nil, false},
		{"by two iterations", tile(16, first, is(detect.Read)), tile(10, first, is(detect.Write)), nil, false},
		{"by two iterations, written", tile(16, first, is(detect.Write)), tile(10, first, is(detect.Write)), nil, false},
		{"by two launches", tile(10, first, is(detect.Write)), tile(16, first, other), nil, false},
		{"mbarriers of a kernel", sweep(detect.Write, inner, setup, kernel), sweep(detect.AtomicOp, inner, kernel), nil, true},
		{"mbarriers, the user's access", sweep(detect.Write, inner, setup, kernel), sweep(detect.AtomicOp, first), nil, false},
		{"mbarriers, the other way round", sweep(detect.AtomicOp, inner, kernel), sweep(detect.Write, inner, setup, kernel), nil, false},
		{"in place", sweep(detect.Read, inner, kernel), sweep(detect.Write, kernel), at(1, 0, 1, 7), true},
		{"in place, of another kernel", sweep(detect.Read, inner, first), sweep(detect.Write, inner, first), at(1, 0, 1, 7), false},
		{"in place, the user's functor", sweep(detect.Read, first, kernel), sweep(detect.Write, kernel), at(1, 0, 1, 7), false},
		{"in place, two writes", sweep(detect.Write, kernel), sweep(detect.Write, kernel), at(1, 0, 1, 7), false},
		{"shifted", sweep(detect.Read, inner, kernel), sweep(detect.Write, kernel), at(1, 0, 5, 7), false},
		{"parameters not known", sweep(detect.Read, inner, kernel), sweep(detect.Write, kernel), nil, false},
	} {
		f := Finding{Class: detect.Race, Kind: detect.MissingFence, Accesses: []Access{c.a, c.b}}
		if got := f.Internal(c.params); (got != "") != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestGraphCall checks that the launch of a graph is shown, however deep the call that made its node is.
func TestGraphCall(t *testing.T) {
	launch := frame(4, 2, 50, "user")
	launch.Graph = 5
	var b bytes.Buffer
	new(Text).calls(&b, "", append(slices.Repeat([]event.Frame{frame(3, 2, 40, "deep")}, 12), launch))
	if text := b.String(); !strings.Contains(text, "in a graph launched at") || !strings.Contains(text, "through 5 more calls") {
		t.Error(text)
	}
}

// TestUserCall checks that the user's own call is shown, however deep it is below headers.
func TestUserCall(t *testing.T) {
	header := event.Frame{Function: "h", File: "/usr/local/cuda/include/cub/h.cuh", Line: 7}
	for _, c := range []struct {
		headers, users int
		want           string
	}{
		{1, 1, "reduce"}, {7, 1, "hhhhhh reduce"}, {9, 1, "hhhhhh through 2 reduce"}, {9, 3, "hhhhhh through 2 reduce and 2"}, {9, 0, "hhhhhh and 2"},
	} {
		frames := slices.Repeat([]event.Frame{header}, c.headers)
		for range c.users {
			frames = append(frames, frame(4, 2, 50, "user"))
		}
		var b bytes.Buffer
		new(Text).calls(&b, "", frames)
		got := ""
		for line := range strings.Lines(b.String()) {
			words := strings.Fields(line)
			switch words[1] {
			case "called":
				if name := words[len(words)-1]; name == "h" {
					got += name
				} else {
					got += " " + name
				}
			default:
				got += " " + words[1] + " " + words[2]
			}
		}
		if got = strings.TrimSpace(got); got != c.want {
			t.Errorf("%d headers, %d users: %q, want %q", c.headers, c.users, got, c.want)
		}
	}
}
