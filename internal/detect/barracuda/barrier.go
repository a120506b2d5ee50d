package barracuda

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// arrivals is the threads that have arrived at a barrier since its last completion.
type arrivals struct {
	waiting []arrival
	threads int         // number of threads that wait
	left    *clock.Grid // what threads knew that arrived without waiting
	part    bool        // the barrier is for only some threads of the block
}

type arrival struct {
	w    *warp
	mask uint32
}

func (d *Detector) arrive(b *event.Batch, e *event.Event) {
	w := d.warp(e.Warp)
	d.settle(w, b, e)
	w.fenced &^= e.Mask
	w.stretch()
	if off := w.live &^ e.Mask; off != 0 && !d.plus {
		d.diverged(e, bits.OnesCount32(off))
	}
	m := &w.block.bars[e.Barrier%16]
	m.part = m.part || e.Aux != 0
	if e.Flags&event.FlagWait != 0 {
		m.waiting = append(m.waiting, arrival{w, e.Mask})
		m.threads += bits.OnesCount32(e.Mask)
		return
	}
	m.part = true
	parts := w.part(e.Mask & w.live)
	for i := range parts {
		v := &parts[i]
		m.left = d.joiner.Join(m.left, d.export(w, v, v.mask, v.rest))
		d.tick(v)
	}
}

func (d *Detector) barrierDone(e *event.Event) {
	c := d.warp(e.Warp).block
	m := &c.bars[e.Barrier%16]
	if !m.part && c.exited == 0 && m.threads == c.threads {
		d.whole(c)
	} else {
		d.some(m)
	}
	*m = arrivals{waiting: m.waiting[:0]}
}

// whole is rule BAR. All threads of the block continue from its highest clock, which avoids joining vector clocks
// (section 5.5.3, "Barriers"; 000, section 5.2, "Forced compression").
func (d *Detector) whole(c *block) {
	top := uint32(0)
	var rest *clock.Grid
	for _, w := range c.warps {
		for i := range w.views {
			top = max(top, w.views[i].local)
			rest = d.joiner.Join(rest, w.views[i].rest)
		}
	}
	if rest.At(d.depth, c.number) != nil { // all of the own block up to top is known
		if rest = rest.With(d.depth, c.number, nil); rest.Max == 0 {
			rest = nil
		}
	}
	for _, w := range c.warps {
		v := view{mask: w.live, local: top, peer: top, warp: top, block: top, rest: rest}
		d.tick(&v)
		w.views = append(w.views[:0], v)
		d.spread(w, w.live)
	}
}

// some is rule BAR for a barrier of some threads: those that wait learn what all arrivals knew.
func (d *Detector) some(m *arrivals) {
	all := m.left
	for _, a := range m.waiting {
		parts := a.w.part(a.mask & a.w.live)
		for i := range parts {
			v := &parts[i]
			all = d.joiner.Join(all, d.export(a.w, v, v.mask, v.rest))
		}
	}
	for _, a := range m.waiting {
		if v := d.join(a.w, a.mask); v != nil {
			v.rest = d.joiner.Join(v.rest, all)
			d.spread(a.w, a.mask)
		}
	}
}
