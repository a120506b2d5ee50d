package warp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// everySchedule runs f under every schedule that guarantees progress to every thread.
func everySchedule(t *testing.T, f func(t *testing.T, set func(l *engine.Launch))) {
	for _, s := range []struct {
		schedule engine.Schedule
		seed     uint64
	}{{engine.Fair, 0}, {engine.Fair, 1}, {engine.Fair, 2}, {engine.PCT, 1}, {engine.PCT, 2}} {
		if s.seed == 2 && testing.Short() {
			continue
		}
		t.Run(fmt.Sprintf("%d.%d", s.schedule, s.seed), func(t *testing.T) {
			f(t, func(l *engine.Launch) { l.Schedule, l.Seed = s.schedule, s.seed })
		})
	}
}

func TestStoreEvents(t *testing.T) {
	g := newRig(t, kernel(`st.global.u32 [%mine], %tx;`))
	out := g.buffer(40)
	o := g.mustRun(launch{block: 40, out: out})
	for i, v := range g.words(out, 40) {
		if v != uint32(i) {
			t.Errorf("word %d is %d", i, v)
		}
	}
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		store w0 ffffffff global w4 out+0 +4
		exit w0 ffffffff
		store w1 000000ff global w4 out+128 +4
		exit w1 000000ff
		kernel-end w0 00000000`)
	if o.stats.Threads != 40 || o.stats.Blocks != 1 || o.stats.Fault != "" {
		t.Errorf("stats %+v", o.stats)
	}
}

// TestReconverge checks the exact masks of a nested divergence.
func TestReconverge(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %ln, 4;
	@%p1 bra then;
	st.global.u32 [%mine], 1;
	bra join;
then:
	setp.eq.u32 %p2, %ln, 2;
	@%p2 st.global.u32 [%mine], 2;
	@%p2 bra inner;
	st.global.u32 [%mine], 3;
inner:
	st.global.u32 [%mine], 4;
join:
	st.global.u32 [%mine], 5;`))
	out := g.buffer(8)
	o := g.mustRun(launch{block: 8, out: out})
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		store w0 000000f0 global w4 out+16 +4
		store w0 00000004 global w4 out+8 +0
		store w0 0000000b global w4 out+0 +4
		store w0 0000000f global w4 out+0 +4
		store w0 000000ff global w4 out+0 +4
		exit w0 000000ff
		kernel-end w0 00000000`)
}

func TestLockstepEvents(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %ln, 2;
	@%p1 bra then;
	st.global.u32 [%mine], 1;
	bra join;
then:
	st.global.u32 [%mine], 2;
join:
	st.global.u32 [%mine], 3;
	setp.eq.u32 %p1, %ln, 1;
	@%p1 bra end;
	st.global.u32 [%mine], 4;
end:`))
	out := g.buffer(4)
	o := g.mustRun(launch{block: 4, out: out, set: func(l *engine.Launch) {
		l.Schedule = engine.Lockstep
		l.Needs |= event.NeedBranches
	}})
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		branch w0 0000000c else 00000003
		store w0 0000000c global w4 out+8 +4
		else w0 00000003
		store w0 00000003 global w4 out+0 +4
		reconverge w0 0000000f
		store w0 0000000f global w4 out+0 +4
		branch w0 0000000d else 00000002
		store w0 0000000d global w4 out+0 +4
		else w0 00000002
		reconverge w0 0000000f
		exit w0 0000000f
		kernel-end w0 00000000`)
}

// spinLock acquires a lock in every thread. out[0] is the lock, and out[1] a counter that it guards.
const spinLock = `
again:
	atom.global.cas.b32 %r1, [%out], 0, 1;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra again;
	membar.gl;
	ld.global.u32 %r2, [%out+4];
	add.u32 %r2, %r2, 1;
	st.global.u32 [%out+4], %r2;
	membar.gl;
	atom.global.exch.b32 %r1, [%out], 0;`

func TestSpinLock(t *testing.T) {
	g := newRig(t, kernel(spinLock))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		out := g.buffer(2)
		g.t = t
		g.mustRun(launch{grid: 3, block: 64, out: out, set: set})
		if w := g.words(out, 2); w[1] != 192 {
			t.Errorf("the counter is %d, want 192", w[1])
		}
	})
}

// TestProducerConsumer makes lane 0 wait for lane 31 in a loop that comes first.
func TestProducerConsumer(t *testing.T) {
	g := newRig(t, kernel(`
	setp.eq.u32 %p1, %ln, 31;
	@%p1 bra produce;
