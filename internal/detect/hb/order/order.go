// Package order says which accesses of a run happen before which. It follows the synchronisation events of a stream and
// keeps, for each thread and each agent of the host, a View: what the thread knows of others at that moment. A view is
// never changed, so an access record may keep the one it was made under.
//
// The rules are those of package hb's documentation, "What orders". In short: program order, CTA barriers, bar.warp.sync,
// release and acquire patterns on sync variables, fence.sc, and the order of the host.
//
// Epochs are numbered by block. Each synchronisation in a block takes the block's next number, which becomes the epoch of
// the threads that took part. Threads that synchronise alike therefore have equal epochs, and their clocks share parts
// (package clock).
//
// Package order knows nothing of access histories: it is told of accesses only where they synchronise or where they end a
// sync variable's value.
package order

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// Order is the happens-before order of a run so far.
type Order struct {
	launches map[uint32]*Launch
	numbered []*Launch
	agents   map[uint32]*Agent
	assumed  *assumed
	tokens   map[uint64]*clock.Foreign
	global   Memory
	join     clock.Joiner
	grid     struct { // see gridOf
		gridKey
		grid *clock.Grid
	}
	recent [256]*View       // see allKnown
	free   []*Block         // that have ended, to be used again
	slots  int              // Block.Slot is below
	begun  uint64           // blocks
	chains ChainID          // the last given out
	told   map[uint32]*told // by operations
}

// New makes the order of a run in which nothing has happened.
func New() *Order {
	return &Order{launches: map[uint32]*Launch{}, agents: map[uint32]*Agent{}, tokens: map[uint64]*clock.Foreign{}}
}

// Launch is one kernel launch.
type Launch struct {
	Info event.Launch
	// WarpsPerBlock is that of Info.
	WarpsPerBlock uint32

	order      *Order
	number     uint32            // in Order.numbered
	blocks     map[uint32]*Block // those that run
	recent     []*Block          // of them, by the low bits of Index: as a rule all, since blocks that run together have near indices
	logs       map[uint32]Log    // of blocks that have ended
	lastLog    Log               // of logs
	first      *View             // of threads that have synchronised with none
	start      *clock.Foreign    // what its threads begin with
	assumed    *clock.Foreign    // the same with what is assumed of host threads; nil where nothing is, or it may begin early
	before     *clock.Foreign    // what its agent had done before it, which is more where it began early
	dependents bool              // may begin early, if the agent launches them so
	beyond     *clock.Foreign    // what they learned of other launches; its agent knows that after the end
	end        uint32            // the agent's epoch at the end; 0 while the launch runs
	agent      uint32
	depth      int // of clock.Grid
	clustered  bool
	clusters   map[uint32]*clusterBarrier // by the number of the cluster
	// fencesSC says that a fence.sc was executed, beyond the block where it is part of a cluster.
	fencesSC bool
	// published says that a thread has begun a release pattern.
	published bool
}

// Block is a block that has a thread which has not exited. Its memory is used again for another block after that.
type Block struct {
	*Launch
	Index  uint32
	Log    Log
	Shared Memory
	// Slot is a small number that no other running block of the run has.
	Slot int
	// Tells says that variables of the block's shared memory may tell of operations that are complete, which no barrier does.
	Tells bool

	serial   uint64 // among all blocks of the run; 0 when it has ended
	number   uint32 // the last epoch given out
	alive    int    // threads
	warps    []warp
	waiting  []uint32 // lanes that wait at a barrier that completes, by warp
	barriers [16][]arrival
	// leftShared says that a thread exited which had accessed shared memory, leftAny that one exited which had accessed any:
	// no barrier orders them.
	leftShared, leftAny bool
}

// warp is a warp of a running block. Its lanes have one view while they synchronise alike.
type warp struct {
	views
	lent             bool           // an arrival at a barrier has views.each
	live             uint32         // lanes that have not exited
	used, usedShared uint32         // lanes that have accessed memory, shared memory
	whole            uint32         // the epoch that began when all lanes last reconverged
	fenced           fenced         // what lanes had done at their last fences
	since            uint32         // lanes that have made no strong write since: see Handed
	patterns         *[32]*patterns // that lanes have begun
	phase            uint32         // the parity of the phase of the cluster's barrier that lanes are at
}

// Agent is a host thread or a stream.
type Agent struct {
	ID    uint32
	View  *View
	epoch uint32

	last   *Launch        // its last operation, where that is a launch
	waited *clock.Foreign // what it has waited for since
}

// Launched gives the launch of an id, nil when it has not begun or has ended.
func (o *Order) Launched(id uint32) *Launch {
	if l := o.launches[id]; l != nil && l.end == 0 {
		return l
	}
	return nil
}

// Agent gives the agent of an id.
func (o *Order) Agent(id uint32) *Agent {
	a := o.agents[id]
	if a == nil {
		a = &Agent{ID: id, View: &View{}}
		o.agents[id] = a
	}
	return a
}

// next begins a new epoch of the agent.
func (a *Agent) next() {
	a.epoch++
	a.View = &View{knowledge: knowledge{beyond: a.View.beyond.WithAgent(a.ID, a.epoch)}, Epoch: a.epoch}
}

