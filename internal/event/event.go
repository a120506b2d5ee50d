// Package event is the waist of Fencepost: what producers (the engines, a trace reader) tell consumers (the detectors,
// a trace writer). A producer knows no consumer and a consumer knows no producer; this package knows neither.
//
// An Event is one warp-level or host-level operation. The order of events in the stream is the order in which the
// operations took effect: a load observes the latest store or atomic before it in the stream that covers its bytes.
package event

import "math/bits"

// Kind says what an Event is. The comment names the fields that carry meaning; Launch, Warp, Mask and Place always do
// for device events.
type Kind uint8

// Device events.
const (
	None        Kind = iota
	Load             // Addr/Stride or Batch.Addrs, Size, Space, Order, Scope
	Store            // the same, and Batch.Values when FlagValues
	Atomic           // the same, and RMW; FlagRead alone is a failed compare-and-swap, FlagWrite alone is a pure exchange nobody reads (red is both)
	Fence            // Order (AcqRel or SC), Scope
	Arrive           // lanes of Mask arrived at CTA barrier Barrier for Aux threads; FlagWait when they will wait for it
	BarrierDone      // CTA barrier Barrier of the block of Warp completed: every arrival since its last completion is ordered before every waiter
	WarpSync         // bar.warp.sync completed for the lanes of Mask: they are ordered with each other
	Exit             // lanes of Mask finished
	KernelBegin      // Side indexes Batch.Launches
	KernelEnd        // Launch only
	// Branch, Else and Reconverge are made where warps run in lockstep (NeedBranches). Otherwise only Reconverge is, for all live
	// lanes of a warp, in launches in which it can separate accesses on two arms of a branch (NeedReconverge).
	Branch     // the warp split: Mask the lanes that go first, Aux the others
	Else       // the lanes that went first have come to their end: Mask, those that waited, go on
	Reconverge // Mask is the union again

	// Asynchronous copies. A Load and a Store with FlagAsync are the halves of copies that the lanes issue; they take effect later,
	// until the wait at the latest. Copies form groups, of each lane its own, which complete in order.
	CopyCommit // the lanes put their copies since their last commit into a group
	CopyArrive // the copies of the lanes are tracked by an mbarrier, at Addr: they are complete when its phase is
	CopyWait   // the lanes wait until at most Aux of their groups are not complete: the last ones

	MbarrierDone // the phase of the mbarrier at Addr in shared memory is complete

	// Bulk copies, of single lanes, through the async proxy. Their groups are others than those of copies.
	Bulk       // a half of a bulk copy that the lane issues, FlagRead or FlagWrite: Aux bytes from Addr on, Space; Barrier 1 where an mbarrier tracks it, 2 where that is so and it is through the generic proxy (st.async). Stride numbers the copies of a block in its low 32 bits, and above them has the address of that mbarrier; with Order and Scope an atomic reduction of elements of Size bytes
	BulkCommit // the lanes put their bulk copies since their last commit into a group
	BulkWait   // the lanes wait until at most Aux of their groups are not complete, the last ones; with FlagRead until at most so many have sources to be read
	BulkDone   // the bulk copy Stride of the block, issued by the lane, has told the mbarrier at Addr that it is complete
	// The reads of shared memory by matrix operations of warpgroups, through the async proxy. The lanes are those of a warp, which issue
	// an operation together; its four warps are one of each four of a block. Their groups are others than those of copies.
	Wgmma       // a read by an operation: Aux bytes from Addr on. Stride numbers the operations, as those of bulk copies
	WgmmaCommit // the lanes put their operations since their last commit into a group
	WgmmaWait   // the lanes wait until at most Aux groups of the warpgroup are not complete, the last ones
	// The operations of tensor cores (tcgen05) on shared memory, through the async proxy, and on tensor memory. Those of one lane are
	// complete, in order, when the mbarrier says so that a later CoreCommit names; those of a warp, Mask all its lanes, when it has waited.
	Core       // a half of an operation, FlagRead or FlagWrite: Aux bytes from Addr on, of shared or, from TensorBase on, of tensor memory. Stride numbers the operations, as those of bulk copies
	CoreCommit // the mbarrier at Addr is to be told when the operations of the lane so far are complete; Stride counts the lane's commits, from 0
	CoreDone   // the operations that the lane has issued before its commit Stride are complete, and the mbarrier at Addr has been told so
	CoreWait   // the warp waits for its operations that read tensor memory, FlagRead, or write it, FlagWrite
	ProxyFence // what the lanes have accessed in Space (NoSpace: in all), or know to have been, is ordered before accesses through the async proxy that happen after
	InitFence  // the lanes release what they have stored by mbarrier.init (StoreInits), and nothing else

	MapRead  // a tensor copy reads its tensor map through the tensormap proxy: Aux bytes of global memory from Addr on
	MapFence // what the lane knows to have been written of the tensor map at Addr, in global memory, is ordered before such reads that happen after

	// The barrier of a cluster. Its phase is complete when all threads of the cluster that have not exited have arrived.
	ClusterArrive // the lanes arrive; what they do not release (Order) is not published
	ClusterWait   // the lanes go on behind the phase at which they arrived, and acquire what others have released by it

	// Programmatic dependent launch.
	GridLaunch // the next launch of the stream, where it is Early, may begin before this one has ended
	GridWait   // the lanes go on when all launches before theirs in the stream have ended

	// DeviceOp is a thread, the one lane of Mask, that puts an operation into a stream of the device: a launch of a kernel by a kernel
	// (CUDA programming guide, "CUDA Dynamic Parallelism"). Aux numbers the operations of its launch, from 1: what the thread knows then
	// is published as by a HostSignal of DeviceToken.
	DeviceOp

	// Host events: Side indexes Batch.Hosts.
	Host

	// Undefined tells that what the lanes do at Place depends on a local variable, or a register, that nothing has written: Aux is 0 for a
	// branch, 1 for an address, 2 for what is stored where others see it. Side is the place where it was loaded, 0 for a register. For NeedLocal
	// only. With no lanes: that is not told of the launch, which an engine executes that does not know it.
	Undefined

	// Again stands for the accesses of a Series, Batch.Series[Side], by the warp: for NeedAgain only.
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

// Scope is the set of threads an operation is strong for.
type Scope uint8

// The scopes, from small to large. NoScope is that of weak operations.
const (
	NoScope Scope = iota
	ScopeCTA
	ScopeCluster
	ScopeGPU
	ScopeSys
)

// Space is a PTX state space after generic addresses have been resolved.
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
	Tensor // in reports only: see TensorBase
)

