package hb

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// stream builds streams by hand.
type stream struct {
	event.Batch
	launch event.Launch
}

func (s *stream) begin(grid, block uint32) {
	s.launch = event.Launch{ID: uint32(len(s.Launches) + 1), Kernel: "bench", Grid: event.Dim3{X: grid, Y: 1, Z: 1}, Block: event.Dim3{X: block, Y: 1, Z: 1}}
	s.Launches = append(s.Launches, s.launch)
	s.add(event.Event{Kind: event.KernelBegin, Side: uint32(len(s.Launches) - 1)})
}

func (s *stream) add(e event.Event) {
	e.Launch = s.launch.ID
	s.Events = append(s.Events, e)
}

func (s *stream) end() {
	for w := uint32(0); w < s.launch.Grid.X*s.launch.WarpsPerBlock(); w++ {
		s.add(event.Event{Kind: event.Exit, Warp: w, Mask: ^uint32(0)})
	}
	s.add(event.Event{Kind: event.KernelEnd})
}

// access adds an access by all lanes of a warp.
func (s *stream) access(k event.Kind, sp event.Space, warp, place uint32, addr uint64, stride int64) {
	e := event.Event{Kind: k, Space: sp, Warp: warp, Place: place, Mask: ^uint32(0), Addr: addr, Stride: stride, Size: 4}
	s.memory(e)
}

func (s *stream) scattered(k event.Kind, sp event.Space, warp, place uint32, addr func(lane int) uint64) {
	e := event.Event{Kind: k, Space: sp, Warp: warp, Place: place, Mask: ^uint32(0), Size: 4, Flags: event.FlagScattered, Side: uint32(len(s.Addrs))}
	for l := 0; l < 32; l++ {
		s.Addrs = append(s.Addrs, addr(l))
	}
	s.memory(e)
}

func (s *stream) memory(e event.Event) {
	switch e.Kind {
	case event.Load:
		e.Flags |= event.FlagRead
	case event.Store:
		e.Flags |= event.FlagWrite | event.FlagValues
		e.Val = uint32(len(s.Values))
		for l := uint64(0); l < 32; l++ {
			s.Values = append(s.Values, uint64(e.Warp)*32+l)
		}
	case event.Atomic:
		e.Flags |= event.FlagWrite | event.FlagRead
		e.Order, e.Scope = event.Relaxed, event.ScopeGPU
	}
	s.add(e)
}

func (s *stream) barrier(block, place uint32) {
	wpb := s.launch.WarpsPerBlock()
	for w := block * wpb; w < (block+1)*wpb; w++ {
		s.add(event.Event{Kind: event.Arrive, Warp: w, Mask: ^uint32(0), Place: place, Flags: event.FlagWait | event.FlagAligned})
	}
	s.add(event.Event{Kind: event.BarrierDone, Warp: block * wpb, Mask: 1})
}

const (
	heap      = 0x2000_0000_0000
	pageBytes = 4096
)

