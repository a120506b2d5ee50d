package warp

import (
	"errors"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
)

const (
	// early is when launches of the tests are first suspected to spin.
	early = 1 << 14
	// holdOn is how many rounds some threads compute: past the first looks at whether the launch gets anywhere. Lanes of one warp
	// take turns meanwhile.
	holdOn = engine.Starved
)

// poll waits until the word at [%out] is no longer 0.
const poll = `
poll:
	ld.volatile.global.u32 %r1, [%out];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra poll;`

// count makes a thread compute for n rounds, without memory.
const count = `
	mov.u32 %r2, 0;
count:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p2, %r2, %n;
	@%p2 bra count;`

// TestSpin runs launches whose threads loop forever. They must end by themselves and report the place.
func TestSpin(t *testing.T) {
	for _, c := range []struct {
		name, body string
		block      int
	}{
		{"flag", poll, 8},
		{"plain flag", `
poll:
	ld.global.u32 %r1, [%out];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra poll;`, 8},
		{"nothing", "again:\n\tbra again;", 8},
		// The lanes of a warp are in different loops, one of which ends.
		{"part of a warp", `
	and.b32 %r3, %tx, 3;
	setp.eq.u32 %p1, %r3, 0;
	@%p1 bra end;
	setp.eq.u32 %p1, %r3, 1;
	@%p1 bra other;` + poll + `
other:
	atom.global.cas.b32 %r1, [%out], 5, 1;
	setp.ne.u32 %p1, %r1, 5;
	@%p1 bra other;
end:`, 8},
		// Some wait at a barrier for those that loop.
		{"barrier", `
	setp.lt.u32 %p1, %tx, 32;
	@%p1 bra meet;` + poll + `
meet:
	bar.sync 0;`, 34},
		{"lock kept", `
lock:
	atom.global.cas.b32 %r1, [%out], 0, 1;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra lock;`, 8},
		// Calls that read: the loop's state is more than registers.
		{"local by generic address", `
	.local .align 4 .b8 mine[8];
	mov.u64 %rd1, mine;
	cvta.local.u64 %rd1, %rd1;
	setp.eq.u32 %p3, %n, 0;
	add.u64 %rd2, %out, 4;
	selp.b64 %rd1, %rd1, %rd2, %p3;
poll:
	ld.volatile.global.u32 %r1, [%out];
	st.u32 [%rd1], %r1;
	ld.u32 %r2, [%rd1];
	setp.eq.u32 %p1, %r2, 0;
	@%p1 bra poll;`, 8},
		{"local", `
	.local .align 4 .b8 mine[8];
	st.local.u32 [mine], 0;
poll:
	ld.volatile.global.u32 %r1, [%out];
	ld.local.u32 %r2, [mine];
	setp.eq.u32 %p1, %r1, %r2;
	@%p1 bra poll;`, 8},
		// The longer it has waited the longer it sleeps.
		{"time", `
	mov.u64 %rd1, %globaltimer;
poll:
	mov.u64 %rd2, %globaltimer;
	sub.u64 %rd2, %rd2, %rd1;
	shr.u64 %rd2, %rd2, 2;
	setp.gt.u64 %p2, %rd2, 1000;
	cvt.u32.u64 %r2, %rd2;
	@%p2 nanosleep.u32 %r2;
	ld.volatile.global.u32 %r1, [%out];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra poll;`, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(c.body))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g.t = t
				o := g.run(launch{grid: 2, block: c.block, out: g.buffer(8), set: func(l *engine.Launch) {
					set(l)
					l.Needs, l.SpinFirst = 0, early
				}})
				if !errors.Is(o.err, engine.ErrDeadlock) {
					t.Errorf("ended with %v after %d steps", o.err, o.stats.Warps)
				}
				o.wantFault(t, engine.Deadlock, "loop")
			})
		})
	}
}

