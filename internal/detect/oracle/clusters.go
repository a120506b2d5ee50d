package oracle

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Clusters makes a program with clusters. Their blocks access each other's shared memory, use the cluster barrier and
// mbarriers, copy asynchronously and in bulk, multiply matrices and fence proxies. An operation through the async proxy
// accesses a multiple of 16 bytes, as the manual requires, and a warp exits as a whole.
func Clusters(pick func(n int) int) *event.Batch {
	g := &clusterProgram{pick: pick, b: &event.Batch{}, polite: pick(3)}
	for range 1 + pick(4)/3 {
		g.launch()
		for range 10 + pick(40) {
			g.step()
		}
		g.emit(event.Event{Kind: event.KernelEnd, Launch: g.l.ID})
	}
	return g.b
}

type clusterProgram struct {
	pick    func(int) int
	b       *event.Batch
	polite  int // how often accesses are ordered
	l       *event.Launch
	live    []uint32 // by warp: lanes that have not exited
	arrived []uint32 // lanes that have arrived at the cluster barrier
	open    []uint32 // those of arrived whose phase is complete
	number  int64
	told    []event.Event // events that will signal mbarriers
	commits int64
	places  int
}

// emit adds an event. It drops accesses to the shared memory of a block that has ended, which engines report.
func (g *clusterProgram) emit(e event.Event) {
	if e.Space == event.Shared && (e.Flags&event.FlagScattered == 0 && g.gone(e.Warp, e.Addr) || e.Flags&event.FlagScattered != 0 &&
		slices.ContainsFunc(g.b.Addrs[e.Side:][:bits.OnesCount32(e.Mask)], func(at uint64) bool { return g.gone(e.Warp, at) })) {
		return
	}
	g.b.Events = append(g.b.Events, e)
}

// gone reports whether an address accessed by a warp belongs to a block of its cluster that has ended.
func (g *clusterProgram) gone(warp uint32, addr uint64) bool {
	rank := addr >> event.PeerShift
	if rank == 0 {
		return false
	}
	cluster, _ := g.l.ClusterOf(warp / g.l.WarpsPerBlock())
	all := g.of(g.l.BlockIn(cluster, uint32(rank)-1), false)
	return !slices.ContainsFunc(all, func(w uint32) bool { return g.live[w] != 0 })
}

func (g *clusterProgram) launch() {
	l := event.Launch{ID: uint32(len(g.b.Launches) + 1), Agent: uint32(g.pick(2)), Kernel: "k", Synchronises: true, Swaps: true, Bulk: g.pick(6) > 0}
	size := []uint32{1, 2, 2, 4}[g.pick(4)]
	l.Grid, l.Block = event.Dim3{X: size * uint32(1+g.pick(2)), Y: 1, Z: 1}, event.Dim3{X: []uint32{2, 3, 34, 130}[g.pick(4)], Y: 1, Z: 1}
	if size > 1 || g.pick(2) == 0 {
		l.Cluster = event.Dim3{X: size, Y: 1, Z: 1}
	}
	g.places = 1 + g.pick(10)
	g.emit(event.Event{Kind: event.KernelBegin, Launch: l.ID, Side: uint32(len(g.b.Launches))})
	g.b.Launches = append(g.b.Launches, l)
	g.l = &l
	wpb := l.WarpsPerBlock()
	g.live = make([]uint32, wpb*l.Grid.X)
	g.arrived, g.open, g.told, g.number, g.commits = make([]uint32, len(g.live)), make([]uint32, len(g.live)), nil, 0, 0
	for w := range g.live {
		all := ^uint32(0)
		if rest := l.Block.X % 32; uint32(w)%wpb == wpb-1 && rest != 0 {
			all = 1<<rest - 1
		}
		g.live[w] = all & 3
		if idle := all &^ 3; idle != 0 {
			g.emit(event.Event{Kind: event.Exit, Launch: l.ID, Warp: uint32(w), Mask: idle})
		}
	}
}

// of returns the warps of a block, or of its whole cluster.
func (g *clusterProgram) of(block uint32, whole bool) (out []uint32) {
	wpb := g.l.WarpsPerBlock()
	c, _ := g.l.ClusterOf(block)
	for w := range uint32(len(g.live)) {
		if d, _ := g.l.ClusterOf(w / wpb); w/wpb == block || whole && d == c {
			out = append(out, w)
		}
	}
	return out
}

