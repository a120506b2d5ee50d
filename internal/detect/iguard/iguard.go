// Package iguard is iGUARD as described by two papers that compare themselves with it (PreDataR, sections 3 and 6;
// HiRace, sections II and V-D). It is the analysis of ScoRD (package scord) in software, for global and shared memory,
// with support for independent thread scheduling, and with one prior reader and one prior writer of each word.
//
// A load is compared with the last write of the word, and a write with the last write and the last read. Two accesses
// by different threads race in two cases:
//
//   - They are by one warp whose lanes had parted at one of the two accesses, and neither a __syncwarp of the warp nor
//     a barrier lies between.
//   - They are by one block with no barrier between, or by different blocks, and a condition of ScoRD's table IV holds.
//     Either the earlier access is atomic, by another block and of block scope. Or not both are atomic, and one of
//     these holds: the earlier warp has executed no fence since (of device scope, between blocks); locks are held, but
//     none in common; one of the two accesses is neither volatile nor atomic.
//
// Counters are as wide as in the metadata of the tool that the authors released (csl-iisc/iGUARD-SOSP21): a barrier ID
// of 8 bits, and fence IDs and a __syncwarp ID of 6 bits. An access exactly 256 barriers, 64 fences or 64 __syncwarps
// later finds the same IDs, which causes false alarms. As in the release, a lock of block scope at one address is a
// different lock in each block. With option block-lock=per-address there is one lock for each address and scope, as in
// the text of ScoRD.
//
// Blind spots, as published: all readers except the last are forgotten (HiRace's listing 3); an access right after the
// same thread's critical section is in program order with it (PreDataR's figure 10); lanes of one instruction never
// race; a fence by the earlier warp orders it with everyone. PreDataR's authors measured that the published tool misses
// both of their races within a warp, one in a single instruction and one in two. This package also misses races of
// lanes that run together (their figure 1). If the lanes in their test had parted, option its=off behaves like the
// published tool. Like ScoRD, iGUARD reports critical sections and handovers with weak accesses. Accesses by the host
// and by other kernels are not checked.
//
// The words that lanes of one warp have accessed in lane order are stored as one record until they differ (package
// shadow, Lines). The findings do not depend on that.
package iguard

import (
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

var (
	its       = detect.Option{Name: "its", Doc: "whether lanes of one warp that had diverged can race", Values: []string{"on", "off"}}
	blockLock = detect.Option{Name: "block-lock", Doc: "whether locks of block scope at one address are one lock for each block, as in the authors' release, or a single lock",
		Values: []string{"per-block", "per-address"}}
)

// Spec is the detector.
var Spec = spec()

func spec() detect.Spec {
	s := detect.Spec{Name: "iguard", Doc: "iGUARD: ScoRD's analysis in software, in shared memory too, one prior reader and writer of each word.",
		Source:  "Kamath, Basu: iGUARD (SOSP 2021), as PreDataR and HiRace describe it; widths of counters as in the released tool",
		Needs:   event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch,
		Options: []detect.Option{its, blockLock}}
	s.New = func(c detect.Config) detect.Detector {
		return &Detector{Set: findings.New(s.Name, c), its: s.Option(c, its.Name) == "on",
			perBlockLocks: s.Option(c, blockLock.Name) == "per-block", memory: shadow.NewLines[cell](granule), locks: lock.New(lock.ScoRD())}
	}
	return s
}

// granule is the number of bytes of memory that share metadata.
const granule = 4

// counterMask is the mask of fence and __syncwarp IDs.
const counterMask = 1<<6 - 1

// Detector is one run.
type Detector struct {
	*findings.Set
	its           bool
	perBlockLocks bool // locks of block scope at one address are different locks in different blocks
	memory        *shadow.Lines[cell, *cell]
	locks         *lock.Tracker

	launch   event.Launch
	running  bool
	perBlock uint32
	barriers []uint8  // by block
	exited   []uint32 // by block: number of exited threads
	warps    []warp
}

// warp is the state of a warp.
type warp struct {
	gone                    uint32 // lanes that have exited or never existed
	syncs                   uint8  // __syncwarp ID
	blockFence, deviceFence uint8
	held                    []held
}

// held is a lock held by lanes.
type held struct {
	bit   uint16 // the lock's bit in a Bloom filter
	lanes uint32
}

// cell is the metadata of a word of memory.
type cell struct{ writer, reader record }

// record is an access.
type record struct {
	thread                  uint32 // warp * 32 + lane
	place                   uint32
	filter                  uint16
	barrier, syncs          uint8
	blockFence, deviceFence uint8
	size                    uint8
	flags                   flags
}

// Turn implements shadow.Cell.
func (c *cell) Turn(n int) {
	for _, r := range []*record{&c.writer, &c.reader} {
		if r.flags&valid != 0 {
			r.thread = r.thread&^31 | (r.thread+uint32(n))&31
		}
	}
}

type flags uint8

const (
	valid flags = 1 << iota
	atomic
	deviceScope
	strong
	parted
	volatile
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
			d.access(b, e)
			if e.Kind == event.Atomic {
				d.lock(b, e)
			}
		case event.Fence:
			d.fence(e)
			d.lock(b, e)
		case event.BarrierDone:
			d.barriers[e.Warp/d.perBlock]++
		case event.WarpSync:
			w := &d.warps[e.Warp]
			w.syncs = (w.syncs + 1) & counterMask
		case event.Exit:
			d.exit(e)
		}
	}
}

