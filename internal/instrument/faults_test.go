package instrument_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
)

// checked runs a kernel k(.param .u64 p) that checks itself. p is the address of words words. In its body, %rd1 is p,
// %r1 the number of the thread in its block, and %r2 the number of the block.
func checked(t *testing.T, body string, grid, block, words int, options map[string]string) *report.Report {
	t.Helper()
	return judged(t, instrument.HiRace, body, grid, block, words, options, session.Watch{})
}

// judged does the same in a given mode. In mode log, detector hirace judges the events.
func judged(t *testing.T, mode instrument.Mode, body string, grid, block, words int, options map[string]string, w session.Watch) *report.Report {
	t.Helper()
	text := ".version 7.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b64 q) malloc(.param .b64 r);\n.weak .func fencepost_check_thread(.param .b32 q) { ret; }\n" +
		".weak .func fencepost_check_memory(.param .b64 q, .param .b64 r, .param .b32 s) { ret; }\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n" +
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n" + body + "\nret;\n}\n"
	launch, err := session.ReadLaunchFile("launch.toml", fmt.Appendf(nil, "grid = %d\nblock = %d\nargs = [{ buffer = \"x\", type = \"i32\", shape = [%d], fill = 0 }]\n", grid, block, words))
	if err != nil {
		t.Fatal(err)
	}
	spec := hirace.Spec
	spec.New = func(c detect.Config) detect.Detector {
		c.Options = options
		return hirace.Spec.New(c)
	}
	r, err := session.Check(context.Background(), &session.Options{Seeds: 1, Jobs: 1, Logged: true, Mode: mode, Detectors: []detect.Spec{spec}, Watch: w,
		Timeout: 2 * time.Minute}, &session.Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: launch})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// own makes each thread of pairs of blocks write a word of its own: x[block/2*1000 + thread].
const own = `shr.u32 %r3, %r2, 1; mad.lo.u32 %r3, %r3, 1000, %r1; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd2, %rd1, %rd2;
st.global.u32 [%rd2], %r2;`

// races returns the races of a report, with their counts.
func races(r *report.Report) (found []string) {
	for _, f := range r.Findings {
		found = append(found, fmt.Sprintf("%s %d %d", f.Kind, f.Count, f.Addresses))
	}
	return found
}

func noted(r *report.Report, what string) bool {
	return strings.Contains(strings.Join(r.Notes, "\n"), what)
}

// skipped reports whether a report lists something as not checked, which has its own exit code.
func skipped(r *report.Report, what string) bool {
	return slices.ContainsFunc(r.Skipped, func(s report.Skipped) bool { return strings.Contains(s.Reason, what) })
}

// TestManyRaces checks that each of 100,000 races is counted, although the device stores only one of them completely.
func TestManyRaces(t *testing.T) {
	r := checked(t, own, 200, 1000, 100000, nil)
	if got := strings.Join(races(r), "; "); got != "unordered 100000 400000" || len(r.Notes) > 0 {
		t.Errorf("found %s, notes %q", got, r.Notes)
	}
}

// TestTrapped checks that findings made before a kernel trapped are reported.
func TestTrapped(t *testing.T) {
	r := checked(t, own+"\nsetp.eq.u32 %p1, %r2, 3; @%p1 trap;", 4, 1000, 2000, nil)
	if got := strings.Join(races(r), "; "); !strings.Contains(got, "unordered") || !strings.Contains(got, "trap") {
		t.Errorf("found %s", got)
	}
}

// TestClockOverflows checks that a clock that overflows ends checking with a note, and that earlier findings are
// reported.
func TestClockOverflows(t *testing.T) {
	loop := `mov.u32 %r4, 0;
L: bar.sync 0; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 20; @%p1 bra L;
` + strings.ReplaceAll(own, "st.global.u32", "red.global.add.u32")
	if r := checked(t, own+loop, 2, 1000, 1000, map[string]string{"clockbits": "4"}); !noted(r, "a clock overflowed") || len(r.Findings) != 1 {
		t.Errorf("found %q, notes %q", races(r), r.Notes)
	}
	if r := checked(t, own+loop, 2, 1000, 1000, nil); len(r.Notes) > 0 || len(r.Findings) == 0 {
		t.Errorf("found %q, notes %q", races(r), r.Notes)
	}
}

