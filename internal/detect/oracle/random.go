package oracle

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/event"
)

// Random makes the stream of a random program under a random schedule. It uses few locations, so that there are many
// conflicts, and every operation that detectors must handle. pick(n) returns a number below n, and decides everything:
// the same picks give the same stream.
func Random(pick func(n int) int) *event.Batch { return random(pick, false, false) }

// Early makes a program in which some launches may begin before the previous launch has ended (programmatic dependent
// launch).
func Early(pick func(n int) int) *event.Batch { return random(pick, true, false) }

// Nested makes a program whose threads put operations into streams of the device, for which agents wait (launches of
// kernels by kernels).
func Nested(pick func(n int) int) *event.Batch { return random(pick, false, true) }

func random(pick func(n int) int, early, nested bool) *event.Batch {
	g := &generator{pick: pick, b: &event.Batch{}, early: early, nested: nested, agents: 1 + pick(3)}
	g.space = []uint64{0x1000, 0x1078, 0x13f8}[pick(3)] // within a line, across the end of a line, across the end of a page
	g.span = []int{4, 8, 16, 24}[pick(4)]
	g.places = 1 + pick(8)
	g.plain = 1 + pick(6)
	steps := 8 + pick(40)
	if pick(40) == 0 {
		steps *= 4
	}
	g.polite = pick(3)
	for i := 0; i < steps; i++ {
		g.step()
	}
	for _, l := range g.running {
		g.emit(event.Event{Kind: event.KernelEnd, Launch: l.info.ID})
	}
	return g.b
}

type generator struct {
	pick    func(int) int
	b       *event.Batch
	early   bool     // launches may begin early
	nested  bool     // threads put operations into streams of the device
	tokens  []uint64 // of those
	agents  int
	space   uint64
	span    int
	places  int
	plain   int // weight of weak accesses
	polite  int // how often accesses and fences follow the patterns of synchronising programs
	running []*runningLaunch
	ids     uint32
}

type runningLaunch struct {
	info   event.Launch
	blocks []uint32
	warps  map[uint32]*runningWarp
}

type runningWarp struct {
	live, waits uint32
	at          [32]uint8 // the barrier that each waiting lane waits at
}

func (g *generator) emit(e event.Event) { g.b.Events = append(g.b.Events, e) }

func (g *generator) step() {
	if len(g.running) == 0 || g.pick(12) == 0 {
		g.hostStep()
		return
	}
	l := g.running[g.pick(len(g.running))]
	wpb := l.info.WarpsPerBlock()
	block := l.blocks[g.pick(len(l.blocks))]
	warp := block*wpb + uint32(g.pick(int(wpb)))
	w := l.warps[warp]
	free := w.live &^ w.waits
	if free == 0 || g.pick(8) == 0 {
		g.finishBarrier(l, block)
		return
	}
	mask := free
	if g.pick(3) > 0 {
		if m := free & uint32(g.pick(256)); m != 0 {
			mask = m
		}
	}
	e := event.Event{Launch: l.info.ID, Warp: warp, Mask: mask, Place: 1 + uint32(g.pick(g.places))}
	if g.pick(4) < g.polite {
		if g.pick(3) == 0 {
			g.overBarrier(l, block, e)
		} else {
			g.handOver(e)
		}
		return
	}
	switch k := g.pick(20); {
	case k < 12:
		g.access(e)
	case k < 15:
		e.Kind, e.Order, e.Scope = event.Fence, []event.Order{event.AcqRel, event.SC, event.AcqRel, event.Acquire, event.Release}[g.pick(5)], g.scope()
		g.emit(e)
	case k < 16:
		e.Kind = event.WarpSync
		g.emit(e)
	case k < 18:
		g.arrive(l, w, e)
	case k < 19:
		g.wholeBarrier(l, block, e)
	default:
		if g.nested && g.pick(2) == 0 {
			g.deviceOp(e)
			return
		}
		switch g.pick(3) {
		case 0:
			e.Kind = event.Exit
			w.live &^= mask
			g.emit(e)
		case 1:
			e.Kind = event.Reconverge
			if w.waits == 0 && len(g.b.Events)%2 == 0 {
				e.Mask = w.live
			}
			g.emit(e)
		case 2:
			if !g.early {
				break
			}
			e.Kind = []event.Kind{event.GridLaunch, event.GridWait}[g.pick(2)]
			g.emit(e)
		}
	}
}

