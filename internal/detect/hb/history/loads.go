package history

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// Weak loads of global memory race with nothing if no thread of the launch accesses the memory in another way, and the
// launch follows everything that was done to the memory before. That holds for most of the memory that kernels load
// from: their inputs. Such loads are deferred: they are only noted (loads). They are performed, that is recorded as
// usual, when someone accesses one of the loaded granules in another way, or in a launch that does not follow. Loads of
// a block's shared memory between two barriers of all its threads are deferred in the same way.
//
// Relaxed read-modify-writes of words of global memory with the widest scope do not race with each other either. They
// are deferred in the same way, separately from the loads. Package order has already performed them. The last of them
// makes the current value of its word until someone writes the word in another way, and before that happens they are
// performed here. Their chain is therefore the chain of the value.

// Classes of deferred accesses. Accesses of one class do not race with each other.
const (
	weakLoads = iota
	relaxedAtomics
	classes
)

// loads are the deferred weak loads of a launch or of a block, or the deferred relaxed atomic operations of a launch.
// Only the order of accesses by one warp and site is kept.
type loads struct {
	class  int
	state  *launchState
	window *window // the shared memory that they access; nil: global memory
	list   []load
	kinds  []loadKind
	widest uint64     // the most bytes that one lane loads
	addrs  [][]uint32 // offsets of the lanes of scattered loads from load.addr; a block holds whole loads
	// granules are the granules with deferred accesses. The launch has accessed them in no other way.
	granules *granuleSet
	tails    []uint32 // by hash of site and warp: one more than the index of the last load with that hash
	fixed    int      // the number of loads that may no longer be extended
	freed    []freed
	parted   int  // how often loads were performed because of one granule
	off      bool // nothing more is deferred: there were too many
	// chains is at least the last chain that the launch made or continued; 0 while the launch runs.
	chains order.ChainID
	newest order.ChainID // the last chain that its writes made or continued
}

// load describes accesses of one kind: times accesses by each of warps adjacent warps. The addresses of a warp's
// accesses form an arithmetic progression, and so do the epochs, which are the same for all warps.
type load struct {
	kind  uint32
	lanes uint32
	warp  uint32 // the first, within the grid
	epoch uint32
	later uint32 // difference of epochs from one access to the next
	times uint32
	warps uint32
	step  int32 // bytes from one access to the next
	apart int32 // bytes from one warp to the next
	addr  uint64
}

// loadKind is what accesses have in common: an event without its warp, lanes and address.
type loadKind struct {
	site  *Site
	event event.Event
}

// freed is memory that was reused when the first after loads had been made.
type freed struct {
	from, end uint64
	after     int
}

// granules is a set of granules of a chunk.
type granules [chunkBytes / granuleBytes / 64]uint64

// granuleBytes is the unit in which deferred accesses are tracked. It is the alignment of allocations.
const granuleBytes = 256

// granuleOf returns the index of the granule of an address within its chunk.
func granuleOf(at uint64) uint64 { return at / granuleBytes % (chunkBytes / granuleBytes) }

func (s *granules) has(i uint64) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s *granules) add(i uint64)      { s[i/64] |= 1 << (i % 64) }

// page returns the granules of the page at an address that are in the set, one bit each.
func (s *granules) page(at uint64) uint16 {
	return uint16(s[granuleOf(at)/64] >> (granuleOf(at) / 16 % 4 * 16))
}

// hasAll reports whether all granules in [first, last] are in the set.
func (s *granules) hasAll(first, last uint64) bool {
	for i := first / 64; i <= last/64; i++ {
		want := ^uint64(0)
		if i == first/64 {
			want <<= first % 64
		}
		if i == last/64 {
			want &= ^uint64(0) >> (63 - last%64)
		}
		if s[i]&want != want {
			return false
		}
	}
	return true
}

// granuleSet is a set of granules of all memory.
type granuleSet struct {
	chunks map[uint64]*granules
	number uint64 // the number of the chunk used last
	last   *granules
}

