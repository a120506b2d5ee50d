// Package fasttrack implements the detector FastTrack (seed 001, section 3.2.1, figure 3.3). For each variable it keeps
// the epoch of the last write, and the reads since that write. The reads are one epoch while each read is ordered after
// the one before. Otherwise they are a clock with the last read of each thread.
//
// After a race is reported, the detector continues as if the accesses had been ordered. So the first race of each
// variable is certain, and no variable without a race is reported. A later race of a variable may be a consequence of
// the first. The rules *SAMEEPOCH come first: a repeated access of a thread in one epoch is not judged again.
//
// The state is flat: 16 bytes for each variable, and a table of the last reads of the variables that have a clock.
package fasttrack

import (
	"unsafe"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
	"fencepost.dev/fencepost/internal/prefetch"
)

// Spec is the detector.
var Spec = cpu.Spec{
	Name:   "fasttrack",
	Doc:    "Happens-before of CPU programs, epochs for the last write and, mostly, the last read of a variable.",
	Source: "Efficient Precise Dynamic Data Race Detection for CPU and GPU, section 3.2.1",
	New:    func(found func(cpu.Race)) cpu.Detector { return &Detector{found: found} },
}

// cell is the metadata of a variable: an EpochPair, or, if read is marked shared, an EpochPlusVC whose clock is row
// read of readers.
type cell struct{ write, read order.Epoch }

// shared marks cell.read as the number of a row.
const shared = 1 << 63

// Detector is the state of FastTrack.
type Detector struct {
	found   func(cpu.Race)
	order   order.Order
	cells   []cell
	readers []order.Epoch // rows of 1<<shift epochs, one for each thread
	shift   uint
	free    []order.Epoch // rows that belong to no cell
	atomics order.Atomics
	events  uint64
}

// Events implements cpu.Detector.
func (d *Detector) Events(events []cpu.Event) {
	part := events[:min(len(events), prefetch.Most)]
	d.ask(part)
	for len(part) > 0 {
		events = events[len(part):]
		next := events[:min(len(events), prefetch.Most)]
		d.ask(next) // prefetches while part is judged
		d.judge(part)
		d.events += uint64(len(part))
		part = next
	}
}

// ask makes room for the variables of events and prefetches their metadata.
func (d *Detector) ask(events []cpu.Event) {
	var at [prefetch.Most]unsafe.Pointer
	n := 0
	for i := range events {
		e := &events[i]
		if e.Op != cpu.Read && e.Op != cpu.Write {
			continue
		}
		d.room(e.Object)
		at[n&(prefetch.Most-1)] = unsafe.Pointer(&d.cells[e.Object])
		n++
	}
	prefetch.Lines(&at, n)
}

func (d *Detector) judge(events []cpu.Event) {
	var c order.Clock // clock of thread, whose epoch is now; nil after an event that may change it
	var now order.Epoch
	var thread uint16
	for i := range events {
		e := &events[i]
		if e.Op != cpu.Read && e.Op != cpu.Write {
			d.other(e, d.events+uint64(i))
			c = nil
			continue
		}
		if c == nil || e.Thread != thread {
			c, thread = d.order.Clock(e.Thread), e.Thread
			now = c[thread]
		}
		m := &d.cells[e.Object]
		if d.atomics.Has(e.Object) {
			d.mixed(c, e, d.events+uint64(i))
		}
		if e.Op == cpu.Write {
			if m.write == now {
				continue // WRITESAMEEPOCH
			}
			if m.read&shared != 0 || !c.Has(m.write) || !c.Has(m.read) {
				d.checkWrite(m, c, e, d.events+uint64(i))
			}
			m.write, m.read = now, 0 // WRITEEXCLUSIVE, WRITESHARED
			continue
		}
		if m.read == now {
			continue // READSAMEEPOCH
		}
		if !c.Has(m.write) {
			d.race(d.events+uint64(i), e, m.write, true, false)
		}
		switch {
		case m.read&shared != 0 && int(thread)>>d.shift == 0:
			d.readers[uint64(m.read&^shared)<<d.shift+uint64(thread)] = now // READSHARED
		case m.read&shared == 0 && c.Has(m.read):
			m.read = now // READEXCLUSIVE
		default:
			d.share(m, now)
		}
	}
}

