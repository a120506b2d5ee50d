package hirace

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// trace is what the last access was, for messages; it takes no part in judging. From below: place 32 bits, action 2, order 3,
// scope 3, log2 of the size 3, event 21.
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

// past is an access besides the last: in cell.other one that the last is not ordered with, or one of another kind by the same
// thread; in cell.before one that is ordered before the last, but not before everyone.
type past struct {
	trace  trace
	thread uint32
}

const (
	segmentWords = 32
	segmentBytes = segmentWords * 4
)

// segment is the cells of 128 bytes. As long as its words were accessed by whole warps only, a lane a word in order, or
// not at all, and nothing is kept besides, they are told by that of the first.
type segment struct {
	word  uint64
	trace trace
	cells *[segmentWords]cell // nil: word i is word, but for a thread that is i greater if there is one
}

// actionOf is the memory action of an event. Loads and stores of order relaxed or stronger are atomic.
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

// turn is the access of a warp at hand.
type turn struct {
	accessor
	e     *event.Event
	act   action
	trace trace
	addr  uint64 // of the lane's access
}

func (d *Detector) access(b *event.Batch, e *event.Event) {
	t := turn{accessor: accessor{firstWarp: e.Warp - e.Warp%d.perBlock, perBlock: d.perBlock}, e: e, act: actionOf(e)}
	t.trace = traceOf(e, t.act, d.sequence)
	w := &d.warps[e.Warp]
	if w.lanes == nil && e.Flags&event.FlagScattered == 0 && (e.Size == 4 && e.Stride == 4 || e.Size >= 4 && e.Stride == 0) {
		t.word = uint64(w.clock)<<clockShift | uint64(e.Warp)<<(threadShift+5)
		t.addr = e.Addr
		switch {
		case e.Affine() && e.Stride == 4 && e.Addr&3 == 0 && e.Mask == ^uint32(0):
			d.row(&t)
			return
		case e.Affine() || e.RowStride()&3 == 0:
			if e.Addr&3 == 0 {
				d.strips(b, &t)
				return
			}
		}
	}
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		t.addr = b.AddrOf(e, lane)
		t.word = uint64(w.of(lane))<<clockShift | uint64(e.Warp<<5|uint32(lane))<<threadShift
		d.lane(&t)
	}
}

// row takes an access by all lanes of a warp to consecutive words. The detector has one caller at a time: no other
// goroutine updates these words.
func (d *Detector) row(t *turn) {
	s := d.segment(t, t.addr)
	at := t.addr % segmentBytes / 4
	if at == 0 && s.cells == nil {
		if made := d.machine.at(state(s.word&stateBits), t.of(t.act, s.word)); made&^stateMask == 0 && made.state() != raced {
			s.word, s.trace = t.word|uint64(made&stateMask), t.trace
			return
		}
	}
	d.run(d.expand(t, s)[at:], t)
	if at != 0 {
		d.run(d.expand(t, d.segment(t, t.addr))[:at], t)
	}
}

// strips takes an access by lanes that stand in one row or several: the lanes of each access words next to each other, or all the same.
func (d *Detector) strips(b *event.Batch, t *turn) {
	e, warp, width := t.e, t.word, 32
	if !e.Affine() {
		width = 1 << e.RowShift
	}
	for left := e.Mask; left != 0; {
		first := bits.TrailingZeros32(left)
		row := left & uint32(uint64(1)<<((first/width+1)*width)-1)
		left &^= row
		addr := b.AddrOf(e, first)
		if e.Stride == 0 {
			t.addr, t.word = addr, warp
			d.same(t, row)
			continue
		}
		for row != 0 {
			lane := bits.TrailingZeros32(row)
			n := bits.TrailingZeros32(^(row >> lane))
			row &^= uint32((uint64(1)<<n - 1) << lane)
			t.addr, t.word = addr+uint64(lane-first)*4, warp|uint64(lane)<<threadShift
			for n > 0 {
				at := int(t.addr % segmentBytes / 4)
				part := min(n, segmentWords-at)
				d.run(d.expand(t, d.segment(t, t.addr))[at:at+part], t)
				n -= part
			}
		}
	}
}

