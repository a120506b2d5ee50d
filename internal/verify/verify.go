// Package verify explores every execution of a small concurrent program under scoped RC11 and says what is wrong with it: failed
// assertions, data races, heterogeneous races, barrier divergence, deadlocks (seed 004, section 2.1).
package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/verify/candidates"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// Options select what is explored and when the search ends.
type Options struct {
	Model    string // SRC11 or PTX
	Incl     model.Inclusion
	First    bool // stop at the first error
	Unroll   int  // the bound of loops; for the text of the report
	Progress func(text string)
	// Schedules asks for the Schedule of each finding.
	Schedules bool
	// Drawings asks for the Drawing of each finding.
	Drawings bool
}

// The memory models.
const (
	SRC11 = "src11" // scoped RC11
	PTX   = "ptx"
)

// Outcome is a final state, as far as the condition mentions it, and how many complete executions reach it.
type Outcome struct {
	State     string
	Count     int
	Satisfies bool // the formula of the condition
}

// Result is what the search found.
type Result struct {
	Name string // of the test or the kernel
	explore.Result
	Condition *litmus.Condition // nil if there is none
	Refusal   string            // why not all can be explored; "" if it can
	Refused   []Side            // the places that Refusal is about
	Notes     []string
	Model     string
	Outcomes  []Outcome // sorted by state
	Filtered  int       // complete executions that the filter leaves out
	Holds     bool      // the condition holds, or there is none
	Findings  []Finding
	Elapsed   time.Duration
}

// Verdicts.
const (
	OK      = "ok"
	Error   = "error"
	Bounded = "bounded" // no error, but not all was explored
)

// errors counts the findings that are no warnings.
func (r *Result) errors() int {
	n := 0
	for i := range r.Findings {
		if !r.Findings[i].Warning {
			n++
		}
	}
	return n
}

// Verdict is the outcome in one word.
func (r *Result) Verdict() string {
	switch {
	case r.errors() > 0 || !r.Holds && !r.Stopped:
		return Error
	case r.Cut > 0 || r.Stopped || r.Refusal != "":
		return Bounded
	}
	return OK
}

// Litmus explores a litmus test.
func Litmus(ctx context.Context, t *litmus.Test, o Options) *Result {
	v := newVerifier(litmusTest{t}, t.Name, o)
	v.test, v.observed, v.result.Condition = t, t.Observed(), t.Condition
	var leaf func(x explore.Execution, end explore.Ending)
	if t.Condition != nil || t.Filter != nil {
		leaf = v.leaf
	}
	if o.Model == PTX {
		v.candidates(ctx, leaf)
	} else {
		v.explore(ctx, leaf)
	}
	return v.finish()
}

// candidates searches under the model PTX.
func (v *verifier) candidates(ctx context.Context, leaf func(x explore.Execution, end explore.Ending)) {
	x := explore.Options{Races: true, Exits: v.test == nil, Found: v.found, Leaf: leaf, Restart: func() {
		clear(v.findings)
		clear(v.outcomes)
		v.result.Filtered = 0
	}}
	if v.options.Progress != nil {
		x.Progress = func(executions int, _ float64) { v.options.Progress(fmt.Sprintf("%d executions", executions)) }
	}
	var err error
	if v.result.Result, err = candidates.Enumerate(ctx, v.subject, model.PTX{}, x); err != nil {
		v.result.Refusal = err.Error()
	}
}

func newVerifier(s subject, name string, o Options) *verifier {
	v := &verifier{subject: s, options: o, begin: time.Now(), result: &Result{Name: name, Model: SRC11}, findings: map[key]*Finding{},
		outcomes: map[string]*Outcome{}}
	if o.Model == PTX {
		v.result.Model = PTX
	} else if o.Incl == model.Paper {
		v.result.Model += ", incl as in the paper"
	}
	return v
}

// explore searches; leaf, if not nil, is called for each execution.
func (v *verifier) explore(ctx context.Context, leaf func(x explore.Execution, end explore.Ending)) {
	o := &v.options
	x := explore.Options{Incl: o.Incl, Races: true, Exits: v.test == nil, Found: v.found, Leaf: leaf}
	if o.Progress != nil {
		x.Progress = func(executions int, done float64) {
			text := fmt.Sprintf("%d executions", executions)
			if done > 0.001 {
				text += fmt.Sprintf(" of some %.2g", float64(executions)/done)
			}
			o.Progress(text)
		}
	}
	v.result.Result = explore.Explore(ctx, v.subject, x)
}

