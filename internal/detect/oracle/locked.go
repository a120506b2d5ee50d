package oracle

import "fencepost.dev/fencepost/internal/event"

// Locked makes the stream of a random program whose threads, of several warps and blocks, access a few words in critical
// sections of one lock, one after the other: most take it properly, some forget a fence or the lock, or use a scope that
// is too narrow. What pick returns decides everything, as for Random.
func Locked(pick func(n int) int) *event.Batch {
	g := &generator{pick: pick, b: &event.Batch{}, agents: 1 + pick(2), space: 0x1000, span: 8}
	care := 2 + pick(30) // one step in so many of a section is wrong
	for i := 4 + pick(20); i > 0; i-- {
		if len(g.running) == 0 || g.pick(15) == 0 {
			g.scatterHost(3)
			continue
		}
		l := g.running[g.pick(len(g.running))]
		wpb := l.info.WarpsPerBlock()
		block := l.blocks[g.pick(len(l.blocks))]
		e := event.Event{Launch: l.info.ID, Warp: block*wpb + uint32(g.pick(int(wpb)))}
		w := l.warps[e.Warp]
		free := w.live &^ w.waits
		e.Mask = free & (1 << uint(g.pick(3)))
		switch {
		case free == 0:
		case g.pick(12) == 0:
			e.Mask, e.Place = free, 9
			g.wholeBarrier(l, block, e)
		case e.Mask != 0:
			g.section(e, free, care)
		}
	}
	for _, l := range g.running {
		g.emit(event.Event{Kind: event.KernelEnd, Launch: l.info.ID})
	}
	return g.b
}

// section makes a critical section of a thread. The other lanes of free now and then do in step what it does, elsewhere.
func (g *generator) section(e event.Event, free uint32, care int) {
	wrong := func() bool { return g.pick(care) == 0 }
	scope := func() event.Scope {
		if wrong() {
			return event.ScopeCTA
		}
		return event.ScopeGPU
	}
	fence := func(place uint32) {
		if wrong() {
			return
		}
		f := e
		f.Kind, f.Order, f.Scope, f.Place = event.Fence, []event.Order{event.AcqRel, event.SC}[g.pick(2)], scope(), place
		g.emit(f)
	}
	lock := func(place uint32) {
		if wrong() {
			return
		}
		a := e
		a.Kind, a.Order, a.Scope, a.Place = event.Atomic, event.Relaxed, scope(), place
		a.Space, a.Size, a.Addr, a.Flags = event.Global, 4, g.wordAt(4), event.FlagRead|event.FlagWrite
		g.emit(a)
	}
	lock(1)
	fence(2)
	for i := 1 + g.pick(4); i > 0; i-- {
		x := e
		x.Space, x.Size, x.Place = event.Global, 4, 3+uint32(g.pick(5))
		x.Kind, x.Flags = event.Load, event.FlagRead
		switch x.Place {
		case 5, 6:
			x.Kind, x.Flags = event.Store, event.FlagWrite
		case 7:
			x.Kind, x.Flags, x.Order, x.Scope = event.Atomic, event.FlagRead|event.FlagWrite, event.Relaxed, event.ScopeCTA
		}
		x.Addr = g.wordAt(g.pick(3))
		if x.Place == 6 {
			x.Flags |= event.FlagValues
			x.Val = uint32(len(g.b.Values))
			g.b.Values = append(g.b.Values, uint64(g.pick(4)/3))
		}
		if g.pick(6) == 0 && x.Place != 6 {
			x.Mask, x.Stride = free, 128+4
		}
		g.emit(x)
	}
	fence(8)
	lock(9)
}
