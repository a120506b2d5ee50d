package model

// Kind is the kind of an event.
type Kind uint8

// The kinds of events.
const (
	R       Kind = iota
	W            // including the initial writes, whose thread is -1
	F            // a fence
	Arrival      // at a barrier
	Leave        // of a barrier, once all have arrived
)

// Event is an event of an execution. A read-modify-write that succeeds is two events.
type Event struct {
	Thread int // -1 for the initial writes
	Kind   Kind
	Order  Order
	Scope  Scope
	Loc    int32 // not for a fence or barrier
	Place  Place
	// The following fields matter only to the model PTX.
	Proxy     Proxy // of an access, or of a proxy fence
	Address   int32 // the virtual address of an access; several may be aliases of one location
	Reduction bool  // of a read: no later fence makes it an acquire pattern
}

// Execution is an execution <E, po, rf, co, rmw> (section 3), with bar, which relates the arrivals at a barrier to the
// events that leave it. The initial writes are po-before all events of threads. The model PTX needs two more relations:
// dependencies, and the order of sc fences.
type Execution struct {
	E                    []Event
	PO, RF, CO, RMW, Bar Rel
	Dep, FenceSC         Rel
}

// Drop names a clause that a mutant of the model lacks. Tests use it to show that every clause has an effect.
type Drop uint8

// The clauses.
const (
	Nothing Drop = iota
	DropCoherence
	DropAtomicity
	DropSC
	DropThinAir
	DropInclRF  // incl in the reads of rseq and sw
	DropInclSW  // incl at the two ends of sw
	DropInclPSC // incl in the axiom SC
	DropRMWChain
	DropReleaseFence
	DropAcquireFence
	DropSameLocation // po_=loc in rseq
	DropPSCBase
	DropPSCFence
	DropBarrier
	Drops // the number of clauses
)

// SRC11 computes the relations of figure 3.
type SRC11 struct {
	Incl Inclusion
	Drop Drop
}

// Relations are the relations of figure 3 for one execution.
type Relations struct {
	FR, ECO, SW, HB, PSC, Inclusive Rel
}

// Includes is incl(a, b).
func (m SRC11) Includes(a, b Event) bool {
	if !a.Order.Atomic() || !b.Order.Atomic() {
		return false
	}
	need := Need(a.Place, b.Place)
	if m.Incl == Paper {
		memory := (a.Kind == R || a.Kind == W) && (b.Kind == R || b.Kind == W)
		return (a.Scope >= need || b.Scope >= need) && !(memory && a.Loc != b.Loc)
	}
	return a.Scope >= need && b.Scope >= need
}

// Relations computes the derived relations, in the order and with the names of figure 3.
func (m SRC11) Relations(x *Execution) *Relations {
	n := len(x.E)
	set := func(has func(e Event) bool) Rel { // [A]
		r := NewRel(n)
		for i, e := range x.E {
			if has(e) {
				r.Add(i, i)
			}
		}
		return r
	}
	access := func(e Event) bool { return e.Kind == R || e.Kind == W }
	sameLoc := func(a, b int) bool { return access(x.E[a]) && access(x.E[b]) && x.E[a].Loc == x.E[b].Loc }
	otherLoc := func(a, b int) bool { return !sameLoc(a, b) } // a fence has no location, hence never the same one
	onlyIf := func(drop Drop, r Rel) Rel {                    // r; without the clause, nothing
		if m.Drop == drop {
			return NewRel(n)
		}
		return r
	}
	incl := NewRel(n)
	for a := range n {
		for b := range n {
			if m.Includes(x.E[a], x.E[b]) {
				incl.Add(a, b)
			}
		}
	}
	inclOr := func(drop Drop, r Rel) Rel { // incl ∩ r
		if m.Drop == drop {
			return r
		}
		return inter(incl, r)
	}

	setW := set(func(e Event) bool { return e.Kind == W })
	setWRlx := set(func(e Event) bool { return e.Kind == W && e.Order.Atomic() })
	setF := set(func(e Event) bool { return e.Kind == F })
	setRel := set(func(e Event) bool { return e.Order.Releases() })
	setAcq := set(func(e Event) bool { return e.Order.Acquires() })
	setSC := set(func(e Event) bool { return e.Order == SC })
	setFSC := set(func(e Event) bool { return e.Kind == F && e.Order == SC })

	fr := seq(inverse(x.RF), x.CO)
	eco := plus(union(x.RF, x.CO, fr))

	inclRF := inclOr(DropInclRF, x.RF)
	rseq := seq(setW, opt(onlyIf(DropSameLocation, x.PO.where(sameLoc))), setWRlx, star(onlyIf(DropRMWChain, seq(inclRF, x.RMW))))
	prel := seq(setRel, opt(onlyIf(DropReleaseFence, seq(setF, x.PO))))
	pacq := seq(opt(onlyIf(DropAcquireFence, seq(x.PO, setF))), setAcq)
	sw := seq(prel, rseq, inclRF, pacq)
	hb := plus(union(x.PO, inclOr(DropInclSW, sw), onlyIf(DropBarrier, x.Bar)))
	poOther := x.PO.where(otherLoc)
	scb := union(x.PO, seq(poOther, hb, poOther), hb.where(sameLoc), x.CO, fr)
	pscBase := seq(union(setSC, seq(setFSC, opt(hb))), scb, union(setSC, seq(opt(hb), setFSC)))
	pscF := seq(setFSC, union(hb, seq(hb, eco, hb)), setFSC)
	psc := union(onlyIf(DropPSCBase, pscBase), onlyIf(DropPSCFence, pscF))
	return &Relations{FR: fr, ECO: eco, SW: inclOr(DropInclSW, sw), HB: hb, PSC: inclOr(DropInclPSC, psc), Inclusive: incl}
}

// Consistent checks the axioms of figure 3. Those that most executions violate and that are fastest to check come
// first.
func (m SRC11) Consistent(x *Execution) bool {
	fr := seq(inverse(x.RF), x.CO)
	atomicity := func() bool { return m.Drop == DropAtomicity || inter(x.RMW, seq(fr, x.CO)).Empty() }
	coherence := func(hb, eco Rel) bool { return m.Drop == DropCoherence || irreflexive(seq(hb, opt(eco))) }
	thinAir := func() bool { return m.Drop == DropThinAir || acyclic(union(x.PO, x.RF, x.Bar)) }
	// po is a part of hb: what po forbids, hb forbids.
	if !atomicity() || !coherence(x.PO, plus(union(x.RF, x.CO, fr))) || !thinAir() {
		return false
	}
	r := m.Relations(x)
	return coherence(r.HB, r.ECO) && (m.Drop == DropSC || acyclic(r.PSC))
}
