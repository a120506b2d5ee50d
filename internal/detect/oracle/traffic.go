package oracle

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Traffic makes the stream of a random program whose whole warps access arrays in lane order, as most kernels do:
// aligned to lines of shadow memory or not, with strides, the same element for all lanes, and sometimes scattered, with
// barriers, partial masks and a flag. pick is as for Random.
func Traffic(pick func(n int) int) *event.Batch {
	g := &generator{pick: pick, b: &event.Batch{}, agents: 1 + pick(2), span: 16}
	g.space = []uint64{0x9000, 0x9380}[pick(2)]
	var instructions []instruction
	for i := 1 + pick(6); i > 0; i-- {
		instructions = append(instructions, g.instruction(uint32(len(instructions)+1)))
	}
	regular := pick(3) > 0
	for i := 6 + pick(60); i > 0; i-- {
		g.trafficStep(instructions, regular)
	}
	for _, l := range g.running {
		g.emit(event.Event{Kind: event.KernelEnd, Launch: l.info.ID})
	}
	return g.b
}

// instruction is an instruction of a traffic program.
type instruction struct {
	event.Event
	base    int64 // of thread 0
	stride  int64 // from thread to thread
	warp    int64 // from warp to warp
	values  int   // 0: constant, 1: per warp, 2: per lane, 3: any, 4: unknown
	scatter bool  // addresses are random
	one     bool  // by a single lane
	rows    int   // with scatter: the number of lanes in a row of a tile, emitted as rows or as scattered addresses; 0: no rows
	row     int64 // from row to row
}

func (g *generator) instruction(place uint32) instruction {
	f := instruction{Event: event.Event{Place: place, Space: event.Global, Size: []uint8{4, 4, 4, 4, 8, 16, 1, 2}[g.pick(8)]}}
	if g.pick(4) == 0 {
		f.Space = event.Shared
	}
	size := int64(f.Size)
	f.Kind, f.Flags = event.Load, event.FlagRead
	if g.pick(2) == 0 {
		f.Kind, f.Flags = event.Store, event.FlagWrite
	}
	f.base = []int64{0, 0, 0, size, -size, 4 * size, 64}[g.pick(7)] + 256
	f.stride = []int64{size, size, size, size, 0, 2 * size, -size, 32, 128, 0}[g.pick(10)]
	f.warp = []int64{32 * f.stride, 32 * f.stride, 32 * f.stride, 0, f.stride, size}[g.pick(6)]
	f.values = g.pick(5)
	switch g.pick(12) {
	case 0:
		f.scatter = true
	case 4, 5, 6:
		f.scatter, f.rows, f.row = true, []int{16, 16, 8, 4, 24}[g.pick(5)], []int64{0, 128, 64, 256, size}[g.pick(5)]
	case 1:
		f.one = true
	case 2:
		f.Order, f.Scope = event.Relaxed, event.ScopeGPU
	case 3:
		f.Kind, f.Flags, f.Order, f.Scope = event.Atomic, event.FlagRead|event.FlagWrite, event.Relaxed, event.ScopeGPU
	}
	return f
}

func (g *generator) trafficStep(instructions []instruction, regular bool) {
	if len(g.running) == 0 {
		g.traffic()
		return
	}
	if g.pick(25) == 0 {
		g.hostStep()
		return
	}
	l := g.running[g.pick(len(g.running))]
	if len(l.warps) == 0 {
		return
	}
	wpb := l.info.WarpsPerBlock()
	block := l.blocks[g.pick(len(l.blocks))]
	e := event.Event{Launch: l.info.ID, Warp: block*wpb + uint32(g.pick(int(wpb))), Place: 100}
	w := l.warps[e.Warp]
	e.Mask = w.live &^ w.waits
	if e.Mask == 0 {
		return
	}
	switch g.pick(16) {
	case 0, 1:
		g.wholeBarrier(l, block, e)
		return
	case 3:
		g.hand(e)
		return
	case 4:
		e.Kind = event.WarpSync
		if g.pick(3) > 0 {
			g.emit(e)
		}
		return
	case 5:
		if e.Kind = event.Exit; g.pick(4) == 0 {
			e.Mask = g.some(e.Mask)
			w.live &^= e.Mask
			g.emit(e)
		}
		return
	}
	f := &instructions[g.pick(len(instructions))]
	if !regular || g.pick(6) == 0 {
		e.Mask = g.some(e.Mask)
		g.sweep(f, e)
		return
	}
	for i := uint32(0); i < wpb; i++ { // all warps of the block
		e.Warp = block*wpb + i
		w := l.warps[e.Warp]
		if e.Mask = w.live &^ w.waits; e.Mask != 0 {
			g.sweep(f, e)
		}
	}
}