// same takes an access by lanes to the same words, one lane after the other. Once the state changes no more all lanes that follow do
// the same, to what the one before left: then the last two are the next, the first of which the other notes.
func (d *Detector) same(t *turn, lanes uint32) {
	warp, addr := t.word, t.addr
	for left := lanes; left != 0; {
		lane := bits.TrailingZeros32(left)
		left &= left - 1
		t.word = warp | uint64(lane)<<threadShift
		fixed := true
		for at := addr; at < addr+uint64(t.e.Size); at += 4 {
			c := &d.expand(t, d.segment(t, at))[at%segmentBytes/4]
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

// run takes an access by consecutive lanes of a warp, from that of t on, to consecutive words. Where the words are those that
// lanes of one warp left in the same order, or nobody did, one transition is looked up for all of them.
func (d *Detector) run(cells []cell, t *turn) {
	const nextLane = 1 << threadShift
	for i := 0; i < len(cells); {
		old := cells[i].word
		made := d.machine.at(state(old&stateBits), t.of(t.act, old))
		if made.state() == raced || old&splitBit != 0 {
			d.cell(&cells[i], t, t.addr)
			i++
			t.word += nextLane
			t.addr += 4
			continue
		}
		end, step := len(cells), uint64(0)
		if old&stateBits != 0 { // the threads of a run keep their relation as far as the last accessor's warp goes
			step = nextLane
			end = min(end, i+32-int(old>>threadShift&31))
		}
		from, next := i, t.word|uint64(made&stateMask)
		switch made &^ stateMask {
		case 0:
			for ; i < end && cells[i].word == old; i++ {
				cells[i].word, cells[i].trace = next, t.trace
				old += step
				next += nextLane
			}
		case noteOther:
			for ; i < end && cells[i].word == old; i++ {
				c := &cells[i]
				c.other = past{c.trace, uint32(old) >> threadShift}
				c.word, c.trace = next, t.trace
				old += step
				next += nextLane
			}
		default:
			for ; i < end && cells[i].word == old; i++ {
				c := &cells[i]
				if !c.note(made, t.act, past{c.trace, uint32(old) >> threadShift}) {
					c.trace = t.trace
				}
				c.word = next
				old += step
				next += nextLane
			}
		}
		t.word += uint64(i-from) * nextLane
		t.addr += uint64(i-from) * 4
	}
}

func (d *Detector) window(t *turn) shadow.Window {
	return shadow.Window{Launch: d.launch.ID, Block: t.firstWarp / t.perBlock}
}

// segment is the one that holds the byte at an address of the space that t accesses.
func (d *Detector) segment(t *turn, at uint64) *segment {
	if t.e.Space == event.Shared {
		return d.segments.Shared(d.window(t), at)
	}
	return d.segments.Global(at)
}

// expand gives the cells of a segment.
func (d *Detector) expand(t *turn, s *segment) *[segmentWords]cell {
	if s.cells != nil {
		return s.cells
	}
	if n := len(d.spare); n > 0 {
		s.cells, d.spare = d.spare[n-1], d.spare[:n-1]
		*s.cells = [segmentWords]cell{}
	} else {
		s.cells = new([segmentWords]cell)
		d.expanded++
	}
	if t.e.Space == event.Shared {
		b := d.block(t.e)
		b.cells = append(b.cells, s.cells)
	}
	if s.word != 0 {
		for i := range s.cells {
			s.cells[i] = cell{word: s.word + uint64(i)<<threadShift, trace: s.trace}
		}
	}
	return s.cells
}

// byte is the cell of a byte of a word that has been split.
func (d *Detector) byte(t *turn, at uint64) *cell {
	if t.e.Space == event.Shared {
		return d.bytes.Shared(d.window(t), at)
	}
	return d.bytes.Global(at)
}

// lane takes an access by one thread.
func (d *Detector) lane(t *turn) {
	words := t.e.Size >= 4 && t.addr&3 == 0
	for at, end := t.addr, t.addr+uint64(t.e.Size); at < end; {
		c := &d.expand(t, d.segment(t, at))[at%segmentBytes/4]
		if words {
			d.cell(c, t, at)
			at += 4
			continue
		}
		d.split(c, t, at&^3)
		d.judge(d.byte(t, at), t, at, 1)
		at++
	}
}

// split gives the bytes of a word shadow words of their own: it is accessed in parts.
func (d *Detector) split(c *cell, t *turn, at uint64) {
	if c.word&splitBit != 0 {
		return
	}
	for i := range uint64(4) {
		*d.byte(t, at+i) = *c
	}
	*c = cell{word: splitBit}
}

// cell takes an access to a word.
func (d *Detector) cell(c *cell, t *turn, at uint64) {
	if c.word&splitBit == 0 {
		d.judge(c, t, at, 4)
		return
	}
	for i := range uint64(4) {
		d.judge(d.byte(t, at+i), t, at+i, 1)
	}
}

// judge makes a transition, reports a race when it leads to one, and keeps what a message will ask for.
func (d *Detector) judge(c *cell, t *turn, at, size uint64) {
	old, made := d.machine.update(&c.word, t.act, &t.accessor)
	if made.state() == raced {
		if state(old&stateBits) != raced {
			d.report(c, old, t, at, size)
		}
		return
	}
	if made&^stateMask == 0 || !c.note(made, t.act, past{c.trace, uint32(old) >> threadShift}) {
		c.trace = t.trace
	}
}

// note keeps the last access before its trace is replaced. It says that the trace is not to be replaced: what was done
// conflicts with more.
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