func (g *clusterProgram) step() {
	w := uint32(g.pick(len(g.live)))
	if g.live[w] == 0 {
		return
	}
	block := w / g.l.WarpsPerBlock()
	e := event.Event{Launch: g.l.ID, Warp: w, Mask: g.live[w], Place: 1 + uint32(g.pick(g.places))}
	if g.pick(3) == 0 {
		e.Mask = 1 << g.pick(2)
		if e.Mask &= g.live[w]; e.Mask == 0 {
			return
		}
	}
	one := e
	one.Mask &= -one.Mask
	if g.pick(5) < g.polite {
		switch g.pick(10) {
		case 9:
			g.initialise(e)
		case 8:
			g.copyAhead(e)
		case 6:
			g.stage(e)
		case 7:
			g.pass(e)
		case 5:
			g.handOver(e)
		case 0:
			g.blockBarrier(block, e)
		case 1, 4:
			g.clusterBarrier(block, e)
		case 2:
			e.Kind = event.ProxyFence
			g.emit(e)
		case 3:
			g.mbarrier(e)
		}
		return
	}
	k := g.pick(28)
	if !g.l.Bulk && k >= 13 && k < 23 {
		k = 0
	}
	switch {
	case k < 8:
		g.access(e)
	case k < 9:
		g.flag(e)
	case k < 10:
		e.Kind, e.Order, e.Scope = event.Fence, []event.Order{event.AcqRel, event.SC, event.Acquire, event.Release}[g.pick(4)], g.scope()
		if g.pick(2) == 0 {
			e.Kind, e.Order, e.Scope = event.InitFence, event.Release, event.ScopeCluster
		}
		g.emit(e)
	case k < 11:
		e.Kind, e.Mask = event.WarpSync, g.live[w]
		g.emit(e)
	case k < 12:
		g.mbarrier(e)
	case k < 13:
		e.Kind, e.Space = event.ProxyFence, g.spaceOfFence()
		g.emit(e)
	case k < 16:
		g.bulk(one)
	case k < 17:
		if one.Kind = event.BulkCommit; g.pick(2) == 0 {
			one.Kind, one.Aux = event.BulkWait, uint32(g.pick(2))
			if g.pick(3) == 0 {
				one.Flags = event.FlagRead
			}
		}
		g.emit(one)
	case k < 19:
		g.tell()
	case k < 21:
		g.matrix(e)
	case k < 23:
		g.core(e, one)
	case k < 25:
		g.clusterStep(e)
	case k < 27:
		g.copy(e, uint64(16*g.pick(3)))
	default:
		if g.pick(3) == 0 {
			e.Kind, e.Mask = event.Exit, g.live[w]
			g.live[w], g.arrived[w], g.open[w] = 0, 0, 0
			g.emit(e)
			g.phase(block)
		}
	}
}

func (g *clusterProgram) scope() event.Scope {
	return []event.Scope{event.ScopeCTA, event.ScopeCluster, event.ScopeCluster, event.ScopeGPU}[g.pick(4)]
}

// peer returns the address bits that select the shared memory of a block of the cluster.
func (g *clusterProgram) peer() uint64 {
	n := int(g.l.ClusterShape().Count())
	if g.pick(2) == 0 || n == 1 {
		return 0
	}
	return uint64(g.pick(n)+1) << event.PeerShift
}

func (g *clusterProgram) access(e event.Event) {
	e.Kind, e.Flags = event.Load, event.FlagRead
	if g.pick(2) == 0 {
		if e.Kind, e.Flags = event.Store, event.FlagWrite; g.pick(3) == 0 {
			e.Barrier = event.StoreInits
		}
	}
	e.Space, e.Size = event.Shared, []uint8{4, 4, 8, 16}[g.pick(4)]
	base := uint64(0)
	if g.pick(5) == 0 {
		e.Space, base = event.Global, 0x1000
	}
	at := func() uint64 {
		a := base + uint64(g.pick(64/int(e.Size)))*uint64(e.Size)
		if e.Space == event.Shared {
			a |= g.peer()
		}
		return a
	}
	way := g.pick(6)
	if e.Kind == event.Store && e.Mask&(e.Mask-1) != 0 && g.pick(4) > 0 {
		way = 3 // lanes mostly write different bytes
	}
	switch {
	case way < 2:
		e.Addr = at()
	case way < 5:
		if e.Addr, e.Stride = at(), int64(e.Size); e.Addr&63 == 64-uint64(e.Size) {
			e.Stride = 0
		}
	default:
		e.Flags |= event.FlagScattered
		e.Side = uint32(len(g.b.Addrs))
		for range bits.OnesCount32(e.Mask) {
			g.b.Addrs = append(g.b.Addrs, at())
		}
	}
	g.emit(e)
}

