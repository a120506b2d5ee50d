// Package kernel makes a launch of a CUDA kernel a program that the search can explore. It drives the threads of the
// launch, which the emulator executes one at a time, and turns their requests into steps of the search. docs/verify.md
// has the table of PTX operations and their meaning in the model.
package kernel

import (
	"fmt"
	"slices"
	"sync"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// Program is a launch. It is an explore.Program.
//
// The states of a thread are interned, and the step from a state with a value is computed once. So the search holds and
// copies numbers of states, and the emulator runs a thread no more often than it has states.
//
// Its methods, except Close, may be called from several goroutines. They find existing results without a lock. The
// numbers of states, locations and masks depend on which goroutine asks for them first; nothing else does, as long as
// the program does not refuse.
type Program struct {
	Launch *engine.Launch
	unroll int64
	past   int64 // number of states in wordPast
	follow bool  // Options.Vain
	each   bool  // Options.Attempts
	named  bool  // Options.Registers has some
	// dependencies is Options.Dependencies.
	dependencies bool
	refused      func()
	widths       Widths

	states    list[state]
	locations list[location]

	mu         sync.RWMutex // guards the fields below, and additions to the lists
	threads    *engine.Threads
	ids        map[identity]int32
	plain      map[identity]int32  // the numbers of states without dependencies
	bytes      int                 // of all states
	masks      map[uint32]int32    // of bar.warp.sync
	stacks     map[string]int64    // of Request.Stack
	inParts    []int32             // places of accesses that are made in parts
	at         map[granule][]int32 // the locations in 8 bytes of memory
	refusal    *Refusal
	latest     *Refusal // of the state that is being made
	convergent bool     // a thread asks which lanes are active
}

// state is a state of a thread, with its next step.
type state struct {
	thread int
	at     engine.State
	q      engine.Request
	op     explore.Op
	plain  int32 // equal for states that differ only in dependencies
	next   hops
	progress
	parts  int   // of the access
	larger uint8 // bytes of the location of which the access is a part, 0 if it is the whole
	// refusal, if not nil, is the reason why the thread cannot be explored from here on. The program refuses when the
	// search comes to this state, which may never happen.
	refusal *Refusal
	attempts
}

// reads reports whether the step reads a location.
func (st *state) reads() bool { return st.op.Kind == explore.Read || st.op.Kind == explore.Update }

type identity struct {
	thread int
	at     engine.State
	progress
}

// progress is the progress of a thread in an access that is made in parts.
type progress struct {
	part int
	read uint64 // by the preceding parts
}

// location is a location of memory: an address and a width.
type location struct {
	space   event.Space
	cta     uint32 // of shared memory
	addr    uint64
	size    uint8
	initial int64

	// Program.mu guards these.
	place   uint32 // of the access that was seen first
	written bool
	cached  bool  // read by ld.global.nc
	barrier bool  // an mbarrier
	atomic  bool  // accessed by an operation that cannot be made in parts
	within  bool  // accessed only by atomic loads, which may be made as parts of larger ones
	parted  uint8 // bytes of such a load that was made as a part of a load of this location, 0 if there was none
	stored  bool  // accessed by stores, with which a load of a part does not synchronise
	partly  []int32
	of      []access // the accesses of it
}

// access is an access of memory. Shared memory is that of a block.
type access struct {
	space event.Space
	cta   uint32
	addr  uint64
	size  uint8
}

// Widths says, for memory that is accessed with several widths, how its accesses are made: accesses that are not atomic
// in parts of a smaller size; atomic loads as larger loads of which they take a part.
type Widths map[access]uint8

type granule struct {
	space event.Space
	cta   uint32
	addr  uint64
}

// Refusal is the reason why a launch cannot be explored.
type Refusal struct {
	Reason   string
	Regroup  bool     // see Options.Widths
	Attempts bool     // see Options.Attempts
	Words    bool     // see Options.Words
	Places   []uint32 // of the instructions concerned
}

// The bounds of a launch.
const (
	MaxThreads = 1024
	maxStates  = 1 << 21 // of all threads
	maxBytes   = 1 << 30 // of all states
	// blockBarriers is the number of barriers of a block, maxMasks the greatest number of masks of bar.warp.sync.
	blockBarriers, maxMasks = 16, 16
	// maxActive is the greatest number of threads in a warp that asks which lanes are active.
	maxActive = 6
)

// TooLarge says that a launch has more threads than can be explored.
type TooLarge struct{ Threads uint64 }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("the launch has %d threads; at most %d are explored, and few launches of more than 8 end in time", e.Threads, MaxThreads)
}

