package model

// Proxy is a method of memory access (PTX manual, "Proxies").
type Proxy uint8

// The proxies. Generic is the proxy of ordinary accesses, and of a fence that is not a proxy fence. Alias is a proxy of
// fences only: such a fence orders accesses by several virtual addresses of one location.
const (
	Generic Proxy = iota
	Surface
	Texture
	Constant
	Alias
)

var proxyNames = [...]string{"generic", "surface", "texture", "constant", "alias"}

// String is the proxy's name in litmus files.
func (p Proxy) String() string { return proxyNames[p] }

// PTXDrop names a clause that a mutant of the model PTX lacks. Tests use it to show that every clause has an effect.
type PTXDrop uint8

// The clauses.
const (
	PTXWhole PTXDrop = iota
	PTXDropCoherence
	PTXDropAtomicity
	PTXDropThinAir
	PTXDropSCPerLocation
	PTXDropCausalityRF
	PTXDropCausalityFR
	PTXDropScopes       // in morally strong
	PTXDropStrong       // in morally strong: weak operations count too
	PTXDropProxy        // in morally strong
	PTXDropReleaseFence // in release patterns
	PTXDropReleaseWrite // a release and then a strong write of the location
	PTXDropAcquireFence // in acquire patterns
	PTXDropAcquireRead  // a strong read and then an acquire of the location
	PTXDropChain        // atomics in observation order
	PTXDropObservation  // in causality order
	PTXDropPreserved    // proxies in causality order
	PTXDropSyncFenceSC  // sc fences synchronize
	PTXDropBarrier      // barriers synchronize
	PTXDropPartial      // coherence order is total
	PTXDrops            // the number of clauses
)

// PTX is the memory consistency model of PTX (PTX ISA manual, chapter "Memory Consistency Model"), for accesses that
// overlap completely or not at all. This file is meant to be compared with the chapter, and uses its names. Proxies
// other than the generic one follow Lustig, Cooksey and Giroux, "Mixed-Proxy Extensions for the NVIDIA PTX Memory
// Consistency Model" (ISCA 2022).
type PTX struct{ Drop PTXDrop }

// PTXRelations are the relations of the chapter for one execution. The coherence order of the execution is a total
// order of the writes of each location. Coherence is the part of it that the model defines: between writes that are
// morally strong or related in causality order, and its closure. Only Coherence and FR depend on the coherence order.
type PTXRelations struct {
	MorallyStrong, Observation, Synchronizes, BaseCausality, Causality, Coherence, FR Rel
}

// Strong reports whether an operation is strong.
func (e *Event) Strong() bool { return e.Order.Atomic() }

// SameProxy reports whether two accesses are performed via the same proxy: virtual aliases behave as if they used
// different ones.
func (e *Event) SameProxy(f *Event) bool { return e.Proxy == f.Proxy && e.Address == f.Address }

// MorallyStrong reports whether two operations are morally strong relative to each other. po says that they are related
// in program order.
func (m PTX) MorallyStrong(a, b *Event, po bool) bool {
	memory := func(e *Event) bool { return e.Kind == R || e.Kind == W }
	need := Need(a.Place, b.Place)
	if !po && (m.Drop != PTXDropStrong && !(a.Strong() && b.Strong()) || m.Drop != PTXDropScopes && (a.Scope < need || b.Scope < need)) {
		return false
	}
	if !memory(a) || !memory(b) {
		return true // a fence has no proxy
	}
	return a.Loc == b.Loc && (a.SameProxy(b) || m.Drop == PTXDropProxy)
}

// Relations computes the relations of an execution.
func (m PTX) Relations(x *Execution) *PTXRelations {
	r := m.Causes(x)
	m.Communicate(x, r)
	return r
}

