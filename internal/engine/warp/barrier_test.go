package warp

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
)

// TestCountedBarrierOfDivergedWarp makes warps arrive in parts at a barrier with a thread count, at several places,
// while other parts have not arrived. A warp must count in full when all its live lanes have arrived, and not before.
func TestCountedBarrierOfDivergedWarp(t *testing.T) {
	for _, c := range []struct{ name, late string }{
		{"all", ""},
		{"some exit", "setp.ge.u32 %p2, %ln, 28;\n\t@%p2 ret;"},
		{"exit last", "setp.ge.u32 %p2, %ln, 4;\n\t@%p2 ret;"},
	} {
		body := fmt.Sprintf(`
	mov.u32 %%r5, 0;
again:
	setp.lt.u32 %%p1, %%ln, 8;
	@%%p1 bra late;
	barrier.sync 1, 64;
	bra after;
late:
	mov.u32 %%r2, 0;
count:
	add.u32 %%r2, %%r2, 1;
	setp.lt.u32 %%p2, %%r2, 500;
	@%%p2 bra count;
	st.global.u32 [%%mine], %%r5;
	%s
	barrier.sync 1, 64;
after:
	xor.b32 %%r6, %%tx, 32;
	and.b32 %%r6, %%r6, 0x20;
	mul.wide.u32 %%rd1, %%r6, 4;
	add.u64 %%rd1, %%out, %%rd1;
	ld.global.u32 %%r7, [%%rd1];
	setp.ne.u32 %%p3, %%r7, %%r5;
	@%%p3 trap;
	barrier.sync 1, 64;
	add.u32 %%r5, %%r5, 1;
	setp.lt.u32 %%p1, %%r5, 5;
	@%%p1 bra again;`, c.late)
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(body))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g.t = t
				o := g.mustRun(launch{block: 64, out: g.buffer(64), set: set})
				done := 0
				for _, l := range o.rec.lines {
					if strings.HasPrefix(l, "barrier-done") {
						done++
					}
				}
				if done != 10 {
					t.Errorf("the barrier was complete %d times", done)
				}
			})
		})
	}
}

// TestBarrierCounts gives a barrier different thread counts in the lanes of a warp. The first lane to arrive determines
// the count.
func TestBarrierCounts(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %ln, 4;
	selp.u32 %r1, 64, 96, %p1;
	barrier.sync 1, %r1;`))
	o := g.run(launch{block: 64, out: g.buffer(1)})
	f := o.wantFault(t, engine.BarrierDivergence, "threads arrive at barrier 1 expecting 96 threads, others that wait there expect 64 threads")
	if o.err != nil || f.Count != 2 || f.Stands[0].Thread.X != 4 {
		t.Errorf("ended with %v, %+v", o.err, f)
	}
}

// TestFallingOffTheEnd checks that threads return at the end of the code.
func TestFallingOffTheEnd(t *testing.T) {
	for _, body := range []string{"st.global.u32 [%mine], 5;", "setp.lt.u32 %p1, %ln, 5;\n\tst.global.u32 [%mine], 5;\n\t@%p1 bra end;\n\tst.global.u32 [%mine], 5;\nend:"} {
		src := strings.Replace(kernel(body), "\n\tret;\n}", "\n}", 1)
		if strings.Contains(src, "ret;") {
			t.Fatal(src)
		}
		g := newRig(t, src)
		out := g.buffer(40)
		o := g.mustRun(launch{block: 40, out: out})
		for i, v := range g.words(out, 40) {
			if v != 5 {
				t.Errorf("thread %d stored %d", i, v)
			}
		}
		if o.stats.Blocks != 1 {
			t.Errorf("%d blocks ended", o.stats.Blocks)
		}
	}
}

// TestClockGivesWay checks that a warp that reads a clock repeatedly gives way like one that polls, because it may be
// waiting.
func TestClockGivesWay(t *testing.T) {
	g := newRig(t, kernel(`
	setp.ge.u32 %p1, %tx, 32;
	@%p1 bra store;
	mov.u32 %r2, 0;
wait:
	mov.u32 %r1, %clock;
	add.u32 %r3, %r3, %r1;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, 12;
	@%p1 bra wait;
store:
	st.global.u32 [%mine], %r3;`))
	o := g.mustRun(launch{block: 64, out: g.buffer(64)})
	for _, l := range o.rec.lines {
		if strings.HasPrefix(l, "store") {
			if !strings.HasPrefix(l, "store w1") {
				t.Errorf("the first store is %q", l)
			}
			return
		}
	}
	t.Error("no store")
}
