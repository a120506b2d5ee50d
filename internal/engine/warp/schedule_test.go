package warp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// TestCompleted checks that a block counts its completed barriers, whether or not whole warps arrive in engine warp.
func TestCompleted(t *testing.T) {
	g := newRig(t, kernel(`
	bar.sync 0;
	bar.sync 1, 64;
	setp.lt.u32 %p1, %ln, 7;
	@%p1 bra some;
	barrier.sync 2;
	bra end;
some:
	barrier.sync 2;
end:
	barrier.red.popc.u32 %r1, 3, %p1;
	bar.sync 0;`))
	l := g.prepare(launch{block: 64, out: g.buffer(64)})
	text, err := textOf(l, false)
	if err != nil {
		t.Fatal(err)
	}
	r := engine.NewRun(t.Context(), l)
	x := &startSpy{machine: newMachine(r, text)}
	r.Machine = x
	if _, err := r.Execute(r.Loop); err != nil {
		t.Fatal(err)
	}
	if x.block == nil || x.block.Completed != 5 {
		t.Errorf("barriers of %+v", x.block)
	}
}

// startSpy records the block of a warp that starts.
type startSpy struct {
	*machine
	block *engine.CTA
}

func (x *startSpy) Start(w *engine.Warp, mask uint32) {
	x.block = w.CTA
	x.machine.Start(w, mask)
}

// TestSteps counts the steps of an iteration of a loop, by warps and by lanes. Computing instructions are counted when
// they are left, so the ends of turns and lists of operations must not matter. Events, seeds and divergence change
// these.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name, body         string
		warps, lanes, wide uint64 // of an iteration: with one warp of 32 lanes; with two warps, of which the second has 8 lanes
	}{
		{"arithmetic", "xor.b32 %r1, %r1, %tx; add.u32 %r1, %r1, 7; shr.u32 %r3, %r1, 1;", 6, 6 * 32, 6 * 40},
		{"memory", "ld.global.u32 %r1, [%mine]; add.u32 %r1, %r1, 3; st.global.u32 [%mine], %r1;", 6, 6 * 32, 6 * 40},
		{"shared", "st.shared.u32 [box], %r2; ld.shared.u32 %r1, [box+4]; st.shared.u32 [%r4], %r1;", 6, 6 * 32, 6 * 40},
		{"atomics", "atom.global.add.u32 %r1, [%mine], 1; red.shared.add.u32 [%r4], %r1;", 5, 5 * 32, 5 * 40},
		{"barriers", "bar.sync 0; bar.warp.sync -1; membar.gl;", 6, 6 * 32, 6 * 40},
		{"shuffles", "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1; vote.sync.any.pred %p2, %p1, -1;", 5, 5 * 32, 5 * 40},
		// Falling through into a block counts as a jump.
		{"lanes apart", "@%p3 bra over; xor.b32 %r1, %r1, 5; add.u32 %r1, %r1, %n; over:", 7, 4*32 + 3*28, 4*40 + 3*32},
		{"lanes apart, all meet", "@%p3 bra other; st.global.u32 [%mine], %r2; bra over; other: st.global.u32 [%mine], %r1; over:", 8, 4*32 + 2*28 + 2*4, 4*40 + 2*32 + 2*8},
	} {
		body := ".shared .align 4 .b8 box[512]; mov.u32 %r4, box; mad.lo.u32 %r4, %tx, 4, %r4; setp.lt.u32 %p3, %ln, 4; setp.lt.u32 %p1, %n, %ln; mov.u32 %r1, %ln; mov.u32 %r2, 0;\nagain:\n" + c.body +
			"\nadd.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %n; @%p2 bra again; st.global.u32 [%mine], %r1;"
		g := newRig(t, kernel(body))
		out := g.buffer(40)
		for _, needs := range []event.Needs{0, event.NeedGlobal, event.NeedShared | event.NeedGlobal | event.NeedSync | event.NeedValues} {
			for seed := range uint64(3) {
				for _, block := range []int{32, 40} {
					count := func(n uint32) engine.Stats {
						l := g.prepare(launch{block: block, out: out, n: n})
						l.Sink, l.Needs, l.Seed = &discard{}, needs, seed
						s, err := runner{raw: true}.Run(t.Context(), l)
						if err != nil {
							t.Fatal(err)
						}
						return s
					}
					a, b := count(100), count(400)
					warps, lanes := c.warps, c.lanes
					if block == 40 {
						warps, lanes = 2*c.warps, c.wide
					}
					if got, want := fmt.Sprint(b.Warps-a.Warps, b.Lanes-a.Lanes), fmt.Sprint(300*warps, 300*lanes); got != want {
						t.Errorf("%s, needs %x, seed %d, %d threads: %s steps, want %s", c.name, needs, seed, block, got, want)
					}
				}
			}
		}
	}
}