// deviceOp makes a thread put an operation into a stream of the device. Usually an agent then performs an operation
// after it.
func (g *generator) deviceOp(e event.Event) {
	e.Kind, e.Mask, e.Aux = event.DeviceOp, e.Mask&-e.Mask, uint32(len(g.tokens))+1
	g.emit(e)
	g.tokens = append(g.tokens, event.DeviceToken(e.Launch, e.Aux))
	g.waitDevice(uint32(g.pick(g.agents)))
}

// waitDevice makes an agent without a running kernel wait for an operation that a thread has put into a stream of the
// device.
func (g *generator) waitDevice(agent uint32) {
	if len(g.tokens) == 0 || slices.ContainsFunc(g.running, func(l *runningLaunch) bool { return l.info.Agent == agent }) {
		return
	}
	g.emit(event.Event{Kind: event.Host, Side: uint32(len(g.b.Hosts))})
	g.b.Hosts = append(g.b.Hosts, event.HostOp{Kind: event.HostWait, Agent: agent, Token: g.tokens[g.pick(len(g.tokens))], Name: "launch"})
}

// handOver makes a synchronisation through a flag: a fence and a strong write, a strong read and a fence, or a release
// or an acquire, usually of sufficient scope.
func (g *generator) handOver(e event.Event) {
	scope := func() event.Scope {
		if g.pick(5) == 0 {
			return event.ScopeCTA
		}
		return event.ScopeGPU
	}
	fence := func() {
		f := e
		f.Kind, f.Order, f.Scope = event.Fence, event.AcqRel, scope()
		g.emit(f)
	}
	e.Space, e.Size, e.Scope, e.Order = event.Global, 4, scope(), event.Relaxed
	e.Addr = (g.space+15)&^15 + uint64(g.pick(2))*4
	e.Kind = []event.Kind{event.Store, event.Atomic, event.Atomic, event.Load, event.Load}[g.pick(5)]
	e.Flags = map[event.Kind]event.Flags{event.Store: event.FlagWrite, event.Load: event.FlagRead, event.Atomic: event.FlagRead | event.FlagWrite}[e.Kind]
	style := g.pick(3)
	switch {
	case style == 0 && e.Kind == event.Load:
		e.Order = event.Acquire
	case style == 0 && e.Kind == event.Store:
		e.Order = event.Release
	case style == 0:
		e.Order = event.AcqRel
	case e.Kind != event.Load:
		fence()
	}
	g.emit(e)
	if style != 0 && e.Kind != event.Store {
		fence()
	}
}

// overBarrier makes a synchronisation through a flag with a barrier between the fence and the flag: many threads fence
// and one writes the flag, or one reads it and many fence.
func (g *generator) overBarrier(l *runningLaunch, block uint32, e event.Event) {
	fence, flag := e, e
	fence.Kind, fence.Order, fence.Scope = event.Fence, []event.Order{event.SC, event.SC, event.SC, event.AcqRel}[g.pick(4)], event.ScopeGPU
	flag.Mask &= -flag.Mask
	flag.Kind, flag.Flags = event.Atomic, event.FlagRead|event.FlagWrite
	flag.Space, flag.Size, flag.Scope, flag.Order = event.Global, 4, event.ScopeGPU, event.Relaxed
	flag.Addr = (g.space+15)&^15 + uint64(g.pick(2))*4
	writes := g.pick(2) == 0
	if !writes && g.pick(2) == 0 {
		flag.Kind, flag.Flags = event.Load, event.FlagRead
	}
	if g.pick(4) == 0 {
		fence.Scope = event.ScopeCTA
	}
	if g.pick(8) == 0 {
		flag.Scope = event.ScopeCTA
	}
	if writes {
		g.emit(fence)
	} else {
		g.emit(flag)
	}
	if g.pick(3) == 0 {
		sync := e
		sync.Kind = event.WarpSync
		g.emit(sync)
	} else {
		g.wholeBarrier(l, block, e)
	}
	if l.warps[e.Warp].live&e.Mask != e.Mask || l.warps[e.Warp].waits&e.Mask != 0 {
		return
	}
	if writes {
		g.emit(flag)
	} else {
		g.emit(fence)
	}
}

func (g *generator) scope() event.Scope {
	return []event.Scope{event.ScopeCTA, event.ScopeGPU, event.ScopeGPU, event.ScopeSys, event.ScopeCluster}[g.pick(5)]
}

