// Package slimfast implements the detector SlimFast (seed 001, sections 3.2.2 and 3.3). SlimFast is FastTrack with
// immutable metadata: variables with the same access history share one object. Each thread keeps the metadata that it
// created in its current epoch, and reuses them for other variables:
//
//   - W is the metadata of the variables that it wrote.
//   - S holds the metadata of the variables that it read when the last read before was ordered before its own. The
//     key is the epoch of the last write.
//   - Q holds the metadata of the variables that it read when the last read before, by another thread, was not ordered
//     before its own. The key is the epochs of that read and of the last write.
//
// Metadata with a clock of readers have a map Next. For each thread, Next holds the metadata that replaced these when
// the thread read a variable.
//
// SlimFast finds the same races as FastTrack. Variables are updated by compare-and-swap (figure 3.11), so threads can
// judge their own accesses in parallel.
package slimfast

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
)

// Spec is the detector.
var Spec = cpu.Spec{
	Name:   "slimfast",
	Doc:    "FastTrack with metadata that are immutable and shared by variables.",
	Source: "Efficient Precise Dynamic Data Race Detection for CPU and GPU, sections 3.2.2 and 3.3",
	New:    func(found func(cpu.Race)) cpu.Detector { return New(found) },
}

// Metadata is an EpochPair, or an EpochPlusVC if Reads is not nil. After it is assigned to a variable, only Reads.next
// changes.
type Metadata struct {
	Write order.Epoch
	Read  order.Epoch // of an EpochPair
	Reads *Reads
}

// Reads is the part that an EpochPlusVC has in addition to an EpochPair: the last read of each thread since the last
// write, and the map Next.
type Reads struct {
	Clock order.Clock
	next  atomic.Pointer[chunk]
}

// chunk is the part of the map Next for chunkThreads threads. Each thread accesses only its own entry.
type chunk struct {
	first uint16
	to    [chunkThreads]*Metadata
	more  atomic.Pointer[chunk]
}

const chunkThreads = 8

// entry returns the entry of Next for a thread. It adds the chunk of the thread if there is none.
func (r *Reads) entry(thread uint16) **Metadata {
	first := thread / chunkThreads * chunkThreads
	at := &r.next
	for {
		c := at.Load()
		if c == nil {
			c = &chunk{first: first}
			if !at.CompareAndSwap(nil, c) {
				continue
			}
		}
		if c.first == first {
			return &c.to[thread%chunkThreads]
		}
		at = &c.more
	}
}

// setSize is the capacity of S and of Q. When a set is full, a new entry replaces the oldest one. Ten entries were
// sufficient in the thesis.
const setSize = 16

// set is S or Q of a thread. The key of an entry is the last write and, in Q, the read of another thread; in S read is
// 0. The thread's own read has the same epoch in all entries, so it is not part of the key (section 3.3.4).
type set struct {
	entries [setSize]struct {
		write, read order.Epoch
		metadata    *Metadata
	}
	n int // number of insertions since reset
}

func (s *set) get(write, read order.Epoch) *Metadata {
	for i := range min(s.n, setSize) {
		if e := &s.entries[i]; e.write == write && e.read == read {
			return e.metadata
		}
	}
	return nil
}

func (s *set) put(write, read order.Epoch, m *Metadata) {
	e := &s.entries[s.n%setSize]
	e.write, e.read, e.metadata = write, read, m
	s.n++
}

// reset empties the set. It clears the entries so that they keep no metadata alive.
func (s *set) reset() {
	clear(s.entries[:min(s.n, setSize)])
	s.n = 0
}

// Counts are the numbers of events by the rules of table 3.1 of the thesis.
type Counts struct {
	Accesses, SharedAccesses     uint64 // all; those to variables with an EpochPlusVC
	PairReused, PairAllocated    uint64 // READEXCLREUSE, READEXCLALLOC
	InflReused, InflAllocated    uint64 // READINFLREUSE, READINFLALLOC
	SharedReused, SharedAlloc    uint64 // READSHAREDREUSE, READSHAREDALLOC
	WriteAllocated               uint64 // metadata allocated for W
	MostS, MostQ, Overflows, CAS uint64 // most insertions in an epoch; entries overwritten; failed compare-and-swaps
	Epochs, SumS, SumQ           uint64 // epochs that ended; sums of the insertions in them
}

// Thread is the state of a thread. No other thread may use it.
type Thread struct {
	ID     uint16
	Clock  order.Clock
	Counts Counts
	w      *Metadata
	s, q   set
	// nexts are the entries of Next that the thread set in this epoch. Advance clears them. A later epoch cannot use
	// them, and the metadata that they refer to have a Next too: such chains would keep alive all metadata that a
	// variable ever had.
	nexts  []**Metadata
	found  func(other order.Epoch, wrote bool)
	shared func(*Metadata) // called with each EpochPlusVC that is allocated, or nil
	alone  bool            // no other thread judges at the same time, so plain stores update variables
}

