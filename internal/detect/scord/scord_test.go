package scord

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/event"
)

// launched gives the stream of a litmus line.
func launched(blocks uint32, line string) *event.Batch {
	b := litmus.Launch(blocks)
	if line != "" {
		litmus.Do(b, line)
	}
	return b
}

// notesOf are the classes of races that a detector finds, sorted.
func notesOf(d detect.Detector, b *event.Batch) []string {
	d.Events(b)
	var out []string
	for _, f := range d.Findings() {
		at := strings.LastIndex(f.Message, ": ")
		out = append(out, strings.TrimSuffix(f.Message[at+2:], ")"))
	}
	slices.Sort(out)
	return out
}

// TestTables has a case for each condition of tables III and IV, and its absence.
func TestTables(t *testing.T) {
	for _, c := range []struct{ what, line, want string }{
		{"III a: first access", "0 st; 1 st 1", ""},
		{"III b: program order", "0 st; 0 ld; 0 st", ""},
		{"III c: barrier", "0 st; 0 bar; 1 ld; 0 bar; 0 st", ""},
		{"III c: not after another block's read", "0 ld; 2 ld; 2 bar; 3 st; 3 bar; 2 ld", "missing block fence, missing block fence"},
		{"reads alone", "0 ld; 1 ld; 2 ld; 3 ld", ""},
		{"IV a", "0 stv; 1 ldv", "missing block fence"},
		{"IV a: a fence of either scope", "0 stv; 0 fenceb; 1 ldv", ""},
		{"IV a: device", "0 stv; 0 fence; 1 ldv", ""},
		{"IV a: the other warp's fence does not help", "0 stv; 1 fence; 1 ldv", "missing block fence"},
		{"IV a: write after read", "0 ldv; 1 stv", "missing block fence"},
		{"IV b", "0 stv; 2 ldv", "missing device fence"},
		{"IV b: a block fence is too little", "0 stv; 0 fenceb; 2 ldv", "missing device fence"},
		{"IV b: a device fence", "0 stv; 0 fence; 2 ldv", ""},
		{"IV c: weak store", "0 st; 0 fence; 2 ldv", "not strong access"},
		{"IV c: weak load", "0 stv; 0 fence; 2 ld", "not strong access"},
		{"IV c: weak at any time before", "0 ld; 0 stv; 0 fence; 2 ldv", "not strong access"},
		{"IV d", "0 addb; 2 addb", "scoped atomic"},
		{"IV d: device first", "0 add; 2 addb", ""}, // blind, as published
		{"IV d: block first", "0 addb; 2 add", "scoped atomic"},
		{"IV d: one block", "0 addb; 1 addb", ""},
		{"atomic and load", "0 add; 2 ldv", "missing device fence"},
		{"atomic and load, fenced", "0 add; 0 fence; 2 ldv", ""},
		{"IV e", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 ldv", "missing common lock on load"},
		{"IV f", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 8; 2 fence; 2 stv", "missing common lock on store"},
		{"common lock", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 ldv; 2 stv; 2 fence; 2 exch 9", ""},
		{"a device lock that a block fence does not complete", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fenceb; 2 stv", "missing common lock on store"},
		{"given back", "0 cas 9; 0 fence; 0 fence; 0 exch 9; 0 stv; 0 fence; 2 cas 9; 2 fence; 2 stv", "missing common lock on store"},
		{"lock forgotten after its section", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 stv; 2 fence; 2 exch 9; 2 stv", "missing common lock on store"},
		{"one accessor: the first reader is forgotten", "0 ldv; 1 ldv; 1 fence; 2 stv", ""},
	} {
		d := Spec.New(detect.Config{})
		if got := strings.Join(notesOf(d, launched(2, c.line)), ", "); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.what, c.line, got, c.want)
		}
	}
}

// TestSameInstruction has lanes of one store meet.
func TestSameInstruction(t *testing.T) {
	extended, err := detect.Choose([]detect.Spec{Spec, Cached}, "scord:same-instruction=report")
	if err != nil {
		t.Fatal(err)
	}
	store := func(stride int64, mask uint32, addrs ...uint64) *event.Batch {
		b := launched(1, "")
		e := event.Event{Kind: event.Store, Flags: event.FlagWrite, Mask: mask, Addr: litmus.Base, Stride: stride, Size: 4, Space: event.Global}
		if addrs != nil {
			e.Flags |= event.FlagScattered
			b.Addrs = addrs
		}
		litmus.Add(b, e)
		return b
	}
	for _, c := range []struct {
		what  string
		batch *event.Batch
		want  string
	}{
		{"one word", store(0, 0xf0), "same instruction"},
		{"one word, one lane", store(0, 1), ""},
		{"neighbours", store(4, ^uint32(0)), ""},
		{"backwards", store(-4, ^uint32(0)), ""},
		{"half a word on", store(2, 3), "same instruction"},
		{"scattered, two meet", store(0, 7, litmus.Base, litmus.Base+64, litmus.Base), "same instruction"},
		{"scattered, none meet", store(0, 7, litmus.Base, litmus.Base+64, litmus.Base+4), ""},
		{"loads do not race", launched(1, "0 ld"), ""},
		{"an atomic operation", launched(1, "0 add"), ""},
	} {
		if got := strings.Join(notesOf(extended.New(detect.Config{}), c.batch), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if got := notesOf(Spec.New(detect.Config{}), c.batch); got != nil {
			t.Errorf("%s, as published: %q", c.what, got)
		}
	}
}

// TestCounters wraps counters around: the race that is seen after 64 fences is none, and the one not seen after 256
// barriers is one, as the paper says.
func TestCounters(t *testing.T) {
	fenced := func(n int) string { return "0 stv" + strings.Repeat("; 0 fence", n) + "; 2 ldv" }
	narrow, err := detect.Choose([]detect.Spec{Spec, Cached}, "scord:fencebits=3")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec detect.Spec
		n    int
		race bool
	}{{Spec, 63, false}, {Spec, 64, true}, {Spec, 65, false}, {narrow, 7, false}, {narrow, 8, true}} {
		if got := notesOf(c.spec.New(detect.Config{}), launched(2, fenced(c.n))); (len(got) > 0) != c.race {
			t.Errorf("%d fences: %v", c.n, got)
		}
	}
}

// TestGranularity has neighbours share a word.
func TestGranularity(t *testing.T) {
	for _, c := range []struct {
		text string
		far  int
		race bool
	}{{"scord", 1, false}, {"scord:granularity=8", 1, true}, {"scord:granularity=8", 2, false}, {"scord:granularity=16", 3, true}} {
		s, err := detect.Choose([]detect.Spec{Spec}, c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := notesOf(s.New(detect.Config{}), launched(2, fmt.Sprintf("0 stv 0; 2 ldv %d", c.far))); (len(got) > 0) != c.race {
			t.Errorf("%s, %d words apart: %v", c.text, c.far, got)
		}
	}
}

// TestCache lets two locations share an entry: the race on one of them is missed when the other comes between.
func TestCache(t *testing.T) {
	s, err := detect.Choose([]detect.Spec{Cached}, "scord-cached:memory=4K")
	if err != nil {
		t.Fatal(err)
	}
	for line, race := range map[string]bool{"0 stv 0; 2 ldv 0": true, "0 stv 0; 0 stv 64; 2 ldv 0": false, "0 stv 0; 0 stv 65; 2 ldv 0": true,
		"0 stv 0; 2 ldv 64": false} {
		if got := notesOf(s.New(detect.Config{}), launched(2, line)); (len(got) > 0) != race {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// TestRows compares whole warps in lane order with the same lanes one by one.
func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		whole, apart := launched(3, ""), launched(3, "")
		for range 30 {
			e := event.Event{Kind: event.Load, Flags: event.FlagRead, Warp: uint32(rng.IntN(6)), Place: 1 + uint32(rng.IntN(9)), Size: 4, Stride: 4,
				Mask: ^uint32(0), Space: event.Global, Addr: litmus.Base + uint64(rng.IntN(40))*4, Order: event.Order(rng.IntN(2))}
			switch rng.IntN(6) {
			case 0, 1:
				e.Kind, e.Flags = event.Store, event.FlagWrite
			case 2:
				e = event.Event{Kind: event.Fence, Warp: e.Warp, Mask: ^uint32(0), Order: event.SC, Scope: event.ScopeCTA + event.Scope(2*rng.IntN(2))}
			case 3:
				e = event.Event{Kind: event.BarrierDone, Warp: e.Warp, Mask: 1}
			}
			litmus.Add(whole, e)
			if e.Size == 0 {
				litmus.Add(apart, e)
				continue
			}
			for lane := range 32 {
				one := e
				one.Mask, one.Addr = 1<<lane, e.Addr+uint64(lane)*4
				litmus.Add(apart, one)
			}
		}
		a, b := Spec.New(detect.Config{}), Spec.New(detect.Config{})
		a.Events(whole)
		b.Events(apart)
		x, y := a.Findings(), b.Findings()
		if fmt.Sprint(x) != fmt.Sprint(y) {
			t.Fatalf("whole warps give\n%v\nand their lanes\n%v", x, y)
		}
	}
}
