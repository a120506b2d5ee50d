package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/event"
)

const hostPlaceBase = 1 << 32

func (d *Detector) hostPlace(name string) uint32 {
	n, ok := d.hostPlaces[name]
	if !ok {
		n = uint32(len(d.hostPlaces))
		d.hostPlaces[name] = n
	}
	return n
}

func (k *class) site() uint64 {
	if k.host != "" {
		return hostPlaceBase + uint64(k.place)
	}
	return uint64(k.place)
}

// hit is races of the actor's lanes with an earlier access to [lo, hi): that of a lane of a warp at epoch clock.
type hit struct {
	cat    detect.Category
	class  uint32
	launch *launch // nil for the host
	warp   uint32
	lane   int
	clock  uint32
	lanes  uint32
	lo, hi uint64
}

// pairOf gives the places of the actor's class and another.
func (d *Detector) pairOf(class uint32) explain.Pair {
	return explain.PairOf(d.classes[class].site(), d.act.class.site())
}

// addresses adds [lo, hi) to the bytes concerned.
func (d *Detector) addresses(class uint32, lo, hi uint64) {
	space := uint64(0)
	if a := &d.act; a.shared {
		space = uint64(a.blk.info.ID)<<32 | uint64(a.blk.index) | 1<<63
	}
	d.findings.Bytes(d.pairOf(class), space, lo, hi)
}

func (d *Detector) hit(h hit) {
	d.findings.Add(d.pairOf(h.class), h.lanes, h.cat, func() detect.Facts { return d.facts(h) })
}

// facts gathers what a message says about a hit.
func (d *Detector) facts(h hit) detect.Facts {
	a := &d.act
	k := &d.classes[h.class]
	f := detect.Facts{Category: h.cat}
	f.Earlier = k.access(h.launch, h.lo, h.warp, h.lane)
	lane := bits.TrailingZeros32(h.lanes)
	f.Later = a.class.access(a.class.launch, h.lo, a.warp, lane)
	if l := h.launch; l != nil && h.clock != 0 {
		f.Earlier.Sync = l.logOf(h.warp/l.wpb).after(h.warp%l.wpb, h.lane, h.clock).sync()
	}
	if a.blk == nil {
		return f
	}
	f.Later.Sync = a.blk.log.before(a.wi, lane, a.blk.warps[a.wi].view(lane).clock).sync()
	if h.launch == a.blk.launch {
		f.Handover, f.Handed = d.handoverOf(h, lane)
		f.ByLeader = h.warp/a.blk.wpb != a.blk.index && d.byLeader(h)
		if f.Handover == nil && !f.ByLeader {
			f.Alone, f.TwoLocks = d.alone(h, lane)
		}
	}
	return f
}

// access describes an access of the class that touches the byte at addr.
func (k *class) access(l *launch, addr uint64, warp uint32, lane int) detect.Access {
	x := detect.Access{Op: detect.Read, Order: k.key.order, Scope: k.key.scope, Space: k.key.space, Place: k.key.place,
		Host: k.host, Warp: warp, Lane: lane, Address: addr, Size: int(k.key.size)}
	switch {
	case k.key.kind == event.Atomic:
		x.Op = detect.AtomicOp
	case k.side.Write:
		x.Op = detect.Write
	}
	if l == nil {
		x.Warp, x.Lane = 0, 0
		return x
	}
	x.Launch = l.info
	if n := uint64(k.key.size); n&(n-1) == 0 {
		x.Address = addr &^ (n - 1)
	}
	return x
}

// Findings gives the races found so far, sorted by their places.
func (d *Detector) Findings() []detect.Finding {
	d.performAll()
	return d.findings.Findings(Spec.Name)
}

// More implements detect.Capped.
func (d *Detector) More() (int, bool) { return d.findings.More() }