func newGranuleSet() *granuleSet {
	return &granuleSet{chunks: map[uint64]*granules{}, number: ^uint64(0)}
}

// of returns the part of the set that contains an address.
func (x *granuleSet) of(at uint64) *granules {
	if n := at / chunkBytes; n != x.number {
		if x.number, x.last = n, x.chunks[n]; x.last == nil {
			x.last = new(granules)
			x.chunks[n] = x.last
		}
	}
	return x.last
}

// add adds the granule of an address. It returns true if the granule was not in the set.
func (x *granuleSet) add(at uint64) bool {
	s, i := x.of(at), granuleOf(at)
	had := s.has(i)
	s.add(i)
	return !had
}

// addAll adds the granules of an access. It returns true if one of them was not in the set.
func (x *granuleSet) addAll(b *event.Batch, e *event.Event) (grew bool) {
	eachGranule(b, e, func(at uint64) bool {
		grew = x.add(at) || grew
		return true
	})
	return grew
}

// overlaps reports whether an access touches a granule of the set.
func (x *granuleSet) overlaps(b *event.Batch, e *event.Event) (found bool) {
	eachGranule(b, e, func(at uint64) bool {
		found = x.of(at).has(granuleOf(at))
		return !found
	})
	return found
}

// eachGranule calls f with an address in each granule that lanes access, and perhaps in granules between them, until f
// returns false.
func eachGranule(b *event.Batch, e *event.Event, f func(at uint64) bool) (all bool) {
	if e.Flags&(event.FlagScattered|event.FlagRows) == 0 && max(e.Stride, -e.Stride) <= granuleBytes {
		r := lineReach(e)
		for at := r.from; at < r.end; at = (at + granuleBytes) &^ (granuleBytes - 1) {
			if !f(at) {
				return false
			}
		}
		return true
	}
	var room [32]uint64
	for _, at := range b.Addresses(e, &room) {
		for end := at + uint64(e.Size); at < end; at = (at + granuleBytes) &^ (granuleBytes - 1) {
			if !f(at) {
				return false
			}
		}
	}
	return true
}

const (
	mostLoads  = 1 << 20 // for one launch
	mostShared = 1 << 14 // for one block
	mostAddrs  = 1 << 25
	// valueFlags are the flags that say which values an event carries.
	valueFlags = event.FlagValues | event.FlagOld
	addrsBlock = 1 << 12
	mostEnded  = 64 // launches that have ended with loads still deferred
	// mostEndedBytes bounds the memory used for the loads of those.
	mostEndedBytes = 64 << 20
	mostFreed      = 64
	mostParted     = 16 // beyond this, all loads are performed
	tailBits       = 11
	chunkBytes     = pageBytes * chunkSize
)

// PutOffMost sets the limits for the deferred loads of a launch, and for ended launches with deferred loads. It is for
// tests.
func (h *Fast) PutOffMost(ofLaunch, ended int) { h.mostLoads, h.mostEnded = ofLaunch, ended }

func (l *loads) bytes() uint64 {
	return uint64(unsafe.Sizeof(*l)) + uint64(cap(l.tails))*4 + uint64(cap(l.list))*uint64(unsafe.Sizeof(load{})) + uint64(len(l.addrs))*4*addrsBlock +
		uint64(len(l.granules.chunks))*uint64(unsafe.Sizeof(granules{})) + uint64(cap(l.kinds))*uint64(unsafe.Sizeof(loadKind{}))
}

// deferLoad defers a weak load by lanes with a common view. If the load must be performed now, it does nothing and returns
// false.
func (h *Fast) deferLoad(w *Warp, s *siteState, v *order.View) bool {
	if !h.mayPutOff(h.loadsOf(w.Memory), w, s) {
		return false
	}
	h.write(v.Epoch)
	return true
}

// pending is an access by a warp that may be deferred.
type pending struct {
	*Warp
	to    *loads
	site  *siteState
	reach reach
	addrs []uint64 // addresses of the lanes of a scattered access
	room  [32]uint64
}

