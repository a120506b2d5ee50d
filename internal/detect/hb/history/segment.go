package history

import (
	"math/bits"
	"slices"
)

// segment is the accesses to the 128 bytes of a segment in the launch of its page. They are an interned history, in
// which threads and epochs are relative to those of the segment. If history has wordsFlag, the rest of it is the index
// of the segment's 32 words in Fast.words, which have histories of their own.
type segment struct {
	history uint32
	thread  uint32 // the warp within the grid, times 32, plus the lane: added to those of records (lanes modulo 32)
	epoch   uint32 // added to the epochs of records
}

func (s *segment) warp() uint32 { return s.thread >> 5 }
func (s *segment) lane() uint8  { return uint8(s.thread & 31) }

const wordsFlag = 1 << 31

// record is weak accesses to a segment by a warp. Warp, lane and epoch are relative to those of the segment. Segments
// with the same accesses up to such a shift have the same records, and share one history.
type record struct {
	access uint32 // index in Fast.kinds
	warp   uint32
	epoch  uint32
	lane   uint8
	values values // values of stores
}

// values says what is known of the values that stores of a site wrote to a segment. It is the same for all records of
// the site.
type values uint8

const (
	inMemory values = iota // each part of a word was always written with one value, and memory still holds it
	mixed                  // each part of a word was written with different values
	saved                  // kept apart, since memory no longer holds them: see values.go
)

// interned is the history of a segment. It is never changed.
type interned struct {
	records []record
	stored  mask     // the bytes stored by weak stores
	pattern *pattern // cache of patternOf
}

// moveKey identifies a transition: a history and an access.
type moveKey struct { // the history, and the kind of the access
	what uint64 // the warp and the epoch of the access, relative to the segment
	who  uint64 // acting.changed, and the lane, relative to the segment
	how  uint64 // acting.changed; the lane
}

func (k *moveKey) is(o *moveKey) bool { return k.what == o.what && k.who == o.who && k.how == o.how }

// move is a transition: the effect on a history of an access that does not race.
type move struct {
	moveKey
	to   uint32
	base struct { // shift to add to the segment
		warp, epoch uint32
		lane        uint8
	}
	keep   bool   // values must be saved: see values.go
	checks uint32 // index in Fast.checks
}

// check is a condition of a move: lanes of a record that must happen before the access. own applies if the record is by
// the access's own warp, other if not. Lanes are numbered as in the record.
type check struct {
	record     int
	own, other uint32
}

// moves is a hash table that memoises moves. Each hash has two slots. The table grows with the number of misses.
type moves struct {
	table  []move
	shift  uint
	misses int
}

const (
	firstMoves = 8  // the logarithm of the table's initial length
	mostMoves  = 15 // and of its greatest
	maxRecords = 96 // in a history; segments with more are split into words
	// With more histories than mostHistories, no new ones are made, and segments that would need one are split. The
	// accesses are then so irregular that histories are not worth their memory.
	mostHistories = 1 << 17
)

// find returns the move of a key; nil if it is not in the table.
func (t *moves) find(k *moveKey) *move {
	i := k.hash() >> t.shift
	if m := &t.table[i]; m.is(k) {
		return m
	}
	if m := &t.table[i^1]; m.is(k) {
		return m
	}
	return nil
}

// put adds a move. It replaces the older of two with the same hash.
func (t *moves) put(m move) {
	if t.misses++; t.misses > 4*len(t.table) && t.shift > 64-mostMoves {
		old := t.table
		t.table, t.shift, t.misses = make([]move, 2*len(old)), t.shift-1, 0
		for i := range old {
			if old[i].to != 0 {
				t.keep(old[i])
			}
		}
	}
	t.keep(m)
}

func (t *moves) keep(m move) {
	i := m.hash() >> t.shift
	t.table[i^1] = t.table[i]
	t.table[i] = m
}

func newMoves() moves { return moves{make([]move, 1<<firstMoves), 64 - firstMoves, 0} }

func (k *moveKey) hash() uint64 {
	h := k.what*0x9e3779b97f4a7c15 ^ k.who*0xff51afd7ed558ccd ^ k.how*0xa0761d6478bd642f
	h ^= h >> 29
	return h * 0x9e3779b97f4a7c15
}

