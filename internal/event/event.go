// Package event is the interface between producers of events (the engines, a trace reader) and consumers (the
// detectors, a trace writer). Producers and consumers do not know each other, and this package knows neither.
//
// An Event is one warp-level or host-level operation. The order of events in the stream is the order in which the
// operations took effect: a load observes, byte by byte, the latest store or atomic before it in the stream.
package event

import "math/bits"

// Kind is the kind of an Event. The comment of each kind names the fields that are used. In device events Launch, Warp,
// Mask and Place are always used.
type Kind uint8

// Device events.
const (
	None        Kind = iota
	Load             // Addr/Stride or Batch.Addrs, Size, Space, Order, Scope
	Store            // as Load, and Batch.Values with FlagValues
	Atomic           // as Store, and RMW; FlagRead alone is a failed compare-and-swap, FlagWrite alone an exchange whose result is not used; red has both
	Fence            // Order (AcqRel or SC), Scope
	Arrive           // lanes of Mask arrived at CTA barrier Barrier, which is for Aux threads; with FlagWait they wait for it
	BarrierDone      // CTA barrier Barrier of Warp's block completed: all arrivals since its last completion are ordered before all waiters
	WarpSync         // bar.warp.sync completed for the lanes of Mask, which are ordered with each other
	Exit             // lanes of Mask exited
	KernelBegin      // Side indexes Batch.Launches
	KernelEnd        // Launch only
	// Branch, Else and Reconverge are produced where warps run in lockstep (NeedBranches). Elsewhere only Reconverge is
	// produced (NeedReconverge): for all live lanes of a warp, in launches in which it can separate accesses on two
	// arms of a branch.
	Branch     // the warp split: Mask is the lanes that go first, Aux the others
	Else       // the lanes that went first have reached their end; Mask, the lanes that waited, continue
	Reconverge // Mask is all lanes of the split again

	// Asynchronous copies. A Load and a Store with FlagAsync are the halves of copies that the lanes issue. They take
	// effect later, at the latest at the wait. Each lane has its own groups of copies, which complete in order.
	CopyCommit // the lanes put their copies since their last commit into a group
	CopyArrive // the mbarrier at Addr tracks the lanes' copies: they are complete when its phase completes
	CopyWait   // the lanes wait until at most Aux of their groups, the last ones, are not complete

	MbarrierDone // the phase of the mbarrier at Addr in shared memory completed

	// Bulk copies by single lanes, through the async proxy. Their groups are separate from those of copies.

	// Bulk is a half of a bulk copy that the lane issues, FlagRead or FlagWrite: Aux bytes from Addr on, in Space.
	// Barrier is 1 if an mbarrier tracks the copy, and 2 if an mbarrier tracks it and it is through the generic proxy
	// (st.async). Stride has the number of the copy within the block in its low 32 bits, and the address of the
	// mbarrier above them. With Order and Scope it is an atomic reduction of elements of Size bytes.
	Bulk
	BulkCommit // the lanes put their bulk copies since their last commit into a group
	BulkWait   // the lanes wait until at most Aux of their groups, the last ones, are not complete; with FlagRead, until at most Aux groups have not read their sources
	BulkDone   // the bulk copy Stride of the block, issued by the lane, is complete and has signalled the mbarrier at Addr
	// Reads of shared memory by matrix operations of warpgroups (wgmma), through the async proxy. The lanes of a warp
	// issue an operation together. A warpgroup is four consecutive warps of a block, beginning with a multiple of four.
	// The groups are separate from those of copies.
	Wgmma       // a read by an operation: Aux bytes from Addr on. Stride is the number of the operation, counted with bulk copies
	WgmmaCommit // the lanes put their operations since their last commit into a group
	WgmmaWait   // the lanes wait until at most Aux groups of the warpgroup, the last ones, are not complete
	// Operations of the tensor cores (tcgen05) on shared memory, through the async proxy, and on tensor memory.
	// Operations of one lane complete in order; they are known to be complete when the mbarrier of a later CoreCommit
	// says so. Operations of a warp (Mask is all its lanes) are known to be complete when the warp has waited.
	Core       // a half of an operation, FlagRead or FlagWrite: Aux bytes from Addr on, in shared memory or, from TensorBase on, in tensor memory. Stride is the number of the operation, counted with bulk copies
	CoreCommit // the mbarrier at Addr is to be signalled when the lane's operations so far are complete; Stride counts the lane's commits, from 0
	CoreDone   // the operations that the lane issued before its commit Stride are complete, and the mbarrier at Addr has been signalled
	CoreWait   // the warp waits for its operations that read tensor memory (FlagRead) or write it (FlagWrite)
	ProxyFence // orders earlier accesses in Space (NoSpace: in all spaces) that the lanes made or know of before later accesses through the async proxy
	InitFence  // the lanes release what they have stored by mbarrier.init (StoreInits), and nothing else

	MapRead  // a tensor copy reads its tensor map through the tensormap proxy: Aux bytes of global memory from Addr on
	MapFence // orders writes that the lane knows of to the tensor map at Addr, in global memory, before later MapReads

	// The barrier of a cluster. A phase completes when all live threads of the cluster have arrived.
	ClusterArrive // the lanes arrive; Order says whether they release
	ClusterWait   // the lanes continue after the phase at which they arrived, and acquire what others released by arriving

	// Programmatic dependent launch.
	GridLaunch // the next launch of the stream, if it is Early, may begin before this one has ended
	GridWait   // the lanes continue when all earlier launches of the stream have ended

	// DeviceOp: a thread, the single lane of Mask, puts an operation into a stream of the device: a launch of a kernel
	// by a kernel (CUDA programming guide, "CUDA Dynamic Parallelism"). Aux numbers the operations of its launch, from
	// 1. What the thread knows at that time is published as by a HostSignal of DeviceToken.
	DeviceOp

	// Host events: Side indexes Batch.Hosts.
	Host

	// Undefined: what the lanes do at Place depends on a local variable, or a register, that nothing has written. Aux
	// is 0 for a branch, 1 for an address, and 2 for a value stored where others see it. Side is the place where the
	// variable was loaded, 0 for a register. It is produced only for NeedLocal. If Mask is 0, the engine does not track
	// local variables in this launch.
	Undefined

	// Again represents the accesses of a Series, Batch.Series[Side], by the warp. It is produced only for NeedAgain.
	Again

	kinds
)

