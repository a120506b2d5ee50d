package order

import (
	"iter"
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/event"
)

// View returns the common view of the lanes of a warp of the block. same is false if they do not have one.
func (b *Block) View(w uint32) (v *View, same bool) {
	x := &b.warps[w].views
	return x.same, x.each == nil
}

// ViewOf returns the view of a lane.
func (b *Block) ViewOf(w uint32, lane int) *View { return b.warps[w].view(lane) }

// Exited reports whether a lane has exited.
func (b *Block) Exited(w uint32, lane int) bool { return b.warps[w].live>>uint(lane)&1 == 0 }

// Views yields the distinct views of lanes of a warp, each with the lanes that have it.
func (b *Block) Views(w, lanes uint32) iter.Seq2[*View, uint32] { return b.warps[w].of(lanes) }

// Ended reports whether a block is not running: it has ended, or has not begun.
func (l *Launch) Ended(block uint32) bool { return l.blocks[block] == nil }

// As calls f while lanes of a warp temporarily have other views and no begun patterns.
func (b *Block) As(wi, lanes uint32, views *[32]*View, f func()) {
	w := &b.warps[wi]
	x := &w.views
	now, was, patterns := *x, w.fenced, w.patterns
	w.fenced, w.patterns = fenced{}, nil
	defer func() { w.fenced, w.patterns = was, patterns }()
	each := *views
	for i := range each {
		if lanes>>i&1 == 0 {
			each[i] = now.view(i)
		}
	}
	*x = warpViews(&each)
	f()
	*x = now
}

// warpViews returns the views of the lanes of a warp, in the compact form if all are the same.
func warpViews(each *[32]*View) views {
	for _, v := range each {
		if v != each[0] {
			return views{each: each}
		}
	}
	return views{same: each[0]}
}

// Running returns a running block; nil if it is not running.
func (l *Launch) Running(block uint32) *Block { return l.blocks[block] }

// Over reports whether the launch has ended.
func (l *Launch) Over() bool { return l.end != 0 }

// Published reports whether a thread of the launch has begun a release pattern, so that others may know some of its
// threads and not others.
func (l *Launch) Published() bool { return l.published }

// Follows reports whether all of launch o happens before this launch.
func (l *Launch) Follows(o *Launch) bool { return o.within(l.start) }

// Knows reports whether an agent knows all of a launch.
func (a *Actor) Knows(l *Launch) bool { return l.within(a.View.beyond) }

// First returns an actor that knows what the launch's threads know at the beginning.
func (l *Launch) First() Actor {
	return Actor{Launch: l, View: &View{knowledge: knowledge{beyond: l.start}}}
}

// Absent returns a substitute for a block of the launch that may have ended: it has one warp, which has accessed
// nothing.
func (l *Launch) Absent() *Block { return &Block{Launch: l, warps: make([]warp, 1)} }

// Synchronises reports whether sync variables exist in global memory, or in the shared memory of the block.
func (b *Block) Synchronises(shared bool) bool { return b.memory(shared).live > 0 }

// Begun reports whether an atomic operation by a warp may be part of a pattern, or of what fence.sc orders, because of
// something that was done before it in its block.
func (b *Block) Begun(wi uint32) bool {
	w := &b.warps[wi]
	return b.fencesSC || w.fenced.any() || w.patterns != nil
}

// Variable returns a pointer into the variable of a word of global memory, for prefetch.Lines.
func (o *Order) Variable(address uint64) unsafe.Pointer { return o.global.slot(address) }

// Observations are the lanes of a strong access that observed writes by other threads of their launch, or by threads of
// other devices.
type Observations struct {
	Lanes, InScope uint32 // InScope: those for which the read and the write are morally strong
	Elsewhere      uint32 // those that observed a write of another device
	Within         bool   // one of them observed a write by a thread of its own block
}

// Relaxed performs Observed, Observe and Perform for a relaxed atomic operation on a word by a lane of a warp that has
// begun no pattern, or for updates of the word by several lanes, each of which observes the one before. ok is false,
// and nothing is done, if the value of the variable is part of a pattern.
func (b *Block) Relaxed(wi uint32, lanes uint32, s *Strong, seen *Observations) (chain ChainID, ok bool) {
	first, lane := bits.TrailingZeros32(lanes), 31-bits.LeadingZeros32(lanes)
	m := b.memory(s.Shared)
	v := m.find(s.Address, s.Size)
	strong := v.morallyStrong(b, s)
	if v != nil {
		if v.traits&hasRecords != 0 {
			return 0, false
		}
		within := v.block == b.Index
		switch {
		case !s.Reads:
		case v.launch != b.Launch.number:
			if b.elsewhere(v) {
				seen.addElsewhere(first, strong)
			}
		case !within || v.writer != threadOf(wi, first):
			seen.add(first, within, strong)
		}
	}
	if later := lanes &^ (1 << first); s.Reads && later != 0 {
		seen.Lanes, seen.InScope, seen.Within = seen.Lanes|later, seen.InScope|later, true
	}
	switch {
	case s.Writes:
		if v == nil {
			v = m.make(s.Address, s.Size)
		}
		b.write(m, v, wi, lane, s, strong)
		chain = v.chain
	case strong:
		v.observe(b, wi, lane)
	}
	return chain, true
}

// add adds a lane.
func (o *Observations) add(lane int, within, inScope bool) {
	o.Lanes |= 1 << uint(lane)
	o.Within = o.Within || within
	if inScope {
		o.InScope |= 1 << uint(lane)
	}
}

// addElsewhere adds a lane that observed a write of another device.
func (o *Observations) addElsewhere(lane int, inScope bool) {
	o.add(lane, false, inScope)
	o.Elsewhere |= 1 << uint(lane)
}

// Chain returns the chain that made the current value of a scalar of global memory. If that chain is later than last,
// it returns the chain of the former value; if that is later too, or there is none, 0.
func (o *Order) Chain(address uint64, size uint8, last ChainID) ChainID {
	if v := o.global.find(address, size); v != nil && v.chain <= last {
		return v.chain
	}
	if f := o.global.former[scalar{address, size}]; f != nil && f.chain <= last {
		return f.chain
	}
	return 0
}

// Made reports whether a chain made the current value of a scalar of global memory, or the former one.
func (o *Order) Made(address uint64, size uint8, chain ChainID) bool {
	v, f := o.global.find(address, size), o.global.former[scalar{address, size}]
	return v != nil && v.chain == chain || f != nil && f.chain == chain
}

// Chains returns the last chain begun so far. Later strong writes that begin a chain get larger IDs.
func (o *Order) Chains() ChainID { return o.chains }

// Ends reports whether an event is the exit of the last live threads of the block.
func (b *Block) Ends(wi uint32, e *event.Event) bool {
	return e.Kind == event.Exit && bits.OnesCount32(e.Mask&b.warps[wi].live) == b.alive
}

// Patterns reports whether threads of the block may have begun release or acquire patterns.
func (b *Block) Patterns() bool {
	for i := range b.warps {
		if w := &b.warps[i]; w.fenced.any() || w.patterns != nil {
			return true
		}
	}
	return b.fencesSC
}
