// Package history records the accesses to each byte of memory, and finds the recorded accesses that a new access races
// with.
//
// It has two implementations. Plain is the definition: a list of records for each byte. Fast is for whole programs.
package history

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// Site is what accesses by one instruction, or by one kind of host operation of one agent, have in common. The memory
// model does not distinguish accesses of one site.
type Site struct {
	Number uint32 // sites are numbered in the order of their first execution
	Place  uint64 // identifies the place in findings: that of an instruction, or for the host a larger number
	Host   string // the operation's name; "" for an instruction
	Event  event.Event
	Side   detect.Side
	Arms   []event.Arm
	Unit   uint64       // size of an element in bytes
	Inits  bool         // it is an mbarrier.init
	Strong bool         // relaxed or stronger, or volatile
	Widest bool         // strong, and its scope includes all threads of the run
	Sync   order.Strong // of a strong access; Address and Size are not set
	Load   uint32       // of an update: see event.Places.Updates
	// Discards says that the result of the atomic operation is not used.
	Discards bool
}

// WeakStore reports whether the site is a store that is not strong. Values of such stores are compared
// (detect.SameValueRace).
func (s *Site) WeakStore() bool { return s.Side.Write && !s.Strong && s.Host == "" }

// chained reports whether the site is a strong write. Two accesses of such a site are alike only if they have the same
// chain.
func (s *Site) chained() bool { return s.Strong && s.Side.Write }

// StrongAccesses is a history that knows the strong accesses of a variable.
type StrongAccesses interface {
	// StrongAccesses calls f for the known strong accesses of a byte. These include, for each thread and site, at least
	// the last write since the byte's memory was last forgotten. A record is valid only during the call.
	StrongAccesses(m Memory, address uint64, f func(*Record))
}

// Memory identifies the shared memory of a block; the zero value is global memory.
type Memory struct {
	Shared bool
	Launch uint32
	Block  uint32
}

// Access is an access being judged: by one lane of an instruction, or by an agent of the host. It covers all bytes that
// the lane accesses; in a strong access, one element of them.
type Access struct {
	Site      *Site
	Actor     order.Actor
	Executed  uint32 // the lanes that executed the instruction together
	Memory    Memory
	From, End uint64
	Values    []uint64 // what it writes, little-endian; nil if not known or not needed
	Old       []uint64 // what was there before, see event.Batch.OldOf; nil if not known
}

// Record is an access in a history.
type Record struct {
	Site      *Site
	Stamp     order.Stamp
	Executed  uint32
	From, End uint64
	// Chain is the chain of a strong write. For a strong read it is the last chain begun before the read.
	Chain order.ChainID
}

// Race says that an access races with an earlier one in the bytes [From, End).
type Race struct {
	Category  detect.Category
	Earlier   *Record
	From, End uint64
}

// relation returns the relation of an access to an earlier record. SameValue is not set.
func (a *Access) relation(r *Record) detect.Relation {
	l := a.Actor.Launch
	if l == nil || l != r.Stamp.Launch {
		return detect.Relation{OtherDevice: a.Actor.OtherDevice(r.Stamp.Launch), Nested: a.Actor.Nested(r.Stamp.Launch), Assumed: a.Actor.Assumes(&r.Stamp)}
	}
	rel := detect.Relation{SameLaunch: true, SameBlock: a.Actor.Block == r.Stamp.Block(), SameWarp: a.Actor.Warp == r.Stamp.Warp}
	rel.SameCluster = (a.Site.Side.Cluster || r.Site.Side.Cluster) && l.Info.SameCluster(a.Actor.Block, r.Stamp.Block())
	rel.Lockstep = rel.SameWarp && (r.Executed>>uint(a.Actor.Lane)&1 != 0 || a.Executed>>uint(r.Stamp.Lane)&1 != 0 ||
		r.Stamp.Epoch < a.Actor.Whole || !detect.Parted(a.Site.Arms, r.Site.Arms))
	return rel
}

// Value returns the byte that the access writes at an address.
func (a *Access) Value(at uint64) byte {
	return byte(a.Values[(at-a.From)/8] >> ((at - a.From) % 8 * 8))
}

// History is the accesses made to memory.
type History interface {
	// Weak judges a weak access by a warp and records it. The lanes of a store are judged as if they stored at the same
	// time. Weak calls race for each pair of an access and a record that race, for single bytes or for ranges of bytes.
	Weak(w *Warp, race func(*Access, Race))
	// Judge does the judging part of Weak for an access by one lane or by the host.
	Judge(a *Access, race func(*Access, Race))
	// Before calls f for the writes by the actor's launch that happen before an access by one lane. The Category is
	// NoRace.
	Before(a *Access, f func(Race))
	// Record does the recording part of Weak. chain is the chain of a strong write.
	Record(a *Access, chain order.ChainID)
	// Forget drops the records of the shared memory of a block: all accesses so far happen before all that follow.
	Forget(m Memory)
	// EndBlock drops the shared memory of a block that has ended.
	EndBlock(m Memory)
	StrongAccesses
	// Reuse drops the records of the bytes [from, end) of global memory, which became an allocation or ceased to be
	// one.
	Reuse(from, end uint64)
}

// Warp is an access by a warp.
type Warp struct {
	Batch   *event.Batch
	Event   *event.Event
	Site    *Site
	Block   *order.Block
	InBlock uint32 // the number of the warp within its block; Event has the number within the grid
	Memory  Memory

	view  *order.View // the common view of lanes; nil if each has its own
	lanes uint32
	lane  Access // returned by Lane
	// before is scratch space of restore.
	before [4]uint64
}

// begin restricts an access to lanes with the common view v, or with a view each if v is nil.
func (w *Warp) begin(v *order.View, lanes uint32) {
	w.view, w.lanes = v, lanes
	a := &w.lane
	a.Site, a.Executed, a.Memory, a.Values, a.Old = w.Site, w.Event.Mask, w.Memory, nil, nil
	x := &a.Actor
	x.Launch, x.Block, x.Warp, x.View, x.Whole = w.Block.Launch, w.Block.Index, w.Event.Warp, v, w.Block.Whole(w.InBlock)
}

// Each prepares an access for calls of Lane.
func (w *Warp) Each() { w.begin(nil, w.Event.Mask) }

// Lane returns the access of a lane. It is valid until the next call.
func (w *Warp) Lane(lane int) *Access {
	a := &w.lane
	a.Actor.Lane = lane
	if w.view == nil {
		a.Actor.View = w.Block.ViewOf(w.InBlock, lane)
	}
	a.From = w.Batch.AddrOf(w.Event, lane)
	a.End = a.From + uint64(w.Event.Size)
	if w.Site.Side.Write {
		a.Old = w.Batch.OldOf(w.Event, lane)
		if w.Site.WeakStore() {
			a.Values = w.Batch.ValueOf(w.Event, lane)
		}
	}
	return a
}

// unknown returns those of lanes of a warp of the launch whose epoch the actor does not know.
func (w *Warp) unknown(warp, lanes, epoch uint32) uint32 {
	return w.lane.Actor.Unknown(w.Block.Launch, warp, lanes, epoch)
}