// regular makes a program whose warps do the same few things, each with a line of its own or with one of others, so
// that different lines often get the same history. Barriers order some of the accesses.
func regular(pick func(n int) int) *event.Batch {
	s := &stream{}
	threads := uint32(32 << pick(3))
	blocks := uint32(1 + pick(3))
	s.begin(blocks, threads)
	warps := int(blocks * threads / 32)
	space := event.Global
	if pick(4) == 0 {
		space = event.Shared
	}
	access := func(place, warp, line int) {
		e := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: space, Warp: uint32(warp), Place: uint32(1 + place), Mask: ^uint32(0),
			Addr: uint64(line%8) * 128, Stride: 4, Size: 4}
		switch place {
		case 1:
			e.Addr += 4
		case 2, 3, 4, 5:
			e.Kind, e.Flags = event.Store, event.FlagWrite
		}
		switch {
		case place == 5:
			e.Size, e.Mask = 8, 0xffff
			e.Stride = 8
		case pick(10) == 0:
			e.Mask = []uint32{0xffff, 0xffff0000, 0x55555555, 1, 1 << 31}[pick(5)]
			e.Addr += uint64(firstLane(e.Mask)) * 4
		}
		if e.Kind == event.Store {
			e.Flags |= event.FlagValues
			e.Val = uint32(len(s.Values))
			odd, kind := pick(32), pick(4)
			for l := 0; l < 32; l++ {
				if e.Mask>>uint(l)&1 != 0 {
					v := []uint64{0, 1, uint64(l), 0}[kind]
					if kind == 3 && l == odd {
						v = 1 << uint(8*pick(4))
					}
					s.Values = append(s.Values, v)
				}
			}
		}
		s.add(e)
	}
	for n := 4 + pick(24); n > 0; n-- {
		place, by, off := pick(6), []int{1, 1, 1, 1, 0, 2}[pick(6)], []int{0, 0, 0, 1, pick(8)}[pick(5)]
		switch pick(8) {
		case 0, 1, 2:
			if skip := uint32(pick(12)); true {
				for b := uint32(0); b < blocks; b++ {
					if b != skip {
						s.barrier(b, 10)
					}
				}
			}
		case 3:
			access(place, pick(warps), pick(8))
		default:
			skip := pick(12)
			for w := 0; w < warps; w++ {
				if w != skip {
					access(place, w, w*by+off)
				}
			}
		}
	}
	return &s.Batch
}

func firstLane(mask uint32) (n int) {
	for ; mask&1 == 0; mask >>= 1 {
		n++
	}
	return n
}

// changing makes a launch in which an instruction accesses memory as before, some lines further on, or in a different
// way: by other lanes, with another stride, starting within a line, in rows, scattered, or in shared memory. Then warps
// of another block write some of it.
func changing(pick func(int) int) *event.Batch {
	const lines = 24
	s := &stream{}
	s.begin(3, 64)
	masks := []uint32{^uint32(0), ^uint32(0), 0xffff, 0xffff0000, 0xff}
	strides := []int64{4, 4, 8, 32, -4}
	store := pick(4) == 0
	mask, stride, within, kind := masks[pick(len(masks))], strides[pick(len(strides))], uint64(pick(3)*32), 0
	for range 8 + pick(24) {
		if pick(3) == 0 { // one change at a time, so that one does not hide another
			switch pick(4) {
			case 0:
				mask = masks[pick(len(masks))]
			case 1:
				stride = strides[pick(len(strides))]
			case 2:
				within = uint64(pick(3) * 32)
			case 3:
				kind = pick(4)
			}
		}
		e := event.Event{Kind: event.Load, Space: event.Global, Warp: uint32(pick(4)), Place: 1, Mask: mask, Addr: heap + 1024 + uint64(pick(lines))*128 + within,
			Stride: stride, Size: 4}
		if store {
			e.Kind = event.Store
		}
		switch kind {
		case 1:
			if !e.InRows(4, stride, int64(pick(3))*128) {
				continue
			}
			e.Flags |= event.FlagRows
		case 2:
			e.Side = uint32(len(s.Addrs))
			for l := range 32 {
				if mask>>l&1 != 0 {
					s.Addrs = append(s.Addrs, e.Addr+uint64(int64(l)*stride))
				}
			}
			e.Flags, e.Addr, e.Stride = event.FlagScattered, 0, 0
		case 3:
			e.Space = event.Shared
		}
		s.memory(e)
	}
	for range 6 {
		s.memory(event.Event{Kind: event.Store, Space: event.Global, Warp: 4, Place: 2, Mask: ^uint32(0), Addr: heap + uint64(pick(lines+16))*128, Stride: 4, Size: 4})
	}
	s.end()
	return &s.Batch
}

