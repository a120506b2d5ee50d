// Package parsnip simulates PARSNIP, a precise race detector in hardware for CPU programs (seed 001, chapter 4). Lines
// of references in the caches hold the access histories of data, and small tables of the cores hold their clocks.
// Software holds what does not fit.
//
// A check is complete when the hardware proves that the access is free of races. In all other cases it calls the
// software handler, which has the complete history, and only the handler reports races. So the first race of each
// variable is that of FastTrack. After it the two may differ: the last accessor of a variable is not checked again,
// even if its access raced.
//
// Where the thesis is silent or unsound, the simulation does the following:
//
//   - A write by the last reader needs the secondary reference if there is one: the primary reference alone does not
//     tell whether there are other concurrent readers. The thesis completes such a write (table 4.2, step 13) from the
//     primary reference.
//   - If several threads have read a variable and none has written it, the secondary reference is the read before the
//     last.
//   - The software handler places the last write, or a read if there is no write, in the secondary reference if the
//     table of its thread has or gets an entry for the clock.
//   - An epoch store buffer coalesces writes of one variable, and reads of one variable by one thread. Reads of several
//     threads that share a core may be concurrent.
//   - Software may keep accesses that have been superseded. The thesis may overwrite them (step 11), but the buffers of
//     several cores are not drained to software in the order of the accesses.
//   - Data and metadata are read in parallel, so metadata cost only the additional time. Software handlers take
//     machine.Config.Software cycles and the time of their accesses to software histories. Eviction handlers do too.
//   - All cores have the same residence policy. See residence.
//   - Threads that share a core keep their tables. Switching threads and updating vector clocks costs nothing.
package parsnip

import (
	"fmt"
	"math/bits"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
	"fencepost.dev/fencepost/internal/hw/cache"
	"fencepost.dev/fencepost/internal/hw/history"
	"fencepost.dev/fencepost/internal/hw/machine"
)

// Options describe the design.
type Options struct {
	Machine       machine.Config
	TableEntries  int // of the ParsnipTable of a thread, at most 15
	BufferEntries int // of the epoch store buffer of a core; 0 for no buffer: entries then go to software immediately
	Predict       bool
	Residence     Residence
}

// Thesis returns the design that the thesis evaluates.
func Thesis() Options {
	return Options{Machine: machine.Thesis(), TableEntries: 15, BufferEntries: 32, Predict: true, Residence: Adaptive}
}

// Source is the mechanism that resolves a check (figure 4.10).
type Source uint8

// The sources. Capability is a reference alone, by its thread and type. Local and Remote are a clock in a table of this
// or another core. Buffer is the core's epoch store buffer. Software is the handler. Missing is the handler too,
// because the line is in no cache.
const (
	Capability Source = iota
	Local
	Remote
	Buffer
	Software
	Missing
	Sources
)

// Cost is a source of overhead (figure 4.11). Evictions are part of MissingLine.
type Cost uint8

// The sources of overhead.
const (
	LineAccess Cost = iota
	MissingLine
	LocalTable
	RemoteTable
	SoftwareCheck
	BufferDrain
	Costs
)

// Counts are the counts of the design.
type Counts struct {
	Resolved   [Sources]uint64
	Overhead   [Costs]uint64 // cycles
	Drains     uint64        // of epoch store buffers
	Evictions  uint64        // of ParsnipLines that had to be reported to software
	Rejections uint64        // of ParsnipTables
	Checks     uint64        // by software
	Rewrites   uint64        // changes of the mode of a line
	Switches   uint64        // of the residence policy
	// Histories[i] is how often a changed ParsnipLine had i distinct references. The last entry counts more than 16
	// (figure 4.1).
	Histories [longRefs + 2]uint64
}

const (
	primary = iota
	secondary
	spaces
)

// Detector is a processor with PARSNIP.
type Detector struct {
	Base   *machine.Base
	Counts Counts
	// Found is called for each race.
	Found func(cpu.Race)
	Err   error // why the trace cannot be continued

	options  Options
	slots    uint32 // variables in a line, a power of two
	shift    uint32 // its logarithm
	order    order.Order
	software history.Histories
	tables   [MaxThreads]table
	places   [][spaces]int32 // by line: the number of its content, plus one; 0 if it is in no cache
	lines    []line
	free     []int32 // of lines
	buffers  [][]pending
	waiting  []uint32 // by variable: bit set of the cores whose buffers have an entry for it
	known    uint32   // number of variables that have histories
	policy   residence
	events   uint64
	later    []pending // entries that the access adds to the buffer when it is complete
	drained  []pending // entries that drain has taken from the buffer

	// The current access.
	core    int
	thread  uint16
	clock   order.Clock
	now     order.Epoch
	x, n    uint32 // variable and its line
	slot    int
	write   bool
	latency int // of the data access
	trigger Cost
}

