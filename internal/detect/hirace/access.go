package hirace

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// trace describes the last access, for messages; it plays no part in judging. From low to high bits: place (32), action
// (2), order (3), scope (3), log2 of the size (3), event (21).
type trace uint64

func traceOf(e *event.Event, act action, sequence uint32) trace {
	return trace(e.Place) | trace(act)<<32 | trace(e.Order)<<34 | trace(e.Scope)<<37 | trace(bits.Len8(e.Size)-1)<<40 | trace(sequence)<<43
}

func (t trace) action() action { return action(t >> 32 & 3) }

// cell is the shadow word of a location and, for messages, the accesses that a race may be with.
type cell struct {
	word          uint64
	trace         trace // the last access
	other, before past
}

// past is an access other than the last. In cell.other it is an access that the last is not ordered with, or one of
// another kind by the same thread. In cell.before it is an access that is ordered before the last, but not before all
// later accesses.
type past struct {
	trace  trace
	thread uint32
}

// Turn implements shadow.Cell.
func (c *cell) Turn(n int) {
	const lanes = 31 << threadShift
	if c.word&stateBits != 0 {
		c.word = c.word&^lanes | (c.word+uint64(n)<<threadShift)&lanes
	}
	for _, p := range []*past{&c.other, &c.before} {
		if p.trace != 0 {
			p.thread = p.thread&^31 | (p.thread+uint32(n))&31
		}
	}
}

// lines is shadow memory of cells, stored by runs.
type lines = shadow.Lines[cell, *cell]

const wordBytes = 4

// actionOf returns the action of an event. Loads and stores that are relaxed or stronger are atomic.
func actionOf(e *event.Event) action {
	switch {
	case e.Kind == event.Atomic || e.Order >= event.Relaxed:
		if e.Scope >= event.ScopeGPU {
			return deviceAtomic
		}
		return blockAtomic
	case e.Kind == event.Store:
		return write
	}
	return read
}

// turn is the warp access being processed.
type turn struct {
	accessor
	e     *event.Event
	w     *warpState
	act   action
	trace trace
	addr  uint64 // of the current lane's access
}

// by sets the current access to that of a lane.
func (t *turn) by(lane int, addr uint64) {
	t.word = uint64(t.w.of(lane))<<clockShift | uint64(t.e.Warp<<5|uint32(lane))<<threadShift
	t.addr = addr
}

// access processes the lanes of an access one after the other. The detector has one caller at a time, so no other
// goroutine updates words.
func (d *Detector) access(b *event.Batch, e *event.Event) {
	t := turn{accessor: accessor{firstWarp: e.Warp - e.Warp%d.perBlock, perBlock: d.perBlock}, e: e, w: &d.warps[e.Warp], act: actionOf(e)}
	t.trace = traceOf(e, t.act, d.sequence)
	for left := e.Mask; left != 0; {
		s := b.Strip(e, left)
		left &^= s.Mask
		switch alike := t.w.lanes == nil; {
		case alike && e.Size == wordBytes && s.Step == wordBytes && s.Addr%wordBytes == 0:
			d.row(&t, d.words, &s)
		case alike && e.Size == 1 && s.Step == 1 && !d.coarse:
			for at, end := s.Addr&^(wordBytes-1), s.Addr+uint64(s.High()-s.Low()); at <= end; at += wordBytes {
				d.split(d.words.Cell(d.line(&t, d.words, at)), &t, at)
			}
			d.row(&t, d.bytes, &s)
		case alike && e.Size >= wordBytes && s.Same() && s.Addr%wordBytes == 0:
			d.same(&t, s.Mask, s.Addr)
		default:
			addr := s.Addr
			for m := s.Mask; m != 0; m &= m - 1 {
				t.by(bits.TrailingZeros32(m), addr)
				d.lane(&t)
				addr += uint64(s.Step)
			}
		}
	}
}

// line returns the line and the index of the cell for an address in the space that t accesses.
func (d *Detector) line(t *turn, cells *lines, at uint64) (*shadow.Line[cell], int) {
	if t.e.Space == event.Shared {
		return cells.Shared(shadow.Window{Launch: d.launch.ID, Block: t.firstWarp / t.perBlock}, at)
	}
	return cells.Global(at)
}