// handed makes a launch whose threads access a word by few instructions and synchronise with some others. The accesses
// are first ordered and later not. Some writes cover half of the word.
func handed(pick func(int) int) *event.Batch {
	s := &stream{}
	s.begin(3, 64)
	warp := func() uint32 { return uint32(pick(6)) }
	mask := func() uint32 { return []uint32{1, 1, 1, 2, 2, 3}[pick(6)] }
	size := []uint8{2, 2, 4}[pick(3)]
	sync := func(k event.Kind, o event.Order, scope event.Scope, warp, lanes uint32, flag int) {
		e := event.Event{Kind: k, Space: event.Global, Warp: warp, Place: uint32(10 + flag), Mask: lanes, Addr: heap + 4096 + uint64(flag)*128, Size: 4,
			Order: o, Scope: scope, Flags: event.FlagRead}
		if k == event.Store {
			e.Flags, e.Place = event.FlagWrite, e.Place+10
		}
		s.add(e)
	}
	from := warp()
	for range 3 + pick(14) {
		to, lanes, flag := warp(), mask(), pick(3)
		if pick(16) != 0 { // the last thread that accessed the word releases it
			sync(event.Store, event.Release, event.ScopeGPU, from, lanes&-lanes, flag)
			sync(event.Load, event.Acquire, event.ScopeGPU, to, lanes, flag)
		}
		e := event.Event{Space: event.Global, Warp: to, Mask: lanes, Addr: heap, Size: size}
		switch pick(7) {
		case 0:
			e.Kind, e.Place, e.Mask = event.Store, 1, lanes&-lanes
			e.Addr += uint64(pick(2) * 2)
		case 1, 2, 3:
			e.Kind, e.Place = event.Load, 2
		default:
			e.Kind, e.Place = event.Atomic, 3
		}
		s.memory(e)
		from = to
	}
	s.end()
	return &s.Batch
}

// largeCopies makes host operations on ranges of many pages by agents with and without order between them, with
// launches, frees and allocations in between.
func largeCopies(rng *rand.Rand) *event.Batch {
	s := &stream{}
	pick := rng.IntN
	host := func(op event.HostOp) {
		s.Hosts = append(s.Hosts, op)
		s.Events = append(s.Events, event.Event{Kind: event.Host, Side: uint32(len(s.Hosts) - 1)})
	}
	const pages = 24
	span := func() (addr, size uint64) {
		from, n := uint64(pick(pages)), uint64(1+pick(pages))
		addr, size = heap+from*pageBytes, n*pageBytes
		if pick(3) == 0 {
			addr, size = addr+uint64(pick(pageBytes)), size+uint64(pick(pageBytes))
		}
		return addr, size
	}
	for range 3 + pick(12) {
		switch pick(7) {
		case 0, 1, 2:
			addr, size := span()
			kind := event.HostRead + event.HostKind(pick(2))
			host(event.HostOp{Kind: kind, Agent: uint32(pick(3)), Addr: addr, Size: size, Name: fmt.Sprint("copy ", pick(2))})
		case 3:
			host(event.HostOp{Kind: event.HostSignal, Agent: uint32(pick(3)), Token: 1})
			host(event.HostOp{Kind: event.HostWait, Agent: uint32(pick(3)), Token: 1})
		case 4:
			addr, size := span()
			host(event.HostOp{Kind: event.HostAlloc + event.HostKind(pick(2)), Agent: 0, Addr: addr, Size: size})
		default:
			s.begin(1, 32)
			s.Launches[len(s.Launches)-1].Agent = uint32(pick(3))
			for range 1 + pick(4) {
				e := event.Event{Mask: 1 << pick(32), Size: 4, Space: event.Global, Kind: event.Load, Flags: event.FlagRead, Place: uint32(1 + pick(2)),
					Addr: heap + uint64(pick(2*pages))*pageBytes + uint64(pick(pageBytes/4))*4}
				if pick(2) == 0 {
					e.Kind, e.Flags, e.Place = event.Store, event.FlagWrite, 3
				}
				s.add(e)
			}
			s.end()
		}
	}
	return &s.Batch
}