wait:
	ld.volatile.global.u32 %r1, [%out];
	setp.eq.u32 %p2, %r1, 0;
	@%p2 bra wait;
	bra done;
produce:
	st.volatile.global.u32 [%out], 1;
done:
	st.global.u32 [%mine+4], %r1;`))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		g.t = t
		g.mustRun(launch{out: g.buffer(40), set: set})
	})
}

func TestLockstepSpinStops(t *testing.T) {
	g := newRig(t, kernel(spinLock))
	o := g.run(launch{out: g.buffer(2), set: func(l *engine.Launch) {
		l.Schedule = engine.Lockstep
		l.MaxSteps = 5000
	}})
	if !errors.Is(o.err, engine.ErrStopped) {
		t.Errorf("a spin lock within a warp in lockstep ends with %v", o.err)
	}
	o.wantFault(t, engine.StepLimit, "5000")
	if o.stats.Warps != 5000 {
		t.Errorf("%d steps were made", o.stats.Warps)
	}
}

// gridBarrier counts blocks in out[0] and waits until all n have arrived. out[1+block] is written before, and that of
// the next block is read after.
const gridBarrier = `
	add.u32 %r1, %bx, 1;
	mul.wide.u32 %rd1, %r1, 4;
	add.u64 %rd1, %out, %rd1;
	setp.ne.u32 %p1, %tx, 0;
	@%p1 bra meet;
	st.global.u32 [%rd1], %r1;
	membar.gl;
	atom.global.add.u32 %r2, [%out], 1;
poll:
	ld.volatile.global.u32 %r3, [%out];
	setp.lt.u32 %p2, %r3, %n;
	@%p2 bra poll;
	membar.gl;
meet:
	bar.sync 0;`

func TestGridBarrier(t *testing.T) {
	g := newRig(t, kernel(gridBarrier))
	for _, seed := range []uint64{0, 7} {
		const blocks = 2000
		out := g.buffer(1 + blocks)
		start := time.Now()
		o := g.mustRun(launch{grid: blocks, block: 64, out: out, n: blocks, set: func(l *engine.Launch) {
			l.Seed = seed
			l.Needs = 0
			l.MaxSteps = 0
		}})
		t.Logf("seed %d: %v, %d lane instructions", seed, time.Since(start), o.stats.Lanes)
		if o.stats.Blocks != blocks {
			t.Errorf("%d blocks finished", o.stats.Blocks)
		}
	}
}

// TestTicketLock takes tickets from out[0]. out[1] is the ticket that is served, and out[2] the guarded counter.
func TestTicketLock(t *testing.T) {
	g := newRig(t, kernel(`
	setp.ne.u32 %p1, %tx, 0;
	@%p1 bra end;
	atom.global.add.u32 %r1, [%out], 1;
poll:
	ld.acquire.gpu.global.u32 %r2, [%out+4];
	setp.ne.u32 %p2, %r1, %r2;
	@%p2 bra poll;
	ld.global.u32 %r3, [%out+8];
	add.u32 %r3, %r3, 1;
	st.global.u32 [%out+8], %r3;
	add.u32 %r2, %r2, 1;
	st.release.gpu.global.u32 [%out+4], %r2;
