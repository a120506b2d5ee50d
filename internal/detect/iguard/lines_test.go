package iguard

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// place is a granule of global memory (window 0), or of the shared window of a block, numbered from 1.
type place struct {
	window uint32
	n      uint64
}

// lanewise does what Detector.access does, lane by lane with a cell for each granule: it judges all lanes, and then
// records all.
func (d *Detector) lanewise(b *event.Batch, e *event.Event, cells map[place]*cell) {
	w := &d.warps[e.Warp]
	now := d.arrival(e)
	for _, judging := range []bool{true, false} {
		for m := e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			addr := b.AddrOf(e, lane)
			now.thread, now.filter = e.Warp*32+uint32(lane), w.filter(lane)
			for n := addr / granule; n*granule < addr+uint64(e.Size); n++ {
				p := place{n: n}
				if e.Space == event.Shared {
					p.window = 1 + e.Warp/d.perBlock
				}
				if cells[p] == nil {
					cells[p] = new(cell)
				}
				if judging {
					d.judge(cells[p], e, &now, addr)
				} else {
					cells[p].note(e, &now)
				}
			}
		}
	}
}

// randomAccess adds an access, usually by a whole warp in order.
func randomAccess(rng *rand.Rand, b *event.Batch) {
	base := uint64(litmus.Base)
	e := event.Event{Kind: event.Load, Flags: event.FlagRead, Warp: uint32(rng.IntN(6)), Place: 1 + uint32(rng.IntN(9)), Size: 4, Stride: 4,
		Mask: ^uint32(0), Space: event.Global, Order: event.Order(rng.IntN(2))}
	if rng.IntN(3) == 0 {
		base, e.Space = 0, event.Shared
	}
	e.Addr = base + 256 + uint64(rng.IntN(5))*64
	switch rng.IntN(8) {
	case 0, 1, 2:
		e.Kind, e.Flags = event.Store, event.FlagWrite
	case 3:
		e.Kind, e.Flags, e.Order, e.Scope = event.Atomic, event.FlagRead|event.FlagWrite, event.Relaxed, event.ScopeCTA+event.Scope(2*rng.IntN(2))
	}
	switch rng.IntN(14) {
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
		e.Stride, e.Addr, e.Size = 0, e.Addr+uint64(rng.IntN(32)), uint8(1<<rng.IntN(5))
	case 10, 11:
		e.Addr += 4 * uint64(rng.IntN(9))
		e.InRows(uint8(1+rng.IntN(4)), 4*int64(rng.IntN(2)), 4*int64(rng.IntN(40)))
	case 6:
		e.Mask, e.Stride = 0xffff<<rng.IntN(17), int64(rng.IntN(5)-2)*4
	case 7, 8, 9: // two rows of a tile, or random addresses
		e.Flags |= event.FlagScattered
		e.Side = uint32(len(b.Addrs))
		at, far, step := rng.Uint64N(9), rng.Uint64N(40), rng.Uint64N(3)
		for i := range uint64(32) {
			if step == 2 {
				at = rng.Uint64N(60)
			}
			b.Addrs = append(b.Addrs, base+(at+i%16*(step&1)+i/16*far)*4)
		}
	}
	litmus.Add(b, e)
	if e.Affine() && e.Warp < 5 && e.Stride >= 0 && rng.IntN(4) == 0 { // the next warp continues
		e.Warp, e.Addr = e.Warp+1, e.Addr+uint64(32*e.Stride)
		litmus.Add(b, e)
	}
}

// TestLines compares findings and cells with those of an implementation with a cell for each granule, lane by lane, on
// random streams.
func TestLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	compact, races := 0, map[string]int{}
	for range 400 {
		b := launchedRandom(rng)
		x, y, cells := Spec.New(detect.Config{}).(*Detector), Spec.New(detect.Config{}).(*Detector), map[place]*cell{}
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
			t.Fatalf("by runs\n%v\nand lane by lane\n%v", got, want)
		}
		for _, f := range x.Findings() {
			races[string(f.Kind)]++
		}
		for p, c := range cells {
			l, i := x.memory.Global(p.n * granule)
			if p.window > 0 {
				l, i = x.memory.Shared(shadow.Window{Launch: 1, Block: p.window - 1}, p.n*granule)
			}
			if x.memory.At(l, i) != *c {
				t.Fatalf("granule %v is %+v, want %+v", p, x.memory.At(l, i), *c)
			}
			if _, n := x.memory.Run(l, 0, shadow.LineCells); n > 8 {
				compact++
			}
		}
	}
	if compact < 1000 || len(races) < 4 {
		t.Errorf("%d granules in runs; races of %v", compact, races)
	}
}

// launchedRandom makes a launch whose lanes sometimes part, acquire locks and synchronise.
func launchedRandom(rng *rand.Rand) *event.Batch {
	b := litmus.Launch(3)
	for range 40 {
		warp := uint32(rng.IntN(6))
		switch rng.IntN(14) {
		case 0:
			litmus.Add(b, event.Event{Kind: event.Fence, Warp: warp, Mask: ^uint32(0), Order: event.SC, Scope: event.ScopeCTA + event.Scope(2*rng.IntN(2))})
		case 1, 2:
			litmus.Add(b, event.Event{Kind: event.BarrierDone, Warp: warp, Mask: 1})
		case 3:
			litmus.Add(b, event.Event{Kind: event.WarpSync, Warp: warp, Mask: ^uint32(0)})
		case 4:
			litmus.Do(b, fmt.Sprintf([]string{"%d cas 200; %[1]d fence", "%d exch 200", "%d.5 cas 201; %[1]d.5 fence"}[rng.IntN(3)], warp))
		case 5:
			if rng.IntN(6) == 0 {
				litmus.Add(b, event.Event{Kind: event.Exit, Warp: warp, Mask: 3 << 30})
			}
		default:
			randomAccess(rng, b)
		}
	}
	return b
}

// TestBlockEnds checks that the shared memory of a block is dropped when its threads have exited.
func TestBlockEnds(t *testing.T) {
	d := Spec.New(detect.Config{}).(*Detector)
	b := litmus.Launch(1)
	litmus.Do(b, "0 sts 1; 0.1 sts 900")
	d.Events(b)
	window := shadow.Window{Launch: 1, Block: 0}
	written := func() bool { l, i := d.memory.Shared(window, 4); return d.memory.At(l, i) != (cell{}) }
	if !written() {
		t.Fatal("nothing was written")
	}
	for warp := range uint32(2) {
		litmus.Add(b, event.Event{Kind: event.Exit, Warp: warp, Mask: ^uint32(0)})
	}
	d.Events(&event.Batch{Events: b.Events[3:4]})
	if !written() {
		t.Error("forgotten while a warp runs")
	}
	d.Events(&event.Batch{Events: b.Events[4:]})
	if written() {
		t.Error("still known")
	}
}