// Order is the memory order of an access or fence (PTX ISA, "Memory Consistency Model", Operation Types).
type Order uint8

// The orders.
const (
	Weak Order = iota
	Volatile
	Relaxed
	Acquire
	Release
	AcqRel
	SC
)

// Scope is the set of threads that an operation is strong for.
type Scope uint8

// The scopes, from the smallest to the largest. NoScope is the scope of weak operations.
const (
	NoScope Scope = iota
	ScopeCTA
	ScopeCluster
	ScopeGPU
	ScopeSys
)

// Space is a PTX state space, after generic addresses have been resolved.
type Space uint8

// The state spaces.
const (
	NoSpace Space = iota
	Generic
	Global
	Shared
	Local
	Const
	Param
	Tensor // only in reports: see TensorBase
)

// RMW distinguishes the read-modify-writes that locks are made of.
type RMW uint8

// The read-modify-writes.
const (
	OtherRMW RMW = iota
	CompareAndSwap
	Exchange
)

// Flags qualify an Event.
type Flags uint16

// The flags.
const (
	FlagRead        Flags = 1 << iota // the operation reads memory
	FlagWrite                         // the operation writes memory
	FlagScattered                     // addresses are in Batch.Addrs[Side:], one for each lane of Mask, lowest lane first
	FlagValues                        // written values are in Batch.Values[Val:], ValueWords(Size) words for each lane of Mask
	FlagWait                          // Arrive: the lanes wait
	FlagVector                        // Size covers several elements of Aux bytes each
	FlagAligned                       // Arrive: an .aligned barrier without thread count (__syncthreads)
	FlagRed                           // Atomic: its result is not used (red), so that its read forms no acquire pattern
	FlagOld                           // with FlagValues: the previous values follow the written ones, see OldOf
	FlagRows                          // the lanes are in rows, see Event; never with FlagScattered
	FlagAsync                         // Load, Store: a half of asynchronous copies; values are those at the issue
	FlagNonCoherent                   // Load: ld.global.nc, for memory that is not written while the kernel runs
	FlagTexture                       // with FlagNonCoherent: a texture fetch or a surface read, of memory that the kernel may write later
	// Load, Store: the operation that completes a phase of an mbarrier, by a lane that need not acquire or release
	// anything. What the mbarrier's first word carries is passed to the second. Barrier says what the lane does:
	// ApartReleases and so on.
	FlagApart
	FlagCopied // Load: the loaded value is only stored again

	allFlags // larger than all flags
)

