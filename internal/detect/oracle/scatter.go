package oracle

import "fencepost.dev/fencepost/internal/event"

// Scatter makes the stream of a random program whose lanes access words far apart, mostly by relaxed atomics and weak
// loads, as histograms and graph searches do. It has many short launches in several streams, and sometimes
// synchronisation, plain writes or partial overlaps. pick is as for Random.
func Scatter(pick func(n int) int) *event.Batch {
	g := &generator{pick: pick, b: &event.Batch{}, agents: 1 + pick(3), space: 0x1000, span: 8}
	words := 1 + pick(5)
	wild := 1 + pick(12) // one in wild steps is not an atomic or a load
	loads := pick(4)
	for i := 8 + pick(50); i > 0; i-- {
		g.scatterStep(words, loads, wild)
	}
	for _, l := range g.running {
		g.emit(event.Event{Kind: event.KernelEnd, Launch: l.info.ID})
	}
	return g.b
}

// wordAt returns the address of a word. Each word is in a line of its own, at a different offset.
func (g *generator) wordAt(i int) uint64 { return g.space + uint64(i)*(128+4) }

func (g *generator) scatterStep(words, loads, wild int) {
	if len(g.running) == 0 || g.pick(7) == 0 {
		g.scatterHost(words)
		return
	}
	l := g.running[g.pick(len(g.running))]
	wpb := l.info.WarpsPerBlock()
	block := l.blocks[g.pick(len(l.blocks))]
	e := event.Event{Launch: l.info.ID, Warp: block*wpb + uint32(g.pick(int(wpb))), Place: 1 + uint32(g.pick(5))}
	w := l.warps[e.Warp]
	e.Mask = w.live &^ w.waits
	if m := e.Mask & uint32(g.pick(8)); m != 0 {
		e.Mask = m
	}
	if e.Mask == 0 {
		return
	}
	e.Space, e.Size = event.Global, 4
	if g.pick(4) == 0 {
		e.Space = event.Shared
	}
	if g.pick(wild) == 0 {
		g.wild(l, block, e, words)
		return
	}
	switch k := g.pick(6); {
	case k < loads:
		e.Kind, e.Flags = event.Load, event.FlagRead
	default:
		e.Kind, e.Order, e.Scope = event.Atomic, event.Relaxed, event.ScopeGPU
		e.Flags = []event.Flags{event.FlagRead | event.FlagWrite, event.FlagRead, event.FlagRead | event.FlagWrite | event.FlagRed, event.FlagRead | event.FlagWrite}[g.pick(4)]
	}
	g.scattered(e, words)
}

// wild makes a step that is not an atomic or a load.
func (g *generator) wild(l *runningLaunch, block uint32, e event.Event, words int) {
	switch g.pick(9) {
	case 0, 1:
		e.Kind, e.Order, e.Scope = event.Fence, []event.Order{event.AcqRel, event.SC}[g.pick(2)], g.scope()
		g.emit(e)
	case 2:
		g.wholeBarrier(l, block, e)
	case 3:
		e.Kind = event.WarpSync
		g.emit(e)
	case 4, 5, 6:
		e.Kind, e.Flags = event.Store, event.FlagWrite
		if g.pick(2) == 0 {
			e.Kind, e.Flags = event.Load, event.FlagRead
		}
		e.Size = []uint8{4, 4, 4, 8, 2}[g.pick(5)]
		if g.pick(4) == 0 {
			e.Order, e.Scope = event.Relaxed, g.scope()
		}
		g.scattered(e, words)
	default:
		e.Kind, e.Order, e.Scope = event.Atomic, []event.Order{event.Relaxed, event.AcqRel, event.Relaxed}[g.pick(3)], g.scope()
		e.Flags = event.FlagRead | event.FlagWrite
		e.Size = []uint8{4, 4, 8}[g.pick(3)]
		g.scattered(e, words)
	}
}

// scattered gives an access addresses and values.
func (g *generator) scattered(e event.Event, words int) {
	if e.Size == 4 && g.pick(3) == 0 { // in lane order, or all at one word
		e.Addr, e.Stride = g.wordAt(g.pick(words)), int64(4*g.pick(2))
	} else {
		g.scatter(&e, words)
	}
	if e.Kind == event.Store && g.pick(8) > 0 {
		e.Flags |= event.FlagValues
		e.Val = uint32(len(g.b.Values))
		for range lanesOf(e.Mask) {
			g.b.Values = append(g.b.Values, uint64(g.pick(2)))
		}
	}
	g.emit(e)
}

