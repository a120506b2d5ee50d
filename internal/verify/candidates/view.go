package candidates

import (
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// view is an execution as the enumeration shows it. Its events are numbered without the initial writes.
type view struct {
	c          *candidate
	r          *model.PTXRelations
	final      map[int32]int64
	executions int
}

// Events implements explore.Execution.
func (v *view) Events() []explore.Event {
	n := v.c.initials
	out := append([]explore.Event(nil), v.c.events[n:]...)
	for i := range out {
		if out[i].Kind == model.R {
			out[i].RF = max(v.c.rf[n+i]-n, -1)
		}
	}
	return out
}

// Coherence implements explore.Execution.
func (v *view) Coherence(loc int32) (out []int32) {
	for l, of := range v.c.locs {
		if of == loc {
			for _, w := range v.c.order[l] {
				out = append(out, int32(w-v.c.initials))
			}
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
	return v.r.BaseCausality.Has(a+v.c.initials, b+v.c.initials)
}

// Prefix implements explore.Execution. All events are shown.
func (v *view) Prefix(int, int) bool { return true }

// Includes implements explore.Execution.
func (v *view) Includes(a, b int) bool {
	e, f := &v.c.events[a+v.c.initials], &v.c.events[b+v.c.initials]
	need := model.Need(e.Place, f.Place)
	return e.Strong() && f.Strong() && e.Scope >= need && f.Scope >= need
}

// Arrivals implements explore.Execution.
func (v *view) Arrivals(a int) (out []int32) {
	n := v.c.initials
	for i := n; i < len(v.c.events); i++ {
		if !v.c.x.Bar.EmptyRow(n+a) && v.c.events[i].Kind == model.Arrival && v.c.x.Bar.SameRow(i, n+a) {
			out = append(out, int32(i-n))
		}
	}
	return out
}

// Step implements explore.Execution.
func (v *view) Step(e int) *explore.Op { return &v.c.events[e+v.c.initials].Op }

// Executions implements explore.Execution.
func (v *view) Executions() int { return v.executions }

// Next implements explore.Execution.
func (v *view) Next(t int) *explore.Op { return &v.c.threads[t].last }
