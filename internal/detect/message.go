package detect

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/event"
)

// Facts is the facts that a message about a race is made from.
type Facts struct {
	Category       Category
	Earlier, Later Access
	Handover       *Handover
	Handed         bool // the later thread, or another of its block or warp, has observed a strong write of another thread, so it may have waited
	// Signalled says that another thread of the later thread's block has released what it knew, perhaps on behalf of
	// the whole block, without waiting for the later access.
	Signalled bool
	ByLeader  bool // in both blocks one thread takes the same lock, on behalf of all, and holds it across a barrier
	// Unawaited is "first" or "second" if another thread of that one's block has waited for the other access, and it
	// has not.
	Unawaited string
	// Passed is set if a thread of a third block has waited for what the first thread wrote after its access, and has written
	// what the second one read before its own, with no fence between. It does not decide the kind: whether a thread has to
	// wait depends on the schedule.
	Passed   bool
	Alone    bool // one of the two is in a critical section of a lock that the other's thread never took
	TwoLocks bool // Alone, and the other is in one of another lock
	// Others is set where the fence is missing: in another race of the two places the same variable is written by another thread
	// of the earlier one's block, and no barrier lies between (Handover.Apart).
	Others bool
	Lost   bool // the two are the load and the store of an update that several lanes of a warp do at once: see LostUpdate
	Reuses bool // one of the two is an asynchronous copy into a buffer whose previous content the other uses
	Copy   *CopyState
}

// CopyState describes what the program has done to wait for an asynchronous copy, the earlier access, before the later
// access.
type CopyState struct {
	Bulk      bool
	Matrix    bool  // a read by wgmma.mma_async
	Core      bool  // an access by another tensor core operation (tcgen05)
	How       uint8 // of Core: event.CoreCommits, ...
	Read      bool  // of a bulk copy: a wait covered only the reading of its source
	Committed bool
	Tracked   bool // an mbarrier tracks it
	Own       bool // the later access is by the thread that issued the copy
	// A wait by the copy's thread that did not cover the copy: whether there was one, its place, how many groups it
	// left pending, and whether it came before the copy was committed.
	Waited  bool
	Wait    uint32
	Allowed uint32
	Early   bool
	// Passed says that the later thread has successfully waited for the mbarrier that tracks the copy, but in another
	// phase.
	Passed bool
	// Ahead says that the later thread has waited for its own group of the same number. The copy's thread will do so
	// too, but perhaps has not yet.
	Ahead bool
	// Lacking says that the missing wait for the copy is the cause to report, although nothing orders the issue of the
	// copy with the other access either.
	Lacking bool
	// Unfilled concerns an operation of the tensor cores that reads shared memory, and a later copy that an mbarrier
	// tracks. It says that the operation should have waited for this copy: the stage was free, and the operation came
	// before the copy.
	Unfilled bool
	// Untold concerns a wgmma.mma_async. It says that the later thread does not know of its issue, so that the waits of
	// the warpgroup do not matter.
	Untold bool
}

// Handover is a strong write by the earlier thread after its access that a strong read by the later thread observed
// before its own access. The program hands data over there, but does not order it.
type Handover struct {
	Write, Read uint32 // places
	InScope     bool   // the write and the read are morally strong
	Lock        bool   // both are read-modify-writes
	Apart       bool   // the write is by another thread of the earlier thread's block, and no barrier lies between
	Relayed     bool   // like Apart, but the threads of that block hand over to each other, and may have done so in between
	Counted     bool   // the write adds to a counter, or similar
	Ticket      bool   // the write and the read are at one place, which was first executed before the place of the earlier access
	Barrier     bool   // the write is by another thread of the earlier thread's block, after a barrier
	// The fence or release operation between the earlier access and the write, and the fence or acquire operation
	// between the read and the later access; nil if there is none. ReleaseWide and AcquireWide say that its scope
	// reaches beyond the block.
	Release, Acquire         *Sync
	ReleaseWide, AcquireWide bool
}

// NewRace makes the finding for a race.
func NewRace(detector string, f *Facts) Finding {
	out := Finding{Class: Race, Kind: f.Kind(), Severity: f.Severity(), Detector: detector,
		Accesses: []Access{f.Earlier, f.Later}}
	out.Message, out.Fix = f.explain(out.Kind)
	if h := f.Handover; h != nil && f.Category.Refined() && !f.ByLeader && out.Kind != f.Category.Kind() { // the handover is at fault
		out.Flag = [2]uint32{h.Write, h.Read}
	}
	return out
}

