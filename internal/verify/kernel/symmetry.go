package kernel

import "fencepost.dev/fencepost/internal/verify/model"

// Symmetric returns for each thread the preceding one in its class of symmetric threads, or -1: see explore.Options.
// Threads are symmetric if they do the same (engine.Threads.Likeness) and every other thread has the same distance from
// both: threads of a block, or blocks of one thread.
func (p *Program) Symmetric() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	places := p.Places()
	before := make([]int, len(places))
	last := map[string][]int{} // by likeness: the last thread of the class
	for i := range places {
		before[i] = -1
		if p.named {
			continue
		}
		like := p.threads.Likeness(i)
		for c, j := range last[like] {
			if near(places, i, j) {
				before[i], last[like][c] = j, i
				break
			}
		}
		if before[i] < 0 {
			last[like] = append(last[like], i)
		}
	}
	return before
}

// near reports whether every other thread has the same distance from thread i as from thread j.
func near(places []model.Place, i, j int) bool {
	for k := range places {
		if k != i && k != j && model.Need(places[i], places[k]) != model.Need(places[j], places[k]) {
			return false
		}
	}
	return true
}
