package history

import (
	"iter"
	"slices"
)

// hostRecords are the accesses of the host, ordered by time and indexed by address. The index is needed because a
// program that copies a large buffer row by row makes as many accesses as there are rows, and each new access is
// compared with those that it overlaps.
type hostRecords struct {
	list  []hostRecord
	gone  int                // the number of gone records in list
	pages map[uint64][]int32 // by page: indices in list of the records that lie in few pages
	wide  []int32            // indices in list of the other records
}

type hostRecord struct {
	Record
	gone bool
}

const (
	hostPageBits = 16
	fewPages     = 64
)

// pagesOf returns the pages [first, last] of the bytes [from, end), and says whether these are few.
func pagesOf(from, end uint64) (first, last uint64, few bool) {
	first, last = from>>hostPageBits, (end-1)>>hostPageBits
	return first, last, last-first < fewPages
}

// add appends a record.
func (x *hostRecords) add(r Record) {
	if r.From >= r.End {
		return
	}
	i := int32(len(x.list))
	x.list = append(x.list, hostRecord{Record: r})
	first, last, few := pagesOf(r.From, r.End)
	if !few {
		x.wide = append(x.wide, i)
		return
	}
	if x.pages == nil {
		x.pages = map[uint64][]int32{}
	}
	for p := first; p <= last; p++ {
		x.pages[p] = append(x.pages[p], i)
	}
}

// all yields the records by time.
func (x *hostRecords) all() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for i := range x.list {
			if r := &x.list[i]; !r.gone && !yield(&r.Record) {
				return
			}
		}
	}
}

// overlapping returns the records that overlap [from, end), by time, as indices in list.
func (x *hostRecords) overlapping(from, end uint64) (found []int32) {
	if from >= end || len(x.list) == 0 {
		return nil
	}
	look := func(list []int32) []int32 {
		list = slices.DeleteFunc(list, func(i int32) bool { return x.list[i].gone })
		for _, i := range list {
			if r := &x.list[i]; r.From < end && from < r.End {
				found = append(found, i)
			}
		}
		return list
	}
	x.wide = look(x.wide)
	if first, last, few := pagesOf(from, end); few {
		for p := first; p <= last; p++ {
			if list := x.pages[p]; len(list) > 0 {
				x.pages[p] = look(list)
			}
		}
	} else {
		for p, list := range x.pages { // any order will do: found is sorted below
			x.pages[p] = look(list)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// supersede removes what a new record supersedes, and adds the new record.
func (x *hostRecords) supersede(r Record) {
	for _, i := range x.overlapping(r.From, r.End) {
		if r.supersedes(&x.list[i].Record) {
			x.list[i].gone = true
			x.gone++
		}
	}
	if x.gone > len(x.list)/2+fewPages {
		x.rebuild(x.records())
	}
	x.add(r)
}

// cut removes the bytes [from, end) from all records.
func (x *hostRecords) cut(from, end uint64) {
	part := false
	for _, i := range x.overlapping(from, end) {
		r := &x.list[i]
		if r.From < from || r.End > end {
			part = true
			continue
		}
		r.gone = true
		x.gone++
	}
	if part {
		x.rebuild(withoutRange(x.records(), from, end))
	}
}

func (x *hostRecords) records() (all []Record) {
	for r := range x.all() {
		all = append(all, *r)
	}
	return all
}

func (x *hostRecords) rebuild(records []Record) {
	*x = hostRecords{}
	for _, r := range records {
		x.add(r)
	}
}
