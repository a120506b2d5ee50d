// Package order decides which accesses of a run happen before which. It follows the synchronisation events of a stream
// and keeps, for each thread and each agent of the host, a View: what the thread or agent knows of others at that
// moment. A view never changes, so an access record may keep the view that the access was made under.
//
// The rules are those of package hb's documentation, section "What orders". In short: program order, CTA barriers,
// bar.warp.sync, release and acquire patterns on sync variables, fence.sc, and the order of the host.
//
// Epochs are numbered by block. Each synchronisation in a block takes the block's next number, which becomes the epoch
// of the threads that took part. Threads that synchronise alike therefore have equal epochs, and their clocks share
// parts (package clock).
//
// Package order does not know access histories. It is told of an access only if the access synchronises or ends a sync
// variable's value.
package order

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// Order is the happens-before order of a run up to the current event.
type Order struct {
	launches map[uint32]*Launch
	// numbered holds all launches in the order of their beginnings.
	numbered []*Launch
	agents   map[uint32]*Agent
	assumed  *assumed
	// tokens holds what the last HostSignal of each token published.
	tokens map[uint64]*clock.Foreign
	global Memory
	join   clock.Joiner
	grid   struct { // cache of gridOf
		gridKey
		grid *clock.Grid
	}
	recent [256]*View       // cache of allKnown
	free   []*Block         // blocks that have ended, for reuse
	slots  int              // all values of Block.Slot are below
	begun  uint64           // the number of blocks begun
	chains ChainID          // the last one given out
	told   map[uint32]*told // by agent number of the operations
}

// New makes the order of a run in which nothing has happened.
func New() *Order {
	return &Order{launches: map[uint32]*Launch{}, agents: map[uint32]*Agent{}, tokens: map[uint64]*clock.Foreign{}}
}

// Launch is one kernel launch.
type Launch struct {
	Info event.Launch
	// WarpsPerBlock is Info.WarpsPerBlock().
	WarpsPerBlock uint32

	order  *Order
	number uint32            // index in Order.numbered
	blocks map[uint32]*Block // the running blocks
	last   *Block            // the result of the last call of Block
	// recent is a cache of blocks, indexed by the low bits of Block.Index. It usually holds all running blocks, because
	// these have close indices.
	recent     []*Block
	logs       map[uint32]Log // the logs of blocks that have ended
	lastLog    Log            // the last one added to logs
	first      *View          // the view of threads that have not synchronised
	start      *clock.Foreign // what its threads know at the beginning
	assumed    *clock.Foreign // start, with what is assumed of host threads; nil if nothing is assumed, or if the launch may begin early
	before     *clock.Foreign // what its agent had done before it; more than start if the launch began early
	dependents bool           // its threads allow dependent launches to begin early
	beyond     *clock.Foreign // what its threads learned of other launches; its agent knows that after the end
	end        uint32         // the agent's epoch at the end; 0: running
	agent      uint32
	depth      int                        // of its clock.Grid trees
	clustered  bool                       // its clusters have several blocks
	clusters   map[uint32]*clusterBarrier // by number of the cluster
	// fencesSC says that a thread executed a fence.sc. If the launch is clustered, only a fence.sc with a scope beyond
	// the block counts.
	fencesSC bool
	// published says that a thread has begun a release pattern.
	published bool
}

// Block is a running block: one with a thread that has not exited. After its end the Block is reused for another block.
type Block struct {
	*Launch
	Index  uint32
	Log    Log
	Shared Memory
	// Slot is a small number, different from the slots of all other running blocks.
	Slot int
	// Tells says that sync variables in the block's shared memory may carry the completion of operations. A barrier
	// does not convey that.
	Tells bool

	lowest   uint32 // the number of its first warp
	serial   uint64 // number among all blocks of the run, from 1; 0: ended
	number   uint32 // the last epoch given out
	alive    int    // the number of threads that have not exited
	warps    []warp
	waiting  []uint32 // by warp: lanes that wait at the barrier being completed
	barriers [16][]arrival
	// leftAny says that a thread exited that had accessed memory, leftShared that one exited that had accessed shared
	// memory. No barrier orders what such a thread did.
	leftShared, leftAny bool
}

// warp is a warp of a running block. Its lanes share one view while they synchronise alike.
type warp struct {
	views
	// lent says that an arrival at a barrier, or Epochs, refers to views.each, which must then be copied before a
	// change.
	lent             bool
	live             uint32         // lanes that have not exited
	used, usedShared uint32         // lanes that have accessed memory, and shared memory
	whole            uint32         // the epoch that began when all live lanes last reconverged
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

	last   *Launch        // its last operation, if that is a launch
	waited *clock.Foreign // what it has waited for since that launch
}

// Launched returns the running launch of an ID; nil if there is none.
func (o *Order) Launched(id uint32) *Launch {
	if l := o.launches[id]; l != nil && l.end == 0 {
		return l
	}
	return nil
}

// Agent returns the agent of an ID, creating it if necessary.
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

