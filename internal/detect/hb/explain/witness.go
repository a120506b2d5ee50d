package explain

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/event"
)

// Witness collects what helps to explain races: for each thread, the strong write of another thread that it observed
// last, and the locks that it holds. It only influences how a race is described, so it may guess. It need not see weak
// accesses.
//
// What it keeps for each running block is bounded. For blocks that have ended it keeps the last critical sections.
type Witness struct {
	accesses history.StrongAccesses
	frames   func(place uint32) []event.Frame // detect.Config.Frames
	launches map[*order.Launch]*launch
	recent   [16]*block // by index
	spare    []*block   // memory of blocks that have ended
	locking  bool       // a lock may have been taken
	waits    bool       // by waiting for a value
	takings  map[uint32]*taking
	awaits   []awaits
}

// NewWitness makes a Witness that queries a history for the strong accesses of a variable. frames is
// detect.Config.Frames.
func NewWitness(w history.StrongAccesses, frames func(place uint32) []event.Frame) *Witness {
	return &Witness{accesses: w, frames: frames, launches: map[*order.Launch]*launch{}, takings: map[uint32]*taking{}}
}

// awaits is a race between blocks in which one thread has observed nothing, so that another thread of its block may
// wait for the other access on its behalf. That thread is the later one, or an earlier one that read what the later one
// wrote.
type awaits struct {
	pair  Pair
	which string // the thread that has observed nothing: "first" or "second" of the pair
	who   order.Actor
	other order.Stamp // the access of the other thread
	last  *order.View // the view of who at its exit; nil while it runs
}

// launch is a running launch.
type launch struct {
	blocks  map[uint32]*block
	ended   map[uint32]past
	order   []uint32                // of ended, the oldest first
	dropped bool                    // one that had ended
	passed  map[variable][]variable // what threads had polled, and had not acquired by, when they wrote a variable
}

// past is what is kept of a block when it has ended.
type past struct {
	within   uint32    // the block's epoch when a thread last observed a strong write of another thread of the block; 0: none has
	sections []section // the last critical sections that have ended
}

// block is a running block.
type block struct {
	past
	of     *order.Block
	warps  []warp
	number uint32        // of the last operation by which a lane observed others
	locks  *lock.Tracker // has the block's events since locked
	locked bool          // a lock may have been taken
	polls  []poll
}

type warp struct {
	seenIn [2]sights // in global and in shared memory: volatile data in the one does not displace the flags in the other
	held   []section
	waits  *[32]waiting // by lane; nil until there is one
}

// sights are the last observations of other threads by the lanes of a warp.
type sights struct {
	last    *[2]sight        // the last two operations that observed others; nil until there is one
	newest  int              // index in last
	before  *[32][2]handover // by lane: the last observation before those of last, and the last one before it of another location; nil until there is one
	settled uint32           // the highest number in before
}

// sight is an operation by which lanes observed others. The handover of each lane is computed only when it is needed:
// usually the warp continues with the next operation and nobody asks.
type sight struct {
	event          event.Event
	addrs          [32]uint64 // for a scattered event
	offset         uint64
	lanes, inScope uint32 // inScope: those for which the read and the write are morally strong
	elsewhere      uint32 // those that observed a write of another device
	number         uint32
	chains         order.ChainID
	size           uint8
	discards       bool // history.Site.Discards
	epochs         order.Epochs
}

// handover describes the last time that a thread read by a strong read what another thread had written by a strong
// write: the usual way to hand data over. If size is 0 there is none.
type handover struct {
	address      uint64
	epoch, place uint32        // the reader's
	number       uint32        // the number of the operation, increasing within a block
	chains       order.ChainID // order.Block.Chains when it was performed
	size         uint8
	shared       bool
	inScope      bool // the read and the write are morally strong
	elsewhere    bool // the write was by another device
	takes        bool // the read is a compare-and-swap or an exchange, which may take a lock
	failed       bool // the read is a failed compare-and-swap
	discards     bool // the result of the read is not used
}