// Options select how a launch is explored.
type Options struct {
	Unroll       int  // a thread is stopped after this number of iterations of loops that do not wait
	Dependencies bool // steps carry the reads on which they depend
	// Widths, if not nil, receives what is found about widths. The program then refuses with Regroup set; another
	// program can go on with the widths.
	Widths Widths
	// Words says that atomic operations on bytes and halves, which are executed on their word, count as operations on
	// that word. Without it the program may refuse with Refusal.Words set; another program may go on with it.
	Words bool
	// Attempts says that a thread which counts the attempts of a loop is followed in each of them. Without it the
	// program may refuse with Refusal.Attempts set; another program can go on with it.
	Attempts bool
	// Refused, if not nil, is called when the program refuses.
	Refused func()
	// Stops says that the threads make empty steps, fences without an order, at branches and at the instructions after
	// them.
	Stops bool
	// Registers are slots of the kernel's registers that Register is asked for. No threads are symmetric then.
	Registers []int32
	// Vain says that threads are followed after useless iterations too. Tests check that this changes no result.
	Vain bool
}

// New makes a program of a launch. Close ends it.
func New(l *engine.Launch, o Options) (*Program, error) {
	if n := l.Grid.Count() * l.Block.Count(); n > MaxThreads {
		return nil, &TooLarge{n}
	}
	if l.ClusterShape().Count() > 1 {
		return nil, fmt.Errorf("clusters of several blocks are not explored; the launch has clusters of %v", l.Cluster)
	}
	p := &Program{Launch: l, threads: engine.NewThreads(l, engine.ThreadOptions{Dependencies: o.Dependencies, Words: o.Words, Registers: o.Registers}), unroll: int64(o.Unroll), past: minPast, follow: o.Vain, each: o.Attempts, dependencies: o.Dependencies, refused: o.Refused, widths: o.Widths, ids: map[identity]int32{},
		plain: map[identity]int32{}, at: map[granule][]int32{}, masks: map[uint32]int32{}, stacks: map[string]int64{}}
	p.named = len(o.Registers) > 0
	if p.threads.Timed() {
		p.past = timedPast
	}
	if o.Stops {
		p.threads.Stop()
	}
	return p, nil
}

// Close frees the device memory of the program.
func (p *Program) Close() { p.threads.Close() }

// Refusal is the reason why the search was ended, and nil if the program has not refused.
func (p *Program) Refusal() *Refusal {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.refusal
}

// Threads is the number of threads.
func (p *Program) Threads() int { return int(p.Launch.Grid.Count() * p.Launch.Block.Count()) }

// Place is the place of a thread in the hierarchy. Each block is a cluster.
func (p *Program) Place(thread int) model.Place {
	cta := int32(uint64(thread) / p.Launch.Block.Count())
	return model.Place{CTA: cta, Cluster: cta}
}

// Pieces returns, for a step that accesses memory, the number of elements that its instruction accesses, each in a step
// of its own.
func (p *Program) Pieces(op *explore.Op) int {
	st, n := p.stateOf(op), 0
	for i := range int(st.q.Pieces) {
		n += p.partsOf(p.pieceOf(st, i))
	}
	return n
}

