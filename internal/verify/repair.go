package verify

import (
	"container/heap"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/diff"
	"fencepost.dev/fencepost/internal/verify/candidates"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
	"fencepost.dev/fencepost/internal/verify/repair"
)

// Repair is a change of the source that removes all errors.
type Repair struct {
	Patch   repair.Patch
	Changes []string // in words, by place
	Tried   int      // number of programs explored
	Reason  string   // why there is no repair; "" if there is one
	Diff    string   // against the source; "" if the change cannot be written there
	// Proof is the result for the changed source; nil if that was not explored.
	Proof *Result
}

// maxTried is the greatest number of changed programs that are explored.
const maxTried = 2000

// mender searches for a repair.
type mender struct {
	*verifier
	site     func(pos int32) int32
	of       map[int32][]int32       // the positions of a site, if there may be several
	can      func(repair.Patch) bool // whether the patch can be written in the source
	violates func(x explore.Execution) bool
	queue    patches
	seen     map[string]bool
	tried    int
	// strongest is the patch that gives the atomic accesses of all executions with errors the strongest order.
	strongest repair.Patch
	leftOut   bool // a patch was not tried because it cannot be written in CUDA source
}

type candidate struct {
	patch       repair.Patch
	cost, order int
}

// patches is a heap: the smallest patch first, and among equal ones the earliest.
type patches []candidate

func (p patches) Len() int { return len(p) }
func (p patches) Less(i, j int) bool {
	return p[i].cost < p[j].cost || p[i].cost == p[j].cost && p[i].order < p[j].order
}
func (p patches) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *patches) Push(x any)   { *p = append(*p, x.(candidate)) }
func (p *patches) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

func (m *mender) push(p repair.Patch) {
	if key := p.Key(); !m.seen[key] {
		m.seen[key] = true
		if len(p) == 0 || m.can(p) {
			heap.Push(&m.queue, candidate{p, p.Cost(), len(m.seen)})
		}
	}
}

// explore searches for an error of the program with a patch, and returns changes that might exclude the error. fine
// says that there is no error.
func (m *mender) explore(ctx context.Context, p repair.Patch) (suggested []repair.Patch, fine bool) {
	m.tried++
	wrong := false
	suggest := func(x explore.Execution, e *explore.Error) {
		suggested = repair.Suggest(x, e, m.site, m.options.Model == PTX)
		for pos, c := range repair.Strongest(x, m.site, m.options.Model == PTX) {
			if !p[pos].Atomic {
				m.strongest = m.strongest.And(repair.Patch{pos: c})
			}
		}
	}
	o := explore.Options{Incl: m.options.Incl, Races: true, Exits: m.test == nil}
	o.Found = func(e explore.Error, x explore.Execution) bool {
		if e.Kind == explore.PolledRace || e.Kind == explore.Undefined {
			return true // a warning
		}
		if !wrong {
			suggest(x, &e)
		}
		wrong = true
		return false
	}
	o.Leaf = func(x explore.Execution, end explore.Ending) {
		if end == explore.Complete && m.violates != nil && !wrong && m.violates(x) {
			wrong = true
			suggest(x, nil)
		}
	}
	o.Enough = func() bool { return wrong }
	changed := &repair.Program{Program: m.subject, Patch: p, Site: m.site, Aligned: m.test == nil}
	if m.options.Model == PTX {
		if along := newAlong(changed); along != nil {
			first := o
			along.set(&first)
			if r := explore.Explore(ctx, changed, first); along.enough(r) {
				return suggested, !wrong && !r.Stopped
			}
		}
		r, err := candidates.Enumerate(ctx, changed, model.PTX{}, o, nil)
		return suggested, !wrong && !r.Stopped && err == nil
	}
	r := explore.Explore(ctx, changed, o)
	return suggested, !wrong && !r.Stopped
}

// repair searches for the smallest patch that removes all errors. It explores the smallest unexplored patch, and adds
// to it the changes that might exclude the error found. A change is part of the result only if the program has an error
// without it. An algorithm that needs many sc accesses has too many smaller patches. In that case repair orders
// everything as strongly as possible and then removes the changes that are not needed.
func (m *mender) repair(ctx context.Context) *Repair {
	m.seen, m.strongest = map[string]bool{}, repair.Patch{}
	m.push(repair.Patch{})
	for len(m.queue) > 0 && m.tried < maxTried && ctx.Err() == nil {
		c := heap.Pop(&m.queue).(candidate)
		suggested, fine := m.explore(ctx, c.patch)
		if fine && len(c.patch) == 0 {
			return &Repair{Tried: m.tried, Reason: "there is no error that a change could rule out"}
		}
		if fine {
			p := m.minimal(ctx, c.patch)
			return &Repair{Patch: p, Changes: m.words(p), Tried: m.tried}
		}
		for _, s := range suggested {
			m.push(c.patch.And(s))
		}
	}
	if p := m.strongest; ctx.Err() == nil && len(p) > 0 && m.can(p) {
		if _, fine := m.explore(ctx, p); fine {
			p = m.weakened(ctx, m.minimal(ctx, p))
			return &Repair{Patch: p, Changes: m.words(p), Tried: m.tried}
		}
	}
	if ctx.Err() != nil {
		return &Repair{Tried: m.tried, Reason: fmt.Sprintf("none was found in time; %d programs were tried", m.tried)}
	}
	reason := fmt.Sprintf("none of the programs that were tried, %d, is without error", m.tried)
	if m.leftOut {
		reason += "; changes that cannot be written in the source were left out (in another file, in a macro, in a statement that is not one line)"
	}
	return &Repair{Tried: m.tried, Reason: reason}
}

