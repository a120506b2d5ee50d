package order

import (
	"iter"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// View is what a thread or an agent knows at a moment, and its current epoch. No other thread knows this epoch until
// the thread has released it and begun the next one. A view never changes.
type View struct {
	knowledge
	Epoch uint32
}

// knowledge is what a thread knows of others: of its own block, of other blocks of its launch, and beyond the launch.
// What grid says of the own block is never more than what block says.
type knowledge struct {
	block  *clock.Block
	grid   *clock.Grid
	beyond *clock.Foreign
	fences *fences // what fence.sc of its block passed on to this point; nil: nothing
}

// at returns the view with another epoch.
func (v *View) at(epoch uint32) *View { return &View{v.knowledge, epoch} }

// views are the views of the lanes of a warp: one for all, or one for each.
type views struct {
	same *View
	each *[32]*View // nil: all lanes have same
}

// view returns the view of a lane.
func (x *views) view(lane int) *View {
	if x.each != nil {
		return x.each[lane]
	}
	return x.same
}

// set gives lanes a view. The other lanes keep theirs. If all live lanes get v, all lanes have it.
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

// of yields the distinct views of lanes, each with the lanes that have it. The views may be changed while it runs: it
// yields those at the call.
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

// Actor is a thread, or (if Launch is nil) an agent of the host, that makes an access, with what it knows then.
type Actor struct {
	Launch *Launch
	Agent  uint32 // set for the host only
	Block  uint32
	Warp   uint32 // number within the grid
	Lane   int
	View   *View
	// Whole is the epoch of the warp that began when all its lanes last reconverged. In lockstep, the warp executes
	// everything that its lanes do before that epoch first.
	Whole uint32
	// Assumed is what an agent of the host would know with what is assumed of host threads; nil if nothing is assumed.
	Assumed *clock.Foreign
}

// Stamp identifies the thread or agent and the epoch of an access. A later actor may know this epoch.
type Stamp struct {
	Launch *Launch
	Agent  uint32
	Warp   uint32
	Lane   int
	Epoch  uint32
}

// Stamp returns the stamp of an access that the actor makes now.
func (a *Actor) Stamp() Stamp { return Stamp{a.Launch, a.Agent, a.Warp, a.Lane, a.View.Epoch} }

// Block returns the block of a stamp by a device thread.
func (s *Stamp) Block() uint32 { return s.Warp / s.Launch.WarpsPerBlock }

// FirstOperation is the first agent number that does not belong to a host agent. The numbers from there on are counters
// of asynchronous operations of a block's threads, such as the copies that one mbarrier tracks. The epoch of such an
// agent is the count of operations that are known to be complete.
const FirstOperation = 1 << 31

// Knowing returns the view extended by the knowledge that the operations of a counter are complete up to a count.
func (v *View) Knowing(operations, count uint32) *View {
	k := v.knowledge
	k.beyond = k.beyond.WithAgent(operations, count)
	return &View{k, v.Epoch}
}

// Operations returns a view that knows only that the operations of a counter are complete up to a count.
func Operations(operations, count uint32) *View { return (&View{}).Knowing(operations, count) }

// Knows reports whether the view knows the operations of a counter to be complete up to a count.
func (v *View) Knows(operations, count uint32) bool { return v.beyond.Agent(operations) >= count }

// Is reports whether the actor is the thread or the agent that made the access.
func (a *Actor) Is(s *Stamp) bool {
	if a.Launch == nil {
		return s.Launch == nil && a.Agent == s.Agent
	}
	return a.Launch == s.Launch && a.Warp == s.Warp && a.Lane == s.Lane
}

// OtherDevice reports whether the actor is a thread, and that l is a launch on another device.
func (a *Actor) OtherDevice(l *Launch) bool {
	return a.Launch != nil && l != nil && a.Launch.Info.Device != l.Info.Device
}

// Nested reports whether the actor is a thread, and that its launch or l was launched by a thread.
func (a *Actor) Nested(l *Launch) bool {
	return a.Launch != nil && l != nil && (a.Launch.Info.Parent != 0 || l.Info.Parent != 0)
}

// After reports whether an access happens before the actor, or that the actor made it.
func (a *Actor) After(s *Stamp) bool {
	switch {
	case a.Is(s):
		return true
	case s.Launch == nil:
		return a.View.beyond.Agent(s.Agent) >= s.Epoch
	}
	return a.Unknown(s.Launch, s.Warp, 1<<uint(s.Lane), s.Epoch) == 0
}

// Unknown returns those of lanes of a warp whose epoch the actor does not know.
func (a *Actor) Unknown(l *Launch, warp, lanes, epoch uint32) uint32 {
	return a.View.Unknown(a.Launch, a.Block, l, warp, lanes, epoch)
}

// Unknown returns those of lanes of a warp of launch l whose epoch the view does not know. The view belongs to a thread
// of block ownBlock of launch own, or to an agent if own is nil.
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

// CoversGrid reports whether v knows all that o knows of the blocks of its launch, apart from what only the threads of
// o's block know. It may return false if that is not cheap to see.
func (v *View) CoversGrid(o *View) bool { return v.grid.Covers(o.grid) }

// GridUnknown is Unknown for a launch of its own, without what only the threads of its own block know.
func (v *View) GridUnknown(l *Launch, warp, lanes, epoch uint32) uint32 {
	return v.Unknown(l, noBlock, l, warp, lanes, epoch)
}

// noBlock is larger than the number of every block.
const noBlock = ^uint32(0)
