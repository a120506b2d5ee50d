package history

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/hb/order"
)

// pattern tells how to split a segment with a history into words. It is a shortcut for the usual words: those that the
// same lanes access in all records that touch the word. Words with the same records have the same members.
type pattern struct {
	groups [][]int                 // lists of indices of records
	group  [wordsPerSegment]uint8  // by word: one more than the index of its group; 0: nobody accessed the word
	lanes  [wordsPerSegment]uint32 // by word: the lanes that access it
	rest   uint32                  // words for which the shortcut does not apply
}

// patternOf returns the pattern of a history.
func (h *Fast) patternOf(x *interned) *pattern {
	if x.pattern != nil {
		return x.pattern
	}
	p := &pattern{}
	x.pattern = p
	for at := range wordsPerSegment {
		var group []int
		var all uint32
		plain := true
		for i := range x.records {
			r := &x.records[i]
			f := h.kinds[r.access].print
			lanes := uint32(0)
			for m := f.lanes; m != 0; m &= m - 1 {
				b := f.bytes[bits.TrailingZeros32(m)].word(at)
				if b != 0 {
					lanes |= m & -m
				}
				plain = plain && (b == 0 || b == 15)
			}
			if lanes = bits.RotateLeft32(lanes, int(r.lane)); lanes == 0 {
				continue
			}
			plain = plain && (all == 0 || all == lanes) && r.values != saved
			all = lanes
			group = append(group, i)
		}
		if !plain {
			p.rest |= 1 << at
			continue
		}
		if group != nil {
			p.group[at], p.lanes[at] = p.number(group), all
		}
	}
	return p
}

func (p *pattern) number(group []int) uint8 {
	for i, g := range p.groups {
		if slices.Equal(g, group) {
			return uint8(i + 1)
		}
	}
	p.groups = append(p.groups, group)
	return uint8(len(p.groups))
}

// split gives the words of a segment histories of their own.
func (h *Fast) split(p *page, i int) {
	now := p.segments[i]
	n, words := h.words.make()
	p.segments[i] = segment{history: n | wordsFlag}
	for _, x := range p.past {
		if s := &x.segments[i]; s.history != 0 {
			h.splitSegment(words, s, x.launch, nil)
			*s = segment{}
		}
	}
	if now.history != 0 {
		h.splitSegment(words, &now, p.launch.Launch, p.saved[i])
		delete(p.saved, i)
	}
}

// splitSegment adds the accesses of a launch to a segment to the segment's words.
func (h *Fast) splitSegment(words *[wordsPerSegment]word, s *segment, l *order.Launch, kept []*savedValues) {
	x := &h.histories[s.history]
	pattern := h.patternOf(x)
	rest := pattern.rest
	var of [wordsPerSegment + 1]uint32 // word.stamp by group
	for g, records := range pattern.groups {
		of[g+1] = h.membersOf(s, l, x, records)
	}
	for at := range words {
		switch g := pattern.group[at]; {
		case g == 0:
		case of[g] == 0 || words[at].stamp != 0:
			rest |= 1 << at
		default:
			words[at] = word{of[g], bits.RotateLeft32(pattern.lanes[at], int(s.lane()))}
		}
	}
	if rest != 0 {
		h.splitRecords(s, l, x, words, rest, kept)
	}
}

// membersOf returns word.stamp for records by the same lanes; 0 if they cannot form a set.
func (h *Fast) membersOf(s *segment, l *order.Launch, x *interned, records []int) uint32 {
	set := uint32(0)
	for _, i := range records {
		r := &x.records[i]
		k := &h.kinds[r.access]
		exec := bits.RotateLeft32(k.exec, int((s.lane()+r.lane)&31))
		now := member{h.stampOf(h.stateOf(k.site), stamp{k.site, l, s.warp() + r.warp, exec, s.epoch + r.epoch}), r.values}
		if set == 0 {
			set = h.sets.of([]member{now})
			continue
		}
		j := h.joinOf(set, now)
		if !j.clear {
			return 0
		}
		set = j.to
	}
	return set
}

// splitRecords adds a segment's records to those of its words that are in rest.
func (h *Fast) splitRecords(s *segment, l *order.Launch, x *interned, words *[wordsPerSegment]word, rest uint32, all []*savedValues) {
	for j := range x.records {
		r := &x.records[j]
		k := &h.kinds[r.access]
		keep := &savedValues{}
		if at := slices.IndexFunc(all, func(x *savedValues) bool { return x.site == k.site }); r.values == saved && at >= 0 {
			keep = all[at]
		}
		f := k.print.turned((s.lane() + r.lane) & 31)
		exec := bits.RotateLeft32(k.exec, int((s.lane()+r.lane)&31))
		number := h.stampOf(h.stateOf(k.site), stamp{k.site, l, s.warp() + r.warp, exec, s.epoch + r.epoch})
		for m := rest; m != 0; m &= m - 1 {
			at := bits.TrailingZeros32(m)
			h.spread(&words[at], at, number, &f, k.site, r.values, keep)
		}
	}
}

// spread adds a record's accesses to a word.
func (h *Fast) spread(w *word, at int, number uint32, f *footprint, s *Site, v values, keep *savedValues) {
	var lanes [16]uint32 // indexed by the bytes accessed
	any := false
	for m := f.lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if b := f.bytes[lane].word(at); b != 0 {
			any = true
			size := min(s.Event.Size, wordBytes)
			for part := uint8(1)<<size - 1; ; part <<= size {
				if b&part != 0 {
					lanes[b&part] |= m & -m
				}
				if part&8 != 0 {
					break
				}
			}
		}
	}
	if !any {
		return
	}
	if w.stamp == 0 && lanes[15] != 0 && v == inMemory && s.Event.Size >= wordBytes {
		*w = word{number, lanes[15]}
		return
	}
	l := h.listed(w)
	for b, who := range lanes {
		if who == 0 {
			continue
		}
		e := entry{stamp: number, lanes: who, bytes: uint8(b), values: v}
		if v == saved {
			from := uint64(at * wordBytes)
			bytes := mask{lo: uint64(b) << from}
			if from >= 64 {
				bytes = mask{hi: uint64(b) << (from - 64)}
			}
			switch {
			case keep.mixed.overlaps(bytes):
				e.values = mixed
			case keep.saved.overlaps(bytes):
				for i := range uint64(wordBytes) {
					if b>>i&1 != 0 {
						e.more |= uint32(keep.value[from+i]) << (8 * i)
					}
				}
			default:
				e.values = inMemory
			}
		}
		l.add(h, w, e)
	}
}