// Begin begins a launch. What its agent has done so far happens before all of it, unless the launch may begin early.
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
	l.blocks, l.recent, l.last = nil, nil, nil
	o.unwatch(l)
	a := o.Agent(l.agent)
	a.next()
	l.end = a.epoch
	known := a.View.beyond.Join(l.beyond)
	known = known.Without(func(id uint32) bool { return o.launches[id].within(known) })
	a.View = &View{knowledge: knowledge{beyond: known}, Epoch: a.epoch}
	o.assumed.does(a)
}

// within reports whether the launch has ended and that f includes all of it.
func (l *Launch) within(f *clock.Foreign) bool { return l.end != 0 && f.Agent(l.agent) >= l.end }

// Signal publishes under a token what an agent has done so far.
func (o *Order) Signal(agent uint32, token uint64) {
	a := o.Agent(agent)
	a.next()
	o.assumed.signal(a, token)
	o.tokens[token] = a.View.beyond
}

// Wait makes an agent acquire the last Signal of a token.
func (o *Order) Wait(agent uint32, token uint64) {
	a := o.Agent(agent)
	o.assumed.wait(a, token)
	a.View = &View{knowledge: knowledge{beyond: a.View.beyond.Join(o.tokens[token])}, Epoch: a.epoch}
	a.waited = a.waited.Join(o.tokens[token])
}

// HostAccess begins an epoch for an access of the host and gives its actor.
func (o *Order) HostAccess(agent uint32) Actor {
	a := o.Agent(agent)
	a.next()
	a.last = nil
	return Actor{Agent: agent, View: a.View, Assumed: o.assumed.does(a)}
}

// Block returns the block of a warp of a launch, and the number of the warp within the block.
func (l *Launch) Block(w uint32) (b *Block, inBlock uint32) {
	if b = l.last; b != nil && w-b.lowest < l.WarpsPerBlock { // most events; a division costs as much as all else here
		return b, w - b.lowest
	}
	i := w / l.WarpsPerBlock
	b = l.recent[int(i)&(len(l.recent)-1)]
	if b == nil || b.Index != i {
		b = l.running(i)
	}
	l.last = b
	return b, w - b.lowest
}

// running returns a block, beginning it if necessary, and puts it into recent.
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
	b.Launch, b.Index, b.lowest, b.serial = l, i, i*l.WarpsPerBlock, o.begun
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
	if l.last == b {
		l.last = nil
	}
	l.keepLog(b)
	b.Shared.reset()
	for i := range b.barriers {
		b.barriers[i] = b.barriers[i][:0]
	}
	l.order.free = append(l.order.free, b)
}

// keepLog keeps the log of a block that ends. If it equals the log kept last, the two share memory.
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

// LogOf returns the synchronisations of a block of the launch.
func (l *Launch) LogOf(block uint32) *Log {
	if b := l.blocks[block]; b != nil {
		return &b.Log
	}
	g := l.logs[block]
	return &g
}

// Accesses records that lanes of a warp of the block access memory.
func (b *Block) Accesses(w, lanes uint32, shared bool) {
	b.warps[w].used |= lanes
	if shared {
		b.warps[w].usedShared |= lanes
	}
}

// Actor returns the actor of a lane of a warp of the block at this moment.
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

// leave adds what lanes have learned of other launches to what the launch has.
func (b *Block) leave(w *warp, lanes uint32) {
	for v := range w.of(lanes) {
		b.beyond = b.beyond.Join(v.beyond.Before(FirstOperation))
	}
}

// Sync performs a synchronisation event of a launch's threads. met says that all live threads of the block met at a
// barrier, and that no exited thread had accessed shared memory: everything done in the block's shared memory before
// happens before everything done there afterwards.
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

// Synchronised begins a new epoch for the lanes of an acquire or release operation that has been performed.
func (b *Block) Synchronised(wi uint32, e *event.Event) {
	if b.alive > 0 {
		b.next(wi, e.Mask, e)
	}
}

// Advance begins a new epoch for lanes without a synchronisation. A thread that acquires what the lanes have done so
// far does not thereby acquire what the lanes do from now on.
func (b *Block) Advance(wi, lanes uint32) {
	b.number++
	w := &b.warps[wi]
	for v, having := range w.of(lanes) {
		w.set(having, v.at(b.number))
	}
}

// next begins a new epoch for lanes because of the synchronisation e.
func (b *Block) next(wi, lanes uint32, e *event.Event) {
	b.Advance(wi, lanes)
	b.Log.add(b.number, wi, lanes, e)
}

// reconverge begins a new epoch for a warp if all its live lanes execute together again. This orders nothing: see
// Actor.Whole.
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

// Whole returns Actor.Whole for a warp of the block.
func (b *Block) Whole(wi uint32) uint32 { return b.warps[wi].whole }

// set gives lanes a view; the other lanes keep theirs.
func (w *warp) set(lanes uint32, v *View) {
	if w.lent && w.each != nil && w.live&^lanes != 0 {
		each := *w.each
		w.each = &each
	}
	w.lent = false
	w.views.set(w.live, lanes, v)
}

// idle adds to lanes, all of them live, those lanes that have exited or never began and have not accessed memory.
// Knowing these is harmless and keeps clocks uniform.
func (w *warp) idle(lanes uint32) uint32 { return lanes | ^(w.live | w.used) }