// some returns a part of mask: the lanes below or above one, every second one, one, or all.
func (g *generator) some(mask uint32) uint32 {
	cut := uint32(1)<<uint(g.pick(32)) - 1
	m := []uint32{mask, mask & cut, mask &^ cut, mask & 0x55555555, mask & (cut + 1), mask & 0xffff}[g.pick(6)]
	if m == 0 {
		return mask
	}
	return m
}

// hand makes a synchronisation through a flag, usually outside the arrays.
func (g *generator) hand(e event.Event) {
	e.Mask &= -e.Mask
	fence := e
	fence.Kind, fence.Order, fence.Scope = event.Fence, event.AcqRel, event.ScopeGPU
	e.Kind, e.Flags, e.Space, e.Size, e.Addr = event.Atomic, event.FlagRead|event.FlagWrite, event.Global, 4, 0x4000
	e.Order, e.Scope = event.Relaxed, event.ScopeGPU
	if g.pick(6) == 0 {
		e.Addr = g.space + 512 // among the data
	}
	g.emit(fence)
	g.emit(e)
	g.emit(fence)
}

// sweep makes the event of one warp that executes f.
func (g *generator) sweep(f *instruction, e event.Event) {
	x := f.Event
	x.Launch, x.Warp, x.Mask = e.Launch, e.Warp, e.Mask
	if f.one {
		x.Mask &= -x.Mask
	}
	warp := int64(e.Warp % 64) // warp numbers of large grids are reduced so that no address is negative
	at := func(lane int) uint64 {
		if f.scatter && f.rows == 0 {
			return g.space + uint64(g.pick(24))*uint64(f.Size)
		}
		if f.rows > 0 {
			return (g.space + uint64(f.base+warp*f.warp+int64(lane/f.rows)*f.row+int64(lane%f.rows)*f.stride)) &^ uint64(f.Size-1)
		}
		return (g.space + uint64(f.base+warp*f.warp+int64(lane)*f.stride)) &^ uint64(f.Size-1)
	}
	n := bits.OnesCount32(x.Mask)
	first := bits.TrailingZeros32(x.Mask)
	x.Addr = at(first)
	if n > 1 {
		x.Stride = f.stride
	}
	if f.scatter && !(f.rows > 0 && f.rows <= 16 && g.pick(2) > 0 && x.InRows(uint8(bits.TrailingZeros(uint(f.rows))), f.stride, f.row)) {
		x.Flags |= event.FlagScattered
		x.Addr, x.Stride, x.Side = 0, 0, uint32(len(g.b.Addrs))
		for m := x.Mask; m != 0; m &= m - 1 {
			g.b.Addrs = append(g.b.Addrs, at(bits.TrailingZeros32(m)))
		}
	}
	if x.Kind == event.Store && f.values < 4 {
		x.Flags |= event.FlagValues
		x.Val = uint32(len(g.b.Values))
		for m := x.Mask; m != 0; m &= m - 1 {
			v := []uint64{0, uint64(e.Warp & 1), uint64(bits.TrailingZeros32(m)), uint64(g.pick(40) / 39)}[f.values]
			v |= v << 32
			if x.Size < 8 {
				v &= 1<<(8*x.Size) - 1
			}
			for i := event.ValueWords(x.Size); i > 0; i-- {
				g.b.Values = append(g.b.Values, v)
			}
		}
	}
	g.emit(x)
}

// traffic begins a launch of a few blocks.
func (g *generator) traffic() {
	g.ids++
	l := &runningLaunch{info: event.Launch{ID: g.ids, Agent: uint32(g.pick(g.agents)), Kernel: "k", Synchronises: true, Swaps: true}, warps: map[uint32]*runningWarp{}}
	blocks, threads := []uint32{1, 1, 1, 2, 3}[g.pick(5)], []uint32{32, 32, 64, 64, 40, 96}[g.pick(6)]
	l.info.Grid, l.info.Block = event.Dim3{X: blocks, Y: 1, Z: 1}, event.Dim3{X: threads, Y: 1, Z: 1}
	g.emit(event.Event{Kind: event.KernelBegin, Launch: l.info.ID, Side: uint32(len(g.b.Launches))})
	g.b.Launches = append(g.b.Launches, l.info)
	wpb := l.info.WarpsPerBlock()
	for b := uint32(0); b < blocks; b++ {
		l.blocks = append(l.blocks, b)
		for i := uint32(0); i < wpb; i++ {
			w := &runningWarp{live: ^uint32(0)}
			if i == wpb-1 && threads%32 != 0 {
				w.live = 1<<(threads%32) - 1
			}
			l.warps[b*wpb+i] = w
		}
	}
	g.running = append(g.running, l)
}
