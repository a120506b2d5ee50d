package hb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// staging makes programs whose blocks do the same few things in shared memory between barriers again and again, which
// are then not judged anew, and now and then something else: another address or mask, one thing less, other
// synchronisation, strong accesses, exits.
type staging struct {
	*stream
	pick   func(n int) int
	warps  uint32 // of a block
	blocks uint32
	gone   map[uint32]uint32 // lanes that have exited, by warp
}

// sweep is what each warp of a block does: an access at addr + warp*far.
type sweep struct {
	event.Event
	far  uint64
	only int // a warp, or -1 for all
}

func (g *staging) sweep(place int) sweep {
	e := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Shared, Place: uint32(1 + place), Mask: ^uint32(0), Size: 4, Stride: 4}
	if g.pick(3) == 0 {
		e.Kind, e.Flags = event.Store, event.FlagWrite
	}
	far := []uint64{128, 128, 0, 64}[g.pick(4)]
	switch g.pick(6) {
	case 0:
		e.InRows(4, 0, 4)
	case 1:
		e.InRows(uint8(3+g.pick(2)), 4, int64(64*g.pick(3)))
	case 2:
		e.Stride = []int64{132, -4, 8, 0}[g.pick(4)]
		e.Addr = 256
	}
	if g.pick(6) == 0 {
		e.Size, e.Stride = 8, 8
	}
	e.Addr += uint64(g.pick(3)) * 128
	x := sweep{e, far, -1}
	if g.pick(8) == 0 {
		x.only = g.pick(4)
		x.Mask = []uint32{1, 0xffff, 0xffffffff}[g.pick(3)]
	}
	return x
}

// do performs a sweep by one warp.
func (g *staging) do(x *sweep, block, warp uint32) {
	if x.only >= 0 && uint32(x.only)%g.warps != warp {
		return
	}
	e := x.Event
	e.Warp = block*g.warps + warp
	e.Addr += uint64(warp) * x.far
	switch g.pick(60) {
	case 0:
		return
	case 1:
		e.Addr += 8
	case 2:
		if e.Affine() && e.Kind == event.Load {
			e.Mask = 0xff
		}
	case 3:
		e.Order = event.Volatile
	case 4:
		if g.pick(2) == 0 {
			e.Kind, e.Flags, e.Order, e.Scope, e.Size = event.Atomic, event.FlagRead|event.FlagWrite, event.Relaxed, event.ScopeCTA, 4
		}
	}
	if e.Mask &^= g.gone[e.Warp]; e.Mask == 0 || g.gone[e.Warp] != 0 && !e.Affine() {
		return
	}
	if g.pick(40) == 0 {
		var room [32]uint64
		list := g.Addresses(&e, &room)
		e.Flags = e.Flags&^event.FlagRows | event.FlagScattered
		e.Addr, e.Stride, e.RowShift, e.Side = 0, 0, 0, uint32(len(g.Addrs))
		g.Addrs = append(g.Addrs, list...)
	}
	if e.Kind == event.Store {
		e.Flags |= event.FlagValues
		e.Val = uint32(len(g.Values))
		for range 32 {
			g.Values = append(g.Values, uint64(g.pick(2)*g.pick(2)))
		}
	}
	g.add(e)
}

// odd does something else than accesses of shared memory.
func (g *staging) odd(block uint32) {
	warp := block*g.warps + uint32(g.pick(int(g.warps)))
	e := event.Event{Warp: warp, Mask: ^uint32(0) &^ g.gone[warp], Place: 50}
	if e.Mask == 0 {
		return
	}
	switch g.pick(9) {
	case 7:
		g.handOver(block, warp)
		return
	case 8: // producer and consumer
		other := block*g.warps + uint32(g.pick(int(g.warps)))
		if other == warp || g.gone[other] != 0 {
			return
		}
		e.Kind, e.Barrier = event.Arrive, 2
		g.add(e)
		e.Warp, e.Mask, e.Flags = other, ^uint32(0), event.FlagWait
		g.add(e)
		e.Kind, e.Flags = event.BarrierDone, 0
	case 0:
		e.Kind = event.WarpSync
	case 1:
		e.Kind = event.Reconverge
	case 2:
		e.Kind, e.Order, e.Scope = event.Fence, event.AcqRel, event.ScopeCTA
	case 3:
		e.Kind, e.Barrier = event.Arrive, 1
	case 4:
		e.Kind, e.Flags, e.Space, e.Size, e.Addr, e.Order, e.Scope = event.Atomic, event.FlagRead|event.FlagWrite, event.Global, 4, 0x4000, event.AcqRel, event.ScopeGPU
		e.Mask &= -e.Mask
	case 5:
		if g.pick(4) == 0 {
			e.Kind = event.Exit
			e.Mask &= []uint32{^uint32(0), 0xffff, 1}[g.pick(3)]
			g.gone[warp] |= e.Mask
		} else {
			e.Kind, e.Mask = event.BarrierDone, 1
			e.Barrier = 1
		}
	default:
		e.Kind, e.Flags, e.Space, e.Size, e.Stride, e.Addr = event.Load, event.FlagRead, event.Global, 4, 4, 0x8000
	}
	if e.Mask != 0 && e.Kind != event.None {
		g.add(e)
	}
}

