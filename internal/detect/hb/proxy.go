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

// An access through the async proxy needs a proxy fence between it and an access through the generic proxy that happens before it and conflicts
// with it: "accessing the same memory location across multiple proxies needs a cross-proxy fence" (PTX ISA, "Async proxy"). Of global memory this is asked
// of writes by the same launch (globalFences), and not of reads: no code is known that has a fence between a read and a bulk copy to
// global memory. The rest is of shared memory.
//
// Of a byte, the accesses through the generic proxy count that nothing has replaced: a later write that
// they happen before, or, of a read, a later read; or a write through the async proxy that is complete.
//
// What cp.async writes is written through the generic proxy, at the time when the copy is complete: a fence before that does not cover it.
// A missing fence after a copy is a warning: the manual asks for the fence, but CUTLASS, whose kernels for sm_90 and sm_100 copy operands
// of wgmma and tcgen05.mma by cp.async too, does without.

// proxies is what accesses through the async proxy to the shared memory of a block, or of those of a cluster, may not see.
type proxies struct {
	granules [][]granule // by the rank of the block
	fences   []proxyFence
	time     int  // counts fences, and copies that are issued or complete
	most     int  // fences before those are dropped that nobody needs, 0: maxProxyFences
	lost     bool // fences have been forgotten
	landed   landed
}

type clusterKey struct{ launch, cluster uint32 }

// granule is the accesses through the generic proxy to copyGranule bytes.
type granule struct {
	marks     []mark
	allocated bool // it tells where tensor memory was allocated: who reads that needs no fence
}

// mark is accesses to the same bytes of a granule by lanes of a warp.
type mark struct {
	site   *history.Site
	launch *order.Launch
	warp   uint32
	lanes  uint32
	epoch  uint32
	done   int // of cp.async: the time when it was complete (proxies.time); 0: no copy
	bytes  uint16
}

// copyOrder says of cp.async by lanes of a warp what happens before it, and who knows that it is complete.
type copyOrder struct {
	issued int             // the time
	views  [32]*order.View // of the lanes, at the issue
	epochs [32]uint32      // where an mbarrier tracks a lane's copy: who knows this epoch of the lane knows that the copy is complete
}

// proxyFence is a fence.proxy.async by lanes that had a view.
type proxyFence struct {
	block uint32
	warp  uint32 // in the block
	lanes uint32
	view  *order.View
	time  int
}

// Of a block, or a cluster, maxProxyFences fences are kept, and up to mostProxyFences where so many are needed.
const (
	maxProxyFences  = 1024
	mostProxyFences = 16 * maxProxyFences
)

// proxiesOf gives those of a block, or of its cluster.
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

// sharedAt gives where an address is in the shared memory of a block, and the rank of the block in its cluster; false where it is in
// global memory.
func sharedAt(m *history.Memory, addr uint64) (rank uint32, at uint64, ok bool) {
	if m.Shared {
		return 0, addr, true
	}
	return explain.OfPeer(addr)
}

// at gives the granule of an address.
func (p *proxies) at(rank uint32, addr uint64) *granule {
	return granuleAt(ofRank(&p.granules, rank), addr/copyGranule)
}

// known gives the granules that there are of those that a range of addresses touches, which need not begin or end with a granule, and for
// each its address and which of its bytes are in the range.
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

// granuleBytes is bytes of the granule at an address.
type granuleBytes struct {
	at    uint64
	bytes uint16
}

// fence notes a fence by lanes of a warp.
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

// prune drops the fences that later ones by the same lanes make needless: those that all threads know of which may yet access something.
func (p *proxies) prune(l *order.Launch) {
	known := map[uint32]uint32{} // by warp in the grid: lanes
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

// written notes that a write through the async proxy is complete.
func (p *proxies) written(rank uint32, from, n uint64) {
	for g, of := range p.known(rank, from, from+n) {
		g.allocated = false
		g.marks = slices.DeleteFunc(g.marks, func(m mark) bool { return m.bytes&^of.bytes == 0 })
		for i := range g.marks {
			g.marks[i].bytes &^= of.bytes
		}
	}
}

// touches notes an access by a warp through the generic proxy.
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

// copyIssued notes the issue of copies by a warp. copyDone is called when they are complete.
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

// copyTracked notes that an mbarrier tracks copies of lanes: to other threads, the copies happen before what the lanes do from now on.
func (x *copyHalf) copyTracked(lanes uint32) {
	for m := lanes; m != 0 && x.order != nil; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		x.order.epochs[lane] = x.Block.ViewOf(x.InBlock, lane).Epoch
	}
}