// What a lane does when it completes a phase of an mbarrier: Event.Barrier with FlagApart.
const (
	ApartReleases uint8 = iota // it arrives, and releases
	ApartArrives               // it arrives, or counts bytes, without releasing
	ApartTests                 // it tests the barrier after a copy has completed
)

// StoreInits is Event.Barrier of a Store without FlagApart that is an mbarrier.init.
const StoreInits uint8 = 1

// How the completion of a tensor core operation becomes known: Event.Barrier of Core.
const (
	CoreCommits   uint8 = iota // through a commit of its lane
	CoreLoads                  // through a wait of its warp for loads of tensor memory
	CoreStores                 // through a wait of its warp for stores to tensor memory
	CoreFrees                  // complete: tensor memory is freed, and must not be in use
	CoreAllocates              // complete: the address of allocated tensor memory has been written to shared memory
)

// Event is one operation of a warp (the lanes of Mask) or of the host. It has 56 bytes and no pointers.
//
// Memory events: lane l of Mask accesses Size bytes at Addr + (l - lowest lane of Mask) * Stride, unless FlagScattered
// or FlagRows is set. With FlagRows, lane l is in column l%r of row l/r, where r = 1<<RowShift. It accesses Addr +
// c*Stride + n*RowStride, where c and n are the differences in columns and rows (either may be negative) from the
// lowest lane of Mask. That is for blocks whose rows are shorter than a warp.
//
// Global addresses are device addresses. Shared addresses are offsets in the shared-memory window of the block. An
// access to the shared memory of another block of the cluster has one more than the rank of that block in the bits of
// its addresses from PeerShift on.
type Event struct {
	Addr    uint64
	Stride  int64
	Mask    uint32
	Launch  uint32
	Warp    uint32 // block * Launch.WarpsPerBlock + warp within the block
	Place   uint32 // see Places; 0 is unknown
	Side    uint32 // FlagScattered: index in Batch.Addrs; FlagRows: see RowStride; host and launch events: index in their tables
	Val     uint32
	Aux     uint32 // FlagVector: size of an element in bytes; Arrive: number of threads that the barrier is for, 0: all; Branch: the other lanes
	Kind    Kind
	Order   Order
	Scope   Scope
	Space   Space
	Size    uint8 // bytes for each lane, vectors included
	Barrier uint8
	RMW     RMW // Atomic
	// RowShift is, with FlagRows, the logarithm of the number of lanes in a row: 1 to 4.
	RowShift uint8
	Flags    Flags
}

// Affine reports whether the addresses of a memory event have a constant stride from lane to lane.
func (e *Event) Affine() bool { return e.Flags&(FlagScattered|FlagRows) == 0 }

// RowStride is the distance in bytes from one row to the next in an event with FlagRows.
func (e *Event) RowStride() int64 { return int64(int32(e.Side)) }

// InRows gives an event rows of 1<<shift lanes. If the stride is too large for an event, it does nothing and returns
// false.
func (e *Event) InRows(shift uint8, stride, rowStride int64) bool {
	if int64(int32(rowStride)) != rowStride {
		return false
	}
	e.Flags |= FlagRows
	e.RowShift, e.Stride, e.Side = shift, stride, uint32(int32(rowStride))
	return true
}