// scatter gives each lane of e the address of a random word.
func (g *generator) scatter(e *event.Event, words int) {
	e.Flags |= event.FlagScattered
	e.Side = uint32(len(g.b.Addrs))
	for range lanesOf(e.Mask) {
		at := g.wordAt(g.pick(words))
		if e.Size != 4 {
			at &^= 7
		}
		g.b.Addrs = append(g.b.Addrs, at)
	}
}

// scatterHost makes an agent begin or end a launch, or perform a host operation.
func (g *generator) scatterHost(words int) {
	a := uint32(g.pick(g.agents))
	for i, l := range g.running {
		if l.info.Agent != a {
			continue
		}
		if g.pick(2) == 0 {
			g.emit(event.Event{Kind: event.KernelEnd, Launch: l.info.ID})
			g.running = append(g.running[:i], g.running[i+1:]...)
		}
		return
	}
	if g.pick(3) > 0 && g.ids < 9 {
		g.begin(a)
		return
	}
	h := event.HostOp{Agent: a, Token: uint64(g.pick(2)), Name: "copy"}
	h.Kind = []event.HostKind{event.HostSignal, event.HostWait, event.HostSignal, event.HostWait, event.HostRead, event.HostWrite}[g.pick(6)]
	h.Addr, h.Size = g.wordAt(g.pick(words))&^7, 1+uint64(g.pick(8))
	g.emit(event.Event{Kind: event.Host, Side: uint32(len(g.b.Hosts))})
	g.b.Hosts = append(g.b.Hosts, h)
}

// Counted makes a random program whose warps count together. Nearly all accesses are relaxed atomics, in lane order or
// all at one word, in two neighbouring lines of global and shared memory. pick is as for Random.
func Counted(pick func(n int) int) *event.Batch {
	g := &generator{pick: pick, b: &event.Batch{}, agents: 1 + pick(2), space: 0x1000 - 8, span: 8}
	wild := 2 + pick(8)
	base := []int{0, 0, 2}[pick(3)]
	for i := 8 + pick(50); i > 0; i-- {
		g.countStep(wild, base)
	}
	for _, l := range g.running {
		g.emit(event.Event{Kind: event.KernelEnd, Launch: l.info.ID})
	}
	return g.b
}

// countStep makes a step. One in wild steps is not a relaxed read-modify-write; the words begin with base.
func (g *generator) countStep(wild, base int) {
	if len(g.running) == 0 || g.pick(20) == 0 {
		g.scatterHost(1)
		return
	}
	l := g.running[g.pick(len(g.running))]
	wpb := l.info.WarpsPerBlock()
	block := l.blocks[g.pick(len(l.blocks))]
	e := event.Event{Launch: l.info.ID, Warp: block*wpb + uint32(g.pick(int(wpb))), Place: 1, Space: event.Global, Size: 4}
	w := l.warps[e.Warp]
	e.Mask = w.live &^ w.waits
	if m := e.Mask & uint32(g.pick(8)); m != 0 && g.pick(4) == 0 {
		e.Mask = m
	}
	if e.Mask == 0 {
		return
	}
	if g.pick(3) == 0 {
		e.Space = event.Shared
	}
	e.Addr, e.Stride = g.space+uint64(4*base), 4
	e.Kind, e.Order, e.Scope, e.Flags = event.Atomic, event.Relaxed, event.ScopeGPU, event.FlagRead|event.FlagWrite
	if g.pick(6) == 0 {
		e.Addr += uint64(4 * g.pick(4))
	}
	if g.pick(8) == 0 {
		e.Stride = 0
	}
	if g.pick(wild) > 0 {
		g.emit(e)
		return
	}
	switch g.pick(8) {
	case 0:
		e.Kind, e.Order, e.Scope = event.Fence, []event.Order{event.AcqRel, event.SC}[g.pick(2)], g.scope()
		e.Flags, e.Place = 0, 2
	case 1:
		g.wholeBarrier(l, block, event.Event{Launch: e.Launch, Warp: e.Warp, Mask: e.Mask, Place: 3})
		return
	case 2:
		if m := e.Mask & uint32(g.pick(8)); m != 0 {
			e.Mask = m
		}
		e = event.Event{Kind: event.WarpSync, Launch: e.Launch, Warp: e.Warp, Mask: e.Mask, Place: 4}
	case 3:
		e.Flags, e.Place = event.FlagRead, 5
	case 4:
		e.Scope, e.Place = g.scope(), 6
	case 5:
		e.Kind, e.Order, e.Scope, e.Flags, e.Place = event.Load, event.Weak, event.NoScope, event.FlagRead, 7
	case 6:
		e.Kind, e.Order, e.Scope, e.Flags, e.Place = event.Store, event.Weak, event.NoScope, event.FlagWrite, 8
		e.Stride = 4
	default:
		e.Flags, e.Place = e.Flags|event.FlagRed, 9
	}
	g.emit(e)
}