// TestNoSpin runs launches that do not change memory for a long time and yet make progress.
func TestNoSpin(t *testing.T) {
	const set = `
	st.volatile.global.u32 [%out], 1;`
	for _, c := range []struct {
		name, body string
		block      int
	}{
		{"alone", count + set, 2},
		{"other block", `
	setp.ne.u32 %p1, %bx, 0;
	@%p1 bra work;` + poll + `
	bra end;
work:` + count + set + `
end:`, 2},
		{"other warp", `
	setp.gt.u32 %p1, %tx, 31;
	@%p1 bra work;` + poll + `
	bra end;
work:` + count + set + `
end:`, 34},
		{"other lanes", `
	and.b32 %r3, %tx, 1;
	setp.ne.u32 %p1, %r3, 0;
	@%p1 bra work;` + poll + `
	bra end;
work:` + count + set + `
end:`, 2},
		// Its loop comes back to the same registers, but for the clock.
		{"clock", `
	mov.u64 %rd1, %clock64;
wait:
	mov.u64 %rd2, %clock64;
	sub.u64 %rd3, %rd2, %rd1;
	cvt.u64.u32 %rd4, %n;
	setp.lt.u64 %p1, %rd3, %rd4;
	mov.u64 %rd2, 0;
	mov.u64 %rd3, 0;
	@%p1 bra wait;`, 2},
		// It waits for longer than it could be watched, and time passes quickly.
		{"long time", `
	mov.u64 %rd1, %globaltimer;
wait:
	mov.u64 %rd2, %globaltimer;
	sub.u64 %rd3, %rd2, %rd1;
	setp.lt.u64 %p1, %rd3, 3600000000000;
	@%p1 bra wait;` + set, 2},
		{"bits of a clock", `
wait:
	mov.u32 %r1, %clock;
	and.b32 %r1, %r1, 63;
	setp.ne.u32 %p1, %r1, 9;
	@%p1 bra wait;` + set, 2},
		{"count and clock", `
	mov.u32 %r2, 0;
	mov.u64 %rd3, 0;
count:
	mov.u64 %rd1, %clock64;
	add.u32 %r2, %r2, 1;
	mov.u64 %rd2, %clock64;
	sub.u64 %rd2, %rd2, %rd1;
	add.u64 %rd3, %rd3, %rd2;
	setp.lt.u32 %p2, %r2, %n;
	@%p2 bra count;` + set, 2},
		// The same registers and memory at the end of each round, with a count that is kept in memory.
		{"counter in memory", `
	setp.ne.u32 %p1, %gid, 0;
	@%p1 bra end;
again:
	atom.global.add.u32 %r1, [%out+4], 1;
	setp.lt.u32 %p1, %r1, 20000;
	mov.u32 %r1, 0;
	@%p1 bra again;
end:`, 2},
		{"counter by generic address", `
	.local .align 4 .b8 mine[8];
	mov.u64 %rd1, mine;
	cvta.local.u64 %rd1, %rd1;
	setp.eq.u32 %p3, %n, 0;
	add.u64 %rd2, %out, 4;
	selp.b64 %rd1, %rd1, %rd2, %p3;
again:
	ld.u32 %r1, [%rd1];
	add.u32 %r1, %r1, 1;
	st.u32 [%rd1], %r1;
	setp.lt.u32 %p1, %r1, 20000;
	mov.u32 %r1, 0;
	@%p1 bra again;`, 2},
		{"counter in shared memory", `
	.shared .align 4 .b8 its[8];
	st.shared.u32 [its], 0;
again:
	ld.shared.u32 %r1, [its];
	add.u32 %r1, %r1, 1;
	st.shared.u32 [its], %r1;
	setp.lt.u32 %p1, %r1, 20000;
	mov.u32 %r1, 0;
	@%p1 bra again;`, 2},
		{"counter of each in shared memory", `
	.shared .align 4 .b8 its[512];
	mov.u32 %r2, its;
	mad.lo.u32 %r2, %tx, 4, %r2;
	st.shared.u32 [%r2], 0;
	st.shared.u32 [%r2+256], 5;
again:
	ld.shared.u32 %r1, [%r2];
	add.u32 %r1, %r1, 1;
	st.shared.u32 [%r2], %r1;
	setp.lt.u32 %p1, %r1, 20000;
	ld.shared.u32 %r3, [%r2+256];
	setp.eq.and.u32 %p1, %r3, 5, %p1;
	@%p1 bra again;`, 2},
		{"counter in global memory", `
again:
	ld.global.u32 %r1, [%mine];
	add.u32 %r1, %r1, 1;
	st.global.u32 [%mine], %r1;
	setp.lt.u32 %p1, %r1, 20000;
	mov.u32 %r1, 0;
	@%p1 bra again;`, 2},
		{"counter in local memory", `
	.local .align 4 .b8 mine[8];
	st.local.u32 [mine], 0;
again:
	ld.local.u32 %r1, [mine];
	add.u32 %r1, %r1, 1;
	st.local.u32 [mine], %r1;
	setp.lt.u32 %p1, %r1, 20000;
	mov.u32 %r1, 0;
	@%p1 bra again;`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(c.body))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g.t = t
				g.mustRun(launch{grid: 2, block: c.block, out: g.buffer(8), n: holdOn, set: func(l *engine.Launch) {
					set(l)
					l.Needs, l.MaxSteps, l.SpinFirst = 0, 0, early
				}})
			})
		})
	}
}