// Begin begins a launch: what its agent has done so far happens before all of it, unless it may begin early.
func (o *Order) Begin(info event.Launch) *Launch {
	a := o.Agent(info.Agent)
	a.next()
	start := a.start(info)
	l := &Launch{Info: info, WarpsPerBlock: info.WarpsPerBlock(), order: o, number: uint32(len(o.numbered)), blocks: map[uint32]*Block{}, logs: map[uint32]Log{},
		recent: make([]*Block, 8), first: &View{knowledge: knowledge{beyond: start}, Epoch: 1},
		start: start, beyond: a.View.beyond, before: a.View.beyond, agent: info.Agent, depth: clock.Depth(info.Grid.Count()),
		clustered: info.ClusterShape().Count() > 1, clusters: map[uint32]*clusterBarrier{}}
	if known := o.assumed.does(a); start == a.View.beyond {
		l.assumed = known
	}
	o.launches[info.ID], o.numbered = l, append(o.numbered, l)
	a.last, a.waited = l, nil
	return l
}

// End ends a launch: all of it happens before what its agent does from now on. Threads that have not exited end with it.
func (o *Order) End(id uint32) {
	l := o.Launched(id)
	if l == nil {
		return
	}
	for _, b := range l.blocks {
		for i := range b.warps {
			b.leave(&b.warps[i], b.warps[i].live)
		}
		b.over()
	}
	l.blocks, l.recent = nil, nil
	o.unwatch(l)
	a := o.Agent(l.agent)
	a.next()
	l.end = a.epoch
	known := a.View.beyond.Join(l.beyond)
	known = known.Without(func(id uint32) bool { return o.launches[id].within(known) })
	a.View = &View{knowledge: knowledge{beyond: known}, Epoch: a.epoch}
	o.assumed.does(a)
}

// within says that all of a launch, which has ended, is known.
func (l *Launch) within(f *clock.Foreign) bool { return l.end != 0 && f.Agent(l.agent) >= l.end }

// Signal publishes under a token what an agent has done.
func (o *Order) Signal(agent uint32, token uint64) {
	a := o.Agent(agent)
	a.next()
	o.assumed.signal(a, token)
	o.tokens[token] = a.View.beyond
}

// Wait lets an agent go on after the last Signal of a token.
func (o *Order) Wait(agent uint32, token uint64) {
	a := o.Agent(agent)
	o.assumed.wait(a, token)
	a.View = &View{knowledge: knowledge{beyond: a.View.beyond.Join(o.tokens[token])}, Epoch: a.epoch}
	a.waited = a.waited.Join(o.tokens[token])
}

// HostAccess begins the epoch of an access of the host side and gives who makes it.
func (o *Order) HostAccess(agent uint32) Actor {
	a := o.Agent(agent)
	a.next()
	a.last = nil
	return Actor{Agent: agent, View: a.View, Assumed: o.assumed.does(a)}
}

// Block gives the block of a warp of a launch, and the number of the warp in it.
func (l *Launch) Block(w uint32) (b *Block, inBlock uint32) {
	i := w / l.WarpsPerBlock
	b = l.recent[int(i)&(len(l.recent)-1)]
	if b == nil || b.Index != i {
		b = l.running(i)
	}
	return b, w - i*l.WarpsPerBlock
}

// running gives a block, which may have to begin, and makes it recent.
func (l *Launch) running(i uint32) *Block {
	b := l.blocks[i]
	if b == nil {
		b = l.begin(i)
		l.blocks[i] = b
		if n := 2 * len(l.blocks); n > len(l.recent) {
			l.recent = make([]*Block, 2*len(l.recent))
		}
	}
	l.recent[int(i)&(len(l.recent)-1)] = b
	return b
}

// begin begins a block.
func (l *Launch) begin(i uint32) *Block {
	o := l.order
	if len(o.free) == 0 {
		o.free = append(o.free, &Block{Slot: o.slots})
		o.slots++
	}
	n := len(o.free) - 1
	b := o.free[n]
	o.free = o.free[:n]
	o.begun++
	b.Launch, b.Index, b.serial = l, i, o.begun
	b.number, b.alive = 1, int(l.Info.Block.Count())
	b.leftShared, b.leftAny = false, false
	b.warps = slices.Grow(b.warps[:0], int(l.WarpsPerBlock))[:l.WarpsPerBlock]
	b.waiting = slices.Grow(b.waiting[:0], int(l.WarpsPerBlock))[:l.WarpsPerBlock]
	for j := range b.warps {
		b.warps[j] = warp{live: ^uint32(0), views: views{same: l.first}}
	}
	if n := l.Info.Block.Count() % 32; n != 0 {
		b.warps[l.WarpsPerBlock-1].live = 1<<n - 1
	}
	return b
}

// over ends the block.
func (b *Block) over() {
	b.alive, b.serial, b.Tells = 0, 0, false
	l := b.Launch
	delete(l.blocks, b.Index)
	if at := &l.recent[int(b.Index)&(len(l.recent)-1)]; *at == b {
		*at = nil
	}
	l.keepLog(b)
	b.Shared.reset()
	for i := range b.barriers {
		b.barriers[i] = b.barriers[i][:0]
	}
	l.order.free = append(l.order.free, b)
}

