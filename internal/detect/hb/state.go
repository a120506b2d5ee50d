package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// know is what a thread knows of others: those of its own block, those of other blocks of its launch, and beyond the
// launch. What grid says of the own block is never more than what block says.
type know struct {
	block  *clock.Block
	grid   *clock.Grid
	beyond *clock.Foreign
	// published is what fence.sc before this have published, observed what reads before this have seen of other
	// fences: see scfence.go. Of its block only.
	published, observed passed
}

// view is a thread's vector clock: what it knows, and its own epoch, which no other thread's knowledge of it reaches
// until the thread has released it and begun the next.
type view struct {
	know
	clock uint32
}

// launch is a kernel launch. Epochs are numbered by block: each synchronisation in a block gets the block's next number,
// which becomes the epoch of the threads that took part.
type launch struct {
	info   event.Launch
	wpb    uint32 // warps a block
	depth  int    // of clock.Grid
	sdepth int    // of set
	last   uint32 // lanes of the last warp of a block
	start  *clock.Foreign
	end    uint32 // the agent's epoch at the end; 0 while running
	// beyond is what threads learned of other launches, and that the agent knows after the end.
	beyond *clock.Foreign
	// published: a release record of this launch may be found in global memory, so that single threads of it may become
	// known to other launches.
	published bool
	// ordering: a fence.sc beyond the block was executed; fenced: any fence was.
	ordering  bool
	fenced    bool
	listed    map[uint32]*block // that run, perhaps but for lastBlock: see running
	logs      blockLogs         // of blocks that have ended
	ended     []*syncLog        // the last of blocks that ended
	pages     []*page
	classes   map[classKey]uint32
	lastBlock *block
	spare     *spareBlocks
	deeds     launchDeeds
	scripts   *scripts // nil where every access is judged as it comes
}

// block is a running block.
type block struct {
	*launch
	index    uint32
	first    uint32 // warp
	number   uint32 // the last epoch given out
	alive    int    // threads
	warps    []warp
	barriers *[16]barrier
	shared   window
	// leftShared: threads exited that had accessed shared memory; leftAny: any memory. No barrier orders them.
	leftShared, leftAny bool
	inList              bool     // launch.listed has it
	synced              bool     // something happened that changes more of warps than which lanes live and have accessed memory
	log                 *syncLog // nil while empty
	handed              uint32   // the warp with the last handover
	stage               stage
}

// warp is a running warp. Its threads have one view while they synchronise alike.
type warp struct {
	live           uint32 // lanes that have not exited
	whole          uint32 // the epoch that began when all of them last reconverged
	used, usedSmem uint32 // lanes that accessed memory, shared memory
	same           view
	each           *[32]view
	locks          *lockStates
	syncs          *[32]laneSync // nil until a lane has a fence or an observation to remember
	spins          *[32]spin
	handovers      handovers
	laneHandovers  *[32]handovers
	room           warpRoom
}

// warpRoom is memory of a warp that it does not use now.
type warpRoom struct {
	each      *[32]view
	locks     *lockStates
	syncs     *[32]laneSync
	spins     *[32]spin
	handovers *[32]handovers
}

// rest makes a warp of a block that has ended one that knows nothing, with room.
func (w *warp) rest() {
	r := w.room
	if w.each != nil {
		r.each = w.each
	}
	if w.locks != nil {
		*w.locks = lockStates{}
		r.locks = w.locks
	}
	if w.syncs != nil {
		for i := range w.syncs {
			w.syncs[i].rest()
		}
		r.syncs = w.syncs
	}
	if w.spins != nil {
		clear(w.spins[:])
		r.spins = w.spins
	}
	if w.laneHandovers != nil {
		clear(w.laneHandovers[:])
		r.handovers = w.laneHandovers
	}
	if r.each != nil {
		clear(r.each[:])
	}
	*w = warp{room: r}
}

