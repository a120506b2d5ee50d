package hb

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Bits of whole.head besides those of pack.head.
const (
	headOld    uint32 = 1 << 5 // what the access overwrites is known
	headValues uint32 = 1 << 6 // what it writes is known, but not that
)

// headOf gives what is in whole.head of a weak access's values.
func headOf(e *event.Event) uint32 {
	switch {
	case e.Flags&event.FlagValues == 0:
		return 0
	case e.Kind == event.Store && e.Flags&event.FlagOld != 0:
		return headOld
	}
	return headValues
}

// tellsOld says that what a plain store wrote and what was there before is known.
func (q *whole) tellsOld() bool {
	return q.class.plain && q.e.Flags&(event.FlagValues|event.FlagOld) == event.FlagValues|event.FlagOld
}

// words gathers what the part writes, by cell. It says false when that is not known.
func (q *whole) words() bool {
	e := q.e
	if e.Flags&event.FlagValues == 0 || !q.class.plain {
		return false
	}
	if q.wrote {
		return true
	}
	q.wrote = true
	q.gather(&q.word, q.b.Values[e.Val:], false)
	cells := q.span()
	q.equal = e.Size >= cellBytes
	first := q.word[bits.TrailingZeros32(cells)&31]
	for m := cells; m != 0 && q.equal; m &= m - 1 {
		q.equal = q.word[bits.TrailingZeros32(m)&31] == first
	}
	return true
}

// before gathers what was where the part writes, by cell.
func (q *whole) before() {
	if !q.had {
		q.had = true
		q.gather(&q.old, q.b.Values[int(q.e.Val)+bits.OnesCount32(q.e.Mask)*event.ValueWords(q.e.Size):], true)
	}
}

// gather brings values of the lanes into cells, of small accesses the bytes that they write; around says that the values of
// these have the whole cell.
func (q *whole) gather(to *[lineCells]uint32, vals []uint64, around bool) {
	e := q.e
	size := int64(e.Size)
	if q.one == 0 && size == 4 && strideOf(q.shape) == 4 {
		rank := bits.OnesCount32(e.Mask & (q.lanes&-q.lanes - 1))
		at := baseOf(q.shape) / 4
		for m := q.lanes; m != 0; m &= m - 1 {
			to[(int64(bits.TrailingZeros32(m))+at)&31] = uint32(vals[rank])
			rank++
		}
		return
	}
	if size < cellBytes {
		*to = [lineCells]uint32{}
	}
	for m := q.lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		v := vals[bits.OnesCount32(e.Mask&(m&-m-1))*event.ValueWords(e.Size):]
		at := int64(q.b.AddrOf(e, lane) % lineBytes)
		if size < cellBytes {
			w := uint32(v[0])
			if around {
				w >>= uint(at % 4 * 8)
			}
			to[at/4] |= w & (1<<(8*size) - 1) << uint(at%4*8)
			continue
		}
		for c := int64(0); c < size; c += cellBytes {
			to[(at+c)/4] = uint32(v[c/8] >> uint(c%8*8))
		}
	}
}

// recall gives pack x, whose values memory holds no more after the part, these values.
func (q *whole) recall(s *shadow, x *pack) {
	q.fixed = false
	q.before()
	x.head = x.head&^refKind | refWords
	x.ref = s.words.add()
	*s.words.at(x.ref) = words{word: q.old}
}

// rewrite notes what a store wrote over all of x, its own earlier store.
func (d *Detector) rewrite(q *whole, x *pack) {
	s := d.mem
	kind := x.head & refKind
	if kind == 0 {
		return // mixed already
	}
	q.fixed = false
	if !q.words() || kind == refMemory && !q.tellsOld() {
		s.dropRef(x)
		return
	}
	small := q.e.Size < cellBytes
	cells := spanOf(q.one != 0, x.shape, x.lanes, q.e.Size)
	all := cells
	if small && q.one == 0 {
		all = x.lanes
	}
	old := words{}
	switch kind {
	case refMemory:
		q.before()
		old.word = q.old
	case refWord:
		for i := range old.word {
			old.word[i] = x.ref
		}
	default:
		old = *s.words.at(x.ref)
	}
	mixed := old.mixed
	if !small {
		for m := cells; m != 0; m &= m - 1 {
			if c := bits.TrailingZeros32(m); old.word[c] != q.word[c] {
				mixed |= m & -m
			}
		}
	} else {
		mixed |= q.mixedBytes(x, &old)
	}
	switch {
	case mixed == 0:
	case mixed == all:
		s.dropRef(x)
	default:
		if kind != refWords {
			x.head = x.head&^refKind | refWords
			x.ref = s.words.add()
		}
		old.mixed = mixed
		*s.words.at(x.ref) = old
	}
}

// mixedBytes gives where an access of less than a cell wrote something else than old: by lane, for packOne by cell.
func (q *whole) mixedBytes(x *pack, old *words) (mixed uint32) {
	if q.one != 0 {
		c := bits.TrailingZeros32(x.shape)
		if (old.word[c]^q.word[c])&spread(q.bytes) != 0 {
			return 1 << uint(c)
		}
		return 0
	}
	base, stride, size := baseOf(x.shape), strideOf(x.shape), q.e.Size
	for m := x.lanes; m != 0; m &= m - 1 {
		at := base + int64(bits.TrailingZeros32(m))*stride
		if (old.word[at/4]^q.word[at/4])&spread((1<<size-1)<<uint(at%4)) != 0 {
			mixed |= m & -m
		}
	}
	return mixed
}