// TestSpinInCalls checks that the state of a loop that calls functions includes all their frames.
func TestSpinInCalls(t *testing.T) {
	const look = `
.func (.param .b32 r) look (.param .b64 p, .param .b32 n)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	.reg .pred %q;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [n];
	setp.eq.u32 %q, %r1, 0;
	@%q bra last;
	sub.u32 %r1, %r1, 1;
	{ .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd1; st.param.b32 [b], %r1; call (c), look, (a, b); ld.param.b32 %r2, [c]; }
	bra done;
last:
	ld.volatile.global.u32 %r2, [%rd1];
done:
	st.param.b32 [r], %r2;
	ret;
}
`
	body := func(more string) string {
		return `
	mov.u32 %r3, 0;
poll:
	{ .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %out; and.b32 %r2, %tx, 3; st.param.b32 [b], %r2; call (c), look, (a, b); ld.param.b32 %r1, [c]; }
	setp.eq.u32 %p1, %r1, 0;` + more + `
	@%p1 bra poll;`
	}
	for _, c := range []struct {
		body string
		ends bool
	}{
		{body(""), false},
		{body("\n\tadd.u32 %r3, %r3, 1; setp.lt.and.u32 %p1, %r3, %n, %p1;"), true},
	} {
		everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
			g := newRig(t, prelude+look+entry("k", c.body))
			o := g.run(launch{grid: 2, block: 8, out: g.buffer(8), n: 5000, set: func(l *engine.Launch) {
				set(l)
				l.Needs, l.MaxSteps, l.SpinFirst = 0, 0, early
			}})
			if c.ends && o.err != nil || !c.ends && !errors.Is(o.err, engine.ErrDeadlock) {
				t.Errorf("ends %t: %v after %d steps", c.ends, o.err, o.stats.Warps)
			}
		})
	}
}

