package session

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/report"
)

// TestCooperativeByDefault launches a kernel that traps, as cooperative groups do, without the workspace of a cooperative launch.
func TestCooperativeByDefault(t *testing.T) {
	const text = `.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
	.reg .b32 %r<4>;
	.reg .pred %p1;
	mov.u32 %r1, %envreg1;
	mov.u32 %r2, %envreg2;
	or.b32 %r3, %r1, %r2;
	setp.eq.u32 %p1, %r3, 0;
	@%p1 trap;
	ret;
}`
	for launch, want := range map[string]report.Verdict{"": report.Clean, "cooperative = true\n": report.Clean, "cooperative = false\n": report.Found} {
		for emulator, r := range byEachEngine(t, text, "grid = 2\nblock = 32\n"+launch) {
			if r.Verdict != want {
				t.Errorf("%q, %s: %v", launch, emulator, r.Verdict)
			}
		}
	}
}

// kernels is the PTX of the kernels of these tests.
const kernels = `.version 8.0
.target sm_80
.address_size 64

.visible .entry _Z5storePii(.param .u64 p, .param .u32 v)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [v];
	mov.u32 %r2, %tid.x;
	mul.wide.u32 %rd2, %r2, 4;
	add.s64 %rd3, %rd1, %rd2;
	st.global.u32 [%rd3], %r1;
	ret;
}

.visible .entry _ZN2ns3addIfLi4EEEvPT_(.param .u64 p)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd1, %rd1;
	ld.global.u32 %r1, [%rd1];
	add.u32 %r1, %r1, 1;
	st.global.u32 [%rd1], %r1;
	ret;
}

.visible .entry spin()
{
L:	.reg .b32 %r<2>; activemask.b32 %r1; // what asks which lanes are active may go on: no deadlock
	bra L;
}

.visible .entry strange()
{
	frobnicate.u32 %r1;
	ret;
}
`

func check(t *testing.T, o *Options, launch string) (*report.Report, error) {
	t.Helper()
	l, err := ReadLaunchFile("l.toml", []byte(launch))
	if err != nil {
		t.Fatal(err)
	}
	if o.FailOn == detect.Info {
		o.FailOn = detect.Error
	}
	return Check(context.Background(), o, &Input{Images: []cuda.Image{{Name: "k.ptx", Text: kernels}}, Launch: l})
}