// other handles an event that is not a plain access.
func (d *Detector) other(e *cpu.Event, at uint64) {
	switch e.Op {
	case cpu.ReadAtomic, cpu.WriteAtomic:
		d.room(e.Object)
		c := d.order.Clock(e.Thread)
		d.check(&d.cells[e.Object], c, e, at)
		d.atomics.Add(e.Object, c[e.Thread], e.Op == cpu.WriteAtomic)
	case cpu.Part:
		d.room(max(e.Object, e.Location))
		m := d.cells[e.Location]
		if m.read&shared != 0 {
			row := d.newRow()
			copy(d.row(row), d.row(m.read))
			m.read = row | shared
		}
		d.cells[e.Object] = m
		d.atomics.Part(e.Object, e.Location)
	case cpu.Forget:
		d.room(e.Object)
		if m := &d.cells[e.Object]; m.read&shared != 0 {
			d.release(m)
		}
		d.cells[e.Object] = cell{}
		d.atomics.Forget(e.Object)
	default:
		d.order.Step(e)
	}
}

// mixed compares a plain access with the atomic accesses to its variable.
func (d *Detector) mixed(c order.Clock, e *cpu.Event, at uint64) {
	d.atomics.Conflicts(e.Object, e.Op == cpu.Write, func(x order.Epoch, wrote bool) {
		if !c.Has(x) {
			d.race(at, e, x, wrote, true)
		}
	})
}

// room makes room for a variable.
func (d *Detector) room(variable uint32) {
	if int(variable) >= len(d.cells) {
		d.cells = append(d.cells, make([]cell, int(variable)+1-len(d.cells))...)
	}
}

// share applies READINFLATE, and READSHARED for a thread that needs wider rows.
func (d *Detector) share(m *cell, now order.Epoch) {
	for last := max(now.Thread(), (m.read &^ shared).Thread()); int(last)>>d.shift != 0; {
		d.widen()
	}
	if m.read&shared == 0 {
		at := d.newRow()
		d.row(at)[m.read.Thread()] = m.read
		m.read = at | shared
	}
	d.row(m.read)[now.Thread()] = now
}

// newRow returns a row that belongs to no cell.
func (d *Detector) newRow() order.Epoch {
	if n := len(d.free); n > 0 {
		at := d.free[n-1]
		d.free = d.free[:n-1]
		return at
	}
	at := order.Epoch(len(d.readers) >> d.shift)
	d.readers = append(d.readers, make([]order.Epoch, 1<<d.shift)...)
	return at
}

// release frees the row of a cell.
func (d *Detector) release(m *cell) {
	clear(d.row(m.read))
	d.free = append(d.free, m.read&^shared)
}

// row returns the last reads in a row, by thread.
func (d *Detector) row(at order.Epoch) []order.Epoch {
	return d.readers[uint64(at&^shared)<<d.shift:][:1<<d.shift]
}

// widen doubles the width of all rows.
func (d *Detector) widen() {
	wide := make([]order.Epoch, 2*len(d.readers))
	for at := 0; at < len(d.readers); at += 1 << d.shift {
		copy(wide[2*at:], d.readers[at:][:1<<d.shift])
	}
	d.readers = wide
	d.shift++
}

// checkWrite compares a write with the metadata of the variable, and frees the clock of its readers.
func (d *Detector) checkWrite(m *cell, c order.Clock, e *cpu.Event, at uint64) {
	d.check(m, c, e, at)
	if m.read&shared != 0 {
		d.release(m)
	}
}

// check compares an access with the plain accesses that conflict with it.
func (d *Detector) check(m *cell, c order.Clock, e *cpu.Event, at uint64) {
	atomic := e.Op == cpu.ReadAtomic || e.Op == cpu.WriteAtomic
	if !c.Has(m.write) {
		d.race(at, e, m.write, true, atomic)
	}
	if !e.Op.Writes() {
		return
	}
	if m.read&shared == 0 {
		if !c.Has(m.read) {
			d.race(at, e, m.read, false, atomic)
		}
		return
	}
	for _, r := range d.row(m.read) {
		if !c.Has(r) {
			d.race(at, e, r, false, atomic)
		}
	}
}

func (d *Detector) race(at uint64, e *cpu.Event, earlier order.Epoch, wrote, atomic bool) {
	d.found(cpu.Race{Event: at, Variable: e.Object, Thread: e.Thread, Earlier: earlier.Thread(), Write: e.Op.Writes(), Wrote: wrote, Atomic: atomic})
}

// MemoryBytes implements cpu.Detector.
func (d *Detector) MemoryBytes() uint64 {
	return uint64(cap(d.cells))*16 + uint64(cap(d.readers))*8 + uint64(cap(d.free))*8 + d.atomics.Bytes()
}