// TestStuckEnds checks that a grid with a block that can never finish continues for afterStuck steps, however long
// other blocks would run.
func TestStuckEnds(t *testing.T) {
	g := newRig(t, kernel(`
	setp.ne.u32 %p1, %bx, 0;
	@%p1 bra count;
	bar.sync 1, 64;
count:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p2, %r2, %n;
	@%p2 bra count;
	st.global.u32 [%out], %r2;`))
	for _, e := range []engine.Engine{engine.NewRef(), New()} {
		for _, s := range []engine.Schedule{engine.Fair, engine.PCT} {
			l := g.prepare(launch{grid: 2, block: 32, n: 1 << 31})
			l.Schedule, l.MaxSteps = s, 3*engine.AfterStuck
			stats, err := e.Run(t.Context(), l)
			if !errors.Is(err, engine.ErrDeadlock) || stats.Warps < engine.AfterStuck || stats.Warps > engine.AfterStuck*5/4 {
				t.Errorf("%T, schedule %v: ended with %v after %d steps", e, s, err, stats.Warps)
			}
		}
	}
}

// TestShuffledWarps checks that with a seed any warp of a block may be the first, and any the second.
func TestShuffledWarps(t *testing.T) {
	g := newRig(t, kernel("st.global.u32 [%mine], 1;"))
	orders := map[string]int{}
	for seed := range uint64(60) {
		o := g.mustRun(launch{block: 96, out: g.buffer(96), set: func(l *engine.Launch) { l.Seed, l.Needs = 1+seed, event.NeedGlobal }})
		order := ""
		for _, l := range o.rec.lines {
			order += l[len("store w"):][:1]
		}
		orders[order]++
	}
	if len(orders) != 6 {
		t.Errorf("orders of three warps: %v", orders)
	}
}

// accessors are the warps of consecutive accesses.
type accessors []uint32

func (a *accessors) Events(b *event.Batch) {
	for i := range b.Events {
		*a = append(*a, b.Events[i].Warp)
	}
}