// flag accesses a word that threads use for synchronisation.
func (g *clusterProgram) flag(e event.Event) {
	e.Kind = []event.Kind{event.Load, event.Store, event.Atomic}[g.pick(3)]
	e.Flags = []event.Flags{event.FlagRead, event.FlagWrite, event.FlagRead | event.FlagWrite}[e.Kind-event.Load]
	e.Order = []event.Order{event.Relaxed, event.Acquire, event.Relaxed, event.Release, event.Relaxed, event.AcqRel}[2*int(e.Kind-event.Load)+g.pick(2)]
	e.Scope, e.Size, e.Space, e.Addr = g.scope(), 4, event.Global, 0x1040
	if g.pick(3) > 0 {
		e.Space, e.Addr = event.Shared, 0x40|g.peer()
	}
	g.emit(e)
}

// initialise makes a thread initialise mbarriers, store, and fence the initialisations. Other threads access what it
// wrote after a cluster barrier, or after observing a flag.
func (g *clusterProgram) initialise(e event.Event) {
	block := e.Warp / g.l.WarpsPerBlock()
	one := e
	one.Mask &= -one.Mask
	word := func(kind event.Kind, at uint64, inits uint8) {
		x := one
		if x.Kind, x.Flags = kind, event.FlagWrite; kind == event.Load {
			x.Flags = event.FlagRead
		}
		x.Space, x.Size, x.Addr, x.Barrier, x.Place = event.Shared, 4, at, inits, 1+uint32(g.pick(g.places))
		g.emit(x)
	}
	at := uint64(16 * g.pick(3))
	for range 1 + g.pick(3) {
		word(event.Store, at|g.peer(), uint8(g.pick(3)/2))
		word(event.Store, at+4|g.peer(), event.StoreInits)
	}
	f := one
	if f.Kind, f.Order, f.Scope = event.InitFence, event.Release, event.ScopeCluster; g.pick(4) == 0 {
		f.Mask = e.Mask
	}
	g.emit(f)
	switch g.pick(4) {
	case 0:
		g.flag(one)
		one.Warp = uint32(g.pick(len(g.live)))
		if one.Mask = g.live[one.Warp] & -g.live[one.Warp]; one.Mask != 0 {
			g.flag(one)
		}
	case 1:
		g.blockBarrier(block, e)
	default:
		g.clusterBarrier(block, e)
	}
	for range 2 {
		all := g.of(block, true)
		one.Warp = all[g.pick(len(all))]
		if one.Mask = 1 << g.pick(2) & g.live[one.Warp]; one.Mask != 0 {
			word([]event.Kind{event.Load, event.Store}[g.pick(2)], at+4*uint64(g.pick(2))|g.peer(), 0)
		}
	}
}

// handOver makes a thread of a cluster store, all of the cluster's threads fence, and one write a flag after a barrier.
// A thread of another cluster reads the flag, all threads there fence after a barrier, and one loads.
func (g *clusterProgram) handOver(e event.Event) {
	wpb := g.l.WarpsPerBlock()
	warp := func() (w, block uint32) {
		w = uint32(g.pick(len(g.live)))
		return w, w / wpb
	}
	barrier := func(block uint32) {
		if g.pick(4) == 0 {
			g.blockBarrier(block, e)
		} else {
			g.clusterBarrier(block, e)
		}
	}
	fences := func(block uint32) {
		f := e
		f.Kind, f.Scope = event.Fence, event.ScopeGPU
		for _, w := range g.of(block, true) {
			if f.Warp, f.Mask = w, g.live[w]; f.Mask != 0 && g.pick(8) > 0 {
				f.Order = []event.Order{event.SC, event.SC, event.SC, event.AcqRel}[g.pick(4)]
				g.emit(f)
			}
		}
	}
	word := func(w uint32, kind event.Kind, addr uint64, order event.Order) {
		a := e
		a.Warp, a.Mask, a.Kind, a.Space, a.Size, a.Addr, a.Order = w, g.live[w]&-g.live[w], kind, event.Global, 4, addr, order
		if a.Mask == 0 {
			return
		}
		a.Flags = map[event.Kind]event.Flags{event.Load: event.FlagRead, event.Store: event.FlagWrite, event.Atomic: event.FlagRead | event.FlagWrite}[kind]
		if a.Place += uint32(kind); order != event.Weak {
			a.Scope = event.ScopeGPU
		}
		g.emit(a)
	}
	data := uint64(0x1000 + 4*g.pick(2))
	w, block := warp()
	word(w, event.Store, data, event.Weak)
	fences(block)
	barrier(block)
	all := g.of(block, true)
	word(all[g.pick(len(all))], event.Atomic, 0x1040, event.Relaxed)
	w, block = warp()
	word(w, []event.Kind{event.Load, event.Atomic}[g.pick(2)], 0x1040, event.Relaxed)
	barrier(block)
	fences(block)
	all = g.of(block, true)
	word(all[g.pick(len(all))], event.Load, data, event.Weak)
}

