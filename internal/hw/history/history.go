// Package history implements access histories in the software layer of a hardware race detector. For each variable it
// keeps the epoch of the last write and those of the reads since, and compares accesses with them (FastTrack; seed 001,
// figure 3.3).
package history

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
)

// shared marks cell.read as the number of a row.
const shared = 1 << 63

type cell struct{ write, read order.Epoch }

// Histories has the history of each variable. In the zero value all histories are empty.
type Histories struct {
	cells []cell
	rows  []order.Clock // the last read of each thread, for variables that several threads have read
	free  []order.Epoch
	slab  []order.Epoch // memory for new rows
}

// Grow makes room for all variables up to the given one.
func (h *Histories) Grow(variable uint32) {
	if int(variable) >= len(h.cells) {
		h.cells = append(h.cells, make([]cell, int(variable)+1-len(h.cells))...)
	}
}

// Written returns the epoch of the last write, or 0 if there is none.
func (h *Histories) Written(x uint32) order.Epoch { return h.cells[x].write }

// SetWrite replaces the history by a write.
func (h *Histories) SetWrite(x uint32, e order.Epoch) {
	h.ClearReads(x)
	h.cells[x].write = e
}

// Rewrite replaces the last write and keeps the reads.
func (h *Histories) Rewrite(x uint32, e order.Epoch) { h.cells[x].write = e }

// ClearReads removes the reads.
func (h *Histories) ClearReads(x uint32) {
	c := &h.cells[x]
	if c.read&shared != 0 {
		row := &h.rows[c.read&^shared]
		*row = (*row)[:0]
		h.free = append(h.free, c.read&^shared)
	}
	c.read = 0
}

// AddRead adds a read. Of the reads of one thread, only the latest is kept.
func (h *Histories) AddRead(x uint32, e order.Epoch) {
	c := &h.cells[x]
	switch {
	case c.read&shared != 0:
	case c.read == 0 || c.read.Thread() == e.Thread():
		c.read = max(c.read, e)
		return
	default:
		at := order.Epoch(len(h.rows))
		if n := len(h.free); n > 0 {
			at, h.free = h.free[n-1], h.free[:n-1]
		} else {
			h.rows = append(h.rows, nil)
		}
		h.set(&h.rows[at], c.read)
		c.read = at | shared
	}
	h.set(&h.rows[c.read&^shared], e)
}

// set adds a read to a row if it is later than the thread's read in the row. The capacity of a row is a power of two.
func (h *Histories) set(row *order.Clock, e order.Epoch) {
	t := int(e.Thread())
	if n := len(*row); t >= n {
		if t >= cap(*row) {
			room := 1 << bits.Len(uint(t))
			if len(h.slab) < room {
				h.slab = make([]order.Epoch, max(room, 1<<12))
			}
			copy(h.slab, *row)
			*row, h.slab = order.Clock(h.slab[:n:room]), h.slab[room:]
		}
		*row = (*row)[:t+1]
		clear((*row)[n:])
	}
	if e > (*row)[t] {
		(*row)[t] = e
	}
}

// Reads calls each for every read, until each returns false.
func (h *Histories) Reads(x uint32, each func(order.Epoch) bool) {
	c := h.cells[x]
	if c.read&shared == 0 {
		if c.read != 0 {
			each(c.read)
		}
		return
	}
	for _, e := range h.rows[c.read&^shared] {
		if e != 0 && !each(e) {
			return
		}
	}
}

// Free reports whether an access by a thread with clock c races with no earlier access.
func (h *Histories) Free(x uint32, c order.Clock, write bool) bool {
	return c.Has(h.cells[x].write) && (!write || h.readsBefore(x, c))
}

// readsBefore reports whether all reads are ordered before clock c.
func (h *Histories) readsBefore(x uint32, c order.Clock) bool {
	r := h.cells[x].read
	if r&shared == 0 {
		return c.Has(r)
	}
	for _, e := range h.rows[r&^shared] {
		if !c.Has(e) {
			return false
		}
	}
	return true
}

// Races calls found for each earlier access that an access races with.
func (h *Histories) Races(x uint32, c order.Clock, write bool, found func(earlier order.Epoch, wrote bool)) {
	if e := h.cells[x].write; !c.Has(e) {
		found(e, true)
	}
	if !write || h.readsBefore(x, c) {
		return
	}
	h.Reads(x, func(e order.Epoch) bool {
		if !c.Has(e) {
			found(e, false)
		}
		return true
	})
}

// Record adds an access in epoch now of a thread with clock c. A write replaces the history. A read replaces the other
// reads if all of them are ordered before it.
func (h *Histories) Record(x uint32, c order.Clock, now order.Epoch, write bool) {
	if write {
		h.SetWrite(x, now)
		return
	}
	if h.readsBefore(x, c) {
		h.ClearReads(x)
	}
	h.AddRead(x, now)
}

// Shared reports whether more than one read is recorded.
func (h *Histories) Shared(x uint32) bool { return h.cells[x].read&shared != 0 }

// Same reports whether the last access of this kind was made in this epoch.
func (h *Histories) Same(x uint32, now order.Epoch, write bool) bool {
	if write {
		return h.cells[x].write == now && h.cells[x].read == 0
	}
	return h.cells[x].read == now
}

// Bytes is the size of the histories in memory.
func (h *Histories) Bytes() uint64 {
	n := uint64(cap(h.cells))*16 + uint64(cap(h.free))*8
	for _, row := range h.rows {
		n += row.Bytes() + 24
	}
	return n
}

// Race returns the race of an access with an earlier one.
func Race(at uint64, e *cpu.Event, earlier order.Epoch, wrote bool) cpu.Race {
	return cpu.Race{Event: at, Variable: e.Object, Thread: e.Thread, Earlier: earlier.Thread(), Write: e.Op == cpu.Write, Wrote: wrote}
}

// Any reports whether the history is not empty.
func (h *Histories) Any(x uint32) bool { return h.cells[x] != cell{} }