// Severity returns the severity of the category, or Error if the kind names a synchronisation that is too weak. In that
// case neither volatile nor lockstep mitigates the race.
func (f *Facts) Severity() Severity {
	if f.Kind() != f.Category.Kind() {
		return Error
	}
	return f.Category.Severity()
}

// Refined reports whether the kind of the category's races depends on the synchronisation seen around the two accesses.
func (c Category) Refined() bool {
	return c == SameBlock || c == CrossBlock || c == VolatileRace || c == CrossDevice || c == AtomicWithPlain
}

// refinements are the kinds that name a faulty synchronisation, from the least to the most specific.
var refinements = []Kind{MissingLock, FenceScope, AtomicScope, LockScope, MissingBarrier, MissingFence}

// specific returns the index of the kind in refinements, or -1 if the kind is the category's.
func (f *Facts) specific() int {
	if k := f.Kind(); k != f.Category.Kind() {
		return slices.Index(refinements, k)
	}
	return -1
}

// Unsynchronised reports whether no synchronisation, not even a faulty one, lies between the two accesses. It is false
// if the earlier access is a read: a thread that reads too early has observed nothing, whatever the writer does. It is
// also false if another thread of the later thread's block has signalled.
func (f *Facts) Unsynchronised() bool {
	return f.specific() < 0 && !f.Handed && !f.Signalled && f.Earlier.Op != Read
}

// Join chooses between f and g, the facts of two races of one category at a pair of places, f seen first. It prefers
// the graver and then the more specific. But if one of them has no synchronisation at all, it does not choose the one
// with a faulty synchronisation. A race with Unawaited explains the others: the threads of a block that do not wait for
// the thread that waits are early in some executions and late in others.
func (f *Facts) Join(g *Facts) *Facts {
	if x, y := f.Severity(), g.Severity(); x != y {
		if y > x {
			return g
		}
		return f
	}
	out, other := f, g
	if f.Unawaited == "" && (g.Unawaited != "" || !f.Unsynchronised() && (g.Unsynchronised() || g.specific() > f.specific())) {
		out, other = g, f
	}
	if out.Kind() == MissingFence && !out.Others && (other.Others || other.Kind() == MissingBarrier && other.Handover != nil &&
		other.Handover.Apart && other.Handover.Write == out.Handover.Write) {
		both := *out
		both.Others = true
		return &both
	}
	return out
}

// Kind refines the category's kind by the synchronisation seen around the two accesses.
func (f *Facts) Kind() Kind {
	if f.Category == LockstepRace && f.weakLock() {
		return MissingFence
	}
	if f.pending() {
		return f.kindOfCopy()
	}
	if !f.Category.Refined() {
		return f.Category.Kind()
	}
	if f.Reuses && f.sameBlock() {
		return StageReuse
	}
	h := f.Handover
	if f.Category == AtomicWithPlain && (f.sameBlock() || h == nil || h.Lock) { // atomic and plain accesses are mixed; but a sum that is handed over, with fences, may be read by a plain load
		return MixedAtomic
	}
	switch {
	case f.ByLeader, f.Unawaited != "", h != nil && h.Apart:
		return MissingBarrier
	case h == nil && f.Alone:
		return MissingLock
	case h == nil:
		return f.Category.Kind()
	case f.sameBlock() && h.Lacking():
		return MissingFence
	case f.sameBlock():
		return f.Category.Kind()
	case !h.InScope && h.Lock:
		return LockScope
	case !h.InScope:
		return AtomicScope
	case h.Lacking():
		return MissingFence
	case h.Lock && (!h.ReleaseWide || !h.AcquireWide):
		return LockScope
	case !h.ReleaseWide || !h.AcquireWide:
		return FenceScope
	}
	return f.Category.Kind()
}

// weakLock reports whether a lock passed from one thread to the other, but a fence or a release or acquire operation is
// missing.
func (f *Facts) weakLock() bool {
	h := f.Handover
	return h != nil && h.Lock && !h.Counted && h.Lacking()
}

// Lacking reports whether a fence or a release or acquire operation is missing.
func (h *Handover) Lacking() bool { return h.Release == nil || h.Acquire == nil }

// sameBlock reports whether the two accesses are by threads of one block of one launch.
func (f *Facts) sameBlock() bool {
	x, y := &f.Earlier, &f.Later
	if x.Host != "" || y.Host != "" || x.Launch.ID != y.Launch.ID {
		return false
	}
	wpb := max(x.Launch.WarpsPerBlock(), 1)
	return x.Warp/wpb == y.Warp/wpb
}

