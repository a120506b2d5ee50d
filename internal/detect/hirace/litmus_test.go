package hirace

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/event"
)

// do is litmus.Do with barriers at which threads arrive.
func do(b *event.Batch, line string) *event.Batch {
	for op := range strings.SplitSeq(line, ";") {
		var warp uint32
		if n, _ := fmt.Sscanf(strings.TrimSpace(op), "%d bar", &warp); n == 1 && strings.HasSuffix(op, "bar") {
			barrier(b, warp&^1, warp|1)
		} else {
			litmus.Do(b, op)
		}
	}
	return b
}

// TestLitmus has short streams with the kinds of their races.
func TestLitmus(t *testing.T) {
	for _, c := range []struct{ what, line, want, published string }{
		{"figure 1: scenario 1", "0 ld; 2 ld; 0 st", "unordered", "="},
		{"scenario 1, the other order", "0 ld; 0 st; 2 ld", "unordered", "="},
		{"x += v alone", "0 ld; 0 st; 0 ld; 0 st", "", "="},
		{"figure 4: scenario 2", "0 ld; 0.1 ld; 0 bar; 0 st", "", "="},
		{"scenario 2, another block reads too", "0 ld; 0.1 ld; 2 ld; 0 bar; 0 st", "unordered", "="},
		{"scenario 2, another block reads later", "0 ld; 0.1 ld; 0 bar; 0 st; 2 ld", "unordered", "="},
		{"barrier of the other block", "0 st; 2 bar; 1 ld", "missing-barrier", "="},
		{"listing 3: the reader before the last", "0.1 ld; 0 ld; 0 st", "missing-barrier", "="},
		{"many readers", "0 ld; 0.1 ld; 0.2 ld; 1 ld; 0.1 ld; 0 sync; 0.1 st", "missing-barrier", "="},
		{"a warp barrier orders the warp", "0 st; 0 sync; 0.1 ld; 0.2 ld; 0 sync; 0.3 st", "", "="},
		{"and nobody else", "0 st; 0 sync; 0.1 ld; 1 ld", "missing-barrier", "="},
		{"a block barrier, then warps on their own", "0 st; 0 bar; 0 ld; 1 ld; 0 sync; 0.1 ld; 1.1 st", "missing-barrier", "="},
		{"lanes of a warp", "0 st; 0.1 st", "missing-barrier", "="},
		{"atomics", "0 add; 0.1 addb; 1 add", "", "="},
		{"atomics of two blocks", "0 add; 2 add; 0 add", "", "="},
		{"a scope too small", "0 addb; 2 add", "insufficient-atomic-scope", "="},
		{"a scope too small, device first", "0 add; 2 addb", "insufficient-atomic-scope", "="},
		{"a scope too small, then one that is not", "0 addb; 0 add; 2 add", "insufficient-atomic-scope", "="},
		{"atomic and plain", "0 add; 1 ld", "atomic-mixed-with-plain", "="},
		{"atomic, barrier and plain", "0 add; 1 add; 0 bar; 1 st", "", "="},
		{"a fence orders nothing here", "0 stv; 0 fence; 2 ldv", "volatile", "="},
		{"one race for each location", "0 st; 1 st; 0 st; 2 ld", "missing-barrier", "="},
		{"shared memory is a block's own", "0 sts 1; 2 sts 1; 3 lds 2", "", "="},
		{"shared memory", "0 sts 1; 1 lds 1", "missing-barrier", "="},
		// The entries in which the published table is wrong.
		{"read, barrier, atomics of the warp", "0 ld; 0 sync; 0.1 add; 0.2 add", "", "atomic-mixed-with-plain"},
		{"read, barrier, atomics of the block", "0 ld; 0 bar; 0 addb; 1 addb", "", "atomic-mixed-with-plain"},
		{"atomics, barrier, atomic, read", "0 addb; 1 addb; 0 bar; 1 addb; 1 ld", "", "atomic-mixed-with-plain"},
		{"write, barrier, atomics of two lanes, read", "0 st; 0 sync; 0.1 add; 0.2 add; 0.2 ld", "atomic-mixed-with-plain", ""},
	} {
		for option, want := range map[string]string{"derived": c.want, "published": strings.Replace(c.published, "=", c.want, 1)} {
			d := Spec.New(detect.Config{Options: map[string]string{"machine": option}})
			d.Events(do(litmus.Launch(2), c.line))
			if got := kinds(d.Findings()); got != want {
				t.Errorf("%s: %q gives %q with the %s machine, want %q", c.what, c.line, got, option, want)
			}
		}
	}
}