// mayPutOff reports whether an access by a warp may be deferred. It makes the access the pending one.
func (h *Fast) mayPutOff(l *loads, w *Warp, s *siteState) bool {
	if l.off || s.direct == h.current || l.window == nil && len(h.current.hosts) > 0 {
		return false
	}
	p := &h.pending
	p.Warp, p.to, p.site = w, l, s
	p.reach, p.addrs = w.reach(&p.room)
	if l.window != nil && p.reach.end > chunkBytes {
		return false // beyond the shared memory of any device
	}
	return p.reach.end-p.reach.from <= math.MaxUint32 && h.untouched(l, p.reach, w)
}

// write defers the pending access.
func (h *Fast) write(epoch uint32) {
	p := &h.pending
	e, l := p.Event, p.to
	if p.site.loads.of != l {
		p.site.loads = siteLoads{of: l}
	}
	x := &p.site.loads
	if int(x.kind) >= len(l.kinds) || l.kinds[x.kind].site != p.Site || !l.kinds[x.kind].is(e) {
		x.kind = l.kindOf(p.Site, e)
	}
	var now load // a literal would be copied from where it has just been written, and wait for that
	now.kind, now.lanes, now.warp, now.epoch, now.times, now.warps, now.addr = x.kind, e.Mask, e.Warp, epoch, 1, 1, e.Addr
	var alone uint32
	tail := &alone
	if l.window == nil {
		if l.tails == nil {
			l.tails = make([]uint32, 1<<tailBits)
		}
		tail = &l.tails[(p.Site.Number*0x85ebca6b^e.Warp*0x9e3779b1)>>(32-tailBits)]
	}
	switch {
	case e.Flags&event.FlagScattered != 0:
		now.addr = p.reach.from
		l.add(p.addrs, now.addr)
	case int(*tail) > l.fixed && l.class == weakLoads && l.list[*tail-1].has(&now):
		return
	case int(*tail) > l.fixed && l.list[*tail-1].again(&now):
		return
	case int(x.tail) > l.fixed && int(x.tail) <= len(l.list) && l.list[x.tail-1].next(&now):
		*tail = x.tail // a warp's loads stay in order: all of the site's loads are in this entry or before it
		return
	}
	if e.Flags&event.FlagScattered == 0 && l.fold(x) {
		l.list[x.tail-1] = now
		*tail = x.tail
		return
	}
	x.whole = x.tail
	l.list = append(l.list, now)
	*tail = uint32(len(l.list))
	x.tail = *tail
	most := h.mostLoads
	if l.window != nil {
		most = min(most, mostShared)
	}
	if len(l.list) < most && len(l.addrs) < mostAddrs/addrsBlock {
		return
	}
	h.perform(l)
	l.off = true
}

// add adds the addresses of a scattered load, as offsets.
func (l *loads) add(addrs []uint64, from uint64) {
	var offsets [32]uint32
	for i, at := range addrs {
		offsets[i] = uint32(at - from)
	}
	l.keep(offsets[:len(addrs)])
}

// keep adds the offsets of the lanes of a scattered load.
func (l *loads) keep(offsets []uint32) {
	n := len(l.addrs) - 1
	if n < 0 || len(l.addrs[n])+len(offsets) > addrsBlock {
		l.addrs = append(l.addrs, make([]uint32, 0, addrsBlock))
		n++
	}
	l.addrs[n] = append(l.addrs[n], offsets...)
}

// siteLoads is the state of a site's deferred loads.
type siteLoads struct {
	of    *loads
	kind  uint32 // of the last load
	tail  uint32 // one more than the index of the last load
	whole uint32 // one more than the index of the load before it, which adjacent warps may extend
}

