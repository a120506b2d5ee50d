// Package readonly finds loads through the read-only cache (ld.global.nc, which __ldg and plain loads of const
// __restrict__ pointers compile to) of bytes that the same launch writes. The manual allows such a load only for memory
// that is not written while the kernel runs: the cache is not coherent, so synchronisation between the two does not
// help. Every pair of such a load and a write of the same byte is reported, in either order and by any threads, even by
// one thread. Texture fetches and surface reads may return old values of what the kernel has written before (CUDA C++
// Programming Guide, "Read/Write Coherency"): for these only the pairs in which the write came first are reported.
//
// Blind spots: writes by concurrent launches and by the host. These are races, which another detector reports.
package readonly

import (
	"fmt"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/event"
)

const (
	pageBytes = 4096
	// maxBytes is the limit for the records of a launch.
	maxBytes = 256 << 20
	// entryBytes is the approximate size of a page without records.
	entryBytes = 128
)

// Beside extends a detector to find such loads. The findings carry the detector's name. The detector must have
// NeedGlobal and NeedLaunch.
func Beside(d detect.Detector, name string, c detect.Config) detect.Detector {
	return &checker{Detector: d, races: findings.New(name, c), launches: map[uint32]*launch{}, room: maxBytes}
}

// checker is the extended detector. It keeps the running launches whose kernels have such loads.
type checker struct {
	detect.Detector
	races    *findings.Set
	launches map[uint32]*launch
	room     int // the limit for each launch
	notes    []string
}

// launch is the bytes that a launch has accessed.
type launch struct {
	info  event.Launch
	pages map[uint64]*page // by address / pageBytes
	bytes int              // of all records
	full  bool             // some records were not made
	last  *page
	at    uint64 // the number of the page last
}

// page is the accesses to one page: a record for each place and size.
type page struct{ loads, writes []*record }

// record is the bytes of a page that accesses of one place and size have touched.
type record struct {
	access  detect.Access          // what they have in common: without thread and address
	touched [pageBytes / 64]uint64 // a bit for each byte
	warps   []uint32               // the last warp to touch, indexed by offset in the page divided by the size
	lanes   []uint8
}

// Events implements event.Sink.
func (c *checker) Events(b *event.Batch) {
	begins := slices.ContainsFunc(b.Launches, func(l event.Launch) bool { return l.NonCoherent }) // or has begun earlier
	for i := 0; i < len(b.Events) && (begins || len(c.launches) > 0); i++ {
		e := &b.Events[i]
		if e.Kind == event.KernelBegin && b.Launches[e.Side].NonCoherent {
			c.launches[e.Launch] = &launch{info: b.Launches[e.Side], pages: map[uint64]*page{}}
		}
		l := c.launches[e.Launch]
		switch {
		case l == nil:
		case e.Kind == event.KernelEnd:
			if l.full {
				c.notes = append(c.notes, fmt.Sprintf("launch %d of %s: what it loads through the read-only cache and writes takes more than %d MiB to keep, "+
					"so not all of it was checked.", l.info.ID, l.info.Kernel, c.room>>20))
			}
			delete(c.launches, e.Launch)
		case e.Space != event.Global || e.Size == 0:
		case e.Flags&event.FlagTexture != 0:
			c.fetch(b, e, l)
		case e.Flags&event.FlagNonCoherent != 0, e.Flags&event.FlagWrite != 0:
			c.access(b, e, l)
		}
	}
	c.Detector.Events(b)
}

// access judges the accesses of lanes and records them.
func (c *checker) access(b *event.Batch, e *event.Event, l *launch) {
	load := e.Flags&event.FlagNonCoherent != 0
	var room [32]uint64
	addrs := b.Addresses(e, &room)
	var r *record
	number := ^uint64(0)
	for i, m := 0, e.Mask; m != 0; i, m = i+1, m&(m-1) {
		addr, lane := addrs[i], bits.TrailingZeros32(m)
		if i > 0 && addr == addrs[i-1] {
			continue // another lane at the same address
		}
		if n := addr / pageBytes; n != number {
			number, r = n, c.record(l, e, n, load)
		}
		if r == nil {
			continue
		}
		p := l.last
		others := p.loads
		if load {
			others = p.writes
		}
		at, size := addr%pageBytes, uint64(e.Size)
		ones := (uint64(1)<<size - 1) << (at % 64)
		for _, o := range others {
			if both := o.touched[at/64] & ones; both != 0 {
				c.found(l, r, o, addr&^63+uint64(bits.TrailingZeros64(both)), e.Warp, lane, addr)
			}
		}
		r.touched[at/64] |= ones
		r.warps[at/size], r.lanes[at/size] = e.Warp, uint8(lane)
	}
}

