// Package model defines scoped RC11, the memory model of "GPUMC: A Stateless Model Checker for GPU Weak Memory
// Concurrency" (seed 004): orders, scopes, inclusion, relations and axioms.
//
// The file src11.go is meant to be compared with figure 3 of the paper. It computes with whole relations and knows no
// search. The search (internal/verify/explore) computes the same incrementally, and tests compare the two.
package model

// Order is a memory order, section 2 of the paper.
type Order uint8

// The memory orders.
const (
	NA Order = iota // not atomic
	Relaxed
	Acquire
	Release
	AcqRel
	SC
)

var orderNames = [...]string{"na", "rlx", "acq", "rel", "acqrel", "sc"}

// String is the order's name in litmus files.
func (o Order) String() string { return orderNames[o] }

// Atomic reports whether the order is relaxed or stronger.
func (o Order) Atomic() bool { return o != NA }

// Acquires reports whether the order is acquire or stronger.
func (o Order) Acquires() bool { return o == Acquire || o == AcqRel || o == SC }

// Releases reports whether the order is release or stronger.
func (o Order) Releases() bool { return o == Release || o == AcqRel || o == SC }

// OfRead is the order of the read of a read-modify-write of order o.
func (o Order) OfRead() Order {
	switch o {
	case Release:
		return Relaxed
	case AcqRel:
		return Acquire
	}
	return o
}

// OfWrite is the order of the write of a read-modify-write of order o.
func (o Order) OfWrite() Order {
	switch o {
	case Acquire:
		return Relaxed
	case AcqRel:
		return Release
	}
	return o
}

// Scope is the set of threads that an access synchronises with, from narrow to wide.
type Scope uint8

// The scopes.
const (
	Thread Scope = iota // of an access that is not atomic
	CTA
	Cluster
	GPU
	Sys
)

var scopeNames = [...]string{"thread", "cta", "cluster", "gpu", "sys"}

// String is the scope's name in litmus files.
func (s Scope) String() string { return scopeNames[s] }

// Place is the place of a thread in the hierarchy. The numbers identify a CTA, a cluster and a GPU in the whole system.
type Place struct{ CTA, Cluster, GPU int32 }

// Need is the narrowest scope of a thread at a that includes a thread at b.
func Need(a, b Place) Scope {
	switch {
	case a.GPU != b.GPU:
		return Sys
	case a.Cluster != b.Cluster:
		return GPU
	case a.CTA != b.CTA:
		return Cluster
	}
	return CTA
}

// Inclusion selects a reading of incl (section 3 of the paper).
type Inclusion uint8

const (
	// Each requires that the scope of each event includes the thread of the other. It is the default.
	Each Inclusion = iota
	// Paper is the text of the paper: the scope of one event includes the thread of the other, and two events that
	// access memory access the same location. With it sc accesses of different locations are not ordered at all: sc
	// store buffering allows both reads to miss.
	Paper
)