// fold merges the last load of a site, now complete, into the one before, which covers the preceding warps. It returns
// true if it did.
func (l *loads) fold(s *siteLoads) bool {
	n := uint32(len(l.list))
	if min(s.whole, s.tail) <= uint32(l.fixed) || max(s.whole, s.tail) > n || s.whole == s.tail {
		return false
	}
	x, o := &l.list[s.whole-1], &l.list[s.tail-1]
	return l.kinds[x.kind].event.Flags&event.FlagScattered == 0 && o.warps == 1 && x.warp+x.warps == o.warp && x.epoch == o.epoch &&
		x.times == o.times && (x.times == 1 || x.later == o.later && x.step == o.step) && x.longer(o, &x.warps, &x.apart)
}

// has reports whether o repeats an access that x already contains, in the same epoch. Such a repeated read can race
// with nothing new. Without this check, loops over a few addresses within outer loops would make a new entry each time
// an inner loop begins.
func (x *load) has(o *load) bool {
	if x.kind != o.kind || x.lanes != o.lanes || x.epoch != o.epoch || o.warp-x.warp >= x.warps {
		return false
	}
	off, step, times := int64(o.addr-x.at(0, o.warp-x.warp)), int64(x.step), int64(x.times)
	if off == 0 || step == 0 || off == step*times { // the next access of the progression: the most frequent case
		return off == 0
	}
	return off%step == 0 && uint64(off/step) < uint64(times)
}

// again extends x by another access of the same warp. If the address or epoch does not continue the progression, it
// does nothing and returns false.
func (x *load) again(o *load) bool {
	if x.warp != o.warp || x.warps != 1 {
		return false
	}
	later := x.later
	if x.times == 1 {
		later = o.epoch - x.epoch
	}
	if o.epoch != x.epoch+x.times*later || !x.longer(o, &x.times, &x.step) {
		return false
	}
	x.later = later
	return true
}

// next extends x by an access of the next warp.
func (x *load) next(o *load) bool {
	return x.warp+x.warps == o.warp && x.times == 1 && x.epoch == o.epoch && x.longer(o, &x.warps, &x.apart)
}

// longer extends x by an access that continues a progression of n steps.
func (x *load) longer(o *load, n *uint32, step *int32) bool {
	if x.kind != o.kind || x.lanes != o.lanes {
		return false
	}
	if *n == 1 {
		*step = int32(o.addr - x.addr)
	}
	if x.addr+uint64(int64(*step)*int64(*n)) != o.addr {
		return false
	}
	*n++
	return true
}

// at returns the address of an access.
func (x *load) at(time, warp uint32) uint64 {
	return x.addr + uint64(int64(time)*int64(x.step)+int64(warp)*int64(x.apart))
}

// is reports whether an event of the same site is of this kind.
func (k *loadKind) is(e *event.Event) bool {
	o := &k.event
	return o.Flags == e.Flags&^valueFlags && (e.Flags&event.FlagScattered != 0 ||
		o.Stride == e.Stride && (e.Flags&event.FlagRows == 0 || o.Side == e.Side && o.RowShift == e.RowShift))
}

// kindOf returns the kind of an event: one of the last few, or a new one.
func (l *loads) kindOf(s *Site, e *event.Event) uint32 {
	for i := len(l.kinds) - 1; i >= max(len(l.kinds)-16, 0); i-- {
		if l.kinds[i].site == s && l.kinds[i].is(e) {
			return uint32(i)
		}
	}
	l.kinds = append(l.kinds, loadKind{s, *e})
	l.kinds[len(l.kinds)-1].event.Flags &^= valueFlags
	l.widest = max(l.widest, uint64(e.Size))
	return uint32(len(l.kinds) - 1)
}

// reach is a range of addresses that contains all bytes that lanes access.
type reach struct{ from, end uint64 }

// lineReach returns the reach of an access with one stride.
func lineReach(e *event.Event) reach {
	last := e.Addr + uint64(int64(31-bits.LeadingZeros32(e.Mask)-bits.TrailingZeros32(e.Mask))*e.Stride)
	return reach{min(e.Addr, last), max(e.Addr, last) + uint64(e.Size)}
}

