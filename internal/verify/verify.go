// Package verify explores every execution of a small concurrent program under scoped RC11 and reports its errors:
// failed assertions, data races, heterogeneous races, barrier divergence, deadlocks (seed 004, section 2.1).
package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
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
	First    bool // stop at the first error, or at the first execution that the condition forbids
	Ordered  bool // explore each order of the arrivals at a barrier: see explore.Options
	Symmetry bool // explore executions up to renaming of symmetric threads; only for scoped RC11, without Ordered
	// ReadsFrom requests the search by reads-from classes. It is for scoped RC11 without Ordered, Symmetry and
	// Schedules. If two threads have sc events whose scopes include each other, every execution is explored
	// nevertheless.
	ReadsFrom bool
	Unroll    int // the bound of loops; for the text of the report
	Jobs      int // number of parts of the search that are explored at a time; 0 means 1. The result does not depend on it
	Progress  func(text string)
	// Schedules requests the Schedule of each finding.
	Schedules bool
	// Drawings requests the Drawing of each finding.
	Drawings bool
	// Checkpoint, if not nil, is where the search begins and where it is saved. It is for scoped RC11.
	Checkpoint *Checkpoint
	graphs     int // number of graphs that a part of the search visits; 0 for the default
}

// The memory models.
const (
	SRC11 = "src11" // scoped RC11
	PTX   = "ptx"
)

// The equivalences of executions.
const (
	EachExecution = "execution"
	ReadsFrom     = "rf" // executions are equal if their reads read from the same writes
)

// Outcome is a final state, as far as the condition mentions it, and the number of complete executions that reach it.
type Outcome struct {
	State     string
	Count     int
	Satisfies bool // whether it satisfies the formula of the condition
}

// Result is the result of the search.
type Result struct {
	Name string // of the test or the kernel
	explore.Result
	Condition *litmus.Condition // nil if there is none
	Refusal   string            // why not everything can be explored; "" if it can
	Refused   []Side            // the places that Refusal is about
	Notes     []string
	Model     string
	// Equivalence is EachExecution or ReadsFrom if the search by reads-from classes was requested, and "" otherwise.
	// With ReadsFrom, counts are numbers of classes. The counts of final states then add up to more if a class leaves
	// several final values.
	Equivalence string
	Outcomes    []Outcome // sorted by state
	Filtered    int       // final states of complete executions that the filter leaves out
	Holds       bool      // the condition holds, or there is none
	Findings    []Finding
	// Counterexample is the first execution that the condition forbids, nil if there is none.
	Counterexample *Finding
}

// Verdicts.
const (
	OK      = "ok"
	Error   = "error"
	Bounded = "bounded" // no error, but not everything was explored
)

// errors counts the findings that are not warnings.
func (r *Result) errors() int {
	n := 0
	for i := range r.Findings {
		if !r.Findings[i].Warning {
			n++
		}
	}
	return n
}

// judged reports whether it is known if the condition holds: all executions have been explored, or one of them decides
// it.
func (r *Result) judged() bool {
	decided := r.Counterexample != nil || r.Condition != nil && r.Condition.Quantifier == litmus.Exists && r.Holds
	return decided || !r.Stopped && r.Cut == 0
}

// Verdict is the outcome in one word.
func (r *Result) Verdict() string {
	switch {
	case r.errors() > 0 || !r.Holds && r.judged():
		return Error
	case r.Cut > 0 || r.Stopped || r.Refusal != "" || r.vacuous():
		return Bounded
	}
	return OK
}

// vacuous reports whether no execution was explored to its end, for example because no assume holds.
func (r *Result) vacuous() bool { return r.Executions == 0 && r.Stuck == 0 }

// Repaired reports, for the result of a changed source, whether no error is left. A condition that asks whether a state
// exists is no error.
func (r *Result) Repaired() bool {
	return r.Verdict() != Error || r.errors() == 0 && r.Condition != nil && r.Condition.Quantifier == litmus.Exists
}