// rowAddr is AddrOf for an event with FlagRows.
func (e *Event) rowAddr(lane int) uint64 {
	first := bits.TrailingZeros32(e.Mask)
	rows := lane>>e.RowShift - first>>e.RowShift
	columns := lane - first - rows<<e.RowShift
	return e.Addr + uint64(int64(columns)*e.Stride+int64(rows)*e.RowStride())
}

// ValueWords returns the number of 8-byte words that hold a value of size bytes.
func ValueWords(size uint8) int { return (int(size) + 7) / 8 }

// Batch is consecutive events with their side tables. A consumer must not keep or change it.
type Batch struct {
	Events   []Event
	Addrs    []uint64
	Values   []uint64
	Launches []Launch
	Hosts    []HostOp
	Series   []*Series
}

// Reset empties the batch but keeps its memory.
func (b *Batch) Reset() {
	b.Events, b.Addrs, b.Values = b.Events[:0], b.Addrs[:0], b.Values[:0]
	b.Launches, b.Hosts, b.Series = b.Launches[:0], b.Hosts[:0], b.Series[:0]
}

// Extent is the lengths of a batch and its side tables.
type Extent struct{ Events, Addrs, Values, Launches, Hosts, Series int }

// Extent returns the lengths of the batch.
func (b *Batch) Extent() Extent {
	return Extent{len(b.Events), len(b.Addrs), len(b.Values), len(b.Launches), len(b.Hosts), len(b.Series)}
}

// Append adds the events and side tables of another batch. The indices in the events remain relative to their own
// tables: Between recovers the appended batch.
func (b *Batch) Append(o *Batch) {
	b.Events, b.Addrs, b.Values = append(b.Events, o.Events...), append(b.Addrs, o.Addrs...), append(b.Values, o.Values...)
	b.Launches, b.Hosts, b.Series = append(b.Launches, o.Launches...), append(b.Hosts, o.Hosts...), append(b.Series, o.Series...)
}

// Between returns the batch that was appended between two extents.
func (b *Batch) Between(from, to Extent) Batch {
	return Batch{b.Events[from.Events:to.Events:to.Events], b.Addrs[from.Addrs:to.Addrs:to.Addrs], b.Values[from.Values:to.Values:to.Values],
		b.Launches[from.Launches:to.Launches:to.Launches], b.Hosts[from.Hosts:to.Hosts:to.Hosts],
		b.Series[from.Series:to.Series:to.Series]}
}

// CutEnd divides a batch that ends with the end of a launch before the final exits: at that point consumers hold most
// of their state for the launch. ok is false for other batches. The parts share the memory of b.
func (b *Batch) CutEnd() (before, end Batch, ok bool) {
	last := len(b.Events) - 1
	if last < 0 || b.Events[last].Kind != KernelEnd {
		return Batch{}, Batch{}, false
	}
	for last > 0 && b.Events[last-1].Kind == Exit {
		last--
	}
	before, end = *b, *b
	before.Events, end.Events = b.Events[:last], b.Events[last:]
	return before, end, true
}

// AddrOf returns the address that a lane accesses. The lane must be in e.Mask.
func (b *Batch) AddrOf(e *Event, lane int) uint64 {
	switch {
	case e.Flags&FlagScattered != 0:
		return b.Addrs[int(e.Side)+rank(e.Mask, lane)]
	case e.Flags&FlagRows != 0:
		return e.rowAddr(lane)
	}
	return e.Addr + uint64(int64(lane-bits.TrailingZeros32(e.Mask))*e.Stride)
}

// Addresses returns the addresses of the lanes of e.Mask, lowest lane first. If the batch has them, the result is part
// of the batch, and must not be changed; otherwise it is part of to.
func (b *Batch) Addresses(e *Event, to *[32]uint64) []uint64 {
	n := bits.OnesCount32(e.Mask)
	if e.Flags&FlagScattered != 0 {
		return b.Addrs[e.Side:][:n]
	}
	i := 0
	for m := e.Mask; m != 0; m &= m - 1 {
		to[i&31] = b.AddrOf(e, bits.TrailingZeros32(m))
		i++
	}
	return to[:n]
}