// sameCluster reports whether the two accesses are by threads of different blocks of one cluster.
func (f *Facts) sameCluster() bool {
	x, y := &f.Earlier, &f.Later
	if x.Host != "" || y.Host != "" || x.Launch.ID != y.Launch.ID || f.sameBlock() {
		return false
	}
	wpb := max(x.Launch.WarpsPerBlock(), 1)
	return x.Launch.SameCluster(x.Warp/wpb, y.Warp/wpb)
}

// verb describes what an access does: "write", "volatile read", "atomic operation".
func (a *Access) verb() string {
	v := map[Op]string{Read: "read", Write: "write", AtomicOp: "atomic operation"}[a.Op]
	switch {
	case a.Host != "":
		return event.HostText(a.Host)
	case a.Async && a.Space == event.Tensor:
		return v + " by an operation of the tensor cores"
	case a.Async:
		return v + " by an asynchronous copy"
	case a.Order == event.Volatile:
		return "volatile " + v
	case a.Order >= event.Relaxed && a.Op != AtomicOp:
		return "atomic " + v
	}
	return v
}

// actor describes an access together with the thread or agent that makes it.
func (a *Access) actor() string {
	if a.Host != "" {
		return a.verb()
	}
	return article(a.verb()) + " of a kernel"
}

// hostCode reports whether an access is by an instruction of the program on the host, not by an API call.
func (a *Access) hostCode() bool {
	call, _ := event.CutHostPlace(a.Host)
	return call == "host code" || strings.HasSuffix(call, " (host code)")
}

// article puts "a" or "an" before a noun.
func article(noun string) string {
	if noun == "" {
		return noun
	}
	switch noun[0] {
	case 'a', 'e', 'i', 'o', 'u':
		return "an " + noun
	}
	return "a " + noun
}

// pair names both accesses: "a write and a read", "two writes".
func (f *Facts) pair() string {
	x, y := f.Earlier.verb(), f.Later.verb()
	switch {
	case x == y && f.Earlier.Async && f.Earlier.Space == event.Tensor:
		return "writes by two operations of the tensor cores"
	case x == y && f.Earlier.Async:
		return "writes by two asynchronous copies"
	}
	if x == y && f.Earlier.Host == "" {
		return "two " + x + "s"
	}
	if f.Earlier.Host == "" {
		x = article(x)
	}
	if f.Later.Host == "" {
		y = article(y)
	}
	return x + " and " + y
}

// memory names the memory accessed.
func (f *Facts) memory() string {
	switch f.Later.Space {
	case event.Shared:
		return "shared memory"
	case event.Tensor:
		return "tensor memory"
	}
	return "global memory"
}

// pending reports whether the earlier access is by an asynchronous copy whose wait is missing or faulty.
func (f *Facts) pending() bool {
	return f.Category == CopyPending || (f.Category == SameBlock || f.Category == CrossBlock || f.Category == AtomicWithPlain) && f.Copy != nil && f.Copy.Lacking
}

