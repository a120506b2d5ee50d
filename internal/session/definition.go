package session

import (
	"fmt"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/event"
)

// definition is the judge against which the detectors are measured on a suite. It applies the definition of a race
// (docs/findings.md) literally. It handles executions in which only program order and barriers of whole blocks and of
// whole warps order accesses, with one more rule of the PTX manual's causality order: an atomic write precedes whatever
// a thread does after it has observed the written value with an atomic. It keeps every access and examines every pair.
// It panics on any other operation that would order accesses.
type definition struct {
	*findings.Set
	told     map[[2]uint32]bool // pairs of places
	launch   event.Launch
	barriers map[uint32]uint32  // by block: number completed so far
	syncs    map[uint32]uint32  // by warp
	gone     [2]map[uint32]bool // blocks, and warps, from which threads have exited
	memory   map[location]*history
}

// definitionName is the name of the judge in reports.
const definitionName = "definition"

var definitionSpec = detect.Spec{
	Name:   definitionName,
	Doc:    "Every pair of accesses, by the definition of a race.",
	Source: "docs/findings.md",
	Needs:  event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch,
	New: func(c detect.Config) detect.Detector {
		return &definition{Set: findings.New(definitionName, c), told: map[[2]uint32]bool{}}
	},
}

// location is the start of an access. Overlapping accesses of a suite have equal starts and sizes.
type location struct {
	shared bool
	block  uint32
	at     uint64
}

// moment is the time of an operation of a thread, in terms of barriers.
type moment struct {
	warp          uint32
	lane          int
	barrier, sync uint32
}

// touch is an access to a location, made once or more by a thread between two barriers.
type touch struct {
	moment
	place         uint32
	size          uint8
	write, atomic bool
}

// history is the accesses to a location.
type history struct {
	touches []touch
	known   map[touch]bool
	chains  []int // by touch: the chain in which it first wrote
	written bool
	// An atomic write forms a chain with the preceding ones, back to the last plain write. Observers are the threads
	// that know the value at the end of the chain, because they wrote it or read it with an atomic. A plain write
	// clears them.
	chain     int
	observers []moment
}

// Events implements event.Sink.
func (d *definition) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		block := e.Warp / max(d.launch.WarpsPerBlock(), 1)
		switch e.Kind {
		case event.KernelBegin:
			d.launch = b.Launches[e.Side]
			d.barriers, d.syncs, d.memory = map[uint32]uint32{}, map[uint32]uint32{}, map[location]*history{}
			d.gone = [2]map[uint32]bool{{}, {}}
		case event.Load, event.Store, event.Atomic:
			d.access(b, e, block)
		case event.Exit:
			d.gone[0][block], d.gone[1][e.Warp] = true, true
		case event.BarrierDone:
			d.require(e, !d.gone[0][block])
			d.barriers[block]++
		case event.WarpSync:
			d.require(e, e.Mask == ^uint32(0) && !d.gone[1][e.Warp])
			d.syncs[e.Warp]++
		case event.Arrive:
			d.require(e, e.Aux == 0 && e.Barrier == 0 && e.Flags&event.FlagWait != 0)
		case event.Fence:
			d.require(e, false)
		}
	}
}

func (d *definition) require(e *event.Event, holds bool) {
	if !holds {
		panic(fmt.Sprintf("BUG: an event of kind %d, order %d, in a suite that has none such", e.Kind, e.Order))
	}
}

func (d *definition) access(b *event.Batch, e *event.Event, block uint32) {
	if e.Space != event.Global && e.Space != event.Shared {
		return
	}
	t := touch{moment: moment{warp: e.Warp, barrier: d.barriers[block], sync: d.syncs[e.Warp]}, place: e.Place, size: e.Size,
		write: e.Flags&event.FlagWrite != 0, atomic: e.Kind == event.Atomic || e.Order == event.Relaxed}
	d.require(e, e.Order == event.Weak || e.Order == event.Relaxed && e.Kind != event.Store)
	d.require(e, !t.atomic || e.Scope == event.NoScope || e.Scope >= event.ScopeGPU)
	d.require(e, e.Flags&event.FlagVector == 0)
	for m := e.Mask; m != 0; m &= m - 1 {
		t.lane = bits.TrailingZeros32(m)
		at := location{at: b.AddrOf(e, t.lane)}
		if e.Space == event.Shared {
			at.shared, at.block = true, block
		}
		h := d.memory[at]
		if h == nil {
			h = &history{known: map[touch]bool{}}
			d.memory[at] = h
		}
		d.require(e, len(h.touches) == 0 || h.touches[0].size == t.size)
		d.judge(at, h, &t)
		h.add(&t)
	}
}

// judge examines every pair of an access and an earlier one.
func (d *definition) judge(at location, h *history, now *touch) {
	if !h.written && !now.write {
		return
	}
	seen := false
	for i := range h.observers {
		seen = seen || d.ordered(&h.observers[i], &now.moment)
	}
	for i := range h.touches {
		was := &h.touches[i]
		switch {
		case !was.write && !now.write, was.atomic && now.atomic: // no conflict
		case d.ordered(&was.moment, &now.moment):
		case seen && was.atomic && was.write && h.chains[i] == h.chain: // its value, or one derived from it, was observed
		default:
			d.tell(at, was, now)
		}
	}
}

// ordered reports whether an operation at a precedes an operation at b.
func (d *definition) ordered(a, b *moment) bool {
	wpb := d.launch.WarpsPerBlock()
	sameWarp := a.warp == b.warp
	return sameWarp && a.lane == b.lane || sameWarp && a.sync < b.sync || a.warp/wpb == b.warp/wpb && a.barrier < b.barrier
}

func (h *history) add(t *touch) {
	switch {
	case t.write && t.atomic:
		h.observers = append(h.observers[:0], t.moment)
	case t.write:
		h.chain++
		h.observers = h.observers[:0]
	case t.atomic && len(h.observers) > 0:
		h.observers = append(h.observers, t.moment)
	}
	h.written = h.written || t.write
	if !h.known[*t] {
		h.known[*t] = true
		h.touches, h.chains = append(h.touches, *t), append(h.chains, h.chain)
	}
}

// tell makes a finding of a race.
func (d *definition) tell(at location, was, now *touch) {
	pair := [2]uint32{min(was.place, now.place), max(was.place, now.place)}
	if !d.told[pair] {
		d.told[pair] = true
		d.Add(&findings.Race{Facts: detect.Facts{Category: detect.CrossBlock, Earlier: d.named(at, was), Later: d.named(at, now)}})
	}
}

func (d *definition) named(at location, t *touch) detect.Access {
	a := detect.Access{Op: detect.Read, Space: event.Global, Place: t.place, Launch: d.launch, Warp: t.warp, Lane: t.lane,
		Address: at.at, Size: int(t.size)}
	switch {
	case t.atomic:
		a.Op = detect.AtomicOp
	case t.write:
		a.Op = detect.Write
	}
	if at.shared {
		a.Space = event.Shared
	}
	return a
}