// Causes computes the relations of an execution that do not depend on its coherence order.
func (m PTX) Causes(x *Execution) *PTXRelations {
	n := len(x.E)
	set := func(has func(e *Event) bool) Rel { // the identity on a set of events
		r := NewRel(n)
		for i := range x.E {
			if has(&x.E[i]) {
				r.Add(i, i)
			}
		}
		return r
	}
	unless := func(drop PTXDrop, r Rel) Rel {
		if m.Drop == drop {
			return NewRel(n)
		}
		return r
	}
	memory := func(i int) bool { return x.E[i].Kind == R || x.E[i].Kind == W }
	sameLocation := func(a, b int) bool { return memory(a) && memory(b) && x.E[a].Loc == x.E[b].Loc }
	strong := NewRel(n)
	for a := range n {
		for b := range n {
			if a != b && m.MorallyStrong(&x.E[a], &x.E[b], x.PO.Has(a, b) || x.PO.Has(b, a)) {
				strong.Add(a, b)
			}
		}
	}
	fences := func(has func(o Order) bool) Rel {
		return set(func(e *Event) bool { return e.Kind == F && e.Proxy == Generic && has(e.Order) })
	}
	strongW := set(func(e *Event) bool { return e.Kind == W && e.Strong() })
	strongR := set(func(e *Event) bool { return e.Kind == R && e.Strong() })
	poLocation := x.PO.where(sameLocation)

	// Observation order.
	read := inter(strong, x.RF)
	observation := seq(read, star(unless(PTXDropChain, seq(x.RMW, read))))

	// Release and acquire patterns, from their first operation to the write, and from the read to their last operation.
	releaseW := set(func(e *Event) bool { return e.Kind == W && e.Order.Releases() })
	acquireR := set(func(e *Event) bool { return e.Kind == R && e.Order.Acquires() })
	release := union(releaseW,
		unless(PTXDropReleaseWrite, seq(releaseW, poLocation, strongW)),
		unless(PTXDropReleaseFence, seq(fences(Order.Releases), x.PO, strongW)))
	fenced := set(func(e *Event) bool { return e.Kind == R && e.Strong() && !e.Reduction })
	acquire := union(acquireR,
		unless(PTXDropAcquireRead, seq(strongR, poLocation, acquireR)),
		unless(PTXDropAcquireFence, seq(fenced, x.PO, fences(Order.Acquires))))
	synchronizes := union(
		inter(strong, seq(release, observation, acquire)),
		unless(PTXDropSyncFenceSC, x.FenceSC),
		unless(PTXDropBarrier, x.Bar))

	base := plus(union(x.PO, synchronizes))
	preserved := m.preserved(x, base)
	causality := union(preserved, unless(PTXDropObservation, seq(observation, preserved)))

	return &PTXRelations{MorallyStrong: strong, Observation: observation, Synchronizes: synchronizes, BaseCausality: base, Causality: causality}
}

// Communicate computes the relations of an execution that depend on its coherence order, which may be that of some
// locations only.
func (m PTX) Communicate(x *Execution, r *PTXRelations) {
	r.Coherence = x.CO
	if m.Drop != PTXDropPartial { // it is transitive
		r.Coherence = plus(x.CO.where(func(a, b int) bool {
			return r.MorallyStrong.Has(a, b) || r.Causality.Has(a, b) || r.Causality.Has(b, a)
		}))
	}
	r.FR = seq(inverse(x.RF), r.Coherence)
}

// preserved is proxy-preserved base causality order, of memory operations that overlap.
func (m PTX) preserved(x *Execution, base Rel) Rel {
	n := len(x.E)
	// A proxy fence acts for accesses of its block. It is on the path from a to b.
	fence := func(a, b int, proxy Proxy, of int) bool {
		for f := range n {
			e := &x.E[f]
			if e.Kind == F && e.Proxy == proxy && (of < 0 || e.Place.CTA == x.E[of].Place.CTA) && (f == a || base.Has(a, f)) && base.Has(f, b) {
				return true
			}
		}
		return false
	}
	return base.where(func(i, j int) bool {
		a, b := &x.E[i], &x.E[j]
		if (a.Kind != R && a.Kind != W) || (b.Kind != R && b.Kind != W) || a.Loc != b.Loc {
			return false
		}
		if m.Drop == PTXDropPreserved || a.Thread < 0 {
			return true // all proxies see the initial values
		}
		switch {
		case a.Proxy == Generic && b.Proxy == Generic:
			return a.Address == b.Address || fence(i, j, Alias, -1)
		case a.Proxy == b.Proxy && a.Address == b.Address && a.Place.CTA == b.Place.CTA:
			return true
		case a.Proxy == Generic:
			return fence(i, j, b.Proxy, j)
		case b.Proxy == Generic:
			return fence(i, j, a.Proxy, i)
		}
		for f := range n { // of the first proxy, and then of the second
			e := &x.E[f]
			if e.Kind == F && e.Proxy == a.Proxy && e.Place.CTA == a.Place.CTA && base.Has(i, f) && base.Has(f, j) &&
				(a.Proxy == b.Proxy && a.Place.CTA == b.Place.CTA || fence(f, j, b.Proxy, j)) {
				return true
			}
		}
		return false
	})
}