func (f *Facts) explain(k Kind) (message, fix string) {
	if f.pending() {
		return f.explainCopy()
	}
	switch f.Category {
	case CrossLaunch:
		return f.explainLaunches()
	case CrossDevice:
		return f.explainDevices(k)
	case StagedCopy:
		who, orElse := "the kernel's stream", ", copy in the kernel's stream, or create that stream without cudaStreamNonBlocking"
		switch {
		case f.Later.hostCode():
			who, orElse = "the host", ""
		case f.Later.Host != "":
			who, orElse = "the other stream", ", copy in that stream, or create it without cudaStreamNonBlocking"
		}
		return "a copy from pageable host memory may return once its source was staged, and " + who + " does not wait for the copy that follows in the default stream; most drivers finish it before they return, but the manual does not promise that",
			"call cudaStreamSynchronize after the copy" + orElse
	case HostThreads:
		return f.explainThreads()
	case NonCoherentLoad:
		if f.Later.Texture {
			return fmt.Sprintf("%s of the same bytes in one launch, and the second is a texture fetch or a surface read: these are not coherent with writes of the same kernel, so it may return an old value even if the two are ordered", f.pair()),
				"read the bytes in a later kernel, or read and write them by plain loads and stores of global memory"
		}
		which := "second"
		if f.Earlier.Op == Read {
			which = "first"
		}
		return fmt.Sprintf("%s of the same bytes in one launch, and the %s is a load through the read-only cache (ld.global.nc: __ldg, or a const __restrict__ pointer), which is not coherent: it may return an old value even if the two are ordered", f.pair(), which),
			"load by a plain load or __ldcg and drop const __restrict__, or write the bytes in an earlier kernel"
	case ScopeRace:
		return f.explainScope()
	case MixedSizeRace, MixedSizeRMW:
		return fmt.Sprintf("%s by different threads, with elements of %d and %d bytes, overlap: accesses of different size are not atomic to each other and do not synchronise", f.pair(), f.Earlier.Size, f.Later.Size),
			"access the variable with one size everywhere"
	case SameValueRace:
		return "two threads write the same value to the same bytes, and nothing orders them",
			"let one thread write, or make the writes atomic"
	case LostUpdate:
		return "several threads of one warp read the same bytes, and each writes a value that it has computed from them: all updates but one are lost, even if the warp runs in lockstep",
			fixLost
	case OneInstruction:
		return "several threads of one warp write different values to the same bytes in one instruction, and which one remains is undefined",
			"let one thread write, use an atomic operation, or give each thread its own element"
	case LockstepRace:
		if k == MissingFence {
			return f.explainBlock(k)
		}
		why := fmt.Sprintf("%s of the same bytes by threads of one warp are ordered only if the warp runs in lockstep, which is not guaranteed", f.pair())
		if f.Lost {
			return why + ": they are the load and the store of one update, which all of them do at once, and all but one are lost", fixLost
		}
		if f.maskedApart() {
			why += f.around()
		}
		return why, f.warpFix("put __syncwarp() between the two; between iterations of a loop, at the end of its body")
	case VolatileRace:
		if k != VolatileOnly {
			if f.sameBlock() {
				return f.explainBlock(k)
			}
			return f.explainGrid(k)
		}
		if f.Earlier.Updates && f.Later.Updates {
			return "two threads read the same bytes, and each writes a value that it has computed from them: volatile does not make the two accesses one atomic operation, so updates are lost",
				"make the whole update one atomic operation (atomicAdd, ...)"
		}
		fix := "use cuda::atomic_ref or atomic functions instead of volatile, and for an update one operation such as atomicAdd"
		switch {
		case f.sameWarp():
			fix += "; if the second is to come after the first, put __syncwarp() between the two"
		case f.sameBlock():
			fix += "; if the second is to come after the first, put __syncthreads() between the two"
		}
		return fmt.Sprintf("%s of the same bytes by different threads rely on volatile, which is not atomic in CUDA C++, and nothing orders them", f.pair()), fix
	case AtomicWithPlain:
		if k != MixedAtomic {
			return f.explainGrid(k)
		}
		return fmt.Sprintf("%s of the same bytes by different threads: the plain access is not atomic, and nothing orders the two%s", f.pair(), f.around()),
			f.fixPlain()
	case NoMapFence:
		return "a write of a tensor map is ordered before its use by a tensor copy, but no fence.proxy.tensormap::generic.acquire of the map lies between them: the copy reads the map through the tensormap proxy and may not observe the write",
			"execute fence.proxy.tensormap::generic.acquire.gpu [map], 128 in the thread that issues the copy, after the synchronisation that orders it after the write (tensormap.cp_fenceproxy, or the write and fence.proxy.tensormap::generic.release.gpu, and then a barrier)"
	case NoProxyFence, CopyProxyFence:
		return f.explainProxy()
	case SameBlock:
		if k == StageReuse {
			return f.explainReuse()
		}
		return f.explainBlock(k)
	}
	return f.explainGrid(k)
}