func (d *Detector) begin(l *event.Launch) {
	d.launch, d.running, d.perBlock = *l, true, l.WarpsPerBlock()
	d.locks.Begin(l)
	d.memory.Clear()
	blocks := l.Grid.Count()
	d.barriers, d.exited = make([]uint8, blocks), make([]uint32, blocks)
	d.warps = make([]warp, blocks*uint64(d.perBlock))
	if rest := l.Block.Count() % 32; rest != 0 {
		for i := d.perBlock - 1; uint64(i) < uint64(len(d.warps)); i += d.perBlock {
			d.warps[i].gone = ^uint32(0) << rest
		}
	}
}

// exit drops the shared memory of a block when all its threads have exited.
func (d *Detector) exit(e *event.Event) {
	d.warps[e.Warp].gone |= e.Mask
	n := e.Warp / d.perBlock
	d.exited[n] += uint32(bits.OnesCount32(e.Mask))
	if uint64(d.exited[n]) == d.launch.Block.Count() {
		d.memory.EndWindow(shadow.Window{Launch: e.Launch, Block: n})
	}
}

func (d *Detector) fence(e *event.Event) {
	w := &d.warps[e.Warp]
	if e.Scope >= event.ScopeGPU {
		w.deviceFence = (w.deviceFence + 1) & counterMask
	} else {
		w.blockFence = (w.blockFence + 1) & counterMask
	}
}

func (d *Detector) lock(b *event.Batch, e *event.Event) {
	w := &d.warps[e.Warp]
	for _, s := range d.locks.Event(b, e) {
		n := s.Lock.Addr >> 2 << 1
		switch {
		case s.Device:
			n |= 1
		case d.perBlockLocks:
			n += uint64(e.Warp/d.perBlock+1) * 0xd1b54a32d192ed03
		}
		bit := uint16(1) << (n * 0x9e3779b97f4a7c15 >> 60)
		if s.Kind == lock.Acquire {
			w.held = append(w.held, held{bit, s.Lanes})
			continue
		}
		keep := w.held[:0]
		for _, h := range w.held {
			if h.bit == bit {
				h.lanes &^= s.Lanes
			}
			if h.lanes != 0 {
				keep = append(keep, h)
			}
		}
		w.held = keep
	}
}

// filter returns the Bloom filter of the locks that a lane holds.
func (w *warp) filter(lane int) (f uint16) {
	for _, h := range w.held {
		if h.lanes>>lane&1 != 0 {
			f |= h.bit
		}
	}
	return f
}

// arrival returns the record of an access, without the lane.
func (d *Detector) arrival(e *event.Event) record {
	w := &d.warps[e.Warp]
	now := record{place: e.Place, barrier: d.barriers[e.Warp/d.perBlock], syncs: w.syncs, blockFence: w.blockFence,
		deviceFence: w.deviceFence, size: e.Size, flags: valid}
	if e.Kind == event.Atomic {
		now.flags |= atomic
	}
	if e.Scope >= event.ScopeGPU {
		now.flags |= deviceScope
	}
	if e.Order != event.Weak || e.Kind == event.Atomic {
		now.flags |= strong
	}
	if e.Order == event.Volatile {
		now.flags |= volatile
	}
	if e.Mask|w.gone != ^uint32(0) {
		now.flags |= parted
	}
	return now
}