// pieceOf is the access of element i of the vector whose element is the next access of a thread.
func (p *Program) pieceOf(st *state, i int) access {
	a := p.accessOf(st)
	a.addr += uint64(i-int(st.q.Piece)) * uint64(st.q.Size)
	return a
}

// readsOf returns the number of parts in which each element of a vector has been read, up to the current one. It
// returns nil if dependencies are not tracked.
func (p *Program) readsOf(st *state) (reads []int) {
	if p.dependencies && len(p.widths) > 0 && st.q.Kind == engine.RequestLoad {
		for i := range int(st.q.Piece) + 1 {
			reads = append(reads, p.partsOf(p.pieceOf(st, i)))
		}
	}
	return reads
}

// accessOf is the next access of a thread.
func (p *Program) accessOf(st *state) access {
	a := access{space: st.q.Space, addr: st.q.Addr, size: st.q.Size}
	if a.space == event.Shared {
		a.cta = uint32(p.Place(st.thread).CTA)
	}
	return a
}

// partsOf is the number of parts in which an access is made.
func (p *Program) partsOf(a access) int {
	if size, ok := p.widths[a]; ok && size < a.size {
		return int(a.size / size)
	}
	return 1
}

// Coordinates are those of the block and of the thread in it.
func (p *Program) Coordinates(thread int) (block, in event.Dim3) {
	n := p.Launch.Block.Count()
	return p.Launch.Grid.At(uint64(thread) / n), p.Launch.Block.At(uint64(thread) % n)
}

// OneProxy reports that there are no accesses by other proxies.
func (p *Program) OneProxy() bool { return true }

// Places implements explore.Program.
func (p *Program) Places() []model.Place {
	out := make([]model.Place, p.Threads())
	for i := range out {
		out[i] = p.Place(i)
	}
	return out
}

// Initial implements explore.Program.
func (p *Program) Initial(loc int32) int64 { return p.locations.at(loc).initial }

// Locations is the number of locations that the threads have accessed so far.
func (p *Program) Locations() int { return p.locations.len() }

// Location returns the state space, the block (of shared memory), the address and the size in bytes of a location.
func (p *Program) Location(loc int32) (space event.Space, cta uint32, addr uint64, size int) {
	l := p.locations.at(loc)
	return l.space, l.cta, l.addr, int(l.size)
}

// Mbarrier reports whether a location is an mbarrier.
func (p *Program) Mbarrier(loc int32) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.locations.at(loc).barrier
}

// Apply implements explore.Program.
func (p *Program) Apply(op *explore.Op, old int64) (int64, bool) {
	v, writes := p.stateOf(op).q.Update(uint64(old))
	return int64(v), writes
}

// stateOf is the state of a thread whose next step is op.
func (p *Program) stateOf(op *explore.Op) *state { return p.states.at(int32(op.Expected)) }

// The words of a thread's state in the search.
const (
	wordState   = iota
	wordRounds  // number of backward jumps in loops
	wordHistory // number of steps since it last wrote or passed a barrier
	wordAnchor  // one more than the plain number of a state since which the thread has read nothing and passed no barrier; 0 for none
	wordWrites  // number of steps since that state
	wordNext    // number of such steps after which another state takes its place
	wordPast    // the states before the last steps of the history, each at the number of its step
)

// minPast is the number of states in wordPast, and timedPast that in a kernel that reads clocks: libcu++ polls dozens
// of times before it starts over.
const minPast, timedPast = 16, 64

// StateWords implements explore.Program.
func (p *Program) StateWords() int { return wordPast + int(p.past) }

// Start implements explore.Program.
func (p *Program) Start(t int, s []int64, op *explore.Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, q := p.threads.Start(t)
	id := p.intern(t, at, q, progress{})
	s[wordState] = int64(id)
	*op = p.states.at(id).op
	p.come(p.states.at(id))
}