// TestGivesWay checks that a turn ends before a strong access if its time has passed, also in straight-line code, where
// nothing else ends it, and with schedule contended before some of the first strong accesses.
func TestGivesWay(t *testing.T) {
	const atomics = engine.Gives + 8
	g := newRig(t, kernel(strings.Repeat("\n\tatom.global.add.u32 %r1, [%out], 1;", atomics)))
	for _, e := range []engine.Engine{engine.NewRef(), New()} {
		changes := func(s engine.Schedule, seed uint64) (n int) { // changes of the warp between adjacent accesses
			var order accessors
			l := g.prepare(launch{grid: 2, block: 1, out: g.buffer(64)})
			l.Schedule, l.Seed, l.Needs = s, seed, event.NeedGlobal
			l.Sink = &order
			if _, err := e.Run(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if len(order) != 2*atomics {
				t.Fatalf("%T: %d atomics", e, len(order))
			}
			for i := range order[1:] {
				if order[i] != order[i+1] {
					n++
				}
			}
			return n
		}
		if n := changes(engine.Fair, 0); n != 1 {
			t.Errorf("%T, fair: %d changes", e, n)
		}
		if n := changes(engine.Contended, 0); n < engine.Gives/4 || n > 2*engine.Gives {
			t.Errorf("%T, contended: %d changes", e, n)
		}
		some := 0
		for seed := range uint64(40) {
			if changes(engine.Fair, seed+1) > 1 {
				some++
			}
		}
		if some < 5 {
			t.Errorf("%T: with %d of 40 seeds the atomics of two warps mix", e, some)
		}
	}
}

// TestArrivalsApart checks that in a cooperative launch all blocks see that they may leave a grid barrier before one of
// them arrives at the next, so that no block synchronises with another's operations between the two.
func TestArrivalsApart(t *testing.T) {
	src := prelude + entry("k", `
	.reg .b32 %a;
	.reg .b64 %x;
	.reg .pred %q;
	mov.u64 %x, %out;
	atom.add.release.gpu.global.u32 %a, [%x], 1;
first:
	ld.acquire.gpu.global.u32 %a, [%x];
	setp.lt.u32 %q, %a, 3;
	@%q bra first;
	atom.add.release.gpu.global.u32 %a, [%x], 1;
second:
	ld.acquire.gpu.global.u32 %a, [%x];
	setp.lt.u32 %q, %a, 6;
	@%q bra second;`)
	for name, e := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New()} {
		g := newRig(t, src)
		l := g.prepare(launch{grid: 3, out: g.buffer(4)})
		s := &addsAndPolls{}
		l.Sink, l.Needs, l.Cooperative = s, event.NeedGlobal, true
		if _, err := e.Run(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if s.adds != 6 || s.late > 0 {
			t.Errorf("%s: %d arrivals; %d polls of the first barrier come after an arrival at the second", name, s.adds, s.late)
		}
	}
}

// addsAndPolls counts atomic operations, and the loads of the first place after more than three of them.
type addsAndPolls struct {
	adds, late int
	first      uint32
}

func (s *addsAndPolls) Events(b *event.Batch) {
	for _, e := range b.Events {
		switch {
		case e.Kind == event.Atomic:
			s.adds++
		case e.Kind == event.Load && (s.first == 0 || e.Place == s.first):
			if s.first = e.Place; s.adds > 3 {
				s.late++
			}
		}
	}
}

// TestLaneOrder checks that lanes of a warp add to a word in order from the lowest, and that with schedule contended
// some upper lanes come first.
func TestLaneOrder(t *testing.T) {
	g := newRig(t, kernel("atom.global.add.u32 %r1, [%out], 1;\nst.global.u32 [%mine+4], %r1;"))
	for name, e := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New()} {
		for _, s := range []engine.Schedule{engine.Fair, engine.Contended} {
			for block := 1; block <= 32; block++ {
				out := g.buffer(33)
				l := g.prepare(launch{block: block, out: out})
				l.Schedule = s
				if _, err := e.Run(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				olds := g.words(out, block+1)[1:]
				turned := 0 // lanes that come before the lane below them
				for i := 1; i < block; i++ {
					switch olds[i] {
					case olds[i-1] + 1:
					case 0:
						turned++
					default:
						t.Fatalf("%s, schedule %v, %d lanes: %v", name, s, block, olds)
					}
				}
				want := 0
				if s == engine.Contended && block > 1 {
					want = 1
				}
				if turned != want || want == 1 && olds[0] != olds[block-1]+1 {
					t.Errorf("%s, schedule %v, %d lanes: %v", name, s, block, olds)
				}
			}
		}
	}
}

// TestSeparationsEnd checks that in a cooperative launch, blocks that poll a counter under a lock finish, although the
// holder of the lock releases it and acquires it again in the same turn, and turns end before releases.
func TestSeparationsEnd(t *testing.T) {
	g := newRig(t, kernel(`
	mov.u32 %r5, 1;
take:
	atom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra take;
	ld.relaxed.gpu.global.u32 %r2, [%out+4];
	add.u32 %r2, %r2, %r5;
	mov.u32 %r5, 0;
	st.relaxed.gpu.global.u32 [%out+4], %r2;
	atom.release.gpu.global.exch.b32 %r1, [%out], 0;
	setp.lt.u32 %p1, %r2, 3;
	@%p1 bra take;`))
	for name, e := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New()} {
		l := g.prepare(launch{block: 1, grid: 3, out: g.buffer(8)})
		l.Cooperative, l.MaxSteps = true, 10_000_000
		if _, err := e.Run(t.Context(), l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestYieldsBeforeStores checks that a turn may end before each strong store, whether or not lists execute the stores.
func TestYieldsBeforeStores(t *testing.T) {
	defer func(n int) { hotLists = n }(hotLists)
	hotLists = 1
	for _, at := range []string{"%mine", "%out"} {
		g := newRig(t, kernel(`
	mov.u32 %r1, %n;
again:
	st.relaxed.gpu.global.u32 [`+at+`], %r1;
	sub.u32 %r1, %r1, 1;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra again;`))
		var orders []string
		for _, e := range []func() engine.Engine{engine.NewRef, New, New} { // once so that there is code
			l := g.prepare(launch{grid: 2, block: 32, n: 12, out: g.buffer(64)})
			rec := &recorder{}
			l.Sink, l.Needs, l.Schedule = rec, event.NeedGlobal, engine.Contended
			if _, err := e().Run(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			order := ""
			for _, line := range rec.lines {
				order += strings.Fields(line)[1]
			}
			orders = append(orders, order)
		}
		if orders[1] != orders[0] || orders[2] != orders[0] {
			t.Errorf("%s: stores in the orders %v", at, orders)
		}
		if turns := strings.Count(orders[0], "w0w1") + strings.Count(orders[0], "w1w0"); turns < 4 {
			t.Errorf("%s: %d turns end between stores: %s", at, turns, orders[0])
		}
	}
}
