// Package iguard is iGUARD as two papers describe it that compare themselves with it (PreDataR, sections 3 and 6; HiRace,
// sections II and V-D): the analysis of ScoRD (package scord) in software, for global and shared memory, with support for
// independent thread scheduling, and with one prior reader and one prior writer of each word.
//
// A load is compared with the last write of the word, a write with the last write and the last read. Two accesses race when
// they are of different threads and
//
//   - of one warp, whose lanes had parted at one of the two, and no __syncwarp of the warp and no barrier stands between;
//   - of one block with no barrier between, or of different blocks, and the later rows of ScoRD's table IV hold: a scope
//     of the earlier atomic too small, no fence by the earlier warp since (of the device, between blocks), no lock in
//     common when there are locks, or one of the two neither volatile nor atomic.
//
// Blind spots, as published: readers but the last are forgotten (HiRace's listing 3); an access right after the same
// thread's critical section is its own program order (PreDataR's figure 10); lanes of one instruction never race; a fence
// by the earlier warp orders it with everyone. PreDataR's authors measured that the published tool misses both of their races
// within a warp, of one instruction and of two. Lanes that run together are missed here too (their figure 1); should theirs
// have parted, option its=off is that tool. Like ScoRD it reports critical sections and handovers whose accesses are
// weak. What host and other kernels do is not seen.
package iguard

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/detect/tally"
	"fencepost.dev/fencepost/internal/event"
)

var its = detect.Option{Name: "its", Doc: "whether lanes of one warp that had parted can race", Values: []string{"on", "off"}}

// Spec is the detector.
var Spec = spec()

func spec() detect.Spec {
	s := detect.Spec{Name: "iguard", Doc: "iGUARD: ScoRD's analysis in software, in shared memory too, one prior reader and writer of each word.",
		Source:  "Kamath, Basu: iGUARD (SOSP 2021), as PreDataR and HiRace describe it",
		Needs:   event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch,
		Options: []detect.Option{its}}
	s.New = func(c detect.Config) detect.Detector {
		return &Detector{tally: tally.New(s.Name), its: s.Option(c, its.Name) == "on", memory: shadow.New[cell](granule),
			locks: lock.New(lock.ScoRD())}
	}
	return s
}

// granule is the bytes of memory that share metadata.
const granule = 4

// Detector is one run.
type Detector struct {
	its    bool
	tally  *tally.Tally
	memory *shadow.Memory[cell]
	locks  *lock.Tracker

	launch   event.Launch
	running  bool
	perBlock uint32
	barriers []uint8 // by block
	warps    []warp
}

// warp is what is known of a warp.
type warp struct {
	gone                    uint32 // lanes that have exited, or never were
	syncs                   uint8  // __syncwarp
	blockFence, deviceFence uint8
	held                    []held
}

// held is a lock that lanes hold.
type held struct {
	bit   uint16 // of a Bloom filter
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
			d.warps[e.Warp].syncs++
		case event.Exit:
			d.warps[e.Warp].gone |= e.Mask
		}
	}
}

func (d *Detector) begin(l *event.Launch) {
	d.launch, d.running, d.perBlock = *l, true, l.WarpsPerBlock()
	d.locks.Begin(l)
	d.memory.Clear()
	blocks := l.Grid.Count()
	d.barriers = make([]uint8, blocks)
	d.warps = make([]warp, blocks*uint64(d.perBlock))
	if rest := l.Block.Count() % 32; rest != 0 {
		for i := d.perBlock - 1; uint64(i) < uint64(len(d.warps)); i += d.perBlock {
			d.warps[i].gone = ^uint32(0) << rest
		}
	}
}

func (d *Detector) fence(e *event.Event) {
	w := &d.warps[e.Warp]
	if e.Scope >= event.ScopeGPU {
		w.deviceFence++
	} else {
		w.blockFence++
	}
}

func (d *Detector) lock(b *event.Batch, e *event.Event) {
	w := &d.warps[e.Warp]
	for _, s := range d.locks.Event(b, e) {
		n := s.Lock.Addr >> 2 << 1
		if s.Device {
			n |= 1
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

// filter is the Bloom filter of the locks that a lane holds.
func (w *warp) filter(lane int) (f uint16) {
	for _, h := range w.held {
		if h.lanes>>lane&1 != 0 {
			f |= h.bit
		}
	}
	return f
}

// access judges the lanes of an access, and then takes it down: they do not race with each other.
func (d *Detector) access(b *event.Batch, e *event.Event) {
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
	d.each(b, e, &now, w, d.judge)
	d.each(b, e, &now, w, d.note)
}

// each does something for each granule that a lane accesses.
func (d *Detector) each(b *event.Batch, e *event.Event, now *record, w *warp, do func(c *cell, e *event.Event, now *record, addr uint64)) {
	window := shadow.Window{Launch: e.Launch, Block: e.Warp / d.perBlock}
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr := b.AddrOf(e, lane)
		now.thread = e.Warp*32 + uint32(lane)
		if now.filter = 0; len(w.held) > 0 {
			now.filter = w.filter(lane)
		}
		for at := addr &^ (granule - 1); at < addr+uint64(e.Size); at += granule {
			if e.Space == event.Shared {
				do(d.memory.Shared(window, at), e, now, addr)
			} else {
				do(d.memory.Global(at), e, now, addr)
			}
		}
	}
}

func (d *Detector) note(c *cell, e *event.Event, now *record, _ uint64) {
	if e.Kind == event.Load {
		c.reader = *now
	} else {
		c.writer, c.reader = *now, record{}
	}
}

func (d *Detector) judge(c *cell, e *event.Event, now *record, addr uint64) {
	d.pair(&c.writer, true, e, now, addr)
	if e.Kind != event.Load {
		d.pair(&c.reader, false, e, now, addr)
	}
}

// pair judges two accesses of which one at least writes.
func (d *Detector) pair(was *record, wrote bool, e *event.Event, now *record, addr uint64) {
	if was.flags&valid == 0 || was.thread == now.thread {
		return
	}
	r := tally.Race{Facts: detect.Facts{Category: detect.CrossBlock}}
	r.Note, r.Kind = d.condition(was, now)
	if r.Note == "" {
		return
	}
	switch {
	case was.thread/32 == now.thread/32:
		r.Facts.Category = detect.SameBlock
	case r.Kind == detect.AtomicScope:
		r.Facts.Category = detect.ScopeRace
	case d.sameBlock(was, now):
		r.Facts.Category = detect.SameBlock
	}
	r.Facts.Earlier = d.side(was, wrote, e.Space, addr)
	r.Facts.Later = d.side(now, e.Kind != event.Load, e.Space, addr)
	d.tally.Add(&r)
}

func (d *Detector) sameBlock(x, y *record) bool {
	return x.thread/32/d.perBlock == y.thread/32/d.perBlock
}

// condition gives the reason why two accesses by different threads race; "" when they do not.
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
	if was.flags&now.flags&atomic != 0 {
		if !same && was.flags&deviceScope == 0 {
			return "scoped atomic", detect.AtomicScope
		}
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

// Findings implements detect.Detector.
func (d *Detector) Findings() []detect.Finding { return d.tally.Findings() }

// MemoryBytes implements detect.Metered.
func (d *Detector) MemoryBytes() uint64 {
	return d.memory.Bytes() + uint64(len(d.barriers)) + uint64(len(d.warps))*32
}