// ValueOf returns the words that a lane writes, nil without FlagValues. The lane must be in e.Mask. The bytes of the
// value are little-endian; bytes beyond Size are zero.
func (b *Batch) ValueOf(e *Event, lane int) []uint64 {
	if e.Flags&FlagValues == 0 {
		return nil
	}
	n := ValueWords(e.Size)
	at := int(e.Val) + rank(e.Mask, lane)*n
	return b.Values[at : at+n]
}

// OldOf returns the words in memory just before a lane writes, where the lanes of an instruction write one after the
// other, lowest first. It returns nil without FlagOld. The lane must be in e.Mask. For an access of less than four
// bytes the result is the aligned four bytes around it; those outside its allocation are zero.
//
// Either all writes of a launch to global and shared memory have FlagOld, or none has. They may have it only if nothing
// else, neither the host nor another launch, writes the memory while the launch runs. A consumer that knows the last
// write of a location then need not keep what it wrote: the next write tells.
func (b *Batch) OldOf(e *Event, lane int) []uint64 {
	if e.Flags&FlagOld == 0 {
		return nil
	}
	n := ValueWords(e.Size)
	at := int(e.Val) + (bits.OnesCount32(e.Mask)+rank(e.Mask, lane))*n
	return b.Values[at : at+n]
}

// rank is the number of lanes of mask below lane.
func rank(mask uint32, lane int) int {
	return bits.OnesCount32(mask & (1<<uint(lane) - 1))
}

// Dim3 is a grid or block shape, or a coordinate in it.
type Dim3 struct{ X, Y, Z uint32 }

// Count returns the number of points in the shape.
func (d Dim3) Count() uint64 { return uint64(d.X) * uint64(d.Y) * uint64(d.Z) }

// At returns the coordinate with linear index i, x fastest.
func (d Dim3) At(i uint64) Dim3 {
	if i < uint64(d.X) { // most shapes are one-dimensional, and divisions are slow
		return Dim3{X: uint32(i)}
	}
	row := i / uint64(d.X)
	z := row / uint64(d.Y)
	return Dim3{uint32(i - row*uint64(d.X)), uint32(row - z*uint64(d.Y)), uint32(z)}
}

// Language is the language of a kernel's source, as far as judging needs it.
type Language uint8

// The languages.
const (
	Threads Language = iota // code for each thread: CUDA, Numba, PTX
	Triton                  // code for a whole block, which the compiler distributes over threads
	Gluon                   // as Triton, but the author manages shared memory
)

// Launch describes one kernel launch.
type Launch struct {
	ID     uint32 // Number, with Rerun in the bits from RerunShift on
	Agent  uint32 // the stream it runs on
	Kernel string // linker name
	Grid   Dim3
	Block  Dim3
	// Cluster is the shape of clusters in blocks; zero if none was given: each block is a cluster.
	Cluster Dim3
	// Synchronises says that the kernel's code contains atomic operations, fences, or accesses that acquire or release,
	// executed or not. If it is false, no event of the launch is one of these.
	Synchronises bool
	// Swaps says that the code contains a compare-and-swap. If it is false, no event of the launch is one.
	Swaps bool
	// NonCoherent says that the code contains ld.global.nc, texture fetches or surface reads. If it is false, no event
	// of the launch has FlagNonCoherent.
	NonCoherent bool
	// Bulk says that the code contains bulk copies. If it is false, no event of the launch belongs to one.
	Bulk bool
	// Early says that the launch may begin before the previous launch on its stream has ended, if that one executed
	// GridLaunch. It was launched with programmatic stream serialization, and the stream has no other operation between
	// the two.
	Early    bool
	Language Language
	// Parent is the ID of the launch of which a thread has launched this one; 0: the host launched it. The launch ends
	// before what follows the parent in its stream.
	Parent uint32
	// Device is one more than the number of the device that the launch runs on, if the program sees several devices;
	// otherwise it is 0. It is either zero for all launches of a run or for none.
	Device uint8
}

// RerunShift is the first bit of Rerun in Launch.ID.
const RerunShift = 28