// NewThread returns the state of a thread. It calls found for each race with the earlier access and whether that access
// is a write.
func NewThread(id uint16, found func(other order.Epoch, wrote bool)) *Thread {
	t := &Thread{ID: id, found: found}
	t.Clock.Set(order.At(id))
	return t
}

// Advance begins an epoch with the given clock. It clears W, S, Q and the entries of Next that the thread set.
func (t *Thread) Advance(c order.Clock) {
	t.Clock = c
	t.w = nil
	t.Counts.Epochs, t.Counts.SumS, t.Counts.SumQ = t.Counts.Epochs+1, t.Counts.SumS+uint64(t.s.n), t.Counts.SumQ+uint64(t.q.n)
	t.Counts.MostS, t.Counts.MostQ = max(t.Counts.MostS, uint64(t.s.n)), max(t.Counts.MostQ, uint64(t.q.n))
	t.Counts.Overflows += uint64(max(0, t.s.n-setSize) + max(0, t.q.n-setSize))
	t.s.reset()
	t.q.reset()
	for i, next := range t.nexts {
		*next, t.nexts[i] = nil, nil
	}
	t.nexts = t.nexts[:0]
}

// Variable holds the metadata of a variable. The zero Variable has not been accessed.
type Variable struct{ metadata atomic.Pointer[Metadata] }

var untouched Metadata

func (v *Variable) load() *Metadata {
	if m := v.metadata.Load(); m != nil {
		return m
	}
	return &untouched
}

// swap replaces the metadata old of a variable by m. It returns false if another thread has replaced old.
func (t *Thread) swap(v *Variable, old, m *Metadata) bool {
	if t.alone {
		*(**Metadata)(unsafe.Pointer(&v.metadata)) = m
		return true
	}
	if old == &untouched {
		old = nil
	}
	return v.metadata.CompareAndSwap(old, m)
}

// Read judges a read of a variable and updates its metadata.
func (t *Thread) Read(v *Variable) {
	now := t.Clock[t.ID]
	t.Counts.Accesses++
	for {
		m := v.load()
		if m.Reads == nil && m.Read == now {
			return // READSAMEEPOCH
		}
		if m.Reads != nil && m.Reads.Clock.Of(t.ID) == now {
			t.Counts.SharedAccesses++
			if !t.Clock.Has(m.Write) {
				t.found(m.Write, true)
			}
			return // READSHARED of the same epoch
		}
		to, rule := t.read(m, now)
		if !t.swap(v, m, to) {
			t.Counts.CAS++
			continue
		}
		*rule++
		if m.Reads != nil {
			t.Counts.SharedAccesses++
		}
		if !t.Clock.Has(m.Write) {
			t.found(m.Write, true)
		}
		return
	}
}

// read returns the metadata after a read by the thread, and the counter of the rule that was applied.
func (t *Thread) read(m *Metadata, now order.Epoch) (to *Metadata, rule *uint64) {
	switch {
	case m.Reads != nil:
		return t.readShared(m, now)
	case t.Clock.Has(m.Read):
		if to = t.s.get(m.Write, 0); to != nil {
			return to, &t.Counts.PairReused // READEXCLREUSE
		}
		to = &Metadata{Write: m.Write, Read: now}
		t.s.put(m.Write, 0, to)
		return to, &t.Counts.PairAllocated // READEXCLALLOC
	}
	if to = t.q.get(m.Write, m.Read); to != nil {
		return to, &t.Counts.InflReused // READINFLREUSE
	}
	to = &Metadata{Write: m.Write, Reads: &Reads{Clock: make(order.Clock, max(t.ID, m.Read.Thread())+1)}}
	to.Reads.Clock[m.Read.Thread()] = m.Read
	to.Reads.Clock[t.ID] = now
	t.q.put(m.Write, m.Read, to)
	if t.shared != nil {
		t.shared(to)
	}
	return to, &t.Counts.InflAllocated // READINFLALLOC
}

// readShared applies READSHAREDREUSE or READSHAREDALLOC.
func (t *Thread) readShared(m *Metadata, now order.Epoch) (to *Metadata, rule *uint64) {
	next := m.Reads.entry(t.ID)
	if *next != nil {
		return *next, &t.Counts.SharedReused
	}
	c := make(order.Clock, max(len(m.Reads.Clock), int(t.ID)+1))
	copy(c, m.Reads.Clock)
	c[t.ID] = now
	*next = &Metadata{Write: m.Write, Reads: &Reads{Clock: c}}
	t.nexts = append(t.nexts, next)
	if t.shared != nil {
		t.shared(*next)
	}
	return *next, &t.Counts.SharedAlloc
}

