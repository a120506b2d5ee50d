package warp

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// TestStacksOfRecursion checks that functions that call each other are distinguished by their callers, even if their
// calls are at the same place, and that a call that is already on the stack is named once.
func TestStacksOfRecursion(t *testing.T) {
	calls := func(name, callee string) string {
		return `
.func ` + name + ` (.param .b64 at, .param .b32 n)
{
	.reg .b32 %r1;
	.reg .b64 %rd1;
	.param .b64 a;
	.param .b32 b;
	ld.param.u64 %rd1, [at];
	ld.param.u32 %r1, [n];
	st.param.b64 [a], %rd1;
	st.param.b32 [b], %r1;
	call ` + callee + `, (a, b);
	ret;
}`
	}
	src := prelude + ".func c (.param .b64 at, .param .b32 n);" + calls("a", "c") + calls("b", "c") + `
.func c (.param .b64 at, .param .b32 n)
{
	.reg .b32 %r1;
	.reg .b64 %rd1;
	.reg .pred %p;
	.param .b64 a;
	.param .b32 m;
	ld.param.u64 %rd1, [at];
	ld.param.u32 %r1, [n];
	setp.eq.u32 %p, %r1, 0;
	@%p bra last;
	sub.u32 %r1, %r1, 1;
	st.param.b64 [a], %rd1;
	st.param.b32 [m], %r1;
	call b, (a, m);
	ret;
last:
	st.global.u32 [%rd1], 1;
	ret;
}
` + entry("k", `
	.param .b64 a;
	.param .b32 m;
	st.param.b64 [a], %mine;
	st.param.b32 [m], %n;
	call a, (a, m);`)
	for name, e := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New()} {
		for depth, want := range []string{"c a k", "c b c a k", "c b c a k", "c b c a k"} {
			t.Run(fmt.Sprint(name, depth), func(t *testing.T) {
				g := newRig(t, src)
				l := g.prepare(launch{out: g.buffer(32), n: uint32(depth)})
				s := &storePlaces{}
				l.Sink, l.Needs = s, event.NeedGlobal
				if _, err := e.Run(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				if len(s.places) != 1 {
					t.Fatalf("%d stores, want 1", len(s.places))
				}
				var got []string
				for _, f := range g.places.Frames(s.places[0]) {
					got = append(got, f.Function)
				}
				if stack := strings.Join(got, " "); stack != want {
					t.Errorf("the stack is %q, want %q", stack, want)
				}
			})
		}
	}
}

// storePlaces records the places of stores.
type storePlaces struct{ places []uint32 }

func (s *storePlaces) Events(b *event.Batch) {
	for _, e := range b.Events {
		if e.Kind == event.Store {
			s.places = append(s.places, e.Place)
		}
	}
}

// TestFirstPlace checks that places are numbered from 1, and that 0 is none.
func TestFirstPlace(t *testing.T) {
	g := newRig(t, kernel(""))
	table, k := places.New(), g.prog.Kernel("k")
	if base := table.Enter(0, k); base != 1 {
		t.Errorf("the first kernel begins at place %d", base)
	}
	if fs := table.Frames(1); len(fs) != 1 || len(table.Frames(0)) != 0 {
		t.Errorf("place 1 is %+v, place 0 %+v", fs, table.Frames(0))
	}
}

// TestArms checks when two lanes can be at two places: on two arms of a branch of the function of both, or of a
// function that calls one of them; in two functions if a call is indirect; and anywhere in a recursive function.
func TestArms(t *testing.T) {
	store := func(line string) string { return "\tst.global.u32 [%rd1], " + line + ";\n" }
	function := func(name, body string) string {
		return ".func " + name + " (.param .b64 at)\n{\n.reg .b64 %rd1; .reg .pred %p; .param .b64 a;\nld.param.u64 %rd1, [at]; st.param.b64 [a], %rd1;\n" + body + "ret;\n}\n"
	}
	src := prelude + ".func deep (.param .b64 at);\n" + function("one", store("1")) + function("two", store("2")) +
		function("deep", "setp.ne.u64 %p, %rd1, 0;\n@%p bra L;\n"+store("3")+"bra J;\nL: call deep, (a);\nJ:\n"+store("4")) +
		".global .u64 table[2] = {one, two};\n" + entry("k", `
	.param .b64 a;
	st.param.b64 [a], %mine;
	setp.eq.u32 %p1, %ln, 0;
	@%p1 bra L;
	call one, (a);
	st.global.u32 [%mine], 10;
	bra J;
L:	call two, (a);
J:	st.global.u32 [%mine], 11;
	proto: .callprototype _ (.param .b64 _);
	ld.global.u64 %rd2, [table];
	call %rd2, (a), proto;
	call deep, (a);`)
	g := newRig(t, src)
	k := g.prog.Kernel("k")
	fn := func(name string) *isa.Func { return g.prog.Module.ByName[name] }
	// place returns the place of a store of a value in a frame.
	place := func(base uint32, f *isa.Func, value string) uint32 {
		for i := range f.Insts {
			if src := f.Insts[i].Source; f.Insts[i].Class == isa.Store && src.Mods == ".global.u32" && src.Operands[1].String() == value {
				return base + uint32(i)
			}
		}
		t.Fatalf("no store of %s", value)
		return 0
	}
	p := g.places
	base := p.Enter(0, k)
	var calls []uint32
	for i := range k.Insts {
		if k.Insts[i].Class == isa.Call {
			calls = append(calls, base+uint32(i))
		}
	}
	at := map[string]uint32{"else": place(base, k, "10"), "after": place(base, k, "11")}
	for name, x := range map[string]struct {
		call  int
		fn    string
		value string
	}{"else, one": {0, "one", "1"}, "then, two": {1, "two", "2"}, "by pointer, one": {2, "one", "1"}, "by pointer, two": {2, "two", "2"},
		"deep": {3, "deep", "3"}, "deep, after": {3, "deep", "4"}} {
		at[name] = place(p.Enter(calls[x.call], fn(x.fn)), fn(x.fn), x.value)
	}
	parted := map[[2]string]bool{{"else", "then, two"}: true, {"else, one", "then, two"}: true, {"by pointer, one", "by pointer, two"}: true,
		{"deep", "deep, after"}: true, {"deep", "deep"}: true, {"deep, after", "deep, after"}: true}
	for x, a := range at {
		for y, b := range at {
			if got, want := detect.Parted(p.Arms(a), p.Arms(b)), parted[[2]string{x, y}] || parted[[2]string{y, x}]; got != want {
				t.Errorf("%s and %s: parted %t, want %t (%v, %v)", x, y, got, want, p.Arms(a), p.Arms(b))
			}
		}
	}
}