func (f *Facts) explainLaunches() (message, fix string) {
	if f.Earlier.Host != "" || f.Later.Host != "" {
		fix := "put both into one stream, let the stream of the second wait for an event recorded after the first (cudaStreamWaitEvent), or let the host wait for the first before it issues the second"
		if f.Earlier.hostCode() || f.Later.hostCode() {
			fix = "let the host wait before it touches the memory: cudaDeviceSynchronize, cudaStreamSynchronize, or cudaEventSynchronize of an event recorded after the other access"
		}
		return fmt.Sprintf("%s and %s touch the same bytes, and neither stream order, an event nor a synchronising call orders the two", f.Earlier.actor(), f.Later.actor()), fix
	}
	if f.Earlier.Launch.Agent == f.Later.Launch.Agent {
		return fmt.Sprintf("%s of the same bytes by two kernels that may run at the same time: the first executes griddepcontrol.launch_dependents (cudaTriggerProgrammaticLaunchCompletion), the second is launched with programmatic stream serialization, and its thread has not waited for the first", f.pair()),
			"call cudaGridDependencySynchronize (griddepcontrol.wait) in the second kernel before the access, or launch it without the attribute"
	}
	if f.Earlier.Launch.Parent != 0 || f.Later.Launch.Parent != 0 {
		return f.explainNested()
	}
	return fmt.Sprintf("%s of the same bytes by two kernels that may run at the same time: they are in different streams, and no event or synchronising call orders them", f.pair()),
		"put both kernels into one stream, let the second stream wait for an event recorded after the first kernel, or let the host wait for the first stream before it launches the second kernel (a query orders only if it returns success)"
}

// explainNested explains a race of two kernels, at least one of them launched by a thread.
func (f *Facts) explainNested() (message, fix string) {
	x, y := f.Earlier.Launch, f.Later.Launch
	switch {
	case x.ID == y.Parent || y.ID == x.Parent:
		return fmt.Sprintf("%s of the same bytes by a kernel and one that a thread of it has launched: only accesses that the launching thread had made, or had synchronised with, when it launched the second kernel are ordered before that kernel", f.pair()),
			"make the access before the launch, with __syncthreads() between the two if another thread of the block launches; if the second kernel must come after accesses of all blocks, launch it into cudaStreamTailLaunch, or from the host"
	case x.Parent == y.Parent:
		return fmt.Sprintf("%s of the same bytes by two kernels that threads of one launch have launched, into different streams of the device: each block has a default stream of its own, and launches into cudaStreamFireAndForget are not ordered", f.pair()),
			"launch both from one block into its default stream, order the two streams by an event, or launch the second into cudaStreamTailLaunch"
	}
	return fmt.Sprintf("%s of the same bytes by two kernels that may run at the same time, of which a thread of another kernel has launched at least one: nothing orders them", f.pair()),
		"launch the second into cudaStreamTailLaunch of the kernel whose threads launch the first, or by the host after that kernel"
}

// devices names the devices of the two accesses, if they differ.
func (f *Facts) devices() (names string, two bool) {
	x, y := f.Earlier.Launch.Device, f.Later.Launch.Device
	if f.Earlier.Host != "" || f.Later.Host != "" || x == y {
		return "", false
	}
	return fmt.Sprintf("devices %d and %d", int(x)-1, int(y)-1), true
}

func (f *Facts) explainDevices(k Kind) (message, fix string) {
	names, _ := f.devices()
	what := fmt.Sprintf("%s of the same bytes by kernels on %s that may run at the same time", f.pair(), names)
	h := f.Handover
	switch k {
	case MissingFence:
		return what + ": the first thread writes an atomic or volatile variable after its access, and the second reads it before its own, but " + h.lacks(),
			h.fix("__threadfence_system()")
	case LockScope, FenceScope, AtomicScope:
		if !h.InScope {
			return what + ": the variable that passes from one to the other is accessed with a scope that does not include threads of other devices",
				"use system scope for the accesses to that variable (atomicAdd_system, cuda::thread_scope_system), and __threadfence_system() for the fences next to them"
		}
		s := h.Release
		if h.ReleaseWide {
			s = h.Acquire
		}
		return fmt.Sprintf("%s: the %s between them has a scope that does not include threads of the other device", what, s.What),
			"replace every __threadfence() between the two by __threadfence_system(), or access the variable that passes between them with release and acquire at system scope"
	case MissingBarrier:
		return what + ": one thread of the first block signals for the whole block, but no __syncthreads() makes it wait for the first access",
			"put __syncthreads() after the first access and before the fence of the signalling thread, where all threads of the block reach it"
	}
	return what + ": no event, no synchronising call, and no release and acquire at system scope orders them",
		"let the stream of the second kernel wait for an event recorded after the first, or let the host wait for the first before it launches the second; threads that hand over while both run need system scope (__threadfence_system, atomicAdd_system, cuda::thread_scope_system)"
}

func (f *Facts) explainThreads() (message, fix string) {
	return fmt.Sprintf("%s of the same bytes, which only host threads could order: different threads made the calls, or a stream called a function of the program between them, and no mutex, condition variable, semaphore, barrier or join of POSIX threads orders the two. Atomic variables and other synchronisation of the program are not observed, and may order them", f.pair()),
		"let one thread wait for the other, by a mutex and a condition variable or a join, and for its work by an event, or put both into one stream"
}