// acting is a weak access to a segment by lanes of a warp with a common view.
type acting struct {
	*Warp
	site    *siteState
	access  uint32
	lane    uint8
	changed uint8
}

// step judges and records an access to a segment. If the access may race, it does nothing and returns ok false. keep
// says that values must be saved.
func (h *Fast) step(s *segment, a *acting) (keep, ok bool) {
	from := *s
	if from.history == 0 {
		from = segment{thread: a.Event.Warp<<5 | uint32(a.lane), epoch: a.view.Epoch}
	}
	k := moveKey{uint64(from.history)<<32 | uint64(a.access), uint64(a.Event.Warp-from.warp())<<32 | uint64(a.view.Epoch-from.epoch),
		uint64(a.changed)<<8 | uint64(a.lane-from.lane())&31}
	if m := h.moves.find(&k); m != nil {
		for _, c := range h.checks[m.checks] {
			if !before(&from, &h.histories[from.history].records[c.record], c, a) {
				return false, false
			}
		}
		s.make(&from, m)
		return m.keep, true
	}
	if len(h.histories) > mostHistories {
		return false, false
	}
	made, ok := h.compute(&from, &h.histories[from.history], a)
	if !ok {
		return false, false
	}
	made.moveKey = k
	h.moves.put(made)
	s.make(&from, &made)
	return made.keep, true
}

// make sets a segment to the result of a move.
func (s *segment) make(from *segment, m *move) {
	*s = segment{m.to, (from.warp()+m.base.warp)<<5 | uint32(from.lane()+m.base.lane)&31, from.epoch + m.base.epoch}
}

// before reports whether a check of a record holds for a segment.
func before(s *segment, r *record, c check, a *acting) bool {
	warp, turn := s.warp()+r.warp, int((s.lane()+r.lane)&31)
	lanes := c.other
	if warp == a.Event.Warp {
		lanes = c.own
	}
	return lanes == 0 || a.unknown(warp, bits.RotateLeft32(lanes, turn), s.epoch+r.epoch) == 0
}

// compute computes a move: the effect of an access on a history. ok is false if the access may race, or if the result
// cannot be represented as the history of a segment.
func (h *Fast) compute(s *segment, x *interned, a *acting) (out move, ok bool) {
	k := &h.kinds[a.access]
	var checks []check
	now := record{access: a.access, warp: a.Event.Warp - s.warp(), epoch: a.view.Epoch - s.epoch, lane: (a.lane - s.lane()) & 31}
	for i := range x.records {
		r := &x.records[i]
		o := &h.kinds[r.access]
		if !k.write && !o.write || !k.all.overlaps(o.all) {
			continue
		}
		c := check{record: i}
		c.own, c.other = conflict(k, &now, o, r)
		if c.own|c.other == 0 {
			continue
		}
		if !before(s, r, c, a) {
			return out, false
		}
		checks = append(checks, c)
	}
	records := slices.Clone(x.records)
	if k.site.WeakStore() {
		if !h.store(records, &now, a.changed, &out.keep) {
			return out, false
		}
	}
	records = h.put(records, now)
	if len(records) > maxRecords {
		return out, false
	}
	h.normal(&out, records)
	if checks != nil {
		out.checks = uint32(len(h.checks))
		h.checks = append(h.checks, checks)
	}
	return out, true
}

// conflict returns the lanes of a record that access bytes which other threads of the access's warp access too. The own
// lanes apply if the record is by the same warp, the other lanes if it is by another. Lanes are numbered as in the
// record.
func conflict(k *kind, now *record, o *kind, r *record) (own, other uint32) {
	for m := o.print.lanes; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		b := o.print.bytes[i]
		if !b.overlaps(k.all) {
			continue
		}
		other |= m & -m
		self := (uint32(i) + uint32(r.lane) - uint32(now.lane)) & 31
		for n := k.print.lanes &^ (1 << self); n != 0; n &= n - 1 {
			if b.overlaps(k.print.bytes[bits.TrailingZeros32(n)]) {
				own |= m & -m
				break
			}
		}
	}
	return own, other
}