// Write judges a write of a variable and updates its metadata.
func (t *Thread) Write(v *Variable) {
	now := t.Clock[t.ID]
	t.Counts.Accesses++
	if t.w == nil {
		t.w = &Metadata{Write: now}
		t.Counts.WriteAllocated++
	}
	for {
		m := v.load()
		if m.Write == now {
			if m.Reads != nil {
				t.Counts.SharedAccesses++
			}
			return // WRITESAMEEPOCH
		}
		if !t.swap(v, m, t.w) {
			t.Counts.CAS++
			continue
		}
		if m.Reads != nil {
			t.Counts.SharedAccesses++
		}
		t.checkWrite(m)
		return // WRITEEXCL, WRITESHARED
	}
}

// checkRead reports a race if the last write is not ordered before the thread's current operation.
func (t *Thread) checkRead(m *Metadata) {
	if !t.Clock.Has(m.Write) {
		t.found(m.Write, true)
	}
}

// checkWrite reports a race for the last write and for each last read that is not ordered before the thread's current
// operation.
func (t *Thread) checkWrite(m *Metadata) {
	t.checkRead(m)
	if m.Reads == nil {
		if !t.Clock.Has(m.Read) {
			t.found(m.Read, false)
		}
		return
	}
	for _, r := range m.Reads.Clock {
		if !t.Clock.Has(r) {
			t.found(r, false)
		}
	}
}

// Detector judges the events of a trace.
type Detector struct {
	// Shared, if not nil, is called with each EpochPlusVC that is allocated. It is set before the first event.
	Shared func(*Metadata)

	order     order.Order
	variables []Variable
	threads   []*Thread
	events    uint64
	now       *cpu.Event // the access being judged
	at        uint64     // the number of now in the trace
	mixes     bool       // one of the two accesses being compared is atomic
	found     func(cpu.Race)
	atomics   order.Atomics
}

// New returns a detector that calls found for each race.
func New(found func(cpu.Race)) *Detector { return &Detector{found: found} }

// Events implements cpu.Detector.
func (d *Detector) Events(events []cpu.Event) {
	var t *Thread
	for i := range events {
		e := &events[i]
		if e.Op >= cpu.ReadAtomic && e.Op <= cpu.Forget {
			d.other(e, d.events+uint64(i))
			continue
		}
		if e.Op != cpu.Read && e.Op != cpu.Write {
			ended := d.order.Step(e)
			// A join may have reallocated the clock.
			if t = d.thread(e.Thread); ended {
				t.Advance(d.order.Clock(e.Thread))
			} else {
				t.Clock = d.order.Clock(e.Thread)
			}
			if e.Op == cpu.Fork {
				d.thread(uint16(e.Object)).Advance(d.order.Clock(uint16(e.Object)))
			}
			continue
		}
		if n := int(e.Object) + 1; n > len(d.variables) {
			d.grow(n)
		}
		if t == nil || t.ID != e.Thread {
			t = d.thread(e.Thread)
		}
		d.now, d.at = e, d.events+uint64(i)
		if d.atomics.Has(e.Object) {
			d.mixed(t, e)
		}
		if e.Op == cpu.Write {
			t.Write(&d.variables[e.Object])
		} else {
			t.Read(&d.variables[e.Object])
		}
	}
	d.events += uint64(len(events))
}

// other handles an atomic access or a change of the extent of variables. A part of a variable shares the metadata of
// the whole, because metadata are immutable.
func (d *Detector) other(e *cpu.Event, at uint64) {
	if n := int(e.Object) + 1; n > len(d.variables) {
		d.grow(n)
	}
	v := &d.variables[e.Object]
	switch e.Op {
	case cpu.Part:
		if n := int(e.Location) + 1; n > len(d.variables) {
			d.grow(n)
			v = &d.variables[e.Object]
		}
		v.metadata.Store(d.variables[e.Location].metadata.Load())
		d.atomics.Part(e.Object, e.Location)
	case cpu.Forget:
		v.metadata.Store(nil)
		d.atomics.Forget(e.Object)
	default:
		t := d.thread(e.Thread)
		d.now, d.at, d.mixes = e, at, true
		if e.Op == cpu.WriteAtomic {
			t.checkWrite(v.load())
		} else {
			t.checkRead(v.load())
		}
		d.mixes = false
		d.atomics.Add(e.Object, t.Clock[t.ID], e.Op == cpu.WriteAtomic)
	}
}

// mixed compares a plain access with the atomic accesses to its variable.
func (d *Detector) mixed(t *Thread, e *cpu.Event) {
	d.mixes = true
	d.atomics.Conflicts(e.Object, e.Op == cpu.Write, func(x order.Epoch, wrote bool) {
		if !t.Clock.Has(x) {
			t.found(x, wrote)
		}
	})
	d.mixes = false
}

