// Package slimfast is the detector SlimFast (seed 001, sections 3.2.2 and 3.3): FastTrack whose metadata are immutable, so that
// variables with the same history share one object. Each thread has
//
//   - W, the metadata of what it writes in its present epoch;
//   - S, the metadata that its reads made in this epoch where all accesses are ordered, by the epoch of the write;
//   - Q, those that its reads made where a first read of another thread was not ordered, by that read and the write;
//
// and metadata with a clock of readers have a map Next from a thread to the metadata that its read led to before.
//
// It finds what FastTrack finds. Variables are updated by compare-and-swap (figure 3.11): threads may judge their own accesses at
// the same time.
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

// Metadata is an EpochPair, or an EpochPlusVC if Reads is not nil. It does not change once a variable has it, except
// Reads.next.
type Metadata struct {
	Write order.Epoch
	Read  order.Epoch // of an EpochPair
	Reads *Reads
}

// Reads is the additional part of an EpochPlusVC: the last read of each thread since the write, and Next.
type Reads struct {
	Clock order.Clock
	next  atomic.Pointer[chunk]
}

// chunk is the part of the map Next for some threads. Only its own thread reads and writes an entry.
type chunk struct {
	first uint16
	to    [chunkThreads]*Metadata
	more  atomic.Pointer[chunk]
}

const chunkThreads = 8

// entry returns Next for a thread.
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

// setSize is the capacity of S and Q. Further entries replace the oldest ones. The thesis found ten enough.
const setSize = 16

// set is S or Q of a thread. Within an epoch the read is the same for all entries, and so not part of the key (section
// 3.3.4).
type set struct {
	entries [setSize]struct {
		write, read order.Epoch
		metadata    *Metadata
	}
	n int // number of insertions
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

// reset empties the set, so that it keeps no metadata alive.
func (s *set) reset() {
	clear(s.entries[:min(s.n, setSize)])
	s.n = 0
}

// Counts are the events of table 3.1 of the thesis.
type Counts struct {
	Accesses, SharedAccesses     uint64 // all; those to variables with an EpochPlusVC
	PairReused, PairAllocated    uint64 // READEXCLREUSE, READEXCLALLOC
	InflReused, InflAllocated    uint64 // READINFLREUSE, READINFLALLOC
	SharedReused, SharedAlloc    uint64 // READSHAREDREUSE, READSHAREDALLOC
	WriteAllocated               uint64 // values of W assigned to a variable
	MostS, MostQ, Overflows, CAS uint64 // the greatest number of entries in an epoch; entries overwritten; failed compare-and-swaps
	Epochs, SumS, SumQ           uint64 // number that ended; entries at their ends
}

// Thread is the state of a thread. No other thread may use it.
type Thread struct {
	ID     uint16
	Clock  order.Clock
	Counts Counts
	w      *Metadata
	s, q   set
	// nexts are the entries of Next that the thread made in this epoch. Later epochs cannot use them. They must be
	// cleared, because the metadata to which they refer have a Next too: without an end, such chains would keep all
	// metadata that a variable ever had.
	nexts  []**Metadata
	found  func(other order.Epoch, wrote bool)
	shared func(*Metadata) // called with each EpochPlusVC that is allocated, or nil
	alone  bool            // no other thread judges concurrently: variables are updated by plain stores
}

// NewThread makes the state of a thread. found is called for races.
func NewThread(id uint16, found func(other order.Epoch, wrote bool)) *Thread {
	t := &Thread{ID: id, found: found}
	t.Clock.Set(order.At(id))
	return t
}

// Advance begins an epoch: W is new, and S and Q are empty.
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

// swap updates a variable that had old. It returns false if the variable has changed meanwhile.
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

// read returns the metadata after a read by the thread, and the count of the rule.
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

// readShared is READSHARED*.
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

// checkRead reports the write with which a read is not ordered.
func (t *Thread) checkRead(m *Metadata) {
	if !t.Clock.Has(m.Write) {
		t.found(m.Write, true)
	}
}

// checkWrite reports the accesses with which a write is not ordered.
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

// Detector judges a trace.
type Detector struct {
	// Shared, if not nil, is called with each EpochPlusVC that is allocated. It is set before the first event.
	Shared func(*Metadata)

	order     order.Order
	variables []Variable
	threads   []*Thread
	events    uint64
	now       *cpu.Event // the access being judged
	at        uint64     // its number
	mixes     bool       // with an atomic one
	found     func(cpu.Race)
	atomics   order.Atomics
}

// New makes a detector.
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
			// Joining may have moved the clock in memory.
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

// other handles an atomic access, or a change of the extent of variables. Metadata are immutable, so a part shares
// those of the whole.
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

// mixed compares a plain access with the atomic ones of its variable.
func (d *Detector) mixed(t *Thread, e *cpu.Event) {
	d.mixes = true
	d.atomics.Conflicts(e.Object, e.Op == cpu.Write, func(x order.Epoch, wrote bool) {
		if !t.Clock.Has(x) {
			t.found(x, wrote)
		}
	})
	d.mixes = false
}

// grow makes room for variables. A Variable must not be copied once several threads use it, which those of a Detector
// do not.
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

// Counts adds the counts of all threads; the maxima are the maxima over threads.
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

// Describe describes the characteristics of table 3.1 of the thesis.
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
// Unreachable metadata belong to the garbage collector.
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
