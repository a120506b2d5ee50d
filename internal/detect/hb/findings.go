package hb

import (
	"cmp"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/event"
)

// pair is two places, the smaller first. Names of host operations are numbered after all places.
type pair struct{ a, b uint64 }

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

// finding is what is known of the races of a pair of places.
type finding struct {
	pair      pair
	cat       detect.Category // the gravest so far
	count     int
	beyond    bool // it is not kept: only its category counts
	op        int  // one more than the number of its first pairHit of the current operation
	addresses explain.AddressSet
	// An example of the gravest category: the first seen.
	facts detect.Facts
}

// pairHit is the races of the current operation with accesses of a class.
type pairHit struct {
	class uint32
	lanes uint32
	f     *finding
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

// pairOf gives the tally of the current operation against accesses of a class.
func (d *Detector) pairOf(id uint32) *pairHit {
	if int(id) < len(d.pairAt) {
		if at := d.pairAt[id]; at != 0 {
			return &d.pairs[at-1]
		}
	} else {
		d.pairAt = append(d.pairAt, make([]uint32, len(d.classes)-len(d.pairAt))...)
	}
	p := pair{d.classes[id].site(), d.act.class.site()}
	if p.a > p.b {
		p.a, p.b = p.b, p.a
	}
	d.pairs = append(d.pairs, pairHit{class: id, f: d.findingOf(p)})
	d.pairAt[id] = uint32(len(d.pairs))
	return &d.pairs[len(d.pairs)-1]
}

// findingOf gives what is known of a pair of places.
func (d *Detector) findingOf(p pair) *finding {
	f := d.found.Get(p)
	if f != nil {
		return f
	}
	severity, beyond := d.found.Beyond(p)
	if !beyond {
		f = &finding{pair: p}
		d.found.Put(p, f)
		return f
	}
	// One object for all operations on the pair, so that classes of the same places share it in settle.
	for i := range d.pairs {
		if f := d.pairs[i].f; f.beyond && f.pair == p {
			return f
		}
	}
	return &finding{pair: p, beyond: true, cat: gravest(severity)}
}

// gravest is the gravest category of a severity.
func gravest(s detect.Severity) detect.Category {
	for c := detect.CrossLaunch; c > detect.NoRace; c-- {
		if c.Severity() == s {
			return c
		}
	}
	return detect.NoRace
}

// addresses adds [lo, hi) to the bytes concerned.
func (d *Detector) addresses(id uint32, lo, hi uint64) {
	space := uint64(0)
	if a := &d.act; a.shared {
		space = uint64(a.blk.info.ID)<<32 | uint64(a.blk.index) | 1<<63
	}
	if f := d.pairOf(id).f; !f.beyond {
		f.addresses.Add(space, lo, hi)
	}
}

func (d *Detector) hit(h hit) {
	d.hits++
	p := d.pairOf(h.class)
	p.lanes |= h.lanes
	if h.cat > p.f.cat {
		if p.f.beyond { // graver than the pair was when it was let go
			p.f.beyond = false
			d.found.Put(p.f.pair, p.f)
		}
		p.f.cat = h.cat
		p.f.facts = d.facts(h)
	}
}

// settle counts the races of the current operation: for each pair of places the threads whose access raced with any
// earlier one.
func (d *Detector) settle() {
	for i := range d.pairs {
		x := &d.pairs[i]
		count := bits.OnesCount32(x.lanes)
		if x.f.op == 0 {
			x.f.op = i + 1
		} else { // classes of one place count as one
			first := &d.pairs[x.f.op-1]
			count = bits.OnesCount32(x.lanes &^ first.lanes)
			first.lanes |= x.lanes
			x.lanes = 0
		}
		x.f.count += count
	}
	for i := range d.pairs {
		d.pairs[i].f.op = 0
		d.pairAt[d.pairs[i].class] = 0
	}
	if len(d.pairs) > 0 {
		d.pairs = d.pairs[:0]
		d.found.Trim()
	}
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
		f.Handover = d.handoverOf(h, lane)
		f.Alone = f.Handover == nil && d.alone(h, lane)
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
	keys := d.found.Keys()
	out := make([]detect.Finding, len(keys))
	for i, p := range keys {
		f := d.found.Get(p)
		out[i] = detect.NewRace(Spec.Name, &f.facts)
		out[i].Count, out[i].Addresses = f.count, f.addresses.Len()
	}
	return out
}

// More implements detect.Capped.
func (d *Detector) More() (int, bool) { return d.found.More() }

func newFindings(most int) *detect.Shortlist[pair, finding] {
	return detect.NewShortlist(most, func(x, y pair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) },
		func(f *finding) (detect.Severity, detect.Kind) { return f.facts.Category.Severity(), f.facts.Kind() })
}
