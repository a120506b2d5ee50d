package hb

import (
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
)

// records are release patterns: wide those that other blocks may acquire, joined by launch, and by block those that
// only the same block may.
type records struct {
	wide    recordList
	blocks  []blockRecord
	ordered recordList // what fence.sc before the writes published, see scfence.go
}

// blockRecord is a record for threads of one block.
type blockRecord struct {
	block uint32
	record
}

// own gives the record for threads of b, nil when there is none.
func (r *records) own(b *block) *record {
	for i := range r.blocks {
		if x := &r.blocks[i]; x.block == b.index && x.launch == b.launch {
			return &x.record
		}
	}
	return nil
}

// prune drops the records for blocks that have ended, where the list would grow.
func (r *records) prune() {
	if len(r.blocks) == 0 || len(r.blocks) < cap(r.blocks) {
		return
	}
	r.blocks = slices.DeleteFunc(r.blocks, func(x blockRecord) bool { return !x.launch.runs(x.block) })
}

// record is the knowledge that patterns of one launch release: of that launch, and beyond it.
type record struct {
	launch *launch
	grid   *clock.Grid
	beyond *clock.Foreign
}

func (d *Detector) joinRecords(r, o record) record {
	if r.launch == nil {
		return o
	}
	return record{r.launch, d.join.Join(r.grid, o.grid), r.beyond.Join(o.beyond)}
}

// recordList is records by launch, nearly always of one.
type recordList struct {
	first record // zero when there is none
	rest  []record
}

func (rs *recordList) none() bool { return rs.first.launch == nil }

// all calls f for each record.
func (rs *recordList) all(f func(record)) {
	if rs.none() {
		return
	}
	f(rs.first)
	for _, r := range rs.rest {
		f(r)
	}
}

// addRecord joins r to rs; what copies of rs hold stays.
func (d *Detector) addRecord(rs *recordList, r record) {
	if rs.none() || rs.first.launch == r.launch {
		rs.first = d.joinRecords(rs.first, r)
		return
	}
	rest := append(make([]record, 0, len(rs.rest)+1), rs.rest...)
	for i := range rest {
		if rest[i].launch == r.launch {
			rest[i] = d.joinRecords(rest[i], r)
			rs.rest = rest
			return
		}
	}
	rs.rest = append(rest, r)
}

// addWith is addRecord of a record that knows all that part does, which is often what rs has: that which the thread acquired there.
func (d *Detector) addWith(rs *recordList, r record, part *clock.Grid) {
	if f := &rs.first; f.launch == r.launch && f.grid == part {
		*f = record{r.launch, r.grid, f.beyond.Join(r.beyond)}
		return
	}
	d.addRecord(rs, r)
}

// none says that no pattern is to be observed.
func (r *records) none() bool { return r.wide.none() && r.blocks == nil && r.ordered.none() }