// Consistent checks the axioms.
func (m PTX) Consistent(x *Execution, r *PTXRelations) bool {
	return m.Grounded(x) && m.Causal(x, r) && m.Coherent(x, r)
}

// Causal checks the axioms that do not depend on coherence order, except No-Thin-Air: Fence-SC, and the first half of
// Causality.
func (m PTX) Causal(x *Execution, r *PTXRelations) bool {
	// Dropping the first check would allow nothing more: such an order of fences only adds to causality.
	return irreflexive(seq(x.FenceSC, r.BaseCausality)) && (m.Drop == PTXDropCausalityRF || irreflexive(seq(x.RF, r.Causality)))
}

// FenceOrder returns an order of the sc fences that Fence-SC, Causality and Coherence allow, if there is one. The
// execution has no data races, its accesses are by one proxy, and its sc fences are morally strong. x has the coherence
// order but no order of fences. r has the relations of x without such an order, which the axioms allow.
//
// To order g before f is forbidden if f precedes, in base causality order, an event a with which another event
// communicates, and that event, or one that observes it, precedes g: causality order would lead from there back to a.
// On a path through several fences only the order of the first and the last one matters, because the order of fences is
// total and by Fence-SC includes base causality order.
func (m PTX) FenceOrder(x *Execution, r *PTXRelations) (Rel, bool) {
	communicates := seq(union(x.RF, r.Coherence, r.FR, r.Observation), opt(r.Observation))
	sc := func(i int) bool {
		e := &x.E[i]
		return e.Kind == F && e.Order == SC && e.Proxy == Generic
	}
	order := plus(union(r.BaseCausality, seq(r.BaseCausality, communicates, r.BaseCausality)).where(func(a, b int) bool { return sc(a) && sc(b) }))
	return order, irreflexive(order)
}

// Coherent checks the axioms that depend on coherence order: Coherence, Atomicity, SC-per-Location, and the second half
// of Causality. Each applies to each location separately, so it may be called with some locations only.
func (m PTX) Coherent(x *Execution, r *PTXRelations) bool {
	holds := func(drop PTXDrop, axiom bool) bool { return m.Drop == drop || axiom }
	strong := func(of Rel) Rel { return inter(of, r.MorallyStrong) }
	overlapping := x.PO.where(func(a, b int) bool { // aliases do not overlap (PTX manual, "Overlap")
		e, f := &x.E[a], &x.E[b]
		return (e.Kind == R || e.Kind == W) && (f.Kind == R || f.Kind == W) && e.Loc == f.Loc && e.Address == f.Address
	})
	writes := r.Causality.where(func(a, b int) bool { return x.E[a].Kind == W && x.E[b].Kind == W })
	return holds(PTXDropCoherence, inter(writes, inverse(x.CO)).Empty() && irreflexive(writes)) &&
		holds(PTXDropAtomicity, inter(x.RMW, seq(strong(r.FR), strong(r.Coherence))).Empty()) &&
		holds(PTXDropSCPerLocation, acyclic(union(overlapping, strong(union(x.RF, r.Coherence, r.FR))))) &&
		holds(PTXDropCausalityFR, irreflexive(seq(r.FR, r.Causality)))
}

// Grounded checks the axiom No-Thin-Air: no value depends on itself. It does not need the order of writes. A barrier is
// communication between threads: what a thread does after it depends on all arrivals, and these depend on the branches
// before them.
func (m PTX) Grounded(x *Execution) bool {
	return m.Drop == PTXDropThinAir || acyclic(union(x.RF, x.Dep, x.Bar))
}

// Race reports whether two accesses of an execution are in a data race: they conflict, are not morally strong, and
// neither precedes the other in causality order.
func (r *PTXRelations) Race(x *Execution, a, b int) bool {
	e, f := &x.E[a], &x.E[b]
	if (e.Kind != W || f.Kind != W && f.Kind != R) && (f.Kind != W || e.Kind != R) || e.Loc != f.Loc || e.Thread < 0 || f.Thread < 0 {
		return false
	}
	return !r.MorallyStrong.Has(a, b) && !r.Causality.Has(a, b) && !r.Causality.Has(b, a)
}