// readers makes a launch whose warps read the same lines in any order: upwards, downwards, by strides, with an
// occasional barrier of a block. Then some warps write the lines.
func readers(pick func(int) int) *event.Batch {
	s := &stream{}
	warps := 4 + pick(40)
	s.begin(uint32((warps+3)/4), 128)
	access := func(kind event.Kind, place, warp, line int) {
		e := event.Event{Kind: kind, Space: event.Global, Warp: uint32(warp), Place: uint32(place), Mask: ^uint32(0), Addr: heap + uint64(line)*128, Stride: 4, Size: 4,
			Flags: event.FlagRead}
		if kind == event.Store {
			e.Flags = event.FlagWrite
		}
		if pick(20) == 0 {
			e.Mask = 0xffff << pick(17)
		}
		s.add(e)
	}
	for range 1 + pick(4) {
		place, line, at, by := 1+pick(2), pick(2), pick(warps), []int{1, -1, 2, -2, 3, -5, 7, 1 + pick(warps)}[pick(8)]
		for range 1 + pick(12) {
			access(event.Load, place, (at%warps+warps)%warps, line)
			at += by
		}
		if pick(3) == 0 {
			s.barrier(uint32(pick(warps)/4), 9)
		}
	}
	for range 1 + pick(3) {
		access(event.Store, 3+pick(2), pick(warps), pick(2))
	}
	s.end()
	return &s.Batch
}

// divergent makes a program whose warps read a few words under several masks, often the same, between barriers, and
// write one occasionally.
func divergent(pick func(int) int) *event.Batch {
	s := &stream{}
	blocks := 1 + pick(2)
	s.begin(uint32(blocks), 64)
	masks := []uint32{1, 2, 3, 4, 6, 0xf, 0x80000001, ^uint32(0)}
	addr := func(word int) uint64 { return heap + uint64(word)*[]uint64{4, 128}[word%2] }
	for range 6 + pick(20) {
		e := event.Event{Space: event.Global, Warp: uint32(pick(2 * blocks)), Size: 4}
		switch pick(8) {
		case 0:
			s.barrier(uint32(pick(blocks)), 9)
		case 1:
			e.Kind, e.Place, e.Mask, e.Addr = event.Store, uint32(3+pick(2)), 1<<pick(4), addr(pick(4))
			s.memory(e)
		default:
			e.Kind, e.Place, e.Mask = event.Load, uint32(1+pick(5)/4), masks[pick(len(masks))]
			for word, some := 0, 1+pick(15); word < 4; word++ {
				if e.Addr = addr(word); some>>word&1 != 0 {
					s.memory(e)
				}
			}
		}
	}
	s.end()
	return &s.Batch
}

