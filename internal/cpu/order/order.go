// Package order computes happens-before in a CPU program: a vector clock for each thread, lock, atomic variable and
// barrier (seed 001, figure 3.3, rules FORK, JOIN, ACQUIRE and RELEASE).
package order

import "fencepost.dev/fencepost/internal/cpu"

// Epoch is a thread and a time on its clock. Of two epochs of one thread, the later is the larger number. So a clock is
// a list of epochs, and one comparison of numbers tests whether it contains an epoch. 0 is before all epochs.
type Epoch uint64

const threadBits = 12 // cpu.MaxThreads

// At is the first epoch of a thread.
func At(thread uint16) Epoch { return 1<<threadBits | Epoch(thread) }

// Thread is the thread of the epoch.
func (e Epoch) Thread() uint16 { return uint16(e) & (cpu.MaxThreads - 1) }

// Next is the next epoch of the same thread.
func (e Epoch) Next() Epoch { return e + 1<<threadBits }

// Clock holds, for each thread, the last epoch that is ordered before the owner of the clock. An entry that is 0 or
// missing is before all epochs.
type Clock []Epoch

// Of returns the epoch of a thread.
func (c Clock) Of(thread uint16) Epoch {
	if int(thread) < len(c) {
		return c[thread]
	}
	return 0
}

// Has reports whether an epoch is ordered before the owner of the clock.
func (c Clock) Has(e Epoch) bool {
	t := int(e & (cpu.MaxThreads - 1))
	if t < len(c) {
		return e <= c[t]
	}
	return e == 0
}

// Set changes the epoch of a thread.
func (c *Clock) Set(e Epoch) {
	t := int(e.Thread())
	c.grow(t + 1)
	(*c)[t] = e
}

func (c *Clock) grow(n int) {
	for len(*c) < n {
		*c = append(*c, 0)
	}
}

// Join adds the contents of another clock.
func (c *Clock) Join(o Clock) {
	c.grow(len(o))
	to := (*c)[:len(o)]
	for i, e := range o {
		if e > to[i] {
			to[i] = e
		}
	}
}

// Copy makes the clock equal to another one.
func (c *Clock) Copy(o Clock) { *c = append((*c)[:0], o...) }

// Bytes is the memory that the clock takes.
func (c Clock) Bytes() uint64 { return uint64(cap(c)) * 8 }

// object is the clock of a lock, an atomic variable or a barrier.
type object struct {
	clock Clock
	// last is an epoch such that the clock is the state of the epoch's thread at the end of the epoch. A thread that
	// has last in its clock has all of the clock. last is 0 if there is no such epoch.
	last    Epoch
	shared  Clock // of a read-write lock: the join of its readers' releases
	barrier *barrier
}

// barrier is a barrier with its crossings. A thread may enter the next crossing before other threads have left this
// one.
type barrier struct {
	first     int        // number of the first of crossings
	crossings []crossing // the last one is open
	in        map[uint16]int
}

type crossing struct {
	clock  Clock
	inside int // number of threads that have entered and not left
	closed bool
}

// Order is the state of all threads and objects.
type Order struct {
	// Joined, if not nil, is called with each clock that a thread is about to join. It is not called for the clock that
	// an Acquire gets from the last Release.
	Joined  func(thread uint16, c Clock)
	threads []Clock
	objects []object
	fences  []fences // by thread; shorter than threads if none were needed
}

// fences are the clocks of a thread's fences. released is what precedes its last release fence. read is what its
// relaxed reads would have joined if they had been acquires.
type fences struct{ released, read Clock }

func (o *Order) fencesOf(thread uint16) *fences {
	for len(o.fences) <= int(thread) {
		o.fences = append(o.fences, fences{})
	}
	return &o.fences[thread]
}

// Clock returns the clock of a thread. It is valid until the next event of any thread.
func (o *Order) Clock(thread uint16) Clock {
	if int(thread) >= len(o.threads) || o.threads[thread] == nil {
		o.begin(thread)
	}
	return o.threads[thread]
}

// begin gives a thread its first epoch.
func (o *Order) begin(thread uint16) {
	for len(o.threads) <= int(thread) {
		o.threads = append(o.threads, nil)
	}
	if o.threads[thread] == nil {
		o.threads[thread].Set(At(thread))
	}
}

func (o *Order) object(id uint32) *object {
	for len(o.objects) <= int(id) {
		o.objects = append(o.objects, object{})
	}
	return &o.objects[id]
}

