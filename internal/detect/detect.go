// Package detect holds what detectors share: the Detector contract, findings and the classification of races. It does
// not know any detector; internal/detect/all lists them.
package detect

import (
	"fencepost.dev/fencepost/internal/event"
)

// Spec describes a detector. Detectors are values of this type in a list.
type Spec struct {
	Name   string
	Doc    string // one sentence
	Source string // the paper and section it implements
	Needs  event.Needs
	// Lockstep says that the detector assumes warps that run in lockstep, as before Volta. The run is then scheduled
	// that way.
	Lockstep bool
	Options  []Option
	New      func(Config) Detector
}

// Option is an option of a detector: NAME:OPTION=VALUE on the command line.
type Option struct {
	Name   string
	Doc    string   // one sentence
	Values []string // the first is the default
}

// Config is what a detector knows of the run.
type Config struct {
	Model Model
	// Places describes places in the code: see Arms, Updates and so on. Detectors distinguish findings by Place alone.
	Places event.Places
	// MaxFindings is the number of findings to keep; 0: DefaultFindings. See Shortlist.
	MaxFindings int
	// Watch selects the races to report; nil: all.
	Watch *Watch
	// Options are the chosen values by option name. Each is one of the option's Values. See Spec.Option.
	Options map[string]string
}

// Option returns the value of an option: the chosen one or the default.
func (s *Spec) Option(c Config, name string) string {
	for _, o := range s.Options {
		if o.Name == name {
			if v, ok := c.Options[name]; ok {
				return v
			}
			return o.Values[0]
		}
	}
	panic("BUG: detector " + s.Name + " has no option " + name)
}

// Arms returns the arms of branches that a place lies on. For an unknown place it gives arms for which Parted returns
// true.
func (c *Config) Arms(place uint32) []event.Arm {
	if c.Places == nil || place == 0 {
		return []event.Arm{{Taken: 3}}
	}
	return c.Places.Arms(place)
}

// Frames is event.Places.Frames; nil for an unknown place.
func (c *Config) Frames(place uint32) []event.Frame {
	if c.Places == nil || place == 0 {
		return nil
	}
	return c.Places.Frames(place)
}

// Updates is event.Places.Updates; false for an unknown place.
func (c *Config) Updates(place uint32) (load uint32, ok bool) {
	if c.Places == nil || place == 0 {
		return 0, false
	}
	return c.Places.Updates(place)
}

// Discards is event.Places.Discards; false for an unknown place.
func (c *Config) Discards(place uint32) bool {
	return c.Places != nil && place != 0 && c.Places.Discards(place)
}

// Dereferences is event.Places.Dereferences; false for an unknown place.
func (c *Config) Dereferences(place uint32) bool {
	return c.Places != nil && place != 0 && c.Places.Dereferences(place)
}

// Model selects the interpretation of volatile accesses and fences.
type Model uint8

// The models.
const (
	ModelCUDA Model = iota // volatile accesses build patterns, but race
	ModelPTX               // volatile is relaxed.sys
	ModelHRF               // a producer fence suffices for strong consumers
)

// Detector judges a run from its events. An internal error of a detector is a panic("BUG: ...").
type Detector interface {
	event.Sink
	// Findings returns what was found so far, one finding for each pair of places and kind, in a deterministic order.
	Findings() []Finding
}

// Class groups kinds.
type Class string

// The classes of the JSON report.
const (
	Race        Class = "race"
	MemoryFault Class = "memory"
	Divergence  Class = "divergence"
	Deadlock    Class = "deadlock"
	API         Class = "api"
)

// Kind is the stable identifier of a kind of defect.
type Kind string

// The kinds of races.
const (
	MissingBarrier    Kind = "missing-barrier"
	MissingFence      Kind = "missing-fence"
	AtomicScope       Kind = "insufficient-atomic-scope"
	FenceScope        Kind = "insufficient-fence-scope"
	LockScope         Kind = "insufficient-lock-scope"
	MissingLock       Kind = "missing-lock"
	MixedAtomic       Kind = "atomic-mixed-with-plain"
	WarpSynchronous   Kind = "warp-synchronous"
	SameValue         Kind = "same-value"
	VolatileOnly      Kind = "volatile"
	Unordered         Kind = "unordered"  // no more specific cause: nothing orders the two
	MixedSize         Kind = "mixed-size" // two atomic operations that overlap only partly are not morally strong
	InterKernel       Kind = "inter-kernel"
	CopyNotAwaited    Kind = "copy-not-awaited"        // an asynchronous copy was not waited for
	WaitBeforeCommit  Kind = "wait-before-commit"      // the wait came before the copy was committed to a group
	CoreNotAwaited    Kind = "tensor-core-not-awaited" // an operation of the tensor cores was not waited for
	GroupPending      Kind = "group-pending"           // the wait left the copy's group pending
	SourceWait        Kind = "source-wait"             // the wait only covered the reading of the copy's source
	WrongPhase        Kind = "wrong-phase"             // the wait was for a phase of the mbarrier other than the copy's
	Liveness          Kind = "liveness"                // a spin loop that no fair execution leaves; reported by fencepost verify
	StageReuse        Kind = "stage-reuse"             // a buffer is overwritten while it may still be accessed
	MissingProxyFence Kind = "missing-proxy-fence"     // an access through the async proxy may not see an access through the generic proxy
	MissingMapFence   Kind = "missing-tensormap-fence" // a tensor copy may not see a change of its tensor map
	ReadOnlyLoad      Kind = "read-only-load"          // ld.global.nc of bytes that the same launch writes
)

