package instrument

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// joins returns the instructions at which the lanes of a warp reconverge after a branch, in functions of kernels whose
// lanes may diverge again after it (places.Table.DivergesAgain).
func joins(m *isa.Module) map[*isa.Func]map[int32]bool {
	at, again := map[*isa.Func]map[int32]bool{}, map[*isa.Func]bool{}
	for _, f := range m.Funcs {
		if f.Err != nil {
			continue
		}
		arms, returns := f.Arms()
		again[f] = returns || !f.Entry && slices.ContainsFunc(arms, func(a []event.Arm) bool { return len(a) > 0 }) // it may be called in a loop
		at[f] = map[int32]bool{}
		for i := range f.Insts {
			if in := &f.Insts[i]; in.Class == isa.Branch && (in.Guard >= 0 || in.Row.Op == "brx") && f.IPDom[i] >= 0 {
				at[f][f.IPDom[i]] = true
			}
		}
	}
	out := map[*isa.Func]map[int32]bool{}
	for _, f := range m.Funcs {
		reached := f.Reachable()
		if !f.Entry || !slices.ContainsFunc(reached, func(g *isa.Func) bool { return again[g] }) {
			continue
		}
		for _, g := range reached {
			out[g] = at[g]
		}
	}
	return out
}
