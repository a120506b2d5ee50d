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

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// Order is the happens-before order of a run so far.
type Order struct {
	launches map[uint32]*Launch
	agents   map[uint32]*Agent
	tokens   map[uint64]*clock.Foreign
	global   Memory
	join     clock.Joiner
	chains   ChainID         // the last given out
	launched map[uint32]bool // agents that have begun a launch
}

// New makes the order of a run in which nothing has happened.
func New() *Order {
	return &Order{launches: map[uint32]*Launch{}, agents: map[uint32]*Agent{}, tokens: map[uint64]*clock.Foreign{}, launched: map[uint32]bool{}}
}

// Launch is one kernel launch.
type Launch struct {
	Info event.Launch
	// WarpsPerBlock is that of Info.
	WarpsPerBlock uint32

	order  *Order
	blocks map[uint32]*Block // those that run
	logs   map[uint32]*Log   // of blocks that have ended
	start  *clock.Foreign    // what its threads begin with
	beyond *clock.Foreign    // what they learned of other launches; its agent knows that after the end
	end    uint32            // the agent's epoch at the end; 0 while the launch runs
	agent  uint32
	depth  int // of clock.Grid
	// fencesSC says that a fence.sc beyond the block was executed.
	fencesSC bool
	// published says that a thread has released something to threads of other blocks.
	published bool
}

// Block is a block that has a thread which has not exited.
type Block struct {
	*Launch
	Index  uint32
	Log    Log
	Shared Memory

	number   uint32 // the last epoch given out
	alive    int    // threads
	warps    []warp
	barriers [16][]arrival
	// leftShared says that a thread exited which had accessed shared memory, leftAny that one exited which had accessed any:
	// no barrier orders them.
	leftShared, leftAny bool
}

// warp is a warp of a running block. Its lanes have one view while they synchronise alike.
type warp struct {
	views
	live             uint32 // lanes that have not exited
	used, usedShared uint32 // lanes that have accessed memory, shared memory
	patterns         *[32]patterns
}

// Agent is a host thread or a stream.
type Agent struct {
	ID    uint32
	View  *View
	epoch uint32
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

// Begin begins a launch: what its agent has done so far happens before all of it.
func (o *Order) Begin(info event.Launch) *Launch {
	a := o.Agent(info.Agent)
	a.next()
	l := &Launch{Info: info, WarpsPerBlock: info.WarpsPerBlock(), order: o, blocks: map[uint32]*Block{}, logs: map[uint32]*Log{},
		start: a.View.beyond, beyond: a.View.beyond, agent: info.Agent, depth: clock.Depth(info.Grid.Count())}
	o.launches[info.ID] = l
	o.launched[info.Agent] = true
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
	a := o.Agent(l.agent)
	a.next()
	l.end = a.epoch
	known := a.View.beyond.Join(l.beyond)
	known = known.Without(func(id uint32) bool { return o.launches[id].within(known) })
	a.View = &View{knowledge: knowledge{beyond: known}, Epoch: a.epoch}
}

// within says that all of a launch, which has ended, is known.
func (l *Launch) within(f *clock.Foreign) bool { return l.end != 0 && f.Agent(l.agent) >= l.end }

// Signal publishes under a token what an agent has done.
func (o *Order) Signal(agent uint32, token uint64) {
	a := o.Agent(agent)
	a.next()
	o.tokens[token] = a.View.beyond
}

// Wait lets an agent go on after the last Signal of a token.
func (o *Order) Wait(agent uint32, token uint64) {
	a := o.Agent(agent)
	a.View = &View{knowledge: knowledge{beyond: a.View.beyond.Join(o.tokens[token])}, Epoch: a.epoch}
}

// HostAccess begins the epoch of an access of the host side and gives who makes it.
func (o *Order) HostAccess(agent uint32) Actor {
	a := o.Agent(agent)
	a.next()
	return Actor{Agent: agent, View: a.View}
}

// Block gives the block of a warp of a launch, and the number of the warp in it.
func (l *Launch) Block(w uint32) (b *Block, inBlock uint32) {
	i := w / l.WarpsPerBlock
	b = l.blocks[i]
	if b == nil {
		b = &Block{Launch: l, Index: i, number: 1, alive: int(l.Info.Block.Count()), warps: make([]warp, l.WarpsPerBlock)}
		v := &View{knowledge: knowledge{beyond: l.start}, Epoch: 1}
		for j := range b.warps {
			b.warps[j] = warp{live: ^uint32(0), views: views{same: v}}
		}
		if n := l.Info.Block.Count() % 32; n != 0 {
			b.warps[l.WarpsPerBlock-1].live = 1<<n - 1
		}
		l.blocks[i] = b
	}
	return b, w - i*l.WarpsPerBlock
}

// Log gives the synchronisations of a block of the launch, nil when it has made none.
func (l *Launch) LogOf(block uint32) *Log {
	if b := l.blocks[block]; b != nil {
		return &b.Log
	}
	return l.logs[block]
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
	return Actor{Launch: b.Launch, Block: b.Index, Warp: b.Index*b.WarpsPerBlock + w, Lane: lane, View: b.warps[w].view(lane)}
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
		b.beyond = b.beyond.Join(v.beyond)
	}
}

// over ends the block.
func (b *Block) over() {
	delete(b.blocks, b.Index)
	if len(b.Log.ops) > 0 {
		b.logs[b.Index] = &b.Log
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

// next begins a new epoch of lanes: that of synchronisation e.
func (b *Block) next(wi, lanes uint32, e *event.Event) {
	b.number++
	b.Log.add(b.number, wi, lanes, e)
	w := &b.warps[wi]
	for v, having := range w.of(lanes) {
		w.set(having, v.at(b.number))
	}
}

// set gives lanes a view.
func (w *warp) set(lanes uint32, v *View) {
	if w.live&^lanes == 0 {
		w.views = views{same: v}
		return
	}
	w.views.set(lanes, v)
}

// idle adds to lanes, all of them live, those that exited or never began and have not accessed memory: to know them costs
// nothing and keeps clocks uniform.
func (w *warp) idle(lanes uint32) uint32 { return lanes | ^(w.live | w.used) }
