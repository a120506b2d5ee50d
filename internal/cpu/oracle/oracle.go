// Package oracle judges traces of CPU programs by the definitions alone, for tests. It represents a relation of events
// as a matrix and uses none of the techniques that make detectors fast. It also generates random traces.
package oracle

import (
	"math/rand/v2"

	"fencepost.dev/fencepost/internal/cpu"
)

// relation holds, for each event, the set of events before it.
type relation [][]uint64

func newRelation(n int) relation {
	r := make(relation, n)
	for i := range r {
		r[i] = make([]uint64, (n+63)/64)
	}
	return r
}

func (r relation) has(a, b int) bool { return r[b][a/64]>>(a%64)&1 != 0 }

// add orders a, and everything before a, before b, and reports whether that is new. The caller closes the relation
// under composition.
func (r relation) add(a, b int) bool {
	grown := false
	one := func(i int, w uint64) {
		if w&^r[b][i] != 0 {
			r[b][i] |= w
			grown = true
		}
	}
	one(a/64, 1<<(a%64))
	for i, w := range r[a] {
		one(i, w)
	}
	return grown
}

// isRead and isWrite report the kind of an access.
func isRead(e *cpu.Event) bool  { return e.Op == cpu.Read }
func isWrite(e *cpu.Event) bool { return e.Op == cpu.Write }