// reach returns the reach of a warp's access, and the lanes' addresses if the access is scattered.
func (w *Warp) reach(room *[32]uint64) (r reach, addrs []uint64) {
	e := w.Event
	size := uint64(e.Size)
	if e.Flags&(event.FlagScattered|event.FlagRows) == 0 {
		return lineReach(e), nil
	}
	if e.Flags&event.FlagScattered == 0 { // in rows; the reach covers whole rows
		first, last := bits.TrailingZeros32(e.Mask), 31-bits.LeadingZeros32(e.Mask)
		rows := int64(last>>e.RowShift-first>>e.RowShift) * e.RowStride()
		left := -int64(first&(1<<e.RowShift-1)) * e.Stride
		right := left + (1<<e.RowShift-1)*e.Stride
		return reach{e.Addr + uint64(min(left, right)+min(rows, 0)), e.Addr + uint64(max(left, right)+max(rows, 0)) + size}, nil
	}
	addrs = w.Batch.Addresses(e, room)
	r = reach{addrs[0], addrs[0]}
	for _, at := range addrs[1:] {
		r.from, r.end = min(r.from, at), max(r.end, at)
	}
	r.end += size
	return r, addrs
}

// untouched reports whether accesses to everything that lanes access may be deferred, and adds the granules to l.
func (h *Fast) untouched(l *loads, r reach, w *Warp) bool {
	if r.from < r.end && r.from/chunkBytes == (r.end-1)/chunkBytes && l.granules.of(r.from).hasAll(granuleOf(r.from), granuleOf(r.end-1)) {
		return true
	}
	return eachGranule(w.Batch, w.Event, func(at uint64) bool { return h.untouchedAt(l, at) })
}

// pageOf returns the page of an address; nil if nothing was recorded there.
func (h *Fast) pageOf(l *loads, at uint64) *page {
	if l.window != nil {
		return *l.window.page(at)
	}
	return h.chunkOf(at / chunkBytes).pages[at/pageBytes%chunkSize]
}

// untouchedAt is untouched for the granule of an address.
func (h *Fast) untouchedAt(l *loads, at uint64) bool {
	s, i := l.granules.of(at), granuleOf(at)
	if s.has(i) {
		return true
	}
	if h.otherwise(l, at) {
		return false
	}
	if p := h.pageOf(l, at); p != nil {
		bit := uint16(1) << (i % 16)
		switch {
		case p.launch != h.current:
			if !p.before(h.current) {
				return false
			}
		case !p.clean || p.touched&bit != 0:
			return false
		default:
			p.deferred[l.class] |= bit
		}
	}
	s.add(i)
	return true
}

// otherwise reports whether deferred accesses of the other class exist in the granule of an address and may race with
// accesses of this one.
func (h *Fast) otherwise(l *loads, at uint64) bool {
	if l.window != nil {
		return false
	}
	holds := func(o *loads) bool {
		s := o.granules.chunks[at/chunkBytes]
		return o.class != l.class && s != nil && s.has(granuleOf(at))
	}
	return holds(h.current.logs[classes-1-l.class]) || slices.ContainsFunc(h.current.others, holds)
}

// loadsOf returns the deferred loads of a memory by the current launch.
func (h *Fast) loadsOf(m Memory) *loads {
	if !m.Shared {
		return h.current.logs[weakLoads]
	}
	w := h.windowOf(m)
	if w.loads == nil {
		w.loads = &loads{state: h.current, window: w, granules: newGranuleSet()}
	}
	return w.loads
}

// forget drops all loads: they happen before everything that follows.
func (l *loads) forget() {
	if l == nil {
		return
	}
	*l.granules.of(0) = granules{}
	l.list, l.kinds, l.freed = l.list[:0], l.kinds[:0], l.freed[:0]
	if len(l.addrs) > 0 {
		l.addrs = l.addrs[:1]
		l.addrs[0] = l.addrs[0][:0]
	}
	l.fixed, l.parted, l.off = 0, 0, false
}

// before reports whether a launch follows all that have accessed a page.
func (p *page) before(x *launchState) bool {
	return (p.launch == nil || x.Follows(p.launch.Launch)) && !slices.ContainsFunc(p.earlier, func(l *order.Launch) bool { return !x.Follows(l) })
}