// come records that the search has come to a state.
func (p *Program) come(st *state) {
	if st.refusal != nil && p.refusal == nil {
		p.refusal = st.refusal
		if p.refused != nil {
			p.refused()
		}
	}
}

// Resume implements explore.Program. A thread that returns to a state in which it has been, and has since written
// nothing and passed no barrier, waits: it might as well not have made its reads since.
func (p *Program) Resume(t int, s []int64, value int64, op *explore.Op) {
	from := p.states.at(int32(s[wordState]))
	h := p.hop(from, value)
	to := p.states.at(h.state)
	waits, alike := p.attempt(from, h) // of all values that are read there
	if !alike {
		*op = explore.Op{Kind: explore.Refused, Pos: from.op.Pos}
		return
	}
	n := s[wordHistory]
	before := func(k int64) *state { return p.states.at(int32(s[wordPast+k%p.past])) }
	if p.endless(s, from, to) {
		*op = explore.Op{Kind: explore.Await, Value: s[wordWrites], Pos: to.op.Pos}
		return
	}
	if p.lasting(&from.op, value) {
		s[wordHistory] = 0
	} else {
		if !from.op.Inserted {
			s[wordPast+n%p.past] = s[wordState]
			s[wordHistory]++
		}
		last := s[wordHistory]
		for k := last - 1; k >= max(0, last-p.past); k-- {
			if before(k).plain == to.plain {
				*op = explore.Op{Kind: explore.Await, Value: last - k, Pos: to.op.Pos}
				return
			}
		}
	}
	if waits {
		*op = explore.Op{Kind: explore.Await, Value: 1, Pos: to.op.Pos}
		return
	}
	// A thread that waits forever returns to a state by the shortest way too, so the check for waiting above comes
	// first.
	for k := n - 1; from.q.Repeats && !p.follow && k >= max(0, n-p.past+1); k-- {
		if p.vain(before(k), from, value) {
			*op = explore.Op{Kind: explore.Assumed, Vain: true, Pos: to.op.Pos}
			return
		}
	}
	s[wordState] = int64(h.state)
	*op = to.op
	if to.refusal != nil {
		p.mu.Lock()
		p.come(to)
		p.mu.Unlock()
	}
	if h.back {
		if s[wordRounds]++; s[wordRounds] > p.unroll && op.Kind != explore.End {
			*op = explore.Op{Kind: explore.Bound, Pos: op.Pos}
		}
	}
}

// Alike implements explore.Program.
func (p *Program) Alike(_ int, a, b []int64) bool {
	return p.states.at(int32(a[wordState])).plain == p.states.at(int32(b[wordState])).plain
}

// endless reports whether a thread loops without reading, but with writes: it returns to a state, and will do so again.
// One state is remembered, and replaced after twice as many steps each time (Brent's algorithm).
func (p *Program) endless(s []int64, from, to *state) bool {
	switch {
	case from.op.Inserted:
		return false
	case from.op.Kind != explore.Write && from.op.Kind != explore.Fence:
		s[wordAnchor] = 0
		return false
	}
	if s[wordAnchor] == 0 {
		s[wordAnchor], s[wordWrites], s[wordNext] = int64(from.plain)+1, 0, 1
	}
	if s[wordWrites]++; int64(to.plain)+1 == s[wordAnchor] {
		return true
	}
	if s[wordWrites] == s[wordNext] {
		s[wordAnchor], s[wordWrites], s[wordNext] = int64(to.plain)+1, 0, 2*s[wordNext]
	}
	return false
}

// Pass records that a thread in a state has passed a barrier that is not a step of the program: nothing that it did
// before is a useless iteration.
func (p *Program) Pass(s []int64) { s[wordHistory], s[wordAnchor] = 0, 0 }