// handOver lets a thread write and another of its block read what was written, after a flag in global memory, or too soon.
func (g *staging) handOver(block, warp uint32) {
	other := block*g.warps + uint32(g.pick(int(g.warps)))
	if g.gone[warp]|g.gone[other] != 0 {
		return
	}
	by := func(warp uint32, kind event.Kind, f func(e *event.Event)) {
		e := event.Event{Kind: kind, Warp: warp, Mask: 1, Place: 70 + uint32(kind), Space: event.Shared, Addr: 512, Size: 4, Flags: event.FlagRead}
		switch kind {
		case event.Store:
			e.Flags = event.FlagWrite
		case event.Fence:
			e = event.Event{Kind: kind, Warp: warp, Mask: 1, Place: 70, Order: event.AcqRel, Scope: event.ScopeCTA}
		}
		f(&e)
		g.add(e)
	}
	flag := func(e *event.Event) {
		e.Space, e.Addr, e.Order, e.Scope = event.Global, 0x5000+4*uint64(block), event.Relaxed, event.ScopeCTA
		e.Place += 10
		if e.Kind == event.Store {
			e.Flags |= event.FlagValues
			e.Val = uint32(len(g.Values))
			g.Values = append(g.Values, uint64(len(g.Values)))
		}
	}
	same := func(*event.Event) {}
	late := g.pick(6) == 0
	if !late {
		by(warp, event.Store, same)
	}
	by(warp, event.Fence, same)
	if late {
		by(warp, event.Store, same)
	}
	by(warp, event.Store, flag)
	by(other, event.Load, flag)
	if g.pick(6) > 0 {
		by(other, event.Fence, same)
	}
	by(other, event.Load, same)
}

// meet lets the threads of a block meet at a barrier, or all but one warp.
func (g *staging) meet(block uint32) {
	but := uint32(g.pick(12))
	for w := range g.warps {
		warp := block*g.warps + w
		if m := ^uint32(0) &^ g.gone[warp]; m != 0 && w != but {
			g.add(event.Event{Kind: event.Arrive, Warp: warp, Mask: m, Place: 60, Flags: event.FlagWait | event.FlagAligned})
		}
	}
	if but >= g.warps {
		g.add(event.Event{Kind: event.BarrierDone, Warp: block * g.warps, Mask: 1})
		return
	}
	// The one that is late comes too, after what it still does.
	warp := block*g.warps + but
	x := g.sweep(20)
	g.do(&x, block, but)
	if m := ^uint32(0) &^ g.gone[warp]; m != 0 {
		g.add(event.Event{Kind: event.Arrive, Warp: warp, Mask: m, Place: 60, Flags: event.FlagWait | event.FlagAligned})
	}
	g.add(event.Event{Kind: event.BarrierDone, Warp: block * g.warps, Mask: 1})
}