// holds reports whether deferred accesses may exist in the bytes [from, end).
func (l *loads) holds(from, end uint64) bool {
	for n, s := range l.granules.chunks {
		lo, hi := max(from, n*chunkBytes), min(end, (n+1)*chunkBytes)
		for at := lo; at < hi; at = (at + granuleBytes) &^ (granuleBytes - 1) {
			if s.has(granuleOf(at)) {
				return true
			}
		}
	}
	return false
}

// touch records that the current launch accesses one of its pages other than by a deferred access.
func (h *Fast) touch(m Memory, p *page, at uint64) {
	bit := uint16(1) << (granuleOf(at) % 16)
	if p.deferred[weakLoads]&bit != 0 {
		h.performAt(h.loadsOf(m), at)
	}
	if p.deferred[relaxedAtomics]&bit != 0 {
		h.performAt(h.current.logs[relaxedAtomics], at)
	}
	p.touched |= bit
}

// performOthers performs the deferred accesses to a page by launches that the current one does not follow. The current
// launch is about to enter the page.
func (h *Fast) performOthers(at uint64) {
	for _, l := range h.current.others {
		if s := l.granules.chunks[at/chunkBytes]; s != nil && s.page(at) != 0 {
			h.perform(l)
		}
	}
}

// allLoads returns the deferred accesses of all launches that are not forgotten.
func (h *Fast) allLoads() []*loads {
	all := slices.Clone(h.ended)
	for _, x := range h.launches {
		all = append(all, x.logs[:]...)
	}
	return all
}

// performLoads performs the deferred accesses that an access of the host may race with.
func (h *Fast) performLoads(a *Access) {
	for _, l := range h.allLoads() {
		if (a.Site.Side.Write || l.class != weakLoads) && !a.Actor.Knows(l.state.Launch) && l.holds(a.From, a.End) {
			h.perform(l)
		}
	}
}

// take removes and returns the deferred accesses.
func (l *loads) take() loads {
	was := *l
	l.list, l.addrs, l.freed, l.fixed, l.tails = nil, nil, nil, 0, nil
	return was
}

// part removes and returns the deferred accesses of the sites for which leaves is true.
func (l *loads) part(leaves func(*Site) bool) (gone loads) {
	all := l.take()
	l.fixed, gone.class, gone.state, gone.window, gone.kinds = all.fixed, l.class, l.state, l.window, l.kinds
	to := func(x *load) *loads {
		if leaves(l.kinds[x.kind].site) {
			return &gone
		}
		return l
	}
	for _, f := range all.freed {
		l.freed, gone.freed = append(l.freed, freed{f.from, f.end, 0}), append(gone.freed, freed{f.from, f.end, 0})
		for i := range all.list[:f.after] {
			to(&all.list[i]).freed[len(gone.freed)-1].after++
		}
	}
	for i := range all.list[:all.fixed] {
		if to(&all.list[i]) == &gone {
			l.fixed--
		}
	}
	var block []uint32
	for _, x := range all.list {
		o := to(&x)
		o.list = append(o.list, x)
		if l.kinds[x.kind].event.Flags&event.FlagScattered != 0 {
			if len(block) == 0 {
				block, all.addrs = all.addrs[0], all.addrs[1:]
			}
			n := bits.OnesCount32(x.lanes)
			o.keep(block[:n])
			block = block[n:]
		}
	}
	return gone
}

// each calls f for the loads in order, with their epochs and with the lanes whose memory was not reused since.
func (l *loads) each(f func(s *Site, b *event.Batch, e *event.Event, epoch, lanes uint32)) {
	l.visit(false, f)
}

// places is each for callers that need only know what each site has loaded from: it omits obvious repetitions.
func (l *loads) places(f func(s *Site, b *event.Batch, e *event.Event, lanes uint32)) {
	l.visit(true, func(s *Site, b *event.Batch, e *event.Event, _, lanes uint32) { f(s, b, e, lanes) })
}

