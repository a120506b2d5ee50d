package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
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
	addresses addressSet
	// An example of the gravest category: the first seen.
	facts detect.Facts
}

// addressSet is a set of bytes: of global memory, or of the shared memory of a block. Bytes lie in chunks of a bit each,
// as large as the copies of a whole buffer ask for and as small as bytes far apart do.
type addressSet struct {
	chunks map[addressKey]*[chunkBytes / 64]uint64
	n      int
}

const chunkBytes = 512

type addressKey struct{ space, chunk uint64 }

func (s *addressSet) add(space, lo, hi uint64) {
	if s.chunks == nil {
		s.chunks = map[addressKey]*[chunkBytes / 64]uint64{}
	}
	for lo < hi {
		k := addressKey{space, lo / chunkBytes}
		c := s.chunks[k]
		if c == nil {
			c = new([chunkBytes / 64]uint64)
			s.chunks[k] = c
		}
		for end := min((k.chunk+1)*chunkBytes, hi); lo < end; {
			next := min((lo/64+1)*64, end)
			m := (^uint64(0) >> (64 - (next - lo))) << (lo % 64)
			w := &c[lo%chunkBytes/64]
			s.n += bits.OnesCount64(m &^ *w)
			*w |= m
			lo = next
		}
	}
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
	for i := range d.pairs {
		if d.pairs[i].class == id {
			return &d.pairs[i]
		}
	}
	p := pair{d.classes[id].site(), d.act.class.site()}
	if p.a > p.b {
		p.a, p.b = p.b, p.a
	}
	f := d.found[p]
	if f == nil {
		f = &finding{pair: p}
		d.found[p] = f
	}
	d.pairs = append(d.pairs, pairHit{class: id, f: f})
	return &d.pairs[len(d.pairs)-1]
}

// addresses adds [lo, hi) to the bytes concerned.
func (d *Detector) addresses(id uint32, lo, hi uint64) {
	space := uint64(0)
	if a := &d.act; a.shared {
		space = uint64(a.blk.info.ID)<<32 | uint64(a.blk.index) | 1<<63
	}
	d.pairOf(id).f.addresses.add(space, lo, hi)
}

func (d *Detector) hit(h hit) {
	d.hits++
	p := d.pairOf(h.class)
	p.lanes |= h.lanes
	if h.cat > p.f.cat {
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
		// Classes of one place count as one.
		for j := 0; j < i; j++ {
			if d.pairs[j].f == x.f {
				count = bits.OnesCount32(x.lanes &^ d.pairs[j].lanes)
				d.pairs[j].lanes |= x.lanes
				x.lanes = 0
				break
			}
		}
		x.f.count += count
	}
	d.pairs = d.pairs[:0]
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
	var fs []*finding
	for _, f := range d.found {
		fs = append(fs, f)
	}
	slices.SortFunc(fs, func(x, y *finding) int {
		if c := compare(x.pair.a, y.pair.a); c != 0 {
			return c
		}
		return compare(x.pair.b, y.pair.b)
	})
	out := make([]detect.Finding, len(fs))
	for i, f := range fs {
		out[i] = detect.NewRace(Spec.Name, &f.facts)
		out[i].Count, out[i].Addresses = f.count, f.addresses.n
	}
	return out
}

func compare(x, y uint64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
