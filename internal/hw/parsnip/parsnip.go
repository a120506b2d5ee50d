// Package parsnip simulates PARSNIP, a precise race detector in hardware for CPU programs (seed 001, chapter 4): access histories
// are in lines of references beside the data in the caches, their clocks in small tables of the cores, and what has no room
// there in software.
//
// A check is complete when the hardware proves that the access is free of races. All else goes to the software handler, which
// has the complete history, and alone reports races. So the first race of each variable is that of FastTrack. After it the two
// may differ: who was the last to access a variable is not checked again, even if that access raced.
//
// Where the thesis is silent or not sound, this is what is simulated:
//
//   - A write by the last reader needs the secondary reference if there is one: the primary reference alone does not say whether
//     there are other concurrent readers. The thesis completes such a write (table 4.2, step 13) from the primary reference.
//   - If a variable has been read by several threads and never written, the secondary reference is the read before the last.
//   - The software handler places the last write, or without one a read, in the secondary reference if the table of its thread
//     has or gets an entry for the clock.
//   - An epoch store buffer coalesces writes of one variable, and reads of one variable by one thread: reads of several threads
//     that share a core may be concurrent.
//   - What has been superseded may stay in software, where the thesis may overwrite it (step 11): buffers of several cores are not
//     given to software in the order of the accesses.
//   - Data and metadata are read in parallel, so that metadata cost what they take longer. Software handlers take
//     machine.Config.Software cycles and their accesses to software histories, eviction handlers too.
//   - The residence policy is that of all cores. See residence.
//   - Threads keep their tables when they share a core, and changing threads costs nothing. Updates of vector clocks cost nothing.
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
	BufferEntries int // of the epoch store buffer of a core; 0 is none: what it would hold is given to software at once
	Predict       bool
	Residence     Residence
}

// Thesis is the design as evaluated.
func Thesis() Options {
	return Options{Machine: machine.Thesis(), TableEntries: 15, BufferEntries: 32, Predict: true, Residence: Adaptive}
}

// Source is the mechanism that resolves a check (figure 4.10).
type Source uint8

// The sources. Capability is a reference alone, by its thread and type; Local and Remote a clock in a table of this or another
// core; Buffer the core's epoch store buffer; Software the handler; Missing the handler because the line is in no cache.
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
	// Histories[i] is the number of times that a changed ParsnipLine had i distinct references; the last one is for
	// more than 16 (figure 4.1).
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
	Err   error // the reason why the trace cannot be run further

	options  Options
	slots    uint32 // variables in a line, a power of two
	shift    uint32 // its logarithm
	order    order.Order
	software history.Histories
	tables   [MaxThreads]table
	places   [][spaces]int32 // by number of the line: the number plus one of its content, if it is in a cache
	lines    []line
	free     []int32 // of lines
	buffers  [][]pending
	waiting  []uint32 // by variable: the cores whose buffers have an entry for it
	known    uint32   // variables that have histories
	policy   residence
	events   uint64
	later    []pending // what the access puts into the buffer when it is complete
	drained  []pending // what drain has read

	// The access that is being run.
	core    int
	thread  uint16
	clock   order.Clock
	now     order.Epoch
	x, n    uint32 // variable and its line
	slot    int
	write   bool
	latency int // of the data
	trigger Cost
}

// New makes a processor that has run nothing.
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

// MemoryBytes is the memory of software histories and of the lines in caches.
func (d *Detector) MemoryBytes() uint64 {
	return d.software.Bytes() + uint64(len(d.lines)-len(d.free))*cache.LineBytes
}

// Events runs events. After an error it does nothing.
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

// fits reports whether the processor can run an event. If not, Err is the reason.
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

// touch accesses the line of metadata in a space.
func (d *Detector) touch(space cache.Line, write bool) int {
	return d.Base.Caches.Access(d.core, space+cache.Line(d.n), write)
}

func (d *Detector) charge(to Cost, cycles int) {
	d.Counts.Overhead[to] += uint64(cycles)
	d.Base.Counts.Cycles += uint64(cycles)
}

// epoch looks a reference's clock up in tables and in the core's epoch store buffer; 0 if it is in neither.
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

// check resolves the check of the access from the primary reference r, and, if necessary, the secondary one (section
// 4.2.7).
func (d *Detector) check(r ref) Source {
	var by Source
	switch {
	case r == none:
		return Software
	case r.thread() == d.thread:
		if r.known() {
			by = Local
			d.charge(LocalTable, 1) // to see whether the epoch is another one
		}
		if r.write() || !d.write || !r.next() {
			return by
		}
	case !d.write && !r.write() && !r.next():
		return Capability // no write is known
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

// checkSecond resolves the check of a read whose last writer the primary reference does not name, and that of a write
// that is ordered after the last read.
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

// second reads the secondary reference; none if it is in no cache.
func (d *Detector) second() ref {
	l := d.content(secondary, d.n)
	if l == nil {
		return none
	}
	d.charge(LineAccess, d.touch(machine.Secondary, false))
	return l.get(d.slot)
}

// same reports whether a reference of the thread is of the thread's current epoch.
func (d *Detector) same(r ref) bool {
	return r.known() && d.tables[r.thread()].clocks[r.index()] == d.now
}

// recordWrite makes the access the whole history of the variable.
func (d *Detector) recordWrite(r ref) {
	if r.thread() == d.thread && r.write() && d.same(r) {
		return
	}
	d.setSecond(none, 0)
	d.setFirst(true, false)
	if d.waiting[d.x]>>d.core&1 != 0 {
		d.unbuffer(d.core, d.x, nil) // all of it is obsolete
	}
}

// recordRead adds the access to the history, whose last access is r.
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

// moreReaders records in the secondary reference, if there is one, that software knows of other reads.
func (d *Detector) moreReaders() {
	if l := d.content(secondary, d.n); l != nil {
		if s := l.get(d.slot); s != none && !s.next() {
			d.charge(LineAccess, d.touch(machine.Secondary, true))
			d.store(secondary, s|nextBit)
		}
	}
}

// setFirst makes the access the primary reference.
func (d *Detector) setFirst(write, next bool) {
	if over := d.touch(machine.Primary, true) - d.Base.Config.Caches.Cycles[cache.L1]; over > 0 {
		d.charge(LineAccess, over)
	}
	if !d.store(primary, makeRef(d.thread, write, next, d.index(d.now))) {
		d.later = append(d.later, pending{x: d.x, epoch: d.now, write: write})
	}
}

// setSecond changes the secondary reference, whose epoch is e; e is 0 if software knows it. The primary reference must
// be changed after it, because the primary reference may be what keeps the clock in a table.
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

// index returns the entry of an epoch in its thread's table.
func (d *Detector) index(e order.Epoch) int {
	i := d.tables[e.Thread()].find(e, d.options.TableEntries)
	if i == invalid {
		d.Counts.Rejections++
	}
	return i
}

// store changes a reference of the variable. It reports whether the line now has its clock.
func (d *Detector) store(space int, r ref) bool {
	l := d.content(space, d.n)
	if l == nil { // never there, or evicted by the access to the other line: then software knows all of it
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

// replace changes a reference of a line. If the line has to change to 1:1 mode for this, its clocks go to software.
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
