// Package detect holds what detectors share: the Detector contract, findings, vector clocks and shadow memory.
// It knows no detector; internal/detect/all lists them.
package detect

import (
	"fencepost.dev/fencepost/internal/event"
)

// Spec is a detector as a value in a list.
type Spec struct {
	Name   string
	Doc    string // one sentence
	Source string // the paper and section it implements
	Needs  event.Needs
	// Lockstep says that the detector judges warps that run in lockstep, as before Volta: the run is scheduled so.
	Lockstep bool
	Options  []Option
	New      func(Config) Detector
}

// Option is a choice that a detector leaves to its user: NAME:OPTION=VALUE on the command line.
type Option struct {
	Name   string
	Doc    string   // one sentence
	Values []string // the first is the default
}

// Config is what a detector may know of the run.
type Config struct {
	Model Model
	// Places tells where places are, for Arms. Detectors tell findings apart by Place alone.
	Places event.Places
	// MaxFindings is how many findings to keep, 0 for DefaultFindings: see Shortlist.
	MaxFindings int
	// Watch says which races to report; nil: all.
	Watch *Watch
	// Options are chosen values by option name, each one of the option's Values; see Spec.Option.
	Options map[string]string
}

// Option is the value of the option of that name: the chosen one or the default.
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

// Arms are the arms of branches on which a place lies. Of a place that is unknown they are so chosen that Parted holds.
func (c *Config) Arms(place uint32) []event.Arm {
	if c.Places == nil || place == 0 {
		return []event.Arm{{Taken: 3}}
	}
	return c.Places.Arms(place)
}

// Updates is event.Places.Updates, false of a place that is unknown.
func (c *Config) Updates(place uint32) (load uint32, ok bool) {
	if c.Places == nil || place == 0 {
		return 0, false
	}
	return c.Places.Updates(place)
}

// Discards is event.Places.Discards, false of a place that is unknown.
func (c *Config) Discards(place uint32) bool {
	return c.Places != nil && place != 0 && c.Places.Discards(place)
}

// Dereferences is event.Places.Dereferences, false of a place that is unknown.
func (c *Config) Dereferences(place uint32) bool {
	return c.Places != nil && place != 0 && c.Places.Dereferences(place)
}

// Model selects how volatile accesses and fences are read (design: "What a race is").
type Model uint8

// The models.
const (
	ModelCUDA Model = iota // volatile builds patterns and races
	ModelPTX               // volatile is relaxed.sys
	ModelHRF               // a producer fence suffices for strong consumers
)

// Detector consumes the events of a run and judges it. An error of the detector itself is a panic("BUG: ...").
type Detector interface {
	event.Sink
	// Findings gives what was found so far, one for each pair of places and kind, in a deterministic order.
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

// Kind is the stable id of what is wrong.
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
	Unordered         Kind = "unordered"  // no nearer cause: nothing orders the two
	MixedSize         Kind = "mixed-size" // two atomic operations that overlap in part only are not morally strong
	InterKernel       Kind = "inter-kernel"
	CopyNotAwaited    Kind = "copy-not-awaited"        // an asynchronous copy was not waited for
	WaitBeforeCommit  Kind = "wait-before-commit"      // the wait came before the copy was committed to a group
	CoreNotAwaited    Kind = "tensor-core-not-awaited" // an operation of the tensor cores was not waited for
	GroupPending      Kind = "group-pending"           // the wait left the copy's group pending
	SourceWait        Kind = "source-wait"             // the wait was for the source of the copy to be read alone
	WrongPhase        Kind = "wrong-phase"             // the wait was for another phase of the mbarrier than that of the copy
	Liveness          Kind = "liveness"                // a spin that no fair execution leaves; of fencepost verify
	StageReuse        Kind = "stage-reuse"             // a buffer is written again while it may still be accessed
	MissingProxyFence Kind = "missing-proxy-fence"     // an access through the async proxy may not see what one through the generic proxy did
	MissingMapFence   Kind = "missing-tensormap-fence" // a tensor copy may not see how its tensor map was changed
	ReadOnlyLoad      Kind = "read-only-load"          // ld.global.nc of what the same launch writes
)

// The kinds of what detectors find that is no race.
const (
	UninitialisedRead Kind = "uninitialised-read" // of memory that nothing has written
	ForeignPointer    Kind = "foreign-pointer"    // to local memory of another thread, or shared memory of another block
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
	Wait     Op = "wait" // no access: a place where threads are
	Call     Op = "call" // no access: a call of the API
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
	Owner   *event.Dim3 // of shared memory: the block whose it is, of a launch with clusters; nil otherwise
	Async   bool        // by an asynchronous copy
	Texture bool        // a texture fetch or a surface read
	Updates bool        // a store of what was computed from what was there: event.Places.Updates
	Load    uint32      // where it was loaded
	Doing   string      // of Wait: "arrives"
	// Sync is the synchronisation nearest to the access on the side that faces the other one: the next by this thread
	// after the earlier access, the last before the later access. Nil when there is none.
	Sync *Sync
	// Took is who was on this side of the races of the finding; nil when the detector does not count them.
	Took *Participants
}

// Sync is a synchronisation operation, for messages.
type Sync struct {
	Place uint32
	What  string // "bar.sync 0", "fence.acq_rel.gpu", "atom.acquire.cta", ...
	Lanes uint32 // the lanes that a bar.warp.sync ordered with each other
}

// Section is a critical section.
type Section struct {
	Lock     uint64 // address of the lock
	Shared   bool   // in shared memory
	From, To uint32 // places of what completed the acquire, and of the release; To is 0 when it was not seen
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
	Count     int       // racing pairs of dynamic accesses seen (for a race); occurrences otherwise
	Addresses int       // distinct bytes concerned; 0 when not counted
	Message   string    // one sentence: what is wrong and why nothing orders it
	Fix       string    // one sentence: what would order it
	Accesses  []Access  // the earlier first
	Sections  []Section // of a predicted race: the two critical sections whose order hid it, the earlier first; none when not known
	Flag      [2]uint32 // places of the write and the read by which a too weak synchronisation passes; 0 where none is known
	NoSync    bool      // the detector does not know the synchronisation around accesses: a Sync that is nil says nothing
}

// Capped is a detector that keeps at most Config.MaxFindings findings. More gives how many others there are, or at least are.
type Capped interface{ More() (n int, atLeast bool) }

// Metered is a detector that knows how much memory its metadata takes, in bytes.
type Metered interface{ MemoryBytes() uint64 }

// Noted is a detector with something to say about the run: what it did not check, a sentence each.
type Noted interface{ Notes() []string }