// Litmus explores a litmus test.
func Litmus(ctx context.Context, t *litmus.Test, o Options) *Result {
	v := newVerifier(litmusTest{t}, t.Name, o)
	v.test, v.observed, v.result.Condition = t, t.Observed(), t.Condition
	if t.Condition != nil || t.Filter != nil {
		v.complete = (*verifier).finalValues
		v.locations = locations(v.observed)
	}
	v.search(ctx)
	return v.finish()
}

// search explores under the model that the options name.
func (v *verifier) search(ctx context.Context) {
	if v.options.Symmetry {
		v.symmetric = v.subject.Symmetric()
		note := "executions are counted up to the names of symmetric threads"
		if !slices.ContainsFunc(v.symmetric, func(before int) bool { return before >= 0 }) {
			note = "no two threads are symmetric"
		}
		v.result.Notes = append(v.result.Notes, note)
	}
	if v.options.Model == PTX {
		v.ptx(ctx)
	} else {
		v.explore(ctx)
	}
}

// exploration returns the options of a search, or of a part of it, that reports to v.
func (v *verifier) exploration() explore.Options {
	x := explore.Options{Incl: v.options.Incl, Ordered: v.options.Ordered, Races: true, Exits: v.test == nil, Found: v.found}
	if c := v.condition(); v.options.First && c != nil && c.Quantifier != litmus.Exists {
		x.Oldest, x.Enough = true, func() bool { return v.counterexample != nil }
	}
	x.Symmetric = v.symmetric
	if v.result.Equivalence == ReadsFrom {
		x.ReadsFrom, x.Observed = true, v.locations
	}
	if v.along != nil {
		v.along.set(&x)
	}
	if v.complete != nil {
		x.Leaf = func(x explore.Execution, end explore.Ending) {
			if end == explore.Complete {
				v.complete(v, x)
			}
		}
	}
	return x
}

// ptx searches under the model PTX: first along program order, and if that does not suffice, with reads from later
// writes. Errors found by a search before it is restarted remain errors; they count if the last search does not end.
func (v *verifier) ptx(ctx context.Context) {
	before := map[key]*Finding{}
	again := func() {
		for k, f := range v.findings {
			if before[k] == nil {
				before[k] = f
			}
		}
		v.restart()
		v.result.Result, v.result.Refusal = explore.Result{}, ""
		v.begun++
	}
	if v.along = newAlong(v.subject); v.along != nil {
		v.exploreParts(ctx, 0, func() explore.Search { return explore.NewSearch(v.subject) })
		if v.along.enough(v.result.Result) {
			return
		}
		again()
		v.along = nil
	}
	err := candidates.Rounds(v.subject, model.PTX{}, func(first bool, search func() explore.Search) explore.Result {
		if !first {
			again()
		}
		v.exploreParts(ctx, candidates.PartGraphs, search)
		return v.result.Result
	})
	if err != nil {
		v.result.Refusal = err.Error()
	}
	if err != nil || ctx.Err() != nil {
		for k, f := range before {
			if v.findings[k] == nil {
				v.findings[k] = f
			}
		}
	}
}

// restart discards everything found so far.
func (v *verifier) restart() {
	clear(v.findings)
	clear(v.outcomes)
	v.counterexample = nil
	v.result.Filtered = 0
}

// along is a search under the model PTX along program order.
type along struct {
	p        explore.Program
	evidence *candidates.Evidence
}

// newAlong returns nil if no such search can suffice.
func newAlong(p explore.Program) *along {
	if !explore.OneProxy(p) {
		return nil
	}
	return &along{p, candidates.NewEvidence()}
}

// set adds the settings of the search to o, the options of the search or of a part of it.
func (a *along) set(o *explore.Options) {
	o.Rules = explore.PTX
	a.evidence.Set(o)
}