// vain reports whether a thread that has gone from state was to state is without an effect visible to others might as
// well have read value in state was: the two states differ only in data that makes no difference any more. Unoptimised
// code leaves such data in local memory: values that it has read and counted, and passed on. The execution without
// these steps is another one.
func (p *Program) vain(was, is *state, value int64) bool {
	return was.plain != is.plain && p.asWell(was, is, value) && p.states.at(p.hop(was, value).state).plain == p.states.at(p.hop(is, value).state).plain
}

// asWell reports whether the step of state was, which reads value, is equal to that of state is, or weaker.
func (p *Program) asWell(was, is *state, value int64) bool {
	same := is.op
	same.Expected, same.Deps, same.Control = was.op.Expected, was.op.Deps, was.op.Control // Expected is the number of the state
	equal := was.op == same && was.q.Value == is.q.Value && was.q.Swap == is.q.Swap
	return (equal || p.stronger(was, is, value)) && was.progress == is.progress
}

// hop returns the result of resuming a state with value.
func (p *Program) hop(from *state, value int64) *hop {
	if h := from.next.find(value); h != nil {
		return h
	}
	return p.step(from, value)
}

// stronger reports whether state is reads value where state was might have read it, as with a failing compare-and-swap
// and the load or the attempt before it, and whether the later read synchronises with everything with which the earlier
// one would.
func (p *Program) stronger(was, is *state, value int64) bool {
	read := func(st *state) (order model.Order, ok bool) {
		switch st.op.Kind {
		case explore.Read:
			return st.op.Order, true
		case explore.Update:
			_, writes := p.Apply(&st.op, value) // the value it has read: others could then not update its source
			return st.op.Order.OfRead(), !writes
		}
		return 0, false
	}
	a, read1 := read(was)
	b, read2 := read(is)
	return !p.dependencies && read1 && read2 && p.polls(was, is) && a.Atomic() && b.Atomic() && (a == b || a == model.Relaxed)
}

// polls reports whether two states read one location, and the later read races only with accesses with which the
// earlier one races, too.
func (p *Program) polls(was, is *state) bool {
	return was.op.Loc == is.op.Loc && was.larger == is.larger && was.parts == is.parts && was.op.Order.Atomic() == is.op.Order.Atomic() &&
		was.op.Volatile == is.op.Volatile && was.op.Scope <= is.op.Scope
}

// lasting reports whether other threads can see a step that is resumed with value. They cannot see an update that
// writes the value it has read.
func (p *Program) lasting(op *explore.Op, value int64) bool {
	switch op.Kind {
	case explore.Update:
		written, _ := p.Apply(op, value)
		return written != value
	case explore.Read, explore.Fence:
		return false
	}
	return true
}

// step computes the successor of a state, unless another goroutine has.
func (p *Program) step(from *state, value int64) *hop {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := from.next.find(value); h != nil {
		return h
	}
	h := &hop{value: value}
	result := uint64(value)
	if from.larger > 0 {
		result = lowBytes(result>>(8*(from.q.Addr%uint64(from.larger))), from.q.Size)
	}
	if from.parts > 1 {
		result = from.read | result<<(8*int(from.q.Size)/from.parts*from.part)
	}
	if from.part+1 < from.parts {
		h.state = p.intern(from.thread, from.at, from.q, progress{from.part + 1, result})
	} else {
		at, q := p.threads.Resume(from.thread, from.at, result, p.readsOf(from)...)
		h.state, h.back = p.intern(from.thread, at, q, progress{}), q.Back
	}
	from.next.add(h)
	return h
}

// intern numbers a state.
func (p *Program) intern(t int, at engine.State, q engine.Request, done progress) int32 {
	key := identity{t, at, done}
	if id, ok := p.ids[key]; ok {
		return id
	}
	id := int32(p.states.len())
	plain, ok := p.plain[identity{t, at[:q.Plain], done}]
	if !ok {
		plain = int32(len(p.plain))
		p.plain[identity{t, at[:q.Plain], done}] = plain
	}
	st := &state{thread: t, at: at, q: q, plain: plain, progress: done, parts: 1}
	p.latest = nil
	st.op = p.op(st, id)
	if p.bytes += len(at); id+1 >= maxStates || p.bytes >= maxBytes {
		st.op = p.refuse(fmt.Sprintf("the threads come to more than %d states: shrink the launch or its inputs", id), q.Place)
	}
	st.refusal = p.latest
	p.states.add(st)
	p.ids[key] = id
	return id
}