// RMW tells the read-modify-writes apart that locks are made of.
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
	FlagValues                        // written values are in Batch.Values[Val:], ValueWords(Size) words a lane of Mask
	FlagWait                          // Arrive: the lanes wait
	FlagVector                        // Size covers several elements of Aux bytes each
	FlagAligned                       // Arrive: an .aligned barrier without thread count (__syncthreads)
	FlagRed                           // Atomic: nobody receives what it reads (red), which therefore forms no acquire pattern
	FlagOld                           // with FlagValues: what was there before comes after the values, see OldOf
	FlagRows                          // the lanes are in rows, see Event; never with FlagScattered
	FlagAsync                         // Load, Store: a half of asynchronous copies; values are those at the issue
	FlagNonCoherent                   // Load: ld.global.nc, for memory that nobody writes while the kernel runs
	FlagTexture                       // with FlagNonCoherent: a texture fetch or a surface read, of what the kernel may write later
	FlagApart                         // Load, Store: what completes the phase of an mbarrier, by a lane that need not know or release anything: what its first word carries is handed to the second. Barrier is what the lane does: ApartReleases and so on
	FlagCopied                        // Load: what is loaded is only stored again

	allFlags // above all flags
)

// What a lane does by which it completes the phase of an mbarrier: Event.Barrier with FlagApart.
const (
	ApartReleases uint8 = iota // it arrives, and releases
	ApartArrives               // it arrives, or counts bytes, without releasing
	ApartTests                 // it tests the barrier when a copy is complete
)

// StoreInits is Event.Barrier of a Store without FlagApart that is an mbarrier.init.
const StoreInits uint8 = 1

// How an operation of the tensor cores is known to be complete: Event.Barrier of Core.
const (
	CoreCommits   uint8 = iota // by a commit of its lane
	CoreLoads                  // by a wait of its warp for what it has read of tensor memory
	CoreStores                 // by one for what it has written
	CoreFrees                  // it is: tensor memory is freed, which must not be in use
	CoreAllocates              // it is: where allocated tensor memory begins has been written to shared memory
)