// DeviceToken is the token under which operation n (DeviceOp) of the threads of a launch is published. It differs from
// all tokens of HostSignals.
func DeviceToken(launch, n uint32) uint64 { return 1<<61 | uint64(launch)<<32 | uint64(n) }

// Number is the number of the launch in the order of launches, from 1.
func (l *Launch) Number() uint32 { return l.ID & (1<<RerunShift - 1) }

// Rerun is 0 for the program's own launch. Right after that has ended, it may be executed again under other schedules;
// Rerun then counts these executions, from 1.
func (l *Launch) Rerun() int { return int(l.ID >> RerunShift) }

// MaxDevices is the greatest number of devices that a program can see.
const MaxDevices = 64

// PeerShift is the first bit of the block rank in an address of shared memory. If the memory belongs to another block
// than the accessing one, the bits from there on hold one more than the rank of that block in the cluster. The shared
// memory of a block is smaller than 1<<PeerShift.
const PeerShift = 24

// TensorBase is the address, within the addresses of shared memory, at which the tensor memory of a block begins.
// TensorWord returns the address of a word of a lane and a column.
const TensorBase = 1 << 18

// The lanes and columns of tensor memory.
const (
	TensorLanes   = 128
	TensorColumns = 512
	tensorGroup   = 16 // lanes that are stored together
)

// TensorWord returns the address of a word of tensor memory. The words of 16 lanes are stored together, column by
// column.
func TensorWord(lane, column int) uint64 {
	return TensorBase + 4*uint64(lane%tensorGroup+tensorGroup*(column+TensorColumns*(lane/tensorGroup)))
}

// TensorCell returns the lane and the column of an address of tensor memory.
func TensorCell(addr uint64) (lane, column int) {
	word := int(addr-TensorBase) / 4
	return word/tensorGroup/TensorColumns*tensorGroup + word%tensorGroup, word / tensorGroup % TensorColumns
}

// PrivateSpace returns the space of a generic address in local memory, or in the shared memory of the block that uses
// it; NoSpace for other numbers.
func PrivateSpace(addr uint64) Space {
	switch addr >> PeerShift {
	case 1 << (56 - PeerShift):
		return Shared
	case 2 << (56 - PeerShift):
		return Local
	}
	return NoSpace
}

// InTensorMemory reports whether an address of shared memory is in the tensor memory of a block.
func InTensorMemory(addr uint64) bool { return addr&(1<<PeerShift-1) >= TensorBase }

// ClusterShape returns the shape of a cluster in blocks.
func (l *Launch) ClusterShape() Dim3 {
	if l.Cluster.Count() == 0 {
		return Dim3{1, 1, 1}
	}
	return l.Cluster
}

// Clusters returns the number of clusters along each axis.
func (l *Launch) Clusters() Dim3 {
	s := l.ClusterShape()
	return Dim3{l.Grid.X / s.X, l.Grid.Y / s.Y, l.Grid.Z / s.Z}
}

// ClusterOf returns the number of the cluster of a block, and the rank of the block in it.
func (l *Launch) ClusterOf(block uint32) (cluster, rank uint32) {
	s, c, at := l.ClusterShape(), l.Clusters(), l.Grid.At(uint64(block))
	cluster = at.X/s.X + c.X*(at.Y/s.Y+c.Y*(at.Z/s.Z))
	return cluster, at.X%s.X + s.X*(at.Y%s.Y+s.Y*(at.Z%s.Z))
}

// SameCluster reports whether two blocks are in one cluster.
func (l *Launch) SameCluster(a, b uint32) bool {
	x, _ := l.ClusterOf(a)
	y, _ := l.ClusterOf(b)
	return x == y
}

// BlockIn returns the number of the block with a rank in a cluster.
func (l *Launch) BlockIn(cluster, rank uint32) uint32 {
	s := l.ClusterShape()
	if s.Count() == 1 {
		return cluster
	}
	at, in := l.Clusters().At(uint64(cluster)), s.At(uint64(rank))
	return at.X*s.X + in.X + l.Grid.X*(at.Y*s.Y+in.Y+l.Grid.Y*(at.Z*s.Z+in.Z))
}