// stage makes warps of a warpgroup read shared memory by matrix operations, one or some of them wait, and a thread that
// may know of that overwrite it.
func (g *clusterProgram) stage(e event.Event) {
	if !g.l.Bulk {
		return
	}
	block := e.Warp / g.l.WarpsPerBlock()
	at := uint64(16 * g.pick(3))
	step := func(kind event.Kind, aux, chance int) {
		for _, w := range g.of(block, false) {
			x := e
			if x.Kind, x.Warp, x.Mask, x.Aux = kind, w, g.live[w], uint32(aux); x.Mask == 0 || g.pick(chance) == 0 {
				continue
			}
			if kind == event.Wgmma {
				x.Flags, x.Space, x.Addr, x.Stride = event.FlagRead, event.Shared, at, g.number
				g.number++
			}
			g.emit(x)
		}
	}
	for range 1 + g.pick(2) {
		step(event.Wgmma, 16, 4)
		step(event.WgmmaCommit, 0, 8)
	}
	step(event.WgmmaWait, g.pick(2), 2)
	if g.pick(3) == 0 {
		g.blockBarrier(block, e)
	}
	all := g.of(block, false)
	e.Kind, e.Flags, e.Space, e.Size, e.Addr, e.Warp = event.Store, event.FlagWrite, event.Shared, 4, at, all[g.pick(len(all))]
	e.Mask = 1 << g.pick(2) & g.live[e.Warp]
	if e.Place++; e.Mask != 0 {
		g.emit(e)
	}
}

// pass makes threads store to shared memory or copy to it and signal an mbarrier, and others wait for its phase and
// load.
func (g *clusterProgram) pass(e event.Event) {
	bar := uint64(0x8000+8*g.pick(2)) | g.peer()
	scope := event.ScopeCTA
	if clustered(g.l) {
		scope = event.ScopeCluster
	}
	thread := func() event.Event {
		x := e
		all := g.of(e.Warp/g.l.WarpsPerBlock(), g.pick(2) == 0)
		x.Warp = all[g.pick(len(all))]
		x.Mask = 1 << g.pick(2) & g.live[x.Warp]
		x.Space, x.Size, x.Place = event.Shared, 4, 1+uint32(g.pick(g.places))
		return x
	}
	at := uint64(16 * g.pick(4))
	for range 1 + g.pick(2) {
		x := thread()
		if x.Mask == 0 {
			continue
		}
		data := x
		data.Addr = at | g.peer()
		if g.l.Bulk && g.pick(2) == 0 {
			data.Kind, data.Flags, data.Aux, data.Size, data.Barrier, data.Stride = event.Bulk, event.FlagWrite, 16, 0, 1, g.number
			g.number++
			g.emit(data)
			x.Kind, x.Place, x.Addr, x.Stride, x.Size, x.Space = event.BulkDone, 100, bar, data.Stride, 0, event.NoSpace
			g.emit(x)
			continue
		}
		data.Kind, data.Flags = event.Store, event.FlagWrite
		g.emit(data)
		x.Kind, x.Flags, x.Order, x.Scope, x.Addr = event.Atomic, event.FlagRead|event.FlagWrite|event.FlagRed, event.Release, scope, bar
		g.emit(x)
	}
	if x := thread(); x.Mask != 0 {
		g.complete(x, bar, scope)
	}
	if x := thread(); x.Mask != 0 {
		x.Kind, x.Flags, x.Order, x.Scope, x.Addr = event.Load, event.FlagRead, event.Acquire, scope, bar+4
		g.emit(x)
		x.Order, x.Scope, x.Addr = event.Weak, event.NoScope, at|g.peer()
		g.emit(x)
	}
}

