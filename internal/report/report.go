// Package report converts the results of a run to the forms that people and programs read: terminal text, JSON and
// others. It depends neither on the engine nor on a detector. The session fills in the model of this file.
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
	Clean         Verdict = "clean"          // nothing with the --fail-on severity or more
	Found         Verdict = "findings"       // findings with the --fail-on severity or more
	NotChecked    Verdict = "not-checked"    // something could not be run or checked
	ProgramFailed Verdict = "program-failed" // the program under test ended with a code other than zero
)

// Report is the complete result of a run.
type Report struct {
	Verdict   Verdict
	Program   *Program // nil if no host program ran
	Kernels   []Kernel
	Trace     *Trace // of a CPU program; nil for kernels
	Operators int    // operators of a library that the host computed in place of kernels; judged as work of their streams
	Skipped   []Skipped
	Findings  []Finding
	More      int // lower bound of the number of racing pairs of instructions, and other findings, that were not kept
	// Detectors are the attached detectors, in the order in which they were requested.
	Detectors []Detector
	// Baseline says that findings were compared with those of an earlier report.
	Baseline bool
	// Notes are remarks about the whole run, one sentence each: "the PTX is optimised code ...".
	Notes []string
	// Verify is the result of verify; nil for other commands.
	Verify *Verify
	// Condition reports, for a litmus test with a final condition, whether the condition holds; otherwise it is nil.
	Condition *bool
}

// Verify is the result of an exploration of all executions.
type Verify struct {
	Verdict string `json:"verdict"` // "ok", "error", or "bounded": no error, but not everything was explored
	Model   string `json:"model"`
	// Equivalence is "rf" if executions that read from the same writes count as one, and "execution" if that was
	// requested but each was explored.
	Equivalence    string          `json:"equivalence,omitempty"`
	Executions     int             `json:"executions"`   // complete
	Blocked        int             `json:"blocked"`      // in which a thread waits forever
	Events         int             `json:"events"`       // of the longest
	Seconds        float64         `json:"seconds"`      // of the search; 0 unless times are requested
	Memory         uint64          `json:"memory_bytes"` // greatest size of the process; 0 unless times are requested
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
	Reason  string   `json:"reason,omitempty"` // why there is no repair
	Changes []string `json:"changes"`          // in words
	Diff    string   `json:"diff"`             // unified, against the source; "" if the change cannot be written there
	Verdict string   `json:"verdict"`          // of the changed source, as above; "" if it was not explored
}

// Trace describes the trace of a CPU program.
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
	Exit   int    // its exit code; 128 + number if a signal ended it, as in a shell
	Signal string // "segmentation fault"; "" if it exited by itself
}

// Kernel is one or several launches of a kernel with one shape.
type Kernel struct {
	Name     string // linker name
	Grid     event.Dim3
	Block    event.Dim3
	Launches int
	Seconds  float64 // over all launches
}

// Detector is the findings and costs of a detector.
type Detector struct {
	Name     string
	Seconds  float64 // spent in it, over all launches
	Metadata uint64  // the greatest size of its metadata in bytes; 0 if unknown
	Bare     float64 // seconds of the same launches without a detector; 0 if not measured
	// Judged says that the true races are known. Misses are then expected races that it did not find, and FalseAlarms
	// its findings that are not races.
	Judged              bool
	Misses, FalseAlarms int
}

// Over is the kernels' time with the detector divided by that without, excluding the making of events; 0 if it was not
// measured.
func (d *Detector) Over() float64 {
	if d.Bare == 0 {
		return 0
	}
	return 1 + d.Seconds/d.Bare
}

// IDs are the findings of the detector with a name, whether they are reported in its words or in those of another.
func (r *Report) IDs(name string) []string {
	ids := []string{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.By(name) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// By reports whether the detector with a name found it.
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
	Apart     string `json:",omitempty"` // distinguishes the finding from others between the same places; "" if nothing does: see Merge
	Kernel    string // linker name of the kernel of the first access
	Count     int
	Addresses int // distinct bytes; 0 if not counted
	Message   string
	Fix       string
	Accesses  []Access
	Sections  []Section // of a predicted race: the two critical sections whose order hid it, in their order; none if not known
	NoSync    bool      // no Sync is known for any access: a nil Sync then means nothing
	Cause     *Cause    `json:",omitempty"` // nil if it is not certain
	Group     string    `json:",omitempty"` // id of the first finding of the same cause, which may be this one; see Merge
	// Graph is the execution that shows the finding, drawn as text; "" for findings of a run.
	Graph string `json:",omitempty"`
	// Schedule is the file with the execution as an interleaving, "" for none.
	Schedule string `json:",omitempty"`
	// Drawing is the file with the execution drawn, "" for none.
	Drawing string `json:",omitempty"`
	// Fingerprint is stable over edits elsewhere in the files; see Fingerprint.
	Fingerprint string `json:",omitempty"`
	// Patch is a change of the source that fixes it; nil if none is known. See Patches.
	Patch *Patch `json:",omitempty"`
	// Suppressed says what suppresses the finding; nil if it counts.
	Suppressed *Suppressed `json:",omitempty"`
}

// OpWait is the Op of a place where threads wait rather than access memory (divergence, deadlock).
const OpWait = detect.Wait

// Access is one side of a finding: an access to memory, a host operation, or a place where threads are.
type Access struct {
	Op      detect.Op
	Order   event.Order
	Scope   event.Scope
	Space   event.Space
	Owner   string `json:",omitempty"` // of shared memory: the block that owns it, "(1,0,0)"; "" for the thread's own block, without clusters
	Host    string // name of the host operation; "" for a device access
	Kernel  string // linker name
	Launch  uint32
	Rerun   string `json:",omitempty"` // the flags of the schedule of a further execution of the launch; "" for an execution of the program
	Grid    event.Dim3
	Shape   event.Dim3 // of the block
	Block   event.Dim3
	Thread  event.Dim3
	Actor   string `json:",omitempty"` // a thread of a CPU program, by its name; "" for one of a launch
	Threads int    // number of threads here; 0 and 1 mean only Thread
	Doing   string // for OpWait: "waits at barrier 0"; for a call its result
	Address uint64
	Size    int
	Object  Object
	Frames  []event.Frame        // innermost first
	Caller  []event.Frame        // the host's call stack at the launch, innermost first; nil if it is not known
	Took    *detect.Participants `json:",omitempty"` // the threads on this side of the races of the finding; nil if they were not counted
	Sync    *Sync                // the nearest synchronisation in the direction of the other access; nil if there is none
}

// Object is the variable or allocation that contains an address. The zero Object is none.
type Object struct {
	Name   string // linker name of a variable, or the call that allocated it: "cudaMalloc #3 (4096 bytes)"
	Named  bool   // Name is a variable of the program, not a description
	Offset uint64 // of the access
	Size   uint64 // 0 when unknown
	Elem   int    // bytes of an element, if known and if elements are in the order of their indices; 0 otherwise
	Type   string `json:",omitempty"` // of a tensor: "float32[4, 1000]"
	Freed  bool
	// Unknown says that the allocations themselves are not known: an empty Name then means nothing.
	Unknown bool `json:",omitempty"`
}

// Sync is a synchronisation operation.
type Sync struct {
	What   string // "bar.sync 0"
	Frames []event.Frame
}
