package hb

import (
	"iter"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// An access through the async proxy needs a proxy fence between it and a conflicting access through the generic proxy
// that happens before it: "accessing the same memory location across multiple proxies needs a cross-proxy fence" (PTX
// ISA, "Async proxy"). For global memory the fence is required only after writes by the same launch (globalFences). It
// is not required after reads: no code is known that has a fence between a read and a bulk copy to global memory. The
// rest of this file is about shared memory.
//
// For each byte, the accesses through the generic proxy are kept until a later access replaces them. A write replaces
// the accesses that happen before it. A read replaces the reads that happen before it. A completed write through the
// async proxy replaces all.
//
// A cp.async writes through the generic proxy at the time when the copy is complete. A fence before that time does not
// cover it. A missing fence after a cp.async is only a warning: the manual requires the fence, but CUTLASS omits it in
// its kernels for sm_90 and sm_100 that copy operands of wgmma and tcgen05.mma by cp.async.

// proxies holds the accesses and the fences that matter for later accesses through the async proxy to the shared memory
// of a block, or of the blocks of a cluster.
type proxies struct {
	granules [][]granule // indexed by the rank of the block and the address
	fences   []proxyFence
	time     int  // counts fences, and issues and completions of cp.async
	most     int  // with more fences than this, prune drops those that nobody needs; 0: maxProxyFences
	lost     bool // fences that may matter have been dropped
	landed   landed
}

type clusterKey struct{ launch, cluster uint32 }

// granule holds the accesses through the generic proxy to copyGranule bytes.
type granule struct {
	marks     []mark
	allocated bool // it holds the address of allocated tensor memory (tcgen05.alloc): reading it needs no fence
}

// mark is an access by lanes of a warp to some bytes of a granule.
type mark struct {
	site   *history.Site
	launch *order.Launch
	warp   uint32
	lanes  uint32
	epoch  uint32
	done   int    // of cp.async: the time when it was complete (proxies.time); otherwise 0
	bytes  uint16 // a bit for each byte of the granule
}

// copyOrder records what happens before a cp.async by lanes of a warp, and which threads know that it is complete.
type copyOrder struct {
	issued int             // proxies.time at the issue
	views  [32]*order.View // of the lanes, at the issue
	epochs [32]uint32      // by lane, where an mbarrier tracks the copy: a thread that knows this epoch of the lane knows that the copy is complete
}

// proxyFence is a fence.proxy.async by lanes with a common view.
type proxyFence struct {
	block uint32
	warp  uint32 // number within the block
	lanes uint32
	view  *order.View
	time  int
}

// maxProxyFences fences are kept for each block or cluster, or up to mostProxyFences if so many are needed.
const (
	maxProxyFences  = 1024
	mostProxyFences = 16 * maxProxyFences
)

// proxiesOf returns the proxies of a block or its cluster, creating them if necessary.
func (d *Detector) proxiesOf(b *order.Block) *proxies {
	if !b.Clustered() {
		s := d.bulksOf(b)
		if s.proxies == nil {
			s.proxies = &proxies{}
		}
		return s.proxies
	}
	cluster, _ := b.Info.ClusterOf(b.Index)
	k := clusterKey{b.Info.ID, cluster}
	p := d.proxies[k]
	if p == nil {
		if d.proxies == nil {
			d.proxies = map[clusterKey]*proxies{}
		}
		p = &proxies{}
		d.proxies[k] = p
	}
	return p
}

// sharedAt translates an address to the rank of a block in its cluster and the offset in its shared memory. ok is false
// for global memory.
func sharedAt(m *history.Memory, addr uint64) (rank uint32, at uint64, ok bool) {
	if m.Shared {
		return 0, addr, true
	}
	return explain.OfPeer(addr)
}

// at returns the granule of an address, creating it if necessary.
func (p *proxies) at(rank uint32, addr uint64) *granule {
	return granuleAt(ofRank(&p.granules, rank), addr/copyGranule)
}

// known returns the existing granules that overlap with a range of addresses, each with its address and the bytes that
// are in the range. The range need not be aligned.
func (p *proxies) known(rank uint32, from, end uint64) iter.Seq2[*granule, granuleBytes] {
	return func(yield func(*granule, granuleBytes) bool) {
		if rank >= uint32(len(p.granules)) {
			return
		}
		list := p.granules[rank]
		for at := from / copyGranule; at*copyGranule < end && at < uint64(len(list)); at++ {
			low := max(at*copyGranule, from) % copyGranule
			n := min((at+1)*copyGranule, end) - max(at*copyGranule, from)
			if !yield(&list[at], granuleBytes{at * copyGranule, uint16((1<<n - 1) << low)}) {
				return
			}
		}
	}
}

// granuleBytes is a set of bytes of the granule at an address: one bit for each.
type granuleBytes struct {
	at    uint64
	bytes uint16
}

// fence records a fence by lanes of a warp.
func (p *proxies) fence(blk *order.Block, wi, lanes uint32) {
	p.time++
	for v, having := range blk.Views(wi, lanes) {
		p.fences = append(p.fences, proxyFence{blk.Index, wi, having, v, p.time})
	}
	if len(p.fences) <= max(p.most, maxProxyFences) {
		return
	}
	p.prune(blk.Launch)
	p.most = 2 * len(p.fences)
	if over := len(p.fences) - mostProxyFences; over > 0 {
		p.fences, p.lost = slices.Delete(p.fences, 0, over), true
	}
}

// prune drops a fence if later fences by the same lanes make it needless: those that all threads that may still access
// the memory know of.
func (p *proxies) prune(l *order.Launch) {
	known := map[uint32]uint32{} // lanes by warp in the grid
	kept := len(p.fences)
	for i := len(p.fences) - 1; i >= 0; i-- {
		f := p.fences[i]
		warp := f.block*l.WarpsPerBlock + f.warp
		if f.lanes&^known[warp] == 0 {
			continue
		}
		if l.Known(f.block, f.warp, f.lanes, f.view.Epoch) {
			known[warp] |= f.lanes
		}
		kept--
		p.fences[kept] = f
	}
	p.fences = slices.Delete(p.fences, 0, kept)
}

// written records that a write through the async proxy is complete.
func (p *proxies) written(rank uint32, from, n uint64) {
	for g, of := range p.known(rank, from, from+n) {
		g.allocated = false
		g.marks = slices.DeleteFunc(g.marks, func(m mark) bool { return m.bytes&^of.bytes == 0 })
		for i := range g.marks {
			g.marks[i].bytes &^= of.bytes
		}
	}
}

// touches records an access by a warp through the generic proxy.
func (d *Detector) touches(w *history.Warp) {
	e := w.Event
	p, g := (*proxies)(nil), (*globalFences)(nil)
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		from := w.Batch.AddrOf(e, lane)
		rank, at, ok := sharedAt(&w.Memory, from)
		if !ok {
			if !w.Site.Side.Write {
				continue
			}
			if g == nil {
				g = d.globalFencesOf(w.Block.Launch)
			}
			g.write(from)
			continue
		}
		if p == nil {
			p = d.proxiesOf(w.Block)
		}
		who := w.Block.Actor(w.InBlock, lane)
		now := mark{site: w.Site, launch: who.Launch, warp: who.Warp, lanes: 1 << lane, epoch: who.View.Epoch}
		p.touch(rank, at, uint64(e.Size), now, &who, p.time+1)
	}
}