// Step handles an event that is not an access. ended reports whether an epoch of e.Thread ended with it.
func (o *Order) Step(e *cpu.Event) (ended bool) {
	o.begin(e.Thread)
	c := &o.threads[e.Thread]
	switch e.Op {
	case cpu.Acquire, cpu.AcquireShared, cpu.AtomicRead:
		o.acquire(e, o.object(e.Object))
		return false
	case cpu.Release:
		s := o.object(e.Object)
		s.clock.Copy(*c)
		s.last = (*c)[e.Thread]
	case cpu.ReleaseShared:
		s := o.object(e.Object)
		s.shared.Join(*c)
	case cpu.AtomicUpdate, cpu.AtomicWrite:
		s := o.object(e.Object)
		if e.Op == cpu.AtomicUpdate {
			o.acquire(e, s)
		}
		s.clock.Join(*c)
		s.last = 0
	case cpu.Fork:
		child := uint16(e.Object)
		if int(child) < len(o.threads) && o.threads[child] != nil {
			o.threads[child].Set(o.threads[child][child].Next()) // the thread reuses the number of a thread that was joined
		}
		o.begin(child)
		o.join(child, o.threads[e.Thread])
		c = &o.threads[e.Thread]
	case cpu.Join:
		o.begin(uint16(e.Object))
		o.join(e.Thread, o.threads[e.Object])
		// Figure 3.3 starts a new epoch of the thread that has ended. This has no effect, because that thread makes no
		// further event.
		return false
	case cpu.BarrierEnter:
		o.object(e.Object).enter(e.Thread, *c)
	case cpu.BarrierLeave:
		if left := o.object(e.Object).leave(e.Thread); left != nil {
			o.join(e.Thread, left)
		}
		return false
	case cpu.StoreRelease, cpu.StoreRelaxed, cpu.ReadRelaxed, cpu.UpdateAcquire, cpu.UpdateRelease, cpu.UpdateRelaxed:
		if !o.atomic(e, o.object(e.Object)) {
			return false
		}
	case cpu.FenceAcquire:
		o.join(e.Thread, o.fencesOf(e.Thread).read)
		return false
	case cpu.FenceRelease:
		o.fencesOf(e.Thread).released.Copy(*c)
	default:
		return false
	}
	(*c)[e.Thread] = (*c)[e.Thread].Next()
	return true
}

// atomic handles an access to an atomic variable with weaker ordering (C++ standard, 6.9.2.2 and 33.5.11). ended
// reports whether an epoch of the thread ended.
func (o *Order) atomic(e *cpu.Event, s *object) (ended bool) {
	f := o.fencesOf(e.Thread)
	switch e.Op {
	case cpu.ReadRelaxed, cpu.UpdateRelease, cpu.UpdateRelaxed:
		f.read.Join(s.clock)
	case cpu.UpdateAcquire:
		o.acquire(e, s)
	}
	switch c := o.threads[e.Thread]; e.Op {
	case cpu.StoreRelease:
		s.clock.Copy(c)
		s.last = c[e.Thread]
		return true
	case cpu.UpdateRelease:
		s.clock.Join(c)
		s.last = 0
		return true
	case cpu.StoreRelaxed:
		s.clock.Copy(f.released)
		s.last = 0
	case cpu.UpdateAcquire, cpu.UpdateRelaxed:
		if len(f.released) > 0 {
			s.clock.Join(f.released)
			s.last = 0
		}
	}
	return false
}

// join adds the contents of another clock to that of a thread.
func (o *Order) join(thread uint16, c Clock) {
	if o.Joined != nil {
		o.Joined(thread, c)
	}
	o.threads[thread].Join(c)
}

func (o *Order) acquire(e *cpu.Event, s *object) {
	if o.Joined != nil && e.Op != cpu.Acquire {
		o.Joined(e.Thread, s.clock)
	}
	if c := &o.threads[e.Thread]; s.last == 0 || !c.Has(s.last) {
		c.Join(s.clock)
	}
	if e.Op == cpu.Acquire && s.shared != nil {
		o.join(e.Thread, s.shared)
	}
}

func (s *object) enter(thread uint16, c Clock) {
	if s.barrier == nil {
		s.barrier = &barrier{in: map[uint16]int{}}
	}
	b := s.barrier
	if n := len(b.crossings); n == 0 || b.crossings[n-1].closed {
		b.crossings = append(b.crossings, crossing{})
	}
	n := len(b.crossings) - 1
	b.crossings[n].clock.Join(c)
	b.crossings[n].inside++
	b.in[thread] = b.first + n
}

// leave returns the clock of the crossing for which the thread entered, and nil if it did not. It is valid until the
// next event.
func (s *object) leave(thread uint16) Clock {
	if s.barrier == nil {
		return nil
	}
	b := s.barrier
	n, ok := b.in[thread]
	if !ok {
		return nil
	}
	delete(b.in, thread)
	x := &b.crossings[n-b.first]
	x.closed = true
	x.inside--
	c := x.clock
	for len(b.crossings) > 0 && b.crossings[0].closed && b.crossings[0].inside == 0 {
		b.crossings = b.crossings[1:]
		b.first++
	}
	return c
}