end:`))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		g.t = t
		out := g.buffer(3)
		g.mustRun(launch{grid: 300, block: 32, out: out, set: set})
		if w := g.words(out, 3); w[2] != 300 {
			t.Errorf("the counter is %d", w[2])
		}
	})
}

// TestChainOfBlocks makes block i wait for block i-1 while blocks start in reverse order. The window must grow.
func TestChainOfBlocks(t *testing.T) {
	g := newRig(t, kernel(`
	not.b32 %r4, %bx;
	add.u32 %r4, %r4, %n;             // n - 1 - ctaid
	mul.wide.u32 %rd1, %r4, 4;
	add.u64 %rd1, %out, %rd1;
	setp.eq.u32 %p1, %r4, 0;
	@%p1 bra go;
poll:
	ld.volatile.global.u32 %r1, [%rd1+-4];
	setp.eq.u32 %p2, %r1, 0;
	@%p2 bra poll;
go:
	st.volatile.global.u32 [%rd1], 1;`))
	const blocks = 40
	g.mustRun(launch{grid: blocks, block: 1024, out: g.buffer(blocks), n: blocks, set: func(l *engine.Launch) { l.Needs = 0 }})
}

func TestNamedBarriers(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 4 .b8 box[256];
	shl.b32 %r1, %ln, 2;
	mov.u32 %r2, box;
	add.u32 %r1, %r1, %r2;
	setp.lt.u32 %p1, %tx, 32;
	@%p1 bra produce;
	bar.sync 1, 64;
	ld.shared.u32 %r3, [%r1];
	st.global.u32 [%mine], %r3;
	bra done;
produce:
	st.shared.u32 [%r1], %ln;
	bar.arrive 1, 64;
done:`))
	out := g.buffer(64)
	o := g.mustRun(launch{block: 64, out: out})
	for i, v := range g.words(out, 64)[32:] {
		if v != uint32(i) {
			t.Errorf("word %d is %d", i, v)
		}
	}
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		store w0 ffffffff shared w4 0+4
		arrive w0 ffffffff bar1/64
		exit w0 ffffffff
		arrive w1 ffffffff bar1/64 wait
		barrier-done w1 ffffffff bar1
		load w1 ffffffff shared r4 0+4
		store w1 ffffffff global w4 out+128 +4
		exit w1 ffffffff
		kernel-end w0 00000000`)
}

// TestPartialWarpBarrier has a barrier with a count that a block of 48 threads reaches only if its last warp counts in
// full.
func TestPartialWarpBarrier(t *testing.T) {
	g := newRig(t, kernel(`bar.sync 3, 64;`))
	g.mustRun(launch{block: 48, out: g.buffer(1)})
}

func TestBarrierReduce(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %tx, %n;
	bar.red.popc.u32 %r1, 0, %p1;
	bar.red.and.pred %p2, 0, %p1;
	bar.red.or.pred %p3, 0, !%p1;
	selp.u32 %r2, 256, 0, %p2;
	selp.u32 %r3, 512, 0, %p3;
	add.u32 %r1, %r1, %r2;
	add.u32 %r1, %r1, %r3;
	st.global.u32 [%mine], %r1;`))
	for _, c := range []struct{ n, want uint32 }{{0, 512}, {37, 37 + 512}, {96, 96 + 256}} {
		out := g.buffer(96)
		g.mustRun(launch{block: 96, out: out, n: c.n})
		for i, v := range g.words(out, 96) {
			if v != c.want {
				t.Errorf("n %d: thread %d has %d, want %d", c.n, i, v, c.want)
			}
		}
	}
}

