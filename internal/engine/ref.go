package engine

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
)

// The errors of a run besides cancellation.
var (
	ErrDeadlock = errors.New("no warp can make a step")
	ErrStopped  = errors.New("step limit reached")
	ErrTrap     = errors.New("the kernel trapped")
	ErrAssert   = errors.New("a device-side assertion failed")
)

type ref struct{}

// NewRef makes the reference engine, which executes one lane at a time and is simple. It has no state: one value may
// run several launches concurrently if they use different memories.
//
// Every thread has its own program counter and call stack. A step of a warp selects lanes that are at one instruction
// of one call stack, and executes it for them lane by lane, lowest first (warp.go says which lanes). Resident blocks
// form a window that grows when the blocks in it wait for others (schedule.go).
func NewRef() Engine { return ref{} }

// Run implements Engine.
func (ref) Run(ctx context.Context, l *Launch) (Stats, error) {
	r := NewRun(ctx, l)
	r.Machine = refMachine{r}
	if l.Sink != nil {
		r.placeElements()
	}
	return r.Execute(r.Loop)
}

// Execute runs the launch to its end by calling loop.
func (r *Run) Execute(loop func() error) (Stats, error) {
	start, l := time.Now(), r.Launch
	r.Out.begin()
	if _, ref := r.Machine.(refMachine); ref && r.Out.Needs&event.NeedLocal != 0 {
		r.Out.add(event.Event{Kind: event.Undefined})
	}
	err := loop()
	r.Faults.deliver(l)
	r.Out.end()
	r.Stats.Elapsed = time.Since(start)
	r.Stats.Fault = r.Faults.lost
	if r.workspace != 0 {
		// The address is not known elsewhere.
		_, _ = r.Memory.Free(r.workspace)
	}
	r.endDevice()
	return r.Stats, err
}

// Run is one launch being executed.
type Run struct {
	ctx     context.Context
	Machine Machine
	Launch  *Launch
	p       *loader.Program
	Memory  *devmem.Memory
	Image   *loader.Image
	entry   *loader.Code
	Places  *places.Table
	limits  Limits
	Root    uint32 // the kernel's frame
	Params  []byte
	// workspace is the memory that %envreg1 and 2 point to in a cooperative launch; otherwise 0.
	workspace uint64
	// Of engine ref: the accesses that mean elements; nil where there are none.
	elements *opt.Placed

	Sched    schedule
	rng      rng
	Clock    uint64 // number of warp steps so far
	asked    uint64 // value of Clock when the context was last checked
	Stats    Stats
	Stop     error // set by a step that ends the run
	Faults   faultLog
	Out      Emitter
	tlb      tlb
	Access   access
	Args     isa.Args
	WarpArgs isa.WarpArgs

	wgmmaArgs *isa.WgmmaArgs // nil before the first use
	calls     map[callKey]uint32
	free      []*cluster                     // clusters whose blocks have all finished, for reuse
	textures  map[uint64]*descriptor.Texture // by object: textures that texture instructions have used
	taps      taps
	dev       *device // nil if no thread has used streams of the device
	// spareCopies are performed copies, for reuse.
	spareCopies []*copied
}

// callKey identifies a call in the place table; calls caches the table's results.
type callKey struct {
	caller uint32
	callee *loader.Code
}

// The memory for the grid synchronisation of a cooperative launch, zero at the beginning. The engine allocates it.
const (
	WorkspaceBytes = 64
	WorkspaceName  = "workspace of the cooperative launch"
)

// NewRun prepares the execution of a launch. The engine sets its Machine before Execute.
func NewRun(ctx context.Context, l *Launch) *Run {
	r := &Run{ctx: ctx, Launch: l, p: l.Program, Memory: l.Program.Memory, Places: l.Places, limits: DefaultLimits(), calls: map[callKey]uint32{}}
	if r.Places == nil {
		r.Places = places.New()
	}
	r.Image = r.p.Image(l.Func)
	r.entry = r.Image.Code(l.Func)
	r.Root = r.Places.Enter(0, l.Func)
	r.Params = make([]byte, r.entry.Params)
	copy(r.Params, l.Params)
	r.rng = newRNG(l.Seed)
	r.Out = newEmitter(l)
	r.Sched.init(r)
	if l.Cooperative {
		if a, err := r.Memory.Alloc(WorkspaceBytes, WorkspaceBytes, devmem.DeviceAlloc, WorkspaceName); err == nil {
			r.workspace = a
		}
	}
	return r
}

// fail ends the run after the current step.
func (r *Run) fail(err error) {
	if r.Stop == nil {
		r.Stop = err
	}
}

// askAfter is the number of steps between checks whether the run is cancelled: a check takes as long as several steps.
const askAfter = 1 << 12

// halted says why the run must end now; nil if it continues.
func (r *Run) halted() error {
	switch {
	case r.Stop != nil:
		return r.Stop
	case r.Launch.MaxSteps != 0 && r.Clock >= r.Launch.MaxSteps:
		return ErrStopped
	case r.Clock-r.asked < askAfter:
		return nil
	}
	r.asked = r.Clock
	return r.ctx.Err()
}

