package warp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// asked are the operations in the tests of barriers: op(NAME), by lane 0 unless stated otherwise.
var asked = strings.NewReplacer(
	"INIT ", "@%p1 mbarrier.init.shared.b64 [%r1], ",
	"INVAL", "@%p1 mbarrier.inval.shared.b64 [%r1];",
	"ARRIVE", "@%p1 mbarrier.arrive.shared.b64 %rd4, [%r1];",
	"PARITY ", "mbarrier.test_wait.parity.shared.b64 %p3, [%r1], ",
	"STATE ", "@%p1 mbarrier.test_wait.shared::cta.b64 %p3, [%r1], ",
	"PUT", "selp.u32 %r4, 1, 0, %p3; @%p1 st.global.u32 [%rd3], %r4; add.u64 %rd3, %rd3, 4;",
	"COUNT ", "mbarrier.pending_count.b64 %r4, ",
	"KEEP", "@%p1 st.global.u32 [%rd3], %r4; add.u64 %rd3, %rd3, 4;",
)

const mbarrierBody = `
	.shared .align 8 .b8 bar[16];
	mov.u32 %r1, bar;
	cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd2, %rd1;
	setp.eq.u32 %p1, %tx, 0;
	mov.u64 %rd3, %out;
`

// TestMbarrier compares the results of operations on a barrier with the manual, "mbarrier".
func TestMbarrier(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []uint32
	}{
		{"the first phase is current", "INIT 1; PARITY 0; PUT PARITY 1; PUT", []uint32{0, 1}},
		{"the last arrival completes the phase", "INIT 2; ARRIVE PARITY 0; PUT ARRIVE PARITY 0; PUT PARITY 1; PUT", []uint32{0, 1, 0}},
		{"phases follow each other", "INIT 1; ARRIVE ARRIVE PARITY 0; PUT PARITY 1; PUT ARRIVE PARITY 0; PUT PARITY 1; PUT", []uint32{0, 1, 1, 0}},
		{"counts", "INIT 9; @%p1 mbarrier.arrive.shared.b64 %rd4, [%r1], 4; COUNT %rd4; KEEP ARRIVE COUNT %rd4; KEEP ARRIVE COUNT %rd4; KEEP", []uint32{9, 5, 4}},
		{"every lane arrives", "INIT 32; bar.warp.sync -1; mbarrier.arrive.shared.b64 %rd4, [%r1]; COUNT %rd4; st.global.u32 [%mine], %r4; PARITY 0; add.u64 %rd3, %rd3, 128; PUT",
			[]uint32{32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1}},
		{"the block meets after two phases", "INIT 16; bar.warp.sync -1; mbarrier.arrive.shared.b64 _, [%r1]; bar.sync 0; PARITY 1; PUT", []uint32{1}},
		{"states", "INIT 1; ARRIVE STATE %rd4; PUT ARRIVE STATE %rd4; PUT", []uint32{1, 1}},
		{"the state of the current phase", "INIT 2; ARRIVE STATE %rd4; PUT ARRIVE STATE %rd4; PUT", []uint32{0, 1}},
		{"no completion", "INIT 2; @%p1 mbarrier.arrive.noComplete.shared.b64 %rd4, [%r1], 1; PARITY 0; PUT ARRIVE PARITY 0; PUT", []uint32{0, 1}},
		{"an arrival that is dropped", "INIT 2; @%p1 mbarrier.arrive_drop.shared.b64 %rd4, [%r1]; ARRIVE PARITY 0; PUT ARRIVE PARITY 1; PUT COUNT %rd4; KEEP", []uint32{1, 1, 1}},
		{"several dropped", "INIT 8; @%p1 mbarrier.arrive_drop.shared::cta.b64 %rd4, [%r1], 7; ARRIVE ARRIVE COUNT %rd4; KEEP PARITY 1; PUT", []uint32{1, 1}},
		{"dropped with bytes", "INIT 2; @%p1 mbarrier.arrive_drop.expect_tx.shared.b64 %rd4, [%r1], 8; ARRIVE PARITY 0; PUT @%p1 mbarrier.complete_tx.shared.b64 [%r1], 8; PARITY 0; PUT", []uint32{0, 1}},
		{"bytes", "INIT 1; @%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1], 24; ARRIVE PARITY 0; PUT @%p1 mbarrier.complete_tx.relaxed.cta.shared.b64 [%r1], 16; PARITY 0; PUT " +
			"@%p1 mbarrier.complete_tx.shared.b64 [%r1], 8; PARITY 0; PUT", []uint32{0, 0, 1}},
		{"bytes before they are expected", "INIT 1; @%p1 mbarrier.complete_tx.shared.b64 [%r1], 16; ARRIVE PARITY 0; PUT @%p1 mbarrier.expect_tx.shared.b64 [%r1], 16; PARITY 0; PUT", []uint32{0, 1}},
		{"arrival and bytes", "INIT 1; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 4; PARITY 0; PUT @%p1 mbarrier.complete_tx.shared::cluster.b64 [%r1], 4; PARITY 0; PUT", []uint32{0, 1}},
		{"without a result", "INIT 2; @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1], 1; @%p1 mbarrier.arrive.relaxed.cluster.b64 _, [%rd2]; PARITY 0; PUT", []uint32{1}},
		{"try", "INIT 1; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r1], 0; PUT ARRIVE @%p1 mbarrier.try_wait.shared.b64 %p3, [%r1], %rd4, 1000; PUT " +
			"mbarrier.try_wait.parity.relaxed.cluster.b64 %p3, [%rd2], 0, 10; PUT", []uint32{0, 1, 1}},
		{"an invalidated barrier is memory", "INIT 1; ARRIVE INVAL @%p1 st.shared.u64 [%r1], 5; @%p1 ld.shared.u32 %r4, [%r1]; KEEP INIT 1; PARITY 0; PUT", []uint32{5, 0}},
		{"the largest counts", "INIT 1048575; @%p1 mbarrier.arrive.shared.b64 _, [%r1], 1048575; PARITY 0; PUT @%p1 mbarrier.expect_tx.shared.b64 [%r1], 1048575; PARITY 1; PUT", []uint32{1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(mbarrierBody+asked.Replace(c.body)))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g.t = t
				out := g.buffer(64)
				g.mustRun(launch{out: out, set: func(l *engine.Launch) {
					set(l)
					l.Needs |= event.NeedValues | event.NeedOld
				}})
				for i, v := range g.words(out, len(c.want)) {
					if v != c.want[i] {
						t.Errorf("result %d is %d, want %d", i, v, c.want[i])
					}
				}
			})
		})
	}
}