// row processes lanes that access a word each, or a byte each, at consecutive addresses. The lanes make the same
// transition at all cells of a run, so one transition is made for all of them, unless there are races to report.
func (d *Detector) row(t *turn, cells *lines, s *event.Strip) {
	size := uint64(t.e.Size)
	for lane, end, at := s.Low(), s.High()+1, s.Addr; lane < end; {
		l, from := d.line(t, cells, at)
		to := min(from+end-lane, shadow.LineCells)
		for i := from; i < to; {
			t.by(lane, at)
			c, n := cells.Run(l, i, to)
			if n > 1 && (c.word&splitBit != 0 || d.races(c, t)) {
				c, n = cells.Run(l, i, i+1)
			}
			d.cell(c, t, at)
			i, lane, at = i+n, lane+n, at+uint64(n)*size
		}
		cells.Join(l, from, to)
	}
}

// races reports whether an access leads to a race that is not known yet.
func (d *Detector) races(c *cell, t *turn) bool {
	was := state(c.word & stateBits)
	return was != raced && d.machine.at(was, t.of(t.act, c.word)).state() == raced
}

// same processes lanes that access the same words, one lane after the other. Once the state does not change any more,
// all further lanes do the same; only the last two of them matter, since the last records the one before.
func (d *Detector) same(t *turn, lanes uint32, addr uint64) {
	for left := lanes; left != 0; {
		t.by(bits.TrailingZeros32(left), addr)
		left &= left - 1
		fixed := true
		for at := addr; at < addr+uint64(t.e.Size); at += wordBytes {
			c := d.words.Cell(d.line(t, d.words, at))
			d.cell(c, t, at)
			now := state(c.word & stateBits)
			fixed = fixed && c.word&splitBit == 0 && d.machine.at(now, labelOf(t.act, unsynced, sameWarp)).state() == now
		}
		if fixed && left != 0 {
			last := uint32(1) << (31 - bits.LeadingZeros32(left))
			if rest := left &^ last; rest != 0 {
				last |= 1 << (31 - bits.LeadingZeros32(rest))
			}
			left = last
		}
	}
}

// lane processes the access of one thread.
func (d *Detector) lane(t *turn) {
	words := d.coarse || t.e.Size >= wordBytes && t.addr%wordBytes == 0
	at, end := t.addr, t.addr+uint64(t.e.Size)
	if d.coarse {
		at &^= wordBytes - 1
	}
	for at < end {
		c := d.words.Cell(d.line(t, d.words, at))
		if words {
			d.cell(c, t, at)
			at += wordBytes
			continue
		}
		d.split(c, t, at&^(wordBytes-1))
		d.judge(d.byte(t, at), t, at)
		at++
	}
}

// byte returns the cell of a byte of a split word.
func (d *Detector) byte(t *turn, at uint64) *cell { return d.bytes.Cell(d.line(t, d.bytes, at)) }

// split gives the bytes of a word shadow words of their own, because part of the word is accessed.
func (d *Detector) split(c *cell, t *turn, at uint64) {
	if c.word&splitBit != 0 {
		return
	}
	for i := range uint64(wordBytes) {
		*d.byte(t, at+i) = *c
	}
	*c = cell{word: splitBit}
}

// cell processes an access to a word or a byte.
func (d *Detector) cell(c *cell, t *turn, at uint64) {
	if c.word&splitBit == 0 {
		d.judge(c, t, at)
		return
	}
	for i := range uint64(wordBytes) {
		d.judge(d.byte(t, at+i), t, at+i)
	}
}

// judge makes a transition, reports a race if it leads to one, and keeps what a message may need.
func (d *Detector) judge(c *cell, t *turn, at uint64) {
	old, made := d.machine.update(&c.word, t.act, &t.accessor)
	if made.state() == raced {
		if state(old&stateBits) != raced && d.bounds.reports(t.e.Space, at) {
			d.Add(d.race(c, old, t, at))
		}
		return
	}
	if made&^stateMask == 0 || !c.note(made, t.act, past{c.trace, uint32(old) >> threadShift}) {
		c.trace = t.trace
	}
}

// note keeps the last access before its trace is replaced. It returns true if the trace should not be replaced, because
// the last access conflicts with more.
func (c *cell) note(made transition, act action, last past) bool {
	if made&noteOther != 0 {
		c.other = last
	}
	if made&noteBefore != 0 {
		c.before = last
	}
	if made&noteMerged == 0 || last.trace.action() == act {
		return false
	}
	if made.state() != exclusive { // atomic operations of both scopes
		if last.trace.action() == blockAtomic {
			c.before = last
		}
		return false
	}
	if last.trace.action() == write {
		return true
	}
	c.other = last
	return false
}