func (f *Facts) explainScope() (message, fix string) {
	if names, two := f.devices(); two {
		return fmt.Sprintf("%s of the same bytes by kernels on %s that may run at the same time: not both have system scope (.sys), which alone includes threads of other devices, so they are not atomic with respect to each other", f.pair(), names),
			"use system scope for both (atomicAdd_system, not atomicAdd; cuda::thread_scope_system)"
	}
	narrow := &f.Earlier
	which := "first"
	if f.Earlier.Scope >= event.ScopeGPU || f.sameCluster() && f.Earlier.Scope == event.ScopeCluster {
		narrow, which = &f.Later, "second"
	}
	scope := "block"
	if narrow.Scope == event.ScopeCluster {
		scope = "cluster"
	}
	if f.sameCluster() {
		return fmt.Sprintf("%s of the same bytes by different blocks of a cluster: the %s has block scope (.cta) only, which does not include the other block, so they are not atomic with respect to each other", f.pair(), which),
			"use cluster scope for both (mbarrier.arrive.release.cluster, mbarrier.try_wait.acquire.cluster), or device scope"
	}
	if f.Earlier.Scope < event.ScopeGPU && f.Later.Scope < event.ScopeGPU {
		return fmt.Sprintf("%s of the same bytes by different blocks have %s scope (.%s) only, so they are not atomic with respect to each other", f.pair(), scope, narrow.Scope),
			"use device scope for both (atomicAdd, not atomicAdd_block; thread_scope_device)"
	}
	return fmt.Sprintf("%s of the same bytes by different blocks: the %s has %s scope (.%s) only, which does not include the other block, so they are not atomic with respect to each other", f.pair(), which, scope, narrow.Scope),
		fmt.Sprintf("use device scope for the %s (atomicAdd, not atomicAdd_block; thread_scope_device)", which)
}

// Texts about an access that is alone in a critical section, and the fix.
const (
	alone    = "only one of them is inside a critical section"
	twoLocks = "they are in critical sections of different locks"
	takeLock = "take the same lock around both accesses; a thread that takes several takes them in one fixed order"
)

// fixLost is the fix for an update that lanes of a warp lose to each other.
const fixLost = "make the whole update one atomic operation (atomicAdd, ...), or let one thread do it"

// oneUpdate says that one of the two is the store of an update (x += y), and the other the load of the same update, by another thread: what
// orders the two saves no update.
func (f *Facts) oneUpdate() bool {
	x, y := &f.Earlier, &f.Later
	return x.Updates && x.Load == y.Place || y.Updates && y.Load == x.Place
}

// unlocked says why locks do not order the two.
func (f *Facts) unlocked() string {
	if f.TwoLocks {
		return twoLocks
	}
	return alone
}

func (f *Facts) explainBlock(k Kind) (message, fix string) {
	if k == MissingFence {
		return fmt.Sprintf("%s of the same bytes in %s by threads of one block: the first thread writes an atomic or volatile variable after its access, and the second reads it before its own, but %s", f.pair(), f.memory(), f.Handover.lacks()),
			f.Handover.fix("__threadfence_block()")
	}
	if k == MissingLock {
		return fmt.Sprintf("%s of the same bytes in %s by threads of one block: ", f.pair(), f.memory()) + f.unlocked(), takeLock
	}
	if f.sameWarp() {
		return fmt.Sprintf("%s of the same bytes in %s by threads of one warp on different branches, with no barrier between them%s", f.pair(), f.memory(), f.around()),
			f.warpFix("end the branch after the first access, and put a __syncwarp() there whose mask names the lanes that reach it, including both threads")
	}
	fix = "put __syncthreads() between the two, where all threads of the block reach it; between iterations of a loop, at the end of its body"
	if f.Earlier.Place == f.Later.Place || f.oneUpdate() {
		fix = "give each thread its own element, let one thread write, or make the whole update one atomic operation; between iterations of a loop, put __syncthreads() at the end of its body"
	}
	return fmt.Sprintf("%s of the same bytes in %s by threads of one block with no barrier between them%s", f.pair(), f.memory(), f.around()), fix
}

// sameWarp reports whether the two accesses are by lanes of one warp of one launch.
func (f *Facts) sameWarp() bool {
	x, y := &f.Earlier, &f.Later
	return x.Host == "" && y.Host == "" && x.Launch.ID == y.Launch.ID && x.Warp == y.Warp
}

