// Package report turns what a run found into what people and programs read: terminal text and JSON. It knows neither
// the engine nor a detector; the session fills in the model of this file.
package report

import (
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Verdict is the outcome of a run in one word. Each has its own exit code.
type Verdict string

// The verdicts.
const (
	Clean         Verdict = "clean"          // nothing at or above the --fail-on severity
	Found         Verdict = "findings"       // findings at or above the --fail-on severity
	NotChecked    Verdict = "not-checked"    // something could not be run or checked
	ProgramFailed Verdict = "program-failed" // the program under test ended with a code other than zero
)

// Report is all that a run tells.
type Report struct {
	Verdict   Verdict
	Program   *Program // nil when no host program ran
	Kernels   []Kernel
	Trace     *Trace // of a CPU program; nil for kernels
	Operators int    // of a library, computed on the host in the place of kernels and judged as work of their streams
	Skipped   []Skipped
	Findings  []Finding
	More      int // racing pairs of instructions, and other findings, beyond those that were kept; at least so many
	// Detectors are those that were attached, in the order in which they were asked for.
	Detectors []Detector
	// Baseline says that findings were compared with those of an earlier report.
	Baseline bool
	// Notes are remarks about the whole run, one sentence each: "the PTX is optimised code ...".
	Notes []string
	// Verify is what was explored, of verify; nil for other commands.
	Verify *Verify
	// Condition says, of a litmus test with a final condition, whether it holds as its quantifier says; otherwise nil.
	Condition *bool
}

// Verify is what an exploration of all executions came to.
type Verify struct {
	Verdict string `json:"verdict"` // "ok", "error", or "bounded": no error, but not all was explored
	Model   string `json:"model"`
	// Equivalence is "rf" if executions that read from the same writes count as one, and "execution" if that was asked for and each
	// was explored all the same.
	Equivalence    string          `json:"equivalence,omitempty"`
	Executions     int             `json:"executions"`   // complete
	Blocked        int             `json:"blocked"`      // in which a thread waits for ever
	Events         int             `json:"events"`       // of the longest
	Seconds        float64         `json:"seconds"`      // of the search; 0 unless times are asked for
	Memory         uint64          `json:"memory_bytes"` // at most, of the process; 0 unless times are asked for
	Outcomes       []Outcome       `json:"outcomes"`
	Counterexample *Counterexample `json:"counterexample,omitempty"` // to the condition
	Repair         *Repair         `json:"repair,omitempty"`         // with --repair, of a program with errors
}

// Counterexample is an execution that a condition forbids.
type Counterexample struct {
	Graph    string `json:"graph"`              // as text
	Schedule string `json:"schedule,omitempty"` // the file with it as an interleaving
	Drawing  string `json:"drawing,omitempty"`  // the file with it drawn
}

// Repair is a change of the source after which verify finds no error.
type Repair struct {
	Reason  string   `json:"reason,omitempty"` // why there is none
	Changes []string `json:"changes"`          // in words
	Diff    string   `json:"diff"`             // unified, against the source; "" if the change cannot be written there
	Verdict string   `json:"verdict"`          // of the changed source, as above; "" if it was not explored
}

// Trace is what the trace of a CPU program has.
type Trace struct {
	Events    int `json:"events"`
	Threads   int `json:"threads"`
	Variables int `json:"variables"`
	Syncs     int `json:"synchronisation_objects"`
}

// Outcome is a final state and the number of executions that reach it.
type Outcome struct {
	State string `json:"state"`
	Count int    `json:"count"`
}

// Program says how the host program ended.
type Program struct {
	Exit   int    // its exit code; 128 + number when a signal ended it, as a shell reports it
	Signal string // "segmentation fault"; "" when it exited by itself
}

// Kernel is one or several launches of a kernel with one shape.
type Kernel struct {
	Name     string // linker name
	Grid     event.Dim3
	Block    event.Dim3
	Launches int
	Seconds  float64 // over all launches
}

// Detector is what a detector found and what it cost.
type Detector struct {
	Name     string
	Seconds  float64 // spent in it, over all launches
	Metadata uint64  // the most bytes of metadata that it held; 0 when it does not know
	Bare     float64 // seconds of the same launches with no detector; 0 when not measured
	// Judged says that what is wrong is known; Misses are then expected races that it did not find, and FalseAlarms
	// its findings of races that are none.
	Judged              bool
	Misses, FalseAlarms int
}

// Over is the kernels' time with the detector over that with none, the making of events not counted; 0 when it was not
// measured.
func (d *Detector) Over() float64 {
	if d.Bare == 0 {
		return 0
	}
	return 1 + d.Seconds/d.Bare
}

// IDs are the findings of the detector named name, whether its own words are in the report or another's do.
func (r *Report) IDs(name string) []string {
	ids := []string{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.By(name) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// By says that the detector named name found it.
func (f *Finding) By(name string) bool { return f.Detector == name || slices.Contains(f.Also, name) }

// Skipped is something that was not run or not checked.
type Skipped struct {
	What   string // "kernel scan(int*)", "cudaGraphLaunch", "launch 7"
	Reason string // one sentence
}

// Finding is one defect, with names in place of numbers.
type Finding struct {
	ID        string // stable over schedules, seeds and machines; see Merge
	Class     detect.Class
	Kind      detect.Kind
	Severity  detect.Severity
	Detector  string
	Also      []string // other detectors that found a race between the same source places
	Predicted bool
	Apart     string `json:",omitempty"` // what tells the finding from others between the same places; "" for nothing: see Merge
	Kernel    string // linker name of the kernel of the first access
	Count     int
	Addresses int // distinct bytes; 0 when not counted
	Message   string
	Fix       string
	Accesses  []Access
	Sections  []Section // of a predicted race: the two critical sections whose order hid it, as they came; none when not known
	NoSync    bool      // no Sync is known of any access: that it is nil says nothing
	Cause     *Cause    `json:",omitempty"` // nil when it is not certain
	Group     string    `json:",omitempty"` // id of the first finding of the same cause, which may be this one; see Merge
	// Graph is the execution that shows the finding, drawn as text; "" for findings of a run.
	Graph string `json:",omitempty"`
	// Schedule is the file with the execution as an interleaving, "" for none.
	Schedule string `json:",omitempty"`
	// Drawing is the file with the execution drawn, "" for none.
	Drawing string `json:",omitempty"`
	// Fingerprint is stable over edits elsewhere in the files; see Fingerprint.
	Fingerprint string `json:",omitempty"`
	// Patch is a change of the source that mends it; nil when none is known. See Patches.
	Patch *Patch `json:",omitempty"`
	// Suppressed says who does not want to be told of it; nil when it counts.
	Suppressed *Suppressed `json:",omitempty"`
}

// OpWait is the Op of a place where threads stand rather than access memory (divergence, deadlock).
const OpWait = detect.Wait

// Access is one side of a finding: an access to memory, a host operation, or a place where threads are.
type Access struct {
	Op      detect.Op
	Order   event.Order
	Scope   event.Scope
	Space   event.Space
	Owner   string `json:",omitempty"` // of shared memory: the block whose it is, "(1,0,0)"; "" for that of the thread, without clusters
	Host    string // name of the host operation; "" for a device access
	Kernel  string // linker name
	Launch  uint32
	Rerun   string `json:",omitempty"` // the flags of the schedule by which the launch was executed once more; "" for an execution of the program's own
	Grid    event.Dim3
	Shape   event.Dim3 // of the block
	Block   event.Dim3
	Thread  event.Dim3
	Actor   string `json:",omitempty"` // a thread of a CPU program, by its name; "" for one of a launch
	Threads int    // how many threads are here; 0 and 1 mean the one of Thread
	Doing   string // for OpWait: "waits at barrier 0"; for a call what it returns
	Address uint64
	Size    int
	Object  Object
	Frames  []event.Frame        // innermost first
	Caller  []event.Frame        // the host's call stack at the launch, innermost first; nil when it is not known
	Took    *detect.Participants `json:",omitempty"` // who was on this side of the races of the finding; nil when they were not counted
	Sync    *Sync                // the nearest synchronisation that faces the other access; nil when there is none
}

// Object is the variable or allocation that an address lies in. The zero Object is none.
type Object struct {
	Name   string // linker name of a variable, or what made the allocation: "cudaMalloc #3 (4096 bytes)"
	Named  bool   // Name is a variable of the program, not a description
	Offset uint64 // of the access
	Size   uint64 // 0 when unknown
	Elem   int    // bytes of an element, when known and when elements lie in the order of their indices; 0 otherwise
	Type   string `json:",omitempty"` // of a tensor: "float32[4, 1000]"
	Freed  bool
	// Unknown says that the allocations themselves are not known: that there is no Name says nothing.
	Unknown bool `json:",omitempty"`
}

// Sync is a synchronisation operation.
type Sync struct {
	What   string // "bar.sync 0"
	Frames []event.Frame
}
