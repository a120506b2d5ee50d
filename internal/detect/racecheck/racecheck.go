package racecheck

import (
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// Spec is the detector.
var Spec = detect.Spec{
	Name:   "racecheck",
	Doc:    "Hazards in shared memory without a barrier between the accesses, as in Compute Sanitizer's racecheck.",
	Source: "NVIDIA, Compute Sanitizer manual, \"Racecheck Tool\"",
	Needs:  event.NeedShared | event.NeedSync | event.NeedValues | event.NeedLaunch,
	New: func(c detect.Config) detect.Detector {
		return &Detector{Set: findings.New("racecheck", c), memory: shadow.New[cell](granule)}
	},
}

// granule is the number of bytes of shared memory that share a cell.
const granule = 4

// Detector is one run. It handles one kernel at a time.
type Detector struct {
	*findings.Set
	memory  *shadow.Memory[cell]
	launch  event.Launch
	running bool
	blocks  []*block // by number; nil: not begun, or ended
	lanes   []uint32 // scratch space for __syncwarp
	serial  uint32   // number of the current event
	number  uint32   // number of its block
}

// cell holds the accesses of a granule that later ones are compared with.
type cell struct {
	records []record  // uses few first
	few     [4]record // as many as the tile of a stencil needs
}

// record is the access of one thread, or the same access by several lanes of a warp that do not write.
type record struct {
	serial uint32 // number of its event
	warp   uint32 // number within the block
	lanes  uint32
	with   uint32 // all lanes of the event
	epoch  uint32
	place  uint32
	value  uint32 // what a write left in the bytes of the granule
	addr   uint32
	size   uint8
	bytes  uint8 // a bit for each byte of the granule
	op     op
	valued bool
}

type op uint8

const (
	read op = iota
	write
	atomic
)

// Events implements event.Sink.
func (d *Detector) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind == event.KernelBegin {
			d.begin(&b.Launches[e.Side])
		}
		if !d.running || e.Launch != d.launch.ID {
			continue
		}
		switch e.Kind {
		case event.KernelEnd:
			d.running = false
		case event.Load, event.Store, event.Atomic:
			if e.Space == event.Shared {
				d.access(b, e)
			}
		case event.Arrive:
			c, w := d.block(e.Warp)
			c.arrive(w, e.Mask, &c.bars[e.Barrier%16], e.Flags&event.FlagWait != 0)
		case event.BarrierDone:
			c, _ := d.block(e.Warp)
			c.done(&c.bars[e.Barrier%16])
		case event.WarpSync:
			c, w := d.block(e.Warp)
			clear(d.lanes)
			d.lanes[w] = e.Mask
			c.join(d.lanes, nil)
		case event.Exit:
			d.exit(e)
		}
	}
}

func (d *Detector) begin(l *event.Launch) {
	d.launch, d.running = *l, true
	d.memory.Clear()
	d.blocks = make([]*block, l.Grid.Count())
	d.lanes = make([]uint32, l.WarpsPerBlock())
}

// block returns the block of a warp, and the warp's number in it.
func (d *Detector) block(w uint32) (*block, uint32) {
	n := uint32(len(d.lanes))
	c := &d.blocks[w/n]
	if *c == nil {
		*c = newBlock(&d.launch)
	}
	return *c, w % n
}

func (d *Detector) exit(e *event.Event) {
	c, _ := d.block(e.Warp)
	if c.live -= bits.OnesCount32(e.Mask); c.live <= 0 {
		n := e.Warp / uint32(len(d.lanes))
		d.memory.EndWindow(shadow.Window{Launch: e.Launch, Block: n})
		d.blocks[n] = nil
	}
}