// withBounds limits the memory of the emulated device until the test ends.
func withBounds(t *testing.T, b instrument.Bounds) {
	before := instrument.DefaultBounds
	instrument.DefaultBounds = b
	t.Cleanup(func() { instrument.DefaultBounds = before })
}

// TestBounds checks that the report tells what was not checked for lack of room, and that the rest was checked.
func TestBounds(t *testing.T) {
	half := own + strings.Replace(own, "st.global.u32 [%rd2], %r2", "st.global.u16 [%rd2], %rs1", 1)
	half = ".reg .b16 %rs1; mov.u16 %rs1, 1;" + half
	for _, c := range []struct {
		what  string
		body  string
		bound func(*instrument.Bounds)
		note  string
	}{
		{"memory", own, func(b *instrument.Bounds) { b.Global = 300 }, "2000 accesses were to memory for whose shadow there was no room"},
		{"split words", half, func(b *instrument.Bounds) { b.Split = 10 }, "for whose shadow there was no room"},
		{"pairs", own + "st.global.u32 [%rd2+4000], %r2;",
			func(b *instrument.Bounds) { b.Pairs = 1 }, "races were of more than 1 pairs of places"},
	} {
		b := instrument.DefaultBounds
		c.bound(&b)
		t.Run(c.what, func(t *testing.T) {
			withBounds(t, b)
			if r := checked(t, c.body, 2, 1000, 2000, nil); noted(r, c.note) != (c.what == "pairs") || skipped(r, c.note) == (c.what == "pairs") {
				t.Errorf("found %q, notes %q, skipped %v", races(r), r.Notes, r.Skipped)
			}
		})
	}
}

// TestOptions checks that the options of detector hirace limit what a program checks itself, and that notes tell this.
func TestOptions(t *testing.T) {
	r := checked(t, own, 8, 1000, 4000, map[string]string{"groups": "4"})
	if got := strings.Join(races(r), "; "); got != "unordered 2000 8000" || !noted(r, "of 8 blocks the first 4 were checked") {
		t.Errorf("4 groups: found %s, notes %q", got, r.Notes)
	}
	b := instrument.DefaultBounds
	b.Pairs = 1
	withBounds(t, b)
	two := own + "\nst.global.u32 [%rd2+4000], %r2;"
	if r = checked(t, two, 2, 1000, 2000, nil); len(r.Findings) != 1 || !noted(r, "hirace:pairs=64K has room for more") {
		t.Errorf("1 pair: found %q, notes %q", races(r), r.Notes)
	}
	if r = checked(t, two, 2, 1000, 2000, map[string]string{"pairs": "64K"}); len(r.Findings) != 2 || len(r.Notes) > 0 {
		t.Errorf("65536 pairs: found %q, notes %q", races(r), r.Notes)
	}
	// Variables of the program have words too, and those of the device code are among them.
	r = checked(t, own, 8, 1000, 4000, map[string]string{"words": "1K"})
	if len(r.Findings) != 1 || r.Findings[0].Count < 1000 || r.Findings[0].Count > 1024 || !noted(r, "accesses were to memory for whose shadow there was no room") {
		t.Errorf("1024 words: found %q, notes %q", races(r), r.Notes)
	}
}