// laneSync is what a thread must remember of patterns it has begun.
type laneSync struct {
	// fenced holds what the thread had done at its last fence: narrow at its last one of any scope, wide at its last one
	// beyond the block.
	fenced released
	own    map[locKey]released // the same at its last release operation on a location
	seen   []pending           // what its strong reads observed and no fence has acquired yet
	// last is what the thread had done at its last fence.sc beyond the block, observed what its strong reads have seen of
	// such fences and none of its own has taken in; nil after a barrier, when know says it.
	last     *snapshot
	observed passed
	room     *snapshot // to be used
}

// rest forgets all but memory.
func (s *laneSync) rest() {
	room := s.room
	if old := s.fenced.narrow; old != nil && old.alone {
		*old = snapshot{}
		room = old
	}
	clear(s.seen)
	*s = laneSync{seen: s.seen[:0], room: room}
}

// released are the snapshots that a strong write publishes: to threads of the same block, to others.
type released struct{ narrow, wide *snapshot }

// newer gives the later of both, scope by scope.
func (r released) newer(o released) released {
	if r.narrow == nil || o.narrow != nil && o.narrow.clock > r.narrow.clock {
		r.narrow = o.narrow
	}
	if r.wide == nil || o.wide != nil && o.wide.clock > r.wide.clock {
		r.wide = o.wide
	}
	return r
}

// snapshot is a view at a release. The lanes of a warp may share one: each means itself by clock.
type snapshot struct {
	view
	lane  int // that tree is for
	tree  *clock.Grid
	alone bool // one lane has it, as of a fence
}

// grid gives the snapshot of a lane as one tree, its own epoch included.
func (s *snapshot) grid(b *block, w uint32, lane int) *clock.Grid {
	if s.tree == nil || s.lane != lane {
		s.lane, s.tree = lane, s.gridOf(b, w, 1<<uint(lane))
	}
	return s.tree
}

func newLaunch(info event.Launch, start *clock.Foreign, spare *spareBlocks) *launch {
	l := &launch{spare: spare, info: info, wpb: info.WarpsPerBlock(), start: start, beyond: start,
		listed: map[uint32]*block{}, classes: map[classKey]uint32{}}
	l.depth = clock.Depth(info.Grid.Count())
	l.sdepth = setDepth(info.Grid.Count() * uint64(l.wpb))
	l.last = ^uint32(0)
	if n := info.Block.Count() % 32; n != 0 {
		l.last = 1<<uint(n) - 1
	}
	return l
}

// block gives the block of a warp, and its number within.
func (l *launch) block(w uint32) (*block, uint32) {
	if b := l.lastBlock; b != nil && w-b.first < l.wpb {
		return b, w - b.first
	}
	i := w / l.wpb
	b := l.running()[i]
	if b == nil {
		b = l.spare.take(l.wpb, l.start)
		b.launch, b.index, b.first, b.alive, b.number = l, i, i*l.wpb, int(l.info.Block.Count()), 1
		b.warps[l.wpb-1].live = l.last
		b.beginStage()
	}
	l.lastBlock = b
	return b, w - i*l.wpb
}

// running gives the blocks that run. Many do all they do at a stretch: they are but lastBlock.
func (l *launch) running() map[uint32]*block {
	if b := l.lastBlock; b != nil && !b.inList {
		b.inList = true
		l.listed[b.index] = b
	}
	return l.listed
}

// runs says that a block has threads that have not ended.
func (l *launch) runs(block uint32) bool {
	return l.lastBlock != nil && l.lastBlock.index == block || l.listed[block] != nil
}

// maxSpare is how many blocks are kept for use again.
const maxSpare = 256

// spareBlocks are blocks and logs of blocks that ended, and values of stages that did, to be used again.
type spareBlocks struct {
	list   []*block
	logs   []*syncLog
	values [][]uint64
}

