package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// A tensor map is read through the tensormap proxy (PTX ISA, "membar / fence", fence.proxy.tensormap). What the launch
// writes to one must be ordered before the copy that uses it, like any write, and a fence of that map must lie between
// the two. Only the acquiring fence is required here: the releasing one may be part of tensormap.cp_fenceproxy. What
// the host or an earlier launch wrote needs no fence.

// mapFences are the tensor map fences of a launch.
type mapFences struct {
	list []mapFence
	lost bool // fences have been dropped
}

// mapFence is a fence of the tensor map at an address.
type mapFence struct {
	proxyFence
	addr uint64
}

// tensorMap performs a read of a tensor map, or a fence of one.
func (d *Detector) tensorMap(e *event.Event, blk *order.Block, wi uint32) {
	if d.defers {
		d.breakInterval(d.interval(blk))
	}
	lane := bits.TrailingZeros32(e.Mask)
	if e.Kind == event.MapFence {
		d.maps.list = append(d.maps.list, mapFence{proxyFence{block: blk.Index, warp: wi, lanes: e.Mask, view: blk.ViewOf(wi, lane)}, e.Addr})
		if over := len(d.maps.list) - maxProxyFences; over > 0 {
			d.maps.list, d.maps.lost = slices.Delete(d.maps.list, 0, over), true
			d.dropped = true
		}
		blk.Synchronised(wi, e)
		return
	}
	as := event.Event{Kind: event.Load, Flags: event.FlagRead, Launch: e.Launch, Warp: e.Warp, Place: e.Place, Mask: e.Mask, Space: e.Space, Size: 16}
	a := history.Access{Site: d.site(&as), Actor: blk.Actor(wi, lane), Executed: e.Mask, From: e.Addr, End: e.Addr + uint64(e.Aux)}
	blk.Accesses(wi, e.Mask, false)
	d.compareCopies(&a, blk)
	d.history.Judge(&a, d.race)
	d.findings.Settle()
	d.unfencedMap(&a)
	d.history.Record(&a, 0)
}

// unfencedMap reports the writes of the launch that happen before a read of a tensor map with no fence of the map
// between.
func (d *Detector) unfencedMap(a *history.Access) {
	if d.maps.lost {
		return
	}
	d.history.Before(a, func(r history.Race) {
		if !slices.ContainsFunc(d.maps.list, func(f mapFence) bool { return f.addr == a.From && f.covers(&r.Earlier.Stamp, &a.Actor) }) {
			r.Category = detect.NoMapFence
			d.race(a, r)
		}
	})
	d.findings.Settle()
}
