package order

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// logSize is the number of synchronisations that a Log keeps.
const logSize = 256

// Log holds the last synchronisations of a block, for messages.
type Log struct {
	ops []logged // index of the oldest, once there are logSize
	at  int      // of the oldest, when there are logSize
}

// logged is a synchronisation that began an epoch.
type logged struct {
	epoch, place uint32
	warp         uint32 // allWarps: all waiters of a barrier
	lanes        uint32
	kind         event.Kind
	order        event.Order
	scope        event.Scope
	barrier      uint8
	waits        bool
	address      uint64 // address of the first lane, for an access
}

const allWarps = ^uint32(0)

func (g *Log) add(epoch, warp, lanes uint32, e *event.Event) {
	x := logged{epoch, e.Place, warp, lanes, e.Kind, e.Order, e.Scope, e.Barrier, e.Flags&event.FlagWait != 0, e.Addr}
	if len(g.ops) < logSize {
		g.ops = append(g.ops, x)
		return
	}
	g.ops[g.at] = x
	g.at = (g.at + 1) % logSize
}

// addBarrier records the completion of a barrier for the arrivals that waited. full says that these are all live
// threads.
func (g *Log) addBarrier(epoch uint32, bar []arrival, id uint8, full bool) {
	e := event.Event{Kind: event.Arrive, Barrier: id, Flags: event.FlagWait}
	first := true
	for i := range bar {
		if a := &bar[i]; a.wait {
			full = full && (first || a.place == e.Place)
			e.Place, first = a.place, false
		}
	}
	if full {
		g.add(epoch, allWarps, 0, &e)
		return
	}
	for i := range bar {
		if a := &bar[i]; a.wait {
			e.Place = a.place
			for m := a.warps; m != 0; m &= m - 1 {
				g.add(epoch, uint32(bits.TrailingZeros32(m)), a.lanes, &e)
			}
		}
	}
}

// of calls f for the synchronisations of a lane of a warp of the block, oldest first, until f returns false.
func (g *Log) of(warp uint32, lane int, f func(x *logged) bool) {
	for _, part := range [...][]logged{g.ops[g.at:], g.ops[:g.at]} {
		for i := range part {
			x := &part[i]
			if (x.warp == allWarps || x.warp == warp && x.lanes>>uint(lane)&1 != 0) && !f(x) {
				return
			}
		}
	}
}

// After returns the first synchronisation of a thread after an epoch; nil if there is none.
func (g *Log) After(warp uint32, lane int, epoch uint32) *detect.Sync {
	var found *logged
	g.of(warp, lane, func(x *logged) bool {
		if x.epoch > epoch {
			found = x
		}
		return found == nil
	})
	return found.sync()
}

// Before returns the synchronisation that began an epoch of a thread, or the last one before; nil if there is none.
func (g *Log) Before(warp uint32, lane int, epoch uint32) *detect.Sync {
	var found *logged
	g.of(warp, lane, func(x *logged) bool {
		if x.epoch <= epoch {
			found = x
		}
		return x.epoch < epoch
	})
	return found.sync()
}

func (x *logged) sync() *detect.Sync {
	if x == nil {
		return nil
	}
	s := &detect.Sync{Place: x.place, What: detect.SyncName(x.kind, x.order, x.scope, x.barrier, x.waits)}
	if x.kind == event.WarpSync {
		s.Lanes = x.lanes
	}
	return s
}