func TestBarrierEvents(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %ln, 16;
	@%p1 bra second;
	barrier.sync 2;
	bra done;
second:
	barrier.sync 2;
done:
	bar.sync 0;`))
	o := g.mustRun(launch{out: g.buffer(1)})
	o.wantEvents(t, 0, `
		kernel-begin w0 00000000
		arrive w0 ffff0000 bar2 wait
		arrive w0 0000ffff bar2 wait
		barrier-done w0 0000ffff bar2
		arrive w0 ffffffff bar0 wait aligned
		barrier-done w0 ffffffff bar0
		exit w0 ffffffff
		kernel-end w0 00000000`)
}

func TestEarlyReturn(t *testing.T) {
	g := newRig(t, kernel(`
	setp.ge.u32 %p1, %tx, %n;
	@%p1 ret;
	bar.sync 0;`))
	o := g.run(launch{block: 64, n: 40, out: g.buffer(1), grid: 3})
	if o.err != nil {
		t.Error(o.err)
	}
	f := o.wantFault(t, engine.BarrierDivergence, "without 24 of the block's 64 threads")
	if !f.Warning || f.Count != 3 {
		t.Errorf("warning %v, count %d", f.Warning, f.Count)
	}
	if len(f.Stands) != 2 || f.Stands[0].Threads != 40 || f.Stands[1].Doing != "exited" || f.Stands[1].Threads != 24 {
		t.Errorf("stands %+v", f.Stands)
	}
	g.mustRun(launch{block: 64, n: 64, out: g.buffer(1), grid: 3})
	// Lanes that the block does not have do not count as exited.
	f = g.run(launch{block: 40, n: 35, out: g.buffer(1)}).wantFault(t, engine.BarrierDivergence, "without 5 of the block's 40 threads")
	if len(f.Stands) != 2 || f.Stands[1].Threads != 5 {
		t.Errorf("stands %+v", f.Stands)
	}
}

func TestDivergentBarrier(t *testing.T) {
	src := kernel(`
	setp.lt.u32 %p1, %tx, %n;
	@%p1 bra second;
	bar.sync 0;
	bra done;
second:
	bar.sync 0;
done:`)
	g := newRig(t, src)
	f := g.run(launch{block: 64, n: 16, out: g.buffer(1)}).wantFault(t, engine.BarrierDivergence, "different instructions")
	if f.Warning || len(f.Stands) != 2 {
		t.Errorf("within a warp: %+v", f)
	}
	f = g.run(launch{block: 64, n: 32, out: g.buffer(1)}).wantFault(t, engine.BarrierDivergence, "different instructions")
	if !f.Warning {
		t.Errorf("between warps: %+v", f)
	}
	g.mustRun(launch{block: 64, n: 64, out: g.buffer(1)})
	f = g.run(launch{block: 64, n: 48, out: g.buffer(1)}).wantFault(t, engine.BarrierDivergence, "different instructions")
	if f.Warning || len(f.Stands) != 2 || f.Stands[0].Threads+f.Stands[1].Threads != 64 {
		t.Errorf("within the second warp: %+v", f)
	}
}

// TestPassedBarrier distinguishes lanes that pass a barrier where others of their warp wait from lanes that return.
func TestPassedBarrier(t *testing.T) {
	const skip = "setp.ge.u32 %p1, %tx, %n; @%p1 bra over; bar.sync 0; over:"
	const store = "st.global.u32 [%mine], %tx;"
	inner := func(body string) string {
		return ".func inner(.param .b32 t, .param .b32 n) { .reg .b32 %tx, %n; .reg .pred %p1; ld.param.u32 %tx, [t]; ld.param.u32 %n, [n]; " + body + " ret; }\n"
	}
	const call = "{ .param .b32 t; .param .b32 m; st.param.b32 [t], %tx; st.param.b32 [m], %n; call inner, (t, m); }"
	for _, c := range []struct {
		name, functions, body string
		n                     uint32
		passed                int // number of lanes
	}{
		{"an if", "", skip + store, 40, 24},
		{"an if of a whole warp", "", skip + store, 32, 0},
		{"an if at the end", "", skip, 40, 0},
		{"an if whose end only computes", "", skip + "add.u32 %tx, %tx, 1;", 40, 0},
		{"an if within the second branch", "", "setp.ge.u32 %p1, %tx, %n; @%p1 bra else; bar.sync 0; bra over; else: " + store + " over: " + store, 40, 24},
		{"a return after a store", "", "setp.lt.u32 %p1, %tx, %n; @%p1 bra on; " + store + " ret; on: bar.sync 0; " + store, 40, 0},
		{"a loop", "", "mov.u32 %r0, 0; and.b32 %r1, %tx, 1; loop: bar.sync 0; add.u32 %r0, %r0, 1; setp.le.u32 %p1, %r0, %r1; @%p1 bra loop; " + store, 0, 32},
		{"a return from a loop", "", "mov.u32 %r0, 0; and.b32 %r1, %tx, 1; loop: setp.gt.u32 %p1, %r0, %r1; @%p1 ret; bar.sync 0; " + store +
			" add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, 3; @%p1 bra loop;" + store, 0, 0},
		{"a function that returns early, and what follows the call", inner("setp.ge.u32 %p1, %tx, %n; @%p1 ret; bar.sync 0;"), call + store, 40, 24},
		{"a function that returns early, and nothing follows", inner("setp.ge.u32 %p1, %tx, %n; @%p1 ret; bar.sync 0;"), call, 40, 0},
		{"another function, by one call", inner("bar.sync 0;") + ".func other(.param .b32 t, .param .b32 n) { ret; }\n",
			`{ .reg .b64 %f1, %f2; mov.u64 %f1, inner; mov.u64 %f2, other; setp.ge.u32 %p1, %tx, %n; selp.b64 %f1, %f2, %f1, %p1;
			.param .b32 t; .param .b32 m; st.param.b32 [t], %tx; st.param.b32 [m], %n; p: .callprototype _ (.param .b32 t, .param .b32 m); call %f1, (t, m), p; }` + store, 40, 24},
		{"a call that is passed by", inner("bar.sync 0;"), "setp.ge.u32 %p1, %tx, %n; @%p1 bra over; " + call + " over: " + store, 40, 24},
	} {
		g := newRig(t, prelude+c.functions+entry("k", c.body))
		f := g.run(launch{block: 64, n: c.n, out: g.buffer(64)}).wantFault(t, engine.BarrierDivergence, "which have exited")
		want := ""
		if c.passed > 0 {
			want = fmt.Sprintf("; %d of them had skipped it", c.passed)
		}
		if _, passed, _ := strings.Cut(f.Message, "exited"); !strings.HasPrefix(passed, want) || f.Warning != (want == "") || want == "" && passed != "" {
			t.Errorf("%s: %s, warning %v", c.name, f.Message, f.Warning)
		}
	}
	// Lanes that arrive late have not passed the barrier.
	g := newRig(t, kernel("setp.ge.u32 %p1, %tx, %n; @%p1 bra late; bra all; late: "+store+" bra all; all: bar.sync 0; "+store))
	g.mustRun(launch{block: 64, n: 40, out: g.buffer(64)})
}

func TestBarrierDeadlock(t *testing.T) {
	// Half of each warp waits at barrier 0, and the other half at barrier 1.
	g := newRig(t, kernel(`
	and.b32 %r1, %ln, 1;
	barrier.sync %r1;`))
	o := g.run(launch{block: 64, grid: 2, out: g.buffer(1)})
	if !errors.Is(o.err, engine.ErrDeadlock) {
		t.Errorf("ended with %v", o.err)
	}
	f := o.wantFault(t, engine.BarrierDivergence, "never reach")
	if f.Warning || len(f.Stands) != 2 || f.Stands[0].Threads != 64 || !strings.Contains(f.Stands[0].Doing, "barrier 0 (32 of 64") {
		t.Errorf("fault %+v", f)
	}
}

func TestCountDeadlock(t *testing.T) {
	g := newRig(t, kernel(`
	setp.ge.u32 %p1, %tx, 32;
	@%p1 ret;
	bar.sync 1, 64;`))
	o := g.run(launch{block: 64, out: g.buffer(1)})
	if !errors.Is(o.err, engine.ErrDeadlock) {
		t.Errorf("ended with %v", o.err)
	}
	f := o.wantFault(t, engine.Deadlock, "wait for each other")
	if f.Stands[0].Doing != "waits at barrier 1 (32 of 64 threads have arrived)" || f.Stands[1].Doing != "exited" {
		t.Errorf("stands %+v", f.Stands)
	}
}

func TestBadBarriers(t *testing.T) {
	g := newRig(t, kernel(`barrier.sync %n;`))
	g.run(launch{n: 16, out: g.buffer(1)}).wantFault(t, engine.BarrierDivergence, "barrier 16 does not exist")
	g = newRig(t, kernel(`bar.sync 1, %n;`))
	g.run(launch{n: 40, out: g.buffer(1)}).wantFault(t, engine.BarrierDivergence, "thread count of 40")
	g = newRig(t, kernel(`
	setp.lt.u32 %p1, %tx, 32;
	@%p1 bra other;
	bar.sync 1, 64;
	bra done;
other:
	bar.sync 1;
done:`))
	g.run(launch{block: 64, out: g.buffer(1)}).wantFault(t, engine.BarrierDivergence, "others that wait there expect")
}

func TestWarpSync(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %ln, 16;
	@%p1 bra second;
	bar.warp.sync -1;
	bra done;
second:
	bar.warp.sync -1;
done:
	setp.eq.u32 %p1, %ln, 3;
	@%p1 ret;
	bar.warp.sync -1;`))
	o := g.mustRun(launch{out: g.buffer(1)})
	o.wantEvents(t, 0, `
		kernel-begin w0 00000000
		warp-sync w0 ffffffff
		exit w0 00000008
		warp-sync w0 fffffff7
		exit w0 fffffff7
		kernel-end w0 00000000`)
}

