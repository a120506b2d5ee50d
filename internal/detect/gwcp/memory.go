package gwcp

import (
	"unsafe"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// mapEntry is the approximate overhead of a map for each entry, besides key and value.
const mapEntry = 8

// MemoryBytes returns the memory of the metadata. Clocks that share parts count once.
func (d *Detector) MemoryBytes() uint64 {
	n := d.mem.Bytes() + d.values.Bytes()
	d.mem.Each(func(ln *line) {
		if m := ln.more; m != nil {
			n += m.bytes()
		}
	})
	for _, m := range d.spare {
		n += m.bytes()
	}
	if d.run == nil {
		return n
	}
	seen := clock.Seen{}
	for _, b := range d.run.blocks {
		n += size(*b) + uint64(cap(b.warps))*size(warp{})
		for i := range b.warps {
			w := &b.warps[i]
			n += uint64(cap(w.groups)) * size(group{})
			for j := range w.groups {
				n += w.groups[j].bytes(seen)
			}
		}
	}
	for _, at := range d.locations {
		n += size(*at) + size(locKey{}) + mapEntry + at.wide.bytes(seen)
		for _, m := range at.narrow {
			n += mapEntry + size(m) + m.bytes(seen)
		}
	}
	for _, st := range d.lockStates {
		n += st.bytes(seen)
	}
	return n
}

func (m *more) bytes() uint64 {
	n := size(*m) + uint64(cap(m.ws)+cap(m.rs))*size(span{}) + uint64(len(m.last.slots))*size(slot{})
	if m.cells != nil {
		n += size(*m.cells)
	}
	return n
}

func size[T any](x T) uint64 { return uint64(unsafe.Sizeof(x)) }

func (k *know) bytes(seen clock.Seen) uint64 { return k.block.Bytes(seen) + k.grid.Bytes(seen) }

func (m *clocks) bytes(seen clock.Seen) uint64 { return m.c.Bytes(seen) + m.h.Bytes(seen) }

func (v *view) bytes(seen clock.Seen) uint64 {
	n := v.p.bytes(seen) + v.h.bytes(seen) + uint64(cap(v.seen))*size(pending{})
	for i := range v.seen {
		n += v.seen[i].wide.bytes(seen) + v.seen[i].narrow.bytes(seen)
	}
	for _, s := range v.sections {
		n += size(s) + size(*s) + uint64(cap(s.accesses))*size(access{}) + uint64(len(s.index))*(mapEntry+size(granule{})+8)
	}
	for _, s := range []*snapshot{v.fenced.narrow, v.fenced.wide} {
		if s != nil {
			n += size(*s) + s.p.bytes(seen) + s.h.bytes(seen) + s.trees.bytes(seen)
		}
	}
	return n
}

func (st *lockState) bytes(seen clock.Seen) uint64 {
	n := size(*st) + mapEntry + size(st.id) + st.device.bytes(seen)
	for _, x := range st.blocks {
		n += mapEntry + size(*x) + x.bytes(seen)
	}
	for _, list := range st.touched {
		n += mapEntry + size(granule{}) + uint64(cap(list))*size(touched{})
		for i := range list {
			n += list[i].h.Bytes(seen)
		}
	}
	return n
}

func (x *instance) bytes(seen clock.Seen) uint64 {
	n := x.p.Bytes(seen) + x.h.Bytes(seen) + uint64(cap(x.queue))*size(entry{})
	for i := range x.queue {
		n += x.queue[i].h.Bytes(seen)
	}
	return n
}