// maskedApart reports whether on each side there is a __syncwarp between the two accesses whose mask excludes the other
// thread.
func (f *Facts) maskedApart() bool {
	without := func(s *Sync, lane int) bool { return s != nil && s.Lanes != 0 && s.Lanes&(1<<lane) == 0 }
	return without(f.Earlier.Sync, f.Later.Lane) && without(f.Later.Sync, f.Earlier.Lane)
}

// warpFix returns the fix for lanes of one warp: if a __syncwarp excludes one of them, its mask is the cause.
func (f *Facts) warpFix(otherwise string) string {
	if f.maskedApart() {
		return "give the __syncwarp() between the two a mask that names both lanes, or use a tile that holds both"
	}
	return otherwise
}

func (f *Facts) explainGrid(k Kind) (message, fix string) {
	what := fmt.Sprintf("%s of the same bytes by threads of different blocks", f.pair())
	if f.Later.Space == event.Shared {
		what = fmt.Sprintf("%s of the same bytes in the shared memory of a block by threads of different blocks of its cluster", f.pair())
	}
	h := f.Handover
	switch k {
	case MissingFence:
		who := "the first thread writes an atomic or volatile variable after its access"
		if h.Barrier {
			who = "after a barrier, another thread of the first block writes an atomic or volatile variable"
		}
		what += ": " + who + ", and the second reads it before its own, but " + h.lacks()
		if f.Others {
			return what + "; and no __syncthreads() makes it wait for those accesses that other threads of its block make",
				"put __syncthreads() after the first access, where all threads of the block reach it; then " + h.fix("__threadfence()")
		}
		return what, h.fix("__threadfence()")
	case LockScope, FenceScope, AtomicScope:
		if !h.InScope {
			return what + ": the variable that passes from one to the other is accessed with block scope (.cta), which does not include the other block",
				"use device scope for the accesses to that variable, and __threadfence() for the fences next to them"
		}
		s := h.Release
		if h.ReleaseWide {
			s = h.Acquire
		}
		return fmt.Sprintf("%s: the %s between them has a scope that does not include the other block", what, s.What),
			"replace every __threadfence_block() between the two by __threadfence(), or access the variable that passes between them with release and acquire at device scope"
	case MissingBarrier:
		if f.Unawaited != "" {
			return fmt.Sprintf("%s: one thread of the %s block waits for the other block, but no __syncthreads() makes the others wait for it", what, f.Unawaited),
				"put __syncthreads() after the wait and the fence of the thread that waits, where all threads of the block reach it; for lanes of its own warp, __syncwarp() is enough"
		}
		if f.ByLeader {
			return what + ": one thread of each block takes a lock for all of them, but there is no barrier between this access and the operation that takes or releases the lock",
				"put one __syncthreads() after the lock is taken and one before it is released, both where all threads of the block reach them"
		}
		return what + ": one thread of the first block signals for the whole block, but no __syncthreads() makes it wait for the first access",
			"put __syncthreads() after the first access and before the fence of the signalling thread, where all threads of the block reach it; where one thread also waits for its whole block, put one after the wait too; for lanes of its own warp, __syncwarp() is enough"
	case MissingLock:
		return what + ": " + f.unlocked(), takeLock
	}
	fix = "synchronise the grid between the two (cooperative launch), split the kernel there, or let the first thread release a flag after its access and the second acquire it before its own, at device scope"
	if f.Earlier.Place == f.Later.Place || f.Earlier.Op == Write && f.Later.Op == Write || f.oneUpdate() {
		fix = "give each thread its own element, let one thread write, or make the whole update one atomic operation (atomicAdd, atomicMax, ...)"
	}
	if f.Later.Space == event.Shared && f.Earlier.Place != f.Later.Place {
		fix = "put a barrier of the cluster between the two (cluster.sync(); barrier.cluster.arrive.release and barrier.cluster.wait.acquire), where all threads of the cluster reach it"
	}
	if f.Passed && h == nil {
		return what + ", and nothing orders them: a thread of a third block passes on that the first thread is done, by an atomic or volatile variable that it reads and another one that it writes, but it has no fence between the two",
			"put __threadfence() between that read and that write, in the block that passes it on, or make the read an acquire and the write a release"
	}
	return what + ", and nothing orders them" + f.around(), fix
}

