// Package repair defines the parts of a repair of a concurrent program: changes at places of its source. Program
// applies them to the steps of a program that is explored, so that a change can be tried without changing the text.
// Suggest derives, from an execution with an error, the changes that might exclude the error. The repairs of seed 004
// (section 4, CheckAndRepairRace) are among them: wider scopes, and relaxed atomics in place of accesses that are not
// atomic.
package repair

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// Fence is a fence to insert; none if its order is model.NA.
type Fence struct {
	Order model.Order
	Scope model.Scope
}

// Change is a change at a place.
type Change struct {
	Order         model.Order // the order that the access or fence gets in addition to its own; model.NA for none
	Scope         model.Scope // the scope that it gets if its own is narrower
	Atomic        bool        // the access, which was not atomic, becomes atomic
	Before, After Fence
	Barrier       bool // a barrier of the block is inserted before it
	Drop          bool // the barrier is removed
}

// Patch is changes by place.
type Patch map[int32]Change

// rank orders memory orders by strength.
var rank = map[model.Order]int{model.NA: 0, model.Relaxed: 0, model.Acquire: 1, model.Release: 1, model.AcqRel: 2, model.SC: 4}

// Cost is the size of a patch. The number of places counts most. An access that becomes atomic counts as two and a half
// places, so that accesses protected by a lock are not made atomic if the lock can be repaired at two places.
func (p Patch) Cost() int {
	n := 0
	for _, c := range p {
		switch {
		case c.Atomic:
			n += 25 + rank[c.Order]
		case c.Order != model.NA || c.Scope != model.Thread:
			n += 10 + rank[c.Order]
		}
		if c.Scope != model.Thread {
			n += int(c.Scope)
		}
		for _, f := range []Fence{c.Before, c.After} {
			if f.Order != model.NA {
				n += 15 + rank[f.Order] + int(f.Scope)
			}
		}
		if c.Barrier {
			n += 18
		}
		if c.Drop {
			n += 12
		}
	}
	return n
}

// Key is a key that is equal for equal patches.
func (p Patch) Key() string {
	var b strings.Builder
	for _, pos := range p.Places() {
		fmt.Fprintln(&b, pos, p[pos])
	}
	return b.String()
}

// Places returns the places in ascending order.
func (p Patch) Places() []int32 { return slices.Sorted(maps.Keys(p)) }

// And returns the changes of both.
func (p Patch) And(q Patch) Patch {
	out := maps.Clone(p)
	for pos, c := range q {
		out[pos] = out[pos].and(c)
	}
	return out
}

func (c Change) and(d Change) Change {
	join := func(f, g Fence) Fence { return Fence{Join(f.Order, g.Order), max(f.Scope, g.Scope)} }
	return Change{Order: Join(c.Order, d.Order), Scope: max(c.Scope, d.Scope), Atomic: c.Atomic || d.Atomic,
		Before: join(c.Before, d.Before), After: join(c.After, d.After), Barrier: c.Barrier || d.Barrier, Drop: c.Drop || d.Drop}
}

// Join is the weakest order that is as strong as both.
func Join(a, b model.Order) model.Order {
	switch {
	case a == model.SC || b == model.SC:
		return model.SC
	case (a.Acquires() || b.Acquires()) && (a.Releases() || b.Releases()):
		return model.AcqRel
	}
	return max(a, b)
}

// Apply changes the order and scope of a step.
func (c Change) Apply(op *explore.Op) {
	order := c.Order
	switch op.Kind {
	case explore.Read:
		order = order.OfRead()
		if order == model.Release {
			order = model.Relaxed
		}
	case explore.Write:
		order = order.OfWrite()
		if order == model.Acquire {
			order = model.Relaxed
		}
	case explore.Update, explore.Fence:
	default:
		return
	}
	if order != model.NA {
		op.Volatile = false
	}
	op.Order = Join(op.Order, order)
	if op.Order.Atomic() {
		op.Scope = max(op.Scope, c.Scope)
	}
}

// Program is a program with changes. Site returns the source place of a step; changes are keyed by it.
type Program struct {
	explore.Program
	Patch Patch
	Site  func(pos int32) int32
	// Aligned says that threads must meet at an inserted barrier through the same instruction.
	Aligned bool
}

// The words of a thread's state after those of the program: its current step, the place of the step, and the step that
// follows the inserted ones.
const (
	wordPhase = iota
	wordPos
	wordSite // of the last step, plus 1
	wordHead // the place of the first step of the site, before which something is inserted
	wordOp
	words = wordOp + 8
)

const (
	atStep int64 = iota
	atBarrier
	atFenceBefore
	atFenceAfter
)

// Barriers is the number of barriers of a CTA, as given by the program or by default.
func (p *Program) Barriers() int {
	if of, ok := p.Program.(interface{ Barriers() int }); ok {
		return of.Barriers()
	}
	return explore.BarriersPerCTA
}

// Exchange implements explore.Exchanger. The program has the steps that require it.
func (p *Program) Exchange(op *explore.Op, all []*explore.Op) (int64, bool) {
	return p.Program.(explore.Exchanger).Exchange(op, all)
}

// OneProxy reports whether there are no accesses by other proxies. Changes add none.
func (p *Program) OneProxy() bool {
	return explore.OneProxy(p.Program)
}

// passer is a program that recognises iterations without an effect, and therefore must learn of barriers that are
// inserted into them.
type passer interface{ Pass(state []int64) }

