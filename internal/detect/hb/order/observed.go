package order

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// The functions of this file serve explanations of races.

// Observed adds a lane of a warp of the block to seen if its strong read would observe a strong write by another thread
// of its launch, or by another device.
func (b *Block) Observed(wi uint32, lane int, s *Strong, seen *Observations) {
	if !s.Reads {
		return
	}
	v := b.memory(s.Shared).find(s.Address, s.Size)
	switch {
	case v == nil:
	case v.launch != b.Launch.number:
		if b.elsewhere(v) {
			seen.addElsewhere(lane, v.morallyStrong(b, s))
		}
	case v.block != b.Index || v.writer != threadOf(wi, lane):
		seen.add(lane, v.block == b.Index, v.morallyStrong(b, s))
	}
}

// Chains is Order.Chains.
func (b *Block) Chains() ChainID { return b.order.chains }

// Epoch returns the last epoch that a thread of the block has begun.
func (b *Block) Epoch() uint32 { return b.number }

// Over reports whether all threads of the block have exited.
func (b *Block) Over() bool { return b.alive == 0 }

// Released returns the last synchronisation of a thread after an epoch that releases what the thread did before, and
// its scope. It is a fence not later than the epoch until, or a release operation at a place.
func (g *Log) Released(warp uint32, lane int, after, until, place uint32) (s *detect.Sync, scope event.Scope) {
	return g.last(warp, lane, func(x *logged) bool {
		return x.epoch > after && (x.kind == event.Fence && x.epoch <= until ||
			x.place == place && (x.kind == event.Store || x.kind == event.Atomic && x.order >= event.Release))
	})
}

// Acquired returns the last synchronisation of a thread after an epoch that acquires what the thread observed at an
// address, and its scope. It is a fence, an acquire operation at a place, or an acquire operation of this lane alone on
// the address. The last case is needed for grid barriers: a thread arrives by an atomic addition and polls the same
// word by another instruction.
func (g *Log) Acquired(warp uint32, lane int, after, place uint32, address uint64) (s *detect.Sync, scope event.Scope) {
	return g.last(warp, lane, func(x *logged) bool {
		return x.epoch > after && (x.kind == event.Fence || (x.place == place || x.address == address && x.lanes == 1<<lane) &&
			(x.kind == event.Load || x.kind == event.Atomic && x.order >= event.Acquire && x.order != event.Release))
	})
}

// Waited reports whether a thread waited at a barrier of the block in an epoch in (after, until].
func (g *Log) Waited(warp uint32, lane int, after, until uint32) bool {
	return g.Met(warp, lane, 0, after, until) != 0
}

// Met returns the epoch begun by the first barrier in (after, until] at which a thread waited: a barrier of the block,
// or a bar.warp.sync with lanes of others. It returns 0 if there is none.
func (g *Log) Met(warp uint32, lane int, others, after, until uint32) (epoch uint32) {
	g.of(warp, lane, func(x *logged) bool {
		if (x.kind == event.Arrive && x.waits || x.kind == event.WarpSync && x.lanes&others != 0) && x.epoch > after && x.epoch <= until {
			epoch = x.epoch
		}
		return epoch == 0
	})
	return epoch
}

// Signalled reports whether another thread of the block has released what it knows since a thread last waited at a
// barrier. That thread may have signalled on behalf of the whole block.
func (g *Log) Signalled(warp uint32, lane int) (yes bool) {
	for _, part := range [...][]logged{g.ops[g.at:], g.ops[:g.at]} {
		for i := range part {
			switch x := &part[i]; {
			case x.kind == event.Arrive && x.waits && (x.warp == allWarps || x.warp == warp && x.lanes>>uint(lane)&1 != 0):
				yes = false
			case (x.warp != warp || x.lanes&^(1<<uint(lane)) != 0) && (x.kind == event.Fence || x.kind == event.Store || x.kind == event.Atomic && x.order >= event.Release):
				yes = true
			}
		}
	}
	return yes
}

// last returns the last synchronisation of a thread for which is returns true, and its scope; nil if there is none.
func (g *Log) last(warp uint32, lane int, is func(x *logged) bool) (s *detect.Sync, scope event.Scope) {
	var found *logged
	g.of(warp, lane, func(x *logged) bool {
		if is(x) {
			found = x
		}
		return true
	})
	if found != nil {
		scope = found.scope
	}
	return found.sync(), scope
}

// Lost reports whether synchronisations after an epoch are no longer in the log.
func (g *Log) Lost(epoch uint32) bool {
	return g != nil && len(g.ops) == logSize && g.ops[g.at].epoch > epoch+1
}

// Epochs are the epochs of the lanes of a warp at a moment.
type Epochs struct{ views views }

// Epochs returns the current epochs of a warp of the block.
func (b *Block) Epochs(wi uint32) Epochs {
	w := &b.warps[wi]
	w.lent = w.each != nil
	return Epochs{w.views}
}

// Of returns the epoch of a lane.
func (x *Epochs) Of(lane int) uint32 { return x.views.view(lane).Epoch }
