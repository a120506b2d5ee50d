package engine

import (
	"cmp"
	"math"

	"fencepost.dev/fencepost/internal/engine/loader"
)

const (
	// windowThreads is the number of threads that are resident at first, windowApart where blocks do not communicate: what few blocks
	// work on is in the cache. windowBlocks is the least number of blocks. windowBytes bounds what the stacks of that many threads take.
	windowThreads = 8192
	windowApart   = 1024
	windowBlocks  = 4
	windowBytes   = 256 << 20
	// SliceCost is what a warp may run before the next one does, by seed 0.
	SliceCost = 256
	// barrierTurns bounds how often the warps of a block have their turns before those of the next block do, by seed 0, as long
	// as they complete a barrier each time: what they work on is in the cache.
	barrierTurns = 32
	// Gives is before how many of its strong accesses a warp may give way (Contended). A slice holds the whole of a short critical
	// section, so that by round robin the warps of a small kernel run one after the other, and no lock, ticket or queue is contended.
	// Before each of them, warps that do the same would take turns in step, and only the first would ever succeed.
	Gives = 32
	// separations is before how many of its releases a warp gives way in a cooperative launch (GivesWay). The lengths of turns there
	// are as many as turnLengths, a prime: where all were alike, a turn could end in a critical section each time.
	separations = 256
	turnLengths = 61
	// The window grows by growBy when no block has finished while the warps that can step ran so much each, because the
	// blocks inside may wait for blocks outside: growPolling when all of them polled, growReading when none wrote,
	// growAnyhow otherwise.
	growBy      = 4
	growPolling = 1 << 10
	growReading = 4 << 10
	growAnyhow  = 64 << 10
	// demote is what the warp of the highest priority runs at least before it goes to the end (PCT), so that spinning ends.
	// demoteStep more for each time that one did, so that no loop that takes a lock and gives it back always goes while it has it.
	demote      = 16 << 10
	demoteStep  = 257
	firstLowest = uint64(1 << 62)
	// AfterStuck is how many warp steps a grid goes on after a block that can never finish.
	AfterStuck = 1 << 20
)

// schedule is the state of a launch's scheduling: which blocks are resident, and whose turn it is.
type schedule struct {
	blocks   uint64 // of the grid
	started  uint64
	chunk    []uint32 // clusters to start next
	window   int      // blocks that may be resident
	resident []*CTA
	warps    []*Warp // of the resident blocks, in the order of a round
	sinceEnd uint64  // cost since a block finished or the window grew
	spent    uint64  // cost of the launch
	stuck    bool    // a block can never finish
	deadline uint64  // clock at which a grid with a stuck block ends
	shown    uint64  // clock of the last Progress
	Spin     spin
	passes   Passes
	turned   uint64 // turns, where their lengths differ
	arrives  bool   // the turn of a warp has ended before a release (see GivesWay)

	changes []uint64 // PCT: clocks at which the running warp loses its priority
	lowest  uint64   // PCT: the next priority below all others
}

func (s *schedule) init(r *Run) {
	s.blocks = r.Launch.Grid.Count()
	perBlock := int(r.Launch.WarpsPerBlock()) * 32
	f := r.Launch.Func
	perThread := 8*f.Regs + f.ParamFrame + f.LocalFrame
	threads := windowThreads
	if !r.Image.Communicates {
		threads = windowApart
	}
	s.window = max(windowBlocks, min(threads, windowBytes/(perThread+1))/perBlock)
	if r.Image.Cancels {
		s.window = windowBlocks // so that there are blocks to cancel
	}
	if r.Launch.Cooperative {
		s.window = math.MaxInt32 // all of them; Check bounds their number
	}
	s.lowest = firstLowest
	s.Spin.first = cmp.Or(r.Launch.SpinFirst, spinFirst)
	s.Spin.at = s.Spin.first
	if r.Launch.Schedule == PCT {
		for range 3 {
			s.changes = append(s.changes, uint64(r.rng.spread(20)))
		}
	}
}

