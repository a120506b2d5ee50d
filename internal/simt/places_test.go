package simt

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestStacksOfRecursion: functions that call each other are told apart by who called whom, though their calls stand at the
// same place of each; a call that is on the stack already is named once.
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
	for name, e := range map[string]Engine{"ref": NewRef(), "warp": NewWarp()} {
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

// storePlaces keeps the places of stores.
type storePlaces struct{ places []uint32 }

func (s *storePlaces) Events(b *event.Batch) {
	for _, e := range b.Events {
		if e.Kind == event.Store {
			s.places = append(s.places, e.Place)
		}
	}
}

// TestFirstPlace: places are numbered from 1; 0 is none.
func TestFirstPlace(t *testing.T) {
	g := newRig(t, kernel(""))
	table, k := NewPlaceTable(), g.prog.Kernel("k")
	if base := table.enter(0, k); base != 1 {
		t.Errorf("the first kernel begins at place %d", base)
	}
	if fs := table.Frames(1); len(fs) != 1 || len(table.Frames(0)) != 0 {
		t.Errorf("place 1 is %+v, place 0 %+v", fs, table.Frames(0))
	}
}
