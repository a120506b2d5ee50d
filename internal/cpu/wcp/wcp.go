// Package wcp implements the detector of weak-causally-precedes for CPU programs (seed 000, section 2 and algorithms 1
// and 2, without scopes). Package gwcp implements it for kernels. The detector finds races of the observed execution,
// and races of other executions in which critical sections come in another order. Two critical sections of a lock are
// ordered in two cases only:
//
//	(a) The release of the first is ordered before an access in the second that conflicts with an access in the first.
//	(b) The release of the first is ordered before the release of the second if an event of the first is ordered before an event of the second.
//
// In both cases the sections are of two threads. The relation is closed under composition with happens-before on both
// sides. Forks, joins, barriers, atomic accesses and read-write locks order as in happens-before. This may hide a race,
// but it adds no false race.
//
// For each thread, weak has the last epochs of other threads that weak-causally-precede its next event, and the clock
// of package order has those that happen before it. An epoch ends with each release, and only the ends of epochs
// weak-causally-precede. So a thread whose weak has an epoch has in weak all that happened before the end of that
// epoch.
package wcp

import (
	"slices"
	"unsafe"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
	"fencepost.dev/fencepost/internal/prefetch"
)

// Spec is the detector.
var Spec = cpu.Spec{
	Name:   "wcp",
	Doc:    "Weak-causally-precedes for locks: races of the observed execution, and of others with critical sections reordered.",
	Source: "Predictive Data Race Detection for GPUs, section 2 and algorithms 1 and 2, for CPU programs",
	New:    func(found func(cpu.Race)) cpu.Detector { return newDetector(found) },
}

// variable is the history of a variable.
type variable struct {
	write order.Epoch
	read  order.Epoch // the last read since the write, if readers is empty
	// readers holds the last read of each thread, once two reads since the write were not ordered.
	readers order.Clock
	locks   []guard // the locks that were held at accesses
}

// guard holds the sections of a lock in which a variable was accessed. What happened before the end of a section also
// happened before the end of every later section of the lock. So the latest section of another thread suffices.
type guard struct {
	lock    uint32
	reading bool   // in the section whose number is section
	writing bool   // likewise
	section uint64 // the last section with an access
	reads   latest
	writes  latest
}

// latest holds the last closed section, and the last closed section of any other thread. One section is not enough: if
// it is the thread's own, rule (a) must use the other one.
type latest [2]closed

// closed is the end of a section.
type closed struct {
	at     order.Epoch  // the epoch that ended with the section; 0 if there is none
	before *order.Clock // everything that happened before the end
}

func (l *latest) add(c closed) {
	if l[0].at.Thread() != c.at.Thread() {
		l[1] = l[0]
	}
	l[0] = c
}

// join joins to weak what happened before the end of the last section of another thread.
func (l *latest) join(t *thread, id uint16) {
	c := &l[0]
	if c.at.Thread() == id {
		c = &l[1]
	}
	if c.at != 0 && !t.weak.Has(c.at) {
		t.weak.Join(*c.before)
	}
}

// section is a critical section.
type section struct {
	thread   uint16
	acquired order.Epoch // epoch of the acquire: if an event of this epoch is ordered before another thread, so is the acquire
	end      order.Clock // everything before its release; nil while it is open
}

// lock is the state of a lock.
type lock struct {
	weak     order.Clock // weak of the last releasing thread at its release
	sections []section   // the closed sections, from number first on, followed by the open one
	first    int
	next     []int // by thread: the number of the first section not yet known to be ordered before its next release
	check    int   // the length of sections at which unneeded ones are searched for
}

// held is a lock that a thread holds, and its open section.
type held struct {
	lock    uint32
	section uint64
	touched []uint32 // variables that were accessed in the section
}

// thread is the state of a thread.
type thread struct {
	weak  order.Clock // its own entry is the last of its epochs that weak-causally-precedes its next event, not its current epoch
	held  []held
	spare [][]uint32
	over  bool // it was joined
}

type detector struct {
	found     func(cpu.Race)
	order     order.Order
	variables []variable
	locks     []lock
	threads   []thread
	events    uint64
	sections  uint64
	atomics   order.Atomics
}

func newDetector(found func(cpu.Race)) *detector {
	d := &detector{found: found}
	d.order.Joined = func(t uint16, c order.Clock) {
		d.begin(t)
		d.threads[t].weak.Join(c)
	}
	return d
}

func (d *detector) begin(id uint16) *thread {
	for len(d.threads) <= int(id) {
		d.threads = append(d.threads, thread{})
	}
	return &d.threads[id]
}

// Events implements cpu.Detector.
func (d *detector) Events(events []cpu.Event) {
	part := events[:min(len(events), prefetch.Most)]
	d.ask(part)
	for len(part) > 0 {
		events = events[len(part):]
		next := events[:min(len(events), prefetch.Most)]
		d.ask(next) // prefetches while part is judged
		d.step(part)
		d.events += uint64(len(part))
		part = next
	}
}