// StateWords implements explore.Program.
func (p *Program) StateWords() int { return p.Program.StateWords() + words }

// Start implements explore.Program.
func (p *Program) Start(t int, s []int64, op *explore.Op) {
	n := len(s) - words
	p.Program.Start(t, s[:n], op)
	p.begin(t, s[:n], s[n:], op)
}

// Resume implements explore.Program.
func (p *Program) Resume(t int, s []int64, value int64, op *explore.Op) {
	n := len(s) - words
	own := s[n:]
	c := p.change(int32(own[wordPos]))
	switch own[wordPhase] {
	case atBarrier:
		if of, ok := p.Program.(passer); ok {
			of.Pass(s[:n])
		}
		if c.Before.Order != model.NA {
			own[wordPhase] = atFenceBefore
			*op = fence(c.Before, int32(own[wordPos]))
			return
		}
		fallthrough
	case atFenceBefore:
		load(own[wordOp:], op)
		own[wordPhase] = atStep
	case atFenceAfter:
		load(own[wordOp:], op)
		p.begin(t, s[:n], own, op)
	default:
		at := int32(own[wordPos])
		p.Program.Resume(t, s[:n], value, op)
		// A thread that waits, or that does not count, does not reach a fence after its loop.
		if c.After.Order != model.NA && op.Kind != explore.Await && op.Kind != explore.Assumed {
			save(own[wordOp:], op)
			own[wordPhase] = atFenceAfter
			*op = fence(c.After, at)
			return
		}
		p.begin(t, s[:n], own, op)
	}
}

// Alike implements explore.Program.
func (p *Program) Alike(t int, a, b []int64) bool {
	n := len(a) - words
	return slices.Equal(a[n:], b[n:]) && p.Program.Alike(t, a[:n], b[:n])
}

// siteOf is the source place of a step. If nothing is changed all steps have the same.
func (p *Program) siteOf(pos int32) int32 {
	if len(p.Patch) == 0 {
		return 0
	}
	return p.Site(pos)
}

func (p *Program) change(pos int32) Change {
	if len(p.Patch) == 0 {
		return Change{}
	}
	return p.Patch[p.Site(pos)]
}

// begin advances the thread to the first inserted or changed step before its next step op, or to that step.
func (p *Program) begin(t int, s, own []int64, op *explore.Op) {
	own[wordPhase] = atStep
	for {
		switch op.Kind {
		case explore.End, explore.Read, explore.Write, explore.Update, explore.Fence, explore.Arrive, explore.Signal:
		default:
			return
		}
		c := p.change(op.Pos)
		// Insertions are made once before consecutive steps of a site.
		site := int64(p.siteOf(op.Pos)) + 1
		if head := int64(op.Pos); own[wordSite] != site || own[wordHead] == head {
			own[wordSite], own[wordHead] = site, head
		} else {
			c.Barrier, c.Before = false, Fence{}
		}
		if c.Drop && op.Kind == explore.Arrive && !op.Reduces {
			p.Program.Resume(t, s, 0, op)
			continue
		}
		c.Apply(op)
		own[wordPos] = int64(op.Pos)
		switch {
		case c.Barrier:
			save(own[wordOp:], op)
			own[wordPhase] = atBarrier
			*op = explore.Op{Kind: explore.Arrive, Pos: op.Pos, Inserted: true, Aligned: p.Aligned}
		case c.Before.Order != model.NA:
			save(own[wordOp:], op)
			own[wordPhase] = atFenceBefore
			*op = fence(c.Before, op.Pos)
		}
		return
	}
}

func fence(f Fence, pos int32) explore.Op {
	return explore.Op{Kind: explore.Fence, Order: f.Order, Scope: f.Scope, Pos: pos, Inserted: true}
}

// save writes a step into eight words.
func save(s []int64, op *explore.Op) {
	flags := int64(0)
	for i, b := range []bool{op.Aligned, op.Volatile, op.Loops, op.Reduces, op.Reduction, op.Inserted, op.Converges} {
		if b {
			flags |= 1 << i
		}
	}
	s[0] = int64(op.Kind) | int64(op.Order)<<8 | int64(op.Scope)<<16 | int64(op.Function)<<24 | flags<<32
	s[1] = int64(uint32(op.Loc)) | int64(op.Pos)<<32
	s[2], s[3], s[4] = op.Value, op.Expected, int64(op.Lanes)
	s[5], s[6], s[7] = int64(op.Deps), int64(op.Control), int64(op.Proxy)|int64(op.Address)<<32
}

func load(s []int64, op *explore.Op) {
	*op = explore.Op{Kind: explore.OpKind(s[0]), Order: model.Order(s[0] >> 8), Scope: model.Scope(s[0] >> 16), Function: explore.Function(s[0] >> 24),
		Aligned: s[0]>>32&1 != 0, Volatile: s[0]>>33&1 != 0, Loops: s[0]>>34&1 != 0, Reduces: s[0]>>35&1 != 0, Reduction: s[0]>>36&1 != 0, Inserted: s[0]>>37&1 != 0, Converges: s[0]>>38&1 != 0, Lanes: uint32(s[4]), Deps: uint64(s[5]), Control: uint64(s[6]),
		Proxy: model.Proxy(s[7]), Address: int32(s[7] >> 32),
		Loc: int32(s[1]), Pos: int32(s[1] >> 32), Value: s[2], Expected: s[3]}
}
