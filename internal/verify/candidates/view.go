package candidates

import (
	"slices"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// view is the form in which the enumeration shows an execution. Its events are numbered without the initial writes.
type view struct {
	c          *candidate
	final      map[int32]int64
	executions int
}

// Events implements explore.Execution.
func (v *view) Events() (out []explore.Event) {
	for i := range v.c.events {
		e := &v.c.events[i]
		out = append(out, e.Event)
		if e.Kind == model.R {
			out[i].RF = e.rf
		}
	}
	return out
}

// Coherence implements explore.Execution.
func (v *view) Coherence(loc int32) (out []int32) {
	if l := slices.Index(v.c.locs, loc); l >= 0 {
		for _, w := range v.c.order[l] {
			out = append(out, int32(w))
		}
	}
	return out
}

// Final implements explore.Execution.
func (v *view) Final(loc int32) int64 {
	if f, ok := v.final[loc]; ok {
		return f
	}
	return v.c.p.Initial(loc)
}

// State implements explore.Execution.
func (v *view) State(t int) []int64 { return v.c.threads[t].state }

// Before implements explore.Execution: base causality order.
func (v *view) Before(a, b int) bool {
	return v.c.r.BaseCausality.Has(a+v.c.initials, b+v.c.initials)
}

// Prefix implements explore.Execution. All events are shown.
func (v *view) Prefix(int, int) bool { return true }

// Includes implements explore.Execution.
func (v *view) Includes(a, b int) bool {
	e, f := &v.c.events[a], &v.c.events[b]
	need := model.Need(e.Place, f.Place)
	return e.Strong() && f.Strong() && e.Scope >= need && f.Scope >= need
}

// Arrivals implements explore.Execution.
func (v *view) Arrivals(a int) (out []int32) {
	v.c.arrivals(a, func(i int) { out = append(out, int32(i)) })
	return out
}

// Step implements explore.Execution.
func (v *view) Step(e int) *explore.Op { return &v.c.events[e].Op }

// Executions implements explore.Execution.
func (v *view) Executions() int { return v.executions }

// Next implements explore.Execution.
func (v *view) Next(t int) *explore.Op { return &v.c.threads[t].op }

// Iteration implements explore.Execution.
func (v *view) Iteration(t int) []int { return v.c.iteration(t) }

// Synchronizes reports whether event a synchronizes with event b.
func (v *view) Synchronizes(a, b int) bool {
	return v.c.r.Synchronizes.Has(a+v.c.initials, b+v.c.initials)
}
