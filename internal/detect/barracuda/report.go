package barracuda

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/event"
)

// race is a conflict of the current access with an earlier one, in size bytes from addr on.
type race struct {
	thread, place uint32 // the earlier access
	write, atomic bool
	lane          int
	addr          uint64
	size          int
	same          bool // both belong to one execution of one instruction
}

// site is what messages need of the accesses at a place.
type site struct {
	order event.Order
	scope event.Scope
	known bool
}

// sites holds the places that accessed memory.
type sites struct {
	low  []site // by place
	high map[uint32]site
}

const lowSites = 1 << 20

func (d *Detector) note(e *event.Event) {
	s := site{e.Order, e.Scope, true}
	if e.Place >= lowSites {
		if d.sites.high == nil {
			d.sites.high = map[uint32]site{}
		}
		d.sites.high[e.Place] = s
		return
	}
	if int(e.Place) >= len(d.sites.low) {
		d.sites.low = append(d.sites.low, make([]site, int(e.Place)+1-len(d.sites.low))...)
	}
	d.sites.low[e.Place] = s
}

func (s *sites) at(place uint32) site {
	if place >= lowSites {
		return s.high[place]
	}
	return s.low[place]
}

// conflict records a race. Races of one lane's access with one earlier access are reported together.
func (d *Detector) conflict(a *access, lane int, addr uint64, size int, r race) {
	u := int(r.thread & 31)
	if r.write && r.thread>>5 == a.w.number && d.done>>uint(u)&1 != 0 && covers(a, u, addr, size) {
		if r.same = true; !d.sameValue && sameValue(a, lane, u, addr, size) {
			return
		}
	}
	if d.witness != nil {
		d.witness(a, lane, addr, size, r)
	}
	r.lane, r.addr, r.size = lane, addr, size
	if l := &d.last; l.size > 0 {
		if l.thread == r.thread && l.place == r.place && l.write == r.write && l.same == r.same && l.addr+uint64(l.size) == addr {
			l.size += size
			return
		}
		d.flush()
	}
	d.last = r
}

// covers reports whether lane u of the event accesses the bytes.
func covers(a *access, u int, addr uint64, size int) bool {
	at := a.b.AddrOf(a.e, u)
	return at <= addr && addr+uint64(size) <= at+uint64(a.e.Size)
}

// sameValue reports whether two lanes of a write write the same into the bytes that both cover.
func sameValue(a *access, x, y int, addr uint64, size int) bool {
	if a.e.Flags&event.FlagValues == 0 {
		return false
	}
	v, w := a.b.ValueOf(a.e, x), a.b.ValueOf(a.e, y)
	for i := addr; i < addr+uint64(size); i++ {
		if byteAt(v, i-a.b.AddrOf(a.e, x)) != byteAt(w, i-a.b.AddrOf(a.e, y)) {
			return false
		}
	}
	return true
}

func byteAt(words []uint64, i uint64) byte { return byte(words[i/8] >> (8 * (i % 8))) }

// flush reports the race recorded last.
func (d *Detector) flush() {
	if d.last.size == 0 {
		return
	}
	r, a := d.last, &d.acc
	d.last.size = 0
	warp := r.thread >> 5
	was := d.sites.at(r.place)
	f := detect.Facts{
		Earlier: detect.Access{Op: op(r.write, r.atomic), Order: was.order, Scope: was.scope, Space: a.e.Space, Place: r.place,
			Launch: d.launch, Warp: warp, Lane: int(r.thread & 31), Address: r.addr, Size: r.size},
		Later: detect.Access{Op: op(a.write, a.atomic), Order: a.e.Order, Scope: a.e.Scope, Space: a.e.Space, Place: a.e.Place,
			Launch: d.launch, Warp: a.w.number, Lane: r.lane, Address: r.addr, Size: r.size},
	}
	sameBlock := warp-a.w.block.first < a.wpb
	class := "inter-block race"
	switch {
	case warp == a.w.number:
		class = "divergence race"
	case sameBlock:
		class = "intra-block race"
	}
	switch {
	case r.atomic && a.atomic:
		f.Category = detect.ScopeRace
	case r.atomic || a.atomic:
		f.Category = detect.AtomicWithPlain
	case r.same:
		f.Category = detect.OneInstruction
	case sameBlock:
		f.Category = detect.SameBlock
	default:
		f.Category = detect.CrossBlock
	}
	d.Add(&findings.Race{Facts: f, Note: class})
}

