package history

import (
	"math/bits"
	"slices"
)

// segment is what was done to the 128 bytes of a segment in the launch of its page: an interned history, up to renaming. Or,
// where history is that number with wordsFlag, 32 words that have histories of their own.
type segment struct {
	history uint32
	thread  uint32 // the warp of the grid, times 32, and the lane from which those of the history are counted, lanes modulo 32
	epoch   uint32 // likewise
}

func (s *segment) warp() uint32 { return s.thread >> 5 }
func (s *segment) lane() uint8  { return uint8(s.thread & 31) }

const wordsFlag = 1 << 31

// record is weak accesses of a segment by a warp. Warps, lanes and epochs are counted from those of the segment, so that segments to which the same was done have the same
// records, and share one history.
type record struct {
	access uint32
	warp   uint32
	epoch  uint32
	lane   uint8
	values values // of stores
}

// values is what is known of what the stores of a site wrote to a segment. It is the same for all its records.
type values uint8

const (
	inMemory values = iota // one value for each part of a word, which memory still holds
	mixed                  // different ones for each part
	saved                  // apart from memory, which no longer holds them: see values.go
)

// interned is a history of a segment, which is not changed.
type interned struct {
	records []record
	stored  mask     // by weak stores
	pattern *pattern // of split; nil until it is asked for
}

// moveKey is a history and an access of its segment.
type moveKey struct {
	what uint64 // the history and the access
	who  uint64 // the warp and the epoch of the access, as those of the history's records
	how  uint64 // acting.changed; the lane
}

func (k *moveKey) is(o *moveKey) bool { return k.what == o.what && k.who == o.who && k.how == o.how }

// move is what an access that does not race makes of a history.
type move struct {
	moveKey
	to   uint32
	base struct { // what is added to the segment's
		warp, epoch uint32
		lane        uint8
	}
	keep   bool   // values are saved: see values.go
	checks uint32 // of Fast.checks
}

// check is lanes of a record that have to happen before the access: those of the access's own warp, and of others. They are
// counted as the record's.
type check struct {
	record     int
	own, other uint32
}

// moves is a table of moves that were made before, by hash: of those with one hash the last two. It grows with the number of misses.
type moves struct {
	table  []move
	shift  uint
	misses int
}

const (
	firstMoves = 8  // the logarithm of the table's length
	mostMoves  = 15 // and at most
	maxRecords = 96 // of a history; segments with more are split into words
	// mostHistories is from how many histories on segments to which something else is done are split: what is done to memory
	// follows no pattern that makes histories worth their memory.
	mostHistories = 1 << 17
)

// find gives the move of a key, nil when it is not remembered.
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

// put adds a move, in place of the older of two.
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

// acting is a weak access of a segment by lanes of a warp with one view.
type acting struct {
	*Warp
	site    *siteState
	access  uint32
	lane    uint8
	changed uint8
}

// step judges and records an access of a segment. It says false, having done nothing, where it may race.
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

// make gives a segment what a move makes of it.
func (s *segment) make(from *segment, m *move) {
	*s = segment{m.to, (from.warp()+m.base.warp)<<5 | uint32(from.lane()+m.base.lane)&31, from.epoch + m.base.epoch}
}

// before says that a check of a record holds.
func before(s *segment, r *record, c check, a *acting) bool {
	warp, turn := s.warp()+r.warp, int((s.lane()+r.lane)&31)
	lanes := c.other
	if warp == a.Event.Warp {
		lanes = c.own
	}
	return lanes == 0 || a.unknown(warp, bits.RotateLeft32(lanes, turn), s.epoch+r.epoch) == 0
}

// compute is the transition itself: what an access makes of a history. It says false where the two may race, or what comes of
// it is no history of a segment.
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

// conflict gives the lanes of a record, counted as its own, that access bytes which other threads of the actor's access: those
// of the actor's warp, and of others.
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

// store says what a weak store does to what is known of values. It says false where that cannot be said for a segment as a whole.
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

// put adds a record to those of a history, in place of what it supersedes.
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
		if r.access == now.access && r.lane == now.lane { // the same, or later
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

// merge gives the access, and the lane that it is counted from, that two of one epoch are together, or else what is left of the
// older, if anything.
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

// normal makes a move lead to a history with records.
func (h *Fast) normal(m *move, records []record) {
	first := records[0]
	m.base.warp, m.base.epoch, m.base.lane = first.warp, first.epoch, first.lane
	for i := range records {
		r := &records[i]
		r.warp, r.epoch, r.lane = r.warp-first.warp, r.epoch-first.epoch, (r.lane-first.lane)&31
	}
	m.to = h.intern(records)
}

// intern gives the number of the history with given records.
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