// ask makes room for the variables of events, and prefetches them and the state of their first locks.
func (d *detector) ask(events []cpu.Event) {
	var at [prefetch.Most]unsafe.Pointer
	n := 0
	for i := range events {
		e := &events[i]
		if e.Op != cpu.Read && e.Op != cpu.Write {
			continue
		}
		d.room(e.Object)
		at[n&(prefetch.Most-1)] = unsafe.Pointer(&d.variables[e.Object])
		n++
	}
	prefetch.Lines(&at, n)
	for i := range n {
		at[i&(prefetch.Most-1)] = unsafe.Pointer(unsafe.SliceData((*variable)(at[i&(prefetch.Most-1)]).locks))
	}
	prefetch.Lines(&at, n)
}

func (d *detector) step(events []cpu.Event) {
	for i := range events {
		e := &events[i]
		t := d.begin(e.Thread)
		switch e.Op {
		case cpu.Read, cpu.Write:
			v := &d.variables[e.Object]
			t.inSections(v, e)
			if d.atomics.Has(e.Object) {
				d.atomics.Conflicts(e.Object, e.Op == cpu.Write, func(x order.Epoch, wrote bool) { d.check(t, x, wrote, true, e, d.events+uint64(i)) })
			}
			d.judge(t, v, e, d.events+uint64(i))
		case cpu.Acquire:
			d.acquire(t, e)
		case cpu.Release:
			d.release(t, e)
		case cpu.ReadAtomic, cpu.WriteAtomic, cpu.Part, cpu.Forget:
			d.room(e.Object)
			if e.Op == cpu.Part {
				d.room(e.Location)
			}
			d.other(t, e, d.events+uint64(i))
		default:
			d.order.Step(e)
			if e.Op == cpu.Join || e.Op == cpu.Fork {
				d.begin(uint16(e.Object)).over = e.Op == cpu.Join
			}
		}
	}
}

func (d *detector) lock(id uint32) *lock {
	for len(d.locks) <= int(id) {
		d.locks = append(d.locks, lock{check: 64})
	}
	return &d.locks[id]
}

func (d *detector) acquire(t *thread, e *cpu.Event) {
	d.order.Step(e)
	l := d.lock(e.Object)
	t.weak.Join(l.weak)
	l.sections = append(l.sections, section{thread: e.Thread, acquired: d.order.Clock(e.Thread)[e.Thread]})
	d.sections++
	h := held{lock: e.Object, section: d.sections}
	if n := len(t.spare); n > 0 {
		h.touched, t.spare = t.spare[n-1], t.spare[:n-1]
	}
	t.held = append(t.held, h)
}

func (d *detector) release(t *thread, e *cpu.Event) {
	l := d.lock(e.Object)
	now := slices.Clone(d.order.Clock(e.Thread))
	at := slices.IndexFunc(t.held, func(h held) bool { return h.lock == e.Object })
	if at >= 0 {
		l.order(t, e.Thread)
		h := t.held[at]
		end := closed{now[e.Thread], &now}
		for _, x := range h.touched {
			g := d.variables[x].guard(h.lock)
			if g.reading {
				g.reads.add(end)
			}
			if g.writing {
				g.writes.add(end)
			}
		}
		t.spare = append(t.spare, h.touched[:0])
		t.held = slices.Delete(t.held, at, at+1)
		l.sections[len(l.sections)-1].end = now
		l.forget(d.threads)
	}
	l.weak.Copy(t.weak)
	d.order.Step(e)
}

// order applies rule (b) to the release of the open section. It searches the sections of other threads whose acquire is
// ordered before the release. It skips the thread's own sections, because otherwise everything that happened before
// them would be ordered. If one section is ordered, so are all before it, and what happened before their ends happened
// before its end. No section after it began before its end.
func (l *lock) order(t *thread, id uint16) {
	for len(l.next) <= int(id) {
		l.next = append(l.next, 0)
	}
	at := max(l.next[id], l.first)
	var end order.Clock
	for ; at-l.first < len(l.sections)-1; at++ {
		s := &l.sections[at-l.first]
		if s.thread == id {
			continue
		}
		if !t.weak.Has(s.acquired) {
			break
		}
		end = s.end
	}
	t.weak.Join(end)
	l.next[id] = at
}

// forget removes the sections that no thread needs any more. It runs when the number of sections has doubled.
func (l *lock) forget(threads []thread) {
	if len(l.sections) < l.check {
		return
	}
	least := l.first + len(l.sections)
	for id := range threads {
		switch {
		case threads[id].over:
		case id < len(l.next):
			least = min(least, l.next[id])
		default:
			least = 0
		}
	}
	if n := least - l.first; n > 0 {
		l.sections = slices.Delete(l.sections, 0, n)
		l.first = least
	}
	l.check = max(64, 2*len(l.sections))
}

// guard returns the accesses under a lock, or nil if there are none.
func (v *variable) guard(lock uint32) *guard {
	for i := range v.locks {
		if v.locks[i].lock == lock {
			return &v.locks[i]
		}
	}
	return nil
}

