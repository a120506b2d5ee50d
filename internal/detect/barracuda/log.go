package barracuda

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// log is reads of words of a segment, in their order, that are entered into R_x only when somebody asks what that is. Mostly
// nobody does: tiles are read by many lanes, in rows, columns and broadcasts, and written again behind a barrier, which orders
// the write behind all of them; and what blocks share they only read. W_x of words that are not in segment.w may be those of w,
// as where a tile begins in the middle of a segment.
type log struct {
	w      run
	list   []sight
	words  uint32 // that were read
	newest uint32 // the greatest time
	first  uint32 // the first warp of the block whose reads they are
	mixed  bool   // other blocks' too
}

// logLength is so many that the tile of a matrix product of 16 by 16 threads fits: a segment is two rows, read by eight warps.
const logLength = 48

// sight is a read of each of words: by lanes, or, when that is 0, by one lane each, that of word i being i + shift. The view
// is that of the lanes then.
type sight struct {
	v            view
	warp, place  uint32
	words, lanes uint32
	shift        int32
}

// of gives the lanes that read word i.
func (g *sight) of(i int) uint32 {
	if g.lanes != 0 {
		return g.lanes
	}
	return 1 << uint(int32(i)+g.shift)
}

// sight notes a load in a segment without cells: of words by lanes, or by one lane each, as sight says. It reports whether it
// could, which is where no read races with a write.
func (d *Detector) sight(a *access, s *segment, words, lanes uint32, shift int32) bool {
	if s.cells != 0 || a.e.Kind != event.Load || !a.behindWrites(&s.w, words, lanes, shift) {
		return false
	}
	l := d.log(a, s)
	if l.w.mask != 0 && !a.behindWrites(&l.w, words, lanes, shift) {
		return false
	}
	switch len(l.list) {
	case logLength:
		return false
	case 0:
		l.words, l.newest, l.first, l.mixed = 0, 0, a.w.block.first, false
	}
	l.list = append(l.list, sight{*a.v, a.w.number, a.e.Place, words, lanes, shift})
	l.words |= words
	l.newest = max(l.newest, a.v.local)
	l.mixed = l.mixed || l.first != a.w.block.first
	return true
}

// log gives the log of a segment, which it makes.
func (d *Detector) log(a *access, s *segment) *log {
	if s.log != 0 {
		return d.logs.at(s.log)
	}
	s.log = d.logs.make()
	l := d.logs.at(s.log)
	l.list, l.w.mask = l.list[:0], 0
	if a.e.Space == event.Shared {
		a.w.block.logs = append(a.w.block.logs, s.log)
	}
	return l
}

// behindWrites says that the writes of a run to words that are read happen before the reads. False says nothing.
func (a *access) behindWrites(w *run, words, lanes uint32, shift int32) bool {
	words &= w.mask
	switch {
	case words == 0:
		return true
	case w.warp == a.w.number:
		own := lanes == 0 && shift == w.shift || lanes == w.lanes(words)
		return own || w.time <= a.v.peer && w.lanes(words)&^a.v.mask == 0
	}
	return w.warp-a.w.block.first < a.wpb && w.time <= a.v.block
}

// behindLog says that the reads of a log of words happen before what the access does there, and forgets them then. False
// says nothing.
func (a *access) behindLog(l *log, words uint32) bool {
	if l.words&words == 0 {
		return true
	}
	if l.mixed || l.first != a.w.block.first || l.newest > a.v.block || l.newest > a.v.peer || a.v.mask != a.w.exist {
		return false
	}
	if l.words &^= words; l.words == 0 {
		l.list = l.list[:0]
		return true
	}
	for i := range l.list {
		l.list[i].words &^= words
	}
	return true
}

// replay enters the reads of a log into cells.
func (d *Detector) replay(by *access, l *log, cells *[segmentWords]cell) {
	w := warp{block: by.w.block}
	e := event.Event{Kind: event.Load, Space: by.e.Space}
	a := access{e: &e, w: &w, wpb: by.wpb, depth: by.depth}
	for i := range l.list {
		g := &l.list[i]
		if g.warp-w.block.first >= by.wpb { // global memory: of the block no more than that is asked for
			w.block = &block{first: g.warp / by.wpb * by.wpb}
		}
		w.number, e.Place, a.v = g.warp, g.place, &g.v
		for m := g.words; m != 0; m &= m - 1 {
			k := bits.TrailingZeros32(m)
			d.read(&a, &cells[k], g.of(k))
		}
	}
	l.list = l.list[:0]
}