// section is a critical section: the time in which a thread holds a lock.
type section struct {
	lock     lock.ID
	taken    handover // the observation by which the thread took the lock
	warp     uint32   // number within the grid
	lane     int
	from, to uint32 // epochs
	// Of a lock that the thread has waited for: where, and from which variable it had drawn a number.
	taking *taking
	drawn  variable
}

// Limits for the sections of a block, the ended blocks of a launch, and the blocks kept for reuse.
const (
	maxSections = 64
	maxEnded    = 1 << 11
	maxSpare    = 64
)

// never is an epoch later than all others.
const never = ^uint32(0)

// Operation is a strong access by lanes of a warp.
type Operation struct {
	Batch *event.Batch
	Event *event.Event
	Site  *history.Site
	Block *order.Block
	Warp  uint32 // number within the block
}

// Observes reports whether a thread of the block of an access has observed strong writes of others.
func (w *Witness) Observes(a *history.Access) bool {
	l := w.launches[a.Actor.Launch]
	return l != nil && l.blocks[a.Actor.Block] != nil && l.blocks[a.Actor.Block].number > 0
}

// Await records a race that explains a pair, if one of its threads may belong to awaits.
func (w *Witness) Await(p Pair, a *history.Access, r *history.Race) {
	x := &r.Earlier.Stamp
	switch {
	case r.Category != detect.CrossBlock:
	case r.Earlier.Site.Side.Write:
		w.awaits = append(w.awaits, awaits{pair: p, which: "second", who: a.Actor, other: *x})
	case !log(x).Waited(x.Warp%x.Launch.WarpsPerBlock, x.Lane, x.Epoch, never):
		w.awaits = append(w.awaits, awaits{pair: p, which: "first", who: order.Actor{Launch: x.Launch, Block: x.Block(), Warp: x.Warp, Lane: x.Lane},
			other: a.Actor.Stamp()})
	}
}

// Late calls f for the recorded pairs of which one thread turns out not to have waited for another thread of its block:
// the access by the other side happens before that thread. It is called when the block meets at a barrier, or when
// threads of it exit.
func (w *Witness) Late(e *event.Event, of *order.Block, f func(p Pair, which string)) {
	if len(w.awaits) == 0 {
		return
	}
	for i := range w.awaits {
		switch x := &w.awaits[i]; {
		case x.last != nil || x.who.Launch != of.Launch || x.who.Block != of.Index:
		case of.Exited(x.who.Warp%of.WarpsPerBlock, x.who.Lane): // it exited before the other access, and knows nothing of it
			x.last = order.Operations(0, 0)
		case e.Kind == event.Exit && x.who.Warp == e.Warp && e.Mask>>uint(x.who.Lane)&1 != 0:
			x.last = of.ViewOf(e.Warp%of.WarpsPerBlock, x.who.Lane)
		}
	}
	w.awaits = slices.DeleteFunc(w.awaits, func(x awaits) bool {
		if x.who.Launch != of.Launch || x.who.Block != of.Index {
			return x.who.Launch.Ended(x.who.Block)
		}
		b, view := w.block(of, false), x.last
		if view == nil {
			view = of.ViewOf(x.who.Warp%of.WarpsPerBlock, x.who.Lane)
		}
		late := unawaited(of, &x.who, view, &x.other) && (b == nil || !b.observed(&x.who))
		if late {
			f(x.pair, x.which)
		}
		return late || e.Kind == event.BarrierDone
	})
}