// inSections applies rule (a) to an access, for each lock that the thread holds. Atomic accesses conflict like plain
// ones.
func (t *thread) inSections(v *variable, e *cpu.Event) {
	for k := range t.held {
		t.inSection(&t.held[k], v, e)
	}
}

// inSection applies rule (a) to an access in a section, and records the access.
func (t *thread) inSection(h *held, v *variable, e *cpu.Event) {
	g := v.guard(h.lock)
	if g == nil {
		v.locks = append(v.locks, guard{lock: h.lock})
		g = &v.locks[len(v.locks)-1]
	}
	if g.section != h.section {
		g.section, g.reading, g.writing = h.section, false, false
		h.touched = append(h.touched, e.Object)
	} else if g.writing || g.reading && !e.Op.Writes() {
		return // no other thread has been in a section of the lock since
	}
	g.writes.join(t, e.Thread)
	if !e.Op.Writes() {
		g.reading = true
		return
	}
	g.writing = true
	g.reads.join(t, e.Thread)
}

// judge compares an access with the history of the variable, like fasttrack but with its own order, and records the
// access.
func (d *detector) judge(t *thread, v *variable, e *cpu.Event, at uint64) {
	now := d.order.Clock(e.Thread)[e.Thread]
	if e.Op == cpu.Write {
		if v.write == now {
			return
		}
		d.checkAll(t, v, e, at)
		v.write, v.read, v.readers = now, 0, v.readers[:0]
		return
	}
	if v.read == now || v.readers.Of(e.Thread) == now {
		return
	}
	d.check(t, v.write, true, false, e, at)
	switch {
	case len(v.readers) > 0:
		v.readers.Set(now)
	case t.has(e.Thread, v.read):
		v.read = now
	default:
		v.readers.Set(v.read)
		v.readers.Set(now)
		v.read = 0
	}
}

// checkAll compares an access with the plain accesses that conflict with it.
func (d *detector) checkAll(t *thread, v *variable, e *cpu.Event, at uint64) {
	atomic := e.Op == cpu.ReadAtomic || e.Op == cpu.WriteAtomic
	d.check(t, v.write, true, atomic, e, at)
	if e.Op.Writes() {
		d.check(t, v.read, false, atomic, e, at)
		for _, r := range v.readers {
			d.check(t, r, false, atomic, e, at)
		}
	}
}

// other handles an atomic access, or a change of the extent of variables.
func (d *detector) other(t *thread, e *cpu.Event, at uint64) {
	v := &d.variables[e.Object]
	switch e.Op {
	case cpu.Part:
		d.part(e.Object, e.Location)
	case cpu.Forget:
		for id := range d.threads { // open sections in which the variable was touched would look for its guards when they end
			for k := range d.threads[id].held {
				h := &d.threads[id].held[k]
				h.touched = slices.DeleteFunc(h.touched, func(x uint32) bool { return x == e.Object && v.guard(h.lock) != nil })
			}
		}
		*v = variable{}
		d.atomics.Forget(e.Object)
	default:
		t.inSections(v, e)
		d.checkAll(t, v, e, at)
		d.atomics.Add(e.Object, d.order.Clock(e.Thread)[e.Thread], e.Op == cpu.WriteAtomic)
	}
}

// part gives a new variable the history of the one it was a part of. The ends of open sections will be added to both.
func (d *detector) part(variable, of uint32) {
	v, from := &d.variables[variable], &d.variables[of]
	*v = *from
	v.readers, v.locks = slices.Clone(from.readers), slices.Clone(from.locks)
	for id := range d.threads {
		for k := range d.threads[id].held {
			h := &d.threads[id].held[k]
			if g := v.guard(h.lock); g != nil && g.section == h.section {
				h.touched = append(h.touched, variable)
			}
		}
	}
	d.atomics.Part(variable, of)
}

// room makes room for a variable.
func (d *detector) room(id uint32) {
	for int(id) >= len(d.variables) {
		d.variables = append(d.variables, variable{})
	}
}

// has reports whether an epoch is ordered before the next event of thread id, whose state is t.
func (t *thread) has(id uint16, x order.Epoch) bool { return t.weak.Has(x) || x.Thread() == id }

func (d *detector) check(t *thread, x order.Epoch, wrote, atomic bool, e *cpu.Event, at uint64) {
	if t.has(e.Thread, x) {
		return
	}
	d.found(cpu.Race{Event: at, Variable: e.Object, Thread: e.Thread, Earlier: x.Thread(), Write: e.Op.Writes(), Wrote: wrote, Atomic: atomic,
		Predicted: d.order.Clock(e.Thread).Has(x)})
}

// MemoryBytes implements cpu.Detector. The clock of a section's end is counted only while the section is kept. The
// variables accessed in the section may keep it longer.
func (d *detector) MemoryBytes() uint64 {
	n := uint64(cap(d.variables)) * 64
	for i := range d.variables {
		v := &d.variables[i]
		n += v.readers.Bytes() + uint64(cap(v.locks))*80
	}
	for i := range d.locks {
		n += uint64(cap(d.locks[i].sections)) * 40
		for _, s := range d.locks[i].sections {
			n += s.end.Bytes()
		}
	}
	return n
}