// New returns a processor in its initial state.
func New(o Options, found func(cpu.Race)) *Detector {
	d := &Detector{Base: machine.NewBase(o.Machine), Found: found, options: o, slots: uint32(cache.LineBytes / o.Machine.VariableBytes),
		buffers: make([][]pending, o.Machine.Caches.Cores), policy: residence{fixed: o.Residence}}
	d.shift = uint32(bits.TrailingZeros32(d.slots))
	for i := range d.tables {
		d.tables[i].free = 1<<o.TableEntries - 1
	}
	d.policy.l1 = o.Residence == L1
	d.Base.Caches.Left = d.leave
	return d
}

// MemoryBytes returns the size of the software histories and of the lines in caches.
func (d *Detector) MemoryBytes() uint64 {
	return d.software.Bytes() + uint64(len(d.lines)-len(d.free))*cache.LineBytes
}

// Events runs events. After an error it has no effect.
func (d *Detector) Events(events []cpu.Event) {
	for i := range events {
		e := &events[i]
		if d.Err != nil || !d.fits(e) {
			return
		}
		d.latency = d.Base.Step(e)
		if e.Op == cpu.Read || e.Op == cpu.Write {
			d.access(e)
		} else {
			d.order.Step(e)
			d.clock = nil
		}
		d.events++
	}
}

// fits reports whether the processor can run an event. If not, it sets Err to the reason.
func (d *Detector) fits(e *cpu.Event) bool {
	if e.Thread >= MaxThreads || e.Op.Table() == cpu.Threads && e.Object >= MaxThreads {
		d.Err = fmt.Errorf("the trace has more than %d threads, for which a ParsnipRef has no bits", MaxThreads)
	} else if e.Object >= machine.MaxVariables {
		d.Err = machine.Check(e)
	}
	return d.Err == nil
}

func (d *Detector) access(e *cpu.Event) {
	if d.clock == nil || e.Thread != d.thread {
		d.clock, d.thread, d.core = d.order.Clock(e.Thread), e.Thread, d.options.Machine.Core(e.Thread)
		d.now = d.clock[e.Thread]
	}
	d.x, d.write = e.Object, e.Op == cpu.Write
	d.n, d.slot = d.x>>d.shift, int(d.x&(d.slots-1))
	if end := (d.n+1)<<d.shift - 1; end >= d.known {
		d.known = end + 1
		d.software.Grow(end)
		if int(d.n) >= len(d.places) {
			lines := max(int(d.n)+1, 2*len(d.places), 256)
			d.places = append(make([][spaces]int32, 0, lines), d.places...)[:lines]
			d.waiting = append(make([]uint32, 0, lines<<d.shift), d.waiting...)[:lines<<d.shift]
		}
	}
	d.trigger = MissingLine // of an eviction
	if over := d.touch(machine.Primary, false) - d.latency; over > 0 {
		d.charge(LineAccess, over)
	}
	l := d.content(primary, d.n)
	if l == nil {
		d.Counts.Resolved[Missing]++
		d.handle(e, MissingLine)
	} else {
		r := l.get(d.slot)
		by := d.check(r)
		d.Counts.Resolved[by]++
		if by == Software {
			d.handle(e, SoftwareCheck)
		} else if d.write {
			d.recordWrite(r)
		} else {
			d.recordRead(r)
		}
	}
	for _, p := range d.later {
		d.put(p)
	}
	d.later = d.later[:0]
	d.policy.step(d)
}

// touch accesses the line of metadata in a space and returns the latency.
func (d *Detector) touch(space cache.Line, write bool) int {
	return d.Base.Caches.Access(d.core, space+cache.Line(d.n), write)
}

func (d *Detector) charge(to Cost, cycles int) {
	d.Counts.Overhead[to] += uint64(cycles)
	d.Base.Counts.Cycles += uint64(cycles)
}

// epoch looks up a reference's clock in tables and in the core's epoch store buffer. It returns 0 if it is in neither.
func (d *Detector) epoch(r ref) (order.Epoch, Source) {
	if !r.known() {
		return d.buffered(r), Buffer
	}
	e := d.tables[r.thread()].clocks[r.index()]
	if d.options.Machine.Core(r.thread()) == d.core {
		d.charge(LocalTable, 1)
		return e, Local
	}
	d.charge(RemoteTable, d.options.Machine.Table)
	return e, Remote
}

// check resolves the check of the access by the primary reference r and, if necessary, by the secondary reference
// (section 4.2.7).
func (d *Detector) check(r ref) Source {
	var by Source
	switch {
	case r == none:
		return Software
	case r.thread() == d.thread:
		if r.known() {
			by = Local
			d.charge(LocalTable, 1) // to see whether the epoch differs
		}
		if r.write() || !d.write || !r.next() {
			return by
		}
	case !d.write && !r.write() && !r.next():
		return Capability // the reference does not tell of a write
	default:
		e, from := d.epoch(r)
		by = from
		ordered := e != 0 && d.clock.Has(e)
		switch {
		case d.write && !ordered, r.write() && !ordered:
			return Software
		case ordered && (!d.write || r.write() || !r.next()):
			return by
		}
	}
	return d.checkSecond(by)
}