func (l *loads) visit(once bool, f func(s *Site, b *event.Batch, e *event.Event, epoch, lanes uint32)) {
	var room [32]uint64
	b := event.Batch{Addrs: room[:]}
	addrs := l.addrs
	var block []uint32
	for i := range l.list {
		x := &l.list[i]
		e := l.kinds[x.kind].event
		e.Mask = x.lanes
		if e.Flags&event.FlagScattered != 0 {
			if len(block) == 0 {
				block, addrs = addrs[0], addrs[1:]
			}
			n := bits.OnesCount32(e.Mask)
			for j, o := range block[:n] {
				room[j] = x.addr + uint64(o)
			}
			e.Side, block = 0, block[n:]
		}
		times, warps := x.times, x.warps
		if once {
			if x.step == 0 {
				times = 1
			}
			if x.apart == 0 {
				warps = 1
			}
			if e.Stride == 0 && e.Flags&(event.FlagScattered|event.FlagRows) == 0 {
				e.Mask &= -e.Mask
			}
		}
		for k := range times * warps {
			n := k % times
			e.Warp, e.Addr = x.warp+k/times, x.at(n, k/times)
			lanes := e.Mask
			for _, r := range l.freed {
				for m := lanes; m != 0 && i < r.after; m &= m - 1 {
					if at := b.AddrOf(&e, bits.TrailingZeros32(m)); r.from <= at && at < r.end {
						lanes &^= m & -m
					}
				}
			}
			if lanes != 0 {
				f(l.kinds[x.kind].site, &b, &e, x.epoch+n*x.later, lanes)
			}
		}
	}
}

// perform performs the deferred accesses of a launch. They race with nothing: whatever has been recorded for the same
// memory since is by launches that follow theirs.
func (h *Fast) perform(l *loads) {
	h.release(l, l.granules.chunks)
	all := l.take()
	h.performNow(&all)
}

// performAt prepares for an access of the current launch to the granule of an address that is not deferred. It performs
// the deferred accesses of all sites that have accessed the granule, and transitively of all sites that have accessed
// another granule that these accessed. Accesses of these sites are no longer deferred in this launch.
func (h *Fast) performAt(l *loads, at uint64) {
	reached := newGranuleSet()
	reached.add(at)
	for more := true; more; { // a site may come after loads of its own, or of granules that it adds
		more = false
		l.places(func(site *Site, b *event.Batch, e *event.Event, _ uint32) {
			s := h.stateOf(site)
			if s.direct == l.state || reached.overlaps(b, e) {
				s.direct = l.state
				more = reached.addAll(b, e) || more
			}
		})
	}
	if l.parted++; l.parted > mostParted {
		h.perform(l)
		return
	}
	h.release(l, reached.chunks)
	gone := l.part(func(s *Site) bool { return h.stateOf(s).direct == l.state })
	for i := range l.list {
		h.stateOf(l.kinds[l.list[i].kind].site).loads.tail = uint32(i) + 1
	}
	h.performNow(&gone)
}

// release removes granules from those with deferred accesses.
func (h *Fast) release(l *loads, chunks map[uint64]*granules) {
	for n, gone := range chunks {
		s := l.granules.chunks[n]
		if s == nil {
			continue
		}
		for i := range gone {
			for m := gone[i] & s[i]; m != 0; m &= m - 1 {
				j := i*64 + bits.TrailingZeros64(m)
				if p := h.pageOf(l, n*chunkBytes+uint64(j)*granuleBytes); p != nil && p.launch == l.state {
					p.deferred[l.class] &^= 1 << (j % 16)
				}
			}
			s[i] &^= gone[i]
		}
	}
}

