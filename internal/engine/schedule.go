package engine

import (
	"cmp"
	"math"

	"fencepost.dev/fencepost/internal/engine/loader"
)

const (
	// windowThreads is the number of threads that are resident at first. If blocks do not communicate, it is
	// windowApart, because the data of few blocks fits the cache. windowBlocks is the minimum number of blocks.
	// windowBytes is the maximum size of the stacks of the threads.
	windowThreads = 8192
	windowApart   = 1024
	windowBlocks  = 4
	windowBytes   = 256 << 20
	// SliceCost is the cost of a warp's turn if the seed is 0.
	SliceCost = 256
	// instrumentedCost is roughly how many times more instructions an instrumented program executes. With it, warps get as
	// far in their turns, and lanes wait for each other as long, as in the original program.
	instrumentedCost = 16
	// barrierTurns is how often the warps of a block may have turns before those of the next block, if the seed is 0
	// and they complete a barrier each time. The data of the block stays in the cache.
	barrierTurns = 32
	// Gives is the number of a warp's first strong accesses before which its turn may end (Contended). A turn is longer
	// than a short critical section. With plain round robin, the warps of a small kernel would run one after the other,
	// and no lock, ticket or queue would be contended. If turns ended before every strong access, warps with the same
	// code would alternate at the same places, and only the first would ever succeed.
	Gives = 32
	// separations is the number of a warp's releases before which its turn ends in a cooperative launch (GivesWay). The
	// lengths of turns vary there with the period turnLengths, a prime number. If all turns had the same length, each
	// could end inside a critical section.
	separations = 256
	turnLengths = 61
	// The window grows by the factor growBy if no block has finished while each warp that can step has run for a
	// certain cost, because resident blocks may wait for others. The cost is growPolling if all warps polled,
	// growReading if none wrote, and growAnyhow otherwise.
	growBy      = 4
	growPolling = 1 << 10
	growReading = 4 << 10
	growAnyhow  = 64 << 10
	// demote is the minimum cost that the warp with the highest priority runs before it gets the lowest priority (PCT),
	// so that spinning ends. Each demotion adds demoteStep. Otherwise a loop that acquires and releases a lock could
	// always be demoted while it holds the lock.
	demote      = 16 << 10
	demoteStep  = 257
	firstLowest = uint64(1 << 62)
	// AfterStuck is the number of warp steps that a grid continues after one of its blocks can never finish.
	AfterStuck = 1 << 20
)

// schedule is the state of the scheduling of a launch: the resident blocks, and the turns.
type schedule struct {
	blocks   uint64 // number of blocks in the grid
	started  uint64
	chunk    []uint32 // the next clusters to start
	window   int      // maximum number of resident blocks
	resident []*CTA
	warps    []*Warp // of the resident blocks, in the order of turns
	sinceEnd uint64  // cost since the last block finished or the window grew
	spent    uint64  // total cost of the launch
	stuck    bool    // a block can never finish
	deadline uint64  // clock at which a grid with a stuck block ends
	shown    uint64  // clock of the last call of Progress
	Spin     spin
	passes   Passes
	turned   uint64 // number of turns, if their lengths vary
	arrives  bool   // the turn of a warp has ended before a release: see GivesWay

	changes []uint64 // PCT: clock values at which the running warp loses its priority
	lowest  uint64   // PCT: the next priority to assign, below all others
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
		s.window = windowBlocks // so that there are blocks left to cancel
	}
	if r.Launch.Cooperative {
		s.window = math.MaxInt32 // all blocks, whose number Check limits
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

// Loop runs the grid until it ends.
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

// finish ends a grid without resident blocks.
func (r *Run) finish() error {
	if r.Sched.stuck {
		r.Faults.reportStuck(r)
		return ErrDeadlock
	}
	return nil
}

// interrupted ends a grid that has not finished.
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
				if r.Yields() || r.Launch.Schedule != Fair { // otherwise nothing is random
					w.priority = 1<<63 | r.rng.next()
				}
				s.warps = append(s.warps, w)
			}
		}
	}
}

// nextCluster returns the next cluster to start, usually of one block. Clusters start in order, or, with a seed,
// shuffled in groups of 256.
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

// round gives each warp that can step a turn. With PCT, only the warp with the highest priority gets one. ran reports
// whether there was a turn.
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
		if r.Launch.Seed == 0 { // the warps of a block have adjacent turns
			j = i + len(s.warps[i].CTA.Warps)
		}
		if err := r.passesOf(s.warps[i:j], &ran); err != nil {
			return ran, err
		}
		i = j
	}
	return ran, nil
}

// passesOf gives some warps of a block a turn, and, if the seed is 0, as many more turns as Passes allows.
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

// startsApart reports whether a block may start after the turn of the block before it, because no block depends on
// whether a later one is resident.
func (r *Run) startsApart() bool {
	l := r.Launch
	return !l.Together && l.Seed == 0 && l.Schedule == Fair && !l.Cooperative && !r.Image.Cancels && l.ClusterShape().Count() == 1
}

