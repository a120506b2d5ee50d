// Package radish simulates a design after Radish (Devietti et al., ISCA 2012), as far as seed 001 (sections 4.2.6, 4.4.2) describes
// it: precise checks of each access in hardware, metadata beside the data in the caches without sharing among locations, an extra
// read port of the L1 for them, and optionally the assumption of type safety. The rest is assumed:
//
//   - A checked location is a byte, or with type safety a variable. It has 8 bytes of metadata: an epoch of the last write and one
//     of the last read. So metadata are eight times as large as data, or with type safety 8 bytes per variable.
//   - An access that the thread has made before in the same epoch, and that is the last one of its kind, is not checked: the line
//     in L1 has permission bits for it.
//   - Every other access reads and writes the metadata of its location, in parallel with the data.
//   - Metadata that are in no cache are brought in by a software handler, and so are the reads of a location by several
//     concurrent threads, for which 8 bytes have no room.
//   - The asynchronous checks of the paper are not modelled: they are not precise, and the thesis measured without them.
package radish

import (
	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
	"fencepost.dev/fencepost/internal/hw/cache"
	"fencepost.dev/fencepost/internal/hw/history"
	"fencepost.dev/fencepost/internal/hw/machine"
)

// metadataBytes is the size of the metadata of a location.
const metadataBytes = 8

// Source is the mechanism that resolves a check.
type Source uint8

// The sources: permission bits, metadata in a cache, and the software handler, for readers or for metadata that are in no cache.
const (
	Permission Source = iota
	Metadata
	Readers
	Missing
	Sources
)

// Counts is the counts of the design. Overhead is in cycles.
type Counts struct{ Resolved, Overhead [Sources]uint64 }

// Detector is a processor with Radish.
type Detector struct {
	Base   *machine.Base
	Counts Counts
	Err    error // why the trace cannot be run further

	found     func(cpu.Race)
	bytes     int // of the metadata of a variable
	order     order.Order
	histories history.Histories
	events    uint64
}

// New makes a processor that has run nothing.
func New(c machine.Config, typeSafe bool, found func(cpu.Race)) *Detector {
	d := &Detector{Base: machine.NewBase(c), found: found, bytes: metadataBytes}
	if !typeSafe {
		d.bytes *= c.VariableBytes
	}
	return d
}

// MemoryBytes is the memory of the histories.
func (d *Detector) MemoryBytes() uint64 { return d.histories.Bytes() }

// Events runs events. After an error it does nothing.
func (d *Detector) Events(events []cpu.Event) {
	for i := range events {
		e := &events[i]
		if d.Err == nil {
			d.Err = machine.Check(e)
		}
		if d.Err != nil {
			return
		}
		latency := d.Base.Step(e)
		if e.Op == cpu.Read || e.Op == cpu.Write {
			by, cycles := d.access(e, latency)
			d.Counts.Resolved[by]++
			d.Counts.Overhead[by] += uint64(cycles)
			d.Base.Counts.Cycles += uint64(cycles)
		} else {
			d.order.Step(e)
		}
		d.events++
	}
}

// access checks an access whose data took latency cycles. It returns what resolved it and the additional cycles.
func (d *Detector) access(e *cpu.Event, latency int) (by Source, cycles int) {
	x, write := e.Object, e.Op == cpu.Write
	d.histories.Grow(x)
	clock := d.order.Clock(e.Thread)
	now := clock[e.Thread]
	if d.histories.Same(x, now, write) {
		return Permission, 0
	}
	by = Metadata
	config := &d.Base.Config
	core := config.Core(e.Thread)
	first := int(x) * d.bytes / cache.LineBytes
	for l := first; l <= (int(x)*d.bytes+d.bytes-1)/cache.LineBytes; l++ {
		taken := d.Base.Caches.Access(core, machine.Radish+cache.Line(l), true)
		if taken == config.Caches.Cycles[cache.Memory] {
			by = Missing
		}
		cycles += taken
	}
	cycles = max(0, cycles-latency)
	d.histories.Races(x, clock, write, func(earlier order.Epoch, wrote bool) {
		d.found(history.Race(d.events, e, earlier, wrote))
	})
	shared := d.histories.Shared(x)
	d.histories.Record(x, clock, now, write)
	if by == Metadata && (shared || d.histories.Shared(x)) {
		by = Readers
	}
	if by != Metadata {
		cycles += config.Software + d.Base.Caches.Access(core, machine.HistoryLine(x), true)
	}
	return by, cycles
}
