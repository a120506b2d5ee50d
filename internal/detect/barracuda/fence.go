package barracuda

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// memory judges a load, store or atomic operation, or defers it until its warp's next event. next is the event that
// follows, if it is known and of the same warp.
func (d *Detector) memory(b *event.Batch, e, next *event.Event) {
	w := d.warp(e.Warp)
	if len(w.waits) > 0 {
		d.settle(w, b, e)
	}
	d.done = 0
	fenced := w.fenced & e.Mask
	w.fenced &^= e.Mask
	var v *view
	if !d.plus {
		v = d.current(w, e.Mask)
	}
	if fenced == 0 && e.Order < event.Acquire {
		d.unfenced(b, e, next, w, v)
	} else {
		d.beside(b, e, next, w, v, fenced)
	}
	if !d.plus {
		d.endi(w, e.Mask)
	}
}

// unfenced is memory for an operation without a fence before it on any lane, and without an order of its own.
func (d *Detector) unfenced(b *event.Batch, e, next *event.Event, w *warp, v *view) {
	if !asks(e, false) {
		d.plain(b, e, w, v, e.Mask)
		return
	}
	switch d.after(w, e, next) {
	case no:
		d.plain(b, e, w, v, e.Mask)
	case unknown:
		d.wait(b, e, w, v, e.Mask)
	}
}

// beside is memory for an operation with a fence before it, or with an order of its own. It divides the lanes by their
// fences.
func (d *Detector) beside(b *event.Batch, e, next *event.Event, w *warp, v *view, fenced uint32) {
	w.stretch()
	own := e.Scope >= event.ScopeGPU
	groups := [3]uint32{e.Mask &^ fenced, fenced &^ w.wide, fenced & w.wide}
	for i, lanes := range groups {
		if lanes == 0 {
			continue
		}
		before, wide := i > 0, i == 2
		if releasing(e.Order) {
			before, wide = true, wide || own
		}
		after := acquiring(e.Order)
		if after {
			wide = wide || own
		}
		if !after && asks(e, before) {
			switch d.after(w, e, next) {
			case unknown:
				d.wait(b, e, w, v, lanes)
				continue
			case again:
				continue
			}
		}
		if what := roleOf(e, before, after); what != 0 {
			d.synchronise(w, e, lanes, what, wide, func(lane int) uint64 { return b.AddrOf(e, lane) })
		} else {
			d.plain(b, e, w, v, lanes)
		}
	}
}

// answer says whether a fence follows an access.
type answer uint8

const (
	unknown answer = iota
	no
	again // the access polls: its next execution represents it
)

// after examines the event that follows e.
func (d *Detector) after(w *warp, e, next *event.Event) answer {
	if next == nil {
		return unknown
	}
	switch next.Kind {
	case event.Fence, event.Branch, event.Else, event.Reconverge, event.BarrierDone, event.KernelEnd, event.KernelBegin, event.Host:
		return unknown
	case event.Load, event.Store, event.Atomic:
		if !samePlace(e, next) {
			break
		}
		if !e.Affine() || !next.Affine() || e.Mask != next.Mask || e.Stride != next.Stride {
			return unknown
		}
		if e.Addr == next.Addr {
			return again
		}
	}
	if d.plus && e.Mask&^next.Mask != 0 || len(w.waits) > 0 { // deferred accesses come first
		return unknown
	}
	return no
}

// samePlace reports whether an instruction is executed again, with nothing between.
func samePlace(e, f *event.Event) bool {
	return e.Kind == f.Kind && e.Place == f.Place && e.Space == f.Space && e.Size == f.Size
}

// wait defers lanes of an access until it is known whether a fence follows.
func (d *Detector) wait(b *event.Batch, e *event.Event, w *warp, v *view, lanes uint32) {
	if v != nil {
		d.waitOf(b, e, w, *v, lanes)
		return
	}
	for lanes != 0 {
		v, run := w.run(lanes)
		d.waitOf(b, e, w, *v, run)
		lanes &^= run
	}
}

