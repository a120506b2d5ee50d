// Package history keeps what was done to each byte of memory, and finds with which of that an access races.
//
// Plain is the definition: a list of records for each byte. Fast is for whole programs.
package history

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// Site is what the accesses by one instruction, or by one kind of operation of an agent of the host, have in common. Accesses of one site are alike to the memory model.
type Site struct {
	Number uint32 // sites are numbered in the order of their first execution
	Place  uint64 // by which findings are told apart: that of an instruction, or above all of them for the host
	Host   string // the operation's name; "" for an instruction
	Event  event.Event
	Side   detect.Side
	Arms   []event.Arm
	Unit   uint64       // bytes of an element
	Inits  bool         // mbarrier.init
	Strong bool         // relaxed or stronger, or volatile
	Widest bool         // strong, and its scope includes all threads of the run
	Sync   order.Strong // of a strong access, but for address and size
	Load   uint32       // of an update: see event.Places.Updates
	// Discards says that nobody uses what an atomic operation reads.
	Discards bool
}

// WeakStore says that the site is a store that is no strong operation: one whose values are compared (detect.SameValueRace).
func (s *Site) WeakStore() bool { return s.Side.Write && !s.Strong && s.Host == "" }

// chained says that the site is a strong write: what is known of two of them differs if their chains do.
func (s *Site) chained() bool { return s.Strong && s.Side.Write }

// StrongAccesses is a history that can be asked who accessed a variable.
type StrongAccesses interface {
	// StrongAccesses calls f for the strong accesses of a byte that are known, of each thread and site at least the last write since
	// the byte's memory was last forgotten. A record is valid during the call.
	StrongAccesses(m Memory, address uint64, f func(*Record))
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
	Old       []uint64 // what was there before, see event.Batch.OldOf; nil when not known
}

// Record is an access in a history.
type Record struct {
	Site      *Site
	Stamp     order.Stamp
	Executed  uint32
	From, End uint64
	// Chain is that of a strong write, and the last one that there was when a strong read was made.
	Chain order.ChainID
}

// Race says that an access races with an earlier one in the bytes [From, End).
type Race struct {
	Category  detect.Category
	Earlier   *Record
	From, End uint64
}

// relation is the relation of an access to an earlier record, but for their values.
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

// Value is what the access writes at an address.
func (a *Access) Value(at uint64) byte {
	return byte(a.Values[(at-a.From)/8] >> ((at - a.From) % 8 * 8))
}

// History keeps what was done to memory.
type History interface {
	// Weak judges a weak access by a warp, as by all lanes at once where it is a store, and records it. It calls race for each
	// access and record that race, byte by byte or in ranges of bytes.
	Weak(w *Warp, race func(*Access, Race))
	// Judge is the first half of that for an access by one lane, or by the host.
	Judge(a *Access, race func(*Access, Race))
	// Before calls f for the writes by its launch that an access by one lane happens after, with no category.
	Before(a *Access, f func(Race))
	// Record is the second half. A strong write has a chain.
	Record(a *Access, chain order.ChainID)
	// Forget drops what is known of the shared memory of a block: all that was done there happens before all that follows.
	Forget(m Memory)
	// EndBlock drops the shared memory of a block that has ended.
	EndBlock(m Memory)
	StrongAccesses
	// Reuse drops what was done to the bytes [from, end) of global memory, which became or ceased to be an allocation.
	Reuse(from, end uint64)
}

// Warp is an access by a warp.
type Warp struct {
	Batch   *event.Batch
	Event   *event.Event
	Site    *Site
	Block   *order.Block
	InBlock uint32 // the warp's number in its block; that in the grid is the event's
	Memory  Memory

	view  *order.View // of lanes; nil where each has its own
	lanes uint32
	lane  Access // of Lane
	// before is memory for restore.
	before [4]uint64
}

// begin makes an access that of lanes with a view, nil where each has its own.
func (w *Warp) begin(v *order.View, lanes uint32) {
	w.view, w.lanes = v, lanes
	a := &w.lane
	a.Site, a.Executed, a.Memory, a.Values, a.Old = w.Site, w.Event.Mask, w.Memory, nil, nil
	x := &a.Actor
	x.Launch, x.Block, x.Warp, x.View, x.Whole = w.Block.Launch, w.Block.Index, w.Event.Warp, v, w.Block.Whole(w.InBlock)
}

// Each prepares an access to be taken apart by Lane.
func (w *Warp) Each() { w.begin(nil, w.Event.Mask) }

// Lane gives the access of a lane. It is valid until the next call.
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

// unknown gives those of lanes of a warp of the launch whose epoch the actor does not know.
func (w *Warp) unknown(warp, lanes, epoch uint32) uint32 {
	return w.lane.Actor.Unknown(w.Block.Launch, warp, lanes, epoch)
}
