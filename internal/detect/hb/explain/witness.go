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

// Witness follows what explains races: which strong write of another thread each thread observed last, and who holds which
// lock. It decides nothing but how a race is named, and may guess. Of weak accesses it need not know.
//
// What it keeps is bounded for each running block; of blocks that have ended it keeps the last critical sections.
type Witness struct {
	accesses history.StrongAccesses
	launches map[*order.Launch]*launch
	recent   [16]*block // by index
	spare    []*block   // memory of blocks that have ended
	locking  bool       // a lock may have been taken
	waits    bool       // by waiting for a value
	takings  map[uint32]*taking
	awaits   []awaits
}

// NewWitness makes a Witness that asks a history who wrote a variable.
func NewWitness(w history.StrongAccesses) *Witness {
	return &Witness{accesses: w, launches: map[*order.Launch]*launch{}, takings: map[uint32]*taking{}}
}

// awaits is a race between blocks of which one thread has observed nothing: another thread of its block may wait for the access by the
// other. It is the later one, or one that read what was written later.
type awaits struct {
	pair  Pair
	which string // "first" or "second": who
	who   order.Actor
	other order.Stamp
	last  *order.View // that who had when it exited; nil while it runs
}

// launch is a launch that runs.
type launch struct {
	blocks map[uint32]*block
	ended  map[uint32]past
	order  []uint32                // of ended, the oldest first
	forgot bool                    // one that had ended
	passed map[variable][]variable // what threads had polled, and had not acquired by, when they wrote a variable
}

// past is what is kept of a block when it has ended.
type past struct {
	within   uint32    // the block's epoch when one of its threads last observed a strong write of another; 0: none has
	sections []section // the last that have ended
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

// sights is how lanes of a warp observed others.
type sights struct {
	last    *[2]sight        // the last operations by which they did, by turns; nil until there is one
	newest  int              // of last
	before  *[32][2]handover // by lane: the last one before those, and the last one of another location; nil until there is one
	settled uint32           // the highest number of those
}

// sight is an operation by which lanes observed others. What it says of each lane is worked out when somebody asks: most warps
// go on to the next operation, and nobody does.
type sight struct {
	event          event.Event
	addrs          [32]uint64 // of a scattered event
	offset         uint64
	lanes, inScope uint32
	elsewhere      uint32 // of lanes
	number         uint32
	chains         order.ChainID
	size           uint8
	discards       bool // see history.Site
	epochs         order.Epochs
}

// handover is the last time that a thread read strongly what another thread had written strongly: the usual way to hand
// data over. Its size is 0 when there is none.
type handover struct {
	address      uint64
	epoch, place uint32        // of the reader
	number       uint32        // of the operation, rises in a block
	chains       order.ChainID // order.Block.Chains when it was performed
	size         uint8
	shared       bool
	inScope      bool // morally strong
	elsewhere    bool // the write was of another device
	takes        bool // by a compare-and-swap or an exchange, as locks are taken
	failed       bool // by a compare-and-swap that did not swap
	discards     bool // nobody uses what was read
}

// section is a critical section: what a thread does while it holds a lock.
type section struct {
	lock     lock.ID
	taken    handover // by which the thread took the lock
	warp     uint32   // in the grid
	lane     int
	from, to uint32 // epochs
	// Of a lock that the thread has waited for: where, and from which variable it had drawn a number.
	taking *taking
	drawn  variable
}

// Bounds: sections of a block, blocks of a launch that have ended, and those whose memory is used again.
const (
	maxSections = 64
	maxEnded    = 1 << 11
	maxSpare    = 64
)

// never is the epoch after all others.
const never = ^uint32(0)

// Operation is a strong access by lanes of a warp.
type Operation struct {
	Batch *event.Batch
	Event *event.Event
	Site  *history.Site
	Block *order.Block
	Warp  uint32 // in the block
}

// Observes says that a thread of the block of an access has observed strong writes of others.
func (w *Witness) Observes(a *history.Access) bool {
	l := w.launches[a.Actor.Launch]
	return l != nil && l.blocks[a.Actor.Block] != nil && l.blocks[a.Actor.Block].number > 0
}

// Await notes a race that explains a pair.
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

// Late calls f for the pairs of races of which one thread has not waited for another of its block: that one comes after the other access
// when the block meets at a barrier, or has ended.
func (w *Witness) Late(e *event.Event, of *order.Block, f func(p Pair, which string)) {
	if len(w.awaits) == 0 {
		return
	}
	for i := range w.awaits {
		switch x := &w.awaits[i]; {
		case x.last != nil || x.who.Launch != of.Launch || x.who.Block != of.Index:
		case of.Exited(x.who.Warp%of.WarpsPerBlock, x.who.Lane): // before the other access, of which it knows nothing then
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

// block gives what is known of a block, nil when that is nothing yet, unless it is to be made.
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

// Observed notes what lanes observed in the element of an operation at an offset. It is told when the operation has been judged and
// performed, and has not begun an epoch.
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
	if s.event != e || s.lanes != lanes || s.offset != offset || !slices.Equal(s.addrs[:len(addrs)], addrs) { // it does not poll
		former := &x.last[1-x.newest]
		x.settle(former, former.lanes&^(s.lanes|lanes))
		s, x.newest = former, 1-x.newest
		s.event, s.offset, s.lanes, s.size, s.discards = e, offset, lanes, uint8(o.Site.Unit), o.Site.Discards
		copy(s.addrs[:], addrs)
	}
	b.number++
	s.inScope, s.elsewhere, s.number, s.chains, s.epochs = seen.InScope, seen.Elsewhere, b.number, o.Block.Chains(), o.Block.Epochs(o.Warp)
}

// settle moves what an operation says of lanes to those before.
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

// handover gives that of a lane, none if it is not among the lanes.
func (s *sight) handover(lane int) handover {
	if s.lanes>>uint(lane)&1 == 0 {
		return handover{}
	}
	b := event.Batch{Addrs: s.addrs[:]}
	return handover{b.AddrOf(&s.event, lane) + s.offset, s.epochs.Of(lane), s.event.Place, s.number, s.chains, s.size,
		s.event.Space == event.Shared, s.inScope>>uint(lane)&1 != 0, s.elsewhere>>uint(lane)&1 != 0, s.event.RMW != event.OtherRMW,
		s.event.RMW == event.CompareAndSwap && s.event.Flags&event.FlagWrite == 0, s.discards}
}

// seen gives the last handovers to a lane, in no order.
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

// newest gives the last of some handovers that is fit.
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

// Follows says that all strong writes of a block count: it may have taken a lock.
func (w *Witness) Follows(of *order.Block) bool {
	b := w.block(of, false)
	return b != nil && b.locked
}

// Sync notes a synchronisation by lanes of a warp, which has been performed.
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

// lock follows critical sections over an event, and gives the lanes whose ends there.
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

// end keeps of a block that has ended its past, and its memory for others.
func (w *Witness) end(b *block) {
	l := w.launches[b.of.Launch]
	delete(l.blocks, b.of.Index)
	if b.within > 0 || len(b.sections) > 0 {
		l.ended[b.of.Index] = past{b.within, slices.Clone(b.sections[max(len(b.sections)-maxSections, 0):])}
		if l.order = append(l.order, b.of.Index); len(l.order) > maxEnded {
			delete(l.ended, l.order[0])
			l.order, l.forgot = l.order[1:], true
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

// End forgets a launch.
func (w *Witness) End(of *order.Launch) {
	delete(w.launches, of)
	clear(w.recent[:])
	w.awaits = slices.DeleteFunc(w.awaits, func(x awaits) bool { return x.who.Launch == of })
}
