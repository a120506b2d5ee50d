// Package engine executes kernels: grids, blocks, warps and lanes over the memory of a device. Two engines implement
// one contract. The reference engine in this package executes one lane at a time and is simple. Package warp executes
// optimised kernels 32 lanes at a time. They share memory, barriers, schedules, faults and events (see Machine for the
// rest). The tests of package warp run both and compare them.
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
	// Run executes one launch to its end. It reports faults to l.OnFault. The error is nil if the grid ran to its end,
	// with or without faults; ctx.Err() if cancelled; and ErrDeadlock, ErrHostWait, ErrDeviceWait, ErrStopped, ErrTrap
	// or ErrAssert if the launch could not finish. When the launch ends, in whatever way, each fault is reported once,
	// with its count.
	Run(ctx context.Context, l *Launch) (Stats, error)
}

// Argument is memory that the program passes to a launch under a name: a tensor.
type Argument struct {
	Name, Type string // Type may be ""
	Addr, Size uint64
	Elem       int // size of an element in bytes
	Signed     bool
	Float      bool
}

// Launch is a kernel launch that is ready to run. Check (limits.go) compares it with the device's limits.
type Launch struct {
	event.Launch
	Program       *loader.Program
	Places        *places.Table
	Func          *isa.Func
	DynamicShared int    // bytes
	Params        []byte // the kernel's parameter block, with the layout of Func.Sig
	Cooperative   bool
	// NonPortableCluster allows clusters of more than 8 blocks.
	NonPortableCluster bool
	Arguments          []Argument    // memory that the program has names for, for observers of launches
	Caller             []event.Frame // the call stack of the host, innermost frame first, for observers of launches

	Seed     uint64
	Schedule Schedule
	MaxSteps uint64 // in warp instructions; 0: no bound

	Needs   event.Needs // the needs of Sink
	Sink    event.Sink  // nil: no events
	OnFault func(Fault) // nil: faults are dropped
	Printf  func(text []byte)
	// Progress, if not nil, is called from time to time from the running goroutine.
	Progress func(Stats)
	// Queue receives what threads put into streams of the device; nil: they cannot do that.
	Queue DeviceQueue
	// HostWrites says that the host changes memory while the launch runs, so that loops that wait for such a change are
	// not a deadlock.
	HostWrites bool

	SpinFirst uint64 // overrides the constant in tests; 0: no override
	Together  bool   // for tests: all blocks of the window start before any of them has a turn
}

// Schedule is a policy for choosing what runs next.
type Schedule uint8

// The schedules.
const (
	// Fair is round robin with time slices. The seed varies the order and the lengths of slices. With seed 0 it is
	// plain round robin, in which the warps of a block run together from barrier to barrier; see GivesWay for
	// cooperative launches.
	Fair     Schedule = iota
	Lockstep          // warps run as on hardware before Volta: the lanes of a split wait for each other at its reconvergence point
	PCT               // random priorities with change points (Burckhardt et al.), from the seed
	// Contended is like Fair. With seed 0, a warp also gives way before a random half of its first strong accesses, and
	// upper lanes execute atomic operations before lower ones (see LaneOrder).
	Contended
)

// Stats counts what a launch did.
type Stats struct {
	Lanes   uint64 // lane-instructions
	Warps   uint64 // warp-instructions
	Blocks  uint64 // finished blocks
	Threads uint64 // threads started
	Elapsed time.Duration
	// Fault is the kind of the first fault after which a device would be lost (an illegal or misaligned address, a
	// trap, a failed assertion, a stack overflow); "" if there was none. The API turns it into its sticky error.
	Fault FaultKind
}

// FaultKind is the kind of an error in a kernel that is not a race. The string is the stable identifier of the finding.
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
	UndefinedShuffle  FaultKind = "undefined-shuffle" // a lane reads from a lane that takes no part in the shuffle
	MbarrierEarly     FaultKind = "mbarrier-not-initialised"
	MbarrierEnded     FaultKind = "mbarrier-invalidated" // a use after mbarrier.inval
	MbarrierMisuse    FaultKind = "mbarrier-misuse"
	TensorMisuse      FaultKind = "tensor-map"
	TensorMemory      FaultKind = "tensor-memory"
	TensorLeak        FaultKind = "tensor-memory-not-freed"
	CopyOutlives      FaultKind = "copy-outlives-block"      // a block ends while a bulk copy may still access its shared memory
	WgmmaNoFence      FaultKind = "wgmma-no-fence"           // wgmma.mma_async without a wgmma.fence before it, or after a write of its registers
	WgmmaTouched      FaultKind = "accumulators-not-awaited" // an access to registers of a wgmma.mma_async or tcgen05.ld in flight
	PeerGone          FaultKind = "peer-gone"                // an access to the shared memory of a block that has ended
	PeerEarly         FaultKind = "peer-not-started"         // an access to the shared memory of a block that may not have started
	ClusterMisuse     FaultKind = "cluster-misuse"           // barrier.cluster.arrive and wait do not alternate
	TextureMisuse     FaultKind = "texture-object"
	Deadlock          FaultKind = "deadlock"
	StepLimit         FaultKind = "step-limit"
	Assertion         FaultKind = "assertion"
	TrapHit           FaultKind = "trap"
	BadCall           FaultKind = "bad-call"
	StackOverflow     FaultKind = "stack-overflow"
	DeviceHeap        FaultKind = "device-heap"    // misuse of device-side malloc and free
	DeviceRefused     FaultKind = "launch-refused" // a kernel launch by a thread was refused
)

// Fault is an error made by a kernel. Faults of one kind at one place are reported once in a launch, with Count.
type Fault struct {
	Kind    FaultKind
	Launch  event.Launch
	Message string // one sentence with the facts
	Warning bool   // not an error by itself: see docs/findings.md
	Count   int
	Stands  []Stand // the threads concerned; for a deadlock one for each group of threads at one place
}

// Stand says where threads are and what they do there.
type Stand struct {
	Place   uint32
	Block   event.Dim3
	Thread  event.Dim3
	Threads int    // number of threads in this situation; 1 for an access
	Doing   string // "waits at barrier 0", "reads", "exited", ...
	// For accesses:
	Flags   event.Flags
	Space   event.Space
	Address uint64 // device address, or offset in the window of Shared and Local
	Size    int
}
