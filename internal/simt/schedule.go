package simt

import (
	"cmp"
	"math"

	"fencepost.dev/fencepost/internal/isa"
)

const (
	// windowThreads is the number of threads that are resident at first; windowBlocks the least number of blocks.
	// windowBytes bounds what the stacks of that many threads take.
	windowThreads = 8192
	windowBlocks  = 4
	windowBytes   = 256 << 20
	// sliceCost is what a warp may run before the next one does, by seed 0.
	sliceCost = 256
	// barrierTurns bounds how often the warps of a block have their turns before those of the next block do, by seed 0, as long
	// as they complete a barrier each time: what they work on is in the cache.
	barrierTurns = 32
	// gives is before how many of its strong accesses a warp may give way (Contended). A slice holds the whole of a short critical
	// section, so that by round robin the warps of a small kernel run one after the other, and no lock, ticket or queue is contended.
	// Before each of them, warps that do the same would take turns in step, and only the first would ever succeed.
	gives = 32
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
	// afterStuck is how many warp steps a grid goes on after a block that can never finish.
	afterStuck = 1 << 20
)

// schedule is the state of a launch's scheduling: which blocks are resident, and whose turn it is.
type schedule struct {
	blocks   uint64 // of the grid
	started  uint64
	chunk    []uint32 // clusters to start next
	window   int      // blocks that may be resident
	resident []*cta
	warps    []*warp // of the resident blocks, in the order of a round
	sinceEnd uint64  // cost since a block finished or the window grew
	spent    uint64  // cost of the launch
	stuck    bool    // a block can never finish
	deadline uint64  // clock at which a grid with a stuck block ends
	shown    uint64  // clock of the last Progress
	spin     spin

	changes []uint64 // PCT: clocks at which the running warp loses its priority
	lowest  uint64   // PCT: the next priority below all others
}

func (s *schedule) init(r *run) {
	s.blocks = r.l.Grid.Count()
	perBlock := int(r.l.WarpsPerBlock()) * 32
	f := r.l.Func
	perThread := 8*f.Regs + f.ParamFrame + f.LocalFrame
	s.window = max(windowBlocks, min(windowThreads, windowBytes/(perThread+1))/perBlock)
	if f.Any(func(i *isa.Inst) bool { return i.Op == isa.OpTryCancel }) {
		s.window = windowBlocks // so that there are blocks to cancel
	}
	if r.l.Cooperative {
		s.window = math.MaxInt32 // all of them; Check bounds their number
	}
	s.lowest = firstLowest
	s.spin.first = cmp.Or(r.l.spinFirst, spinFirst)
	s.spin.at = s.spin.first
	if r.l.Schedule == PCT {
		for range 3 {
			s.changes = append(s.changes, uint64(r.rng.spread(20)))
		}
	}
}