// record returns the record for an event in the page of a number, which becomes l.last. It returns nil if the limit is
// reached.
func (c *checker) record(l *launch, e *event.Event, number uint64, load bool) *record {
	if l.last == nil || l.at != number {
		p := l.pages[number]
		if p == nil {
			if l.bytes += entryBytes; l.bytes > c.room {
				l.full = true
				return nil
			}
			p = &page{}
			l.pages[number] = p
		}
		l.last, l.at = p, number
	}
	list := &l.last.writes
	if load {
		list = &l.last.loads
	}
	for _, r := range *list {
		if r.access.Place == e.Place && r.access.Size == int(e.Size) {
			return r
		}
	}
	n := pageBytes / int(e.Size)
	if l.bytes += pageBytes/8 + 5*n; l.bytes > c.room {
		l.full = true
		return nil
	}
	r := &record{warps: make([]uint32, n), lanes: make([]uint8, n), access: accessOf(e, l)}
	*list = append(*list, r)
	return r
}

// accessOf returns what the lanes of an event have in common.
func accessOf(e *event.Event, l *launch) detect.Access {
	op := detect.Write
	switch {
	case e.Flags&event.FlagNonCoherent != 0:
		op = detect.Read
	case e.Kind == event.Atomic:
		op = detect.AtomicOp
	}
	return detect.Access{Op: op, Order: e.Order, Scope: e.Scope, Space: e.Space, Place: e.Place, Launch: l.info, Size: int(e.Size),
		Texture: e.Flags&event.FlagTexture != 0}
}

// fetch judges the lanes of a texture fetch or a surface read against the writes before it. It need not be recorded,
// since later writes do not matter.
func (c *checker) fetch(b *event.Batch, e *event.Event, l *launch) {
	var room [32]uint64
	addrs := b.Addresses(e, &room)
	now := record{access: accessOf(e, l)}
	for i, m := 0, e.Mask; m != 0; i, m = i+1, m&(m-1) {
		addr := addrs[i]
		p := l.pages[addr/pageBytes]
		if p == nil {
			continue
		}
		at := addr % pageBytes
		ones := (uint64(1)<<e.Size - 1) << (at % 64)
		for _, o := range p.writes {
			if both := o.touched[at/64] & ones; both != 0 {
				c.found(l, &now, o, addr&^63+uint64(bits.TrailingZeros64(both)), e.Warp, bits.TrailingZeros32(m), addr)
			}
		}
	}
}

// found reports an access of record now to addr that shares a byte with an earlier access of record old.
func (c *checker) found(l *launch, now, old *record, shared uint64, warp uint32, lane int, addr uint64) {
	later, earlier := now.access, old.access
	later.Warp, later.Lane, later.Address = warp, lane, addr
	at := shared % pageBytes / uint64(earlier.Size)
	earlier.Warp, earlier.Lane = old.warps[at], int(old.lanes[at])
	earlier.Address = shared &^ (uint64(earlier.Size) - 1)
	c.races.Add(&findings.Race{Facts: detect.Facts{Category: detect.NonCoherentLoad, Earlier: earlier, Later: later}})
}

// Findings returns the detector's findings followed by those about read-only loads.
func (c *checker) Findings() []detect.Finding {
	return append(c.Detector.Findings(), c.races.Findings()...)
}

// More implements detect.Capped.
func (c *checker) More() (int, bool) {
	n, atLeast := c.races.More()
	if d, ok := c.Detector.(detect.Capped); ok {
		m, more := d.More()
		n, atLeast = n+m, atLeast || more
	}
	return n, atLeast
}

// MemoryBytes implements detect.Metered.
func (c *checker) MemoryBytes() (n uint64) {
	for _, l := range c.launches {
		n += uint64(min(l.bytes, c.room))
	}
	if d, ok := c.Detector.(detect.Metered); ok {
		n += d.MemoryBytes()
	}
	return n
}

// Notes implements detect.Noted.
func (c *checker) Notes() []string {
	if d, ok := c.Detector.(detect.Noted); ok {
		return append(d.Notes(), c.notes...)
	}
	return c.notes
}
