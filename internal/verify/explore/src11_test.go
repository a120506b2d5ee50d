package explore

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/verify/model"
)

// straight is a program without jumps. The state of a thread is the number of its next step.
type straight struct {
	threads [][]Op
	places  []model.Place
}

func (p *straight) Places() []model.Place                 { return p.places }
func (p *straight) Initial(int32) int64                   { return 0 }
func (p *straight) Apply(op *Op, old int64) (int64, bool) { return op.Apply(old) }
func (p *straight) StateWords() int                       { return 1 }
func (p *straight) Alike(_ int, a, b []int64) bool        { return a[0] == b[0] }
func (p *straight) Start(t int, _ []int64, op *Op)        { *op = p.threads[t][0] }
func (p *straight) Resume(t int, s []int64, _ int64, op *Op) {
	s[0]++
	*op = p.threads[t][s[0]]
}

// randomStraight returns a program with relaxed accesses to two locations and with fences.
func randomStraight(r *rand.Rand) *straight {
	p := &straight{}
	scope := func() model.Scope { return model.Scope(1 + r.IntN(4)) }
	for range 3 {
		cta := int32(r.IntN(2))
		p.places = append(p.places, model.Place{CTA: cta, Cluster: cta})
		var ops []Op
		for range 2 + r.IntN(4) {
			op := Op{Kind: Fence, Order: model.AcqRel, Scope: scope()}
			if r.IntN(5) > 1 {
				op = Op{Kind: []OpKind{Read, Write, Update}[r.IntN(3)], Order: model.Relaxed, Scope: scope(), Loc: int32(r.IntN(2)), Value: int64(1 + r.IntN(2))}
			}
			ops = append(ops, op)
		}
		p.threads = append(p.threads, append(ops, Op{Kind: End}))
	}
	return p
}

// TestFences compares the two computations of axiom SC. The fences of the executions are made sc after the executions
// are complete, so that some executions are inconsistent.
func TestFences(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	cyclic, compared := 0, 0
	var p psc
	for range 2000 {
		Explore(context.Background(), randomStraight(r), Options{Incl: model.Inclusion(r.IntN(2)), Leaf: func(x Execution, end Ending) {
			if compared++; compared%7 != 0 {
				return
			}
			g := *x.(*graphView).g
			g.events = slices.Clone(g.events)
			g.sc = 0
			for i := range g.events {
				if ev := &g.events[i]; ev.kind == model.F {
					ev.order = model.SC
					g.sc++
				}
			}
			fast := p.acyclic(&g)
			if g.sc < 2 {
				return
			}
			p.general()
			mw := (len(p.sc) + 63) / 64
			general := slices.Clone(p.edges)
			if slow := p.closed(); slow != fast {
				t.Fatalf("acyclic: %v, want %v", fast, slow)
			}
			p.fences()
			for i := range p.sc {
				for j := range p.sc {
					if a, b := has(p.edges[i*mw:], int32(j)), has(general[i*mw:], int32(j)); a != b {
						t.Fatalf("edge %d %d: %v, want %v", i, j, a, b)
					}
				}
			}
			if !fast {
				cyclic++
			}
		}})
	}
	t.Logf("%d executions, %d of those compared are cyclic", compared, cyclic)
	if cyclic < 60 {
		t.Errorf("only %d executions are cyclic", cyclic)
	}
}