// keepLog keeps the log of a block that ends. Blocks that synchronise alike share one.
func (l *Launch) keepLog(b *Block) {
	g := &b.Log
	if len(g.ops) == 0 {
		return
	}
	if last := &l.lastLog; g.at != last.at || !slices.Equal(g.ops, last.ops) {
		*last = Log{slices.Clone(g.ops), g.at}
	}
	l.logs[b.Index] = l.lastLog
	g.ops, g.at = g.ops[:0], 0
}

// LogOf gives the synchronisations of a block of the launch.
func (l *Launch) LogOf(block uint32) *Log {
	if b := l.blocks[block]; b != nil {
		return &b.Log
	}
	g := l.logs[block]
	return &g
}

// Accesses notes that lanes of a warp of the block access memory.
func (b *Block) Accesses(w, lanes uint32, shared bool) {
	b.warps[w].used |= lanes
	if shared {
		b.warps[w].usedShared |= lanes
	}
}

// Actor gives a lane of a warp of the block as it is now.
func (b *Block) Actor(w uint32, lane int) Actor {
	return Actor{Launch: b.Launch, Block: b.Index, Warp: b.Index*b.WarpsPerBlock + w, Lane: lane, View: b.warps[w].view(lane),
		Whole: b.warps[w].whole}
}

// exit ends lanes of a warp.
func (b *Block) exit(w *warp, lanes uint32) {
	lanes &= w.live
	b.leftAny = b.leftAny || lanes&w.used != 0
	b.leftShared = b.leftShared || lanes&w.usedShared != 0
	b.leave(w, lanes)
	w.live &^= lanes
	b.alive -= bits.OnesCount32(lanes)
	if b.alive == 0 {
		b.over()
	}
}

// leave keeps what lanes have learned of other launches.
func (b *Block) leave(w *warp, lanes uint32) {
	for v := range w.of(lanes) {
		b.beyond = b.beyond.Join(v.beyond.Before(FirstOperation))
	}
}

// Sync performs a synchronisation event of a launch's threads. It says whether all live threads of the block met, and
// none that has exited had accessed shared memory: whatever was done in the block's shared memory before happens before
// whatever is done from now on.
func (l *Launch) Sync(e *event.Event) (met bool) {
	b, wi := l.Block(e.Warp)
	w := &b.warps[wi]
	switch e.Kind {
	case event.Fence:
		b.fence(wi, e)
	case event.Arrive:
		b.arrive(wi, e)
	case event.BarrierDone:
		return b.complete(e)
	case event.WarpSync:
		b.warpSync(wi, e)
	case event.ClusterArrive:
		b.arriveCluster(wi, e)
	case event.ClusterWait:
		b.waitCluster(wi, e)
	case event.GridLaunch:
		l.dependents = true
	case event.GridWait:
		b.waitGrids(wi, e)
	case event.DeviceOp:
		b.deviceOp(wi, e)
	case event.Reconverge:
		b.reconverge(w, e.Mask)
	case event.Exit:
		b.exit(w, e.Mask)
	}
	return false
}

// Synchronised begins a new epoch of the lanes of an acquire or release operation, which has been performed.
func (b *Block) Synchronised(wi uint32, e *event.Event) {
	if b.alive > 0 {
		b.next(wi, e.Mask, e)
	}
}

// Advance begins a new epoch of lanes that is no synchronisation's: what they do now is not told to who learns what they have done.
func (b *Block) Advance(wi, lanes uint32) {
	b.number++
	w := &b.warps[wi]
	for v, having := range w.of(lanes) {
		w.set(having, v.at(b.number))
	}
}

// next begins a new epoch of lanes: that of synchronisation e.
func (b *Block) next(wi, lanes uint32, e *event.Event) {
	b.Advance(wi, lanes)
	b.Log.add(b.number, wi, lanes, e)
}

// reconverge begins a new epoch of a warp whose live lanes execute together again. It orders nothing: see Actor.Whole.
func (b *Block) reconverge(w *warp, lanes uint32) {
	if w.live&^lanes != 0 {
		return
	}
	b.number++
	for v, having := range w.of(w.live) {
		w.set(having, v.at(b.number))
	}
	w.whole = b.number
}

// Whole is as that of an actor of a warp of the block.
func (b *Block) Whole(wi uint32) uint32 { return b.warps[wi].whole }

// set gives lanes a view, the others keeping theirs.
func (w *warp) set(lanes uint32, v *View) {
	if w.lent && w.each != nil && w.live&^lanes != 0 {
		each := *w.each
		w.each = &each
	}
	w.lent = false
	w.views.set(w.live, lanes, v)
}

// idle adds to lanes, all of them live, those that exited or never began and have not accessed memory: to know them costs
// nothing and keeps clocks uniform.
func (w *warp) idle(lanes uint32) uint32 { return lanes | ^(w.live | w.used) }