// TestNoSpinHeap checks a thread that allocates memory until there is none, and reaches the same registers each time.
func TestNoSpinHeap(t *testing.T) {
	body := func(free string) string {
		return `
	.param .b64 p;
	.param .b64 q;
	setp.eq.u32 %p3, %n, 0;
	mov.u64 %rd1, 0;
	@%p3 bra end;
again:
	mov.u32 %r1, 0;
pad:
	add.u32 %r1, %r1, 1;
	setp.lt.u32 %p2, %r1, %n;
	@%p2 bra pad;
	st.param.b64 [p], 1024;
	call.uni (q), malloc, (p);
	ld.param.b64 %rd1, [q];
	setp.ne.u64 %p1, %rd1, 0;` + free + `
	st.param.b64 [p], 0x4000000000000000;
	call.uni (q), malloc, (p);
	ld.param.b64 %rd1, [q];
	setp.eq.or.u64 %p1, %rd1, 5, %p1;
	@%p1 bra again;
end:`
	}
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		g := newRig(t, calls+entry("k", body("")))
		g.mustRun(launch{block: 1, out: g.buffer(8), n: 200, set: func(l *engine.Launch) {
			set(l)
			l.Needs, l.SpinFirst = 0, early
		}})
	})
	// Others may wait for what it gives back.
	g := newRig(t, calls+entry("k", body("\n\tst.param.b64 [p], %rd1;\n\tcall.uni free, (p);")))
	if o := g.run(launch{block: 1, out: g.buffer(8), n: 200, set: func(l *engine.Launch) { l.Needs, l.MaxSteps, l.SpinFirst = 0, 16*early, early }}); !errors.Is(o.err, engine.ErrStopped) {
		t.Errorf("malloc and free again and again: ended with %v", o.err)
	}
}

// TestSpinActive checks that a loop that queries the active lanes, as votes of early PTX do, is not judged.
func TestSpinActive(t *testing.T) {
	for _, ask := range []string{"vote.any.pred %p1, %p1;", "shfl.idx.b32 %r2, %r1, 0, 31;", "activemask.b32 %r2;"} {
		g := newRig(t, strings.NewReplacer(".version 8.0", ".version 6.0", "sm_80", "sm_60").Replace(kernel(`
poll:
	ld.volatile.global.u32 %r1, [%out];
	setp.eq.u32 %p1, %r1, 0;
	`+ask+`
	@%p1 bra poll;`)))
		o := g.run(launch{block: 2, out: g.buffer(1), set: func(l *engine.Launch) { l.Needs, l.MaxSteps, l.SpinFirst = 0, 64*early, early }})
		if !errors.Is(o.err, engine.ErrStopped) {
			t.Errorf("%s ended with %v", ask, o.err)
		}
	}
}

// TestSpinActiveBefore checks that a loop after a query of the active lanes, as in collective calls of libcu++, is
// judged like others.
func TestSpinActiveBefore(t *testing.T) {
	g := newRig(t, kernel(`
	activemask.b32 %r2;
	st.global.u32 [%out+4], %r2;
poll:
	ld.volatile.global.u32 %r1, [%out];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra poll;`))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		g.t = t
		o := g.run(launch{grid: 2, block: 2, out: g.buffer(2), set: func(l *engine.Launch) {
			set(l)
			l.Needs, l.MaxSteps, l.SpinFirst = 0, 64*early, early
		}})
		if !errors.Is(o.err, engine.ErrDeadlock) {
			t.Errorf("ended with %v", o.err)
		}
	})
}

// TestSpinGivingWay runs two threads that try to acquire two locks each, one after the other, and release the first if
// the second is taken. In step they fail repeatedly. This is not a deadlock: in another order they make progress.
func TestSpinGivingWay(t *testing.T) {
	g := newRig(t, kernel(`
	setp.ne.u32 %p1, %tx, 0;
	@%p1 bra end;
	xor.b32 %r1, %bx, 1;
	mul.wide.u32 %rd1, %bx, 4;
	add.u64 %rd1, %out, %rd1;
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd2, %out, %rd2;
again:
	atom.global.exch.b32 %r2, [%rd1], 1;
	setp.ne.u32 %p1, %r2, 0;
	@%p1 bra again;
	atom.global.cas.b32 %r3, [%rd2], 2, 1;
	atom.global.exch.b32 %r2, [%rd1], 0;
	bra again;
end:`))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		g.t = t
		o := g.run(launch{grid: 2, block: 2, out: g.buffer(2), set: func(l *engine.Launch) {
			set(l)
			l.Needs, l.MaxSteps, l.SpinFirst = 0, 16*early, early
		}})
		if !errors.Is(o.err, engine.ErrStopped) {
			t.Errorf("ended with %v", o.err)
		}
	})
}