func (g *generator) access(e event.Event) {
	e.Size = []uint8{4, 4, 4, 1, 2, 8, 16}[g.pick(7)]
	e.Space = event.Global
	if g.pick(3) == 0 {
		e.Space = event.Shared
	}
	e.Kind = []event.Kind{event.Load, event.Store, event.Atomic}[g.pick(3)]
	if g.pick(6) < g.plain {
		e.Kind = []event.Kind{event.Load, event.Store}[g.pick(2)]
	} else {
		e.Scope = g.scope()
		e.Order = []event.Order{event.Volatile, event.Relaxed, event.Relaxed, event.Acquire, event.Release, event.AcqRel}[g.pick(6)]
	}
	if e.Size > 4 && e.Kind != event.Atomic && g.pick(2) == 0 {
		e.Flags |= event.FlagVector
		e.Aux = uint32(e.Size) / uint32(2<<g.pick(2))
	}
	switch e.Kind {
	case event.Load:
		e.Flags |= event.FlagRead
		if e.Order == event.Release || e.Order == event.AcqRel {
			e.Order = event.Acquire
		}
	case event.Store:
		e.Flags |= event.FlagWrite
		if e.Order == event.Acquire || e.Order == event.AcqRel {
			e.Order = event.Release
		}
	case event.Atomic:
		if e.Order == event.Volatile {
			e.Order = event.Relaxed
		}
		e.Flags |= []event.Flags{event.FlagRead | event.FlagWrite, event.FlagRead | event.FlagWrite, event.FlagRead, event.FlagWrite}[g.pick(4)]
		if e.Flags&event.FlagRead != 0 && e.Flags&event.FlagWrite != 0 && g.pick(6) == 0 {
			e.Flags |= event.FlagRed
			if e.Order > event.Relaxed {
				e.Order = event.Release
			}
		}
	}
	g.address(&e)
	if e.Kind != event.Load && g.pick(8) > 0 {
		e.Flags |= event.FlagValues
		e.Val = uint32(len(g.b.Values))
		for i := bits.OnesCount32(e.Mask); i > 0; i-- {
			v := uint64(g.pick(3) / 2)
			if g.pick(4) == 0 {
				v |= uint64(g.pick(2)) << 33
			}
			if e.Size < 8 {
				v &= 1<<(8*e.Size) - 1
			}
			g.b.Values = append(g.b.Values, v)
			if e.Size == 16 {
				g.b.Values = append(g.b.Values, uint64(g.pick(2)))
			}
		}
	}
	g.emit(e)
}

// address chooses the addresses of an access.
func (g *generator) address(e *event.Event) {
	base := g.space
	if e.Space == event.Shared {
		base = 0x78
	}
	size := uint64(e.Size)
	slots := max(1, (g.span+int(size)-1)/int(size))
	if base%size != 0 {
		base += size - base%size
	}
	one := func() uint64 { return base + uint64(g.pick(slots))*size }
	switch g.pick(4) {
	case 0:
		e.Addr = one()
	case 1:
		e.Addr, e.Stride = one(), int64(size)
	case 2:
		e.Addr = one()
		e.InRows(uint8(1+g.pick(4)), int64(g.pick(2))*int64(size), int64(g.pick(5)-1)*int64(size))
	default:
		e.Flags |= event.FlagScattered
		e.Side = uint32(len(g.b.Addrs))
		for i := bits.OnesCount32(e.Mask); i > 0; i-- {
			g.b.Addrs = append(g.b.Addrs, one())
		}
	}
}

func (g *generator) arrive(l *runningLaunch, w *runningWarp, e event.Event) {
	e.Kind, e.Barrier = event.Arrive, uint8(g.pick(2))
	if g.pick(3) > 0 {
		e.Flags = event.FlagWait
		w.waits |= e.Mask
		for m := e.Mask; m != 0; m &= m - 1 {
			w.at[bits.TrailingZeros32(m)] = e.Barrier
		}
	}
	g.emit(e)
}

// finishBarrier completes a barrier that some lanes of a block wait at.
func (g *generator) finishBarrier(l *runningLaunch, block uint32) {
	wpb := l.info.WarpsPerBlock()
	id := uint8(g.pick(2))
	any := false
	for i := uint32(0); i < wpb; i++ {
		w := l.warps[block*wpb+i]
		for m := w.waits; m != 0; m &= m - 1 {
			if lane := bits.TrailingZeros32(m); w.at[lane] == id {
				w.waits &^= 1 << uint(lane)
				any = true
			}
		}
	}
	if any {
		g.emit(event.Event{Kind: event.BarrierDone, Launch: l.info.ID, Warp: block * wpb, Barrier: id, Mask: 1})
	}
}

