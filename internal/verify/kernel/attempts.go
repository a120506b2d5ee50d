package kernel

import (
	"maps"
	"slices"
	"sync"
)

// This file spares the search from following each single attempt of a thread that counts its attempts.
//
// A thread that polls a location and counts its attempts, or pauses longer after each, reaches a new state with each of
// them. No iteration ends in the state where it began, and there are as many executions as ways to read the location
// that often. The barriers, latches and semaphores of libcu++ wait in this way.
//
// An attempt is a read after which a thread that always reads the same value makes only such reads, and finally returns
// to a state. The thread waits there, as it does in a loop that does not count: the value that it reads next it might
// have read at once. This holds under two conditions, which are checked for the values read. Later attempts must lead
// to attempts, or to what the first attempt leads to with the same value. And a thread that always reads the same value
// must reach what the first attempt leads to. If a condition fails, for example because the count is used, the program
// refuses, and another program then follows each attempt.

// maxAttempts is the greatest number of states to which attempts may lead.
const maxAttempts = 1024

// attempts are the values that a thread has read in a state, and which of them make it wait.
type attempts struct {
	mu    sync.Mutex
	waits map[int64]bool
}

// The knowledge about a hop.
const (
	attemptUnknown = iota
	attemptWaits
	attemptGoesOn
)

// attempt reports in waits whether a thread which reads value in state from, with hop h, has made an attempt and waits.
// alike reports whether it may wait then; if not, the program has refused.
func (p *Program) attempt(from *state, h *hop) (waits, alike bool) {
	if p.each || p.follow || !from.q.Repeats || !from.reads() || from.parts > 1 {
		return false, true
	}
	if known := h.attempt.Load(); known != attemptUnknown {
		return known == attemptWaits, true
	}
	a := &from.attempts
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits == nil {
		a.waits = map[int64]bool{}
	}
	known := int32(attemptGoesOn)
	if a.waits[h.value] = p.attempted(from, from, h.value); a.waits[h.value] {
		known = attemptWaits
	}
	if !p.alike(from) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.come(&state{refusal: &Refusal{Reason: "the number of attempts matters", Attempts: true, Places: []uint32{from.q.Place}}})
		return false, false
	}
	h.attempt.Store(known)
	return known == attemptWaits, true
}

// attempted reports whether a thread in state s that always reads value makes only attempts, the first of which is in
// state from.
func (p *Program) attempted(from, s *state, value int64) bool {
	for seen := map[int32]bool{}; len(seen) < maxAttempts && s.reads() && p.polls(from, s) && !p.lasting(&s.op, value); s = p.after(s, value) {
		if seen[s.plain] {
			return true
		}
		seen[s.plain] = true
	}
	return false
}

// alike reports whether the attempts from a state on lead to attempts, or to what the first one leads to, for the
// values that have been read there.
func (p *Program) alike(from *state) bool {
	reached, todo := map[int32]bool{}, []*state{from}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, value := range slices.Sorted(maps.Keys(from.attempts.waits)) {
			waits := from.attempts.waits[value]
			to := p.after(s, value)
			switch {
			case !waits && to.plain == p.after(from, value).plain && p.asWell(from, s, value):
			case p.lasting(&s.op, value) || !waits && p.attempted(from, to, value):
				return false
			case reached[to.plain]:
			case !to.reads() || !p.polls(from, to) || len(reached) == maxAttempts:
				return false
			default:
				reached[to.plain] = true
				todo = append(todo, to)
			}
		}
	}
	return true
}

// after returns the state of the program that follows a state if value is read there.
func (p *Program) after(s *state, value int64) *state {
	to := p.states.at(p.hop(s, value).state)
	for to.op.Inserted {
		to = p.states.at(p.hop(to, 0).state)
	}
	return to
}
