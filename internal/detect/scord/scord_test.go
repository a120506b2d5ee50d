package scord

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// launched returns the stream of a litmus line.
func launched(blocks uint32, line string) *event.Batch {
	b := litmus.Launch(blocks)
	if line != "" {
		litmus.Do(b, line)
	}
	return b
}

// notesOf returns the classes of races that a detector finds, sorted.
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

// TestTables has a case for each condition of tables III and IV, and for its absence.
func TestTables(t *testing.T) {
	for _, c := range []struct{ what, line, want string }{
		{"III a: first access", "0 st; 1 st 1", ""},
		{"III b: program order", "0 st; 0 ld; 0 st", ""},
		{"III c: barrier", "0 st; 0 bar; 1 ld; 0 bar; 0 st", ""},
		{"III c: not after another block's read", "0 ld; 2 ld; 2 bar; 3 st", "missing block fence"},
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
		{"IV c: weak after strong", "0 stv; 0 ld; 0 fence; 2 ldv", "not strong access"},
		{"IV d", "0 addb; 2 addb", "scoped atomic"},
		{"IV d: device first", "0 add; 2 addb", ""}, // a blind spot, as published
		{"IV d: block first", "0 addb; 2 add", "scoped atomic"},
		{"IV d: one block", "0 addb; 1 addb", ""},
		{"IV d: then a load", "0 addb; 2 ldv", "scoped atomic"},
		{"IV d: then a load, fenced", "0 addb; 0 fence; 2 ldv", "scoped atomic"},
		{"IV d: then a store, fenced", "0 addb; 0 fence; 2 stv", "scoped atomic"},
		{"IV d: then a load of the block, fenced", "0 addb; 0 fence; 1 ldv", ""},
		{"IV d: the last access alone", "0 addb; 0 ldv; 0 fence; 2 ldv", ""},
		{"atomic and load", "0 add; 2 ldv", "missing device fence"},
		{"atomic and load, fenced", "0 add; 0 fence; 2 ldv", ""},
		{"IV e", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 ldv", "missing common lock on load"},
		{"IV f", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 8; 2 fence; 2 stv", "missing common lock on store"},
		{"common lock", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 ldv; 2 stv; 2 fence; 2 exch 9", ""},
		{"a device lock that a block fence does not complete", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fenceb; 2 stv", "missing common lock on store"},
		{"given back", "0 cas 9; 0 fence; 0 fence; 0 exch 9; 0 stv; 0 fence; 2 cas 9; 2 fence; 2 stv", "missing common lock on store"},
		{"lock forgotten after its section", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 stv; 2 fence; 2 exch 9; 2 stv", "missing common lock on store"},
		{"store under a lock after a warp of the block", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 1 cas 9; 1 fence; 1 stv; 1 fence; 1 exch 9; 1 stv",
			"missing common lock on store"},
		{"load under a lock: still Modified", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 ldv; 2 fence; 2 exch 9; 0 ldv",
			"missing common lock on load"},
		{"one accessor: the first reader is forgotten", "0 ldv; 1 ldv; 1 fence; 2 stv", ""},
		{"atomics of two blocks share", "0 add; 2 add; 2 bar; 3 ldv", "missing block fence"},
		{"atomics of two warps share", "0 add; 1 add; 1 cas 9; 1 fence; 1 stv", "missing common lock on store"},
	} {
		for _, text := range []string{"scord", "scord:reset=off"} {
			if got := strings.Join(notesOf(chosen(t, text), launched(2, c.line)), ", "); got != c.want {
				t.Errorf("%s, %s: %q gives %q, want %q", text, c.what, c.line, got, c.want)
			}
		}
	}
}

// chosen makes a detector with options.
func chosen(t *testing.T, text string) detect.Detector {
	t.Helper()
	s, err := detect.Choose([]detect.Spec{Spec, Cached}, text)
	if err != nil {
		t.Fatal(err)
	}
	return s.New(detect.Config{})
}

// TestReset has a case for each flag that the authors' release resets and the letter of the tables does not.
func TestReset(t *testing.T) {
	for _, c := range []struct{ what, line, released, letter string }{
		{"barrier: Modified", "0 st; 0 bar; 1 ld; 0 ld; 1 ld", "", "missing block fence, missing block fence"},
		{"barrier: Modified, and the writer reads first", "0 st; 0 bar; 0 ld; 1 ld; 0 ld", "", "missing block fence, missing block fence"},
		{"barrier: Strong", "0 st; 0 bar; 0 stv; 0 fence; 1 ldv", "", "not strong access"},
		{"barrier: BlkShared", "0 ldv; 1 ldv; 1 bar; 1 ldv; 1 cas 9; 1 fence; 1 stv", "", "missing common lock on store"},
		{"barrier: a store is Modified", "0 ld; 0 bar; 0 st; 1 ld", "missing block fence", "missing block fence"},
		{"program order: a store is Modified", "0 ldv; 0 stv; 1 ldv", "missing block fence", "missing block fence"},
		{"program order: two loads are not", "0 ldv; 0 ldv; 1 ldv", "", ""},
		{"program order: Strong", "0 ld; 0 stv; 0 fence; 2 ldv", "", "not strong access"},
		{"program order: Modified by a fenced load", "0 stv; 0 fence; 0 ldv; 2 ldv", "", "missing device fence"},
		{"program order: Modified by a load behind a block fence", "0 stv; 0 fenceb; 0 ldv; 2 ldv", "", "missing device fence"},
		{"program order: not by a load without a fence", "0 stv; 0 ldv; 2 ldv", "missing device fence", "missing device fence"},
		{"program order: not by a load without a fence since", "0 stv; 0 fence; 0 stv; 0 ldv; 2 ldv", "missing device fence", "missing device fence"},
		{"fenced load: Modified", "0 stv; 0 fence; 2 ldv; 3 ldv; 0 ldv", "", "missing block fence"},
		{"fenced load: still Strong", "0 stv; 0 fence; 2 ldv; 2 fence; 3 stv", "", ""},
		{"fenced load: the shared flags", "0 stv; 0 fence; 2 ldv; 2 bar; 3 st; 3 bar; 2 ld", "", "missing block fence"},
		{"load of what nobody wrote: Strong stays unset", "0 ldv; 2 ld; 2 fence; 3 stv", "not strong access", "not strong access"},
		{"own load of what is shared: the shared flags", "0 add; 2 add; 2 ldv; 2 bar; 3 ldv", "", "missing block fence"},
		{"own load of what is shared: not Modified", "0 add; 2 add; 2 ldv; 3 ldv", "missing block fence", "missing block fence"},
		{"own load of what is shared: Strong", "0 add; 2 add; 2 ld; 2 fence; 3 ldv", "not strong access", "not strong access"},
		{"store: Strong stays unset", "0 ld; 2 ld; 2 stv; 2 fence; 3 ldv", "not strong access", "not strong access"},
		{"store: the shared flags", "0 ldv; 2 ldv; 2 fence; 4 stv; 4 bar; 5 ld", "", "missing block fence"},
		{"atomic after a store: the shared flags", "0 stv; 0 fence; 2 add; 2 bar; 3 ldv", "", "missing block fence"},
		{"store after an atomic: the shared flags", "0 add; 0 fence; 2 stv; 2 bar; 3 ldv", "", "missing block fence"},
		{"atomic under a lock after a store: the shared flags stay", "0 stv; 0 fence; 2 cas 9; 2 fence; 2 add; 2 bar; 3 ldv", "missing block fence", "missing block fence"},
		{"atomic after a store under a lock: the shared flags stay", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 add; 2 bar; 3 ldv",
			"missing block fence", "missing block fence"},
		{"what a block loads after a barrier is not Modified to another", "0 st; 0 bar; 1 ld; 2 ld", "", "missing device fence"},
		{"race: Modified", "0 stv; 2 ldv; 3 ldv", "missing device fence", "missing block fence, missing device fence"},
		{"III a: all three flags", "0 ldv; 1 ldv; 2 ldv; 2 fence; 3 stv; 0 st", "missing device fence", ""},
		{"III a: all three flags, and then none", "0 ldv; 1 ldv; 2 ldv; 2 fence; 3 stv; 0 st; 2 ld", "missing device fence, missing device fence", "missing device fence"},
		{"III a: one shared flag at a time, the device's after", "0 add; 1 add; 2 add; 3 ld", "missing block fence", ""},
		{"III a: one shared flag at a time, the device's before", "0 add; 2 add; 3 add; 0 ld", "missing device fence", ""},
	} {
		for text, want := range map[string]string{"scord": c.released, "scord:reset=off": c.letter} {
			if got := strings.Join(notesOf(chosen(t, text), launched(3, c.line)), ", "); got != want {
				t.Errorf("%s, %s: %q gives %q, want %q", text, c.what, c.line, got, want)
			}
		}
	}
}

// TestBlockLocks makes two warps acquire a lock of block scope at one address, with fences wide enough for any two. The
// atomic operations on the lock race if the blocks differ.
func TestBlockLocks(t *testing.T) {
	line := func(other int) string {
		return fmt.Sprintf("0 casb 9; 0 fence; 0 stv; 0 fence; 0 exchb 9; %[1]d casb 9; %[1]d fence; %[1]d stv; %[1]d fence; %[1]d exchb 9", other)
	}
	for _, c := range []struct {
		text  string
		other int
		want  string
	}{
		{"scord", 1, ""},
		{"scord", 2, "missing common lock on store, scoped atomic"},
		{"scord:block-lock=per-address", 1, ""},
		{"scord:block-lock=per-address", 2, "scoped atomic"},
		{"scord-cached:block-lock=per-address", 2, "scoped atomic"},
	} {
		if got := strings.Join(notesOf(chosen(t, c.text), launched(2, line(c.other))), ", "); got != c.want {
			t.Errorf("%s, warps 0 and %d: %q, want %q", c.text, c.other, got, c.want)
		}
	}
}

// TestSameInstruction makes lanes of one store overlap.
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

// TestCounters checks that fence IDs wrap around: after 64 fences, or 8 with IDs of 3 bits, there is a false alarm, as the
// paper says.
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

// TestGranularity makes neighbouring locations share a word.
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

// TestCache makes two locations share an entry: a race on one of them is missed if an access to the other comes
// between.
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

// lanewise does what Detector.access does, lane by lane with a cell for each granule.
func (d *Detector) lanewise(b *event.Batch, e *event.Event, cells map[uint64]*cell) {
	now := d.arrival(e)
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		now.address = b.AddrOf(e, lane)
		for n := now.address / d.granule; n*d.granule < now.address+uint64(e.Size); n++ {
			at := n
			if d.entries != 0 {
				at, now.tag = n%d.entries, word(n/d.entries%16)<<tagShift
			}
			if cells[at] == nil {
				cells[at] = new(cell)
			}
			d.cell(cells[at], e, &now, lane)
		}
	}
}

// randomAccess adds an access, usually by a whole warp in order.
func randomAccess(rng *rand.Rand, b *event.Batch) {
	e := event.Event{Kind: event.Load, Flags: event.FlagRead, Warp: uint32(rng.IntN(6)), Place: 1 + uint32(rng.IntN(9)), Size: 4, Stride: 4,
		Mask: ^uint32(0), Space: event.Global, Addr: litmus.Base + uint64(rng.IntN(5))*64, Order: event.Order(rng.IntN(2))}
	switch rng.IntN(8) {
	case 0, 1, 2:
		e.Kind, e.Flags = event.Store, event.FlagWrite
	case 3:
		e.Kind, e.Flags, e.Order, e.Scope = event.Atomic, event.FlagRead|event.FlagWrite, event.Relaxed, event.ScopeCTA+event.Scope(2*rng.IntN(2))
	}
	switch rng.IntN(12) {
	case 0:
		e.Mask = rng.Uint32() | 1
	case 1:
		e.Mask, e.Addr = 1<<rng.IntN(32), e.Addr+uint64(rng.IntN(32))*4
	case 2, 3:
		e.Addr += 4 * uint64(rng.IntN(9))
	case 4:
		e.Size = uint8(1 << rng.IntN(5))
		e.Stride = int64(e.Size)
		if rng.IntN(2) == 0 {
			e.Mask, e.Addr = rng.Uint32()|rng.Uint32()|1, e.Addr+rng.Uint64N(8)
		}
	case 5:
		e.Stride, e.Addr = 0, e.Addr+uint64(rng.IntN(32))
	case 10, 11:
		e.Addr += 4 * uint64(rng.IntN(9))
		e.InRows(uint8(1+rng.IntN(4)), 4*int64(rng.IntN(2)), 4*int64(rng.IntN(40)))
	case 6:
		e.Mask, e.Stride = 0xffff<<rng.IntN(17), int64(rng.IntN(5)-2)*4
	case 7:
		e.Flags |= event.FlagScattered
		e.Side = uint32(len(b.Addrs))
		for range 32 {
			b.Addrs = append(b.Addrs, litmus.Base+uint64(rng.IntN(90))*4)
		}
	case 8: // two rows of a tile
		e.Flags |= event.FlagScattered
		e.Side = uint32(len(b.Addrs))
		at, far, step := rng.Uint64N(9), rng.Uint64N(40), rng.Uint64N(2)
		for i := range uint64(32) {
			b.Addrs = append(b.Addrs, litmus.Base+(at+i%16*step+i/16*far)*4)
		}
	}
	litmus.Add(b, e)
}

// TestLines compares findings and words with those of an implementation with a cell for each granule, lane by lane, on
// random streams.
func TestLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, text := range []string{"scord", "scord:granularity=8", "scord-cached:memory=4K", "scord-cached:memory=4K:granularity=16",
		"scord:reset=off", "scord:reset=off:granularity=16"} {
		spec, err := detect.Choose([]detect.Spec{Spec, Cached}, text)
		if err != nil {
			t.Fatal(err)
		}
		compact, races := 0, 0
		for range 150 {
			b := launched(3, "")
			for range 40 {
				switch rng.IntN(9) {
				case 0:
					litmus.Add(b, event.Event{Kind: event.Fence, Warp: uint32(rng.IntN(6)), Mask: ^uint32(0), Order: event.SC,
						Scope: event.ScopeCTA + event.Scope(2*rng.IntN(2))})
				case 1:
					litmus.Add(b, event.Event{Kind: event.BarrierDone, Warp: uint32(rng.IntN(6)), Mask: 1})
				case 2:
					litmus.Do(b, fmt.Sprintf([]string{"%d cas 200", "%d exch 200"}[rng.IntN(2)], rng.IntN(6)))
				default:
					randomAccess(rng, b)
				}
			}
			x, y, cells := spec.New(detect.Config{}).(*Detector), spec.New(detect.Config{}).(*Detector), map[uint64]*cell{}
			x.Events(b)
			for i := range b.Events {
				e := &b.Events[i]
				if e.Kind == event.Load || e.Kind == event.Store || e.Kind == event.Atomic {
					y.lanewise(b, e, cells)
					if e.Kind == event.Atomic {
						y.lock(b, e)
					}
					continue
				}
				y.Events(&event.Batch{Events: b.Events[i : i+1], Launches: b.Launches})
			}
			if got, want := fmt.Sprint(x.Findings()), fmt.Sprint(y.Findings()); got != want {
				t.Fatalf("%s gives\n%v\nand lane by lane\n%v", text, got, want)
			}
			races += len(x.Findings())
			for n, c := range cells {
				l, i := x.memory.Global(n * x.granule)
				if x.memory.At(l, i) != *c {
					t.Fatalf("%s: granule %d is %+v, want %+v", text, n, x.memory.At(l, i), *c)
				}
				if first, run := x.memory.Run(l, 0, shadow.LineCells); run > 8 && first.word != 0 {
					compact++
				}
			}
		}
		if compact < 50 && text == "scord" || races < 100 {
			t.Errorf("%s: only %d granules in runs, %d races", text, compact, races)
		}
	}
}