// TestBytes lets narrow accesses share a word.
func TestBytes(t *testing.T) {
	at := func(b *event.Batch, warp uint32, kind event.Kind, offset uint64, size uint8) {
		litmus.Add(b, event.Event{Kind: kind, Warp: warp, Mask: 1, Addr: litmus.Base + offset, Size: size, Space: event.Global})
	}
	for _, c := range []struct {
		far  uint64
		race bool
	}{{0, true}, {1, false}, {3, false}} {
		b := litmus.Launch(2)
		at(b, 0, event.Store, 0, 1)
		at(b, 1, event.Store, c.far, 1)
		d := Spec.New(detect.Config{})
		d.Events(b)
		if got := len(d.Findings()) > 0; got != c.race {
			t.Errorf("bytes %d apart: race %t", c.far, got)
		}
		at(b, 2, event.Load, 0, 4)
		d = Spec.New(detect.Config{})
		d.Events(b)
		if len(d.Findings()) == 0 {
			t.Errorf("bytes %d apart: a word over them does not race", c.far)
		}
	}
}

// TestPartialBarriers checks barriers of some threads: they order their participants and no others.
func TestPartialBarriers(t *testing.T) {
	for _, c := range []struct {
		what  string
		build func(b *event.Batch)
		races bool
	}{
		{"lanes of a mask", func(b *event.Batch) {
			do(b, "0 st")
			litmus.Add(b, event.Event{Kind: event.WarpSync, Mask: 3})
			do(b, "0.1 ld")
		}, false},
		{"a lane beside it", func(b *event.Batch) {
			do(b, "0 st")
			litmus.Add(b, event.Event{Kind: event.WarpSync, Mask: 3})
			do(b, "0.2 ld")
		}, true},
		{"two masks in turn", func(b *event.Batch) {
			litmus.Add(b, event.Event{Kind: event.WarpSync, Mask: 3})
			do(b, "0 st")
			litmus.Add(b, event.Event{Kind: event.WarpSync, Mask: 5})
			do(b, "0.2 ld")
		}, false},
		{"exited lanes", func(b *event.Batch) {
			litmus.Add(b, event.Event{Kind: event.Exit, Mask: 1 << 31})
			do(b, "0 st")
			litmus.Add(b, event.Event{Kind: event.WarpSync, Mask: 1<<31 - 1})
			do(b, "0.2 ld")
		}, false},
		{"one warp arrives and does not wait", func(b *event.Batch) {
			do(b, "0 st")
			litmus.Add(b, event.Event{Kind: event.Arrive, Warp: 0, Mask: ^uint32(0), Barrier: 3, Aux: 64})
			litmus.Add(b, event.Event{Kind: event.Arrive, Warp: 1, Mask: ^uint32(0), Barrier: 3, Aux: 64, Flags: event.FlagWait})
			litmus.Add(b, event.Event{Kind: event.BarrierDone, Warp: 1, Mask: ^uint32(0), Barrier: 3})
			do(b, "1 ld")
		}, false},
	} {
		b := litmus.Launch(2)
		c.build(b)
		d := Spec.New(detect.Config{})
		d.Events(b)
		if got := len(d.Findings()) > 0; got != c.races {
			t.Errorf("%s: race %t", c.what, got)
		}
	}
}

// TestOverflow checks that checking stops at the barrier at which a clock overflows, and that a note says so and
// earlier findings are kept.
func TestOverflow(t *testing.T) {
	for _, sync := range []string{"0 bar", "0 sync"} {
		for n, stops := range map[int]bool{15: false, 16: true} {
			b := do(litmus.Launch(2), "0 st 1; 1 st 1"+strings.Repeat("; "+sync, n)+"; 0 st 2; 2 st 2")
			d := Spec.New(detect.Config{Options: map[string]string{"clockbits": "4"}})
			d.Events(b)
			races, notes := len(d.Findings()), d.(detect.Noted).Notes()
			if stops != (races == 1) || stops != (len(notes) == 1) {
				t.Errorf("%d of %q: %d races, notes %q", n, sync, races, notes)
			}
			if stops && !strings.Contains(notes[0], "kernel k: a clock of 4 bits overflowed") {
				t.Errorf("notes %q", notes)
			}
		}
	}
}