func op(write, atomic bool) detect.Op {
	switch {
	case atomic:
		return detect.AtomicOp
	case write:
		return detect.Write
	}
	return detect.Read
}

// divergence is a barrier that only part of a warp reached.
type divergence struct {
	place  uint32
	launch event.Launch
	warp   uint32
	lane   int
}

// diverged records that off live lanes of a warp are not at the barrier that the others have reached: the premise of
// BAR fails.
func (d *Detector) diverged(e *event.Event, off int) {
	for k, n := range d.parts {
		if k.place == e.Place {
			d.parts[k] = n + off
			return
		}
	}
	d.parts[divergence{e.Place, d.launch, e.Warp, bits.TrailingZeros32(e.Mask)}] = off
}

// Findings implements detect.Detector.
func (d *Detector) Findings() []detect.Finding {
	out := d.Set.Findings()
	keys := slices.SortedFunc(maps.Keys(d.parts), func(x, y divergence) int { return cmp.Compare(x.place, y.place) })
	for _, k := range keys {
		out = append(out, detect.Finding{Class: detect.Divergence, Kind: barrierDivergence, Severity: detect.Error,
			Detector: baseName, Count: d.parts[k],
			Message:  fmt.Sprintf("lanes of a warp reach a barrier while %d others are on another path: a barrier is for all threads of the block (%s: barrier divergence)", d.parts[k], baseName),
			Fix:      "move the barrier to where all threads of the block pass it",
			Accesses: []detect.Access{{Op: detect.Wait, Doing: "arrives", Place: k.place, Launch: k.launch, Warp: k.warp, Lane: k.lane}}})
	}
	return out
}

const barrierDivergence detect.Kind = "barrier-divergence"

// MemoryBytes implements detect.Metered. It counts cells and what few locations have in addition, the clocks of warps,
// and S_x.
func (d *Detector) MemoryBytes() uint64 {
	n := d.words.Bytes() + d.bytes.Bytes()
	for _, m := range d.readClocks[1:] {
		n += m.size()
	}
	seen := clock.Seen{}
	for _, c := range d.resident {
		n += uint64(unsafe.Sizeof(*c)) + uint64(len(c.warps))*8
		for _, w := range c.warps {
			if w != nil {
				n += w.size(seen)
			}
		}
	}
	for _, c := range d.ended {
		n += uint64(unsafe.Sizeof(*c)) + uint64(cap(c.warps))*8
	}
	for _, s := range d.sync {
		n += uint64(unsafe.Sizeof(location{})) + uint64(unsafe.Sizeof(*s)) + s.all.Bytes(seen)
		for _, g := range s.own {
			n += 16 + g.Bytes(seen)
		}
	}
	return n
}

func (w *warp) size(seen clock.Seen) uint64 {
	n := uint64(unsafe.Sizeof(*w)) + uint64(cap(w.stack))*4 + uint64(cap(w.views))*uint64(unsafe.Sizeof(view{}))
	for i := range w.views {
		if v := &w.views[i]; v.nested != nil {
			n += uint64(unsafe.Sizeof(*v.nested))
		}
		n += w.views[i].rest.Bytes(seen)
	}
	for _, p := range w.waits {
		n += uint64(unsafe.Sizeof(*p)) + uint64(cap(p.batch.Addrs))*8
	}
	return n
}
