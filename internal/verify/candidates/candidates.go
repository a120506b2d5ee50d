// Package candidates enumerates the executions of a small concurrent program under the memory model of PTX. That model lets a load and
// a later store of its thread be exchanged unless the store depends on the load, so a read may take its value from a write that
// the search adds later, and executions cannot be grown along program order as internal/verify/explore does.
//
// The search (search.go) runs one thread after the other. A read takes its value from a write that is there, or is promised a value
// that a later write must supply. The values that may be promised are found by rounds (this file): a round searches with the values
// of the one before and collects the values that are written. Since no value depends on itself (No-Thin-Air), each write comes up in
// some round; the last is the one that counts. Weak reads are promised values only where there is a data race: a weak read and a
// write that might come later and keep the promise race in the execution in which the write comes first, whatever is read then. What no thread can supply any more ends a branch (reach.go), and so does what the axioms forbid of the events so far
// (check.go): each of them is kept when events are added. At the end the orders of the sc fences and of the writes are chosen, one
// location independently of the others (leaf.go).
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
	// maxPromises is how many promises may be open.
	maxPromises = 64
)

// ErrTooLarge says that a program has too many values or events.
var ErrTooLarge = errors.New("the program is too large for the model ptx: an execution has more than 1,024 events or 64 reads from later writes, or a location 256 values. " +
	"Use fewer threads or iterations")

// ErrExchanges says that a program has warp instructions that exchange values.
var ErrExchanges = errors.New("threads exchange values within a warp (shuffles, votes and the like), and there is a data race, or a read might be from a write that comes later: " +
	"that is not explored under the model ptx; the default model explores it")

// Enumerate visits every execution of p that the model allows, once: what its reads read from, and the coherence order as far as the
// model has it. Executions in which a thread spins on a value that is not the last one, or waits for what does not hold, do not count.
func Enumerate(ctx context.Context, p explore.Program, m model.PTX, o explore.Options) (explore.Result, error) {
	values, by, mixed := map[int32][]int64{}, map[writer]bool{}, map[int32]bool{}
	weak := m.Drop != model.PTXWhole
	for {
		s := newSearch(ctx, p, m, o, values)
		s.weak, s.reach.by, s.reach.mixed = weak, by, mixed
		s.visit()
		grown := s.racy && !weak || s.grown
		weak = weak || s.racy
		for w := range s.written {
			if !by[w] {
				by[w], grown = true, true
			}
			if v := values[w.loc]; !slices.Contains(v, w.value) {
				values[w.loc] = append(v, w.value)
			}
		}
		for loc := range values {
			slices.Sort(values[loc])
			if len(values[loc]) > maxValues {
				s.err = ErrTooLarge
			}
		}
		if s.err != nil || s.result.Stopped || !grown {
			return s.result, s.err
		}
		if o.Restart != nil {
			o.Restart()
		}
	}
}

// location is a value of a location.
type location struct {
	loc   int32
	value int64
}

// writer is a thread that writes a value of a location.
type writer struct {
	location
	thread int
}

// collect notes the values of writes that depend on no promise that is open.
func (s *search) collect() {
	for i := range s.events {
		e := &s.events[i]
		if w := (writer{location{e.Loc, e.Value}, e.Thread}); e.Kind == model.W && !s.written[w] && !s.openBelow(s.dependencies(i)) {
			s.written[w] = true
		}
	}
}

// dependencies gives the reads that event i depends on, as events.
func (s *search) dependencies(i int) []int {
	e := &s.events[i]
	return s.readsOf(e.Thread, e.deps)
}

// readsOf gives reads of a thread, which are bits.
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

// below calls f for reads and for all reads that they depend on; f says whether to go on.
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

// openBelow says that one of reads, or one that they depend on, has an open promise.
func (s *search) openBelow(reads []int) (open bool) {
	s.below(reads, func(r int) bool {
		open = open || s.events[r].rf == promised
		return !open
	})
	return open
}

// sorted gives the keys of a map in order.
func sorted[K ~int | ~int32 | ~int64 | ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
