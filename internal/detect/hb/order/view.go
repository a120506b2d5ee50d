package order

import (
	"iter"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// View is what a thread or an agent knows at a moment, and the epoch of what it does then, which no other thread's
// knowledge reaches until the thread has released it and begun the next. A view is not changed.
type View struct {
	knowledge
	Epoch uint32
}

// knowledge is what a thread knows of others: those of its own block, those of other blocks of its launch, and beyond the
// launch. What grid says of the own block is never more than what block says.
type knowledge struct {
	block  *clock.Block
	grid   *clock.Grid
	beyond *clock.Foreign
	fences *fences // of its block, before this
}

// at gives the view with another epoch.
func (v *View) at(epoch uint32) *View { return &View{v.knowledge, epoch} }

// views are those of the lanes of a warp: one, or each its own.
type views struct {
	same *View
	each *[32]*View // nil: all have same
}

// view gives that of a lane.
func (x *views) view(lane int) *View {
	if x.each != nil {
		return x.each[lane]
	}
	return x.same
}

// set gives lanes a view. Others keep theirs, unless no live one does.
func (x *views) set(live, lanes uint32, v *View) {
	if live&^lanes == 0 {
		*x = views{same: v}
		return
	}
	if x.each == nil {
		if x.same == v {
			return
		}
		each := new([32]*View)
		for i := range each {
			each[i] = x.same
		}
		*x = views{each: each}
	}
	for m := lanes; m != 0; m &= m - 1 {
		x.each[bits.TrailingZeros32(m)] = v
	}
}

// of gives the views that lanes have, each with the lanes that have it. Meanwhile these lanes may be given others.
func (x *views) of(lanes uint32) iter.Seq2[*View, uint32] {
	was := *x
	return func(yield func(*View, uint32) bool) {
		for lanes != 0 {
			v, having := was.view(bits.TrailingZeros32(lanes)), lanes
			for m := lanes; m != 0 && was.each != nil; m &= m - 1 {
				if lane := bits.TrailingZeros32(m); was.each[lane] != v {
					having &^= 1 << lane
				}
			}
			if lanes &^= having; !yield(v, having) {
				return
			}
		}
	}
}

// Actor is who makes an access, and what it knows then: a thread, or (Launch nil) an agent of the host.
type Actor struct {
	Launch *Launch
	Agent  uint32 // of the host
	Block  uint32
	Warp   uint32 // in the grid
	Lane   int
	View   *View
	// Whole is an epoch of the warp. A warp in lockstep executes what its lanes do before it first.
	Whole uint32
	// Assumed is what an agent of the host knows with what is assumed of host threads; nil where nothing is.
	Assumed *clock.Foreign
}

// Stamp is when and by whom an access was made, which is what later actors may know of.
type Stamp struct {
	Launch *Launch
	Agent  uint32
	Warp   uint32
	Lane   int
	Epoch  uint32
}

// Stamp gives the stamp of what the actor does now.
func (a *Actor) Stamp() Stamp { return Stamp{a.Launch, a.Agent, a.Warp, a.Lane, a.View.Epoch} }

// Block is the block of a device thread's stamp.
func (s *Stamp) Block() uint32 { return s.Warp / s.Launch.WarpsPerBlock }

// FirstOperation is the first number of agents that are not of the host: each is asynchronous operations of a block's threads, such as the
// copies that one mbarrier tracks, which count what is complete of them.
const FirstOperation = 1 << 31

// Knowing gives the view with the knowledge that operations are complete up to a count.
func (v *View) Knowing(operations, count uint32) *View {
	k := v.knowledge
	k.beyond = k.beyond.WithAgent(operations, count)
	return &View{k, v.Epoch}
}

// Operations gives the view of who knows nothing but that operations are complete up to a count.
func Operations(operations, count uint32) *View { return (&View{}).Knowing(operations, count) }

// Knows says that operations are known to be complete up to a count.
func (v *View) Knows(operations, count uint32) bool { return v.beyond.Agent(operations) >= count }

// Is says that the actor is the thread, or the agent, that made the access.
func (a *Actor) Is(s *Stamp) bool {
	if a.Launch == nil {
		return s.Launch == nil && a.Agent == s.Agent
	}
	return a.Launch == s.Launch && a.Warp == s.Warp && a.Lane == s.Lane
}

// OtherDevice says that the actor is a thread, and a launch is on another device than its own.
func (a *Actor) OtherDevice(l *Launch) bool {
	return a.Launch != nil && l != nil && a.Launch.Info.Device != l.Info.Device
}

// Nested says that the actor is a thread, and that a thread has made its launch or the other one.
func (a *Actor) Nested(l *Launch) bool {
	return a.Launch != nil && l != nil && (a.Launch.Info.Parent != 0 || l.Info.Parent != 0)
}

// After says that the actor happens after an access, or made it itself.
func (a *Actor) After(s *Stamp) bool {
	switch {
	case a.Is(s):
		return true
	case s.Launch == nil:
		return a.View.beyond.Agent(s.Agent) >= s.Epoch
	}
	return a.Unknown(s.Launch, s.Warp, 1<<uint(s.Lane), s.Epoch) == 0
}

// Unknown gives those of lanes of a warp whose epoch the actor does not know.
func (a *Actor) Unknown(l *Launch, warp, lanes, epoch uint32) uint32 {
	return a.View.Unknown(a.Launch, a.Block, l, warp, lanes, epoch)
}

// Unknown gives those of lanes of a warp of launch l whose epoch is not known with the view of a thread of a block of launch own,
// nil where it is that of an agent.
func (v *View) Unknown(own *Launch, ownBlock uint32, l *Launch, warp, lanes, epoch uint32) uint32 {
	block := warp / l.WarpsPerBlock
	in := warp - block*l.WarpsPerBlock
	switch {
	case l == own && block == ownBlock:
		return v.block.Unknown(in, lanes, epoch)
	case l == own && v.grid == nil:
		return lanes
	case l == own:
		return v.grid.Unknown(l.depth, block, in, lanes, epoch)
	case l.within(v.beyond):
		return 0
	}
	return v.beyond.Part(l.Info.ID).Unknown(l.depth, block, in, lanes, epoch)
}

// KnowsGrid says that all threads of the view's launch are known up to an epoch, as far as that is cheap to see.
func (v *View) KnowsGrid(epoch uint32) bool { return v.grid != nil && v.grid.Min >= epoch }
