package detect

import "fencepost.dev/fencepost/internal/event"

// Side is what one access of a racing pair is, as far as its classification asks.
type Side struct {
	Write    bool
	Atomic   bool // atom, red, or a load or store that is relaxed or stronger
	RMW      bool // atom or red
	Volatile bool
	Updates  bool // a store of what was computed from the same address: event.Places.Updates
	Wide     bool // atomic, and its scope reaches beyond the block
	System   bool // atomic, and its scope reaches beyond the device; asked for only with OtherDevice
	Cluster  bool // atomic, and its scope ends at the cluster, which has several blocks
	Staged   bool // a host operation that is synchronous but by the letter (event.HostOp)
	Unit     int  // bytes of the scalar that the access reads or writes as one
}

// Relation is the relation of two accesses that overlap in bytes.
type Relation struct {
	SameLaunch  bool
	SameBlock   bool
	SameCluster bool // asked for only with Side.Cluster
	SameWarp    bool
	SameEvent   bool // two lanes of one execution of one instruction
	Lockstep    bool // same warp, and both lanes took part in one of the two executions, or they were not Parted
	SameValue   bool // both write, the same value
	OtherDevice bool // by threads of two devices
	Nested      bool // of two launches, one at least of which a thread made
	Assumed     bool // ordered by what is assumed of host threads (event.HostOp)
}

// Parted says that lanes of a warp can be at two places, one each, after a branch has parted them and before they reconverge.
// If they cannot, a warp in lockstep that reconverges at immediate post-dominators executes one place before the other.
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

// Category is why two unordered accesses race, from the mildest to the gravest. It fixes class, severity and,
// but for CrossBlock and SameBlock, the kind of the finding.
type Category uint8

// The categories. A pair of places with races of several categories is reported under the gravest.
const (
	NoRace          Category = iota
	SameValueRace            // both write the same value
	LockstepRace             // lockstep warps would order the two
	VolatileRace             // both volatile, or one volatile and the other atomic
	StagedCopy               // a copy that is synchronous but by the letter, and a kernel of another stream
	HostThreads              // ordered if the threads of the host are, by what cannot be seen of them
	MixedSizeRMW             // two read-modify-writes that overlap in part: atomic by the manual, but ordering nothing
	CopyProxyFence           // as NoProxyFence, where cp.async is what the generic proxy did
	OneInstruction           // two lanes of one instruction
	LostUpdate               // two lanes of one instruction, and each writes the same, which it has computed from what was there
	NoProxyFence             // ordered, but no fence between the generic proxy and the async proxy
	NoMapFence               // ordered, but no fence between the generic proxy and the tensormap proxy
	SameBlock                // one block
	CrossBlock               // different blocks of one launch: no barrier would help
	AtomicWithPlain          // one atomic, one plain
	MixedSizeRace            // two atomic accesses that overlap in part
	ScopeRace                // two atomic accesses, a scope excludes the other thread
	CopyPending              // an asynchronous copy and what was done before it was waited for
	CrossDevice              // launches on different devices
	CrossLaunch              // different launches of one device, or the host side
	NonCoherentLoad          // a load through the read-only cache of what the launch writes: wrong even when ordered
)

// Severity is that of every race of the category.
func (c Category) Severity() Severity {
	if c <= CopyProxyFence {
		return Warning
	}
	return Error
}

// Kind is the kind of races of the category when nothing more is known of them.
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

// Classify judges two accesses by different threads that overlap in bytes and that nothing orders. The run had a before b.
// NoRace: they do not conflict, or they are morally strong.
func Classify(a, b Side, r Relation) Category {
	if !a.Write && !b.Write {
		return NoRace
	}
	if a.Atomic && b.Atomic {
		return classifyAtomics(a, b, r)
	}
	volatile := a.Volatile && (b.Volatile || b.Atomic) || a.Atomic && b.Volatile
	switch {
	case volatile && r.Nested && !r.OtherDevice && !r.Assumed: // a kernel and those that it launches hand over as threads of one kernel do
		return VolatileRace
	case !r.SameLaunch && a.Staged: // what comes before the copy, it meets when it begins
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

// launches is the category of a race of two launches, or with the host side.
func (r *Relation) launches() Category {
	if r.Assumed {
		return HostThreads
	}
	if r.OtherDevice {
		return CrossDevice
	}
	return CrossLaunch
}