// copyDone notes copies of lanes that are complete, by a wait of their threads or with a phase of an mbarrier.
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

// touch notes an access, of which now lacks the bytes. It replaces the accesses that it happens after: those that who knows, and that are
// complete before a time.
func (p *proxies) touch(rank uint32, from, size uint64, now mark, who *order.Actor, time int) {
	for at, end := from, from+size; at < end; {
		low := at % copyGranule
		n := min(copyGranule-low, end-at)
		now.bytes = uint16((1<<n - 1) << low)
		p.at(rank, at).touch(now, who, time)
		at += n
	}
}

// touch is the same for the bytes of a granule that now names.
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

// fenced reports what happens before an access through the async proxy to the shared memory of a block, by the generic one, with no
// proxy fence between.
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

// fencedFrom does so for the accesses of a mark in the granule at an address.
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

// covered says that a fence lies between an access, complete at a time, and who makes another one.
func (p *proxies) covered(s *order.Stamp, a *order.Actor, done int) bool {
	for i := len(p.fences) - 1; i >= 0 && p.fences[i].time > done; i-- {
		if p.fences[i].covers(s, a) {
			return true
		}
	}
	return false
}

// covers says that a fence lies between an access and who makes another one, in the order of what happens before what.
func (f *proxyFence) covers(s *order.Stamp, a *order.Actor) bool {
	ok, _ := f.between(s, a, f.lanes)
	return ok
}

// between says so of a fence by some lanes, and which of them the one who makes the other access knows to have executed it.
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

// globalFences are the fences of a launch that concern global memory, since it has written there through the generic proxy.
type globalFences struct {
	by      map[uint32]*warpFences // by warp in the grid
	n       int                    // how many
	lost    bool                   // fences have been forgotten
	written map[uint64]bool        // by wroteBytes: parts of memory
	last    uint64                 // one of them
}

// warpFences are those of a warp.
type warpFences struct {
	list  []proxyFence
	lanes uint32 // that have executed one
}

// covers says that one of the fences covers an access. Of those of a lane that are known the last one tells: it knows what those before it know.
func (w *warpFences) covers(s *order.Stamp, a *order.Actor) bool {
	if w == nil {
		return false
	}
	rest := w.lanes
	// Of a lane whose first fence is not known none is: most warps of other blocks.
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

// wroteBytes is the size of the parts of global memory of which is kept whether a launch has written there through the generic proxy.
const wroteBytes = 1 << 12

// globalFencesOf gives those of a launch, which has written to global memory.
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

// write notes a write at an address through the generic proxy. (None crosses the border of a part: it is aligned.)
func (g *globalFences) write(at uint64) {
	if at /= wroteBytes; at != g.last || len(g.written) == 0 {
		g.last = at
		g.written[at] = true
	}
}

// wrote says that the launch may have written to some of the bytes [from, end) through the generic proxy.
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
	if !d.forgot {
		return nil
	}
	return []string{"More proxy fences were executed that may all matter than are kept: of accesses after that a missing one may not be told"}
}

// fenceGlobal notes a fence by lanes of a warp.
func (d *Detector) fenceGlobal(blk *order.Block, wi, lanes uint32) {
	g := d.globalFences[blk.Launch]
	if g == nil || g.lost {
		return
	}
	if g.n >= mostProxyFences {
		g.by, g.lost, d.forgot = nil, true, true
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

// covered says that a fence lies between a write and who makes an access. Mostly one of the two has executed it.
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

// fencedGlobal reports the writes of the launch before an access through the async proxy to global memory, by the generic one, with no proxy
// fence between.
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