// Event is one operation of a warp (the lanes of Mask) or of the host. 56 bytes, no pointers.
//
// Memory events: lane l of Mask accesses Size bytes at Addr + (l - lowest lane of Mask) * Stride, unless FlagScattered or
// FlagRows. With FlagRows, lane l is in column l%r of row l/r, where r = 1<<RowShift, and accesses Addr + c*Stride + n*RowStride,
// c columns and n rows (either may be negative) from the lowest lane of Mask: a warp of blocks whose rows are shorter than it.
// Global addresses are device addresses; Shared ones are offsets in the shared window of the block. An access to the shared
// memory of another block of the cluster has 1 plus the rank of that block from bit PeerShift of its addresses on.
type Event struct {
	Addr    uint64
	Stride  int64
	Mask    uint32
	Launch  uint32
	Warp    uint32 // block * Launch.WarpsPerBlock + warp within the block
	Place   uint32 // see Places; 0 is unknown
	Side    uint32 // FlagScattered: in Batch.Addrs; FlagRows: see RowStride; host and launch events: in their tables
	Val     uint32
	Aux     uint32 // FlagVector: bytes of an element; Arrive: threads that the barrier is for, 0 for all; Branch: the other lanes
	Kind    Kind
	Order   Order
	Scope   Scope
	Space   Space
	Size    uint8 // bytes a lane, vectors included
	Barrier uint8
	RMW     RMW // Atomic
	// RowShift is, with FlagRows, the logarithm of the lanes of a row: 1 to 4.
	RowShift uint8
	Flags    Flags
}

// Affine says that the addresses of a memory event differ by Stride from lane to lane.
func (e *Event) Affine() bool { return e.Flags&(FlagScattered|FlagRows) == 0 }

// RowStride is what one row of an event with FlagRows lies behind the one before, in bytes.
func (e *Event) RowStride() int64 { return int64(int32(e.Side)) }

// InRows gives an event rows of 1<<shift lanes. It says false, having done nothing, where the stride is too long for an event.
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

// ValueWords is the number of 8-byte words that hold a value of size bytes.
func ValueWords(size uint8) int { return (int(size) + 7) / 8 }

// Batch is a run of consecutive events with their side tables. A consumer must not keep it or change it.
type Batch struct {
	Events   []Event
	Addrs    []uint64
	Values   []uint64
	Launches []Launch
	Hosts    []HostOp
	Series   []*Series
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Events, b.Addrs, b.Values = b.Events[:0], b.Addrs[:0], b.Values[:0]
	b.Launches, b.Hosts, b.Series = b.Launches[:0], b.Hosts[:0], b.Series[:0]
}

// Extent is how long a batch and its side tables are.
type Extent struct{ Events, Addrs, Values, Launches, Hosts, Series int }

// Extent tells how long the batch is.
func (b *Batch) Extent() Extent {
	return Extent{len(b.Events), len(b.Addrs), len(b.Values), len(b.Launches), len(b.Hosts), len(b.Series)}
}

// Append adds the events and side tables of another batch. The events go on to index their own tables: Between gives
// them back.
func (b *Batch) Append(o *Batch) {
	b.Events, b.Addrs, b.Values = append(b.Events, o.Events...), append(b.Addrs, o.Addrs...), append(b.Values, o.Values...)
	b.Launches, b.Hosts, b.Series = append(b.Launches, o.Launches...), append(b.Hosts, o.Hosts...), append(b.Series, o.Series...)
}

// Between gives the batch that was appended between two extents.
func (b *Batch) Between(from, to Extent) Batch {
	return Batch{b.Events[from.Events:to.Events:to.Events], b.Addrs[from.Addrs:to.Addrs:to.Addrs], b.Values[from.Values:to.Values:to.Values],
		b.Launches[from.Launches:to.Launches:to.Launches], b.Hosts[from.Hosts:to.Hosts:to.Hosts],
		b.Series[from.Series:to.Series:to.Series]}
}

// CutEnd parts a batch that ends with a launch's end before the exits that lead to it, which is where consumers hold most
// of what they know of the launch. ok is false for other batches. The parts share the memory of b.
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