// enough reports whether r, the result of the search, is final: the search has visited all executions, or was stopped.
func (a *along) enough(r explore.Result) bool {
	return !r.Beyond && (r.Stopped || !a.evidence.Needed(a.p))
}

func newVerifier(s subject, name string, o Options) *verifier {
	v := &verifier{subject: s, options: o, result: &Result{Name: name, Model: SRC11}, findings: map[key]*Finding{},
		outcomes: map[string]*Outcome{}}
	if o.Model == PTX {
		v.result.Model = PTX
	} else if o.Incl == model.Paper {
		v.result.Model += ", incl as in the paper"
	}
	if o.ReadsFrom {
		v.result.Equivalence = ReadsFrom
	}
	return v
}

// locations returns the locations whose final values the given formulas use: see explore.Options.
func locations(values []*litmus.Formula) func(n int) []int32 {
	var all []int32
	for _, f := range values {
		if loc, ok := f.Location(); ok {
			all = append(all, loc)
		}
	}
	slices.Sort(all)
	return func(n int) []int32 {
		k, _ := slices.BinarySearch(all, int32(n))
		return all[:k]
	}
}

// explore searches under scoped RC11.
func (v *verifier) explore(ctx context.Context) {
	c := v.options.Checkpoint
	if v.result.Equivalence == ReadsFrom && c != nil && c.state != nil && c.state.EachExecution {
		v.result.Equivalence = EachExecution
	}
	search := func() explore.Search { return explore.NewSearch(v.subject) }
	v.exploreParts(ctx, 0, search)
	if v.result.SC {
		// Discard what was found: the new search finds it again.
		v.restart()
		v.result.Result, v.restored = explore.Result{}, nil
		v.result.Equivalence = EachExecution
		if c != nil {
			c.state = nil
		}
		v.exploreParts(ctx, 0, search)
	}
	if v.result.Equivalence == EachExecution {
		v.result.Notes = append(v.result.Notes, "two threads have sc accesses or sc fences whose scopes include each other, for which reads-from classes are intractable: each execution was explored")
	}
}

// exploreParts searches in parts of so many graphs, 0 for the default, which are combined in the order of the search.
func (v *verifier) exploreParts(ctx context.Context, graphs int, search func() explore.Search) {
	of := map[*explore.Options]*verifier{}
	saved := false
	d := explore.Division{Search: search, Jobs: v.options.Jobs, Graphs: cmp.Or(v.options.graphs, graphs),
		Begin: func() *explore.Options {
			part := *v
			part.result, part.findings, part.outcomes, part.state = &Result{Equivalence: v.result.Equivalence}, map[key]*Finding{}, map[string]*Outcome{}, nil
			part.claim, part.counterexample = v.result.Condition, nil
			x := part.exploration()
			of[&x] = &part
			return &x
		},
		Done: func(p *explore.Part, next []int32) bool {
			if p.Result.SC || p.Result.Beyond {
				v.result.SC, v.result.Beyond = p.Result.SC, p.Result.Beyond
				if part := of[p.Options]; part != nil && p.Result.Beyond {
					v.add(part)
				}
				return false
			}
			if c := v.options.Checkpoint; c != nil && !saved && p.Result.Stopped {
				saved = true // without this part, which will be explored again
				c.note(v, p.Path, true)
			}
			defer func() {
				if c := v.options.Checkpoint; c != nil && !saved && next != nil {
					c.note(v, next, false)
				}
			}()
			if part := of[p.Options]; part != nil {
				delete(of, p.Options)
				v.add(part)
			}
			v.result.Result.Add(p.Result)
			if p.Result.Stopped && ctx.Err() == nil {
				return false // the program refuses, or the first error is enough
			}
			return !v.options.First || v.errors() == 0 && v.counterexample == nil
		}}
	if v.options.Progress != nil {
		d.Progress = func(executions int, done float64) {
			text := fmt.Sprintf("%d executions", executions)
			if done > 0.001 {
				text += fmt.Sprintf(" of some %.2g", float64(executions)/done)
			}
			if v.begun > 0 {
				text += fmt.Sprintf(", search %d", v.begun+1)
			}
			v.options.Progress(text)
		}
	}
	if c := v.options.Checkpoint; c != nil {
		d.From = c.restore(v)
	}
	if err := d.Explore(ctx); err != nil {
		v.result.Refusal = err.Error()
	}
}