// verifier collects what a search finds.
type verifier struct {
	subject  subject
	test     *litmus.Test // nil for a kernel
	options  Options
	result   *Result
	findings map[key]*Finding
	outcomes map[string]*Outcome
	observed []*litmus.Formula
	begin    time.Time
	state    []byte
}

// key tells errors apart: those of one kind between the same steps are one.
type key struct {
	kind explore.ErrorKind
	a, b int32
}

func (v *verifier) found(e explore.Error, x explore.Execution) bool {
	k := key{e.Kind, e.Pos, e.OtherPos}
	if e.A >= 0 && e.B >= 0 {
		a, b := x.Step(e.A).Pos, x.Step(e.B).Pos
		k.a, k.b = min(a, b), max(a, b)
	}
	f := v.findings[k]
	if f == nil {
		f = v.describe(e, x)
		v.findings[k] = f
	}
	f.Count++
	if v.options.Schedules && f.Schedule == nil && f.Count <= maxScheduled {
		f.Schedule, f.scheduled = v.schedule(x, e), true
	}
	return !v.options.First || f.Warning
}

func (v *verifier) leaf(x explore.Execution, end explore.Ending) {
	if end != explore.Complete {
		return
	}
	if !v.test.Filter.Satisfied(x) {
		v.result.Filtered++
		return
	}
	v.state = v.state[:0]
	for i, f := range v.observed {
		if i > 0 {
			v.state = append(v.state, ' ')
		}
		v.state = fmt.Appendf(v.state, "%s=%d", f.Name(), f.Value(x))
	}
	v.outcome(func() bool { return v.test.Condition == nil || v.test.Condition.Formula.Satisfied(x) })
}

// outcome counts the final state that v.state describes.
func (v *verifier) outcome(satisfies func() bool) {
	o := v.outcomes[string(v.state)]
	if o == nil {
		o = &Outcome{State: string(v.state), Satisfies: satisfies()}
		v.outcomes[o.State] = o
	}
	o.Count++
}

func (v *verifier) finish() *Result {
	r := v.result
	r.Elapsed = time.Since(v.begin)
	satisfying, others := 0, 0
	for _, state := range slices.Sorted(maps.Keys(v.outcomes)) {
		o := v.outcomes[state]
		r.Outcomes = append(r.Outcomes, *o)
		if o.Satisfies {
			satisfying += o.Count
		} else {
			others += o.Count
		}
	}
	r.Holds = r.Condition == nil || r.Condition.Holds(satisfying, others)
	for _, f := range v.findings {
		r.Findings = append(r.Findings, *f)
	}
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Sides[0].File, b.Sides[0].File), cmp.Compare(a.Sides[0].Line, b.Sides[0].Line),
			cmp.Compare(a.Sides[0].Col, b.Sides[0].Col), cmp.Compare(a.Title, b.Title))
	})
	return r
}

// Report is the result in the form that all commands report in.
func (r *Result) Report() *report.Report {
	out := &report.Report{Verdict: report.Clean, Verify: &report.Verify{Verdict: r.Verdict(), Model: r.Model, Executions: r.Executions,
		Blocked: r.Blocked + r.Stuck, Events: r.Events, Outcomes: []report.Outcome{}}, Notes: r.Notes}
	for _, o := range r.Outcomes {
		out.Verify.Outcomes = append(out.Verify.Outcomes, report.Outcome{State: o.State, Count: o.Count})
	}
	if r.Condition != nil && !r.Stopped {
		holds := r.Holds
		out.Condition = &holds
	}
	var fs []report.Finding
	for i := range r.Findings {
		fs = append(fs, r.Findings[i].report())
	}
	out.Findings = report.Merge(fs)
	switch r.Verdict() {
	case Error:
		out.Verdict = report.Found
	case Bounded:
		out.Verdict = report.NotChecked
		reason := "the search was stopped"
		switch {
		case r.Refusal != "":
			reason = r.Refusal
		case r.Cut > 0:
			reason = fmt.Sprintf("a loop reached its bound in %d executions", r.Cut)
		}
		out.Skipped = append(out.Skipped, report.Skipped{What: r.Name, Reason: reason})
	}
	return out
}