func TestWarpSyncDeadlock(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %ln, 16;
	@%p1 bra second;
	bar.warp.sync -1;
	bra done;
second:
	bar.warp.sync 0xffff;
done:
	bar.warp.sync -1;`))
	g.run(launch{out: g.buffer(1)}) // the second halves arrive at the end: no deadlock, but the mask never matches
	g = newRig(t, kernel(`
	mov.u32 %r1, -1;
	setp.eq.u32 %p1, %ln, 5;
	selp.b32 %r1, 0xff, %r1, %p1;
	bar.warp.sync %r1;`))
	o := g.run(launch{out: g.buffer(1)})
	if !errors.Is(o.err, engine.ErrDeadlock) {
		t.Errorf("ended with %v", o.err)
	}
	f := o.wantFault(t, engine.WarpDivergence, "never execute the same instruction")
	if !strings.Contains(f.Stands[0].Doing, "bar.warp.sync with member mask 0xffffffff for lanes 0x20") {
		t.Errorf("stands %+v", f.Stands)
	}
}

func TestMaskWithoutLane(t *testing.T) {
	g := newRig(t, kernel(`bar.warp.sync 0xffff;`))
	o := g.run(launch{out: g.buffer(1)})
	if o.err != nil {
		t.Error(o.err)
	}
	if f := o.wantFault(t, engine.MemberMask, "lane 16 executes bar.warp.sync with member mask 0xffff"); f.Count != 16 {
		t.Errorf("count %d", f.Count)
	}
}

// TestShuffleAcrossDivergence executes the same shuffle at different places in the halves of a warp.
func TestShuffleAcrossDivergence(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %ln, 16;
	@%p1 bra second;
	shfl.sync.bfly.b32 %r1, %ln, 16, 0x1f, -1;
	bra done;
second:
	shfl.sync.bfly.b32 %r1, %ln, 16, 0x1f, -1;
done:
	st.global.u32 [%mine], %r1;`))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		g.t = t
		out := g.buffer(32)
		o := g.run(launch{out: out, set: set})
		if f := o.wantFault(t, engine.WarpDivergence, "at different places"); o.err != nil || !f.Warning || len(f.Stands) != 2 {
			t.Errorf("ended with %v, %+v", o.err, f)
		}
		for i, v := range g.words(out, 32) {
			if v != uint32(i^16) {
				t.Errorf("lane %d got %d", i, v)
			}
		}
	})
}