func (p *Program) refuse(reason string, places ...uint32) explore.Op {
	p.latest = &Refusal{Reason: reason, Places: places}
	return explore.Op{Kind: explore.Refused, Pos: int32(places[0])}
}

// scopes are the scopes of operations. An access that is not atomic has none.
var scopes = map[event.Scope]model.Scope{event.NoScope: model.Thread, event.ScopeCTA: model.CTA, event.ScopeCluster: model.Cluster,
	event.ScopeGPU: model.GPU, event.ScopeSys: model.Sys}

// orders are the orders of operations. A volatile access is relaxed (PTX manual, "ld": it has the memory
// synchronization semantics of ld.relaxed.sys).
var orders = map[event.Order]model.Order{event.Weak: model.NA, event.Volatile: model.Relaxed, event.Relaxed: model.Relaxed,
	event.Acquire: model.Acquire, event.Release: model.Release, event.AcqRel: model.AcqRel, event.SC: model.SC}

// op makes the search step for the request of a state.
func (p *Program) op(st *state, id int32) explore.Op {
	q := &st.q
	op := explore.Op{Order: orders[q.Order], Scope: scopes[q.Scope], Pos: int32(q.Place), Loops: q.Repeats, Expected: int64(id),
		Volatile: q.Order == event.Volatile, Deps: q.Depends, Control: q.Control}
	switch q.Kind {
	case engine.RequestExit:
		op.Kind = explore.End
	case engine.RequestFence:
		op.Kind = explore.Fence
	case engine.RequestStop:
		op.Kind, op.Inserted = explore.Fence, true
	case engine.RequestBarrier:
		return p.barrier(st, op)
	case engine.RequestArrive:
		op.Kind, op.Loc = explore.Signal, int32(q.Barrier)
	case engine.RequestFault:
		op.Kind = explore.Fail
	case engine.RequestUnsupported:
		return p.refuse(q.Message, q.Place)
	default:
		return p.access(st, op)
	}
	return op
}

// reductions are the functions of bar.red.
var reductions = map[isa.Op]explore.Function{isa.OpPopc: explore.Add, isa.OpAnd: explore.And, isa.OpOr: explore.Or}

// barrier completes the step of a barrier. Barriers of lanes of a warp have numbers of their own, one for each mask.
func (p *Program) barrier(st *state, op explore.Op) explore.Op {
	q := &st.q
	op.Kind, op.Loc, op.Aligned, op.Lanes = explore.Arrive, int32(q.Barrier), q.Aligned, q.Members
	op.Exchanges, op.Converges = q.Warp, q.Converges
	if q.Converges {
		op.Aligned = false
		threads := p.Launch.Block.Count()
		warp := uint64(st.thread) % threads / 32
		op.Loc = blockBarriers + 2*maxMasks*int32(p.Launch.WarpsPerBlock()) + int32(warp)
		p.convergent = true
		if threads-32*warp > maxActive {
			return p.refuse(fmt.Sprintf("activemask: which lanes are active together is explored in warps of at most %d threads: launch smaller blocks", maxActive), q.Place)
		}
		op.Value = p.stack(q.Stack)
		return op
	}
	if q.Members != 0 {
		n, ok := p.masks[q.Members]
		if !ok {
			if n = int32(len(p.masks)); n == maxMasks {
				return p.refuse(fmt.Sprintf("more than %d different masks of lanes are not explored: use fewer masks", maxMasks), q.Place)
			}
			p.masks[q.Members] = n
		}
		// Two warps of a block do not meet at it: their threads are not members of each other's barriers.
		op.Loc = blockBarriers + n*int32(p.Launch.WarpsPerBlock()) + int32(uint64(st.thread)%p.Launch.Block.Count()/32)
		if q.Warp { // which does not meet bar.warp.sync
			op.Loc += maxMasks * int32(p.Launch.WarpsPerBlock())
		}
	}
	op.Function, op.Reduces = reductions[q.Reduce]
	op.Value = int64(q.Value)
	return op
}