func stages(pick func(n int) int) *event.Batch {
	g := &staging{stream: &stream{}, pick: pick, gone: map[uint32]uint32{}}
	g.warps, g.blocks = 1+uint32(pick(3)), 1+uint32(pick(3))
	g.begin(g.blocks, 32*g.warps)
	var programs [][]sweep
	for n := 1 + pick(2); n > 0; n-- {
		var p []sweep
		for k := 1 + pick(3); k > 0; k-- {
			p = append(p, g.sweep(pick(9)))
		}
		programs = append(programs, p)
	}
	for n := 3 + pick(6); n > 0; n-- {
		p := programs[pick(len(programs))]
		for block := range g.blocks {
			if pick(2) == 0 { // warp by warp, or one thing after the other
				for w := range g.warps {
					for i := range p {
						g.do(&p[i], block, w)
					}
				}
			} else {
				for i := range p {
					for w := range g.warps {
						g.do(&p[i], block, w)
					}
				}
			}
			if pick(6) == 0 {
				g.odd(block)
				if pick(2) == 0 {
					x := p[pick(len(p))]
					g.do(&x, block, uint32(pick(int(g.warps))))
				}
			}
			if pick(9) > 0 {
				g.meet(block)
			}
		}
	}
	return &g.Batch
}

// inSeries says by series what warps do in shared memory.
func inSeries(b *event.Batch, pick func(n int) int) *event.Batch {
	out := *b
	out.Events, out.Values = nil, slices.Clone(b.Values)
	known := map[string]*event.Series{}
	fits := func(e, first *event.Event) bool {
		return e.Kind <= event.Store && e.Space == event.Shared && e.Order == event.Weak && e.Flags&event.FlagScattered == 0 &&
			e.Warp == first.Warp && e.Mask == first.Mask && e.Launch == first.Launch
	}
	for i := 0; i < len(b.Events); {
		first, n := &b.Events[i], 0
		for limit := pick(2) * (1 + pick(80)); n < limit && i+n < len(b.Events) && fits(&b.Events[i+n], first); n++ {
		}
		if n == 0 {
			out.Events = append(out.Events, *first)
			i++
			continue
		}
		x := &event.Series{}
		again := event.Event{Kind: event.Again, Launch: first.Launch, Warp: first.Warp, Mask: first.Mask, Side: uint32(len(out.Series)), Val: uint32(len(out.Values))}
		for _, e := range b.Events[i : i+n] {
			words := uint32(valueWords(&e))
			out.Values = append(out.Values, b.Values[e.Val:][:words]...)
			e.Warp, e.Val = 0, x.Words
			x.Words += words
			x.Events = append(x.Events, e)
		}
		key := fmt.Sprint(x.Events)
		if known[key] == nil {
			x.ID = uint32(1 + len(known))
			known[key] = x
		}
		out.Events, out.Series = append(out.Events, again), append(out.Series, known[key])
		i += n
	}
	return &out
}

// TestStages compares stages that are not judged anew with cells, and with the oracle where that is quick.
func TestStages(t *testing.T) {
	n := 12000
	if !testsize.Long() {
		n = 2500
	}
	clean, hits, broken, late := 0, 0, 0, 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		plain := stages(rng.IntN)
		b := oracle.Remember(plain)
		differs := func(b *event.Batch) bool {
			want := byCells(b, detect.ModelCUDA)
			rng := rand.New(rand.NewPCG(uint64(seed), 8))
			return races(b, detect.ModelCUDA) != want || races(inSeries(b, rng.IntN), detect.ModelCUDA) != want
		}
		if differs(b) {
			b := oracle.Remember(oracle.Shrink(plain, func(b *event.Batch) bool { return differs(oracle.Remember(b)) }))
			t.Fatalf("seed %d: stages differ from cells\n%s\nstages:\n%s\n\ncells:\n%s", seed, oracle.Print(b), races(b, detect.ModelCUDA), byCells(b, detect.ModelCUDA))
		}
		if seed%25 == 0 && oracle.Size(b) < 1500 {
			compareWithOracle(t, b, detect.ModelCUDA, fmt.Sprint("stages ", seed))
		}
		if seed%4 != 0 {
			continue
		}
		d := New(detect.Config{})
		d.Events(b)
		for _, l := range d.launches {
			hits += l.scripts.hits
			broken += l.scripts.broken
			if len(d.findings.Totals()) == 0 {
				clean++
			} else if l.scripts.hits > 0 {
				late++
			}
		}
	}
	n /= 4 // of which this was counted
	t.Logf("%d programs, %d without a race, %d with one beside stages known to have none; %d accesses not judged, %d stages broken", n, clean, late, hits, broken)
	if clean < n/20 || late < n/20 || hits < n || broken < n/4 {
		t.Error("nothing was tested")
	}
}
