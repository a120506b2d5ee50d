// Package findings makes findings of races: one for each pair of places, the gravest race as its example.
package findings

import (
	"cmp"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Race is one race as a detector tells it.
type Race struct {
	Facts     detect.Facts
	Kind      detect.Kind      // "": what Facts give
	Note      string           // the detector's own name for it, for the message; "" for none
	Predicted bool             // not in the observed order of events, but in another of the same trace
	Info      bool             // of severity info, whatever Facts say
	Lanes     int              // threads of the later access that race; 0 counts as 1
	More      int              // bytes concerned besides those of the accesses, where only their number is known
	Sections  []detect.Section // as those of detect.Finding
}

// Set collects the races of one detector.
type Set struct {
	detector string
	watch    *detect.Watch
	found    *detect.Shortlist[pair, entry]
	last     pair // the one added to last, with its entry
	entry    *entry
}

// pair is two places, host operations by name, the smaller first.
type pair struct{ a, b site }

type site struct {
	place uint32
	host  string
}

type entry struct {
	race  Race
	count int
	bytes map[stretch]uint64 // the bytes concerned, a bit each
	more  int                // bytes concerned that are not among them
}

// stretch is 64 bytes: of global memory, or of the shared memory of a block.
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

// beyond says that the race is one more of a finding that need not be kept.
func (s *Set) beyond(p pair, r *Race) bool {
	severity, ok := s.found.Beyond(p)
	return ok && r.severity() <= severity
}

// Takes says that Add would make the finding of this race, rather than count it as one more of a finding: what is dear to
// know of it need not be found out otherwise.
func (s *Set) Takes(r *Race) bool {
	p := r.pair()
	e := s.found.Get(p)
	return e == nil && !s.beyond(p, r) || e != nil && e.yields(r)
}

// pair gives the places of a race.
func (r *Race) pair() pair {
	p := pair{site{r.Facts.Earlier.Place, r.Facts.Earlier.Host}, site{r.Facts.Later.Place, r.Facts.Later.Host}}
	if compare(p.a, p.b) > 0 {
		p.a, p.b = p.b, p.a
	}
	return p
}

// yields says that r is the better example.
func (e *entry) yields(r *Race) bool {
	if r.Info != e.race.Info {
		return !r.Info
	}
	return r.Facts.Category > e.race.Facts.Category || !r.Predicted && e.race.Predicted
}

// Add counts a race. Bytes of both accesses' overlap are counted as concerned.
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

// concerned is the number of bytes concerned.
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

// Findings gives what was added, in the order of the places.
func (s *Set) Findings() []detect.Finding {
	keys := s.found.Keys()
	s.entry = nil // it may not be kept any more
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