// copyIssued records the issue of copies by a warp. copyDone is called when they are complete.
func (d *Detector) copyIssued(x *copyHalf) {
	if !x.Block.Launch.Info.Bulk || !x.Site.Side.Write {
		return
	}
	p := d.proxiesOf(x.Block)
	p.time++
	x.order = &copyOrder{issued: p.time}
	for m := x.event.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		x.order.views[lane] = x.Block.ViewOf(x.InBlock, lane)
	}
	x.Block.Advance(x.InBlock, x.event.Mask)
}

// copyTracked records that an mbarrier begins to track copies of lanes. For other threads, the copies happen before
// what the lanes do from now on.
func (x *copyHalf) copyTracked(lanes uint32) {
	for m := lanes; m != 0 && x.order != nil; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		x.order.epochs[lane] = x.Block.ViewOf(x.InBlock, lane).Epoch
	}
}

// copyDone records copies of lanes as complete, by a wait of their threads (waited) or by a phase of an mbarrier.
func (d *Detector) copyDone(x *copyHalf, done uint32, waited bool) {
	if x.order == nil {
		return
	}
	p := d.proxiesOf(x.Block)
	p.time++
	for m := done; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		rank, from, ok := sharedAt(&x.Memory, x.batch.AddrOf(&x.event, lane))
		if !ok {
			continue
		}
		who := x.Block.Actor(x.InBlock, lane)
		now := mark{site: x.Site, launch: who.Launch, warp: who.Warp, lanes: 1 << lane, epoch: x.order.epochs[lane], done: p.time}
		if waited {
			now.epoch = who.View.Epoch
		}
		who.View = x.order.views[lane]
		p.touch(rank, from, uint64(x.event.Size), now, &who, x.order.issued)
	}
}

// touch records the access now, whose bytes it fills in. The access replaces those that happen before it: those
// that are in the view of who and that were complete before time.
func (p *proxies) touch(rank uint32, from, size uint64, now mark, who *order.Actor, time int) {
	for at, end := from, from+size; at < end; {
		low := at % copyGranule
		n := min(copyGranule-low, end-at)
		now.bytes = uint16((1<<n - 1) << low)
		p.at(rank, at).touch(now, who, time)
		at += n
	}
}