// access judges the lanes of an access and then records it: the lanes do not race with each other.
func (d *Detector) access(b *event.Batch, e *event.Event) {
	now := d.arrival(e)
	t := turn{b: b, e: e, now: &now, w: &d.warps[e.Warp], window: shadow.Window{Launch: e.Launch, Block: e.Warp / d.perBlock}}
	s := b.Strip(e, e.Mask)
	alone := s.Mask == e.Mask && !s.Same() && (s.Step == 0 || s.Step >= int64(e.Size)) && s.Step%granule == 0 && e.Size%granule == 0 && s.Addr%granule == 0
	if alone || e.Kind == event.Load { // no granule is of two lanes, or loads are compared with what no load changes
		t.judges, t.notes = true, true
		d.strips(&t)
		return
	}
	t.judges = true
	d.strips(&t)
	t.judges, t.notes = false, true
	d.strips(&t)
}

// turn is the access being processed, and what to do with each of its cells.
type turn struct {
	b             *event.Batch
	e             *event.Event
	now           *record
	w             *warp
	window        shadow.Window
	judges, notes bool
}

// strips processes each granule that a lane accesses.
func (d *Detector) strips(t *turn) {
	e := t.e
	for left := e.Mask; left != 0; {
		s := t.b.Strip(e, left)
		left &^= s.Mask
		switch alike := s.Mask&(s.Mask-1) != 0 && t.w.alike(s.Mask); {
		case alike && (s.Step == 0 || e.Size < granule):
			s.Parts(uint64(e.Size), granule, func(part event.Strip) { d.same(t, &part) })
		case alike && e.Size == granule && s.Step == granule && s.Addr%granule == 0:
			d.row(t, &s)
		default:
			for m := s.Mask; m != 0; m &= m - 1 {
				lane := bits.TrailingZeros32(m)
				d.lane(t, lane, t.b.AddrOf(e, lane))
			}
		}
	}
}

// alike reports whether lanes hold the same locks.
func (w *warp) alike(lanes uint32) bool {
	for _, h := range w.held {
		if h.lanes&lanes != 0 && h.lanes&lanes != lanes {
			return false
		}
	}
	return true
}

// line returns the line and the index of the cell for a granule.
func (d *Detector) line(t *turn, at uint64) (*shadow.Line[cell], int) {
	if t.e.Space == event.Shared {
		return d.memory.Shared(t.window, at)
	}
	return d.memory.Global(at)
}

// by sets the current access to that of a lane.
func (t *turn) by(lane int) {
	t.now.thread = t.e.Warp*32 + uint32(lane)
	if t.now.filter = 0; len(t.w.held) > 0 {
		t.now.filter = t.w.filter(lane)
	}
}

// lane processes the access of one lane.
func (d *Detector) lane(t *turn, lane int, addr uint64) {
	t.by(lane)
	for at := addr &^ (granule - 1); at < addr+uint64(t.e.Size); at += granule {
		l, i := d.line(t, at)
		c := d.memory.Cell(l, i)
		if t.judges {
			d.judge(c, t.e, t.now, addr)
		}
		if t.notes {
			c.note(t.e, t.now)
		}
	}
}

// row processes an access in which lanes access consecutive granules. Whether the access races depends only on warps,
// and on whether the threads are the same, so the first cell of a run decides for all.
func (d *Detector) row(t *turn, s *event.Strip) {
	for lane, end := s.Low(), s.High()+1; lane < end; {
		addr := s.Addr + uint64(lane-s.Low())*granule
		l, from := d.line(t, addr)
		to := min(from+end-lane, shadow.LineCells)
		for i := from; i < to; {
			c, n := d.memory.Run(l, i, to)
			t.by(lane)
			if t.judges && d.judge(c, t.e, t.now, addr) {
				for k := 1; k < n; k++ {
					t.by(lane + k)
					next := *c
					next.Turn(k)
					d.judge(&next, t.e, t.now, addr+uint64(k)*granule)
				}
				t.by(lane)
			}
			if t.notes {
				c.note(t.e, t.now)
			}
			i, lane, addr = i+n, lane+n, addr+uint64(n)*granule
		}
		if t.notes {
			d.memory.Join(l, from, to)
		}
	}
}

// same processes an access by lanes to the same bytes, or to one granule. The last lane is recorded. The lanes are
// judged one by one only if one of them may race.
func (d *Detector) same(t *turn, s *event.Strip) {
	t.by(s.High())
	may := false
	for at := s.Addr &^ (granule - 1); at < s.Addr+uint64(t.e.Size); at += granule {
		l, i := d.line(t, at)
		c := d.memory.Cell(l, i)
		may = may || t.judges && d.may(c, t.e, t.now)
		if t.notes && !may {
			c.note(t.e, t.now)
		}
	}
	if !may {
		return
	}
	for m := s.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		d.lane(t, lane, t.b.AddrOf(t.e, lane))
	}
}