// complete completes a phase of an mbarrier by a thread.
func (g *clusterProgram) complete(e event.Event, bar uint64, scope event.Scope) {
	e.Scope, e.Barrier, e.Addr = scope, uint8(g.pick(3)), bar
	e.Kind, e.Flags, e.Order = event.Load, event.FlagRead|event.FlagApart, event.Acquire
	g.emit(e)
	e.Kind, e.Flags, e.Order = event.Store, event.FlagWrite|event.FlagApart, event.Release
	e.Addr += 4
	g.emit(e)
}

// mbarrier arrives at an mbarrier, or waits for it; the phase may be complete.
func (g *clusterProgram) mbarrier(e event.Event) {
	e.Space, e.Size, e.Addr, e.Scope = event.Shared, 4, uint64(0x8000+8*g.pick(2))|g.peer(), event.ScopeCTA
	if clustered(g.l) {
		e.Scope = event.ScopeCluster
	}
	if g.pick(2) == 0 {
		e.Kind, e.Flags, e.Order = event.Load, event.FlagRead, event.Acquire
		e.Addr += 4
		g.emit(e)
		return
	}
	e.Mask &= -e.Mask
	e.Kind, e.Flags, e.Order = event.Atomic, event.FlagRead|event.FlagWrite|event.FlagRed, []event.Order{event.Release, event.Release, event.Relaxed}[g.pick(3)]
	g.emit(e)
	if g.pick(2) == 0 {
		g.complete(e, e.Addr, e.Scope)
	}
}

// spaceOfFence returns the space of the next proxy fence.
func (g *clusterProgram) spaceOfFence() event.Space {
	return [...]event.Space{event.NoSpace, event.NoSpace, event.Shared, event.Global}[len(g.b.Events)%4]
}

func (g *clusterProgram) bulk(e event.Event) {
	if g.pick(3) > 0 {
		f := e
		f.Kind, f.Space = event.ProxyFence, g.spaceOfFence()
		g.emit(f)
	}
	e.Kind, e.Aux, e.Stride = event.Bulk, uint32(16+16*g.pick(2)), g.number
	g.number++
	if e.Barrier = uint8(min(g.pick(4), 2)); e.Barrier != 0 {
		told := e
		told.Kind, told.Aux, told.Barrier, told.Place, told.Addr = event.BulkDone, 0, 0, 100, uint64(0x8000+8*g.pick(2))|g.peer()
		g.told = append(g.told, told)
	}
	if g.pick(3) > 0 {
		e.Flags = event.FlagRead
		g.emit(g.anywhere(e))
	}
	if e.Flags == 0 || g.pick(3) > 0 {
		e.Flags = event.FlagWrite
		g.emit(g.anywhere(e))
	}
}

// anywhere returns a half of a copy an address.
func (g *clusterProgram) anywhere(e event.Event) event.Event {
	e.Space, e.Addr = event.Shared, uint64(16*g.pick(3))|g.peer()
	if g.pick(4) == 0 {
		e.Space, e.Addr = event.Global, uint64(0x1000+16*g.pick(3))
	}
	return e
}

// tell signals an mbarrier for a copy, or for operations, that are complete.
func (g *clusterProgram) tell() {
	if len(g.told) == 0 {
		return
	}
	i := g.pick(len(g.told))
	x := g.told[i]
	for j := range g.told[:i] { // those of one lane complete in order
		if y := g.told[j]; x.Kind == event.CoreDone && y.Kind == x.Kind && y.Warp == x.Warp && y.Mask == x.Mask {
			i, x = j, y
			break
		}
	}
	g.told = append(g.told[:i:i], g.told[i+1:]...)
	if g.live[x.Warp]&x.Mask != 0 {
		g.emit(x)
	}
}