// TestMbarrierMisuse checks that operations that the manual leaves undefined are faults.
func TestMbarrierMisuse(t *testing.T) {
	for _, c := range []struct{ name, body, text string }{
		{"initialised twice", "INIT 1; INIT 1;", "initialised again without mbarrier.inval"},
		{"overwritten", "INIT 1; @%p1 st.shared.u64 [%r1], 0; ARRIVE", "whose bytes have been written since its initialisation"},
		{"no arrivals", "INIT 0;", "is given a count of 0: it must be between 1 and 1048575"},
		{"too many arrivals expected", "INIT 1048576;", "is given a count of 1048576"},
		{"more arrivals than expected", "INIT 2; @%p1 mbarrier.arrive.shared.b64 _, [%r1], 3;", "1 more arrivals than the phase of the mbarrier expects"},
		{"none arrive", "INIT 2; @%p1 mbarrier.arrive.shared.b64 _, [%r1], 0;", "0 arrivals at once at an mbarrier"},
		{"completes", "INIT 1; @%p1 mbarrier.arrive.noComplete.shared.b64 _, [%r1], 1;", "an arrival with .noComplete completes the phase of the mbarrier"},
		{"drop completes", "INIT 2; ARRIVE @%p1 mbarrier.arrive_drop.noComplete.shared.b64 _, [%r1], 1;", "an arrival with .noComplete completes"},
		{"an old state", "INIT 1; ARRIVE mov.u64 %rd5, %rd4; ARRIVE STATE %rd5;", "is neither of the current phase of the mbarrier nor of the one before"},
		{"a phase that nobody waits for", "INIT 16; bar.warp.sync -1; mbarrier.arrive.shared.b64 _, [%r1]; PARITY 1;", "the wait for phase 1 of the mbarrier, by its parity, may pass before phase 0 has ended"},
		{"no state", "INIT 1; STATE 0;", "is neither of the current phase"},
		{"too many bytes", "INIT 1; @%p1 mbarrier.expect_tx.shared.b64 [%r1], 1048575; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 1;", "waits for 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(mbarrierBody+asked.Replace(c.body)))
			o := g.run(launch{out: g.buffer(64)})
			if f := o.wantFault(t, engine.MbarrierMisuse, c.text); o.err != nil || len(f.Stands) != 1 || f.Stands[0].Thread.X != 0 {
				t.Errorf("ended with %v, %+v", o.err, f)
			}
		})
	}
	for _, c := range []struct {
		body, text string
		kind       engine.FaultKind
	}{{"@%p1 mbarrier.arrive.shared.b64 _, [%r1+4];", "updates 8 bytes at offset 0x4 of shared memory (bar + 4)", engine.Misaligned},
		{"@%p1 mbarrier.arrive.shared.b64 _, [%r1+16];", "updates 8 bytes at offset 0x10 of shared memory, of which the block has 16 bytes", engine.OutOfBounds},
		{"@%p1 mbarrier.arrive.b64 _, [%out];", "lane 0 gives address 0x200000000000 to mbarrier.arrive.b64, which is not one of shared memory", engine.OutOfBounds}} {
		g := newRig(t, kernel(mbarrierBody+c.body))
		g.run(launch{out: g.buffer(64)}).wantFault(t, c.kind, c.text)
	}
}

