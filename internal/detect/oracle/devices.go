package oracle

import "fencepost.dev/fencepost/internal/event"

// Devices puts the launches of a random program on several devices. In half of the programs, the launches of an agent
// are on one device. Most scopes that reach beyond the block become system scope.
func Devices(b *event.Batch, pick func(n int) int) *event.Batch {
	out := *b
	out.Events, out.Launches = append([]event.Event(nil), b.Events...), append([]event.Launch(nil), b.Launches...)
	n, mixed := 2+pick(2), pick(2) == 0
	devices := map[uint32]uint8{}
	for i := range out.Launches {
		l := &out.Launches[i]
		if mixed || devices[l.Agent] == 0 {
			devices[l.Agent] = 1 + uint8(pick(n))
		}
		l.Device = devices[l.Agent]
	}
	often := 1 + pick(6)
	for i := range out.Events {
		if e := &out.Events[i]; e.Scope == event.ScopeGPU && pick(6) < often {
			e.Scope = event.ScopeSys
		}
	}
	return &out
}

// Exchanges makes a program of concurrent launches on several devices that hand data over through flags, by operations
// and fences of device scope or system scope.
func Exchanges(pick func(n int) int) *event.Batch {
	b := &event.Batch{}
	add := func(e event.Event) { b.Events = append(b.Events, e) }
	n := 2 + pick(3)
	for i := range n {
		id := uint32(i + 1)
		add(event.Event{Kind: event.KernelBegin, Launch: id, Side: uint32(i)})
		b.Launches = append(b.Launches, event.Launch{ID: id, Agent: uint32(i), Kernel: "k", Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 1, Y: 1, Z: 1},
			Synchronises: true, Swaps: true, Device: 1 + uint8(pick(min(n, 3)))})
	}
	often := 2 + pick(5)
	scope := func() event.Scope {
		if pick(8) < often {
			return event.ScopeSys
		}
		return []event.Scope{event.ScopeGPU, event.ScopeGPU, event.ScopeGPU, event.ScopeCTA}[pick(4)]
	}
	flags, ended := uint64(1+pick(2)), map[uint32]bool{}
	for range 6 + pick(24) {
		e := event.Event{Launch: 1 + uint32(pick(n)), Warp: uint32(pick(2)), Mask: 1, Space: event.Global, Size: 4}
		if ended[e.Launch] {
			continue
		}
		fence := func(orders ...event.Order) {
			f := event.Event{Kind: event.Fence, Launch: e.Launch, Warp: e.Warp, Mask: 1, Order: orders[pick(len(orders))], Scope: scope()}
			add(f)
		}
		flag := func(k event.Kind, f event.Flags, place uint32, orders ...event.Order) {
			x := e
			x.Kind, x.Flags, x.Place, x.Addr, x.Order, x.Scope = k, f, place, 0x1000+8*uint64(pick(int(flags))), orders[pick(len(orders))], scope()
			add(x)
		}
		const both = event.FlagRead | event.FlagWrite
		switch pick(10) {
		case 0, 1:
			e.Kind, e.Flags, e.Place, e.Addr = event.Store, event.FlagWrite, 1, 0x2000+4*uint64(pick(2))
			add(e)
		case 2, 3:
			e.Kind, e.Flags, e.Place, e.Addr = event.Load, event.FlagRead, 2, 0x2000+4*uint64(pick(2))
			add(e)
		case 4:
			if pick(2) == 0 {
				fence(event.AcqRel, event.SC, event.Release)
			}
			flag(event.Store, event.FlagWrite, 3, event.Relaxed, event.Release)
		case 5, 6:
			flag(event.Load, event.FlagRead, 4, event.Relaxed, event.Acquire, event.Volatile)
			if pick(2) == 0 {
				fence(event.AcqRel, event.SC, event.Acquire)
			}
		case 7:
			flag(event.Atomic, both, 5, event.Relaxed, event.Relaxed, event.AcqRel, event.Release, event.Acquire)
		case 8:
			fence(event.AcqRel, event.SC)
		case 9:
			if pick(3) == 0 {
				add(event.Event{Kind: event.KernelEnd, Launch: e.Launch})
				ended[e.Launch] = true
			}
		}
	}
	for i := range n {
		if id := uint32(i + 1); !ended[id] {
			add(event.Event{Kind: event.KernelEnd, Launch: id})
		}
	}
	return b
}
