// Package explain turns races into findings, one for each pair of places, with the facts that users need. It queries an
// access history only for the strong accesses of a variable, and only to explain a race.
package explain

import (
	"cmp"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
)

// Pair is two places, the smaller first.
type Pair struct{ A, B uint64 }

// PairOf returns the pair of two places.
func PairOf(x, y uint64) Pair { return Pair{min(x, y), max(x, y)} }

// Findings collects the races of a run.
type Findings struct {
	list  *detect.Shortlist[Pair, finding]
	now   []*current // races of the operation being judged
	races uint64
	// Locks says that a thread has observed another by a compare-and-swap or an exchange. Until then no facts can say
	// that a lock passed (detect.Handover.Lock).
	Locks bool
}

// finding is what is known of the races at a pair of places.
type finding struct {
	category  detect.Category // the gravest so far
	across    bool            // facts are of a race between blocks
	facts     detect.Facts    // of the first race of that category, preferring one between blocks, joined with others: see detect.Facts.Join
	own       detect.Facts    // if isOwn: the last of facts from an execution that the program itself asked for, not a rerun
	isOwn     bool
	count     int
	addresses AddressSet
	took      [2]detect.Participants // by place of the pair; if the places are equal, by earlier and later access
}

// current is the races of the operation being judged at a pair of places.
type current struct {
	*finding
	pair  Pair
	lanes uint32 // lanes that race
	kept  bool   // the finding is in Findings.list
}

// NewFindings makes an empty Findings that keeps at most most findings; 0: detect.DefaultFindings.
func NewFindings(most int) *Findings {
	return &Findings{list: detect.NewShortlist(most,
		func(x, y Pair) int { return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B)) },
		func(f *finding) (detect.Severity, detect.Kind) { return f.facts.Severity(), f.facts.Kind() })}
}

// Add adds races of lanes of the operation being judged with an access. across says that the access is of another
// block. observes says that a thread of the operation's block has observed others. facts is called only if its result
// may change the explanation. Add returns true if these races now explain the pair.
func (f *Findings) Add(p Pair, lanes uint32, c detect.Category, across, observes bool, facts func() detect.Facts) (shown bool) {
	f.races++
	x := f.at(p)
	x.lanes |= lanes
	switch faulty := x.kept && x.facts.Severity() == detect.Error; {
	case c.Severity() == detect.Error:
	case faulty && x.facts.Category != c:
		x.category = max(x.category, c)
		return false
	case !faulty && f.Locks && c == detect.LockstepRace && x.category.Severity() < detect.Error:
		if y := facts(); y.Severity() == detect.Error {
			x.keep(f)
			x.explain(y)
			x.category, x.across = max(x.category, c), across
			return true
		}
	}
	switch {
	case !x.kept && c == detect.VolatileRace && x.category.Severity() < detect.Error:
		if y := facts(); y.Severity() < detect.Error {
			return false
		}
	case c == detect.CopyPending && c > x.category && x.kept && x.facts.Copy != nil && x.facts.Copy.Lacking: // explained already
		x.category = c
		return false
	case c > x.category:
	case c == x.category && x.kept && (!c.Refined() || c == detect.AtomicWithPlain) && across && !x.across:
	case c == x.category && x.kept && c.Refined() && (across || c != detect.AtomicWithPlain) && (across && observes || !(x.facts.Unsynchronised() && x.facts.Severity() == detect.Error)):
		y := facts()
		out := x.facts.Join(&y)
		x.explain(*out)
		return out == &y
	default:
		return false
	}
	x.keep(f)
	x.explain(facts())
	x.category, x.across = c, across
	return true
}

// Unawaited refines the explanation of a pair: another thread of the block of one of the two has waited for the access
// by the other.
func (f *Findings) Unawaited(p Pair, which string) {
	x := f.list.Get(p)
	if x == nil || x.facts.Handed || x.facts.Kind() != x.facts.Category.Kind() {
		return
	}
	if x.isOwn && x.own.Later == x.facts.Later && x.own.Earlier == x.facts.Earlier {
		x.own.Unawaited = which
	}
	x.facts.Unawaited = which
}

func (x *finding) explain(by detect.Facts) {
	if x.facts = by; by.Later.Launch.Rerun() == 0 {
		x.own, x.isOwn = by, true
	}
}

// shown returns the facts to show: those of an execution that the program itself asked for, if they have the same kind
// and severity.
func (x *finding) shown() *detect.Facts {
	if x.isOwn && x.own.Kind() == x.facts.Kind() && x.own.Severity() == x.facts.Severity() {
		return &x.own
	}
	return &x.facts
}