// checkSecond resolves the check of a read if the primary reference does not name the last writer, and the check of a
// write that is ordered after the last read.
func (d *Detector) checkSecond(by Source) Source {
	s := d.second()
	switch {
	case s == none, d.write && s.next():
		return Software
	case s.write() == d.write: // a write before the read; no write before a read
		return by
	case s.thread() == d.thread:
		return by
	}
	e, from := d.epoch(s)
	if e == 0 || !d.clock.Has(e) {
		return Software
	}
	return max(by, from)
}

// second returns the secondary reference, or none if it is in no cache.
func (d *Detector) second() ref {
	l := d.content(secondary, d.n)
	if l == nil {
		return none
	}
	d.charge(LineAccess, d.touch(machine.Secondary, false))
	return l.get(d.slot)
}

// same reports whether a reference is of the current thread and its current epoch.
func (d *Detector) same(r ref) bool {
	return r.known() && d.tables[r.thread()].clocks[r.index()] == d.now
}

// recordWrite replaces the history of the variable by the access.
func (d *Detector) recordWrite(r ref) {
	if r.thread() == d.thread && r.write() && d.same(r) {
		return
	}
	d.setSecond(none, 0)
	d.setFirst(true, false)
	if d.waiting[d.x]>>d.core&1 != 0 {
		d.unbuffer(d.core, d.x, nil) // all entries are obsolete
	}
}

// recordRead adds the access to the history. The last access was r.
func (d *Detector) recordRead(r ref) {
	own := r.thread() == d.thread
	if own && d.same(r) {
		return // after a read or a write in this epoch
	}
	known := r.known()
	var e order.Epoch
	if known {
		e = d.tables[r.thread()].clocks[r.index()]
	}
	next := true
	switch {
	case r.write() && known, !r.write() && known && !r.next() && !d.clock.Has(e):
		d.setSecond(makeRef(r.thread(), r.write(), false, r.index()), e)
	case r.write():
		d.setSecond(none, 0)
	case own || known && d.clock.Has(e):
		next = r.next() // the read is obsolete
	case known:
		d.later = append(d.later, pending{x: d.x, epoch: e})
		d.moreReaders()
	default:
		d.moreReaders()
	}
	d.setFirst(false, next)
}

// moreReaders sets, in the secondary reference if there is one, that software has other reads.
func (d *Detector) moreReaders() {
	if l := d.content(secondary, d.n); l != nil {
		if s := l.get(d.slot); s != none && !s.next() {
			d.charge(LineAccess, d.touch(machine.Secondary, true))
			d.store(secondary, s|nextBit)
		}
	}
}

// setFirst sets the primary reference to the access.
func (d *Detector) setFirst(write, next bool) {
	if over := d.touch(machine.Primary, true) - d.Base.Config.Caches.Cycles[cache.L1]; over > 0 {
		d.charge(LineAccess, over)
	}
	if !d.store(primary, makeRef(d.thread, write, next, d.index(d.now))) {
		d.later = append(d.later, pending{x: d.x, epoch: d.now, write: write})
	}
}

// setSecond changes the secondary reference. Its epoch is e, or e is 0 if software has it. The caller changes the
// primary reference later, because that may be what keeps the clock in a table.
func (d *Detector) setSecond(r ref, e order.Epoch) {
	l := d.content(secondary, d.n)
	switch {
	case l == nil && r == none, l != nil && l.get(d.slot) == r:
		return
	}
	d.charge(LineAccess, d.touch(machine.Secondary, true))
	if !d.store(secondary, r) && e != 0 {
		d.later = append(d.later, pending{x: d.x, epoch: e, write: r.write()})
	}
}

// index returns the index of an epoch in its thread's table.
func (d *Detector) index(e order.Epoch) int {
	i := d.tables[e.Thread()].find(e, d.options.TableEntries)
	if i == invalid {
		d.Counts.Rejections++
	}
	return i
}

// store changes a reference of the variable. It reports whether the line now has the clock.
func (d *Detector) store(space int, r ref) bool {
	l := d.content(space, d.n)
	if l == nil { // never present, or evicted by the access to the other line: software has its content
		d.touch(machine.Primary+cache.Line(space)<<cache.SpaceShift, true)
		d.fill(space, d.n)
		l = d.content(space, d.n)
	}
	d.change(l, r)
	return !l.short && r.known()
}

// change changes the reference of the variable in its line.
func (d *Detector) change(l *line, r ref) {
	d.replace(l, d.n, d.slot, r)
	d.Counts.Histories[l.distinct()]++
}

// replace changes a reference of a line. If the line must change to 1:1 mode for this, its clocks go to software.
func (d *Detector) replace(l *line, n uint32, at int, to ref) {
	if !d.set(l, at, to) {
		return
	}
	var short [64]uint8
	for slot := range d.slots {
		r := l.get(int(slot))
		if r.known() {
			d.persist(n*d.slots + slot)
		}
		short[slot] = r.short()
	}
	short[at] = to.short()
	d.unpinAll(l)
	*l = line{slots: short, short: true}
	d.Counts.Rewrites++
	d.charge(SoftwareCheck, d.options.Machine.Software)
}