func mustCheck(t *testing.T, o *Options, launch string) *report.Report {
	t.Helper()
	r, err := check(t, o, launch)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func requireSkipped(t *testing.T, r *report.Report, want string) {
	t.Helper()
	for _, s := range r.Skipped {
		if strings.Contains(s.What+": "+s.Reason, want) {
			return
		}
	}
	t.Errorf("not checked is %v, want %q in it", r.Skipped, want)
}

func TestKernelNames(t *testing.T) {
	for name, want := range map[string]string{
		"_Z5storePii": "", "store": "", "store(int*, int)": "",
		"ns::add<float, 4>": "kernel ns::add<float, 4> has 1 parameters", "add": "kernel ns::add<float, 4> has 1 parameters",
		"add<float, 4>": "has 1 parameters", "add<float,4>": "has 1 parameters",
		"stor": `l.toml:3:10: there is no kernel "stor" in k.ptx; did you mean "store"?`,
	} {
		r, err := check(t, &Options{}, fmt.Sprintf("grid = 1\nblock = 1\nkernel = %q\n", name)+
			`args = [{buffer = "a", type = "i32", shape = 1}, {i32 = 5}]`)
		switch {
		case want == "" && (err != nil || r.Verdict != report.Clean):
			t.Errorf("%s: %v, %v", name, r, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if _, err := check(t, &Options{}, "grid = 1\nblock = 1"); err == nil ||
		!strings.Contains(err.Error(), `l.toml:1:1: k.ptx holds 4 kernels; say which one, as in kernel = "store" (store, ns::add<float, 4>, spin, strange)`) {
		t.Error(err)
	}
	// The filter of kernels names one of them.
	args := `args = [{buffer = "a", type = "i32", shape = 1}, {i32 = 5}]`
	for filter, want := range map[string]string{"store": "", "^store": "", "s": "holds 4 kernels; say which one", "stare": `--kernel stare: k.ptx has no such kernel; did you mean "store"?`} {
		r, err := check(t, &Options{Watch: Watch{Kernel: regexp.MustCompile(filter)}}, "grid = 1\nblock = 1\n"+args)
		if (want == "") != (err == nil && r.Verdict == report.Clean) || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", filter, r, err)
		}
	}
}

func TestRefusedLaunch(t *testing.T) {
	_, err := check(t, &Options{}, "grid = 1\nblock = 2048\nkernel = \"spin\"")
	if err == nil || !strings.HasPrefix(err.Error(), "l.toml:1:1: cudaErrorInvalid") {
		t.Error(err)
	}
}

func TestLostDevice(t *testing.T) {
	r := mustCheck(t, &Options{}, `
[[launch]]
kernel = "store"
grid = 1
block = 64
args = [{buffer = "a", type = "i32", shape = 8}, {i32 = 5}]
[[launch]]
kernel = "store"
grid = 1
block = 1
args = [{buffer = "a"}, {i32 = 5}]
`)
	if r.Verdict != report.Found || len(r.Findings) != 1 {
		t.Fatalf("verdict %s, findings %v", r.Verdict, r.Findings)
	}
	f := r.Findings[0]
	if f.Kind != "out-of-bounds" || f.Class != detect.MemoryFault || f.Count != 56 || f.Accesses[0].Op != detect.Write {
		t.Errorf("finding %+v", f)
	}
	if o := f.Accesses[0].Object; o.Name != "a" || o.Offset != 32 || o.Size != 32 || o.Elem != 4 {
		t.Errorf("object %+v", o)
	}
	if !strings.Contains(f.Message, `buffer "a" (32 bytes)`) || strings.Contains(f.Message, "cudaMalloc") {
		t.Errorf("message %q", f.Message)
	}
	requireSkipped(t, r, "kernel store: not run, the device is lost: cudaErrorIllegalAddress: after launch 1")
}

func TestTimeout(t *testing.T) {
	begin := time.Now()
	r := mustCheck(t, &Options{Timeout: 200 * time.Millisecond, Seeds: 3}, "kernel = \"spin\"\ngrid = 1\nblock = 1")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if r.Verdict != report.NotChecked {
		t.Errorf("verdict %s", r.Verdict)
	}
	requireSkipped(t, r, "launch 1 of spin: stopped: the --timeout has passed")
	requireSkipped(t, r, "2 of 3 seeds")
}

func TestUnsupportedInstruction(t *testing.T) {
	r := mustCheck(t, &Options{}, "kernel = \"strange\"\ngrid = 1\nblock = 1")
	if r.Verdict != report.NotChecked || len(r.Kernels) != 0 {
		t.Errorf("verdict %s, kernels %v", r.Verdict, r.Kernels)
	}
	requireSkipped(t, r, "kernel strange: k.ptx:38:")
}

// TestLacking checks that each unsupported instruction is reported once, with a workaround if there is one.
func TestLacking(t *testing.T) {
	const headers = "; cuda::barrier, cuda::pipeline and memcpy_async do without these when compiled with -arch=sm_75"
	const triton, gluon = "// fencepost: made by Triton\n", "// fencepost: made by Triton with Gluon\n"
	for _, test := range []struct{ head, code, want string }{
		{"", "cp.async.bulk.strange;\ncp.async.bulk.strange;", "k.ptx:6:1: cp.async.bulk.strange is not supported"},
		{"", "mbarrier.strange.shared.b64 p, [0], 0;", "k.ptx:6:1: mbarrier.strange.shared.b64 is not supported" + headers},
		{"", "frobnicate;", "k.ptx:6:1: unknown instruction frobnicate"},
		{"", "tex.a;\ntex.b;\ntex.c;\ntex.d;\ntex.d;", "k.ptx:6:1: tex.a is not supported; k.ptx:7:1: tex.b is not supported; " +
			"k.ptx:8:1: tex.c is not supported; and 1 more"},
		{triton, "tcgen05.fence;", "k.ptx:7:1: tcgen05.fence is not supported; Triton compiles for older devices without these"},
		{triton, "cp.async.bulk.strange;", "k.ptx:7:1: cp.async.bulk.strange is not supported; Triton compiles for older devices without these"},
		{gluon, "tcgen05.fence;", "k.ptx:7:1: tcgen05.fence is not supported"},
	} {
		text := ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .pred p;\n" + test.code + "\nret; }\n"
		l, err := ReadLaunchFile("l.toml", []byte("grid = 1\nblock = 1"))
		if err != nil {
			t.Fatal(err)
		}
		in := &Input{Images: []cuda.Image{{Name: "k.ptx", Text: test.head + text}}, Launch: l}
		r, err := Check(context.Background(), &Options{FailOn: detect.Error}, in)
		if err != nil {
			t.Fatal(err)
		}
		requireSkipped(t, r, "kernel k")
		if got := r.Skipped[0].Reason; got != test.want {
			t.Errorf("%q: %q, want %q", test.head+test.code, got, test.want)
		}
	}
}

func TestExpect(t *testing.T) {
	const launch = "kernel = \"store\"\ngrid = 1\nblock = 4\nargs = [{buffer = \"a\", type = \"i32\", shape = 4}, {i32 = -5}]\n[[expect]]\nbuffer = \"a\"\n"
	if r := mustCheck(t, &Options{}, launch+"value = -5"); r.Verdict != report.Clean {
		t.Errorf("verdict %s, notes %v", r.Verdict, r.Notes)
	}
	r := mustCheck(t, &Options{}, launch+"values = [-5, -5, 7]")
	if r.Verdict != report.ProgramFailed || r.Program == nil || r.Program.Exit != 1 {
		t.Errorf("verdict %s", r.Verdict)
	}
	if !slices.Contains(r.Notes, "l.toml:5:3: a[2] is -5, and 7 is expected.") {
		t.Errorf("notes %q", r.Notes)
	}
}

// TestLargestBuffers checks that there is room for buffers of the size that docs/launch.md allows, and that untouched
// ones cost nothing.
func TestLargestBuffers(t *testing.T) {
	begin := time.Now()
	r := mustCheck(t, &Options{}, fmt.Sprintf("kernel = \"store\"\ngrid = 1\nblock = 4\n"+
		"args = [{buffer = \"a\", type = \"u8\", shape = %d}, {i32 = -5}]", uint64(maxBuffer)))
	if r.Verdict != report.Clean {
		t.Errorf("verdict %s, not checked %v", r.Verdict, r.Skipped)
	}
	r = mustCheck(t, &Options{}, fmt.Sprintf("[[launch]]\nkernel = \"store\"\ngrid = 1\nblock = 4\nargs = [{buffer = \"a\", type = \"u8\", shape = %d}, {i32 = 1}]\n"+
		"[[launch]]\nkernel = \"store\"\ngrid = 1\nblock = 4\nargs = [{buffer = \"b\", type = \"u8\", shape = %d}, {i32 = 1}]", uint64(maxBuffer)-1000, 1000))
	if r.Verdict != report.Clean {
		t.Errorf("two buffers: verdict %s, not checked %v", r.Verdict, r.Skipped)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestWatch(t *testing.T) {
	const launch = "kernel = \"add\"\ngrid = 2\nblock = 1\nargs = [{buffer = \"a\", type = \"i32\", shape = 1}]"
	r := mustCheck(t, &Options{}, launch)
	if r.Verdict != report.Found {
		t.Fatalf("verdict %s", r.Verdict)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "The PTX looks optimised") }) {
		t.Errorf("notes %q", r.Notes)
	}
	if r := mustCheck(t, &Options{Watch: Watch{Kernel: regexp.MustCompile("^void ns::add")}}, launch); r.Verdict != report.Found {
		t.Errorf("verdict %s", r.Verdict)
	}
	r = mustCheck(t, &Options{Watch: Watch{Kernel: regexp.MustCompile("none")}}, launch)
	if r.Verdict != report.NotChecked || len(r.Findings) != 0 {
		t.Errorf("verdict %s, findings %v", r.Verdict, r.Findings)
	}
	r = mustCheck(t, &Options{Bare: true}, launch)
	if r.Verdict != report.Clean || len(r.Findings) != 0 {
		t.Errorf("verdict %s, findings %v", r.Verdict, r.Findings)
	}
}

func TestSeedsUnite(t *testing.T) {
	const launch = "kernel = \"add\"\ngrid = 2\nblock = 1\nargs = [{buffer = \"a\", type = \"i32\", shape = 1}]"
	one, three := mustCheck(t, &Options{Seeds: 1}, launch), mustCheck(t, &Options{Seeds: 3}, launch)
	ids := func(r *report.Report) (s []string) {
		for _, f := range r.Findings {
			s = append(s, f.ID)
		}
		return s
	}
	for _, id := range ids(one) {
		if !slices.Contains(ids(three), id) {
			t.Errorf("three seeds lose %s", id)
		}
	}
	if n := len(ids(three)); n != len(slices.Compact(slices.Sorted(slices.Values(ids(three))))) {
		t.Errorf("%d findings are not all different", n)
	}
}

// buggy is an engine that panics at its second launch.
type buggy struct {
	engine.Engine
	launches *int
}

func (b buggy) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	if *b.launches++; *b.launches == 2 {
		panic("BUG: for the test")
	}
	return b.Engine.Run(ctx, l)
}

func TestDefectIsNoVerdict(t *testing.T) {
	n := 0
	o := &Options{Engine: func() engine.Engine { return buggy{engine.NewRef(), &n} }}
	launch := "[[launch]]\nkernel = \"store\"\ngrid = 1\nblock = 4\nargs = [{buffer = \"a\"}, {i32 = -5}]\n"
	first := strings.Replace(launch, `"a"`, `"a", type = "i32", shape = 4`, 1)
	r := mustCheck(t, o, first+launch)
	if r.Verdict != report.NotChecked {
		t.Errorf("verdict %s", r.Verdict)
	}
	requireSkipped(t, r, "launch 2 of store: a defect of Fencepost: BUG: for the test")
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "buggy.Run") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestVerdict(t *testing.T) {
	warning, failure := report.Finding{Severity: detect.Warning}, report.Finding{Severity: detect.Error}
	skipped := []report.Skipped{{What: "x"}}
	failed := &report.Program{Exit: 3}
	for _, c := range []struct {
		r      report.Report
		failOn detect.Severity
		want   report.Verdict
	}{
		{report.Report{}, detect.Error, report.Clean},
		{report.Report{Program: &report.Program{}}, detect.Error, report.Clean},
		{report.Report{Findings: []report.Finding{warning}}, detect.Error, report.Clean},
		{report.Report{Findings: []report.Finding{warning}}, detect.Warning, report.Found},
		{report.Report{Findings: []report.Finding{failure}}, detect.Error, report.Found},
		{report.Report{Skipped: skipped}, detect.Error, report.NotChecked},
		{report.Report{Skipped: skipped, Findings: []report.Finding{failure}}, detect.Error, report.Found},
		{report.Report{Program: failed}, detect.Error, report.ProgramFailed},
		{report.Report{Program: failed, Findings: []report.Finding{failure}}, detect.Error, report.ProgramFailed},
		{report.Report{Program: failed, Skipped: skipped}, detect.Error, report.NotChecked},
		{report.Report{Program: failed, Skipped: skipped, Findings: []report.Finding{failure}}, detect.Error, report.ProgramFailed},
	} {
		if got := report.Judge(&c.r, c.failOn); got != c.want {
			t.Errorf("Judge(%+v, %s) = %s, want %s", c.r, c.failOn, got, c.want)
		}
	}
}

func TestLaunchTemplate(t *testing.T) {
	got, err := LaunchTemplate(&Input{Images: []cuda.Image{{Name: "k.ptx", Text: kernels}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLaunchFile("t.toml", []byte(got)); err != nil {
		t.Errorf("%v in\n%s", err, got)
	}
	r := mustCheck(t, &Options{}, got)
	if r.Verdict != report.Clean {
		t.Errorf("verdict %s", r.Verdict)
	}
	for _, broken := range []string{"\x94\x01", ".version 8.0\n.target sm_80\n.address_size 64\n", kernels[:len(kernels)/2]} {
		if got, err := LaunchTemplate(&Input{Images: []cuda.Image{{Name: "k.ptx", Text: broken}}}); err == nil {
			t.Errorf("a launch file for %q:\n%s", broken, got)
		}
	}
}

// TestHostileSource checks that the source file that PTX names is read only if it is a regular file of limited size.
func TestHostileSource(t *testing.T) {
	if report.ReadSource("/dev/zero") != nil || report.ReadSource(t.TempDir()) != nil {
		t.Error("a device or folder was read")
	}
	name := filepath.Join(t.TempDir(), "big.cu")
	if err := os.WriteFile(name, bytes.Repeat([]byte("x\n"), 9<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	if report.ReadSource(name) != nil {
		t.Error("a huge file was read")
	}
}