// add adds the findings of the next part of the search. The counts of the part are added afterwards.
func (v *verifier) add(part *verifier) {
	for k, f := range part.findings {
		if v.findings[k] == nil && v.restored != nil {
			if at, ok := v.restored[f.identity(k.kind)]; ok {
				k = at
			}
		}
		if first := v.findings[k]; first != nil {
			first.Count += f.Count
			if first.Schedule == nil {
				first.Schedule, first.scheduled = f.Schedule, first.scheduled || f.scheduled
			}
		} else {
			f.Executions += v.result.Executions
			v.findings[k] = f
		}
	}
	if f := part.counterexample; f != nil && v.counterexample == nil {
		f.Executions += v.result.Executions
		v.counterexample = f
	}
	for state, o := range part.outcomes {
		if first := v.outcomes[state]; first != nil {
			first.Count += o.Count
		} else {
			v.outcomes[state] = o
		}
	}
	v.result.Filtered += part.result.Filtered
}

// errors counts the findings that are not warnings.
func (v *verifier) errors() int {
	n := 0
	for _, f := range v.findings {
		if !f.Warning {
			n++
		}
	}
	return n
}

// verifier collects the findings of a search.
type verifier struct {
	subject subject
	test    *litmus.Test // nil for a kernel
	along   *along       // of a search under the model PTX along program order
	options Options
	result  *Result
	// symmetric are the classes of symmetric threads: see explore.Options. It is nil if symmetry was not requested.
	symmetric []int
	findings  map[key]*Finding
	restored  map[string]key // the findings of a checkpoint by identity
	begun     int            // how often the search has begun again
	outcomes  map[string]*Outcome
	observed  []*litmus.Formula
	claim     *litmus.Condition // the condition, in a verifier of a part of a search
	// counterexample is the first execution that the condition forbids, nil if there is none.
	counterexample *Finding
	state          []byte
	// locations, if not nil, returns the locations that final states mention: see explore.Options.
	locations func(n int) []int32
	// complete, if not nil, is called for each complete execution.
	complete func(v *verifier, x explore.Execution)
}

// key tells errors apart: those of one kind between the same steps are one.
type key struct {
	kind explore.ErrorKind
	a, b int32 // places; of a finding of a checkpoint restored, and its number there
}

const restored = -2

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

// finalValues counts the final state of an execution of a test.
func (v *verifier) finalValues(x explore.Execution) {
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
	v.outcome(x, func() bool { return v.test.Condition == nil || v.test.Condition.Formula.Satisfied(x) })
}

// outcome counts the final state of x, which v.state describes.
func (v *verifier) outcome(x explore.Execution, satisfies func() bool) {
	o := v.outcomes[string(v.state)]
	if o == nil {
		o = &Outcome{State: string(v.state), Satisfies: satisfies()}
		v.outcomes[o.State] = o
		if v.counterexample == nil && v.forbids(o) {
			v.counterexample = v.example(x, o.State)
		}
	}
	o.Count++
}

// condition is that of the search, or of the search that this is a part of; nil if there is none.
func (v *verifier) condition() *litmus.Condition {
	if v.claim != nil {
		return v.claim
	}
	return v.result.Condition
}

// forbids reports whether the condition does not hold because a final state is reached.
func (v *verifier) forbids(o *Outcome) bool {
	c := v.condition()
	return c != nil && c.Quantifier != litmus.Exists && o.Satisfies != (c.Quantifier == litmus.ForAll)
}