// roundApart does the same as admit, round and retire, in the same order for each block, but starts a block just before
// its first turn. Most blocks end in that turn. The next block then reuses their memory, which is in the cache.
func (r *Run) roundApart() (ran bool, err error) {
	s := &r.Sched
	room := s.window - len(s.resident)
	if len(s.resident) > 0 {
		ran, err = r.round()
	}
	for ; room > 0 && s.started < s.blocks; room-- { // also after an error, which is reported with all blocks of the window
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

// ended counts and removes a block that has finished.
func (r *Run) ended(c *CTA) {
	r.Stats.Blocks++
	r.Sched.sinceEnd = 0
	r.leaves(c)
}

// leaves removes a block. The memory of its cluster is reused when all blocks of the cluster have been removed.
func (r *Run) leaves(c *CTA) {
	c.gone = true
	if c.cluster.gone() {
		r.free = append(r.free, c.cluster)
	}
}

// Passes limits how many turns in succession the warps of a block have (barrierTurns).
type Passes struct {
	left   int    // number of passes that may follow
	before uint64 // CTA.Completed at the beginning of the current pass
}

func (p *Passes) begin(c *CTA) { p.left, p.before = barrierTurns-1, c.Completed }

// Again begins another pass. It returns false if there is none: the current pass has completed no barrier, or the limit
// is reached.
func (p *Passes) Again(c *CTA) bool {
	if p.left == 0 || c.Completed == p.before {
		return false
	}
	p.left--
	p.before = c.Completed
	return true
}

// slice returns the cost of a warp's turn with seed 0.
func (r *Run) slice() uint64 {
	if r.Launch.HostWrites {
		return instrumentedCost * SliceCost
	}
	return SliceCost
}

// turns gives each of some warps a turn.
func (r *Run) turns(warps []*Warp, ran *bool) error {
	s := &r.Sched
	usual := !r.Yields() && r.Launch.MaxSteps == 0
	for len(warps) > 0 {
		if usual && !s.stuck {
			n, some := r.Machine.Turns(warps, r.slice(), &s.passes)
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
		n := r.slice()
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

// roundPCT gives the warp with the highest priority a turn.
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
	// The cost counts polls more than the clock does, so a turn can end before its change point. The demotion is then
	// early.
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

// turn runs w until its cost is n, w cannot step, or the run ends.
func (r *Run) turn(w *Warp, n uint64) {
	from := w.Time
	if max := r.Launch.MaxSteps; max != 0 {
		n = min(n, max-r.Clock) // a step costs at least 1
	}
	end := from + n
	w.began, w.Over = from, false
	r.Machine.Run(w, end)
	r.Spent(w.Time - from)
}

// Count counts steps of warps and lanes. Each step of a warp costs 1.
func (r *Run) Count(warps, lanes uint64) {
	r.Clock += warps
	r.Stats.Warps += warps
	r.Stats.Lanes += lanes
	r.Spent(warps)
}

// Spent adds the cost of turns.
func (r *Run) Spent(cost uint64) {
	r.Sched.sinceEnd += cost
	r.Sched.spent += cost
	if r.Launch.Progress != nil && r.Clock-r.Sched.shown >= 1<<16 {
		r.Sched.shown = r.Clock
		r.Launch.Progress(r.Stats)
	}
}

// GivesWay reports whether the turn of a warp ends before a strong access: because its time has passed, or to let other
// warps run first. The operations of others between two strong accesses determine the result of the second. Before
// other accesses the order matters only if there is a race.
//
// In a cooperative launch a turn ends before each release operation, such as an arrival at a grid barrier. All blocks
// then see that they may leave the barrier before any of them arrives at the next one. Otherwise, a block that sees the
// second arrival would also have synchronised with the operations between the two arrivals, and a missing barrier
// between these would never be found. Each warp's turns end this way at most separations times: turns that always end
// at the same places may keep a warp from a lock forever, if the lock is free only within the turns of another warp.
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

// Yields reports whether turns may end before strong accesses. They may in all schedules except plain round robin.
func (r *Run) Yields() bool {
	return r.Launch.Seed != 0 || r.Launch.Schedule == Contended || r.Launch.Schedule == PCT || r.separates()
}

// separates reports whether turns end before release operations.
func (r *Run) separates() bool {
	return r.Launch.Cooperative && r.Launch.Schedule == Fair && r.Launch.Seed == 0
}

// retire removes blocks that have finished or can never finish.
func (r *Run) retire() {
	s := &r.Sched
	kept := s.resident[:0]
	for _, c := range s.resident {
		switch {
		case c.Live == 0:
			r.endBulks(c)
			r.endCores(c)
			r.ended(c)
		case !c.cluster.runnable(c):
			r.Faults.addStuck(r, c)
			if !s.stuck {
				s.stuck, s.deadline = true, r.Clock+AfterStuck
			}
			r.leaves(c)
		default:
			kept = append(kept, c)
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

// widen enlarges the window if the resident blocks may wait for others.
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