// WarpsPerBlock returns the number of warps in a block. The last one may be partly filled.
func (l *Launch) WarpsPerBlock() uint32 { return uint32((l.Block.Count() + 31) / 32) }

// BlockOf returns the coordinate of the block that a warp belongs to.
func (l *Launch) BlockOf(warp uint32) Dim3 { return l.Grid.At(uint64(warp / l.WarpsPerBlock())) }

// ThreadOf returns the coordinate, within its block, of a lane of a warp.
func (l *Launch) ThreadOf(warp uint32, lane int) Dim3 {
	return l.Block.At(uint64(warp%l.WarpsPerBlock())*32 + uint64(lane))
}

// HostKind is the kind of a HostOp.
type HostKind uint8

// The host operations. Agents are host threads and streams. Each performs its operations in order. What an agent did
// before a HostSignal is ordered before what another agent does after the HostWait for the same token. These two
// express all of CUDA's host-side order: stream order, events, synchronising calls, and the legacy default stream.
const (
	HostSignal HostKind = iota // Agent publishes what it has done under Token, replacing an earlier signal
	HostWait                   // Agent continues after the last HostSignal of Token
	HostRead                   // Agent reads Size bytes at Addr (a copy's source, a host access)
	HostWrite                  // Agent writes Size bytes at Addr (a copy's destination, memset, a host access)
	HostAlloc                  // Size bytes at Addr became an allocation
	HostFree                   // the allocation at Addr, Size bytes, ended
)

// HostOp is one operation of the host side.
type HostOp struct {
	Kind  HostKind
	Agent uint32
	Token uint64
	Addr  uint64
	Size  uint64
	Name  string // the call, for messages: "cudaMemcpyAsync (stream 2)", followed by HostPlace
	// Staged marks a write that, according to the manual, may still be in progress when its call has returned, although
	// in practice it is not: a synchronous copy from pageable memory.
	Staged bool
	// Assumed marks a HostSignal and a HostWait that order two host threads only under an assumption: that invisible
	// operations of these threads, such as atomic operations, happened in the order of their calls. Such operations are
	// in the stream as if the host were one thread.
	Assumed bool
}

// Needs is the set of events that a consumer needs. Other events need not be produced.
type Needs uint16

// The needs.
const (
	NeedGlobal     Needs = 1 << iota // Load, Store, Atomic, Bulk in Global
	NeedShared                       // Load, Store, Atomic, Bulk in Shared
	NeedSync                         // Fence, Arrive, BarrierDone, WarpSync, Exit, and the events of copies that are not accesses
	NeedValues                       // FlagValues on stores and atomics
	NeedOld                          // FlagOld too, if values are produced
	NeedBranches                     // Branch, Else, Reconverge
	NeedReconverge                   // Reconverge of all live lanes of a warp
	NeedHost                         // Host
	NeedLaunch                       // KernelBegin, KernelEnd
	NeedAgain                        // Again in place of loads and stores of shared memory; a consumer without it must be given Batch.Plain
	NeedLocal                        // Undefined
	NeedPeers                        // accesses to the shared memory of other blocks of the cluster, in addition to NeedShared; a consumer without it must not be given any
)

// Sink receives batches in order. Calls are not concurrent.
type Sink interface {
	Events(b *Batch)
}

// Taker is a sink that can keep a batch. Take is Events for a batch whose memory belongs to the producer. The taker may
// keep that memory and leave the memory of another batch in its place. The batch is then consumed while the producer
// continues.
type Taker interface {
	Sink
	Take(b *Batch)
}

// Hand passes a batch that belongs to the producer to a sink, and empties it.
func Hand(s Sink, b *Batch) {
	if len(b.Events) == 0 {
		return
	}
	if t, ok := s.(Taker); ok {
		t.Take(b)
	} else {
		s.Events(b)
	}
	b.Reset()
}

// Frame is one level of a call stack, for messages.
type Frame struct {
	Function string // linker name
	File     string // source file as the compiler wrote it; "" when unknown
	Line     int    // from 1; 0 when unknown
	Column   int
	PTXFile  string
	PTXLine  int
	Inst     string // the PTX instruction
	// Graph is nonzero if this frame, and those after it, belong to the launch of a graph, and the frames before it to
	// the call that added the node to the graph. It is then the number of that launch.
	Graph uint32
}