// minimal removes the changes that are not needed.
func (m *mender) minimal(ctx context.Context, p repair.Patch) repair.Patch {
	for _, pos := range p.Places() {
		if len(p) == 1 {
			break
		}
		less := p.And(nil)
		delete(less, pos)
		if m.can(less) {
			if _, fine := m.explore(ctx, less); fine {
				p = less
			}
		}
	}
	return p
}

// weakened weakens the change at each place as long as the program has no error.
func (m *mender) weakened(ctx context.Context, p repair.Patch) repair.Patch {
	for _, pos := range p.Places() {
		for _, c := range p[pos].Weaker() {
			less := p.And(nil)
			less[pos] = c
			if !m.can(less) {
				continue
			}
			if _, fine := m.explore(ctx, less); fine {
				p = less
				break
			}
		}
	}
	return p
}

// stronger names what an order adds to that of an operation, which may already be a release.
var stronger = [...]string{model.Relaxed: "atomic", model.Acquire: "an acquire", model.Release: "a release", model.AcqRel: "an acquire and a release", model.SC: "sc"}

// words describes a patch.
func (m *mender) words(p repair.Patch) []string {
	var out []string
	changes := map[string]int{} // number of changes of a line
	for pos := range p {
		changes[m.where(pos, false)]++
	}
	for _, pos := range p.Places() {
		c := p[pos]
		where := m.where(pos, false)
		if m.test != nil && changes[where] > 1 { // as when a line has an instruction of each thread
			where = m.where(pos, true)
		}
		var what []string
		switch {
		case c.Drop:
			what = append(what, "remove the barrier")
		case c.Atomic:
			what = append(what, fmt.Sprintf("make the access atomic: %s, %s scope", c.Order, c.Scope))
		default:
			if c.Order != model.NA {
				what = append(what, "make the operation "+stronger[c.Order])
			}
			if c.Scope != model.Thread {
				what = append(what, fmt.Sprintf("give the operation the scope %s", c.Scope))
			}
		}
		if c.Barrier {
			what = append(what, "insert a barrier of the block before it"+m.cuda("__syncthreads()"))
		}
		for i, f := range []repair.Fence{c.Before, c.After} {
			if f.Order != model.NA {
				what = append(what, fmt.Sprintf("insert a fence %s it: %s, %s scope%s", [...]string{"before", "after"}[i], f.Order, f.Scope, m.cuda(threadfence(f.Scope))))
			}
		}
		// The load and the store of an x++ are one statement.
		if text := fmt.Sprintf("%s: %s", where, strings.Join(what, "; ")); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// where returns the source lines of a site: "lock.cu:4", or "lock.cu:4, lock.cu:6" if a function is called from several
// lines.
func (m *mender) where(site int32, column bool) string {
	var lines []string
	for _, pos := range append([]int32{site}, m.of[site]...) {
		file, line, col := place(m.subject.frames(pos))
		at := fmt.Sprintf("%s:%d", filepath.Base(file), line)
		if column {
			at += fmt.Sprintf(":%d", col)
		}
		if !slices.Contains(lines, at) {
			lines = append(lines, at)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// threadfence is the CUDA C++ fence function of a scope.
func threadfence(s model.Scope) string {
	switch s {
	case model.CTA:
		return "__threadfence_block()"
	case model.Sys:
		return "__threadfence_system()"
	}
	return "__threadfence()"
}

// RepairLitmus repairs a litmus test with errors. src is its source.
func RepairLitmus(ctx context.Context, t *litmus.Test, src string, l litmus.Options, o Options) *Repair {
	v := newVerifier(litmusTest{t}, t.Name, o)
	v.test = t
	m := &mender{verifier: v, site: func(pos int32) int32 { return pos }}
	parse := func(p repair.Patch) (string, *litmus.Test) {
		text, err := litmus.Edit(src, p)
		if err != nil {
			return "", nil
		}
		changed, err := litmus.Parse(t.File, text, l)
		if err != nil {
			return "", nil
		}
		return text, changed
	}
	m.can = func(p repair.Patch) bool { _, changed := parse(p); return changed != nil }
	if c := t.Condition; c != nil && c.Quantifier != litmus.Exists {
		m.violates = func(x explore.Execution) bool {
			return t.Filter.Satisfied(x) && c.Formula.Satisfied(x) != (c.Quantifier == litmus.ForAll)
		}
	}
	r := m.repair(ctx)
	if r.Reason == "" {
		text, changed := parse(r.Patch)
		r.Diff, r.Proof = diff.Unified(t.File, src, text), Litmus(ctx, changed, o)
	}
	return r
}