func (d *Detector) waitOf(b *event.Batch, e *event.Event, w *warp, v view, lanes uint32) {
	p := &pending{}
	if n := len(d.spare); n > 0 {
		p, d.spare = d.spare[n-1], d.spare[:n-1]
	}
	p.e, p.view, p.mask, p.stretch = *e, v, lanes, w.stretches
	p.e.Flags &^= event.FlagValues
	p.batch.Addrs = p.batch.Addrs[:0]
	if e.Flags&event.FlagScattered != 0 {
		n := bits.OnesCount32(e.Mask)
		p.batch.Addrs = append(p.batch.Addrs, b.Addrs[e.Side:int(e.Side)+n]...)
		p.e.Side = 0
	}
	w.waits = append(w.waits, p)
}

// settle decides the roles of the accesses that were deferred until e, the next event of their warp.
func (d *Detector) settle(w *warp, b *event.Batch, e *event.Event) {
	kept := w.waits[:0]
	for _, p := range w.waits {
		poll := (e.Kind == event.Load || e.Kind == event.Atomic) && samePlace(&p.e, e)
		lanes := p.mask & e.Mask
		judged := lanes
		for m := lanes; poll && m != 0; m &= m - 1 {
			if lane := bits.TrailingZeros32(m); p.address(lane) == b.AddrOf(e, lane) {
				judged &^= 1 << uint(lane)
			}
		}
		if e.Kind == event.Fence {
			judged = 0
		}
		if !d.plus && !poll { // other lanes of the warp will soon be ordered after p
			judged |= p.mask &^ lanes
			p.mask = lanes
		}
		p.mask &^= lanes
		d.judge(w, p, judged)
		if e.Kind == event.Fence && lanes != 0 {
			d.synchronise(w, &p.e, lanes, roleOf(&p.e, false, true), e.Scope >= event.ScopeGPU, p.address)
		}
		if p.mask != 0 {
			kept = append(kept, p)
		} else {
			d.spare = append(d.spare, p)
		}
	}
	clear(w.waits[len(kept):])
	w.waits = kept
}

// judge is plain for lanes of a deferred access.
func (d *Detector) judge(w *warp, p *pending, lanes uint32) {
	if lanes != 0 && (p.stretch != w.stretches || !d.logged(w, &p.e, lanes)) {
		d.done = 0
		d.perform(&p.batch, &p.e, w, &p.view, lanes)
	}
}

// plain judges an access that is not synchronisation, by lanes with view v, or with any views if v is nil.
func (d *Detector) plain(b *event.Batch, e *event.Event, w *warp, v *view, lanes uint32) {
	if d.logged(w, e, lanes) {
		return
	}
	if v != nil {
		d.perform(b, e, w, v, lanes)
		return
	}
	for lanes != 0 {
		v, run := w.run(lanes)
		d.perform(b, e, w, v, run)
		lanes &^= run
	}
}

func (d *Detector) fence(b *event.Batch, e *event.Event) {
	w := d.warp(e.Warp)
	waited := len(w.waits) > 0
	d.settle(w, b, e)
	if waited && !d.plus {
		d.endi(w, e.Mask)
	}
	if e.Scope >= event.ScopeGPU {
		w.wide |= e.Mask
	} else {
		w.wide &^= e.Mask &^ w.fenced
	}
	w.fenced |= e.Mask
	w.stretch()
}

// end judges what is still deferred when a launch ends before its threads have exited.
func (d *Detector) end() {
	var blocks []uint32
	for n := range d.resident {
		blocks = append(blocks, n)
	}
	slices.Sort(blocks)
	for _, n := range blocks {
		for _, w := range d.resident[n].warps {
			if w == nil {
				continue
			}
			for _, p := range w.waits {
				d.judge(w, p, p.mask)
			}
			w.waits = w.waits[:0]
		}
	}
}