// performNow performs loads that were deferred.
func (h *Fast) performNow(l *loads) {
	was := h.current
	h.current = l.state
	view := *l.state.First().View
	w := Warp{Block: l.state.Absent()}
	if l.window != nil {
		w.Memory = l.window.Memory
	}
	l.each(func(site *Site, b *event.Batch, e *event.Event, epoch, lanes uint32) {
		w.Batch, w.Site, w.Event, w.Block.Index = b, site, e, e.Warp/w.Block.WarpsPerBlock
		view.Epoch = epoch
		if l.class == relaxedAtomics {
			h.performAtomics(&w, &view, lanes, l.chains)
			return
		}
		h.weak(&w, h.stateOf(site), &view, lanes, func(*Access, Race) {})
	})
	h.current = was
}

// reuseLoads drops the deferred accesses to the bytes [from, end).
func (h *Fast) reuseLoads(from, end uint64) {
	for _, l := range h.allLoads() {
		if len(l.list) == 0 || !l.holds(from, end) {
			continue
		}
		if (from|end)%l.widest != 0 && l.straddles(from, end) {
			h.perform(l)
			continue
		}
		l.fixed = len(l.list)
		if i := slices.IndexFunc(l.freed, func(f freed) bool { return f.from == from && f.end == end }); i >= 0 {
			l.freed[i].after = l.fixed
		} else if l.freed = append(l.freed, freed{from, end, l.fixed}); len(l.freed) > mostFreed {
			h.perform(l)
		}
	}
}

// straddles reports whether a lane has accessed bytes both inside and outside of [from, end).
func (l *loads) straddles(from, end uint64) (found bool) {
	l.places(func(_ *Site, b *event.Batch, e *event.Event, lanes uint32) {
		size := uint64(e.Size)
		for m := lanes; m != 0 && (from|end)%size != 0 && !found; m &= m - 1 {
			at := b.AddrOf(e, bits.TrailingZeros32(m))
			found = at < from && from < at+size || at < end && end < at+size
		}
	})
	return found
}

// beginLoads prepares for a launch that begins.
func (h *Fast) beginLoads(x *launchState) {
	for class := range x.logs {
		x.logs[class] = &loads{class: class, state: x, granules: newGranuleSet()}
	}
	kept := h.ended[:0]
	for _, l := range h.ended {
		if len(l.list) > 0 {
			kept = append(kept, l)
		}
	}
	h.ended = kept
	for _, o := range h.launches {
		if !o.Over() {
			o.others, x.others = append(o.others, x.logs[:]...), append(x.others, o.logs[:]...)
			continue
		}
		for _, l := range o.logs {
			if len(l.list) == 0 {
				continue
			}
			l.chains, l.tails = max(h.order.Chains(), 1), nil
			h.ended = append(slices.DeleteFunc(h.ended, func(m *loads) bool { return l.makesUp(m) }), l)
		}
	}
	bytes := uint64(0)
	for _, l := range h.ended {
		bytes += l.bytes()
	}
	for len(h.ended) > 0 && (len(h.ended) > h.mostEnded || bytes > mostEndedBytes) {
		l := h.ended[0]
		h.ended = h.ended[1:]
		bytes -= l.bytes()
		h.perform(l)
	}
	for _, l := range h.ended {
		if !x.Follows(l.state.Launch) {
			x.others = append(x.others, l)
		}
	}
}

// makesUp reports whether the launch of l follows that of o and has deferred the same accesses: whoever races with
// those of o races with those of l.
func (l *loads) makesUp(o *loads) bool {
	switch {
	case l.class != o.class || !l.state.Follows(o.state.Launch):
		return false
	case l.newest > o.chains:
		return false // observing what the later launch wrote does not imply observing the earlier one
	case slices.ContainsFunc(l.freed, func(r freed) bool {
		return !slices.ContainsFunc(o.freed, func(s freed) bool { return s.from == r.from && s.end == r.end && s.after >= r.after })
	}):
		return false // the earlier launch has loads from this memory and the later one does not
	}
	return slices.Equal(l.list, o.list) && slices.EqualFunc(l.addrs, o.addrs, slices.Equal) &&
		slices.EqualFunc(l.kinds, o.kinds, func(a, b loadKind) bool { return a.site == b.site && a.is(&b.event) })
}
