// Package candidates enumerates the executions of a small concurrent program under the memory model of PTX. That model
// lets a load be exchanged with a later store of its thread, unless the store depends on the load. So a read may take
// its value from a write that the search adds later. Executions can therefore not be grown along program order as
// internal/verify/explore does.
//
// The search (search.go) runs one thread after the other. A read takes its value from an existing write, or it is
// promised a value that a later write must supply. The values that may be promised are found in rounds (this file).
// Each round searches with the values of the previous one and collects the values written. Since no value depends on
// itself (No-Thin-Air), each write occurs in some round; the last round is the one that counts.
//
// Weak reads are promised values only if there is a data race. A weak read and a write that might come later and keep
// the promise race in the execution in which the write comes first, whatever value is then read.
//
// A branch ends if no thread can supply a promised value any more (reach.go), or if an axiom forbids the events so far
// (check.go). Each axiom that is violated stays violated when events are added. At the end the orders of the sc fences
// and of the writes are chosen, for each location independently (leaf.go).
package candidates

import (
	"context"
	"errors"
	"maps"
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// The bounds of an enumeration.
const (
	maxEvents = 1 << 10 // of an execution
	maxValues = 256     // of a location
	// maxPromises is the greatest number of open promises.
	maxPromises = 64
)

// PartGraphs is the number of graphs that a part of a round visits, in some 200 ms, before its remainder is divided.
const PartGraphs = 1 << 12

// ErrTooLarge says that a program has too many values or events.
var ErrTooLarge = errors.New("the program is too large for the model ptx: an execution has more than 1,024 events or 64 reads from later writes, or a location 256 values. " +
	"Use fewer threads or iterations")

// ErrExchanges says that a program has warp instructions that exchange values.
var ErrExchanges = errors.New("threads exchange values within a warp (shuffles, votes and the like), and there is a data race, or a read might be from a write that comes later: " +
	"that is not explored under the model ptx; the default model explores it")

// Rounds makes the rounds of the enumeration of the executions of p that the model allows. Each is a search in parts
// that calls explore; first says that it is the first one. What the searches of a round have reported is void if another
// round follows. The last round visits every execution once. Executions are distinguished by their reads-from relation
// and by the coherence order as far as the model defines it. It does not count executions in which a thread spins on a
// value that is not the last one, or in which an assumption does not hold.
func Rounds(p explore.Program, m model.PTX, explore func(first bool, search func() explore.Search) explore.Result) error {
	r := &round{p: p, m: m, values: map[int32][]int64{}, by: map[writer]bool{}, mixed: map[int32]bool{}, weak: m.Drop != model.PTXWhole}
	for first := true; ; first = false {
		if result := explore(first, r.search); result.Err != nil || result.Stopped {
			return result.Err
		}
		if again, err := r.next(); !again || err != nil {
			return err
		}
	}
}

// Enumerate is Rounds with one part a round. It calls restart, if not nil, before each round but the first.
func Enumerate(ctx context.Context, p explore.Program, m model.PTX, o explore.Options, restart func()) (result explore.Result, err error) {
	err = Rounds(p, m, func(first bool, search func() explore.Search) explore.Result {
		if !first && restart != nil {
			restart()
		}
		s := search()
		s.Explore(ctx, &o, nil, 1, -1, nil)
		result, _ = s.Report(&o)
		return result
	})
	return result, err
}

// round is a round of the enumeration.
type round struct {
	p explore.Program
	m model.PTX
	// From the rounds before: the values that may be promised by location, the threads that wrote them, the locations
	// with an access that is not morally strong with all other accesses of the location, and whether weak reads are
	// promised values too.
	values map[int32][]int64
	by     map[writer]bool
	mixed  map[int32]bool
	weak   bool

	searches []*search
}

// search returns a search of the round.
func (r *round) search() explore.Search {
	s := newSearch(r)
	r.searches = append(r.searches, s)
	return s
}

// next prepares the next round with what the searches of this one have found. It reports whether there is one.
func (r *round) next() (again bool, err error) {
	weak := r.weak
	for _, s := range r.searches {
		r.weak = r.weak || s.racy
		for loc := range s.partial {
			again = again || !r.mixed[loc]
			r.mixed[loc] = true
		}
		for w := range s.written {
			if !r.by[w] {
				r.by[w], again = true, true
			}
			if v := r.values[w.loc]; !slices.Contains(v, w.value) {
				r.values[w.loc] = append(v, w.value)
			}
		}
	}
	for loc := range r.values {
		slices.Sort(r.values[loc])
		if len(r.values[loc]) > maxValues {
			err = ErrTooLarge
		}
	}
	r.searches = nil
	return again || r.weak && !weak, err
}

// location is a location with a value.
type location struct {
	loc   int32
	value int64
}

// writer is a location with a value, and a thread that writes it.
type writer struct {
	location
	thread int
}

// collect records the values of writes that depend on no open promise.
func (s *search) collect() {
	for i := range s.events {
		e := &s.events[i]
		if w := (writer{location{e.Loc, e.Value}, e.Thread}); e.Kind == model.W && !s.written[w] && !s.openBelow(s.dependencies(i)) {
			s.written[w] = true
		}
	}
}

// dependencies returns the reads that event i depends on, as events.
func (s *search) dependencies(i int) []int {
	e := &s.events[i]
	return s.readsOf(e.Thread, e.deps)
}

// readsOf returns the reads of a thread that the bits name.
func (s *search) readsOf(t int, reads uint64) (out []int) {
	if reads == 0 {
		return nil
	}
	for k, r := range s.threads[t].reads {
		if reads>>min(k, 63)&1 != 0 {
			out = append(out, r)
		}
	}
	return out
}

// below calls f for reads and for all reads on which they depend. f reports whether to go on.
func (s *search) below(reads []int, f func(r int) bool) {
	seen := map[int]bool{}
	for len(reads) > 0 {
		r := reads[len(reads)-1]
		reads = reads[:len(reads)-1]
		if seen[r] {
			continue
		}
		if seen[r] = true; !f(r) {
			return
		}
		if from := s.events[r].rf; from >= 0 {
			reads = append(reads, s.dependencies(from)...)
		}
		reads = append(reads, s.dependencies(r)...)
	}
}

// openBelow reports whether one of reads, or a read on which they depend, has an open promise.
func (s *search) openBelow(reads []int) (open bool) {
	s.below(reads, func(r int) bool {
		open = open || s.events[r].rf == promised
		return !open
	})
	return open
}

// sorted returns the keys of a map in order.
func sorted[K ~int | ~int32 | ~int64 | ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
