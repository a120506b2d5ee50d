package barracuda

import (
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// times are the own times of a thread at one of its accesses: as the figures count, and as the detector does.
type times struct{ plain, stored int }

// TestClocks holds the compressed clocks equal to plain vector clocks: after every event of a random execution each live
// thread knows of the accesses of each other one exactly those that its full vector clock says. Every format must occur.
func TestClocks(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 100
	}
	for _, plus := range []bool{false, true} {
		var formats [SparseVC + 1]int
		for seed := range n {
			b := randomProgram(rand.New(rand.NewPCG(uint64(seed), 9)), !plus)
			d := newTest(plus, "off")
			acts := map[int][]times{} // by thread
			runModel(b, plus, false, func(m *model, i int) {
				e := &b.Events[i]
				if e.Kind >= event.Load && e.Kind <= event.Atomic {
					for _, l := range lanesOf(e.Mask) {
						u := int(e.Warp)*32 + l
						acts[u] = append(acts[u], times{m.acted[u], int(d.warp(e.Warp).of(l).local)})
					}
				}
				part := *b
				part.Events = b.Events[i : i+1]
				d.Events(&part)
				compareClocks(t, m, d, acts, &formats, seed, i)
			})
			if t.Failed() {
				t.Fatal(show(b))
			}
		}
		for f, count := range formats {
			if count == 0 {
				t.Errorf("plus %v: no clock is in format %d", plus, f)
			}
		}
	}
}

func compareClocks(t *testing.T, m *model, d *Detector, acts map[int][]times, formats *[SparseVC + 1]int, seed, i int) {
	for _, c := range d.resident {
		for _, w := range c.warps {
			if w == nil {
				continue
			}
			for _, l := range lanesOf(w.live) {
				v := w.of(l)
				formats[v.format(w.exist)]++
				a := access{w: w, v: v, wpb: d.wpb, depth: d.depth}
				self := int(w.number)*32 + l
				for u, all := range acts {
					if u == self {
						continue
					}
					for k := max(0, len(all)-3); k < len(all); k++ {
						want := m.c[self][u] >= all[k].plain
						if got := a.ordered(l, uint32(u), uint32(all[k].stored)); got != want {
							t.Errorf("seed %d, event %d: that thread %d knows thread %d at %v is %v by the clock as stored", seed, i, self, u, all[k], got)
							return
						}
					}
				}
			}
		}
	}
}