// loop runs the grid to its end.
func (r *run) loop() error {
	s := &r.sched
	for {
		r.admit()
		if len(s.resident) == 0 {
			return r.finish()
		}
		ran, err := r.round()
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
func (r *run) finish() error {
	if r.sched.stuck {
		r.faults.reportStuck(r)
		return ErrDeadlock
	}
	return nil
}

// interrupted is the end of a grid that has not finished.
func (r *run) interrupted(err error) error {
	if r.sched.stuck {
		r.faults.reportStuck(r)
	}
	if err == ErrTrap || err == ErrAssert || err == ErrDeadlock {
		return err
	}
	r.faults.reportStopped(r, err)
	return err
}

// admit starts blocks while the window has room.
func (r *run) admit() {
	s := &r.sched
	for len(s.resident) < s.window && s.started < s.blocks {
		of := r.newCluster(r.nextCluster())
		for _, c := range of.ctas {
			s.resident = append(s.resident, c)
			for _, w := range c.warps {
				w.priority = 1<<63 | r.rng.next()
				s.warps = append(s.warps, w)
			}
		}
	}
}

// nextCluster gives the cluster, mostly of one block, to start next: in their order, or shuffled by 256 with a seed.
func (r *run) nextCluster() uint32 {
	s := &r.sched
	size := r.l.ClusterShape().Count()
	first := s.started / size
	if r.l.Seed == 0 {
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
func (r *run) round() (ran bool, err error) {
	s := &r.sched
	if r.l.Schedule == PCT {
		return r.roundPCT()
	}
	if r.l.Seed != 0 {
		for i := len(s.warps) - 1; i > 0; i-- {
			j := r.rng.below(i + 1)
			s.warps[i], s.warps[j] = s.warps[j], s.warps[i]
		}
	}
	for i := 0; i < len(s.warps); {
		j := i + 1
		for r.l.Seed == 0 && j < len(s.warps) && s.warps[j].cta == s.warps[i].cta {
			j++
		}
		for range barrierTurns {
			before := s.warps[i].cta.completed
			if err := r.turns(s.warps[i:j], &ran); err != nil {
				return ran, err
			}
			if r.l.Seed != 0 || s.warps[i].cta.completed == before {
				break
			}
		}
		i = j
	}
	return ran, nil
}

// turns gives each of some warps a turn.
func (r *run) turns(warps []*warp, ran *bool) error {
	s := &r.sched
	for _, w := range warps {
		if !w.runnable() {
			continue
		}
		n := uint64(sliceCost)
		if r.l.Seed != 0 {
			n = uint64(r.rng.spread(10))
		}
		*ran = true
		r.turn(w, n)
		if err := r.halted(); err != nil {
			return err
		}
		if s.stuck && r.clock >= s.deadline {
			return ErrDeadlock
		}
	}
	return nil
}

// roundPCT runs the warp of the highest priority for a while.
func (r *run) roundPCT() (ran bool, err error) {
	s := &r.sched
	var top *warp
	for _, w := range s.warps {
		if w.runnable() && (top == nil || w.priority > top.priority) {
			top = w
		}
	}
	if top == nil {
		return false, nil
	}
	n := demote + (firstLowest-s.lowest)*demoteStep%demote
	for _, c := range s.changes {
		if c > r.clock && c-r.clock < n {
			n = c - r.clock
		}
	}
	before := top.time
	// Cost counts polls more than the clock does, so a turn can end before its change point; the demotion then is early.
	r.turn(top, n)
	if top.time-before >= n {
		top.priority = s.lowest
		s.lowest--
	}
	if err := r.halted(); err != nil {
		return true, err
	}
	if s.stuck && r.clock >= s.deadline {
		return true, ErrDeadlock
	}
	return true, nil
}

// turn runs w until it has run n, cannot step, or the run ends.
func (r *run) turn(w *warp, n uint64) {
	from := w.time
	if max := r.l.MaxSteps; max != 0 {
		n = min(n, max-r.clock) // a step costs 1 or more
	}
	end := from + n
	w.began, w.over = from, false
	r.m.run(w, end)
	r.sched.sinceEnd += w.time - from
	r.sched.spent += w.time - from
	if r.l.Progress != nil && r.clock-r.sched.shown >= 1<<16 {
		r.sched.shown = r.clock
		r.l.Progress(r.stats)
	}
}

// givesWay ends the turn of a warp before a strong access where the turn has run its time, or others are to go on first: what they
// do between two such accesses decides what the second one gives. (Before any other access the order matters only if there is a race.)
func (r *run) givesWay(w *warp, end uint64) bool {
	switch {
	case !r.yields():
	case w.time >= end:
		w.over = true
	case r.l.Seed == 0 && r.l.Schedule == Contended && w.gaveWay < gives && w.time != w.began:
		w.gaveWay++
		w.over = r.rng.below(2) == 0
	}
	return w.over
}

// yields says that turns may end before strong accesses: not by round robin.
func (r *run) yields() bool { return r.l.Seed != 0 || r.l.Schedule == Contended || r.l.Schedule == PCT }

// retire takes away blocks that have finished, and those that never will.
func (r *run) retire() {
	s := &r.sched
	kept := s.resident[:0]
	for _, c := range s.resident {
		switch {
		case c.live == 0:
			r.endBulks(c)
			r.endCores(c)
			r.stats.Blocks++
			s.sinceEnd = 0
		case !c.cluster.runnable(c):
			r.faults.addStuck(r, c)
			if !s.stuck {
				s.stuck, s.deadline = true, r.clock+afterStuck
			}
		default:
			kept = append(kept, c)
			continue
		}
		c.gone = true
		r.free = c.cluster.leave(r.free)
	}
	if len(kept) == len(s.resident) {
		return
	}
	clear(s.resident[len(kept):])
	s.resident = kept
	warps := s.warps[:0]
	for _, w := range s.warps {
		if !w.cta.gone {
			warps = append(warps, w)
		}
	}
	clear(s.warps[len(warps):])
	s.warps = warps
}

func (c *cta) runnable() bool {
	for _, w := range c.warps {
		if w.runnable() {
			return true
		}
	}
	return false
}

// widen lets more blocks in when those that are resident seem to wait for others.
func (r *run) widen() {
	s := &r.sched
	if s.started == s.blocks || s.sinceEnd < growPolling {
		return
	}
	running, polling, reading := uint64(0), true, true
	for _, w := range s.warps {
		if w.runnable() {
			running++
			polling = polling && w.polls != 0
			reading = reading && w.writes == 0
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
		w.polls, w.writes = 0, 0
	}
	s.sinceEnd = 0
	s.window = growBy * max(s.window, len(s.resident))
}