// keep puts a finding back into the list: it has become graver than when it was dropped.
func (x *current) keep(f *Findings) {
	if !x.kept {
		x.kept = true
		f.list.Put(x.pair, x.finding)
	}
}

// Bytes adds the bytes [from, end) of a space to those of the races of the operation being judged.
func (f *Findings) Bytes(p Pair, space, from, end uint64) {
	if x := f.at(p); x.kept {
		x.addresses.Add(space, from, end)
	}
}

// Took adds the threads of a race of the operation being judged.
func (f *Findings) Took(p Pair, a *history.Access, r *history.Race) {
	x := f.at(p)
	if !x.kept {
		return
	}
	later := 1
	if p.A != p.B && a.Site.Place == p.A {
		later = 0
	}
	if l := a.Actor.Launch; l != nil {
		x.took[later].Add(&l.Info, a.Actor.Warp, a.Actor.Lane, a.From)
	}
	if s := &r.Earlier.Stamp; s.Launch != nil {
		x.took[1-later].Add(&s.Launch.Info, s.Warp, s.Lane, r.Earlier.From)
	}
}

// Unwatched counts a race that is not reported.
func (f *Findings) Unwatched() { f.races++ }

// Races returns the number of calls of Add and Unwatched.
func (f *Findings) Races() uint64 { return f.races }

// at returns the races of the operation being judged at a pair of places.
func (f *Findings) at(p Pair) *current {
	for i := len(f.now) - 1; i >= 0; i-- { // nearly always the last of a few
		if f.now[i].pair == p {
			return f.now[i]
		}
	}
	x := &current{finding: f.list.Get(p), pair: p, kept: true}
	if x.finding == nil {
		x.finding = &finding{}
		if severity, beyond := f.list.Beyond(p); beyond {
			x.kept, x.category = false, gravest(severity)
		} else {
			f.list.Put(p, x.finding)
		}
	}
	f.now = append(f.now, x)
	return x
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

// Settle ends the operation being judged. For each pair of places, every lane that races there is counted once.
func (f *Findings) Settle() {
	if len(f.now) == 0 {
		return
	}
	for _, x := range f.now {
		x.count += bits.OnesCount32(x.lanes)
	}
	clear(f.now)
	f.now = f.now[:0]
	f.list.Trim()
}

// Total is the result for a pair of places.
type Total struct {
	Pair
	Category         detect.Category
	Count, Addresses int
}

// Totals returns the totals, ordered by places.
func (f *Findings) Totals() []Total {
	var all []Total
	for _, p := range f.list.Keys() {
		x := f.list.Get(p)
		all = append(all, Total{p, x.category, x.count, x.addresses.Len()})
	}
	return all
}

// Findings returns the findings under a detector's name, ordered by places.
func (f *Findings) Findings(detector string) []detect.Finding {
	var all []detect.Finding
	reused, lost := f.reused(), f.lost()
	for _, p := range f.list.Keys() {
		x := f.list.Get(p)
		if at := x.facts.Overtaken(); at != 0 && reused[at] {
			continue
		}
		facts := *x.shown()
		facts.Lost = lost[p]
		out := detect.NewRace(detector, &facts)
		out.Count, out.Addresses = x.count, x.addresses.Len()
		for i := range out.Accesses {
			side := i
			if p.A != p.B && out.Accesses[i].Host == "" {
				side = 1
				if uint64(out.Accesses[i].Place) == p.A {
					side = 0
				}
			}
			if side < 2 && x.took[side].Blocks != nil && out.Accesses[i].Host == "" {
				out.Accesses[i].Took = &x.took[side]
			}
		}
		all = append(all, out)
	}
	return all
}

// reused returns the places of copies that overwrite shared memory which others may still read.
func (f *Findings) reused() map[uint32]bool {
	all := map[uint32]bool{}
	for _, p := range f.list.Keys() {
		if x := &f.list.Get(p).facts; x.Kind() == detect.StageReuse && x.Later.Async && x.Later.Op == detect.Write {
			all[x.Later.Place] = true
		}
	}
	return all
}

// lost returns the pairs of the load and the store of an update (x++) that lanes of one warp lose to each other. A
// barrier between the load and the store would order the lanes, but would save no update.
func (f *Findings) lost() map[Pair]bool {
	all := map[Pair]bool{}
	for _, p := range f.list.Keys() {
		if x := f.list.Get(p); p.A == p.B && x.category == detect.LostUpdate {
			all[PairOf(uint64(x.facts.Later.Load), p.A)] = true
		}
	}
	return all
}

// More is as in detect.Capped.
func (f *Findings) More() (int, bool) { return f.list.More() }