// CTA is a resident block.
type CTA struct {
	index   uint32
	cluster *cluster
	rank    uint32 // within the cluster
	id      event.Dim3
	shape   event.Dim3
	Threads int
	Live    int  // threads that have not exited
	gone    bool // finished or stuck, no longer resident
	Warps   []*Warp
	Shared  []byte
	Bars    [16]barrier
	Met     uint16 // a bit for each barrier at which a thread has arrived

	Completed uint64 // number of completed barriers
	grouped   bool   // a warp has waited for its warpgroup
	tracked   []trackedCopies
	bulks     []*bulkCopy // in flight
	cores     cores
	bulksDone uint64        // number of bulk copies issued
	barriers  []liveBarrier // mbarriers in shared memory
	ended     []endedBarrier
	early     []earlyUse
}

// newCTA allocates a block of a cluster.
func (r *Run) newCTA(of *cluster, rank uint32) *CTA {
	shared := int(r.Image.Layout.Reserved) + r.SharedBytes()
	c := &CTA{cluster: of, rank: rank, shape: r.Launch.Block, Threads: int(r.Launch.Block.Count()),
		Shared: make([]byte, shared, (shared+3)&^3)}
	for i := range c.Bars {
		c.Bars[i].Reset()
	}
	for i := range r.Launch.WarpsPerBlock() {
		c.Warps = append(c.Warps, &Warp{CTA: c, Index: int(i), first: c.shape.At(32 * uint64(i))})
	}
	return c
}

// start makes c block index, at its first instruction.
func (r *Run) start(c *CTA, index uint32) {
	clear(c.Shared)
	c.index, c.id = index, r.Launch.Grid.At(uint64(index))
	c.Live, c.gone, c.grouped = c.Threads, false, false
	for m := c.Met; m != 0; m &= m - 1 {
		c.Bars[bits.TrailingZeros16(m)].Reset()
	}
	c.Met = 0
	c.tracked, c.barriers, c.bulks, c.bulksDone = c.tracked[:0], c.barriers[:0], c.bulks[:0], 0
	c.ended, c.early = c.ended[:0], c.early[:0]
	c.cores.reset()
	for i, w := range c.Warps {
		n := min(32, c.Threads-32*i)
		w.start(r, index*uint32(len(c.Warps))+uint32(i), uint32(1<<uint(n)-1))
	}
	r.Stats.Threads += uint64(c.Threads)
}

// SharedBytes returns the size of a block's shared memory, without the reserved part of the window.
func (r *Run) SharedBytes() int {
	layout := r.Image.Layout
	if r.Launch.DynamicShared == 0 {
		return int(layout.Static)
	}
	return int(layout.Dynamic-layout.Reserved) + r.Launch.DynamicShared
}

// lane is one thread.
type lane struct {
	frame
	depth int32   // depth of calls below the kernel
	up    []frame // the callers, outermost first
	regs  []uint64
	// param and local are the stacks of parameter frames and local frames, and allRegs is the register stack. regs is
	// the part of it for the current frame.
	allRegs []uint64
	param   []byte
	local   []byte
	tid     event.Dim3
	ran     uint64 // Warp.Strain when it last ran
	// elements are the addresses that instructions aligned last, one for each instruction and depth of its call.
	elements []aligned
}

// frame is one level of a call stack.
type frame struct {
	code    *loader.Code
	pc      int32
	base    uint32 // place of instruction 0
	regAt   int32
	paramAt int32
	localAt int32
}

// stand says what a lane waits for: the kind of wait, the number of a barrier and the member mask of a warp-level wait.
// They are packed so that the stands of a warp can be set at once.
type stand uint64

// Standing packs a stand.
func Standing(why wait, bar uint8, members uint32) stand {
	return stand(why) | stand(bar)<<8 | stand(members)<<32
}

func (s stand) waits() wait     { return wait(s & 0xff) }
func (s stand) bar() uint8      { return uint8(s >> 8) }
func (s stand) members() uint32 { return uint32(s >> 32) }

// wait is what a lane waits for.
type wait uint8

const (
	waitNone    wait = iota
	WaitBarrier      // a CTA barrier
	waitWarp         // bar.warp.sync
	waitLanes        // a warp-level instruction with a member mask
	waitCluster      // barrier.cluster.wait
	waitGroup        // wgmma.wait_group, waiting for the other warps of the warpgroup
	waitColumns      // tcgen05.alloc, waiting for tensor memory to be freed
)

func (ln *lane) place() uint32 { return ln.base + uint32(ln.pc) }

// start puts the lane at the first instruction of the kernel.
func (ln *lane) start(r *Run, tid event.Dim3) {
	ln.tid, ln.elements = tid, ln.elements[:0]
	ln.depth, ln.up = 0, ln.up[:0]
	ln.frame = frame{code: r.entry, base: r.Root}
	ln.fit()
	clear(ln.regs)
	clear(ln.local[:r.entry.Func.LocalFrame])
}

// fit makes the stacks large enough for the current frame.
func (ln *lane) fit() {
	f := ln.code.Func
	if need := int(ln.regAt) + f.Regs; need > len(ln.allRegs) {
		ln.allRegs = Grow(ln.allRegs, need)
	}
	ln.regs = ln.allRegs[ln.regAt : int(ln.regAt)+f.Regs]
	if need := int(ln.paramAt) + f.ParamFrame; need > len(ln.param) {
		ln.param = Grow(ln.param, need)
	}
	if need := int(ln.localAt) + f.LocalFrame; need > len(ln.local) {
		ln.local = Grow(ln.local, need)
	}
}

// Grow returns s at least n elements: exactly n at first, doubling later.
func Grow[T any](s []T, n int) []T {
	if len(s) > 0 {
		n = max(n, 2*len(s))
	}
	t := make([]T, n)
	copy(t, s)
	return t
}
