package order

import (
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// Within a block, or a cluster, clocks convey the knowledge that operations are complete. To threads of other blocks
// they do not: what the blocks of a launch know together would grow with their number, and each release would carry all
// of it. Other blocks need that knowledge only if the operations accessed global memory. For such operations, the
// threads are recorded that released knowledge of the completion beyond their block. A thread that such a release
// happens before knows of the completion too.

// told holds the releases beyond their block by threads that knew that operations were complete.
type told struct {
	launch *Launch
	list   []tells
}

type tells struct {
	count       uint32 // the operations were known to be complete up to this count
	warp, lanes uint32 // warp is numbered within the grid
	epoch       uint32
}

// Watch enables Told for operations of a launch.
func (o *Order) Watch(l *Launch, operations uint32) {
	if o.told == nil {
		o.told = map[uint32]*told{}
	}
	if o.told[operations] == nil {
		o.told[operations] = &told{launch: l}
	}
}

// Told reports whether an actor of another block knows that operations are complete up to a count.
func (o *Order) Told(a *Actor, operations, count uint32) bool {
	t := o.told[operations]
	return t != nil && slices.ContainsFunc(t.list, func(x tells) bool {
		return x.count >= count && a.Unknown(t.launch, x.warp, x.lanes, x.epoch) != x.lanes
	})
}

// unwatch drops the operations of a launch that has ended.
func (o *Order) unwatch(l *Launch) {
	for id, t := range o.told {
		if t.launch == l {
			delete(o.told, id)
		}
	}
}

// tell records that lanes release a view beyond their block.
func (b *Block) tell(v *View, wi, lanes uint32) {
	o := b.order
	if len(o.told) == 0 || b.clustered {
		return
	}
	for id, count := range v.beyond.AgentsFrom(FirstOperation) {
		t := o.told[id]
		if t == nil {
			continue
		}
		x := tells{count, b.Index*b.WarpsPerBlock + wi, lanes, v.Epoch}
		if n := len(t.list); n == 0 || t.list[n-1].count != count || t.list[n-1].warp != x.warp || lanes&^t.list[n-1].lanes != 0 {
			t.list = append(t.list, x)
		}
	}
}

// within returns the part of what a thread knows beyond its launch that threads of other blocks learn from it.
func (b *Block) within(f *clock.Foreign) *clock.Foreign {
	if b.clustered {
		return f
	}
	return f.Before(FirstOperation)
}