// TestMbarrierLife checks that a use before the initialisation, or after the invalidation, is reported together with
// that operation.
func TestMbarrierLife(t *testing.T) {
	for _, c := range []struct {
		body, text string
		kind       engine.FaultKind
		doing      []string
	}{
		{"ARRIVE", "mbarrier.arrive.shared.b64 of an object that was not initialised", engine.MbarrierEarly, []string{"executes mbarrier.arrive.shared.b64"}},
		{"PARITY 0;", "mbarrier.test_wait.parity.shared.b64 of an object that was not initialised", engine.MbarrierEarly, []string{"executes mbarrier.test_wait.parity.shared.b64"}},
		{"ARRIVE INIT 1; ARRIVE", "was not initialised", engine.MbarrierEarly, []string{"executes mbarrier.arrive.shared.b64", "initialises it"}},
		{"INIT 1; INVAL ARRIVE", "has been invalidated", engine.MbarrierEnded, []string{"invalidates it", "executes mbarrier.arrive.shared.b64"}},
		{"INIT 1; INVAL INVAL", "mbarrier.inval.shared.b64 of an object that has been invalidated", engine.MbarrierEnded, []string{"invalidates it", "executes mbarrier.inval.shared.b64"}},
		{"INIT 1; INVAL INIT 1; ARRIVE INVAL ARRIVE", "has been invalidated", engine.MbarrierEnded, []string{"invalidates it", "executes mbarrier.arrive.shared.b64"}},
	} {
		g := newRig(t, kernel(mbarrierBody+asked.Replace(c.body)))
		f := g.run(launch{out: g.buffer(64)}).wantFault(t, c.kind, c.text)
		var doing []string
		for _, s := range f.Stands {
			doing = append(doing, s.Doing)
		}
		if !slices.Equal(doing, c.doing) {
			t.Errorf("%s: %q, want %q", c.body, doing, c.doing)
		}
	}
}

// TestMbarrierDeadlock checks that the report of a wait for a phase that never completes tells what is missing.
func TestMbarrierDeadlock(t *testing.T) {
	const wait = "again: PARITY 0; @!%p3 bra again;"
	const told = "@%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 96;"
	for _, c := range []struct{ body, want string }{
		{"INIT 3; bar.warp.sync -1; ARRIVE @%p1 mbarrier.expect_tx.shared.b64 [%r1], 64;", "lacks 2 of 3 arrivals and 64 bytes of transactions"},
		{"INIT 3; bar.warp.sync -1; ARRIVE @%p1 mbarrier.expect_tx.shared.b64 [%r1], 64;" + told, "lacks 2 of 3 arrivals and has 32 bytes of transactions that it did not expect"},
		{"INIT 1; bar.warp.sync -1; @%p1 mbarrier.expect_tx.shared.b64 [%r1], 64; ARRIVE", "has all arrivals and lacks 64 bytes of transactions that it expects"},
		{"INIT 1; bar.warp.sync -1; @%p1 mbarrier.expect_tx.shared.b64 [%r1], 64;" + told + "ARRIVE", "has all arrivals, and 32 bytes of transactions too many: it did not expect them"},
		{"INIT 3; bar.warp.sync -1; ARRIVE", "lacks 2 of 3 arrivals"},
		{"INIT 1; bar.warp.sync -1; ARRIVE ARRIVE", "lacks 1 of 1 arrivals; the 2 earlier phases ended, and no thread has observed that: there are more arrivals than the count of 1 that it was initialised with"},
	} {
		g := newRig(t, kernel(mbarrierBody+asked.Replace(c.body+wait)))
		phase := 0
		if strings.Contains(c.want, "2 earlier phases") {
			phase = 2
		}
		everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
			g.t = t
			g.run(launch{out: g.buffer(64), set: func(l *engine.Launch) {
				set(l)
				l.Needs, l.SpinFirst = 0, early
			}}).wantFault(t, engine.Deadlock, fmt.Sprintf("; phase %d (parity 0) of the mbarrier bar %s", phase, c.want))
		})
	}
}
