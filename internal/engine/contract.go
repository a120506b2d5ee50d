// Package engine executes kernels: grids, blocks, warps and lanes over the memory of a device. Two engines keep one
// contract: ref, which is in this package, runs one lane at a time and is obviously right; that of package warp runs optimised
// kernels 32 lanes a step. Memory, barriers, schedules, faults and events are common to them (Machine says what is not), and
// the tests of package warp run both and compare.
package engine

import (
	"context"
	"time"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// Engine executes launches.
type Engine interface {
	// Run executes one launch to its end. Faults go to l.OnFault. The error is nil when the grid ran
	// to its end (faults or not), ctx.Err() when cancelled, ErrDeadlock, ErrHostWait, ErrDeviceWait, ErrStopped, ErrTrap or
	// ErrAssert when it could not finish. The same fault is told once, with its count, when the launch ends in whatever way.
	Run(ctx context.Context, l *Launch) (Stats, error)
}

// Argument is memory that a launch is given under a name of the program: a tensor.
type Argument struct {
	Name, Type string // Type may be ""
	Addr, Size uint64
	Elem       int // bytes of an element
	Signed     bool
	Float      bool
}

// Launch is one kernel launch, ready to run: Check (limits.go) compares it with the device's limits.
type Launch struct {
	event.Launch
	Program       *loader.Program
	Places        *places.Table
	Func          *isa.Func
	DynamicShared int    // bytes
	Params        []byte // the kernel's parameter block, laid out as Func.Sig says
	Cooperative   bool
	// NonPortableCluster allows clusters of more than 8 blocks.
	NonPortableCluster bool
	Arguments          []Argument    // what the program has names for; for who observes launches
	Caller             []event.Frame // the call stack of the host, innermost first, for who observes launches

	Seed     uint64
	Schedule Schedule
	MaxSteps uint64 // warp instructions; 0: no bound

	Needs   event.Needs // what Sink asks for
	Sink    event.Sink  // nil: no events
	OnFault func(Fault) // nil: faults are dropped
	Printf  func(text []byte)
	// Progress, when not nil, is called now and then from the running goroutine.
	Progress func(Stats)
	// Queue takes what threads put into streams of the device; nil: they cannot do that.
	Queue DeviceQueue
	// HostWrites says that the host changes memory while the launch runs: loops that wait for that are no deadlock.
	HostWrites bool

	SpinFirst uint64 // in place of the constant, for tests; 0: none
	Together  bool   // for tests: all blocks of the window start before one of them has a turn
}

// Schedule is a policy for choosing who runs next.
type Schedule uint8

// The schedules.
const (
	Fair      Schedule = iota // round robin with slices; the seed varies order and slice lengths (seed 0: round robin, the warps of a block going on together from barrier to barrier; see GivesWay for cooperative launches)
	Lockstep                  // a warp runs as on hardware before Volta: the lanes of a split wait for each other at its reconvergence point
	PCT                       // random priorities with change points (Burckhardt et al.), by seed
	Contended                 // Fair, but by seed 0 a warp gives way before half of its first strong accesses, drawn at random, and upper lanes execute atomic operations before lower ones (see LaneOrder)
)

// Stats count what a launch did.
type Stats struct {
	Lanes   uint64 // lane-instructions
	Warps   uint64 // warp-instructions
	Blocks  uint64 // finished blocks
	Threads uint64 // threads started
	Elapsed time.Duration
	// Fault is the kind of the first fault after which a device would be lost (an illegal or misaligned address, a
	// trap, a failed assertion, a stack overflow); "" when there was none. The API turns it into its sticky error.
	Fault FaultKind
}

// FaultKind names what a kernel did wrong besides racing. The string is the finding kind's stable id.
type FaultKind string

// The faults.
const (
	OutOfBounds       FaultKind = "out-of-bounds"
	OutOfVariable     FaultKind = "out-of-variable" // an index leads from one variable in shared memory into another
	Misaligned        FaultKind = "misaligned"
	UseAfterFree      FaultKind = "use-after-free"
	NoPeerAccess      FaultKind = "no-peer-access"
	ReadOnly          FaultKind = "write-to-constant"
	BarrierDivergence FaultKind = "barrier-divergence"
	MemberMask        FaultKind = "member-mask" // a warp-level instruction whose mask does not name the lane
	WarpDivergence    FaultKind = "warp-divergence"
	UndefinedShuffle  FaultKind = "undefined-shuffle" // a lane reads one that takes no part in the shuffle
	MbarrierEarly     FaultKind = "mbarrier-not-initialised"
	MbarrierEnded     FaultKind = "mbarrier-invalidated" // a use after mbarrier.inval
	MbarrierMisuse    FaultKind = "mbarrier-misuse"
	TensorMisuse      FaultKind = "tensor-map"
	TensorMemory      FaultKind = "tensor-memory"
	TensorLeak        FaultKind = "tensor-memory-not-freed"
	CopyOutlives      FaultKind = "copy-outlives-block"      // a block ends while a bulk copy may access its shared memory
	WgmmaNoFence      FaultKind = "wgmma-no-fence"           // wgmma.mma_async with no wgmma.fence before, or after a write of its registers
	WgmmaTouched      FaultKind = "accumulators-not-awaited" // registers of a wgmma.mma_async or tcgen05.ld that is in flight
	PeerGone          FaultKind = "peer-gone"                // an access to the shared memory of a block that has ended
	PeerEarly         FaultKind = "peer-not-started"         // an access to the shared memory of a block that may not have started
	ClusterMisuse     FaultKind = "cluster-misuse"           // barrier.cluster.arrive and wait that do not alternate
	TextureMisuse     FaultKind = "texture-object"
	Deadlock          FaultKind = "deadlock"
	StepLimit         FaultKind = "step-limit"
	Assertion         FaultKind = "assertion"
	TrapHit           FaultKind = "trap"
	BadCall           FaultKind = "bad-call"
	StackOverflow     FaultKind = "stack-overflow"
	DeviceHeap        FaultKind = "device-heap"    // device-side malloc/free misuse
	DeviceRefused     FaultKind = "launch-refused" // by a thread, of a kernel
)

// Fault is one wrong thing a kernel did. Faults of one kind at one place are told once a launch, with Count.
type Fault struct {
	Kind    FaultKind
	Launch  event.Launch
	Message string // one sentence with the facts
	Warning bool   // not wrong by itself: see docs/findings.md
	Count   int
	Stands  []Stand // the thread(s) concerned; for a deadlock one for each group of threads standing at one place
}

// Stand says where threads are and what they do there.
type Stand struct {
	Place   uint32
	Block   event.Dim3
	Thread  event.Dim3
	Threads int    // how many threads are here in this way; 1 for an access
	Doing   string // "waits at barrier 0", "reads", "exited", ...
	// For accesses:
	Flags   event.Flags
	Space   event.Space
	Address uint64 // device address, or offset in the window of Shared and Local
	Size    int
}