// touch is the same for the bytes of one granule, now.bytes.
func (g *granule) touch(now mark, who *order.Actor, time int) {
	bytes, write := now.bytes, now.site.Side.Write
	if g.allocated && !write {
		return
	}
	g.allocated = false
	for i := 0; i < len(g.marks); i++ {
		m := &g.marks[i]
		if m.bytes&bytes == 0 || m.site.Side.Write && !write || m.done >= time {
			continue
		}
		known := m.lanes &^ who.Unknown(m.launch, m.warp, m.lanes, m.epoch)
		if m.warp == who.Warp && m.launch == who.Launch && m.epoch <= who.View.Epoch {
			known |= m.lanes & (1 << who.Lane)
		}
		if known == 0 {
			continue
		}
		rest := *m
		rest.lanes &^= known
		if m.lanes, m.bytes = known, m.bytes&^bytes; m.bytes == 0 {
			*m = rest
			rest.lanes = 0
		}
		if m.lanes == 0 {
			g.marks = slices.Delete(g.marks, i, i+1)
			i--
		} else if rest.lanes != 0 {
			i++
			g.marks = slices.Insert(g.marks, i, rest)
		}
	}
	if n := len(g.marks); n > 0 {
		last := g.marks[n-1]
		if last.lanes = now.lanes; last == now {
			g.marks[n-1].lanes |= now.lanes
			return
		}
	}
	g.marks = append(g.marks, now)
}

// fenced reports the accesses through the generic proxy that happen before an access through the async proxy to shared
// memory, conflict with it, and have no proxy fence between.
func (d *Detector) fenced(a *history.Access, rank uint32, from uint64, blk *order.Block) {
	p := d.proxiesOf(blk)
	if p.lost {
		return
	}
	for g, of := range p.known(rank, from, from+a.End-a.From) {
		for _, m := range g.marks {
			if m.bytes &= of.bytes; m.bytes != 0 && (m.site.Side.Write || a.Site.Side.Write) {
				d.fencedFrom(p, a, &m, a.From+of.at-from)
			}
		}
	}
}

// fencedFrom is fenced for the accesses of one mark, in the granule at the address at.
func (d *Detector) fencedFrom(p *proxies, a *history.Access, k *mark, at uint64) {
	for m := k.lanes; m != 0; m &= m - 1 {
		s := order.Stamp{Launch: k.launch, Warp: k.warp, Lane: bits.TrailingZeros32(m), Epoch: k.epoch}
		if !a.Actor.After(&s) || p.covered(&s, &a.Actor, k.done) {
			continue
		}
		category := detect.NoProxyFence
		if k.done != 0 {
			category = detect.CopyProxyFence
		}
		for b := k.bytes; b != 0; {
			low := bits.TrailingZeros16(b)
			n := bits.TrailingZeros16(^(b >> low))
			b &^= uint16((1<<n - 1) << low)
			from := at + uint64(low)
			end := from + uint64(n)
			d.race(a, history.Race{Category: category, From: from, End: end,
				Earlier: &history.Record{Site: k.site, Stamp: s, Executed: k.lanes, From: from, End: end}})
		}
		return
	}
}

// covered reports whether a fence lies in happens-before order between an access, complete at the time done, and an
// access by an actor.
func (p *proxies) covered(s *order.Stamp, a *order.Actor, done int) bool {
	for i := len(p.fences) - 1; i >= 0 && p.fences[i].time > done; i-- {
		if p.fences[i].covers(s, a) {
			return true
		}
	}
	return false
}

// covers reports whether the fence lies in happens-before order between an access and an access by an actor.
func (f *proxyFence) covers(s *order.Stamp, a *order.Actor) bool {
	ok, _ := f.between(s, a, f.lanes)
	return ok
}

// between is covers for the fence as executed by some lanes. known are those of the lanes whose execution of the fence
// the actor knows.
func (f *proxyFence) between(s *order.Stamp, a *order.Actor, lanes uint32) (ok bool, known uint32) {
	l := s.Launch
	warp := f.block*l.WarpsPerBlock + f.warp
	for m := f.lanes & lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		own := a.Warp == warp && a.Lane == lane
		if !own && a.Unknown(l, warp, 1<<lane, f.view.Epoch) != 0 {
			continue
		}
		known |= 1 << lane
		if s.Warp == warp && s.Lane == lane {
			if s.Epoch <= f.view.Epoch {
				return true, known
			}
		} else if f.view.Unknown(l, f.block, l, s.Warp, 1<<s.Lane, s.Epoch) == 0 {
			return true, known
		}
	}
	return false, known
}