// copy makes lanes copy to shared memory of their block by cp.async, or commit such copies, make an mbarrier track
// them, wait for them, or complete a phase of the mbarrier.
func (g *clusterProgram) copy(e event.Event, at uint64) {
	switch k := g.pick(7); k {
	default:
		e.Kind, e.Flags, e.Space, e.Size = event.Store, event.FlagWrite|event.FlagAsync, event.Shared, []uint8{4, 8, 16}[g.pick(3)]
		if e.Addr = at + uint64(g.pick(16/int(e.Size)))*uint64(e.Size); g.pick(4) > 0 {
			e.Stride = int64(e.Size)
		}
	case 0:
		e.Kind = event.CopyCommit
	case 1, 2:
		e.Kind, e.Aux = event.CopyWait, uint32(g.pick(4)/3)
	case 3:
		e.Kind, e.Addr = event.CopyArrive, uint64(0x8000+8*g.pick(2))
		g.emit(e)
		e.Kind, e.Flags, e.Space, e.Size, e.Order, e.Scope = event.Atomic, event.FlagRead|event.FlagWrite|event.FlagRed, event.Shared, 4, event.Release, event.ScopeCTA
		if e.Mask &= -e.Mask; clustered(g.l) {
			e.Scope = event.ScopeCluster
		}
	case 4:
		e.Kind, e.Addr = event.MbarrierDone, uint64(0x8000+8*g.pick(2))
	}
	g.emit(e)
}

// copyAhead makes threads copy by cp.async and wait for the copies. All threads usually fence proxies and meet at a
// barrier, and one reads the data through the async proxy.
func (g *clusterProgram) copyAhead(e event.Event) {
	if !g.l.Bulk {
		return
	}
	block := e.Warp / g.l.WarpsPerBlock()
	all := g.of(block, false)
	at := uint64(16 * g.pick(3))
	each := func(kind event.Kind, chance int) {
		for _, w := range all {
			x := e
			if x.Kind, x.Warp, x.Mask = kind, w, g.live[w]; x.Mask != 0 && g.pick(chance) > 0 {
				g.emit(x)
			}
		}
	}
	if g.pick(3) == 0 {
		x := e
		x.Kind, x.Flags, x.Space, x.Size, x.Addr, x.Place = event.Store, event.FlagWrite, event.Shared, 4, at, e.Place+20
		g.emit(x)
		if g.pick(2) == 0 {
			g.blockBarrier(block, e)
		}
	}
	for range 1 + g.pick(2) {
		x := e
		x.Warp = all[g.pick(len(all))]
		if x.Mask = 1 << g.pick(2) & g.live[x.Warp]; x.Mask != 0 {
			x.Kind, x.Flags, x.Space, x.Size, x.Addr = event.Store, event.FlagWrite|event.FlagAsync, event.Shared, 8, at+8*uint64(g.pick(2))
			g.emit(x)
		}
	}
	if g.pick(4) == 0 {
		each(event.ProxyFence, 8)
	}
	each(event.CopyCommit, 8)
	each(event.CopyWait, 8)
	fence := g.pick(4)
	if fence < 2 {
		each(event.ProxyFence, 8)
	}
	if g.pick(8) > 0 {
		g.blockBarrier(block, e)
	}
	if fence == 2 {
		each(event.ProxyFence, 8)
	}
	e.Warp = all[g.pick(len(all))]
	if e.Mask = g.live[e.Warp]; e.Mask == 0 {
		return
	}
	e.Kind, e.Flags, e.Space, e.Addr, e.Aux, e.Stride, e.Place = event.Wgmma, event.FlagRead, event.Shared, at, 16, g.number, e.Place+1
	if g.number++; g.pick(3) == 0 {
		e.Kind = event.Bulk
		e.Mask &= -e.Mask
	}
	g.emit(e)
}

// matrix makes a warp issue an operation of its warpgroup, commit, or wait.
func (g *clusterProgram) matrix(e event.Event) {
	e.Mask = g.live[e.Warp]
	switch g.pick(4) {
	case 0:
		e.Kind = event.WgmmaCommit
	case 1:
		e.Kind, e.Aux = event.WgmmaWait, uint32(g.pick(2))
	default:
		e.Kind, e.Flags, e.Space, e.Stride = event.Wgmma, event.FlagRead, event.Shared, g.number
		g.number++
		for range 1 + g.pick(2) {
			e.Addr, e.Aux = uint64(16*g.pick(3)), uint32(16+16*g.pick(2))
			g.emit(e)
		}
		return
	}
	g.emit(e)
}