// Loop runs the grid to its end.
func (r *Run) Loop() error {
	s := &r.Sched
	for {
		apart := r.startsApart()
		if !apart {
			r.admit()
		}
		if len(s.resident) == 0 && s.started == s.blocks {
			return r.finish()
		}
		var ran bool
		var err error
		if apart {
			ran, err = r.roundApart()
		} else {
			ran, err = r.round()
		}
		if err != nil {
			return r.interrupted(err)
		}
		r.retire()
		if !ran && s.started == s.blocks && len(s.resident) > 0 {
			panic("BUG: blocks without runnable warps are resident")
		}
		r.widen()
		if err := r.spins(); err != nil {
			return err
		}
	}
}

// finish is the end of a grid of which no block is resident.
func (r *Run) finish() error {
	if r.Sched.stuck {
		r.Faults.reportStuck(r)
		return ErrDeadlock
	}
	return nil
}

// interrupted is the end of a grid that has not finished.
func (r *Run) interrupted(err error) error {
	if r.Sched.stuck {
		r.Faults.reportStuck(r)
	}
	if err == ErrTrap || err == ErrAssert || err == ErrDeadlock {
		return err
	}
	r.Faults.reportStopped(r, err)
	return err
}

// admit starts blocks while the window has room.
func (r *Run) admit() {
	s := &r.Sched
	for len(s.resident) < s.window && s.started < s.blocks {
		of := r.newCluster(r.nextCluster())
		for _, c := range of.ctas {
			s.resident = append(s.resident, c)
			for _, w := range c.Warps {
				if r.Yields() || r.Launch.Schedule != Fair { // otherwise nothing is left to chance
					w.priority = 1<<63 | r.rng.next()
				}
				s.warps = append(s.warps, w)
			}
		}
	}
}

// nextCluster gives the cluster, mostly of one block, to start next: in their order, or shuffled by 256 with a seed.
func (r *Run) nextCluster() uint32 {
	s := &r.Sched
	size := r.Launch.ClusterShape().Count()
	first := s.started / size
	if r.Launch.Seed == 0 {
		s.started += size
		return uint32(first)
	}
	if len(s.chunk) == 0 {
		n := min(256, s.blocks/size-first)
		for i := range n {
			s.chunk = append(s.chunk, uint32(first+n-1-i))
		}
		for i := len(s.chunk) - 1; i > 0; i-- {
			j := r.rng.below(i + 1)
			s.chunk[i], s.chunk[j] = s.chunk[j], s.chunk[i]
		}
	}
	last := len(s.chunk) - 1
	b := s.chunk[last]
	s.chunk = s.chunk[:last]
	s.started += size
	return b
}

// round gives every warp that can step its turn (by PCT: the one of the highest priority), and reports whether there
// was one.
func (r *Run) round() (ran bool, err error) {
	s := &r.Sched
	if r.Launch.Schedule == PCT {
		return r.roundPCT()
	}
	if r.Launch.Seed != 0 {
		for i := len(s.warps) - 1; i > 0; i-- {
			j := r.rng.below(i + 1)
			s.warps[i], s.warps[j] = s.warps[j], s.warps[i]
		}
	}
	for i := 0; i < len(s.warps); {
		j := i + 1
		if r.Launch.Seed == 0 { // the warps of a block follow each other
			j = i + len(s.warps[i].CTA.Warps)
		}
		if err := r.passesOf(s.warps[i:j], &ran); err != nil {
			return ran, err
		}
		i = j
	}
	return ran, nil
}

// passesOf gives some warps of a block a turn, and all of the block as many as Passes allows.
func (r *Run) passesOf(warps []*Warp, ran *bool) error {
	s, c := &r.Sched, warps[0].CTA
	s.arrives = false
	for s.passes.begin(c); ; {
		if err := r.turns(warps, ran); err != nil {
			return err
		}
		if r.Launch.Seed != 0 || s.arrives || !s.passes.Again(c) {
			return nil
		}
	}
}

// startsApart reports whether a block may start when the turn of the block before it is over: no block depends on
// whether a later one is resident.
func (r *Run) startsApart() bool {
	l := r.Launch
	return !l.Together && l.Seed == 0 && l.Schedule == Fair && !l.Cooperative && !r.Image.Cancels && l.ClusterShape().Count() == 1
}