func TestVoteWithExited(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %ln, 8;
	@%p1 ret;
	setp.ge.u32 %p2, %ln, 30;
	vote.sync.ballot.b32 %r1, %p2, -1;
	activemask.b32 %r2;
	sub.u32 %r1, %r1, %r2;
	st.global.u32 [%mine], %r1;`))
	out := g.buffer(32)
	g.mustRun(launch{out: out})
	ballot, active := uint32(0xc0000000), uint32(0xffffff00)
	if w := g.words(out, 32); w[31] != ballot-active {
		t.Errorf("ballot minus active mask is %#x", w[31])
	}
}

func TestDeterminism(t *testing.T) {
	trace := func(schedule engine.Schedule, seed uint64) string {
		g := newRig(t, kernel(spinLock))
		o := g.mustRun(launch{grid: 4, block: 64, out: g.buffer(2), set: func(l *engine.Launch) {
			l.Schedule, l.Seed = schedule, seed
			l.Needs |= event.NeedValues
		}})
		return strings.Join(o.rec.lines, "\n")
	}
	var all []string
	for _, s := range []engine.Schedule{engine.Fair, engine.PCT} {
		for seed := range uint64(4) {
			a, b := trace(s, seed), trace(s, seed)
			if a != b {
				t.Errorf("schedule %d seed %d: two runs differ", s, seed)
			}
			if slices.Contains(all, a) {
				t.Errorf("schedule %d seed %d gives the trace of another seed", s, seed)
			}
			all = append(all, a)
		}
	}
}

func TestCancel(t *testing.T) {
	g := newRig(t, kernel("again:\n\tmov.u32 %r1, %clock;\n\tbra again;"))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	o := g.run(launch{grid: 50, block: 256, ctx: ctx, set: func(l *engine.Launch) { l.MaxSteps = 0 }})
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("cancelling took %v", d)
	}
	if !errors.Is(o.err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", o.err)
	}
	o.wantFault(t, engine.StepLimit, "time limit")
	if last := o.rec.lines[len(o.rec.lines)-1]; !strings.HasPrefix(last, "kernel-end") {
		t.Errorf("the last event is %q", last)
	}
}

// TestLockstepBarrier checks that a warp in lockstep arrives as a whole, whichever of its lanes arrives.
func TestLockstepBarrier(t *testing.T) {
	g := newRig(t, kernel(`
	setp.lt.u32 %p1, %tx, %n;
	@%p1 bra done;
	bar.sync 0;
done:
	st.global.u32 [%mine], 1;`))
	set := func(l *engine.Launch) { l.Schedule = engine.Lockstep }
	o := g.run(launch{block: 32, n: 8, out: g.buffer(32), set: set})
	if o.err != nil {
		t.Error(o.err)
	}
	o.wantFault(t, engine.BarrierDivergence, "lanes 0xffffff00 of a warp while lanes 0xff are elsewhere")
}

// TestPlainPolling has a grid barrier that polls by weak loads. The window must grow too.
func TestPlainPolling(t *testing.T) {
	g := newRig(t, kernel(strings.ReplaceAll(gridBarrier, "ld.volatile", "ld")))
	const blocks = 100
	g.mustRun(launch{grid: blocks, block: 512, out: g.buffer(1 + blocks), n: blocks, set: func(l *engine.Launch) { l.Needs = 0 }})
}

func TestCooperative(t *testing.T) {
	// %envreg1 (high) and %envreg2 (low) have the address of the launch's workspace. It is zero, and freed afterwards.
	g := newRig(t, kernel(`
	mov.u32 %r1, %envreg1;
	mov.u32 %r2, %envreg2;
	mov.b64 %rd1, {%r2, %r1};
	atom.add.u32 %r3, [%rd1+4], 1;
	st.global.u64 [%out], %rd1;
	st.global.u32 [%out+8], %r3;`))
	out := g.buffer(4)
	g.mustRun(launch{block: 1, grid: 200, out: out, set: func(l *engine.Launch) { l.Cooperative = true }})
	w := g.words(out, 4)
	if a, ok := g.mem.Find(uint64(w[0]) | uint64(w[1])<<32); !ok || !a.Freed || w[2] != 199 {
		t.Errorf("workspace %+v, %v, last count %d", a, ok, w[2])
	}
}
