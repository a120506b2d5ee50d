// Package tally makes findings of races: one for each pair of places, the gravest race as its example.
package tally

import (
	"cmp"
	"maps"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Race is one race as a detector tells it.
type Race struct {
	Facts     detect.Facts
	Kind      detect.Kind // "": what Facts give
	Note      string      // the detector's own name for it, for the message; "" for none
	Predicted bool        // not in the observed order of events, but in another of the same trace
	Info      bool        // of severity info, whatever Facts say
	Lanes     int         // threads of the later access that race; 0 counts as 1
}

// Tally collects the races of one detector.
type Tally struct {
	detector string
	found    map[pair]*entry
}

// pair is two places, host operations by name, the smaller first.
type pair struct{ a, b site }

type site struct {
	place uint32
	host  string
}

type entry struct {
	race      Race
	count     int
	addresses map[address]struct{}
}

// address is a byte: of global memory, or of the shared memory of a block.
type address struct {
	launch, block uint32 // 0, 0: global memory
	at            uint64
}

// New makes a Tally for the detector of that name.
func New(detector string) *Tally { return &Tally{detector, map[pair]*entry{}} }

// Add counts a race. Bytes of both accesses' overlap are counted as concerned.
func (t *Tally) Add(r *Race) {
	x, y := &r.Facts.Earlier, &r.Facts.Later
	p := pair{site{x.Place, x.Host}, site{y.Place, y.Host}}
	if compare(p.a, p.b) > 0 {
		p.a, p.b = p.b, p.a
	}
	e := t.found[p]
	switch {
	case e == nil:
		e = &entry{race: *r, addresses: map[address]struct{}{}}
		t.found[p] = e
	case r.Info != e.race.Info:
		if !r.Info {
			e.race = *r
		}
	case r.Facts.Category > e.race.Facts.Category, !r.Predicted && e.race.Predicted:
		e.race = *r
	}
	e.count += max(r.Lanes, 1)
	a := address{}
	if y.Space == event.Shared {
		a.launch, a.block = y.Launch.ID, y.Warp/max(y.Launch.WarpsPerBlock(), 1)
	}
	for at := max(x.Address, y.Address); at < min(x.Address+uint64(x.Size), y.Address+uint64(y.Size)); at++ {
		a.at = at
		e.addresses[a] = struct{}{}
	}
}

func compare(x, y site) int {
	return cmp.Or(cmp.Compare(x.host, y.host), cmp.Compare(x.place, y.place))
}

// Findings gives what was added, in the order of the places.
func (t *Tally) Findings() []detect.Finding {
	keys := slices.SortedFunc(maps.Keys(t.found), func(p, q pair) int {
		return cmp.Or(compare(p.a, q.a), compare(p.b, q.b))
	})
	out := make([]detect.Finding, len(keys))
	for i, p := range keys {
		e := t.found[p]
		f := detect.NewRace(t.detector, &e.race.Facts)
		if e.race.Kind != "" {
			f.Kind = e.race.Kind
		}
		if e.race.Info {
			f.Severity = detect.Info
		}
		if e.race.Note != "" {
			f.Message += " (" + t.detector + ": " + e.race.Note + ")"
		}
		f.NoSync = e.race.Facts.Earlier.Sync == nil && e.race.Facts.Later.Sync == nil
		f.Predicted, f.Count, f.Addresses = e.race.Predicted, e.count, len(e.addresses)
		out[i] = f
	}
	return out
}
