// Package history keeps what was done to each byte of memory, and finds with which of that an access races.
//
// Plain is the definition: a list of records for each byte.
package history

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// Site is what the accesses by one instruction of one launch, or by one kind of operation of an agent of the host, have in
// common. Accesses of one site are alike to the memory model.
type Site struct {
	Place  uint64 // by which findings are told apart: that of an instruction, or above all of them for the host
	Launch *order.Launch
	Host   string // the operation's name; "" for an instruction
	Event  event.Event
	Side   detect.Side
	Unit   uint64       // bytes of an element
	Strong bool         // relaxed or stronger, or volatile
	Sync   order.Strong // of a strong access, but for address and size
	Born   uint32       // numbers sites in the order of their first execution
}

// WeakStore says that the site is a store that is no strong operation: one whose values are compared (detect.SameValueRace).
func (s *Site) WeakStore() bool { return s.Side.Write && !s.Strong && s.Host == "" }

// StrongWrites is a history that can be asked who wrote a variable.
type StrongWrites interface {
	// StrongWrites calls f for the strong writes of a byte that are known, of each thread and site at least the last one since
	// the byte's memory was last forgotten. A record is valid during the call.
	StrongWrites(m Memory, address uint64, f func(*Record))
}

// Memory names global memory (zero), or the shared memory of a block.
type Memory struct {
	Shared bool
	Launch uint32
	Block  uint32
}

// Access is an access that is being judged: by a lane of an instruction to all its bytes, to one element of them where it is
// strong, or by an agent of the host.
type Access struct {
	Site      *Site
	Actor     order.Actor
	Executed  uint32 // the lanes that executed the instruction together
	Memory    Memory
	From, End uint64
	Values    []uint64 // what it writes, little-endian; nil when not known or not asked for
}

// Record is an access in a history.
type Record struct {
	Site      *Site
	Stamp     order.Stamp
	Executed  uint32
	From, End uint64
	Chain     *order.Chain // of a strong write
}

// Race says that an access races with an earlier one in the bytes [From, End).
type Race struct {
	Category  detect.Category
	Earlier   *Record
	From, End uint64
}

// relation is how an access stands to an earlier record, but for their values.
func (a *Access) relation(r *Record) detect.Relation {
	l := a.Actor.Launch
	if l == nil || l != r.Stamp.Launch {
		return detect.Relation{}
	}
	rel := detect.Relation{SameLaunch: true, SameBlock: a.Actor.Block == r.Stamp.Block(), SameWarp: a.Actor.Warp == r.Stamp.Warp}
	rel.Lockstep = rel.SameWarp && (r.Executed>>uint(a.Actor.Lane)&1 != 0 || a.Executed>>uint(r.Stamp.Lane)&1 != 0)
	return rel
}

// Value is what the access writes at an address.
func (a *Access) Value(at uint64) byte {
	return byte(a.Values[(at-a.From)/8] >> ((at - a.From) % 8 * 8))
}