// block returns the block of an order.Block; nil if there is none, unless make is set.
func (w *Witness) block(of *order.Block, make bool) *block {
	r := &w.recent[of.Index%uint32(len(w.recent))]
	if *r != nil && (*r).of == of {
		return *r
	}
	l := w.launches[of.Launch]
	switch {
	case l != nil && l.blocks[of.Index] != nil:
		*r = l.blocks[of.Index]
		return *r
	case !make:
		return nil
	case l == nil:
		l = &launch{blocks: map[uint32]*block{}, ended: map[uint32]past{}}
		w.launches[of.Launch] = l
	}
	b := &block{}
	if n := len(w.spare); n > 0 {
		b, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	b.of = of
	b.warps = slices.Grow(b.warps[:0], int(of.WarpsPerBlock))[:of.WarpsPerBlock]
	l.blocks[of.Index], *r = b, b
	return b
}

// Observed records what lanes observed in the element at an offset of an operation. The operation has been judged and
// performed, but has not begun an epoch.
func (w *Witness) Observed(o *Operation, offset uint64, seen *order.Observations) {
	lanes := seen.Lanes
	b := w.block(o.Block, true)
	if seen.Within {
		b.within = o.Block.Epoch()
	}
	x := &b.warps[o.Warp].seenIn[0]
	if o.Event.Space == event.Shared {
		x = &b.warps[o.Warp].seenIn[1]
	}
	if x.last == nil {
		x.last = new([2]sight)
	}
	e := *o.Event
	e.Val = 0
	var addrs []uint64
	if e.Flags&event.FlagScattered != 0 {
		addrs, e.Side = o.Batch.Addresses(&e, nil), 0
	}
	s := &x.last[x.newest]
	if s.event != e || s.lanes != lanes || s.offset != offset || !slices.Equal(s.addrs[:len(addrs)], addrs) { // a new observation, not a repeated poll
		former := &x.last[1-x.newest]
		x.settle(former, former.lanes&^(s.lanes|lanes))
		s, x.newest = former, 1-x.newest
		s.event, s.offset, s.lanes, s.size, s.discards = e, offset, lanes, uint8(o.Site.Unit), o.Site.Discards
		copy(s.addrs[:], addrs)
	}
	b.number++
	s.inScope, s.elsewhere, s.number, s.chains, s.epochs = seen.InScope, seen.Elsewhere, b.number, o.Block.Chains(), o.Block.Epochs(o.Warp)
}

// settle moves the observations of lanes by an operation to before.
func (x *sights) settle(s *sight, lanes uint32) {
	if lanes != 0 {
		x.settled = max(x.settled, s.number)
		if x.before == nil {
			x.before = new([32][2]handover)
		}
	}
	for ; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		y, h := &x.before[lane], s.handover(lane)
		if y[0].address != h.address || y[0].size != h.size || y[0].shared != h.shared {
			y[1] = y[0]
		}
		y[0] = h
	}
}

// handover returns the handover to a lane; none if the lane did not observe others.
func (s *sight) handover(lane int) handover {
	if s.lanes>>uint(lane)&1 == 0 {
		return handover{}
	}
	b := event.Batch{Addrs: s.addrs[:]}
	return handover{b.AddrOf(&s.event, lane) + s.offset, s.epochs.Of(lane), s.event.Place, s.number, s.chains, s.size,
		s.event.Space == event.Shared, s.inScope>>uint(lane)&1 != 0, s.elsewhere>>uint(lane)&1 != 0, s.event.RMW != event.OtherRMW,
		s.event.RMW == event.CompareAndSwap && s.event.Flags&event.FlagWrite == 0, s.discards}
}

// seen returns the last handovers to a lane, in no particular order.
func (x *warp) seen(lane int) (all [8]handover) {
	for i := range x.seenIn {
		if s := &x.seenIn[i]; s.last != nil {
			all[4*i], all[4*i+1] = s.last[0].handover(lane), s.last[1].handover(lane)
			if s.before != nil {
				all[4*i+2], all[4*i+3] = s.before[lane][0], s.before[lane][1]
			}
		}
	}
	return all
}

// newest returns the last handover for which fit returns true.
func newest(all [8]handover, fit func(*handover) bool) (h handover) {
	for i := range all {
		if o := &all[i]; o.size != 0 && o.number >= h.number && fit(o) {
			h = *o
		}
	}
	return h
}

// Accessed notes a strong access, which has been performed, yet has not begun an epoch. It gives the lanes that gave back a lock by it, which
// are to begin one: what they do now is outside. Handed are the lanes that hand over by it, see order.Block.Handed, and
// observed those that have observed others.
func (w *Witness) Accessed(o *Operation, handed, observed uint32) (gave uint32) {
	if o.Site.Side.Write {
		gave = w.wrote(o, handed)
	}
	w.read(o, observed)
	return gave
}

