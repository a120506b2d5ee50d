package barracuda

import (
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// format is a format in which the clock of a thread is stored (section 5.5.3, figure 5.9).
type format uint8

// The formats.
const (
	converged      format = iota // the whole warp is active: one own clock, one for the block
	diverged                     // some lanes are active: one clock for all other lanes
	nestedDiverged               // some lanes are active: a clock for each other lane
	sparseVC                     // single threads elsewhere are known as well
)

// format returns the format of v.
func (v *view) format(exist uint32) format {
	switch {
	case v.rest != nil:
		return sparseVC
	case v.nested != nil:
		return nestedDiverged
	case v.mask != exist:
		return diverged
	}
	return converged
}

// times are the own times of a thread at one of its accesses: as the figures count, and as the detector counts.
type times struct{ plain, stored int }

// TestClocks compares compressed clocks with full vector clocks. After every event of a random execution, each live
// thread must know exactly those accesses of each other thread that its full vector clock knows. Every format must
// occur.
func TestClocks(t *testing.T) {
	n := 400
	if !testsize.Long() {
		n = 100
	}
	for _, plus := range []bool{false, true} {
		var formats [sparseVC + 1]int
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

func compareClocks(t *testing.T, m *model, d *Detector, acts map[int][]times, formats *[sparseVC + 1]int, seed, i int) {
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
						if got := a.late(l, 1, uint32(u)>>5, 1<<(u&31), uint32(all[k].stored)) == 0; got != want {
							t.Errorf("seed %d, event %d: that thread %d knows thread %d at %v is %v by the clock as stored", seed, i, self, u, all[k], got)
							return
						}
					}
				}
			}
		}
	}
}

// fullClocks are vector clocks without compression: a map for each thread (000, section 5.2, calls them naive).
type fullClocks struct {
	wpb   int
	c     map[int]vc
	locks map[uint64]vc
	met   map[int][]int // by block: threads that wait
}

func (f *fullClocks) join(threads []int) {
	all := vc{}
	for _, t := range threads {
		all.join(f.c[t])
	}
	for _, t := range threads {
		f.c[t] = all.copy()
		f.c[t][t]++
	}
}

// apply applies an event of benchStream to the clocks, and looks at them as judging an access would.
func (f *fullClocks) apply(b *event.Batch, e *event.Event) {
	var threads []int
	for _, l := range lanesOf(e.Mask) {
		threads = append(threads, int(e.Warp)*32+l)
	}
	block := int(e.Warp) / f.wpb
	switch e.Kind {
	case event.WarpSync:
		f.join(threads)
	case event.Arrive:
		f.met[block] = append(f.met[block], threads...)
	case event.BarrierDone:
		f.join(f.met[block])
		f.met[block] = nil
	case event.Atomic:
		t := threads[0]
		if e.RMW == event.CompareAndSwap {
			f.c[t].join(f.locks[e.Addr])
			return
		}
		f.locks[e.Addr] = f.c[t].copy()
		f.c[t][t]++
	case event.Load:
		for _, t := range threads {
			if f.c[t][t^1] > 1<<20 {
				panic("BUG: a clock runs")
			}
		}
	}
}

// benchStream is blocks that synchronise as kernels do: rounds of reads, bar.warp.sync, a lock acquired by one thread
// of a warp, and barriers.
func benchStream(blocks, warps uint32, rounds int) *event.Batch {
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Grid: event.Dim3{X: blocks, Y: 1, Z: 1}, Block: event.Dim3{X: 32 * warps, Y: 1, Z: 1}}}}
	emit := func(e event.Event) {
		e.Launch, e.Size, e.Space = 1, 4, event.Global
		b.Events = append(b.Events, e)
	}
	emit(event.Event{Kind: event.KernelBegin})
	for range rounds {
		for w := range blocks * warps {
			lock := 0x1000 + 64*uint64(w/warps)
			all := event.Event{Warp: w, Mask: ^uint32(0)}
			read, sync, cas, fence, exch := all, all, all, all, all
			read.Kind, read.Addr, read.Stride = event.Load, 1<<20+128*uint64(w), 4
			sync.Kind = event.WarpSync
			cas.Kind, cas.RMW, cas.Addr, cas.Mask, cas.Order, cas.Scope = event.Atomic, event.CompareAndSwap, lock, 1, event.Relaxed, event.ScopeGPU
			fence.Kind, fence.Order, fence.Scope, fence.Mask = event.Fence, event.SC, event.ScopeGPU, 1
			exch = cas
			exch.RMW = event.Exchange
			for _, e := range []event.Event{read, sync, cas, fence, read, fence, exch} {
				emit(e)
			}
			emit(event.Event{Kind: event.Arrive, Warp: w, Mask: ^uint32(0), Flags: event.FlagWait})
			if w%warps == warps-1 {
				emit(event.Event{Kind: event.BarrierDone, Warp: w, Mask: 1})
			}
		}
	}
	emit(event.Event{Kind: event.KernelEnd})
	return b
}

// BenchmarkClocks compares barracuda+, including judging, with only maintaining uncompressed clocks.
func BenchmarkClocks(bench *testing.B) {
	b := benchStream(4, 4, 8)
	bench.Run("compressed", func(bench *testing.B) {
		for bench.Loop() {
			newTest(true, "off").Events(b)
		}
	})
	bench.Run("full", func(bench *testing.B) {
		for bench.Loop() {
			f := &fullClocks{wpb: 4, c: map[int]vc{}, locks: map[uint64]vc{}, met: map[int][]int{}}
			for t := range 4 * 4 * 32 {
				f.c[t] = vc{t: 1}
			}
			for i := range b.Events {
				f.apply(b, &b.Events[i])
			}
		}
	})
}