// iterations makes launches on a few streams, with and without order between them, that access the same few words,
// mostly by loads and relaxed atomics.
func iterations(rng *rand.Rand) *event.Batch {
	s := &stream{}
	host := func(op event.HostOp) {
		s.Hosts = append(s.Hosts, op)
		s.Events = append(s.Events, event.Event{Kind: event.Host, Side: uint32(len(s.Hosts) - 1)})
	}
	pick := rng.IntN
	words, calm, kinds := 1+pick(24), 1+pick(20), 1+pick(5)
	streams := uint32(1 + pick(2))
	for range 2 + pick(8) {
		if pick(3) == 0 {
			from, to := uint32(pick(int(streams))), uint32(pick(int(streams)))
			host(event.HostOp{Kind: event.HostSignal, Agent: from, Token: 1})
			host(event.HostOp{Kind: event.HostWait, Agent: to, Token: 1})
		}
		s.begin(uint32(1+pick(2)), 64)
		s.Launches[len(s.Launches)-1].Agent = uint32(pick(int(streams)))
		for range 1 + pick(12) {
			e := event.Event{Warp: uint32(pick(int(s.launch.Grid.X) * 2)), Mask: rng.Uint32() | 1, Size: 4, Space: event.Global,
				Kind: event.Load, Flags: event.FlagRead | event.FlagScattered, Side: uint32(len(s.Addrs))}
			switch pick(4) {
			case 0:
				e.Mask = 1 << pick(32)
			case 1:
				e.Mask &= 0x11111111
			}
			e.Place = uint32(1 + pick(kinds))
			switch e.Place {
			case 2, 3:
				e.Kind, e.Order, e.Scope, e.RMW = event.Atomic, event.Relaxed, event.ScopeGPU, event.CompareAndSwap
				if pick(3) == 0 {
					e.Flags |= event.FlagWrite
				}
			case 4:
				e.Kind, e.Order, e.Scope = event.Atomic, event.Relaxed, event.ScopeGPU
				e.Flags |= event.FlagWrite | event.FlagRed
			}
			if pick(4*calm) == 0 {
				e.Kind, e.Flags, e.Place, e.Order, e.Scope = event.Store, event.FlagWrite|event.FlagScattered, 6, event.Weak, event.NoScope
			}
			if pick(8*calm) == 0 && e.Order != event.Weak {
				e.Order, e.Place = event.AcqRel, 7
			}
			at := uint64(pick(3)) // one of three parts of memory, which overlap
			for m := e.Mask; m != 0; m &= m - 1 {
				s.Addrs = append(s.Addrs, heap+at*40+uint64(pick(words))*4+uint64(pick(2))*pageBytes)
			}
			s.add(e)
		}
		s.end()
		if pick(2*calm) == 0 {
			host(event.HostOp{Kind: event.HostKind(int(event.HostRead) + pick(2)), Agent: uint32(pick(int(streams) + 1)), Addr: heap + uint64(pick(40)),
				Size: uint64(1 + pick(100)), Name: "copy"})
		}
	}
	return &s.Batch
}

// counting makes a random launch of whole warps that count in many words. Sometimes lanes act alone, and at the end
// some of the words are accessed in another way.
func counting(rng *rand.Rand) *stream {
	s := &stream{}
	blocks, warps := []uint32{1, 2, 40}[rng.IntN(3)], uint32(1+rng.IntN(4))
	s.begin(blocks, warps*32)
	words, lost := []int{8, 300, 3000}[rng.IntN(3)], []int{3, 40, 1000}[rng.IntN(3)]
	access := func(e event.Event) {
		if e.Space == event.Global {
			e.Addr = heap
		}
		switch rng.IntN(6) {
		case 0:
			e.Addr += uint64(rng.IntN(words)) * 4
		case 1, 2:
			e.Addr += uint64(rng.IntN(words)/32) * 128
			e.Stride = 4
		default:
			e.Flags |= event.FlagScattered
			e.Side = uint32(len(s.Addrs))
			for range bits.OnesCount32(e.Mask) {
				s.Addrs = append(s.Addrs, e.Addr+uint64(rng.IntN(words))*4)
			}
		}
		s.memory(e)
	}
	for range 20 + rng.IntN(200) {
		e := event.Event{Kind: event.Atomic, Space: event.Global, Warp: uint32(rng.IntN(int(blocks * warps))), Place: 1, Mask: ^uint32(0), Size: 4}
		if rng.IntN(2) == 0 {
			e.Space = event.Shared
		}
		if rng.IntN(lost) == 0 {
			e.Mask = rng.Uint32() | 1
		}
		switch rng.IntN(4 * lost) {
		case 0:
			s.add(event.Event{Kind: event.WarpSync, Warp: e.Warp, Mask: e.Mask, Place: 2})
		case 1:
			s.barrier(e.Warp/warps, 3)
		case 2:
			s.add(event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Warp: e.Warp, Mask: e.Mask, Place: 4})
		case 3:
			e.Kind, e.Place, e.Mask = event.Store, 5, 1<<rng.IntN(32)
		}
		access(e)
	}
	for range 4 {
		e := event.Event{Kind: event.Load, Space: []event.Space{event.Global, event.Shared}[rng.IntN(2)], Warp: uint32(rng.IntN(int(blocks * warps))),
			Place: 6, Mask: rng.Uint32() | 1, Size: 4}
		access(e)
	}
	s.add(event.Event{Kind: event.KernelEnd})
	return s
}

