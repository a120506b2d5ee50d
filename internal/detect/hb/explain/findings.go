// Package explain makes findings of races: one for each pair of places, with what people need to know of it. It is given
// facts and never looks at an access history.
package explain

import (
	"cmp"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
)

// Pair is two places, the smaller first.
type Pair struct{ A, B uint64 }

// PairOf gives the pair of two places.
func PairOf(x, y uint64) Pair { return Pair{min(x, y), max(x, y)} }

// Findings gathers the races of a run.
type Findings struct {
	list *detect.Shortlist[Pair, finding]
	now  map[Pair]*current // of the operation being judged
	sure []Pair            // keys of now, in order
}

// finding is what is known of the races of a pair of places.
type finding struct {
	category  detect.Category // the gravest so far
	facts     detect.Facts    // of the first race of that category
	count     int
	addresses AddressSet
}

// current is the races of the operation being judged with accesses of a place.
type current struct {
	*finding
	lanes uint32 // that race
	kept  bool
}

// NewFindings makes an empty list that keeps so many findings, 0 for detect.DefaultFindings.
func NewFindings(most int) *Findings {
	return &Findings{now: map[Pair]*current{}, list: detect.NewShortlist(most,
		func(x, y Pair) int { return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B)) },
		func(f *finding) (detect.Severity, detect.Kind) { return f.category.Severity(), f.facts.Kind() })}
}

// Add adds a race of a lane of the operation being judged in the bytes [from, end) of a space. Facts are asked for where the
// race is the first of its category for the pair.
func (f *Findings) Add(p Pair, lane int, c detect.Category, space, from, end uint64, facts func() detect.Facts) {
	x := f.now[p]
	if x == nil {
		x = &current{finding: f.list.Get(p), kept: true}
		if x.finding == nil {
			x.finding = &finding{}
			if severity, beyond := f.list.Beyond(p); beyond {
				x.kept, x.category = false, gravest(severity)
			} else {
				f.list.Put(p, x.finding)
			}
		}
		f.now[p] = x
		f.sure = append(f.sure, p)
	}
	x.lanes |= 1 << uint(lane)
	if c > x.category {
		if !x.kept { // graver than the pair was when it was let go
			x.kept = true
			f.list.Put(p, x.finding)
		}
		x.category, x.facts = c, facts()
	}
	if x.kept {
		x.addresses.Add(space, from, end)
	}
}

// gravest is the gravest category of a severity.
func gravest(s detect.Severity) detect.Category {
	for c := detect.CrossLaunch; c > detect.NoRace; c-- {
		if c.Severity() == s {
			return c
		}
	}
	return detect.NoRace
}

// Settle ends the operation being judged: each of its lanes that races at a pair of places counts once there.
func (f *Findings) Settle() {
	if len(f.sure) == 0 {
		return
	}
	for _, p := range f.sure {
		f.now[p].count += bits.OnesCount32(f.now[p].lanes)
	}
	clear(f.now)
	f.sure = f.sure[:0]
	f.list.Trim()
}

// Total is the races of a pair of places.
type Total struct {
	Pair
	Category         detect.Category
	Count, Addresses int
}

// Totals gives what was found, by places.
func (f *Findings) Totals() []Total {
	var all []Total
	for _, p := range f.list.Keys() {
		x := f.list.Get(p)
		all = append(all, Total{p, x.category, x.count, x.addresses.Len()})
	}
	return all
}

// Findings gives what was found, by places, under a detector's name.
func (f *Findings) Findings(detector string) []detect.Finding {
	var all []detect.Finding
	for _, p := range f.list.Keys() {
		x := f.list.Get(p)
		out := detect.NewRace(detector, &x.facts)
		out.Count, out.Addresses = x.count, x.addresses.Len()
		all = append(all, out)
	}
	return all
}

// More is as in detect.Capped.
func (f *Findings) More() (int, bool) { return f.list.More() }