// AddrOf gives the address that lane accesses. The lane must be in e.Mask.
func (b *Batch) AddrOf(e *Event, lane int) uint64 {
	switch {
	case e.Flags&FlagScattered != 0:
		return b.Addrs[int(e.Side)+rank(e.Mask, lane)]
	case e.Flags&FlagRows != 0:
		return e.rowAddr(lane)
	}
	return e.Addr + uint64(int64(lane-bits.TrailingZeros32(e.Mask))*e.Stride)
}

// Addresses gives the addresses of the lanes of e.Mask, the lowest first: those in the batch if it has them, which
// the caller must not change, and else in to.
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

// ValueOf gives the words that lane writes, nil without FlagValues. The lane must be in e.Mask.
// The bytes of the value stand little-endian; bytes past Size are zero.
func (b *Batch) ValueOf(e *Event, lane int) []uint64 {
	if e.Flags&FlagValues == 0 {
		return nil
	}
	n := ValueWords(e.Size)
	at := int(e.Val) + rank(e.Mask, lane)*n
	return b.Values[at : at+n]
}

// OldOf gives the words that were where lane writes just before it did, the lanes of the instruction one after the other,
// the lowest first; nil without FlagOld. The lane must be in e.Mask. An access of less than four bytes has the four around
// it, aligned, those outside its allocation zero.
//
// All writes of a launch to global and shared memory have FlagOld or none has. They may have it only if nothing else, neither
// the host nor another launch, writes the memory while it runs: who knows the last write of a location need not keep what
// it wrote until the next one tells.
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

// Count is the number of points of the shape.
func (d Dim3) Count() uint64 { return uint64(d.X) * uint64(d.Y) * uint64(d.Z) }

// At gives the coordinate with linear index i, x fastest.
func (d Dim3) At(i uint64) Dim3 {
	if i < uint64(d.X) { // most shapes are lines, and divisions take long
		return Dim3{X: uint32(i)}
	}
	row := i / uint64(d.X)
	z := row / uint64(d.Y)
	return Dim3{uint32(i - row*uint64(d.X)), uint32(row - z*uint64(d.Y)), uint32(z)}
}

// Language is what a kernel's author wrote it in, as far as judging it asks.
type Language uint8

// The languages.
const (
	Threads Language = iota // what a thread does: CUDA, Numba, PTX
	Triton                  // what a block does as a whole: its compiler spreads that over the threads
	Gluon                   // as Triton, but shared memory is the author's
)

// Launch describes one kernel launch.
type Launch struct {
	ID     uint32 // Number, and from RerunShift on Rerun
	Agent  uint32 // the stream it runs on
	Kernel string // linker name
	Grid   Dim3
	Block  Dim3
	// Cluster is the shape of clusters, of blocks; zero where none was asked for: each block is one.
	Cluster Dim3
	// Synchronises says that the kernel's code has atomic operations, fences or accesses that acquire or release, whether
	// they are executed or not. Without it no event of the launch is one.
	Synchronises bool
	// Swaps says that it has a compare-and-swap. Without it no event of the launch is one.
	Swaps bool
	// NonCoherent says that it has ld.global.nc, texture fetches or surface reads. Without it no event of the launch has FlagNonCoherent.
	NonCoherent bool
	// Bulk says that it has bulk copies. Without it no event of the launch is of one.
	Bulk bool
	// Early says that it may begin before the launch before it on its stream has ended, where that executed GridLaunch: it was launched with
	// programmatic stream serialization. The stream had no other operation between the two.
	Early    bool
	Language Language
	// Parent is the ID of the launch of which a thread has launched this one; 0: the host did. It ends before what follows that launch
	// in its stream.
	Parent uint32
	// Device is 1 plus the number of the device that the launch runs on where the program sees several devices, else 0. Of the launches of a
	// run all have one or none has.
	Device uint8
}

// RerunShift is where in Launch.ID Rerun begins.
const RerunShift = 28

// DeviceToken is the token under which operation n of the threads of a launch (DeviceOp) is published. No HostSignal has it.
func DeviceToken(launch, n uint32) uint64 { return 1<<61 | uint64(launch)<<32 | uint64(n) }