// example describes an execution that ends in a state which the condition forbids.
func (v *verifier) example(x explore.Execution, state string) *Finding {
	e := explore.Error{Kind: explore.Forbidden, A: -1, B: -1, Thread: -1, Other: -1}
	f := &Finding{Title: "an execution that ends with " + state, Kind: "condition", Executions: x.Executions()}
	events := x.Events()
	f.Graph = v.draw(x, events, e)
	if v.options.Drawings {
		f.Drawing = v.drawing(x, events, e, f.Title)
	}
	if v.options.Schedules {
		f.Schedule, f.scheduled = v.schedule(x, e), true
	}
	return f
}

func (v *verifier) finish() *Result {
	r := v.result
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
	r.Counterexample = v.counterexample
	r.Holds = r.Condition == nil || r.Condition.Holds(satisfying, others)
	unpolled := map[string]bool{}
	for k, f := range v.findings {
		if k.kind == explore.VolatileRace {
			unpolled[f.identity(k.kind)] = true
		}
	}
	for k, f := range v.findings {
		if k.kind == explore.PolledRace && unpolled[f.identity(explore.VolatileRace)] {
			continue // it is an error: in another execution nobody polls
		}
		r.Findings = append(r.Findings, *f)
	}
	slices.SortFunc(r.Findings, func(a, b Finding) int { return compareFindings(&a, &b) })
	return r
}

// compareFindings orders findings by place.
func compareFindings(a, b *Finding) int {
	for i := range min(len(a.Sides), len(b.Sides)) {
		x, y := &a.Sides[i], &b.Sides[i]
		if c := cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Col, y.Col), cmp.Compare(a.Title, b.Title)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(a.Sides), len(b.Sides)), cmp.Compare(a.Graph, b.Graph))
}

// Report is the result in the form that all commands report in.
func (r *Result) Report() *report.Report {
	out := &report.Report{Verdict: report.Clean, Verify: &report.Verify{Verdict: r.Verdict(), Model: r.Model, Executions: r.Executions,
		Blocked: r.Blocked + r.Stuck, Events: r.Events, Equivalence: r.Equivalence, Outcomes: []report.Outcome{}}, Notes: r.Notes}
	if f := r.Counterexample; f != nil {
		out.Verify.Counterexample = &report.Counterexample{Graph: f.Graph, Schedule: f.ScheduleFile, Drawing: f.DrawingFile}
	}
	for _, o := range r.Outcomes {
		out.Verify.Outcomes = append(out.Verify.Outcomes, report.Outcome{State: o.State, Count: o.Count})
	}
	if r.Condition != nil && r.judged() {
		holds := r.Holds
		out.Condition = &holds
	}
	var fs []report.Finding
	for i := range r.Findings {
		fs = append(fs, r.Findings[i].report())
	}
	tellApart(fs)
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
		case r.vacuous():
			reason = "no execution is complete"
		}
		out.Skipped = append(out.Skipped, report.Skipped{What: r.Name, Reason: reason})
	}
	return out
}

// tellApart names the variable of races of several variables between the same places: a compiler may give all statements of a line one place.
func tellApart(findings []report.Finding) {
	variables := map[string]map[string][]*report.Finding{} // the races, by places and variables
	for i := range findings {
		f := &findings[i]
		if f.Class != detect.Race || len(f.Accesses) != 2 {
			continue
		}
		var sides []string
		for i := range f.Accesses {
			p := f.Accesses[i].Place()
			sides = append(sides, fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column))
		}
		slices.Sort(sides)
		at := strings.Join(sides, " ")
		if variables[at] == nil {
			variables[at] = map[string][]*report.Finding{}
		}
		name, _, _ := strings.Cut(f.Accesses[0].Object.Name, "[")
		variables[at][name] = append(variables[at][name], f)
	}
	for _, of := range variables {
		for name, races := range of {
			for _, f := range races {
				if len(of) > 1 {
					f.Apart = name
				}
			}
		}
	}
}