// TestReconvergedWarp checks that a launch reports when all live lanes of a warp execute together again, if lanes can
// be on two arms of a branch more than once.
func TestReconvergedWarp(t *testing.T) {
	const branch = `
	setp.eq.u32 %p1, %ln, 0;
	@%p1 bra L;
	st.global.u32 [%mine], 1;
	bra J;
L:	st.global.u32 [%mine], 2;
J:	add.u32 %r1, %r1, 1;`
	const loop = `
	mov.u32 %r1, 0;
H:` + branch + `
	setp.lt.u32 %p2, %r1, 2;
	@%p2 bra H;`
	const end = `
	st.global.u32 [%mine], 3;`
	for name, c := range map[string]struct {
		body string
		want int
	}{"once": {"mov.u32 %r1, 0;" + branch + end, 0}, "in a loop": {loop + end, 2},
		"where a lane has exited":    {"setp.eq.u32 %p3, %ln, 3;\n@%p3 exit;\n" + loop + end, 2},
		"where a lane is at its end": {"setp.eq.u32 %p3, %ln, 3;\n@%p3 bra E;\n" + loop + end + "\nE:", 2}} {
		for schedule, s := range map[string]engine.Schedule{"fair": engine.Fair, "lockstep": engine.Lockstep} {
			if s == engine.Lockstep && strings.HasSuffix(name, "at its end") {
				continue // the event is about some of the lanes only
			}
			for emulator, e := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New()} {
				g := newRig(t, kernel(c.body))
				l := g.prepare(launch{out: g.buffer(32), block: 4})
				r := &recorder{}
				l.Sink, l.Needs, l.Schedule = r, event.NeedGlobal|event.NeedReconverge, s
				if _, err := e.Run(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				// Between a store on one arm, and a store on another arm by other lanes in the next iteration, the
				// lanes reconverge.
				got := 0
				for _, line := range r.lines {
					if strings.HasPrefix(line, "reconverge") {
						got++
					}
				}
				if got != c.want {
					t.Errorf("%s, schedule %s, engine %s: %d reconvergences, want %d\n%s", name, schedule, emulator, got, c.want, strings.Join(r.lines, "\n"))
				}
			}
		}
	}
}

// TestDiscards checks that the result of an atomic operation may be the result of a function, which the caller uses or
// not.
func TestDiscards(t *testing.T) {
	src := prelude + `
.func (.param .b32 old) add (.param .b64 at)
{
	.reg .b32 %r1;
	.reg .b64 %rd1;
	ld.param.u64 %rd1, [at];
	atom.global.add.u32 %r1, [%rd1], 1;
	st.param.b32 [old], %r1;
	ret;
}
` + entry("k", `
	{
	.param .b64 a;
	.param .b32 r;
	.reg .b32 %x;
	st.param.b64 [a], %mine;
	call (r), add, (a);
	ld.param.b32 %x, [r];
	}
	{
	.param .b64 a;
	.param .b32 r;
	.reg .b32 %x;
	st.param.b64 [a], %mine;
	call (r), add, (a);
	ld.param.b32 %x, [r];
	st.global.u32 [%mine], %x;
	}`)
	for name, e := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New()} {
		g := newRig(t, src)
		l := g.prepare(launch{out: g.buffer(32)})
		s := &atomicPlaces{}
		l.Sink, l.Needs = s, event.NeedGlobal
		if _, err := e.Run(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if len(s.places) != 2 || !g.places.Discards(s.places[0]) || g.places.Discards(s.places[1]) {
			t.Errorf("%s: of the atomic operations at %d the first or not the second alone is said to be discarded", name, s.places)
		}
	}
}

// atomicPlaces records the places of atomic operations.
type atomicPlaces struct{ places []uint32 }

func (s *atomicPlaces) Events(b *event.Batch) {
	for _, e := range b.Events {
		if e.Kind == event.Atomic {
			s.places = append(s.places, e.Place)
		}
	}
}