// access judges the lanes of an access.
func (d *Detector) access(b *event.Batch, e *event.Event) {
	d.serial++
	c, w := d.block(e.Warp)
	d.number = e.Warp / uint32(len(d.lanes))
	window := shadow.Window{Launch: e.Launch, Block: d.number}
	now := record{serial: d.serial, warp: w, with: e.Mask, place: e.Place, size: e.Size}
	switch e.Kind {
	case event.Store:
		now.op, now.valued = write, e.Flags&event.FlagValues != 0
	case event.Atomic:
		now.op = atomic
	}
	if e.Kind != event.Load {
		d.each(b, e, c, &now, window, e.Mask)
		return
	}
	for left := e.Mask; left != 0; {
		s := b.Strip(e, left)
		left &^= s.Mask
		if s.Same() {
			d.same(b, e, c, &now, window, s)
		} else {
			d.each(b, e, c, &now, window, s.Mask)
		}
	}
}

// same judges lanes that load the same bytes. Lanes that know the same become one reader if none of them can race with
// the recorded accesses.
func (d *Detector) same(b *event.Batch, e *event.Event, c *block, now *record, window shadow.Window, s event.Strip) {
	p := c.warps[now.warp].part(1 << s.Low())
	now.lanes, now.epoch, now.addr = s.Mask, p.epoch, uint32(s.Addr)
	addr := s.Addr
	apart := p.mask&s.Mask != s.Mask
	for at := addr &^ (granule - 1); at < addr+uint64(e.Size) && !apart; at += granule {
		now.cover(at, addr, nil)
		apart = d.memory.Shared(window, at).conflicts(now, p, c.floor)
	}
	if apart {
		d.each(b, e, c, now, window, s.Mask)
		return
	}
	for at := addr &^ (granule - 1); at < addr+uint64(e.Size); at += granule {
		now.cover(at, addr, nil)
		d.judge(d.memory.Shared(window, at), now, p, c.floor)
	}
}

// conflicts reports whether a lane of a load may race with a recorded access.
func (c *cell) conflicts(now *record, p *part, floor uint32) bool {
	for i := range c.records {
		r := &c.records[i]
		if r.epoch > floor && r.bytes&now.bytes != 0 && r.op != read && p.clock.Unknown(r.warp, r.lanes, r.epoch) != 0 {
			return true
		}
	}
	return false
}

// each judges lanes one after the other.
func (d *Detector) each(b *event.Batch, e *event.Event, c *block, now *record, window shadow.Window, lanes uint32) {
	var p *part
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		now.lanes = 1 << lane
		if p == nil || p.mask&now.lanes == 0 {
			p = c.warps[now.warp].part(now.lanes)
			now.epoch = p.epoch
		}
		addr := b.AddrOf(e, lane)
		now.addr = uint32(addr)
		var value []uint64
		if now.valued {
			value = b.ValueOf(e, lane)
		}
		for at := addr &^ (granule - 1); at < addr+uint64(e.Size); at += granule {
			now.cover(at, addr, value)
			d.judge(d.memory.Shared(window, at), now, p, c.floor)
		}
	}
}

// cover sets the bytes and the value of an access at addr for the granule at the address at.
func (r *record) cover(at, addr uint64, value []uint64) {
	lo, hi := max(at, addr)-at, min(at+granule, addr+uint64(r.size))-at
	r.bytes = uint8(1<<hi - 1<<lo)
	if r.valued {
		if at < addr {
			r.value = uint32(value[0] << (8 * (addr - at)))
		} else {
			from := at - addr
			r.value = uint32(value[from/8] >> (8 * (from % 8)))
		}
	}
}

// judge compares an access with the recorded ones, and records it. Its thread belongs to p.
func (d *Detector) judge(c *cell, now *record, p *part, floor uint32) {
	if c.records == nil {
		c.records = c.few[:0]
	}
	kept, merged := 0, false
	for i := range c.records {
		r := &c.records[i]
		if r.epoch <= floor {
			continue
		}
		if over := r.bytes & now.bytes; over != 0 {
			d.pair(r, now, over, p.clock)
			switch {
			case now.op == write:
				r.bytes &^= over
			case r.op != now.op || r.warp != now.warp:
			case r.serial == now.serial && r.epoch == now.epoch && r.bytes == now.bytes:
				r.lanes |= now.lanes
				merged = true
			case r.bytes == over:
				r.lanes &^= now.lanes
			}
			if r.bytes == 0 || r.lanes == 0 {
				continue
			}
		}
		if kept != i {
			c.records[kept] = *r
		}
		kept++
	}
	c.records = c.records[:kept]
	if !merged {
		c.records = append(c.records, *now)
	}
}