// take gives a block of n warps that begin knowing start, with memory to use again.
func (s *spareBlocks) take(n uint32, start *clock.Foreign) *block {
	var b *block
	if k := len(s.list); k != 0 {
		b = s.list[k-1]
		s.list = s.list[:k-1]
	} else {
		b = &block{synced: true}
	}
	warps := b.warps
	if uint32(cap(warps)) < n {
		warps = make([]warp, n)
	}
	warps = warps[:n]
	if b.synced || uint32(len(b.warps)) != n || warps[0].same.beyond != start {
		for j := range warps {
			warps[j] = warp{room: warps[j].room, same: view{know: know{beyond: start}, clock: 1}}
		}
	}
	for j := range warps {
		w := &warps[j]
		w.live, w.used, w.usedSmem = ^uint32(0), 0, 0
	}
	if b.barriers != nil && b.synced {
		for i := range b.barriers {
			b.barriers[i].arrivals = b.barriers[i].arrivals[:0]
		}
	}
	*b = block{warps: warps, barriers: b.barriers, shared: window{pages: b.shared.pages, gen: b.shared.gen + 1},
		stage: stage{at: b.stage.at[:0], was: b.stage.was[:0], log: b.stage.log[:0]}}
	return b
}

// logged gives the block's log, made when there is none.
func (b *block) logged() *syncLog {
	if b.log == nil {
		if n := len(b.spare.logs); n > 0 {
			b.log = b.spare.logs[n-1]
			b.spare.logs = b.spare.logs[:n-1]
		} else {
			b.log = &syncLog{}
		}
	}
	return b.log
}

// view gives the view of a lane, not to be changed.
func (w *warp) view(lane int) *view {
	if w.each != nil {
		return &w.each[lane]
	}
	return &w.same
}

// set gives lanes the view v.
func (w *warp) set(lanes uint32, v *view) {
	if w.live&^lanes == 0 {
		if w.each != nil {
			w.room.each = w.each
		}
		w.same, w.each = *v, nil
		return
	}
	w.part()
	for m := lanes; m != 0; m &= m - 1 {
		w.each[bits.TrailingZeros32(m)] = *v
	}
}

// part gives each lane a view of its own.
func (w *warp) part() {
	if w.each != nil {
		return
	}
	if w.each, w.room.each = w.room.each, nil; w.each == nil {
		w.each = new([32]view)
	}
	for i := range w.each {
		w.each[i] = w.same
	}
}

// next begins a new epoch of lanes and notes what synchronisation began it.
func (b *block) next(wi, lanes uint32, e *event.Event) {
	b.number++
	b.logged().add(b.number, wi, lanes, e)
	b.begin(&b.warps[wi], lanes)
}

// begin gives lanes of a warp the block's last epoch.
func (b *block) begin(w *warp, lanes uint32) {
	if w.each == nil && w.live&^lanes == 0 {
		w.same.clock = b.number
		return
	}
	w.part()
	for m := lanes; m != 0; m &= m - 1 {
		w.each[bits.TrailingZeros32(m)].clock = b.number
	}
}

// sync gives what a lane remembers of patterns.
func (w *warp) sync(lane int) *laneSync {
	if w.syncs == nil {
		if w.syncs, w.room.syncs = w.room.syncs, nil; w.syncs == nil {
			w.syncs = new([32]laneSync)
		}
	}
	return &w.syncs[lane]
}

// behind gives those of lanes of a warp of b's launch whose epoch c v does not know.
func (v *view) behind(b *block, warp, lanes, c uint32) uint32 {
	i := warp / b.wpb
	if i == b.index {
		return v.block.Behind(warp-i*b.wpb, lanes, c)
	}
	if v.grid == nil {
		return lanes
	}
	return v.grid.Behind(b.depth, i, warp-i*b.wpb, lanes, c)
}

// over says that all of launch l, which has ended, is known.
func over(l *launch, f *clock.Foreign) bool {
	return l.end != 0 && f.Agent(l.info.Agent) >= l.end
}