// may reports whether a thread of the current warp may race with an access recorded in a cell.
func (d *Detector) may(c *cell, e *event.Event, now *record) bool {
	with := func(was *record) bool {
		if was.flags&valid == 0 {
			return false
		}
		note, _ := d.condition(was, now)
		return note != ""
	}
	return with(&c.writer) || e.Kind != event.Load && with(&c.reader)
}

// note records an access.
func (c *cell) note(e *event.Event, now *record) {
	if e.Kind == event.Load {
		c.reader = *now
	} else {
		c.writer, c.reader = *now, record{}
	}
}

// judge compares an access with those recorded in a cell, and says whether it races.
func (d *Detector) judge(c *cell, e *event.Event, now *record, addr uint64) (races bool) {
	races = d.pair(&c.writer, true, e, now, addr)
	if e.Kind != event.Load {
		races = d.pair(&c.reader, false, e, now, addr) || races
	}
	return races
}

// pair judges two accesses, at least one of which writes.
func (d *Detector) pair(was *record, wrote bool, e *event.Event, now *record, addr uint64) (races bool) {
	if was.flags&valid == 0 || was.thread == now.thread {
		return false
	}
	r := findings.Race{Facts: detect.Facts{Category: detect.CrossBlock}}
	r.Note, r.Kind = d.condition(was, now)
	if r.Note == "" {
		return false
	}
	switch {
	case r.Kind == detect.AtomicScope:
		r.Facts.Category = detect.ScopeRace
	case d.sameBlock(was, now):
		r.Facts.Category = detect.SameBlock
	}
	r.Facts.Earlier = d.side(was, wrote, e.Space, addr)
	r.Facts.Later = d.side(now, e.Kind != event.Load, e.Space, addr)
	d.Add(&r)
	return true
}

func (d *Detector) sameBlock(x, y *record) bool {
	return x.thread/32/d.perBlock == y.thread/32/d.perBlock
}

// condition returns the reason why two accesses by different threads race, or "" if they do not.
func (d *Detector) condition(was, now *record) (note string, kind detect.Kind) {
	same := d.sameBlock(was, now)
	if was.thread/32 == now.thread/32 {
		if !d.its || (was.flags|now.flags)&parted == 0 || was.syncs != now.syncs || was.barrier != now.barrier ||
			was.flags&now.flags&atomic != 0 {
			return "", ""
		}
		return "lanes that had parted", ""
	}
	if same && was.barrier != now.barrier {
		return "", ""
	}
	switch {
	case was.flags&atomic != 0 && was.flags&deviceScope == 0 && !same:
		return "scoped atomic", detect.AtomicScope
	case was.flags&now.flags&atomic != 0:
		return "", ""
	}
	w := &d.warps[was.thread/32]
	switch device := was.deviceFence == w.deviceFence; {
	case same && device && was.blockFence == w.blockFence:
		return "missing block fence", detect.MissingFence
	case !same && device && was.blockFence != w.blockFence:
		return "missing device fence", detect.FenceScope
	case !same && device:
		return "missing device fence", detect.MissingFence
	case was.filter|now.filter != 0 && was.filter&now.filter == 0 && now.flags&atomic == 0:
		return "missing common lock", detect.MissingLock
	case was.flags&now.flags&strong == 0:
		return "not strong access", detect.Unordered
	}
	return "", ""
}

func (d *Detector) side(r *record, wrote bool, space event.Space, addr uint64) detect.Access {
	a := detect.Access{Op: detect.Read, Space: space, Place: r.place, Launch: d.launch, Warp: r.thread / 32, Lane: int(r.thread % 32),
		Address: addr, Size: int(r.size)}
	if wrote {
		a.Op = detect.Write
	}
	switch {
	case r.flags&atomic != 0:
		a.Op, a.Order, a.Scope = detect.AtomicOp, event.Relaxed, event.ScopeCTA
		if r.flags&deviceScope != 0 {
			a.Scope = event.ScopeGPU
		}
	case r.flags&volatile != 0:
		a.Order = event.Volatile
	}
	return a
}

// MemoryBytes implements detect.Metered.
func (d *Detector) MemoryBytes() uint64 {
	return d.memory.Bytes() + uint64(len(d.barriers))*5 + uint64(len(d.warps))*uint64(unsafe.Sizeof(warp{}))
}
