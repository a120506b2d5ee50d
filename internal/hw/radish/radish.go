// Package radish simulates a design like Radish (Devietti et al., ISCA 2012), as far as seed 001 (sections 4.2.6,
// 4.4.2) describes it: precise hardware checks of each access, metadata in the caches next to the data and not shared
// between locations, an additional read port of L1 for metadata, and optionally the assumption of type safety. The rest
// is assumed:
//
//   - A checked location is a byte, or with type safety a variable. It has 8 bytes of metadata: an epoch of the last
//     write and one of the last read. So metadata are eight times as large as data, or 8 bytes for each variable.
//   - If the thread has made the same access before in this epoch, and no access of its kind has followed, the access
//     is not checked: the line in L1 has permission bits for it.
//   - Every other access reads and writes the metadata of its location, in parallel with the data.
//   - A software handler fetches metadata that are in no cache. It also handles concurrent reads of a location by
//     several threads, which 8 bytes cannot represent.
//   - The asynchronous checks of the paper are not modelled, because they are not precise and the thesis measured
//     without them.
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

// The sources: permission bits, metadata in a cache, and the software handler for several readers or for metadata that
// are in no cache.
const (
	Permission Source = iota
	Metadata
	Readers
	Missing
	Sources
)

// Counts are the counts of the design. Overhead is in cycles.
type Counts struct{ Resolved, Overhead [Sources]uint64 }

// Detector is a processor with Radish.
type Detector struct {
	Base   *machine.Base
	Counts Counts
	Err    error // why the trace cannot be continued

	found     func(cpu.Race)
	bytes     int // size of the metadata of a variable
	order     order.Order
	histories history.Histories
	events    uint64
}

// New returns a processor in its initial state.
func New(c machine.Config, typeSafe bool, found func(cpu.Race)) *Detector {
	d := &Detector{Base: machine.NewBase(c), found: found, bytes: metadataBytes}
	if !typeSafe {
		d.bytes *= c.VariableBytes
	}
	return d
}

// MemoryBytes returns the size of the histories.
func (d *Detector) MemoryBytes() uint64 { return d.histories.Bytes() }

// Events runs events. After an error it has no effect.
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

// access checks an access whose data took latency cycles. It returns the source that resolved the check, and the
// additional cycles.
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