// wholeBarrier makes all threads of a block that can arrive at a barrier do so, and completes it.
func (g *generator) wholeBarrier(l *runningLaunch, block uint32, e event.Event) {
	wpb := l.info.WarpsPerBlock()
	id := uint8(g.pick(2))
	for i := uint32(0); i < wpb; i++ {
		w := l.warps[block*wpb+i]
		e.Kind, e.Barrier, e.Flags, e.Warp, e.Mask = event.Arrive, id, event.FlagWait, block*wpb+i, w.live&^w.waits
		if e.Mask == 0 {
			continue
		}
		for m := e.Mask; m != 0; m &= m - 1 {
			w.at[bits.TrailingZeros32(m)] = id
		}
		w.waits |= e.Mask
		g.emit(e)
	}
	for i := uint32(0); i < wpb; i++ {
		w := l.warps[block*wpb+i]
		for m := w.waits; m != 0; m &= m - 1 {
			if lane := bits.TrailingZeros32(m); w.at[lane] == id {
				w.waits &^= 1 << uint(lane)
			}
		}
	}
	g.emit(event.Event{Kind: event.BarrierDone, Launch: l.info.ID, Warp: block * wpb, Barrier: id, Mask: 1})
}

// hostStep makes an agent act: a stream begins or ends a kernel, or any agent performs a host operation.
func (g *generator) hostStep() {
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
	if g.nested && g.pick(2) == 0 {
		g.waitDevice(a)
	}
	if g.pick(3) > 0 && g.ids < 4 {
		g.begin(a)
		return
	}
	h := event.HostOp{Agent: a, Token: uint64(g.pick(2)), Name: []string{"copy", "set"}[g.pick(2)]}
	h.Kind = []event.HostKind{event.HostSignal, event.HostWait, event.HostSignal, event.HostWait, event.HostRead, event.HostWrite, event.HostAlloc, event.HostFree}[g.pick(8)]
	h.Addr = g.space + uint64(g.pick(g.span))
	h.Size = 1 + uint64(g.pick(8))
	h.Staged = h.Kind == event.HostWrite && g.pick(3) == 0
	if h.Kind >= event.HostAlloc {
		h.Addr, h.Size = h.Addr&^3, (h.Size+3)&^3
	}
	g.emit(event.Event{Kind: event.Host, Side: uint32(len(g.b.Hosts))})
	g.b.Hosts = append(g.b.Hosts, h)
}

func (g *generator) begin(a uint32) {
	g.ids++
	l := &runningLaunch{info: event.Launch{ID: g.ids, Agent: a, Kernel: "k", Synchronises: true, Swaps: true, Early: g.early && g.pick(2) == 0}, warps: map[uint32]*runningWarp{}}
	if g.nested {
		l.info.Parent = uint32(g.pick(2)) * (g.ids - 1)
	}
	blocks := []uint32{1, 2, 3, 40, 1100}[g.pick(5)]
	threads := []uint32{1, 2, 3, 4, 34}[g.pick(5)]
	l.info.Grid, l.info.Block = event.Dim3{X: blocks, Y: 1, Z: 1}, event.Dim3{X: threads, Y: 1, Z: 1}
	g.emit(event.Event{Kind: event.KernelBegin, Launch: l.info.ID, Side: uint32(len(g.b.Launches))})
	g.b.Launches = append(g.b.Launches, l.info)
	wpb := l.info.WarpsPerBlock()
	for _, b := range [][]uint32{{0}, {0, 1}, {0, 1, 2}, {0, 33, 39}, {5, 31, 1099}}[min(4, map[uint32]int{1: 0, 2: 1, 3: 2, 40: 3, 1100: 4}[blocks])] {
		l.blocks = append(l.blocks, b)
		for i := uint32(0); i < wpb; i++ {
			w := &runningWarp{live: ^uint32(0)}
			if i == wpb-1 && threads%32 != 0 {
				w.live = 1<<(threads%32) - 1
			}
			l.warps[b*wpb+i] = w
			if idle := w.live &^ 7; idle != 0 {
				w.live = 7
				g.emit(event.Event{Kind: event.Exit, Launch: l.info.ID, Warp: b*wpb + i, Mask: idle})
			}
		}
	}
	g.running = append(g.running, l)
}