// TestSwitches checks in both modes that threads and memory that the kernel has switched off are not checked, and that
// those it has switched on again are.
func TestSwitches(t *testing.T) {
	thread := func(on int) string {
		return fmt.Sprintf("{ .param .b32 a; st.param.b32 [a], %d; call fencepost_check_thread, (a); }\n", on)
	}
	memory := func(bytes, on int) string {
		return fmt.Sprintf("{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %%rd1; st.param.b64 [b], %d; st.param.b32 [c], %d; call fencepost_check_memory, (a, b, c); }\n", bytes, on)
	}
	shared := func(bytes, on int) string {
		return strings.Replace(memory(bytes, on), "st.param.b64 [a], %rd1", "cvta.shared.u64 %rd3, s; st.param.b64 [a], %rd3", 1)
	}
	// Threads 2n and 2n+1 of one block write the same word or byte. The barrier of the block orders the switches.
	pairs := "bar.sync 0; shr.u32 %r3, %r1, 1; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r1;\n"
	pairs8 := strings.NewReplacer(", 4;", ", 1;", "global.u32", "global.u8").Replace(pairs)
	odd := "and.b32 %r4, %r1, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra S;\n" + thread(0) + "S:\n"
	for _, c := range []struct {
		grid       int
		body, want string
	}{
		{2, own, "unordered 1000 4000"},
		{2, thread(0) + own, ""},
		{2, odd + own, "unordered 500 2000"},
		{2, thread(0) + thread(1) + own, "unordered 1000 4000"},
		{2, memory(400, 0) + own, "unordered 900 3600"},
		{2, memory(4000, 0) + "membar.gl;\n" + own, ""},
		{1, memory(4000, 0) + memory(400, 1) + pairs, "unordered 100 400"},
		{1, memory(401, 0) + pairs8, "unordered 99 99"},
		{1, memory(403, 0) + memory(2, 1) + pairs8, "unordered 99 99"},
		{2, ".shared .align 4 .b8 s[4000];\n" + shared(3600, 0) + "bar.sync 0;\nst.shared.u32 [s+3596], %r1; st.shared.u32 [s+3600], %r1;", "unordered 2 8"},
	} {
		for _, mode := range []instrument.Mode{instrument.Log, instrument.HiRace} {
			r := judged(t, mode, c.body, c.grid, 1000, 1000, nil, session.Watch{})
			if got := strings.Join(races(r), "; "); got != c.want || len(r.Notes) > 0 {
				t.Errorf("mode %d: %s\nfound %q, notes %q; want %q", mode, c.body, got, r.Notes, c.want)
			}
		}
	}
}

// TestAddresses checks in both modes that only races on selected addresses are reported: those of 400 bytes, and a few
// words after them.
func TestAddresses(t *testing.T) {
	for _, mode := range []instrument.Mode{instrument.Log, instrument.HiRace} {
		all := judged(t, mode, own, 2, 1000, 1000, nil, session.Watch{})
		x := all.Findings[0].Accesses[0]
		base := x.Address - x.Object.Offset
		w := session.Watch{Addresses: []detect.Range{{First: base + 400, Last: base + 799}, {First: base + 1004, Last: base + 1011}, {First: 1, Last: 2}}}
		r := judged(t, mode, own, 2, 1000, 1000, nil, w)
		if got := strings.Join(races(r), "; "); got != "unordered 102 408" || len(r.Notes) != 1 || !noted(r, "Only races that --addresses 0x") {
			t.Errorf("mode %d: found %q, notes %q", mode, got, r.Notes)
		}
	}
}

// TestMalloc checks that the report tells that memory allocated by a kernel is not checked.
func TestMalloc(t *testing.T) {
	body := "{ .param .b64 a; .param .b64 b; st.param.b64 [a], 64; call (b), malloc, (a); ld.param.b64 %rd3, [b]; }\nst.global.u32 [%rd3], %r1;\n"
	if r := checked(t, body+own, 2, 32, 1000, nil); !skipped(r, "by malloc, was not checked") || len(r.Findings) != 1 {
		t.Errorf("found %q, skipped %v", races(r), r.Skipped)
	}
}

// TestBrief checks that the same races are found with 8 bytes for a word, without the places of the earlier accesses.
func TestBrief(t *testing.T) {
	b := instrument.DefaultBounds
	b.Brief = true
	withBounds(t, b)
	r := checked(t, own, 4, 1000, 2000, nil)
	if len(r.Findings) != 1 || r.Findings[0].Count != 2000 {
		t.Errorf("found %q", races(r))
	}
}

// TestManyThreads launches 2^24 threads.
func TestManyThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("16 million threads")
	}
	first := "setp.ne.u32 %p1, %r1, 0; @%p1 ret;\nst.global.u32 [%rd1], %r2;"
	if r := checked(t, first, 1<<14, 1024, 1, nil); len(r.Findings) != 1 || len(r.Notes) > 0 {
		t.Errorf("found %q, notes %q", races(r), r.Notes)
	}
}

// TestOutside checks in both modes that invalid accesses are found, wherever the device code has its memory.
func TestOutside(t *testing.T) {
	for _, mode := range []instrument.Mode{instrument.Log, instrument.HiRace} {
		for _, at := range []int{1 << 16, 1 << 20, 1 << 24, 1 << 28} {
			r := judged(t, mode, fmt.Sprintf("st.global.u32 [%%rd1+%d], %%r1;\n", at), 1, 1, 1000, nil, session.Watch{})
			if len(r.Findings) != 1 || r.Findings[0].Kind != "out-of-bounds" {
				t.Errorf("mode %d, %d bytes behind: %q", mode, at, races(r))
			}
		}
	}
}