// globalFences holds the fences for global memory of a launch that has written global memory through the generic proxy.
type globalFences struct { // by warp number in the grid
	by      map[uint32]*warpFences // the number of fences
	n       int                    // fences that may matter have been dropped
	lost    bool                   // parts of memory of wroteBytes that were written, by address / wroteBytes
	written map[uint64]bool        // the part written last
	last    uint64                 // one of them
}

// warpFences holds the fences of a warp.
type warpFences struct {
	list  []proxyFence
	lanes uint32 // lanes that have executed one
}

// covers reports whether one of the fences covers an access. Of each lane's fences that the actor knows, only the last
// needs to be tried: it covers whatever an earlier one covers.
func (w *warpFences) covers(s *order.Stamp, a *order.Actor) bool {
	if w == nil {
		return false
	}
	rest := w.lanes
	// If the actor does not know a lane's first fence, it knows none of that lane. That is the case for most warps of
	// other blocks.
	if f := &w.list[0]; a.Warp != f.block*s.Launch.WarpsPerBlock+f.warp {
		rest &^= a.Unknown(s.Launch, f.block*s.Launch.WarpsPerBlock+f.warp, f.lanes, f.view.Epoch)
	}
	for i := len(w.list) - 1; i >= 0 && rest != 0; i-- {
		ok, known := w.list[i].between(s, a, rest)
		if ok {
			return true
		}
		rest &^= known
	}
	return false
}

// wroteBytes is the size of the parts of global memory by which a launch's writes through the generic proxy are
// recorded.
const wroteBytes = 1 << 12

// globalFencesOf returns the globalFences of a launch, creating them if necessary.
func (d *Detector) globalFencesOf(l *order.Launch) *globalFences {
	if d.globalFences == nil {
		d.globalFences = map[*order.Launch]*globalFences{}
	}
	g := d.globalFences[l]
	if g == nil {
		g = &globalFences{by: map[uint32]*warpFences{}, written: map[uint64]bool{}}
		d.globalFences[l] = g
	}
	return g
}

// write records a write at an address through the generic proxy. Writes are aligned, so none crosses the border of a
// part.
func (g *globalFences) write(at uint64) {
	if at /= wroteBytes; at != g.last || len(g.written) == 0 {
		g.last = at
		g.written[at] = true
	}
}

// wrote reports whether the launch may have written some of the bytes [from, end) through the generic proxy.
func (g *globalFences) wrote(from, end uint64) bool {
	for at := from / wroteBytes; at*wroteBytes < end; at++ {
		if g.written[at] {
			return true
		}
	}
	return false
}

// Notes implements detect.Noted.
func (d *Detector) Notes() []string {
	if !d.dropped {
		return nil
	}
	return []string{"Not all proxy fences are kept, because too many were executed: a missing proxy fence before a later access may not be reported"}
}

// fenceGlobal records a fence for global memory by lanes of a warp.
func (d *Detector) fenceGlobal(blk *order.Block, wi, lanes uint32) {
	g := d.globalFences[blk.Launch]
	if g == nil || g.lost {
		return
	}
	if g.n >= mostProxyFences {
		g.by, g.lost, d.dropped = nil, true, true
		return
	}
	warp := blk.Index*blk.WarpsPerBlock + wi
	w := g.by[warp]
	if w == nil {
		w = &warpFences{}
		g.by[warp] = w
	}
	for v, having := range blk.Views(wi, lanes) {
		w.list = append(w.list, proxyFence{block: blk.Index, warp: wi, lanes: having, view: v})
		w.lanes |= having
		g.n++
	}
}

// covered reports whether a fence lies between a write and an access by an actor. It tries the two warps first, since
// one of them usually executes the fence.
func (g *globalFences) covered(s *order.Stamp, a *order.Actor) bool {
	if g.by[a.Warp].covers(s, a) || g.by[s.Warp].covers(s, a) {
		return true
	}
	for warp, w := range g.by {
		if warp != a.Warp && warp != s.Warp && w.covers(s, a) {
			return true
		}
	}
	return false
}

// fencedGlobal reports the launch's writes of global memory through the generic proxy that happen before an access
// through the async proxy and have no proxy fence between.
func (d *Detector) fencedGlobal(a *history.Access, blk *order.Block) {
	g := d.globalFences[blk.Launch]
	if g == nil || g.lost || !g.wrote(a.From, a.End) {
		return
	}
	known := map[order.Stamp]bool{} // whether fences cover them
	d.history.Before(a, func(r history.Race) {
		e := r.Earlier
		if e.Site.Event.Flags&event.FlagAsync != 0 || e.Site.Side.Atomic && a.Site.Side.Atomic {
			return
		}
		covered, ok := known[e.Stamp]
		if !ok {
			covered = g.covered(&e.Stamp, &a.Actor)
			known[e.Stamp] = covered
		}
		if covered {
			return
		}
		r.Category = detect.NoProxyFence
		d.race(a, r)
	})
}