// Number gives the place of the launch in the order of launches, from 1.
func (l *Launch) Number() uint32 { return l.ID & (1<<RerunShift - 1) }

// Rerun counts the executions of a launch by other schedules, right after it had ended, from 1; it is 0 for the program's own.
func (l *Launch) Rerun() int { return int(l.ID >> RerunShift) }

// MaxDevices is how many devices a program can see.
const MaxDevices = 64

// PeerShift is where in an address of shared memory 1 plus the rank of the block in its cluster begins whose memory it is, when that
// is not the block that accesses it. Memory of a block is less.
const PeerShift = 24

// TensorBase is where among the addresses of shared memory those of the tensor memory of a block begin: that of a word of a lane and a
// column is TensorWord.
const TensorBase = 1 << 18

// The lanes and columns of tensor memory.
const (
	TensorLanes   = 128
	TensorColumns = 512
	tensorGroup   = 16 // lanes that lie together
)

// TensorWord is the address of a word of tensor memory: those of 16 lanes lie together, column by column.
func TensorWord(lane, column int) uint64 {
	return TensorBase + 4*uint64(lane%tensorGroup+tensorGroup*(column+TensorColumns*(lane/tensorGroup)))
}

// TensorCell is the lane and the column of an address of tensor memory.
func TensorCell(addr uint64) (lane, column int) {
	word := int(addr-TensorBase) / 4
	return word/tensorGroup/TensorColumns*tensorGroup + word%tensorGroup, word / tensorGroup % TensorColumns
}

// PrivateSpace gives the space of a generic address in local memory, or in the shared memory of the block that uses it; NoSpace for other
// numbers.
func PrivateSpace(addr uint64) Space {
	switch addr >> PeerShift {
	case 1 << (56 - PeerShift):
		return Shared
	case 2 << (56 - PeerShift):
		return Local
	}
	return NoSpace
}

// InTensorMemory says that an address is not of the shared memory of a block, but of its tensor memory.
func InTensorMemory(addr uint64) bool { return addr&(1<<PeerShift-1) >= TensorBase }

// ClusterShape is the shape of a cluster in blocks.
func (l *Launch) ClusterShape() Dim3 {
	if l.Cluster.Count() == 0 {
		return Dim3{1, 1, 1}
	}
	return l.Cluster
}

// Clusters is the number of clusters along each axis.
func (l *Launch) Clusters() Dim3 {
	s := l.ClusterShape()
	return Dim3{l.Grid.X / s.X, l.Grid.Y / s.Y, l.Grid.Z / s.Z}
}

// ClusterOf gives the number of the cluster of a block, and the block's rank in it.
func (l *Launch) ClusterOf(block uint32) (cluster, rank uint32) {
	s, c, at := l.ClusterShape(), l.Clusters(), l.Grid.At(uint64(block))
	cluster = at.X/s.X + c.X*(at.Y/s.Y+c.Y*(at.Z/s.Z))
	return cluster, at.X%s.X + s.X*(at.Y%s.Y+s.Y*(at.Z%s.Z))
}

// SameCluster says that two blocks are of one cluster.
func (l *Launch) SameCluster(a, b uint32) bool {
	x, _ := l.ClusterOf(a)
	y, _ := l.ClusterOf(b)
	return x == y
}

// BlockIn gives the number of the block of a rank in a cluster.
func (l *Launch) BlockIn(cluster, rank uint32) uint32 {
	s := l.ClusterShape()
	if s.Count() == 1 {
		return cluster
	}
	at, in := l.Clusters().At(uint64(cluster)), s.At(uint64(rank))
	return at.X*s.X + in.X + l.Grid.X*(at.Y*s.Y+in.Y+l.Grid.Y*(at.Z*s.Z+in.Z))
}

// WarpsPerBlock is the number of warps of a block, the last one perhaps partly filled.
func (l *Launch) WarpsPerBlock() uint32 { return uint32((l.Block.Count() + 31) / 32) }

// BlockOf gives the coordinate of the block that warp belongs to.
func (l *Launch) BlockOf(warp uint32) Dim3 { return l.Grid.At(uint64(warp / l.WarpsPerBlock())) }

// ThreadOf gives the coordinate within its block of a lane of a warp.
func (l *Launch) ThreadOf(warp uint32, lane int) Dim3 {
	return l.Block.At(uint64(warp%l.WarpsPerBlock())*32 + uint64(lane))
}