// fixPlain returns the fix for an atomic and a plain access.
func (f *Facts) fixPlain() string {
	if f.sameBlock() {
		return "if the plain access initialises the variable or reads its final value, put __syncthreads() between the two; otherwise make it atomic as well"
	}
	if f.Later.Space == event.Shared {
		return "if the plain access initialises the variable or reads its final value, put a barrier of the cluster (cluster.sync()) between the two; otherwise make it atomic as well"
	}
	if f.Earlier.Op == Write || f.Later.Op == Write {
		return "if the plain write initialises the variable, do that before the launch (cudaMemset), in an earlier kernel or before a barrier of the grid; otherwise make it atomic as well, with the same size"
	}
	return "make the plain read atomic as well, with the same size, or use the value that an atomic operation of its thread returns; if the final value is needed, read it in a later kernel or after a barrier of the grid"
}

// around explains why the synchronisation next to both accesses does not order them. What the first thread would do
// next, after the second access, is not known, so the text does not say that anything is missing.
func (f *Facts) around() string {
	x, y := f.Earlier.Sync, f.Later.Sync
	if x == nil || y == nil {
		return ""
	}
	const barrier = "bar.sync 0"
	switch {
	case f.sameBlock() && x.What == barrier && y.What == barrier:
		return ": both accesses lie between the same two barriers of the block"
	case !f.sameBlock() && (strings.HasPrefix(x.What, "bar.") || strings.HasPrefix(y.What, "bar.")):
		return ": a barrier of a block does not order threads of different blocks"
	}
	return fmt.Sprintf(": the %s after the first and the %s before the second do not order them", x.What, y.What)
}

func (h *Handover) lacks() string {
	switch {
	case h.Release == nil && h.Acquire == nil:
		return "there is no fence before that variable is written, and none after it is read"
	case h.Release == nil && h.Barrier:
		return "there is no fence between the barrier and the write of that variable"
	case h.Release == nil:
		return "there is no fence between the first access and the write of that variable"
	}
	return "there is no fence between the read of that variable and the second access"
}

func (h *Handover) fix(fence string) string {
	written, write := "before the variable is written", "before the write of the variable"
	if h.Barrier {
		written, write = "after the barrier, before the variable is written,", "between the barrier and the write of the variable"
	}
	switch {
	case h.Release == nil && h.Acquire == nil:
		return fmt.Sprintf("put %s %s and after it is read, or make that write a release and that read an acquire", fence, written)
	case h.Release == nil:
		return fmt.Sprintf("put %s %s, or make that write a release", fence, write)
	}
	return fmt.Sprintf("put %s after the read of the variable, or make that read an acquire", fence)
}

// cudaFences are the functions of CUDA C++ that compile to fence.sc.
var cudaFences = map[event.Scope]string{event.ScopeCTA: "__threadfence_block", event.ScopeGPU: "__threadfence", event.ScopeSys: "__threadfence_system"}

// SyncName names a synchronisation as PTX does: "bar.sync 0", "fence.acq_rel.gpu", "atom.acquire.cta".
func SyncName(k event.Kind, o event.Order, s event.Scope, barrier uint8, waits bool) string {
	switch k {
	case event.Arrive, event.BarrierDone:
		if !waits {
			return fmt.Sprintf("bar.arrive %d", barrier)
		}
		return fmt.Sprintf("bar.sync %d", barrier)
	case event.WarpSync:
		return "bar.warp.sync"
	case event.ClusterArrive:
		return "barrier.cluster.arrive." + o.String()
	case event.ClusterWait:
		return "barrier.cluster.wait"
	case event.GridLaunch:
		return "griddepcontrol.launch_dependents"
	case event.GridWait:
		return "griddepcontrol.wait"
	case event.DeviceOp:
		return "the launch of a kernel by the thread"
	case event.ProxyFence:
		return "fence.proxy.async"
	case event.WgmmaWait:
		return "wgmma.wait_group"
	case event.CoreWait:
		return "tcgen05.wait"
	case event.MapFence:
		return "fence.proxy.tensormap"
	case event.InitFence:
		return "fence.mbarrier_init"
	case event.Fence:
		if name, ok := cudaFences[s]; ok && o == event.SC {
			return fmt.Sprintf("fence.sc.%s (%s)", s, name)
		}
		return fmt.Sprintf("fence.%s.%s", o, s)
	}
	name := map[event.Kind]string{event.Load: "ld", event.Store: "st", event.Atomic: "atom"}[k]
	return fmt.Sprintf("%s.%s.%s", name, o, s)
}