// roundApart does what admit, round and retire do, in the same order for each block, but starts a block right before its
// first turn. Most blocks end in that turn, and the next one takes their place in memory, which the cache holds.
func (r *Run) roundApart() (ran bool, err error) {
	s := &r.Sched
	room := s.window - len(s.resident)
	if len(s.resident) > 0 {
		ran, err = r.round()
	}
	for ; room > 0 && s.started < s.blocks; room-- { // after an error too: it is reported with all blocks of the window
		c := r.single(r.nextCluster())
		if err == nil {
			err = r.passesOf(c.Warps, &ran)
		}
		if err == nil && c.Live == 0 && len(c.bulks) == 0 && len(c.cores.allocs) == 0 {
			r.ended(c)
			continue
		}
		s.resident = append(s.resident, c)
		s.warps = append(s.warps, c.Warps...)
	}
	return ran, err
}

// ended counts a block that has finished.
func (r *Run) ended(c *CTA) {
	r.Stats.Blocks++
	r.Sched.sinceEnd = 0
	c.gone = true
	r.free = append(r.free, c.cluster)
}

// Passes counts how often the warps of a block have their turns (barrierTurns).
type Passes struct {
	left   int    // that may follow
	before uint64 // CTA.Completed when the one at hand began
}

func (p *Passes) begin(c *CTA) { p.left, p.before = barrierTurns-1, c.Completed }

// Again begins another pass; false where the one at hand was the last: it has completed no barrier, or there were enough.
func (p *Passes) Again(c *CTA) bool {
	if p.left == 0 || c.Completed == p.before {
		return false
	}
	p.left--
	p.before = c.Completed
	return true
}

// turns gives each of some warps a turn.
func (r *Run) turns(warps []*Warp, ran *bool) error {
	s := &r.Sched
	usual := !r.Yields() && r.Launch.MaxSteps == 0
	for len(warps) > 0 {
		if usual && !s.stuck {
			n, some := r.Machine.Turns(warps, SliceCost, &s.passes)
			warps, *ran = warps[n:], *ran || some
			if err := r.halted(); err != nil || len(warps) == 0 {
				return err
			}
		}
		w := warps[0]
		warps = warps[1:]
		if !w.Runnable() {
			continue
		}
		n := uint64(SliceCost)
		switch {
		case r.Launch.Seed != 0:
			n = uint64(r.rng.spread(10))
		case r.separates():
			n += s.turned % turnLengths
			s.turned++
		}
		*ran = true
		r.turn(w, n)
		if err := r.halted(); err != nil {
			return err
		}
		if s.stuck && r.Clock >= s.deadline {
			return ErrDeadlock
		}
	}
	return nil
}

// roundPCT runs the warp of the highest priority for a while.
func (r *Run) roundPCT() (ran bool, err error) {
	s := &r.Sched
	var top *Warp
	for _, w := range s.warps {
		if w.Runnable() && (top == nil || w.priority > top.priority) {
			top = w
		}
	}
	if top == nil {
		return false, nil
	}
	n := demote + (firstLowest-s.lowest)*demoteStep%demote
	for _, c := range s.changes {
		if c > r.Clock && c-r.Clock < n {
			n = c - r.Clock
		}
	}
	before := top.Time
	// Cost counts polls more than the clock does, so a turn can end before its change point; the demotion then is early.
	r.turn(top, n)
	if top.Time-before >= n {
		top.priority = s.lowest
		s.lowest--
	}
	if err := r.halted(); err != nil {
		return true, err
	}
	if s.stuck && r.Clock >= s.deadline {
		return true, ErrDeadlock
	}
	return true, nil
}

// turn runs w until it has run n, cannot step, or the run ends.
func (r *Run) turn(w *Warp, n uint64) {
	from := w.Time
	if max := r.Launch.MaxSteps; max != 0 {
		n = min(n, max-r.Clock) // a step costs 1 or more
	}
	end := from + n
	w.began, w.Over = from, false
	r.Machine.Run(w, end)
	r.Spent(w.Time - from)
}