// beyondBehind gives those of lanes of a warp of another launch whose epoch c f does not know.
func beyondBehind(f *clock.Foreign, l *launch, warp, lanes, c uint32) uint32 {
	if over(l, f) {
		return 0
	}
	i := warp / l.wpb
	return f.Part(l.info.ID).Behind(l.depth, i, warp-i*l.wpb, lanes, c)
}

// syncLog remembers the synchronisations of a block, for messages. It keeps the last logSize.
type syncLog struct {
	ops      []logged
	at       int
	sections []section
	within   bool // threads of the block have observed strong writes of each other
}

// Synchronisations that are remembered of a running block, and of one that has ended.
const (
	logSize   = 256
	endedSize = 64
)

type logged struct {
	clock, place uint32
	warp         uint32 // allWarps: the barrier's waiters
	lanes        uint32
	kind         event.Kind
	order        event.Order
	scope        event.Scope
	barrier      uint8
	waits        bool
}

const allWarps = ^uint32(0)

func (g *syncLog) add(clock, warp, lanes uint32, e *event.Event) {
	x := logged{clock, e.Place, warp, lanes, e.Kind, e.Order, e.Scope, e.Barrier, e.Flags&event.FlagWait != 0}
	if len(g.ops) < logSize {
		g.ops = append(g.ops, x)
		return
	}
	g.ops[g.at] = x
	g.at = (g.at + 1) % logSize
}

// maxLogs is how many logs of blocks that have ended are compared with others.
const maxLogs = 4

// keepLog keeps of the log of a block that has ended what is needed: one for all blocks that synchronised alike.
func (b *block) keepLog() {
	g := b.log
	if g == nil {
		return
	}
	alone := len(g.sections) > 0 || len(g.ops) > endedSize
	for _, o := range b.ended {
		if !alone && o.within == g.within && slices.Equal(o.ops, g.ops) {
			b.logs.add(b.index, o)
			g.ops, g.within = g.ops[:0], false
			b.spare.logs = append(b.spare.logs, g)
			return
		}
	}
	b.logs.add(b.index, g)
	last := make([]logged, 0, min(len(g.ops), endedSize))
	for i := len(g.ops) - cap(last); i < len(g.ops); i++ {
		last = append(last, g.ops[(g.at+i)%len(g.ops)])
	}
	g.ops, g.at = last, 0
	g.sections = slices.Clone(g.sections[max(len(g.sections)-maxSections, 0):])
	if !alone {
		if b.ended = append(b.ended, g); len(b.ended) > maxLogs {
			b.ended = slices.Delete(b.ended, 0, 1)
		}
	}
}

// all calls f for the synchronisations that a lane of warp w (in the block) took part in, in order, until it says false.
func (g *syncLog) all(w uint32, lane int, f func(x *logged) bool) {
	if g == nil {
		return
	}
	for i := range g.ops {
		x := &g.ops[(g.at+i)%len(g.ops)]
		if x.warp == allWarps || x.warp == w && x.lanes>>uint(lane)&1 != 0 {
			if !f(x) {
				return
			}
		}
	}
}

// lost says that synchronisations after epoch c have been forgotten.
func (g *syncLog) lost(c uint32) bool { return g != nil && len(g.ops) > 0 && g.ops[g.at].clock > c+1 }

// after gives the first synchronisation of a thread after its epoch c, before the last up to and with it.
func (g *syncLog) after(w uint32, lane int, c uint32) (found *logged) {
	g.all(w, lane, func(x *logged) bool {
		if x.clock > c {
			found = x
		}
		return found == nil
	})
	return found
}

func (g *syncLog) before(w uint32, lane int, c uint32) (found *logged) {
	g.all(w, lane, func(x *logged) bool {
		if x.clock <= c {
			found = x
		}
		return x.clock < c
	})
	return found
}

func (x *logged) sync() *detect.Sync {
	if x == nil {
		return nil
	}
	s := &detect.Sync{Place: x.place, What: x.what()}
	if x.kind == event.WarpSync {
		s.Lanes = x.lanes
	}
	return s
}