// grow makes room for n variables. It copies them, which is allowed because only one goroutine uses a Detector.
func (d *Detector) grow(n int) {
	if n > cap(d.variables) {
		more := make([]Variable, n, max(n, 2*cap(d.variables)))
		copy(more, d.variables)
		d.variables = more
	}
	d.variables = d.variables[:n]
}

func (d *Detector) thread(id uint16) *Thread {
	for len(d.threads) <= int(id) {
		d.threads = append(d.threads, nil)
	}
	if d.threads[id] == nil {
		t := NewThread(id, func(other order.Epoch, wrote bool) {
			e := d.now
			d.found(cpu.Race{Event: d.at, Variable: e.Object, Thread: e.Thread, Earlier: other.Thread(), Write: e.Op.Writes(), Wrote: wrote, Atomic: d.mixes})
		})
		t.Clock, t.shared, t.alone = d.order.Clock(id), d.Shared, true
		d.threads[id] = t
	}
	return d.threads[id]
}

// Counts returns the sums over all threads. MostS and MostQ are maxima over all threads.
func (d *Detector) Counts() Counts {
	var all Counts
	for _, t := range d.threads {
		if t == nil {
			continue
		}
		t.Counts.MostS, t.Counts.MostQ = max(t.Counts.MostS, uint64(t.s.n)), max(t.Counts.MostQ, uint64(t.q.n))
		c := &t.Counts
		all.Accesses, all.SharedAccesses = all.Accesses+c.Accesses, all.SharedAccesses+c.SharedAccesses
		all.PairReused, all.PairAllocated = all.PairReused+c.PairReused, all.PairAllocated+c.PairAllocated
		all.InflReused, all.InflAllocated = all.InflReused+c.InflReused, all.InflAllocated+c.InflAllocated
		all.SharedReused, all.SharedAlloc = all.SharedReused+c.SharedReused, all.SharedAlloc+c.SharedAlloc
		all.WriteAllocated, all.CAS, all.Overflows = all.WriteAllocated+c.WriteAllocated, all.CAS+c.CAS, all.Overflows+c.Overflows
		all.MostS, all.MostQ = max(all.MostS, c.MostS), max(all.MostQ, c.MostQ)
		all.Epochs, all.SumS, all.SumQ = all.Epochs+c.Epochs, all.SumS+c.SumS, all.SumQ+c.SumQ
	}
	return all
}

// Describe returns the characteristics of table 3.1 of the thesis as text.
func (d *Detector) Describe() string {
	c := d.Counts()
	share := func(part, rest uint64) string {
		if part+rest == 0 {
			return "none"
		}
		return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(part+rest))
	}
	plus, allocated := c.InflReused+c.SharedReused, c.InflAllocated+c.SharedAlloc
	return fmt.Sprintf("%d accesses were judged; of variables with an EpochPlusVC: %s. Metadata that were there already: EpochPlusVC %s of %d, EpochPair %s of %d. "+
		"The fullest S had %d entries, the fullest Q %d. Objects allocated: %d.", c.Accesses, share(c.SharedAccesses, c.Accesses-c.SharedAccesses),
		share(plus, allocated), plus+allocated, share(c.PairReused, c.PairAllocated), c.PairReused+c.PairAllocated, c.MostS, c.MostQ,
		allocated+c.PairAllocated+c.WriteAllocated)
}

// MemoryBytes implements cpu.Detector. It counts the variables and everything reachable from them and from the threads.
// It does not count unreachable metadata, because the garbage collector frees them.
func (d *Detector) MemoryBytes() uint64 {
	n := uint64(cap(d.variables))*8 + d.atomics.Bytes()
	seen := map[*Metadata]bool{}
	var visit []*Metadata
	add := func(m *Metadata) {
		if m != nil && !seen[m] {
			seen[m] = true
			visit = append(visit, m)
		}
	}
	for i := range d.variables {
		add(d.variables[i].metadata.Load())
	}
	for _, t := range d.threads {
		if t == nil {
			continue
		}
		n += 2 * (setSize*24 + 8)
		add(t.w)
		for i := range setSize {
			add(t.s.entries[i].metadata)
			add(t.q.entries[i].metadata)
		}
	}
	for len(visit) > 0 {
		m := visit[len(visit)-1]
		visit = visit[:len(visit)-1]
		n += 24
		if m.Reads == nil {
			continue
		}
		n += 32 + m.Reads.Clock.Bytes()
		for c := m.Reads.next.Load(); c != nil; c = c.more.Load() {
			n += 8*chunkThreads + 16
			for _, next := range c.to {
				add(next)
			}
		}
	}
	return n
}
