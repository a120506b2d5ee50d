// Package cpu is the interface between traces of CPU programs and the detectors that judge them, as internal/event is
// for kernels. The two have threads and accesses in common and little else, because a CPU event belongs to one thread
// and names the object that it accesses.
//
// Events come in the order in which they took effect. Threads, variables, synchronisation objects and locations are
// numbers from 0, each assigned in the order of first use, so that a consumer may keep its state in slices.
package cpu

import (
	"fmt"
	"slices"
)

// Op is the operation of an event.
type Op uint8

// The operations. Object is a variable for accesses, a thread for Fork and Join, and else a synchronisation object.
const (
	None          Op = iota // orders nothing: an inner acquire or release of a lock that the thread already holds
	Read                    // of a variable
	Write                   // of a variable
	Acquire                 // of a lock, exclusively
	Release                 // of a lock
	AcquireShared           // of a read-write lock, with other readers
	ReleaseShared           // of a read-write lock
	AtomicRead              // of an atomic or volatile variable: ordered after all earlier writes of it
	AtomicWrite             // of an atomic or volatile variable
	AtomicUpdate            // a read-modify-write: both
	Fork                    // of a thread that has made no event yet
	Join                    // of a thread that makes no further event
	BarrierEnter            // the thread has arrived at a barrier
	BarrierLeave            // the thread goes on: ordered after all that entered for the same crossing
	Begin                   // first of a thread
	End                     // last of a thread

	// Only recorded programs have the following operations. An atomic access of a recorded program is two events: an
	// access of the variable, and an operation that orders.
	ReadAtomic    // of a variable: conflicts with writes that are not atomic
	WriteAtomic   // of a variable: conflicts with accesses that are not atomic
	Part          // the variable is new and part of the one whose number is Location: it inherits that history
	Forget        // the memory of the variable is reused: its history ends
	StoreRelease  // of an atomic variable: a read is ordered after this and no longer after earlier writes
	StoreRelaxed  // of an atomic variable: a read is ordered after what precedes the thread's last FenceRelease
	ReadRelaxed   // of an atomic variable: a later FenceAcquire is an AtomicRead of the value read
	UpdateAcquire // of an atomic variable: a read-modify-write; a read is ordered after it and those before it
	UpdateRelease // likewise
	UpdateRelaxed // likewise
	FenceAcquire
	FenceRelease
	Ops
)

// Access reports whether the operation is an access to a variable.
func (o Op) Access() bool { return o == Read || o == Write || o == ReadAtomic || o == WriteAtomic }

// Writes reports whether the access writes.
func (o Op) Writes() bool { return o == Write || o == WriteAtomic }

var opNames = [Ops]string{"none", "read", "write", "acquire", "release", "acquire-shared", "release-shared", "atomic-read",
	"atomic-write", "atomic-update", "fork", "join", "barrier-enter", "barrier-leave", "begin", "end",
	"read-atomic", "write-atomic", "part", "forget", "store-release", "store-relaxed", "read-relaxed", "update-acquire", "update-release",
	"update-relaxed", "fence-acquire", "fence-release"}

func (o Op) String() string { return opNames[o] }

// ParseOp returns the operation with a name.
func ParseOp(name string) (Op, bool) {
	for op := Read; op < Ops; op++ {
		if opNames[op] == name {
			return op, true
		}
	}
	return None, false
}

// OpNames lists the names that ParseOp knows.
func OpNames() []string { return slices.Clone(opNames[Read:]) }

// Table is a kind of object.
type Table uint8

// The tables of objects.
const (
	NoObject Table = iota
	Threads
	Variables
	Syncs
	Locations
	Tables
)

var opTables = [32]Table{None: Syncs, Read: Variables, Write: Variables, Acquire: Syncs, Release: Syncs, AcquireShared: Syncs,
	ReleaseShared: Syncs, AtomicRead: Syncs, AtomicWrite: Syncs, AtomicUpdate: Syncs, Fork: Threads, Join: Threads,
	BarrierEnter: Syncs, BarrierLeave: Syncs, ReadAtomic: Variables, WriteAtomic: Variables, Part: Variables, Forget: Variables,
	StoreRelease: Syncs, StoreRelaxed: Syncs, ReadRelaxed: Syncs, UpdateAcquire: Syncs, UpdateRelease: Syncs, UpdateRelaxed: Syncs}

// Table is the kind of the Object of an event with this operation.
func (o Op) Table() Table { return opTables[o&31] }

// MaxThreads bounds the number of threads of a trace: clocks have an entry for each.
const MaxThreads = 4096

// TaskName is the name of a thread that is an explicit task of OpenMP. Any thread of the program may have executed it.
func TaskName(thread uint16) string { return fmt.Sprintf("task%d", thread) }

// Event is one operation of one thread.
type Event struct {
	Object   uint32
	Location uint32 // place in the program, from 1; 0 is unknown
	Thread   uint16
	Op       Op
}

// Race is an access that conflicts with an earlier one that the detector does not find ordered before it.
type Race struct {
	Event     uint64 // number of the later access in the trace, from 0
	Variable  uint32
	Thread    uint16 // of the later access
	Earlier   uint16 // the thread of the earlier access, which is its last access of this kind to the variable
	Write     bool   // the later access writes
	Wrote     bool   // the earlier access writes
	Atomic    bool   // one of the two is atomic
	Predicted bool   // the accesses were ordered in the observed execution
}

// Detector judges the events of a trace.
type Detector interface {
	// Events judges the next events. It does not keep the slice.
	Events(events []Event)
	// MemoryBytes is the size of the detector's metadata of variables.
	MemoryBytes() uint64
}

// Spec is a detector as a value in a list.
type Spec struct {
	Name   string
	Doc    string // one sentence
	Source string // the paper and section it implements
	// New returns a detector. The detector calls found for each race, in the order of the later accesses.
	New func(found func(Race)) Detector
}