// TestSpinLockstep checks that a loop in which independent threads make progress may not end for lanes in lockstep.
func TestSpinLockstep(t *testing.T) {
	g := newRig(t, kernel(spinLock))
	o := g.run(launch{out: g.buffer(2), set: func(l *engine.Launch) { l.Schedule, l.Needs, l.SpinFirst = engine.Lockstep, 0, early }})
	if !errors.Is(o.err, engine.ErrDeadlock) {
		t.Errorf("ended with %v", o.err)
	}
	o.wantFault(t, engine.Deadlock, "loop")
}

// TestSpinHost checks that a wait for memory that the host can write is not judged, because it may be correct on a
// device.
func TestSpinHost(t *testing.T) {
	g := newRig(t, kernel(poll))
	quiet := func(l *engine.Launch) { l.Needs, l.SpinFirst = 0, early }
	for _, kind := range []devmem.AllocKind{devmem.ManagedAlloc, devmem.PinnedAlloc} {
		out := testAlloc(t, g.mem, 4, kind, "flag")
		o := g.run(launch{out: out, set: quiet})
		if !errors.Is(o.err, engine.ErrHostWait) {
			t.Errorf("kind %d: ended with %v", kind, o.err)
		}
		o.wantFault(t, engine.StepLimit, "host")
		// An access that the host is no part of, at a place that ref remembers as it does the one that polls.
		far := newRig(t, kernel("poll:\n\tld.global.u32 %r2, [%out];"+strings.Repeat("\n\tadd.u32 %r2, %r2, 0;", 63)+`
	ld.volatile.global.u32 %r1, [%out];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra poll;`))
		if o := far.run(launch{block: 1, out: testAlloc(t, far.mem, 4, kind, "far"), set: quiet}); !errors.Is(o.err, engine.ErrHostWait) {
			t.Errorf("far, kind %d: ended with %v", kind, o.err)
		}
		// Atomics of the device are not for the host.
		lock := newRig(t, kernel("lock:\n\tatom.global.cas.b32 %r1, [%out], 5, 1;\n\tsetp.ne.u32 %p1, %r1, 5;\n\t@%p1 bra lock;"))
		if o := lock.run(launch{out: testAlloc(t, lock.mem, 4, kind, "lock"), set: quiet}); !errors.Is(o.err, engine.ErrDeadlock) {
			t.Errorf("device atomics of kind %d: ended with %v", kind, o.err)
		}
		// That there is such memory does not matter.
		if o := g.run(launch{out: g.buffer(1), set: quiet}); !errors.Is(o.err, engine.ErrDeadlock) {
			t.Errorf("beside kind %d: ended with %v", kind, o.err)
		}
	}
}

// TestSpinDevices checks programs that see several devices, where one may wait for another. Atomics of device scope do
// not order other devices.
func TestSpinDevices(t *testing.T) {
	for _, r := range []struct {
		code   string
		device uint8
		want   error
	}{
		{poll, 0, engine.ErrDeadlock},
		{poll, 1, engine.ErrDeviceWait},
		{"lock:\n\tatom.global.cas.b32 %r1, [%out], 5, 1;\n\tsetp.ne.u32 %p1, %r1, 5;\n\t@%p1 bra lock;", 1, engine.ErrDeadlock},
	} {
		g := newRig(t, kernel(r.code))
		o := g.run(launch{out: g.buffer(1), set: func(l *engine.Launch) { l.Needs, l.SpinFirst, l.Device = 0, early, r.device }})
		if !errors.Is(o.err, r.want) {
			t.Errorf("device %d: ended with %v, not %v", r.device, o.err, r.want)
		}
	}
}

