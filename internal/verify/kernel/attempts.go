package kernel

import (
	"maps"
	"slices"
	"sync"
)

// This file keeps the search from following one by one the attempts of a thread that counts them.
//
// A thread that polls a location and counts its attempts, or pauses longer after each, comes to another state with each of them: no iteration ends
// where it began, and there are as many executions as ways to read the location so often. The barriers, latches and semaphores of libcu++ wait so.
// An attempt is a read after which a thread that always reads the same does nothing but read so, and at last comes back to a state. The thread
// waits there, as it does in a loop that does not count: what it reads next it might have read at once. That holds if later attempts lead to
// attempts or to what the first one leads to that reads the same, and if a thread that always reads the same comes to what the first one leads to.
// It is checked for the values that are read. If it does not hold, as where the count is used, the program refuses, and another one follows each
// attempt.

// maxAttempts is how many states attempts lead to at most.
const maxAttempts = 1024

// attempts are the values that a thread has read at a state, and which of them make it wait.
type attempts struct {
	mu    sync.Mutex
	waits map[int64]bool
}

// What is known of a hop.
const (
	attemptUnknown = iota
	attemptWaits
	attemptGoesOn
)

// attempt says that a thread which reads value at state from, with hop h, has made an attempt and waits; alike, that it may wait then. If it may
// not, the program has refused.
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

// attempted says that a thread at state s that always reads value makes attempts and nothing else, the first of which is at state from.
func (p *Program) attempted(from, s *state, value int64) bool {
	for seen := map[int32]bool{}; len(seen) < maxAttempts && s.reads() && p.polls(from, s) && !p.lasting(&s.op, value); s = p.after(s, value) {
		if seen[s.plain] {
			return true
		}
		seen[s.plain] = true
	}
	return false
}

// alike says that the attempts from a state on lead to attempts, or to what the first one leads to, with the values that have been read there.
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

// after is the state of the program that follows a state if value is read there.
func (p *Program) after(s *state, value int64) *state {
	to := p.states.at(p.hop(s, value).state)
	for to.op.Inserted {
		to = p.states.at(p.hop(to, 0).state)
	}
	return to
}