// The kinds of findings that are not races.
const (
	UninitialisedRead Kind = "uninitialised-read" // a read of memory that nothing has written
	ForeignPointer    Kind = "foreign-pointer"    // a pointer to local memory of another thread, or to shared memory of another block
)

// RaceKinds lists the kinds of races.
func RaceKinds() []Kind {
	return []Kind{MissingBarrier, MissingFence, AtomicScope, FenceScope, LockScope, MissingLock, MixedAtomic, WarpSynchronous,
		SameValue, VolatileOnly, Unordered, MixedSize, InterKernel, CopyNotAwaited, CoreNotAwaited, WaitBeforeCommit, GroupPending, SourceWait, WrongPhase, StageReuse, MissingProxyFence, MissingMapFence, ReadOnlyLoad}
}

// Severity orders findings.
type Severity uint8

// The severities.
const (
	Info Severity = iota
	Warning
	Error
)

func (s Severity) String() string { return [...]string{"info", "warning", "error"}[s] }

// Op is what an access does.
type Op string

// The operations of the JSON report.
const (
	Read     Op = "read"
	Write    Op = "write"
	AtomicOp Op = "atomic"
	Wait     Op = "wait" // not an access: a place where threads wait
	Call     Op = "call" // not an access: a call of the API
)

// Access is one side of a finding.
type Access struct {
	Op      Op
	Order   event.Order
	Scope   event.Scope
	Space   event.Space
	Place   uint32
	Host    string // name of the host operation; "" for a device access
	Launch  event.Launch
	Warp    uint32
	Lane    int
	Address uint64
	Size    int
	Owner   *event.Dim3 // for shared memory in a launch with clusters: the block that it belongs to; otherwise nil
	Async   bool        // by an asynchronous copy
	Texture bool        // a texture fetch or a surface read
	Updates bool        // a store of a value computed from the previous one: event.Places.Updates
	Load    uint32      // of an update: the place of the load
	Doing   string      // for Wait: "arrives"
	// Sync is the synchronisation nearest to the access on the side of the other access: for the earlier access the
	// next one by its thread, for the later access the last one. It is nil if there is none.
	Sync *Sync
	// Took is the threads on this side of the finding's races; nil if the detector does not count them.
	Took *Participants
}

// Sync is a synchronisation operation, for messages.
type Sync struct {
	Place uint32
	What  string // "bar.sync 0", "fence.acq_rel.gpu", "atom.acquire.cta", ...
	Lanes uint32 // the lanes that a bar.warp.sync orders
}

// Section is a critical section.
type Section struct {
	Lock     uint64 // address of the lock
	Shared   bool   // in shared memory
	From, To uint32 // places of the operation that completed the acquire, and of the release; To is 0 if the release was not seen
	Launch   event.Launch
	Warp     uint32
	Lane     int
}

// Finding is one defect.
type Finding struct {
	Class     Class
	Kind      Kind
	Severity  Severity
	Detector  string
	Predicted bool
	Count     int       // for a race, the racing pairs of dynamic accesses seen; otherwise the occurrences
	Addresses int       // distinct bytes concerned; 0 if not counted
	Message   string    // one sentence: what is wrong and why nothing orders it
	Fix       string    // one sentence: what would order it
	Accesses  []Access  // the earlier one first
	Sections  []Section // for a predicted race: the two critical sections whose order hid it, the earlier one first; empty if not known
	Flag      [2]uint32 // places of the write and the read that a too weak synchronisation goes through; 0 if none is known
	NoSync    bool      // the detector does not record the synchronisation around accesses: a nil Sync means nothing
}

// Capped is a detector that keeps at most Config.MaxFindings findings. More returns the number of other findings; if
// atLeast, there are more than n.
type Capped interface{ More() (n int, atLeast bool) }

// Metered is a detector that reports the memory of its metadata in bytes.
type Metered interface{ MemoryBytes() uint64 }

// Noted is a detector that reports what it did not check: one sentence for each limitation.
type Noted interface{ Notes() []string }
