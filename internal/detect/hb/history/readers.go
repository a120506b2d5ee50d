package history

import (
	"cmp"
	"slices"
)

// readers is loads of words that nobody has written, by several threads: of each word a block of words, one for each stamp, not
// in any order. word.stamp is the block's number among those of its size, and word.lanes says how many are in it, and its size.
type readers struct {
	sizes [32]readersOf // by logarithm
	words uint64        // of all blocks
}

// readersOf is the blocks of a size, in chunks.
type readersOf struct {
	chunks [][]word
	n      uint32
	free   []uint32 // numbers of blocks that are not used
}

const (
	fewReaders  = 2                // the logarithm of the smallest size
	chunkWords  = 12               // of that of a chunk, as a rule
	sizeShift   = 26               // of word.lanes
	countMask   = 1<<sizeShift - 1 // of word.lanes
	recentReads = 8                // where an addition looks for its like
	onceFrom    = 128              // from how many on double ones are dropped before there is more room
)

func (w *word) readers() int     { return int(w.lanes & countMask) }
func (w *word) room() int        { return 1 << (w.lanes >> sizeShift) }
func (w *word) setReaders(n int) { w.lanes = w.lanes&^countMask | uint32(n) }

// of gives the readers of a word, none where that is zero, in a slice that has room for more.
func (r *readers) of(w *word) []word {
	if w.stamp == 0 {
		return nil
	}
	size, n := w.lanes>>sizeShift, w.stamp&^readFlag
	per := blocksLog(size)
	return r.sizes[size].chunks[n>>per][n&(1<<per-1)<<size:][:w.readers():w.room()]
}

// blocksLog is the logarithm of how many blocks a chunk has.
func blocksLog(size uint32) uint32 { return chunkWords - min(size, chunkWords) }

// make gives a word without readers that has room.
func (r *readers) make(size uint32) word {
	x := &r.sizes[size]
	n := x.n
	if k := len(x.free); k > 0 {
		n, x.free = x.free[k-1], x.free[:k-1]
	} else if x.n++; int(n>>blocksLog(size)) == len(x.chunks) {
		x.chunks = append(x.chunks, make([]word, 1<<(size+blocksLog(size))))
		r.words += 1 << (size + blocksLog(size))
	}
	return word{n | readFlag, size << sizeShift}
}

// drop gives the room of a word back.
func (r *readers) drop(w *word) {
	x := &r.sizes[w.lanes>>sizeShift]
	x.free = append(x.free, w.stamp&^readFlag)
}

// share gives a word that has one load room for those of others.
func (h *Fast) share(w *word) {
	*w = h.begin(*w)
}

// begin gives a word that has the loads of another, which is no word of readers.
func (h *Fast) begin(x word) word {
	w := h.readers.make(fewReaders)
	w.setReaders(1)
	h.readers.of(&w)[0] = x
	return w
}

// read adds a load to those of a word.
func (h *Fast) read(w *word, number, lane uint32) {
	all := h.readers.of(w)
	if all[0].stamp < h.current.firstStamp {
		h.inheritReaders(w, number)
		all = h.readers.of(w)
	}
	for i := max(len(all)-recentReads, 0); i < len(all); i++ {
		x := &all[i]
		if x.stamp == number {
			x.lanes |= lane
			return
		}
		if x.lanes == lane && h.supersedes(number, &h.stamps[x.stamp]) {
			x.stamp = number
			return
		}
	}
	if n := len(all); n == cap(all) {
		if n >= onceFrom {
			n = len(h.once(all))
			w.setReaders(n)
		}
		if n > cap(all)/2 {
			was := *w
			*w = h.readers.make(was.lanes>>sizeShift + 1)
			w.setReaders(n)
			copy(h.readers.of(w), all)
			h.readers.drop(&was)
		}
	}
	n := w.readers()
	w.setReaders(n + 1)
	h.readers.of(w)[n] = word{number, lane}
}

// once keeps of several loads by a thread and a site the last.
func (h *Fast) once(all []word) []word {
	slices.SortFunc(all, func(x, y word) int {
		s, t := &h.stamps[x.stamp], &h.stamps[y.stamp]
		return cmp.Or(cmp.Compare(s.launch.Info.ID, t.launch.Info.ID), cmp.Compare(s.warp, t.warp), cmp.Compare(s.site.Number, t.site.Number),
			cmp.Compare(s.exec, t.exec), cmp.Compare(t.epoch, s.epoch), cmp.Compare(x.stamp, y.stamp))
	})
	kept := all[:0]
	of, later := uint32(0), uint32(0)
	for _, x := range all {
		if of == 0 || !h.supersedes(of, &h.stamps[x.stamp]) {
			of, later = x.stamp, 0
		}
		x.lanes &^= later
		later |= x.lanes
		if k := len(kept) - 1; k >= 0 && kept[k].stamp == x.stamp {
			kept[k].lanes |= x.lanes
		} else if x.lanes != 0 {
			kept = append(kept, x)
		}
	}
	return kept
}

// inheritReaders keeps of the loads of a launch that has ended one for each site, and none for that of a load, with a number, by one
// that follows.
func (h *Fast) inheritReaders(w *word, number uint32) {
	n := &h.stamps[number]
	all := h.readers.of(w)
	kept := all[:0]
next:
	for _, x := range all {
		s := &h.stamps[x.stamp]
		if s.launch != n.launch && s.site == n.site && n.launch.Follows(s.launch) {
			continue
		}
		if s.launch != n.launch && whole(s.launch) {
			for _, o := range kept {
				if y := &h.stamps[o.stamp]; y.site == s.site && y.launch == s.launch {
					continue next
				}
			}
		}
		kept = append(kept, x)
	}
	if len(kept) == 0 {
		kept = append(kept, word{number, 0})
	}
	w.setReaders(len(kept))
}