// HostKind says what a HostOp is.
type HostKind uint8

// The host operations. Agents are host threads and streams; each does its operations in order, and what one agent did
// before a HostSignal is ordered before what another does after the HostWait on the same token. All of CUDA's host-side
// order (stream order, events, synchronise calls, the legacy default stream) is told in these two.
const (
	HostSignal HostKind = iota // Agent publishes what it has done under Token (again: replaces)
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
	Name  string // the call, for messages: "cudaMemcpyAsync (stream 2)", and HostPlace behind it
	// Staged marks a write that may still be under way when its call has returned only because the manual reserves the
	// right to it: a synchronous copy from pageable memory.
	Staged bool
	// Assumed marks a HostSignal and a HostWait that order two host threads only if they do what cannot be seen of them, such as
	// atomic operations, in the order of their calls: they are in the stream as if the host were one thread.
	Assumed bool
}

// Needs is the set of events a consumer asks for; what nobody asks for is not made.
type Needs uint16

// The needs.
const (
	NeedGlobal     Needs = 1 << iota // Load, Store, Atomic, Bulk in Global
	NeedShared                       // Load, Store, Atomic, Bulk in Shared
	NeedSync                         // Fence, Arrive, BarrierDone, WarpSync, Exit, and of copies what is no access
	NeedValues                       // FlagValues on stores and atomics
	NeedOld                          // FlagOld too, where values are made
	NeedBranches                     // Branch, Else, Reconverge
	NeedReconverge                   // Reconverge of all live lanes of a warp
	NeedHost                         // Host
	NeedLaunch                       // KernelBegin, KernelEnd
	NeedAgain                        // Again for what would be loads and stores of shared memory; who does not ask for it is to be given Batch.Plain
	NeedLocal                        // Undefined
	NeedPeers                        // accesses to the shared memory of other blocks of the cluster, beside NeedShared; who does not ask for it is not to be given any
)

// Sink takes batches in order. It is called from one goroutine at a time.
type Sink interface {
	Events(b *Batch)
}

// Taker is a sink that can keep a batch. Take is Events for a batch whose memory is the producer's own: it may keep that and
// leave the memory of another batch in its place, so that the batch is consumed while the producer goes on.
type Taker interface {
	Sink
	Take(b *Batch)
}

// Hand gives a batch of the producer's own to a sink and empties it.
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

// Frame is one level of a call stack, for people.
type Frame struct {
	Function string // linker name
	File     string // source file as the compiler wrote it; "" when unknown
	Line     int    // from 1; 0 when unknown
	Column   int
	PTXFile  string
	PTXLine  int
	Inst     string // the PTX instruction
	// Graph is the number of the launch of a graph that this frame of a host's call stack and those after it made, where those before it made
	// a node of the graph; else 0.
	Graph uint32
}

// Places tells where a Place is: the instruction and the calls that led to it, innermost first, inlined calls included.
type Places interface {
	Frames(place uint32) []Frame
	// Arms are those on which the place lies: of the branches of its function, and of those that called it.
	Arms(place uint32) []Arm
	// Updates says that the place is a store of a value that the thread computed from what it loaded from the same address,
	// such that doing it twice differs from doing it once: x++. It gives the place of the load.
	Updates(place uint32) (load uint32, ok bool)
	// Discards says that the place is an atomic operation whose result the program does not use.
	Discards(place uint32) bool
	// Dereferences says that the place is a load of an address by which the thread accesses memory.
	Dereferences(place uint32) bool
}

// Arm says on which arms of a branch a place lies: those by which a lane comes from the branch to the place before it
// reconverges with the lanes that took another arm.
type Arm struct {
	Branch uint32 // a place
	Taken  uint32 // a set of arms: see ArmBit
}

// ArmBit is the bit of an arm in Arm.Taken. Arms beyond the 30th, and unknown ones, share two bits: they count as different.
func ArmBit(arm int) uint32 {
	if 0 <= arm && arm < 30 {
		return 1 << arm
	}
	return 3 << 30
}

// Valid says that the fields of an event fit each other, as far as they do not depend on other events or on the launch, for
// events that stand for themselves.
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