// stack numbers the call stacks of lanes.
func (p *Program) stack(s string) int64 {
	n, ok := p.stacks[s]
	if !ok {
		n = int64(len(p.stacks))
		p.stacks[s] = n
	}
	return n
}

// Barriers is the number of barriers of a block: its own, and those of lanes of its warps.
func (p *Program) Barriers() int { return blockBarriers + (2*maxMasks+1)*int(p.Launch.WarpsPerBlock()) }

// Exchange implements explore.Exchanger.
func (p *Program) Exchange(op *explore.Op, all []*explore.Op) (int64, bool) {
	var with []*engine.Request
	for _, o := range all {
		with = append(with, &p.stateOf(o).q)
	}
	v, ok := p.stateOf(op).q.Exchange(with)
	return int64(v), ok
}

// Convergent reports whether threads ask which lanes are active.
func (p *Program) Convergent() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.convergent
}

// access completes the step of a load, store or atomic operation.
func (p *Program) access(st *state, op explore.Op) explore.Op {
	q := &st.q
	whole := p.accessOf(st)
	part := whole
	if st.parts = p.partsOf(whole); st.parts > 1 {
		part.size /= uint8(st.parts)
		part.addr += uint64(st.part) * uint64(part.size)
		if !slices.Contains(p.inParts, op.Pos) {
			p.inParts = append(p.inParts, op.Pos)
		}
	}
	if size := p.widths[whole]; size > whole.size && partial(q) {
		st.larger, part.size, part.addr = size, size, whole.addr-whole.addr%uint64(size)
	}
	loc := p.locate(st, whole, part)
	l := p.locations.at(loc)
	if st.parts > 1 && q.Order != event.Weak {
		return p.mixed(q, l.size, whole.size, l.place)
	}
	if l.parted > 0 && l.stored {
		return p.mixed(q, l.size, l.parted, l.place)
	}
	if l.written {
		if len(l.partly) > 0 {
			o := p.locations.at(l.partly[0])
			refused := p.mixed(q, l.size, o.size, o.place)
			larger, smaller := l, o
			if l.size < o.size {
				larger, smaller = o, l
			}
			switch {
			case p.widths == nil:
			case !larger.atomic:
				p.remake(larger, smaller.size)
			case smaller.within && !larger.stored:
				p.remake(smaller, larger.size)
			}
			return refused
		}
		if l.cached {
			return p.refuse("memory that the kernel writes is read with ld.global.nc (__ldg, or const __restrict__): that needs memory "+
				"that nobody writes, which no order mends", q.Place, l.place)
		}
	}
	op.Loc = loc
	switch q.Kind {
	case engine.RequestLoad:
		op.Kind = explore.Read
	case engine.RequestStore:
		value := q.Value
		if st.parts > 1 {
			value = value >> (8 * int(part.size) * st.part) & (1<<(8*part.size) - 1)
		}
		op.Kind, op.Value = explore.Write, int64(value)
	case engine.RequestAtomic:
		if op.Kind, op.Reduction = explore.Update, q.Reduction; !q.Exchanges() {
			op.Function = explore.CompareSwap // the write depends on the read; Apply computes the value
		}
	}
	return op
}

// InParts returns the places of the accesses that have been made in parts so far.
func (p *Program) InParts() []int32 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.inParts)
}

// remake sets another size for the accesses of a location, for when the search begins again.
func (p *Program) remake(l *location, size uint8) {
	for _, w := range l.of {
		p.widths[w] = size
	}
	p.latest.Regroup = true
}

