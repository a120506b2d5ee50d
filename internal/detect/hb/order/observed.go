package order

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// What explanations of races ask the order.

// writer is the thread that made the last strong write of a variable.
type writer struct {
	warp uint32 // in the grid
	lane int
}

// Observed says whether a strong read by a lane of a warp of the block would observe a strong write of another thread of its
// launch, and then whether that is of the same block, and whether the two are morally strong.
func (b *Block) Observed(wi uint32, lane int, s *Strong) (others, within, inScope bool) {
	if !s.Reads {
		return false, false, false
	}
	v := b.memory(s.Shared).find(s.Address, s.Size)
	if v == nil || v.launch != b.Launch || v.writer == (writer{b.Index*b.WarpsPerBlock + wi, lane}) {
		return false, false, false
	}
	return true, v.block == b.Index, v.meets(b, s.Wide)
}

// Over says that all threads of the block have exited.
func (b *Block) Over() bool { return b.alive == 0 }

// Logged is a synchronisation of a Log.
type Logged struct {
	Epoch, Place uint32
	Kind         event.Kind
	Order        event.Order
	Scope        event.Scope
	Waits        bool // of a barrier
	Sync         *detect.Sync
}

// Releases says that it is a release operation.
func (x *Logged) Releases() bool {
	return x.Kind == event.Store || x.Kind == event.Atomic && x.Order >= event.Release
}

// Acquires says that it is an acquire operation.
func (x *Logged) Acquires() bool {
	return x.Kind == event.Load || x.Kind == event.Atomic && x.Order >= event.Acquire && x.Order != event.Release
}

// Each calls f for the synchronisations of a lane of a warp of the block, the oldest first.
func (g *Log) Each(warp uint32, lane int, f func(Logged)) {
	g.of(warp, lane, func(x *logged) bool {
		f(Logged{x.epoch, x.place, x.kind, x.order, x.scope, x.waits, x.sync()})
		return true
	})
}

// Lost says that synchronisations after an epoch have been forgotten.
func (g *Log) Lost(epoch uint32) bool {
	return g != nil && len(g.ops) == logSize && g.ops[g.at].epoch > epoch+1
}

// Epoch is that of a lane of a warp of the block now.
func (b *Block) Epoch(wi uint32, lane int) uint32 { return b.warps[wi].view(lane).Epoch }
