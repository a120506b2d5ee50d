package oracle

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Remember returns a stream whose writes have values, and old values where event.Batch.OldOf allows it. It makes up the
// initial memory, and the values of writes that have none.
func Remember(b *event.Batch) *event.Batch {
	r := memory{b: b, launches: map[uint32]*event.Launch{}, chunks: map[location]*chunk{},
		out: &event.Batch{Addrs: b.Addrs, Launches: b.Launches, Hosts: b.Hosts}}
	for i := range b.Launches {
		r.launches[b.Launches[i].ID] = &b.Launches[i]
	}
	r.apart()
	for i := range b.Events {
		e := b.Events[i]
		switch {
		case e.Kind == event.Host:
			r.host(&b.Hosts[e.Side])
		case e.Kind <= event.Atomic && e.Flags&event.FlagWrite != 0:
			r.write(&e, uint64(i))
		default:
			e.Flags &^= event.FlagValues // a failed atomic: its values are not used
		}
		r.out.Events = append(r.out.Events, e)
	}
	return r.out
}

// memory is the content of memory after the writes so far.
type memory struct {
	b, out   *event.Batch
	launches map[uint32]*event.Launch
	tells    map[uint32]bool // launches whose writes carry old values
	chunks   map[location]*chunk
	last     *chunk // the chunk found last, at lastAt
	lastAt   location
}

type location struct{ launch, block, addr uint64 } // launch and block are 0 for global memory

// chunk is the content of an aligned piece of memory.
type chunk [64]byte

// apart finds the launches during which nothing else writes and all of whose writes are aligned.
func (r *memory) apart() {
	r.tells = map[uint32]bool{}
	running := map[uint32]bool{}
	for i := range r.b.Events {
		e := &r.b.Events[i]
		switch {
		case e.Kind == event.KernelBegin:
			id := r.b.Launches[e.Side].ID
			running[id], r.tells[id] = true, true
		case e.Kind == event.KernelEnd:
			delete(running, e.Launch)
		case e.Kind == event.Host && r.b.Hosts[e.Side].Kind == event.HostWrite:
			for id := range running {
				r.tells[id] = false
			}
		case e.Kind <= event.Atomic && e.Flags&event.FlagWrite != 0:
			for id := range running {
				if id != e.Launch {
					r.tells[id] = false
				}
			}
			for m := e.Mask; m != 0; m &= m - 1 {
				if r.b.AddrOf(e, bits.TrailingZeros32(m))%uint64(max(e.Size, 1)) != 0 {
					r.tells[e.Launch] = false
				}
			}
		}
	}
}

// at returns a pointer to a byte of memory.
func (r *memory) at(l location) *byte {
	i := l.addr % uint64(len(chunk{}))
	l.addr -= i
	if r.last == nil || r.lastAt != l {
		c := r.chunks[l]
		if c == nil {
			c = new(chunk)
			for i := range c {
				c[i] = byte((l.addr + uint64(i)) / 32 % 2)
			}
			r.chunks[l] = c
		}
		r.last, r.lastAt = c, l
	}
	return &r.last[i]
}

func (r *memory) host(h *event.HostOp) {
	if h.Kind != event.HostWrite || h.Size > 1<<16 {
		return
	}
	for i := range h.Size {
		*r.at(location{addr: h.Addr + i}) = byte((h.Addr + i) / 64 % 2)
	}
}

// write gives e values, and old values.
func (r *memory) write(e *event.Event, n uint64) {
	first := len(r.out.Values)
	var olds []uint64
	words := event.ValueWords(e.Size)
	at := r.space(e)
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr := r.b.AddrOf(e, lane)
		value := r.b.ValueOf(e, lane)
		if value == nil {
			value = make([]uint64, words)
			for i := range uint64(e.Size) {
				value[i/8] |= (n * 2654435761 >> 7 % 4 * uint64(lane%2) & 0xff) << (i % 8 * 8)
			}
		}
		r.out.Values = append(r.out.Values, value[:words]...)
		old := make([]uint64, words)
		from, size := addr, uint64(e.Size)
		if size < 4 {
			from, size = addr&^3, 4
		}
		for i := range size {
			at.addr = from + i
			old[i/8] |= uint64(*r.at(at)) << (i % 8 * 8)
		}
		olds = append(olds, old...)
		for i := range uint64(e.Size) {
			at.addr = addr + i
			*r.at(at) = byte(value[i/8] >> (i % 8 * 8))
		}
	}
	e.Val = uint32(first)
	e.Flags |= event.FlagValues
	if r.tells[e.Launch] {
		e.Flags |= event.FlagOld
		r.out.Values = append(r.out.Values, olds...)
	}
}

// space returns the location of address 0 of the memory that e accesses.
func (r *memory) space(e *event.Event) location {
	if e.Space != event.Shared {
		return location{}
	}
	block := uint64(0)
	if l := r.launches[e.Launch]; l != nil {
		block = uint64(e.Warp / l.WarpsPerBlock())
	}
	return location{launch: uint64(e.Launch), block: block + 1}
}
