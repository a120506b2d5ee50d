// Package findings turns races into findings: one for each pair of places, with the gravest race as its example.
package findings

import (
	"cmp"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Race is a race as a detector reports it.
type Race struct {
	Facts     detect.Facts
	Kind      detect.Kind      // "": the kind of Facts
	Note      string           // the detector's own name for the race, for the message; may be ""
	Predicted bool             // not in the observed order of events, but in another order of the same trace
	Info      bool             // its severity is info, whatever the Facts are
	Lanes     int              // the number of threads of the later access that race; 0 counts as 1
	More      int              // the number of racing bytes outside the overlap of the two accesses
	Sections  []detect.Section // for detect.Finding.Sections
}

// Set collects the races of one detector.
type Set struct {
	detector string
	watch    *detect.Watch
	found    *detect.Shortlist[pair, entry]
	last     pair // the pair that entry belongs to: the one added last
	entry    *entry
}

// pair is two places, the smaller first. Host operations are identified by name.
type pair struct{ a, b site }

type site struct {
	place uint32
	host  string
}

type entry struct {
	race  Race
	count int
	bytes map[stretch]uint64 // the racing bytes, a bit each
	more  int                // the number of racing bytes that are not in bytes
}

// stretch is 64 bytes of global memory, or of the shared memory of a block.
type stretch struct {
	launch, block uint32 // 0, 0: global memory
	number        uint64
}

const stretchBytes = 64

// New makes a Set for the detector of that name.
func New(detector string, c detect.Config) *Set {
	order := func(p, q pair) int { return cmp.Or(compare(p.a, q.a), compare(p.b, q.b)) }
	rank := func(e *entry) (detect.Severity, detect.Kind) { return e.race.severity(), e.race.kind() }
	return &Set{detector: detector, watch: c.Watch, found: detect.NewShortlist(c.MaxFindings, order, rank)}
}

func (r *Race) severity() detect.Severity {
	if r.Info {
		return detect.Info
	}
	return r.Facts.Category.Severity()
}

func (r *Race) kind() detect.Kind { return cmp.Or(r.Kind, r.Facts.Kind()) }

// More implements detect.Capped for the detector.
func (s *Set) More() (int, bool) { return s.found.More() }

// beyond reports whether the race belongs to a finding that need not be kept.
func (s *Set) beyond(p pair, r *Race) bool {
	severity, ok := s.found.Beyond(p)
	return ok && r.severity() <= severity
}

// Takes reports whether Add would use this race as the example of a finding, rather than only count it. If not, the
// caller need not compute expensive details of the race.
func (s *Set) Takes(r *Race) bool {
	p := r.pair()
	e := s.found.Get(p)
	return e == nil && !s.beyond(p, r) || e != nil && e.yields(r)
}

// pair returns the places of a race.
func (r *Race) pair() pair {
	p := pair{site{r.Facts.Earlier.Place, r.Facts.Earlier.Host}, site{r.Facts.Later.Place, r.Facts.Later.Host}}
	if compare(p.a, p.b) > 0 {
		p.a, p.b = p.b, p.a
	}
	return p
}

// yields reports whether r is a better example than the current one.
func (e *entry) yields(r *Race) bool {
	if r.Info != e.race.Info {
		return !r.Info
	}
	return r.Facts.Category > e.race.Facts.Category || !r.Predicted && e.race.Predicted
}

// Add counts a race, and adds the bytes in which its two accesses overlap.
func (s *Set) Add(r *Race) {
	x, y := &r.Facts.Earlier, &r.Facts.Later
	if !s.watch.Races(x, y) {
		return
	}
	e := s.entry
	if p := r.pair(); e == nil || p != s.last {
		if e = s.found.Get(p); e == nil {
			if s.beyond(p, r) {
				return
			}
			e = &entry{race: *r, bytes: map[stretch]uint64{}}
			s.found.Put(p, e)
			if s.found.Trim(); s.found.Get(p) == nil {
				s.entry = nil
				return
			}
		}
		s.last, s.entry = p, e
	}
	if e.yields(r) {
		e.race = *r
	}
	e.count += max(r.Lanes, 1)
	e.more += r.More
	at := stretch{}
	if y.Space == event.Shared {
		at.launch, at.block = y.Launch.ID, y.Warp/max(y.Launch.WarpsPerBlock(), 1)
	}
	from, to := max(x.Address, y.Address), min(x.Address+uint64(x.Size), y.Address+uint64(y.Size))
	for from < to {
		at.number = from / stretchBytes
		end := min(to, (at.number+1)*stretchBytes)
		e.bytes[at] |= ^uint64(0) >> (stretchBytes - (end - from)) << (from % stretchBytes)
		from = end
	}
}

// concerned returns the number of racing bytes.
func (e *entry) concerned() int {
	n := e.more
	for _, b := range e.bytes {
		n += bits.OnesCount64(b)
	}
	return n
}

func compare(x, y site) int {
	return cmp.Or(cmp.Compare(x.host, y.host), cmp.Compare(x.place, y.place))
}

// Findings returns the findings, ordered by places.
func (s *Set) Findings() []detect.Finding {
	keys := s.found.Keys()
	s.entry = nil // it may have been dropped
	out := make([]detect.Finding, len(keys))
	for i, p := range keys {
		e := s.found.Get(p)
		f := detect.NewRace(s.detector, &e.race.Facts)
		f.Kind, f.Severity = e.race.kind(), e.race.severity()
		if e.race.Note != "" {
			f.Message += " (" + s.detector + ": " + e.race.Note + ")"
		}
		f.NoSync = e.race.Facts.Earlier.Sync == nil && e.race.Facts.Later.Sync == nil
		f.Predicted, f.Count, f.Addresses, f.Sections = e.race.Predicted, e.count, e.concerned(), e.race.Sections
		out[i] = f
	}
	return out
}