// core makes a thread issue a tensor core operation or commit, or a warp access tensor memory or wait.
func (g *clusterProgram) core(e, one event.Event) {
	e.Mask = g.live[e.Warp]
	e.Space, one.Space = event.Shared, event.Shared
	tensor := func(e event.Event, peer uint64) event.Event {
		e.Addr, e.Aux = event.TensorWord(0, g.pick(2))|peer, uint32(64+64*g.pick(2))
		return e
	}
	switch g.pick(5) {
	case 0:
		one.Kind, one.Addr, one.Stride = event.CoreCommit, uint64(0x8000+8*g.pick(2))|g.peer(), g.commits
		g.commits++
		g.emit(one)
		one.Kind, one.Place = event.CoreDone, 101
		g.told = append(g.told, one)
	case 1:
		e.Kind, e.Flags = event.CoreWait, []event.Flags{event.FlagRead, event.FlagWrite}[g.pick(2)]
		g.emit(e)
	case 2:
		e.Kind, e.Stride, e.Flags, e.Barrier = event.Core, g.number, event.FlagRead, event.CoreLoads
		g.number++
		if g.pick(2) == 0 {
			e.Flags, e.Barrier = event.FlagWrite, event.CoreStores
		}
		g.emit(tensor(e, 0))
	default:
		one.Kind, one.Stride, one.Barrier = event.Core, g.number, event.CoreCommits
		g.number++
		peer := g.peer()
		one.Flags, one.Addr, one.Aux = event.FlagRead, uint64(16*g.pick(3))|peer, 16
		g.emit(one)
		one = tensor(one, peer)
		if g.pick(2) == 0 {
			g.emit(one)
		}
		one.Flags = event.FlagWrite
		g.emit(one)
	}
}

// blockBarrier makes all threads of a block meet at a barrier.
func (g *clusterProgram) blockBarrier(block uint32, e event.Event) {
	for _, w := range g.of(block, false) {
		if e.Kind, e.Flags, e.Warp, e.Mask = event.Arrive, event.FlagWait, w, g.live[w]; e.Mask != 0 {
			g.emit(e)
		}
	}
	g.emit(event.Event{Kind: event.BarrierDone, Launch: g.l.ID, Warp: block * g.l.WarpsPerBlock(), Mask: 1})
}

// clusterStep makes threads arrive at the cluster barrier, or continue after it.
func (g *clusterProgram) clusterStep(e event.Event) {
	w := e.Warp
	if open := g.open[w] & e.Mask; open != 0 {
		e.Kind, e.Mask = event.ClusterWait, open
		g.open[w] &^= open
		g.arrived[w] &^= open
		g.emit(e)
		return
	}
	if e.Mask &^= g.arrived[w]; e.Mask == 0 {
		return
	}
	e.Kind, e.Order = event.ClusterArrive, []event.Order{event.Release, event.Release, event.Relaxed}[g.pick(3)]
	g.arrived[w] |= e.Mask
	g.emit(e)
	g.phase(e.Warp / g.l.WarpsPerBlock())
}

// phase completes a phase of the cluster barrier if all have arrived.
func (g *clusterProgram) phase(block uint32) {
	all := g.of(block, true)
	for _, w := range all {
		if g.open[w] != 0 || g.live[w]&^g.arrived[w] != 0 {
			return
		}
	}
	for _, w := range all {
		g.open[w] = g.live[w]
	}
}

// clusterBarrier makes all threads of a cluster arrive and some continue; some act in between.
func (g *clusterProgram) clusterBarrier(block uint32, e event.Event) {
	order := []event.Order{event.Release, event.Release, event.Release, event.Relaxed}[g.pick(4)]
	all := g.of(block, true)
	for _, w := range all {
		if e.Kind, e.Order, e.Warp, e.Mask = event.ClusterWait, event.Weak, w, g.open[w]; e.Mask != 0 {
			g.arrived[w] &^= e.Mask
			g.open[w] = 0
			g.emit(e)
		}
	}
	for _, w := range all {
		if e.Kind, e.Order, e.Warp, e.Mask = event.ClusterArrive, order, w, g.live[w]&^g.arrived[w]; e.Mask != 0 {
			if g.pick(8) == 0 {
				e.Order = event.Relaxed
			}
			g.emit(e)
			if g.arrived[w] |= e.Mask; g.pick(8) == 0 {
				a := e
				a.Order = event.Weak
				g.access(a)
			}
		}
	}
	g.phase(block)
	for _, w := range all {
		if e.Kind, e.Order, e.Warp, e.Mask = event.ClusterWait, event.Weak, w, g.open[w]; e.Mask != 0 && g.pick(6) > 0 {
			g.arrived[w] &^= e.Mask
			g.open[w] = 0
			g.emit(e)
		}
	}
}