// TestSpinWhen checks that a launch that spins from its beginning ends when it is first watched, by default after
// spinFirst steps.
func TestSpinWhen(t *testing.T) {
	for _, first := range []uint64{0, early, 4 * early} {
		g := newRig(t, kernel("again:\n\tbra again;"))
		o := g.run(launch{out: g.buffer(1), set: func(l *engine.Launch) { l.Needs, l.SpinFirst = 0, first }})
		if first == 0 {
			first = 1 << 17
		}
		if !errors.Is(o.err, engine.ErrDeadlock) || o.stats.Warps < first || o.stats.Warps > first+8*engine.SliceCost {
			t.Errorf("watched at %d: ended with %v after %d steps", first, o.err, o.stats.Warps)
		}
	}
}

// TestSpinRounds makes a warp reach its state again after a number of rounds of sliceCost steps each. The engine waits
// for spinRounds of them.
func TestSpinRounds(t *testing.T) {
	for _, c := range []struct {
		rounds uint64
		err    error
	}{{engine.SpinRounds, engine.ErrDeadlock}, {engine.SpinRounds + 1, engine.ErrStopped}} {
		// A loop of 3n steps, and what is left to make it so many rounds, at least 2.
		n := (c.rounds*engine.SliceCost - 2) / 3
		pads := int(c.rounds*engine.SliceCost - 2 - 3*n)
		g := newRig(t, kernel(`
again:
	mov.u32 %r2, 0;
count:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p2, %r2, %n;
	@%p2 bra count;`+strings.Repeat("\n\tmov.u32 %r3, 0;", pads)+`
	bra again;`))
		o := g.run(launch{block: 1, out: g.buffer(1), n: uint32(n), set: func(l *engine.Launch) {
			l.Needs, l.MaxSteps, l.SpinFirst = 0, early+engine.SliceCost*(engine.SpinRounds+40), early
		}})
		if !errors.Is(o.err, c.err) {
			t.Errorf("%d rounds: ended with %v after %d steps", c.rounds, o.err, o.stats.Warps)
		}
	}
}

// TestSpinMbarrier checks that threads that wait at an mbarrier whose phase lacks an arrival loop forever. If the last
// arrival comes after a long time, from a computing thread or from copies that a test performs, they do not.
func TestSpinMbarrier(t *testing.T) {
	const wait = `
wait:
	mbarrier.try_wait.parity.shared.b64 %p3, [its], 0;
	@!%p3 bra wait;`
	const begin = `
	.shared .align 8 .b8 its[8];
	setp.ne.u32 %p1, %tx, 0;
	@%p1 bra ready;
	mbarrier.init.shared.b64 [its], 1;
ready:
	bar.sync 0;`
	for _, c := range []struct {
		name, body string
		ends       bool
	}{
		{"nobody arrives", begin + wait, false},
		{"a lane arrives late", begin + `
	setp.ne.u32 %p1, %tx, 0;
	@%p1 bra wait;` + count + `
	mbarrier.arrive.shared.b64 _, [its];` + wait, true},
		{"a warp arrives late", begin + `
	setp.ne.u32 %p1, %tx, 32;
	@%p1 bra wait;` + count + `
	mbarrier.arrive.shared.b64 _, [its];` + wait, true},
		{"copies", begin + `
	setp.ne.u32 %p1, %tx, 0;
	@%p1 bra wait;` + count + `
	cp.async.mbarrier.arrive.noinc.shared.b64 [its];` + wait, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, strings.NewReplacer("sm_80", "sm_90").Replace(kernel(c.body)))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g.t = t
				o := g.run(launch{grid: 2, block: 34, out: g.buffer(8), n: holdOn, set: func(l *engine.Launch) {
					set(l)
					l.Needs, l.MaxSteps, l.SpinFirst = 0, 0, 0
					if c.ends {
						l.SpinFirst = early
					}
				}})
				switch {
				case c.ends && o.err != nil:
					t.Errorf("ended with %v after %d steps", o.err, o.stats.Warps)
				case !c.ends && (!errors.Is(o.err, engine.ErrDeadlock) || o.stats.Warps > 1<<18):
					t.Errorf("ended with %v after %d steps", o.err, o.stats.Warps)
				}
			})
		})
	}
}