func (w *Witness) wrote(o *Operation, handed uint32) (gave uint32) {
	if w.waits {
		if b := w.block(o.Block, false); b != nil {
			gave = w.given(b, o, handed)
		}
	}
	takes := o.Event.RMW == event.CompareAndSwap
	if w.locking = w.locking || takes; !w.locking {
		return gave
	}
	if b := w.block(o.Block, takes); b != nil && (takes || b.locked) {
		gave |= b.lock(o.Batch, o.Event, o.Warp)
	}
	return gave
}

// Follows reports whether the witness must be told of all strong writes of a block, because a thread of it may have
// taken a lock.
func (w *Witness) Follows(of *order.Block) bool {
	b := w.block(of, false)
	return b != nil && b.locked
}

// Sync records a synchronisation by lanes of a warp that has been performed.
func (w *Witness) Sync(batch *event.Batch, e *event.Event, of *order.Block, wi uint32) {
	if e.Kind != event.Exit && (e.Kind != event.Fence || !w.locking && !w.waits) {
		return
	}
	b := w.block(of, false)
	if b == nil {
		return
	}
	if e.Kind == event.Fence && e.Order != event.Release && b.warps[wi].waits != nil {
		w.acquired(b, e, wi)
	}
	if b.locked {
		b.lock(batch, e, wi)
	}
	if of.Over() {
		w.end(b)
	}
}

// lock updates critical sections for an event, and returns the lanes whose sections end with it.
func (b *block) lock(batch *event.Batch, e *event.Event, wi uint32) (gave uint32) {
	if !b.locked {
		if b.locked = true; b.locks == nil {
			b.locks = lock.New(lock.Rules{Unfenced: true, Swap: true, Last: true})
		}
		b.locks.BeginBlock(&b.of.Info, b.of.Index)
	}
	x, epochs := &b.warps[wi], b.of.Epochs(wi)
	for _, s := range b.locks.Event(batch, e) {
		for m := s.Lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			now := epochs.Of(lane)
			if s.Kind == lock.Acquire {
				taken := newest(x.seen(lane), func(h *handover) bool { return h.address == s.Lock.Addr && h.shared == s.Lock.Shared })
				x.held = append(x.held, section{lock: s.Lock, taken: taken, warp: e.Warp, lane: lane, from: now, to: never})
			} else if i := slices.IndexFunc(x.held, func(y section) bool { return y.taking == nil && y.lane == lane && y.lock == s.Lock }); i >= 0 {
				gave |= 1 << lane
				x.held[i].to = now
				b.sections = append(b.sections, x.held[i])
				x.held = slices.Delete(x.held, i, i+1)
			}
		}
	}
	b.trim()
	return gave
}

func (b *block) trim() {
	if n := len(b.sections); n > 2*maxSections {
		b.sections = append(b.sections[:0], b.sections[n-maxSections:]...)
	}
}

// end keeps the past of a block that has ended, and its memory for reuse.
func (w *Witness) end(b *block) {
	l := w.launches[b.of.Launch]
	delete(l.blocks, b.of.Index)
	if b.within > 0 || len(b.sections) > 0 {
		l.ended[b.of.Index] = past{b.within, slices.Clone(b.sections[max(len(b.sections)-maxSections, 0):])}
		if l.order = append(l.order, b.of.Index); len(l.order) > maxEnded {
			delete(l.ended, l.order[0])
			l.order, l.dropped = l.order[1:], true
		}
	}
	if len(w.spare) == maxSpare {
		return
	}
	b.of, b.number, b.locked, b.polls, b.past = nil, 0, false, b.polls[:0], past{sections: b.sections[:0]}
	for i := range b.warps {
		x := &b.warps[i]
		x.held = x.held[:0]
		if x.waits != nil {
			*x.waits = [32]waiting{}
		}
		for k := range x.seenIn {
			s := &x.seenIn[k]
			if s.last != nil {
				*s.last, s.newest = [2]sight{}, 0
			}
			if s.before != nil {
				*s.before = [32][2]handover{}
			}
		}
	}
	w.spare = append(w.spare, b)
}

// End drops a launch.
func (w *Witness) End(of *order.Launch) {
	delete(w.launches, of)
	clear(w.recent[:])
	w.awaits = slices.DeleteFunc(w.awaits, func(x awaits) bool { return x.who.Launch == of })
}