// staging makes programs whose blocks repeat the same few accesses to shared memory between barriers, so that the
// detector need not judge them again. Occasionally something differs: another address or mask, one access less, other
// synchronisation, strong accesses, exits.
type staging struct {
	*stream
	pick   func(n int) int
	warps  uint32 // in a block
	blocks uint32
	gone   map[uint32]uint32 // lanes that have exited, by warp
}

// sweep is an access by each warp of a block, at addr + warp*far.
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

// odd does something other than weak accesses to shared memory.
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

// handOver makes a thread write and another of its block read the data, after a flag in global memory or too early.
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

// meet makes the threads of a block arrive at a barrier, or all except one warp.
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
	// The late warp arrives too, after some more accesses.
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
			if pick(2) == 0 { // one warp after the other, or one access after the other
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

// inSeries turns consecutive accesses of a warp to shared memory into series.
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

// crowd makes a launch of many blocks whose threads access a few words, with little order.
func crowd(pick func(int) int) *event.Batch {
	s := &stream{}
	blocks := 20 + pick(30)
	s.begin(uint32(blocks), uint32(32*(1+pick(2))))
	warps := blocks * int(s.launch.WarpsPerBlock())
	kinds := 2 + pick(5)
	value := 1 + pick(2)
	for range (60 + pick(120)) * []int{1, 1, 1, 6}[pick(4)] {
		warp := pick(warps)
		e := event.Event{Space: event.Global, Warp: uint32(warp), Mask: 1 << pick(2), Addr: heap + uint64(pick(2))*4, Size: 4}
		switch k := pick(kinds); k {
		case 0, 1:
			e.Kind, e.Place, e.Flags = event.Store, uint32(1+k), event.FlagWrite|event.FlagValues
			if e.Val = uint32(len(s.Values)); pick(8) == 0 {
				e.Addr, e.Size = e.Addr+uint64(pick(2)*2), 2
			}
			s.Values = append(s.Values, uint64(pick(value)))
			s.add(e)
			continue
		case 2:
			e.Kind, e.Place = event.Load, 3
		case 3, 4:
			e.Kind, e.Place = event.Atomic, uint32(k+1)
		case 5: // a failed compare-and-swap
			e.Kind, e.Place, e.Order, e.Scope, e.Flags = event.Atomic, 6, event.Relaxed, event.ScopeGPU, event.FlagRead
			s.add(e)
			continue
		default:
			if pick(6) == 0 {
				s.barrier(uint32(warp)/s.launch.WarpsPerBlock(), 9)
			} else if pick(6) == 0 {
				e.Kind, e.Order, e.Scope, e.Place = event.Fence, event.SC, event.ScopeGPU, 8
				s.add(e)
			}
			continue
		}
		s.memory(e)
	}
	s.end()
	return &s.Batch
}

// gridBarriers makes a launch whose threads load a word, meet at a barrier of the grid, and write the word, several
// times. A few threads are missing at the barriers, or load late.
func gridBarriers(pick func(int) int) *event.Batch {
	s := &stream{}
	blocks := 26 + pick(6)
	s.begin(uint32(blocks), 32)
	access := func(kind event.Kind, place, block int) {
		s.memory(event.Event{Kind: kind, Space: event.Global, Warp: uint32(block), Place: uint32(place), Mask: 1 << (pick(400) / 399), Addr: heap, Size: 4})
	}
	barrier := func() {
		first, missing := pick(blocks), pick(12*blocks)
		for round := range 2 { // all arrive in the first round, and know each other after the second
			for i := range blocks {
				if b := (first + i) % blocks; b != missing {
					s.release(uint32(b))
				} else if pick(2) == 0 {
					missing -= round // knows too little, or arrives late
				}
			}
		}
	}
	for range 1 + pick(3) {
		for block := range blocks {
			if pick(12) > 0 {
				access(event.Load, 1+pick(9)/8, block)
			}
		}
		barrier()
		writer := pick(blocks)
		for range 1 + pick(2) {
			access(event.Store, 3, writer)
			if pick(6) == 0 {
				access(event.Load, 1, pick(blocks))
			}
		}
		barrier()
	}
	s.end()
	return &s.Batch
}

// succession makes consecutive launches whose warps access whole lines of memory, release and acquire. From some launch
// on, they run in two streams with little order between them.
func succession(pick func(int) int) *event.Batch {
	s := &stream{}
	const flags = heap + 2*pageBytes
	single := 1 + pick(4)
	for i := range single + 1 + pick(3) {
		s.begin(2, 64)
		l := &s.Launches[i]
		if i >= single {
			l.Agent = uint32(pick(2))
		}
		for range 1 + pick(5) {
			e := event.Event{Space: event.Global, Warp: uint32(pick(4)), Mask: 1, Addr: flags + 4*uint64(pick(2)), Size: 4, Scope: event.ScopeGPU}
			switch pick(9) {
			case 0, 1:
				e.Kind, e.Order, e.Place = event.Store, event.Release, 8
				s.memory(e)
			case 2, 3:
				e.Kind, e.Order, e.Place = event.Load, event.Acquire, 9
				s.memory(e)
			case 4:
				s.barrier(e.Warp/2, 7)
			default:
				place := 1 + pick(3)
				kind := []event.Kind{event.Load, event.Store}[place%2]
				if e = (event.Event{Kind: kind, Space: event.Global, Warp: e.Warp, Place: uint32(place), Mask: ^uint32(0), Addr: heap + 128*uint64(pick(2)),
					Stride: 4, Size: 4}); pick(6) == 0 {
					e.Mask, e.Size = 1<<pick(3), 1<<pick(3)
				}
				s.memory(e)
			}
		}
		s.end()
		if pick(3) == 0 {
			h := event.HostOp{Agent: uint32(pick(2)), Kind: []event.HostKind{event.HostSignal, event.HostWait, event.HostRead}[pick(3)], Name: "copy", Addr: heap, Size: 64}
			s.Hosts = append(s.Hosts, h)
			s.Events = append(s.Events, event.Event{Kind: event.Host, Side: uint32(len(s.Hosts) - 1)})
		}
	}
	return &s.Batch
}

// inputs makes launches in up to three streams whose warps load from a few places in memory, in loops and singly, with
// barriers between, and occasionally store there. Launches may repeat. The host copies, allocates and frees.
func inputs(pick func(int) int) *event.Batch {
	s := &stream{}
	host := func(h event.HostOp) {
		s.Hosts = append(s.Hosts, h)
		s.Events = append(s.Events, event.Event{Kind: event.Host, Side: uint32(len(s.Hosts) - 1)})
	}
	places := 1 + pick(4)
	place := func() uint64 { n := uint64(pick(places)); return heap + 256*(n/2) + n%2*pageBytes }
	agents := 1 + pick(3)
	tokens := uint64(0)
	var bodies [][2]int // the events of launches: from and to in s.Events
	for range 2 + pick(3) {
		s.begin(2, 64)
		s.Launches[len(s.Launches)-1].Agent = uint32(pick(agents))
		running := []event.Launch{s.launch}
		if pick(4) == 0 {
			s.begin(2, 64)
			s.Launches[len(s.Launches)-1].Agent = uint32(pick(agents))
			running = append(running, s.launch)
		}
		from := len(s.Events)
		if n := len(bodies); n > 0 && pick(3) == 0 {
			for _, e := range s.Events[bodies[n-1][0]:bodies[n-1][1]] {
				if e.Kind != event.Host {
					s.add(e)
				}
			}
		} else {
			for i := range 1 + pick(6) {
				s.launch = running[pick(len(running))]
				w, site, at := uint32(pick(4)), uint32(1+pick(2)), place()
				e := event.Event{Space: event.Global, Kind: event.Load, Warp: w, Place: site, Addr: at + 4*uint64(pick(4)), Mask: 1<<pick(4) | 1, Stride: 4, Size: 4}
				switch pick(9 + i) {
				case 0:
					e.Kind, e.Place = event.Store, 8
					s.memory(e)
				case 1, 2:
					s.barrier(w/2, 7)
				case 10, 11:
					e.Mask, e.Addr, e.Scope = 1, heap+2*pageBytes, event.ScopeGPU
					if e.Order, e.Place = event.Acquire, 9; pick(2) == 0 {
						e.Kind, e.Order, e.Place = event.Store, event.Release, 10
					}
					s.memory(e)
				case 9: // while the launch runs
					h := event.HostOp{Agent: uint32(pick(agents)), Kind: event.HostFree, Addr: at, Size: 256}
					if pick(2) == 0 {
						h.Kind, h.Name, h.Size = event.HostWrite, "copy", 8
					}
					host(h)
				case 3:
					at := []uint64{place(), place()}
					e.Mask, e.Flags, e.Side = 5, event.FlagScattered, uint32(len(s.Addrs))
					s.Addrs = append(s.Addrs, at...)
					s.memory(e)
				case 4, 5: // each warp
					apart := 16 * uint64(pick(3))
					for ; e.Warp < 4; e.Warp++ {
						s.memory(e)
						e.Addr += apart
					}
					if pick(2) == 0 {
						e.Kind, e.Place, e.Warp, e.Addr = event.Store, 8, uint32(pick(4)), e.Addr-apart*uint64(pick(3))
						s.memory(e)
					}
				default: // a loop
					often := pick(3)
					for step := 4 * uint64(pick(3)); pick(4) > 0; e.Addr += step {
						if s.memory(e); pick(2) < often {
							s.barrier(w/2, 6)
						}
					}
				}
			}
		}
		bodies = append(bodies, [2]int{from, len(s.Events)})
		for _, s.launch = range running {
			s.end()
		}
		switch h := (event.HostOp{Agent: uint32(pick(agents)), Addr: place(), Size: 64, Name: "copy"}); pick(6) {
		case 0:
			h.Kind = event.HostRead
			host(h)
		case 1:
			h.Kind = event.HostWrite
			host(h)
		case 2:
			h.Kind, h.Size = event.HostFree, 256
			host(h)
		case 3:
			tokens++
			h.Kind, h.Token = event.HostSignal, tokens
			host(h)
			h.Kind, h.Agent = event.HostWait, uint32(pick(agents))
			host(h)
		}
	}
	return &s.Batch
}

// updates makes the programs of inputs, in which the loads at some places are replaced by relaxed atomic operations,
// occasionally of another kind or scope.
func updates(pick func(int) int) *event.Batch {
	b := inputs(pick)
	which := 1 + pick(3)
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind != event.Load || e.Order != event.Weak || e.Place > 2 || which>>(e.Place-1)&1 == 0 {
			continue
		}
		e.Kind, e.Order, e.Scope, e.Place = event.Atomic, event.Relaxed, event.ScopeGPU, 10+e.Place
		e.Flags |= event.FlagRead | event.FlagWrite
		if pick(2) == 0 {
			e.Stride = 0 // all lanes access one word
		}
		switch pick(12) {
		case 0:
			e.Scope, e.Place = event.ScopeCTA, 13
		case 1:
			e.Kind, e.Place = event.Load, 14
			e.Flags &^= event.FlagWrite
		case 2:
			e.Kind, e.Place = event.Store, 15
			e.Flags &^= event.FlagRead
		case 3:
			e.Flags, e.Place = e.Flags|event.FlagRed, 16
		case 4:
			e.Flags, e.Place = e.Flags&^event.FlagWrite, 17 // a compare-and-swap that fails
		}
	}
	return b
}
