package hb

import (
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/prefetch"
)

// spot is where the access of a lane is noted: a cell of page, nil where it must be done in another way.
type spot struct {
	page *page
	cell *noteCell
}

// locate gives the spots of the lanes of a scattered access of words of global memory, the lowest lane first. One after the other, each
// lane would wait for the memory that its page, its notes and their list are in; so all are asked for together. It says
// false for other accesses.
func (d *Detector) locate(b *event.Batch, e *event.Event, at *[32]spot) bool {
	if e.Flags&event.FlagScattered == 0 || e.Space != event.Global || e.Size != cellBytes || d.cellsOnly {
		d.fetch(b, e)
		return false
	}
	s := d.mem
	t := &s.notebook
	id := e.Launch
	addrs := b.Addrs[e.Side:][:bits.OnesCount32(e.Mask)]
	var ask [prefetch.Most]unsafe.Pointer
	var in dir
	key := ^uint64(0) // of in
	for k, addr := range addrs {
		n := addr / pageBytes
		if n/dirPages != key {
			s.find(addr)
			if r := &s.recent[n/dirPages%uint64(len(s.recent))]; r.key == n/dirPages {
				in, key = r.dir, r.key
			} else {
				in, key = dir{}, ^uint64(0)
			}
		}
		p := in.at(n % dirPages)
		at[k&31].page, ask[k&31] = p, unsafe.Pointer(p)
	}
	prefetch.Lines(&ask, len(addrs))
	var others [32]*page // of lanes that are not noted
	some := false
	for k, addr := range addrs {
		x := &at[k&31]
		p, i := x.page, addr%pageBytes/lineBytes
		if p == nil || !p.open || p.noter != id || p.notes[i]-1 >= rollBit-1 || addr%cellBytes != 0 {
			if p = d.act.page(addr); addr%cellBytes != 0 || p.accessed(i, id) || d.notesFor(p, i) == nil {
				x.cell, ask[k&31] = nil, nil
				others[k&31], some = p, true
				continue
			}
		}
		n := p.notes[i]
		x.page, x.cell = p, &t.lines.blocks[n/arenaBlock][n%arenaBlock][addr%lineBytes/cellBytes]
		ask[k&31] = unsafe.Pointer(x.cell)
	}
	prefetch.Lines(&ask, len(addrs))
	for k := range addrs {
		c := at[k&31].cell
		switch {
		case c == nil || *c&manyNotes == 0:
			ask[k&31] = nil
		case *c&onesList != 0:
			ask[k&31] = unsafe.Pointer(&t.list(*c)[0])
		default:
			ask[k&31] = unsafe.Pointer(&t.chunk(*c)[0])
		}
	}
	prefetch.Lines(&ask, len(addrs))
	if some {
		d.fetchCells(&others, addrs)
	}
	return true
}

// fetch asks for what a scattered access of global memory that is not of words, or not noted, is about to be judged with.
func (d *Detector) fetch(b *event.Batch, e *event.Event) {
	if e.Flags&event.FlagScattered == 0 || e.Space != event.Global {
		return
	}
	var pages [32]*page
	addrs := b.Addrs[e.Side:][:bits.OnesCount32(e.Mask)]
	for k, addr := range addrs {
		pages[k&31] = d.mem.find(addr)
	}
	d.fetchCells(&pages, addrs)
}

// fetchCells asks for what there is in cells of the words at addrs of pages, where these are not nil: step by step, for each tells
// where the next is. That is the cell, its entries, and the trail that the access will be added to; beside them its loc, of a strong access.
func (d *Detector) fetchCells(pages *[32]*page, addrs []uint64) {
	var cells [32]*cell
	var ask, locs [prefetch.Most]unsafe.Pointer
	strong := d.act.class.strong
	for k, addr := range addrs {
		p := pages[k&31]
		if p == nil {
			continue
		}
		if l := p.expanded(addr % pageBytes / lineBytes); l != nil {
			cells[k&31] = &l.cells[addr%lineBytes/cellBytes]
			ask[k&31] = unsafe.Pointer(cells[k&31])
		}
		if strong && p.locs != nil {
			locs[k&31] = unsafe.Pointer(p.locs[addr%pageBytes/16])
		}
	}
	prefetch.Lines(&ask, len(addrs))
	if strong {
		prefetch.Lines(&locs, len(addrs))
	}
	for k := range addrs {
		ask[k&31] = nil
		if c := cells[k&31]; c != nil && c.chunk != 0 {
			ask[k&31] = unsafe.Pointer(d.mem.first(c))
		}
	}
	prefetch.Lines(&ask, len(addrs))
	for k := range addrs {
		ask[k&31] = nil
		if c := cells[k&31]; c != nil {
			ask[k&31] = d.trailFor(d.mem.of(c))
		}
	}
	prefetch.Lines(&ask, len(addrs))
}

// trailFor gives where the trail is, among entries es of a cell, that the actor's access will be added to; nil when there is none.
func (d *Detector) trailFor(es []entry) unsafe.Pointer {
	for i := range es {
		if e := &es[i]; e.class() == d.act.id && e.head&headMany != 0 && e.lanes&trailBit != 0 {
			return unsafe.Pointer(&d.mem.trail(e)[0])
		}
	}
	return nil
}

// noteLoads notes the scattered loads of words that a warp makes of global memory, lane by lane, and gives the lanes for which that
// cannot be done.
func (d *Detector) noteLoads(b *event.Batch, e *event.Event, w *warp) (rest uint32) {
	var at [32]spot
	a := &d.act
	if w.each != nil || a.class.notes != noteLoads {
		d.fetch(b, e)
		return e.Mask
	}
	if !d.locate(b, e, &at) {
		return e.Mask
	}
	a.view = &w.same
	first := d.mem.notebook.one(d.deedOf()<<deedShift, false, 0)
	k := 0
	for m := e.Mask; m != 0; m &= m - 1 {
		x := &at[k&31]
		addr := b.Addrs[int(e.Side)+k]
		k++
		lane := bits.TrailingZeros32(m)
		if x.cell == nil {
			rest |= m & -m
			continue
		}
		if one := first + noteCell(lane); first != 0 && (*x.cell == 0 || *x.cell == one) {
			*x.cell = one
			continue
		}
		a.lanes, a.lane = m&-m, lane
		if !d.noteWord(x.page, x.cell, addr) {
			rest |= m & -m
		}
	}
	return rest
}

// noteAtomics does so with the scattered atomics of words, in the order of the lanes. It gives those from the first on for which it
// cannot be done.
func (d *Detector) noteAtomics(b *event.Batch, e *event.Event, w *warp, met *handing) (rest uint32) {
	var at [32]spot
	a := &d.act
	if w.each != nil || a.class.side.Write && !w.quietAll(e.Mask) {
		d.fetch(b, e)
		return e.Mask
	}
	if !d.locate(b, e, &at) {
		return e.Mask
	}
	a.view = &w.same
	first := d.mem.notebook.one(d.deedOf()<<deedShift|a.class.notes&noteKind, false, 0)
	k := 0
	for m := e.Mask; m != 0; m &= m - 1 {
		x := &at[k&31]
		addr := b.Addrs[int(e.Side)+k]
		k++
		a.lanes, a.lane = m&-m, bits.TrailingZeros32(m)
		if x.cell != nil && first != 0 && x.cell.ones() && d.listAtomic(x.page, x.cell, addr, first+noteCell(a.lane), met) {
			continue
		}
		if x.cell == nil || !d.noteAtomic(x.page, x.cell, addr, met) {
			return m
		}
	}
	return 0
}
