package isa

import "fencepost.dev/fencepost/internal/event"

// Synchronises says that the code of the function, or of one that it may call, has an atomic operation, a fence, or a load
// or store that acquires or releases: something besides barriers that could order threads.
func (f *Func) Synchronises() bool {
	seen := map[*Func]bool{f: true}
	for todo := []*Func{f}; len(todo) > 0; {
		g := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for i := range g.Insts {
			if c := g.Insts[i].Class; c == Atomic || c == Fence || g.Insts[i].Order >= event.Acquire {
				return true
			}
		}
		for _, callee := range g.Calls {
			if !seen[callee] {
				seen[callee] = true
				todo = append(todo, callee)
			}
		}
	}
	return false
}