// Count counts steps of warps and lanes, of turns that have cost as much.
func (r *Run) Count(warps, lanes uint64) {
	r.Clock += warps
	r.Stats.Warps += warps
	r.Stats.Lanes += lanes
	r.Spent(warps)
}

// Spent counts what turns have cost.
func (r *Run) Spent(cost uint64) {
	r.Sched.sinceEnd += cost
	r.Sched.spent += cost
	if r.Launch.Progress != nil && r.Clock-r.Sched.shown >= 1<<16 {
		r.Sched.shown = r.Clock
		r.Launch.Progress(r.Stats)
	}
}

// GivesWay ends the turn of a warp before a strong access where the turn has run its time, or others are to go on first: what they
// do between two such accesses decides what the second one gives. (Before any other access the order matters only if there is a race.)
//
// In a cooperative launch a turn ends before each release operation, such as an arrival at the barrier of the grid: so all blocks see
// that they may leave the barrier before one of them arrives at the next. A block that sees the second arrival would have
// synchronised with what was done between the two, and that the barrier between these is missing would show nowhere. Each warp does
// so separations times at most: turns that end at the same places each time may keep a warp from a lock for ever, which is free
// in the turns of another one alone.
func (r *Run) GivesWay(w *Warp, end uint64, in *loader.Instr) bool {
	switch {
	case r.separates():
		if w.Over = w.Time != w.began && w.gaveWay < separations && in.Releases(); w.Over {
			w.gaveWay++
			r.Sched.arrives = true
		}
	case !r.Yields():
	case w.Time >= end:
		w.Over = true
	case r.Launch.Seed == 0 && r.Launch.Schedule == Contended && w.gaveWay < Gives && w.Time != w.began:
		w.gaveWay++
		w.Over = r.rng.below(2) == 0
	}
	return w.Over
}

// Yields says that turns may end before strong accesses: not by round robin.
func (r *Run) Yields() bool {
	return r.Launch.Seed != 0 || r.Launch.Schedule == Contended || r.Launch.Schedule == PCT || r.separates()
}

// separates says that turns end before release operations.
func (r *Run) separates() bool {
	return r.Launch.Cooperative && r.Launch.Schedule == Fair && r.Launch.Seed == 0
}

// retire takes away blocks that have finished, and those that never will.
func (r *Run) retire() {
	s := &r.Sched
	kept := s.resident[:0]
	for _, c := range s.resident {
		switch {
		case c.Live == 0:
			r.endBulks(c)
			r.endCores(c)
			r.Stats.Blocks++
			s.sinceEnd = 0
		case !c.cluster.runnable(c):
			r.Faults.addStuck(r, c)
			if !s.stuck {
				s.stuck, s.deadline = true, r.Clock+AfterStuck
			}
		default:
			kept = append(kept, c)
			continue
		}
		c.gone = true
		if c.cluster.gone() {
			r.free = append(r.free, c.cluster)
		}
	}
	if len(kept) == len(s.resident) {
		return
	}
	clear(s.resident[len(kept):])
	s.resident = kept
	warps := s.warps[:0]
	if len(kept) > 0 {
		for _, w := range s.warps {
			if !w.CTA.gone {
				warps = append(warps, w)
			}
		}
	}
	clear(s.warps[len(warps):])
	s.warps = warps
}

func (c *CTA) runnable() bool {
	for _, w := range c.Warps {
		if w.Runnable() {
			return true
		}
	}
	return false
}

// widen lets more blocks in when those that are resident seem to wait for others.
func (r *Run) widen() {
	s := &r.Sched
	if s.started == s.blocks || s.sinceEnd < growPolling {
		return
	}
	running, polling, reading := uint64(0), true, true
	for _, w := range s.warps {
		if w.Runnable() {
			running++
			polling = polling && w.Polls != 0
			reading = reading && w.Writes == 0
		}
	}
	need := uint64(growAnyhow)
	switch {
	case polling:
		need = growPolling
	case reading:
		need = growReading
	}
	if s.sinceEnd < need*running {
		return
	}
	for _, w := range s.warps {
		w.Polls, w.Writes = 0, 0
	}
	s.sinceEnd = 0
	s.window = growBy * max(s.window, len(s.resident))
}
