package detect

import "fencepost.dev/fencepost/internal/event"

// Side is one access of a racing pair, as far as its classification needs it.
type Side struct {
	Write    bool
	Atomic   bool // atom, red, or a load or store that is relaxed or stronger
	RMW      bool // atom or red
	Volatile bool
	Updates  bool // a store of a value computed from the value at the same address: event.Places.Updates
	Wide     bool // atomic, and its scope reaches beyond the block
	System   bool // atomic, and its scope reaches beyond the device; used only with OtherDevice
	Cluster  bool // atomic, and its scope ends at the cluster, which has several blocks
	Staged   bool // a host operation that is synchronous in practice but not by the manual (event.HostOp)
	Unit     int  // size in bytes of the scalar that the access reads or writes as one
}

// Relation is the relation of two accesses that overlap in bytes.
type Relation struct {
	SameLaunch  bool
	SameBlock   bool
	SameCluster bool // used only with Side.Cluster
	SameWarp    bool
	SameEvent   bool // two lanes of one execution of one instruction
	Lockstep    bool // same warp, and both lanes took part in one of the two executions or they were not Parted
	SameValue   bool // both write the same value
	OtherDevice bool // by threads on two devices
	Nested      bool // of two launches, at least one of them made by a thread
	Assumed     bool // ordered by what is assumed of host threads (event.HostOp)
}

// Parted reports whether a branch may part lanes of a warp so that, before they reconverge, one is at the place with
// arms p and another at the place with arms q. If not, a warp in lockstep that reconverges at immediate post-dominators
// executes one of the two places before the other.
func Parted(p, q []event.Arm) bool {
	for _, x := range p {
		for _, y := range q {
			if all := x.Taken | y.Taken; x.Branch == y.Branch && all&(all-1) != 0 {
				return true
			}
		}
	}
	return false
}

// Category is the reason why two unordered accesses race. Categories are ordered from the mildest to the gravest. The
// category determines the class and the severity of the finding, and the kind unless it is Refined.
type Category uint8

// The categories. A pair of places with races of several categories is reported under the gravest.
const (
	NoRace          Category = iota
	SameValueRace            // both write the same value
	LockstepRace             // lockstep warps would order the two accesses
	VolatileRace             // both volatile, or one volatile and the other atomic
	StagedCopy               // a copy that is synchronous in practice but not by the manual, and a kernel of another stream
	HostThreads              // ordered only if the threads of the host are ordered by means that are not visible
	MixedSizeRMW             // two read-modify-writes that overlap partly: atomic by the manual, but they do not synchronise
	CopyProxyFence           // like NoProxyFence, but the access through the generic proxy is by cp.async
	OneInstruction           // two lanes of one instruction
	LostUpdate               // two lanes of one instruction that write the same value, each computed from the previous value
	NoProxyFence             // ordered, but no fence lies between the generic proxy and the async proxy
	NoMapFence               // ordered, but no fence lies between the generic proxy and the tensormap proxy
	SameBlock                // threads of one block
	CrossBlock               // threads of different blocks of one launch: a CTA barrier would not help
	AtomicWithPlain          // one access is atomic, the other plain
	MixedSizeRace            // two atomic accesses that overlap partly
	ScopeRace                // two atomic accesses; the scope of one excludes the other thread
	CopyPending              // an asynchronous copy, and an access before it was waited for
	CrossDevice              // launches on different devices
	CrossLaunch              // different launches on one device, or a launch and the host
	NonCoherentLoad          // a load through the read-only cache of bytes that the launch writes: wrong even if ordered
)

// Severity returns the severity of the category's races.
func (c Category) Severity() Severity {
	if c <= CopyProxyFence {
		return Warning
	}
	return Error
}

// Kind returns the kind of the category's races if nothing more is known about them.
func (c Category) Kind() Kind {
	switch c {
	case VolatileRace:
		return VolatileOnly
	case LockstepRace:
		return WarpSynchronous
	case MixedSizeRMW, MixedSizeRace:
		return MixedSize
	case SameValueRace:
		return SameValue
	case SameBlock:
		return MissingBarrier
	case AtomicWithPlain:
		return MixedAtomic
	case ScopeRace:
		return AtomicScope
	case CrossLaunch, CrossDevice, StagedCopy, HostThreads:
		return InterKernel
	case NonCoherentLoad:
		return ReadOnlyLoad
	case CopyPending:
		return CopyNotAwaited
	case NoProxyFence, CopyProxyFence:
		return MissingProxyFence
	case NoMapFence:
		return MissingMapFence
	}
	return Unordered
}

// Classify classifies two accesses by different threads that overlap in bytes and are not ordered. In the execution, a
// came before b. The result is NoRace if the two do not conflict or are morally strong.
func Classify(a, b Side, r Relation) Category {
	if !a.Write && !b.Write {
		return NoRace
	}
	if a.Atomic && b.Atomic {
		return classifyAtomics(a, b, r)
	}
	volatile := a.Volatile && (b.Volatile || b.Atomic) || a.Atomic && b.Volatile
	switch {
	case volatile && r.Nested && !r.OtherDevice && !r.Assumed: // a kernel and the kernels that its threads launch synchronise like threads of one kernel
		return VolatileRace
	case !r.SameLaunch && a.Staged: // only if the copy is first: an operation before the copy is complete when the copy begins
		return StagedCopy
	case !r.SameLaunch:
		return r.launches()
	case r.SameValue && a.Write && b.Write && !a.Volatile && !b.Volatile && !a.Atomic && !b.Atomic:
		if r.SameEvent && a.Updates {
			return LostUpdate
		}
		return SameValueRace
	case r.SameWarp && !r.SameEvent && r.Lockstep:
		return LockstepRace
	case volatile:
		return VolatileRace
	case a.Atomic || b.Atomic:
		return AtomicWithPlain
	case r.SameEvent:
		return OneInstruction
	case r.SameBlock:
		return SameBlock
	}
	return CrossBlock
}

func classifyAtomics(a, b Side, r Relation) Category {
	inScope := r.SameLaunch && r.SameBlock || a.Wide && b.Wide && (!r.OtherDevice || a.System && b.System) && (!a.Cluster && !b.Cluster || r.SameCluster)
	switch {
	case inScope && a.Unit == b.Unit:
		return NoRace
	case !r.SameLaunch && (inScope || !r.OtherDevice || r.Assumed):
		return r.launches()
	case !inScope:
		return ScopeRace
	case a.RMW && b.RMW:
		return MixedSizeRMW
	}
	return MixedSizeRace
}

// launches returns the category of a race between two launches, or with the host.
func (r *Relation) launches() Category {
	if r.Assumed {
		return HostThreads
	}
	if r.OtherDevice {
		return CrossDevice
	}
	return CrossLaunch
}