// Legal reports whether no thread acts while it waits at a barrier or after it has exited. A stream of Random from
// which events were removed may violate that.
func Legal(b *event.Batch) bool {
	launches := map[uint32]*event.Launch{}
	busy := map[uint32]uint32{} // agent: running launch
	waits := map[thread]uint8{}
	gone := map[thread]bool{}
	cluster := clusterPhases{}
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.KernelBegin:
			l := &b.Launches[e.Side]
			if busy[l.Agent] != 0 {
				return false
			}
			busy[l.Agent] = l.ID
			launches[l.ID] = l
			continue
		case event.KernelEnd:
			if l := launches[e.Launch]; l != nil {
				busy[l.Agent] = 0
			}
			continue
		case event.Host:
			if busy[b.Hosts[e.Side].Agent] != 0 {
				return false
			}
			continue
		}
		l := launches[e.Launch]
		if l == nil || busy[l.Agent] != l.ID {
			return false
		}
		wpb := l.WarpsPerBlock()
		if e.Kind == event.ClusterArrive || e.Kind == event.ClusterWait {
			if !cluster.legal(l, e, gone) {
				return false
			}
		}
		if e.Kind == event.BarrierDone {
			for th, id := range waits {
				if th.launch == e.Launch && th.warp/wpb == e.Warp/wpb && id == e.Barrier {
					delete(waits, th)
				}
			}
			continue
		}
		for _, lane := range lanesOf(e.Mask) {
			th := thread{launch: e.Launch, warp: e.Warp, lane: lane}
			if _, w := waits[th]; w || gone[th] {
				return false
			}
			if e.Kind == event.Exit {
				gone[th] = true
			}
			if e.Kind == event.Arrive && e.Flags&event.FlagWait != 0 {
				waits[th] = e.Barrier
			}
		}
	}
	return true
}

// Shrink removes events, and then lanes, from a stream as long as bad stays true.
func Shrink(b *event.Batch, bad func(*event.Batch) bool) *event.Batch {
	try := func(es []event.Event) bool {
		c := *b
		c.Events = es
		return Legal(&c) && bad(&c)
	}
	cur := b.Events
	for again := true; again; {
		again = false
		for i := len(cur) - 1; i >= 0; i-- {
			es := append(append([]event.Event(nil), cur[:i]...), cur[i+1:]...)
			if try(es) {
				cur, again = es, true
			}
		}
		for i := range cur {
			e := &cur[i]
			for _, lane := range lanesOf(e.Mask) {
				if !e.Affine() || e.Flags&event.FlagValues != 0 || bits.OnesCount32(cur[i].Mask) == 1 {
					break
				}
				es := append([]event.Event(nil), cur...)
				es[i].Mask &^= 1 << uint(lane)
				if e.Stride == 0 && try(es) {
					cur, again = es, true
				}
			}
		}
	}
	c := *b
	c.Events = cur
	return &c
}

// Print formats a stream for people.
func Print(b *event.Batch) string {
	var s strings.Builder
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.KernelBegin:
			l := b.Launches[e.Side]
			fmt.Fprintf(&s, "%d begin launch %d agent %d grid %d cluster %d block %d early %v\n", i, l.ID, l.Agent, l.Grid.X, l.ClusterShape().X, l.Block.X, l.Early)
			continue
		case event.Host:
			fmt.Fprintf(&s, "%d host %+v\n", i, b.Hosts[e.Side])
			continue
		}
		fmt.Fprintf(&s, "%d L%d w%d m%#x p%d %v %v.%v.%v size %d flags %#x bar %d aux %d:", i, e.Launch, e.Warp, e.Mask, e.Place, e.Kind, e.Space, e.Order, e.Scope, e.Size, e.Flags, e.Barrier, e.Aux)
		if e.Kind == event.Load || e.Kind == event.Store || e.Kind == event.Atomic {
			for _, lane := range lanesOf(e.Mask) {
				fmt.Fprintf(&s, " %d@%#x=%v", lane, b.AddrOf(e, lane), b.ValueOf(e, lane))
			}
		}
		switch e.Kind {
		case event.Bulk, event.BulkDone, event.Wgmma, event.Core, event.CoreCommit, event.CoreDone, event.MbarrierDone, event.CopyArrive:
			fmt.Fprintf(&s, " %#x number %d", e.Addr, e.Stride)
		}
		s.WriteByte('\n')
	}
	return s.String()
}