// pair judges two accesses that have bytes of a granule in common.
func (d *Detector) pair(was, now *record, over uint8, known *clock.Block) {
	if was.op == now.op && now.op != write {
		return
	}
	lanes := was.lanes
	if was.warp == now.warp {
		lanes &^= now.lanes
	}
	if lanes == 0 { // usually the thread itself
		return
	}
	if lanes = known.Unknown(was.warp, lanes, was.epoch); lanes == 0 {
		return
	}
	lockstep := false
	if was.warp == now.warp {
		apart := lanes &^ now.with
		if lockstep = was.with&now.lanes != 0 || apart == 0; !lockstep {
			lanes = apart
		}
	}
	same := was.valued && now.valued && (was.value^now.value)&spread(over) == 0
	r := findings.Race{Note: hazard(was.op, now.op), Info: same}
	switch {
	case same:
		r.Facts.Category = detect.SameValueRace
	case was.serial == now.serial:
		r.Facts.Category = detect.OneInstruction
	case lockstep:
		r.Facts.Category = detect.LockstepRace
	case was.op == atomic || now.op == atomic:
		r.Facts.Category = detect.AtomicWithPlain
	default:
		r.Facts.Category = detect.SameBlock
	}
	r.Facts.Earlier, r.Facts.Later = d.side(was, lanes), d.side(now, now.lanes)
	d.Add(&r)
}

// hazard returns the manual's name for two accesses in that order.
func hazard(was, now op) string {
	switch {
	case now == read:
		return "RAW hazard"
	case was == read:
		return "WAR hazard"
	}
	return "WAW hazard"
}

// spread returns a mask with the bits of the given bytes.
func spread(bytes uint8) (out uint32) {
	for ; bytes != 0; bytes &= bytes - 1 {
		out |= 0xff << (8 * bits.TrailingZeros8(bytes))
	}
	return out
}

// side returns a record as an access for findings, by the lowest of lanes.
func (d *Detector) side(r *record, lanes uint32) detect.Access {
	a := detect.Access{Space: event.Shared, Place: r.place, Launch: d.launch, Warp: d.number*uint32(len(d.lanes)) + r.warp,
		Lane: bits.TrailingZeros32(lanes), Address: uint64(r.addr), Size: int(r.size)}
	switch r.op {
	case read:
		a.Op = detect.Read
	case write:
		a.Op = detect.Write
	case atomic:
		a.Op, a.Order, a.Scope = detect.AtomicOp, event.Relaxed, event.ScopeCTA
	}
	return a
}

// MemoryBytes implements detect.Metered.
func (d *Detector) MemoryBytes() uint64 {
	n := d.memory.Bytes() + uint64(len(d.blocks))*8
	d.memory.Each(func(c *cell) {
		if more := cap(c.records); more > len(c.few) {
			n += uint64(more) * uint64(unsafe.Sizeof(record{}))
		}
	})
	seen := clock.Seen{}
	for _, c := range d.blocks {
		if c == nil {
			continue
		}
		n += uint64(unsafe.Sizeof(*c))
		for i := range c.bars {
			n += uint64(len(c.bars[i].waiting))*4 + c.bars[i].left.Bytes(seen)
		}
		for i := range c.warps {
			n += uint64(unsafe.Sizeof(warp{})) + uint64(cap(c.warps[i].parts))*uint64(unsafe.Sizeof(part{}))
			for _, p := range c.warps[i].parts {
				n += p.clock.Bytes(seen)
			}
		}
	}
	return n
}