// edges returns the pairs of events that synchronise, the earlier first. If locks is set, it returns the edges of
// exclusive locks, otherwise all others.
func edges(events []cpu.Event, locks bool) (pairs [][2]int) {
	for j := range events {
		b := &events[j]
		for i := range j {
			a := &events[i]
			if synchronise(events, i, j) && (exclusive(a, b) == locks) {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	return pairs
}

// exclusive reports whether a release and an acquire are those of an exclusive lock.
func exclusive(a, b *cpu.Event) bool { return a.Op == cpu.Release && b.Op == cpu.Acquire }

func synchronise(events []cpu.Event, i, j int) bool {
	a, b := &events[i], &events[j]
	same := a.Object == b.Object
	if b.Op == cpu.Join && (b.Object == uint32(a.Thread) || a.Op == cpu.Fork && same) {
		return true
	}
	switch a.Op {
	case cpu.Release:
		return same && (b.Op == cpu.Acquire || b.Op == cpu.AcquireShared)
	case cpu.ReleaseShared:
		return same && b.Op == cpu.Acquire
	case cpu.AtomicWrite, cpu.AtomicUpdate:
		return same && (b.Op == cpu.AtomicRead || b.Op == cpu.AtomicUpdate)
	case cpu.Fork:
		return uint32(b.Thread) == a.Object
	case cpu.BarrierEnter:
		return same && b.Op == cpu.BarrierLeave && crossing(events, i) == crossing(events, entered(events, j))
	}
	return false
}

// entered returns the enter that matches a leave: of the same thread and barrier.
func entered(events []cpu.Event, leave int) int {
	for i := leave - 1; i >= 0; i-- {
		if e := &events[i]; e.Op == cpu.BarrierEnter && e.Thread == events[leave].Thread && e.Object == events[leave].Object {
			return i
		}
	}
	return -1
}

// crossing returns the number of the crossing of an enter. A crossing ends when a thread that entered for it leaves.
func crossing(events []cpu.Event, enter int) int {
	n, open := 0, map[uint16]int{}
	for i := range events {
		e := &events[i]
		if e.Object != events[enter].Object {
			continue
		}
		switch e.Op {
		case cpu.BarrierEnter:
			open[e.Thread] = n
			if i == enter {
				return n
			}
		case cpu.BarrierLeave:
			if open[e.Thread] == n {
				n++
			}
		}
	}
	return -1
}

// HappensBefore returns a function that reports whether one event happens before another.
func HappensBefore(events []cpu.Event) func(a, b int) bool { return happensBefore(events).has }

func happensBefore(events []cpu.Event) relation {
	r := newRelation(len(events))
	sync := append(edges(events, false), edges(events, true)...)
	into := make([][]int, len(events))
	for _, p := range sync {
		into[p[1]] = append(into[p[1]], p[0])
	}
	for j := range events { // all edges lead to later events
		for i := range j {
			if events[i].Thread == events[j].Thread {
				r.add(i, j)
			}
		}
		for _, i := range into[j] {
			r.add(i, j)
		}
	}
	return r
}

// Race is a pair of accesses by number, the earlier first.
type Race struct{ A, B int }

// Races returns the conflicting pairs that a relation does not order, by the later access and then the earlier.
func Races(events []cpu.Event, before func(a, b int) bool) (races []Race) {
	for j := range events {
		for i := range j {
			a, b := &events[i], &events[j]
			if (isRead(a) || isWrite(a)) && (isRead(b) || isWrite(b)) && (isWrite(a) || isWrite(b)) && a.Object == b.Object &&
				a.Thread != b.Thread && !before(i, j) {
				races = append(races, Race{i, j})
			}
		}
	}
	return races
}

// First returns, for each variable with a race, the first access that races with an earlier one.
func First(events []cpu.Event, races []Race) map[uint32]int {
	first := map[uint32]int{}
	for _, r := range races {
		x := events[r.A].Object
		if b, ok := first[x]; !ok || r.B < b {
			first[x] = r.B
		}
	}
	return first
}

// section is a critical section: the numbers of its acquire and of its release. The release is len(events) if there is
// none.
type section struct{ acquire, release int }

// WeakCausallyPrecedes returns a function that reports whether the first of two events weak-causally-precedes the
// second or precedes it in its thread. The relation is the smallest with three properties. (a) The release of a
// critical section precedes a later access, inside a section of the same lock, that conflicts with an access in the
// first. (b) The releases of two sections of a lock are ordered if events in them are. In both cases the sections are
// of two threads. (c) The relation is closed under composition with happens-before on both sides. It includes the order
// by forks, joins, barriers, atomic accesses and read-write locks.
func WeakCausallyPrecedes(events []cpu.Event) func(a, b int) bool {
	hb := happensBefore(events)
	n := len(events)
	wcp := newRelation(n)
	sections := criticalSections(events)
	pairs := edges(events, false)
	for _, lock := range sections {
		for _, s := range lock {
			for _, e := range lock {
				pairs = append(pairs, conflicts(events, s, e)...)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, lock := range sections {
			for i, s := range lock {
				for _, e := range lock[i+1:] {
					if e.release < n && s.release < n && events[s.acquire].Thread != events[e.acquire].Thread && touches(events, wcp, s, e) {
						pairs = append(pairs, [2]int{s.release, e.release})
					}
				}
			}
		}
		for _, p := range pairs {
			changed = compose(hb, wcp, p[0], p[1]) || changed
		}
		pairs = pairs[:0]
	}
	return func(a, b int) bool { return wcp.has(a, b) || events[a].Thread == events[b].Thread && a < b }
}

// compose orders a, and everything that happens before it, before b, and everything that happens after it.
func compose(hb, wcp relation, a, b int) (changed bool) {
	before := append([]uint64(nil), hb[a]...)
	before[a/64] |= 1 << (a % 64)
	for i := b; i < len(hb); i++ {
		if i != b && !hb.has(b, i) {
			continue
		}
		for w, bits := range before {
			if bits&^wcp[i][w] != 0 {
				wcp[i][w] |= bits
				changed = true
			}
		}
	}
	return changed
}

func criticalSections(events []cpu.Event) map[uint32][]section {
	out := map[uint32][]section{}
	for i := range events {
		if events[i].Op != cpu.Acquire {
			continue
		}
		s := section{i, len(events)}
		for j := i + 1; j < len(events); j++ {
			if e := &events[j]; e.Op == cpu.Release && e.Object == events[i].Object && e.Thread == events[i].Thread {
				s.release = j
				break
			}
		}
		out[events[i].Object] = append(out[events[i].Object], s)
	}
	return out
}

// conflicts returns the pairs of rule (a) for two critical sections of a lock: the release of s, and an access in e.
func conflicts(events []cpu.Event, s, e section) (pairs [][2]int) {
	thread, other := events[s.acquire].Thread, events[e.acquire].Thread
	if thread == other || s.release >= e.acquire {
		return nil
	}
	for j := e.acquire; j < min(e.release, len(events)); j++ {
		for i := s.acquire; i < s.release; i++ {
			a, b := &events[i], &events[j]
			if a.Thread == thread && b.Thread == other && (isRead(a) || isWrite(a)) && (isRead(b) || isWrite(b)) &&
				(isWrite(a) || isWrite(b)) && a.Object == b.Object {
				pairs = append(pairs, [2]int{s.release, j})
				break
			}
		}
	}
	return pairs
}

// touches reports whether an event of s is ordered before an event of e.
func touches(events []cpu.Event, wcp relation, s, e section) bool {
	for i := s.acquire; i <= s.release; i++ {
		for j := e.acquire; j <= e.release; j++ {
			if events[i].Thread == events[s.acquire].Thread && events[j].Thread == events[e.acquire].Thread && wcp.has(i, j) {
				return true
			}
		}
	}
	return false
}

// Random returns a random trace. Its threads fork and join each other. It has locks that are not properly nested,
// read-write locks, atomic variables, barriers, and variables of which some are mostly read.
func Random(r *rand.Rand) []cpu.Event {
	g := &generator{rand: r, owner: map[uint32]int{}, readers: map[uint32]int{}}
	for range 1 + r.IntN(3) {
		g.threads = append(g.threads, &thread{})
	}
	g.locked, g.kinds = r.IntN(2) == 0, []int{18, 24}[r.IntN(2)]
	g.locks, g.variables = 1+r.IntN(3), 1+r.IntN(4)
	most, n := 2+r.IntN(4), 10+r.IntN(50)
	g.bias = r.IntN(4)
	for range 8 * n { // a step may have no effect, or no thread may be able to continue
		if g.step(most); len(g.events) == n {
			break
		}
	}
	return g.events
}

type thread struct {
	held   []uint32 // locks that it holds
	shared []uint32
	inside bool // it has entered a barrier and not left it
	joined bool
}

type generator struct {
	rand             *rand.Rand
	events           []cpu.Event
	threads          []*thread
	owner            map[uint32]int // by lock: the thread, plus one
	readers          map[uint32]int
	locks, variables int
	bias             int  // number of reads among four accesses
	locked           bool // most accesses are in critical sections
	kinds            int  // number of kinds of operations: few (accesses, and locks of one thread alone) or all
}

// Synchronisation objects: locks from 0, then a read-write lock, an atomic variable and a barrier.
const (
	rwLock     = 3
	atomicWord = 4
	barrierID  = 5
)

func (g *generator) step(most int) {
	id := g.rand.IntN(len(g.threads))
	t := g.threads[id]
	if t.joined {
		return
	}
	emit := func(op cpu.Op, object uint32) {
		g.events = append(g.events, cpu.Event{Op: op, Thread: uint16(id), Object: object, Location: uint32(len(g.events)) + 1})
	}
	if t.inside {
		if g.rand.IntN(2) == 0 {
			emit(cpu.BarrierLeave, barrierID)
			t.inside = false
		}
		return
	}
	switch k := g.rand.IntN(g.kinds); {
	case k < 12:
		if g.locked && len(t.held) == 0 && g.rand.IntN(8) > 0 {
			return
		}
		x := uint32(g.rand.IntN(g.variables))
		if g.rand.IntN(4) < g.bias {
			emit(cpu.Read, x)
		} else {
			emit(cpu.Write, x)
		}
	case k < 15:
		l := uint32(g.rand.IntN(g.locks))
		if g.owner[l] == 0 {
			g.owner[l] = id + 1
			t.held = append(t.held, l)
			emit(cpu.Acquire, l)
		}
	case k < 18:
		if n := len(t.held); n > 0 {
			i := g.rand.IntN(n)
			l := t.held[i]
			t.held = append(t.held[:i], t.held[i+1:]...)
			g.owner[l] = 0
			emit(cpu.Release, l)
		}
	case k == 18:
		g.readWrite(t, id, emit)
	case k == 19:
		if g.rand.IntN(3) == 0 {
			emit(cpu.AtomicRead+cpu.Op(g.rand.IntN(3)), atomicWord)
		}
	case k == 20 && g.rand.IntN(2) == 0:
		emit(cpu.BarrierEnter, barrierID)
		t.inside = true
	case k <= 22 && len(g.threads) < most:
		g.threads = append(g.threads, &thread{})
		emit(cpu.Fork, uint32(len(g.threads)-1))
	case k == 23 && g.rand.IntN(3) == 0:
		u := g.rand.IntN(len(g.threads))
		if o := g.threads[u]; u != id && u != 0 && !o.joined && !o.inside && len(o.held)+len(o.shared) == 0 {
			o.joined = true
			emit(cpu.Join, uint32(u))
		}
	}
}

func (g *generator) readWrite(t *thread, id int, emit func(cpu.Op, uint32)) {
	switch {
	case len(t.shared) > 0:
		t.shared = nil
		g.readers[rwLock]--
		emit(cpu.ReleaseShared, rwLock)
	case g.owner[rwLock] == id+1:
		// The thread releases one of t.held.
	case g.owner[rwLock] != 0:
	case g.rand.IntN(2) == 0:
		t.shared = []uint32{rwLock}
		g.readers[rwLock]++
		emit(cpu.AcquireShared, rwLock)
	case g.readers[rwLock] == 0:
		g.owner[rwLock] = id + 1
		t.held = append(t.held, rwLock)
		emit(cpu.Acquire, rwLock)
	}
}