// store updates values for a weak store. It returns false if the result cannot be represented for a segment as a whole.
func (h *Fast) store(records []record, now *record, changed uint8, keep *bool) bool {
	k := &h.kinds[now.access]
	var own mask // what its site has written
	was, had := inMemory, false
	for i := range records {
		r := &records[i]
		if o := &h.kinds[r.access]; o.site == k.site {
			own, was, had = own.or(o.all), r.values, true
		} else if o.site.WeakStore() && r.values == inMemory && o.all.overlaps(k.all) && changed != unchanged {
			h.setAside(records, o.site)
			*keep = true
		} else if o.site.WeakStore() && r.values == saved && o.all.overlaps(k.all) {
			*keep = true
		}
	}
	if !had {
		return true
	}
	will := was
	overlap := own.overlaps(k.all)
	switch {
	case was == saved:
		*keep = true
	case was == inMemory && (!overlap || changed == unchanged):
	case was == inMemory && changed == allChanged && own == k.all:
		will = mixed
	case was == mixed && k.all.without(own).empty():
	default:
		will, *keep = saved, true
	}
	now.values = will
	for i := range records {
		if h.kinds[records[i].access].site == k.site {
			records[i].values = will
		}
	}
	return true
}

func (h *Fast) setAside(records []record, s *Site) {
	for i := range records {
		if h.kinds[records[i].access].site == s {
			records[i].values = saved
		}
	}
}

// put adds a record to those of a history, and removes what it supersedes.
func (h *Fast) put(records []record, now record) []record {
	k := h.kinds[now.access]
	exec := bits.RotateLeft32(k.exec, int(now.lane))
	kept := records[:0]
	for _, r := range records {
		o := &h.kinds[r.access]
		if o.site != k.site || r.warp != now.warp || bits.RotateLeft32(o.exec, int(r.lane)) != exec {
			kept = append(kept, r)
			continue
		}
		if r.access == now.access && r.lane == now.lane { // the same access, later or not
			continue
		}
		access, lane := h.merge(&r, &now, exec)
		if r.epoch == now.epoch {
			now.access, now.lane = access, lane
		} else if r.access, r.lane = access, lane; access != 0 {
			kept = append(kept, r)
		}
	}
	return append(kept, now)
}

// merge combines two records of one site and warp. If their epochs are equal, it gives the kind and first lane of both
// together. Otherwise it gives those of what remains of the older one; 0: nothing remains.
func (h *Fast) merge(old, now *record, exec uint32) (access uint32, lane uint8) {
	f, g := h.kinds[now.access].print.turned(now.lane), h.kinds[old.access].print.turned(old.lane)
	for i := range g.bytes {
		if old.epoch == now.epoch {
			g.bytes[i] = g.bytes[i].or(f.bytes[i])
		} else {
			g.bytes[i] = g.bytes[i].without(f.bytes[i])
		}
		if g.lanes |= 1 << i; g.bytes[i].empty() {
			g.lanes &^= 1 << i
		}
	}
	if g.lanes == 0 {
		return 0, 0
	}
	return h.accessOf(h.kinds[now.access].site, exec, &g)
}

// normal makes a move lead to the history with given records. It makes the records relative to the first of them.
func (h *Fast) normal(m *move, records []record) {
	first := records[0]
	m.base.warp, m.base.epoch, m.base.lane = first.warp, first.epoch, first.lane
	for i := range records {
		r := &records[i]
		r.warp, r.epoch, r.lane = r.warp-first.warp, r.epoch-first.epoch, (r.lane-first.lane)&31
	}
	m.to = h.intern(records)
}

// intern returns the index of the history with given records.
func (h *Fast) intern(records []record) uint32 {
	key := uint64(len(records))
	for i := range records {
		r := &records[i]
		key = (key ^ uint64(r.access)<<32 ^ uint64(r.warp)) * 0x9e3779b97f4a7c15
		key = (key ^ key>>32 ^ uint64(r.epoch)<<32 ^ uint64(r.lane)<<8 ^ uint64(r.values)) * 0xd6e8feb86659fd93
		key ^= key >> 32
	}
	for ; ; key++ {
		n, ok := h.historyOf[key]
		if !ok {
			n = uint32(len(h.histories))
			x := interned{records: slices.Clone(records)}
			for i := range records {
				r := &records[i]
				k := &h.kinds[r.access]
				if k.site.WeakStore() {
					x.stored = x.stored.or(k.all)
				}
			}
			h.histories = append(h.histories, x)
			h.historyOf[key] = n
			return n
		}
		if slices.Equal(h.histories[n].records, records) {
			return n
		}
	}
}