// Places describes a Place: an instruction, and the calls that led to it.
type Places interface {
	// Frames returns the instruction and the calls that led to it, innermost first, including inlined calls.
	Frames(place uint32) []Frame
	// Arms returns the arms that the place lies on: of branches in its function and in its callers.
	Arms(place uint32) []Arm
	// Updates says that the place is a store of a value computed from a value that the thread loaded from the same
	// address, such that executing it twice differs from executing it once: x++. load is the place of the load.
	Updates(place uint32) (load uint32, ok bool)
	// Discards says that the place is an atomic operation whose result is not used.
	Discards(place uint32) bool
	// Dereferences says that the place loads an address that the thread uses to access memory.
	Dereferences(place uint32) bool
}

// Arm says which arms of a branch a place lies on: the arms by which a lane can get from the branch to the place before
// it reconverges with lanes that took another arm.
type Arm struct {
	Branch uint32 // the place of the branch
	Taken  uint32 // a set of arms: see ArmBit
}

// ArmBit returns the bit of an arm in Arm.Taken. Arms beyond the 30th, and unknown arms, share two bits: they count as
// different arms.
func ArmBit(arm int) uint32 {
	if 0 <= arm && arm < 30 {
		return 1 << arm
	}
	return 3 << 30
}

// Valid reports whether the fields of an event are consistent, as far as that does not depend on other events or on the
// launch. It is false for events that represent others (Again).
func (e *Event) Valid() bool {
	if e.Kind <= None || e.Kind >= Again || e.Order > SC || e.Scope > ScopeSys || e.Space > Param || e.RMW > Exchange ||
		e.Barrier > 15 || e.Flags >= allFlags {
		return false
	}
	switch e.Kind {
	case Load, Store, Atomic:
		reads, writes := e.Flags&FlagRead != 0, e.Flags&FlagWrite != 0
		switch {
		case e.Mask == 0, e.Size == 0, e.Size > 32, e.Size&(e.Size-1) != 0, e.Space == NoSpace, e.Space == Generic,
			e.Kind == Load && (!reads || writes), e.Kind == Store && (reads || !writes), e.Kind == Atomic && !reads && !writes,
			e.Flags&FlagOld != 0 && e.Flags&FlagValues == 0,
			e.Flags&FlagRows != 0 && (e.Flags&FlagScattered != 0 || e.RowShift < 1 || e.RowShift > 4):
			return false
		}
	case Bulk:
		return bits.OnesCount32(e.Mask) == 1 && e.Aux != 0 && (e.Space == Global || e.Space == Shared) && (e.Flags == FlagRead || e.Flags == FlagWrite)
	case MapRead, MapFence:
		return bits.OnesCount32(e.Mask) == 1 && e.Space == Global && (e.Aux != 0) == (e.Kind == MapRead)
	case Core:
		return e.Mask != 0 && e.Aux != 0 && e.Space == Shared && (e.Flags == FlagRead || e.Flags == FlagWrite)
	case CoreWait:
		return e.Mask != 0 && (e.Flags == FlagRead || e.Flags == FlagWrite)
	case CoreCommit, CoreDone:
		return bits.OnesCount32(e.Mask) == 1
	case Wgmma:
		return e.Mask != 0 && e.Aux != 0 && e.Space == Shared && e.Flags == FlagRead
	case DeviceOp:
		return bits.OnesCount32(e.Mask) == 1 && e.Aux != 0
	case Fence, InitFence:
		return e.Mask != 0 && e.Scope != NoScope && e.Order >= Acquire
	case Arrive, WarpSync, Exit, Branch, Else, Reconverge, CopyCommit, CopyArrive, CopyWait, MbarrierDone, BulkCommit, BulkWait, BulkDone, WgmmaCommit, WgmmaWait, ProxyFence, ClusterArrive, ClusterWait, GridLaunch, GridWait:
		return e.Mask != 0
	}
	return true
}