// partial reports whether an access may be made as a larger access. Loads that are not atomic may not: they would race
// with atomic writes of adjacent bytes.
func partial(q *engine.Request) bool {
	return q.Kind == engine.RequestLoad && q.Order != event.Weak && q.Order != event.Volatile
}

// lowBytes returns the first n bytes of a value.
func lowBytes(v uint64, n uint8) uint64 { return v << (64 - 8*n) >> (64 - 8*n) }

// mixed refuses accesses of two sizes.
func (p *Program) mixed(q *engine.Request, size, other uint8, place uint32) explore.Op {
	where := ""
	if p.widths != nil {
		where = " but for atomic loads of a part of what larger read-modify-writes update, and what is not atomic"
	}
	op := p.refuse(fmt.Sprintf("accesses of %d and of %d bytes overlap, and one of them writes: mixed sizes are not explored%s. Use one width for "+
		"each variable", size, other, where), q.Place, place)
	p.latest.Words = p.threads.Narrow()
	return op
}

// locate finds the location of a part of an access. A location counts as written if a partly overlapping one was
// written when it was found.
func (p *Program) locate(st *state, whole, part access) int32 {
	q := &st.q
	key := granule{space: part.space, cta: part.cta, addr: part.addr &^ 7}
	loc := int32(-1)
	for _, i := range p.at[key] {
		if l := p.locations.at(i); l.addr == part.addr && l.size == part.size {
			loc = i
		}
	}
	if loc < 0 {
		loc = int32(p.locations.len())
		l := &location{space: part.space, cta: part.cta, addr: part.addr, size: part.size, place: q.Place, within: true,
			initial: int64(p.threads.Initial(part.space, part.addr, part.size))}
		for _, i := range p.at[key] {
			if o := p.locations.at(i); part.addr < o.addr+uint64(o.size) && o.addr < part.addr+uint64(part.size) {
				l.partly = append(l.partly, i)
				o.partly = append(o.partly, loc)
				l.written = l.written || o.written
			}
		}
		p.locations.add(l)
		p.at[key] = append(p.at[key], loc)
	}
	l := p.locations.at(loc)
	l.cached = l.cached || q.NonCoherent
	l.written = l.written || q.Kind != engine.RequestLoad
	l.barrier = l.barrier || q.Mbarrier()
	l.atomic = l.atomic || q.Order != event.Weak
	l.within = l.within && partial(q)
	if st.larger > 0 {
		l.parted = q.Size
	}
	l.stored = l.stored || q.Kind == engine.RequestStore
	if p.widths != nil && !slices.Contains(l.of, whole) {
		l.of = append(l.of, whole)
	}
	return loc
}

// Final returns n bytes of global memory at addr at the end of an execution.
func (p *Program) Final(x explore.Execution, addr, n uint64) []byte {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(p.threads.Initial(event.Global, addr+uint64(i), 1))
	}
	for at := addr &^ 7; at < addr+n; at += 8 {
		for _, loc := range p.at[granule{space: event.Global, addr: at}] {
			l := p.locations.at(loc)
			if len(x.Coherence(loc)) == 0 {
				continue
			}
			v := uint64(x.Final(loc))
			for i := range uint64(l.size) {
				if k := l.addr + i - addr; k < n {
					out[k] = byte(v >> (8 * i))
				}
			}
		}
	}
	return out
}

// Register returns the value of one of Options.Registers when a thread has ended.
func (p *Program) Register(x explore.Execution, thread int, slot int32) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.threads.Register(thread, p.states.at(int32(x.State(thread)[wordState])).at, slot)
}

// Fault says what a thread does that fails at a step: the kind of the fault, and a sentence with the facts.
func (p *Program) Fault(op *explore.Op) (engine.FaultKind, string) {
	q := &p.stateOf(op).q
	return q.Fault, q.Message
}
