package gwcp

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// know is a vector clock: what is known of the threads of one's own block, and of other blocks. What grid says of the own
// block is never more than what block says.
type know struct {
	block *clock.Block
	grid  *clock.Grid
}

// view is the state of a thread. Lanes that have synchronised alike share one.
type view struct {
	p        know       // P of 000: what is ordered before by GWCP proper, program order not included
	h        know       // H of 000: what happens before
	epoch    uint32     // N of 000: the local time
	sections []*section // critical sections it is in; not changed in place
	fenced   released
	seen     []pending // not changed in place
}

// group is lanes of a warp with one view.
type group struct {
	lanes uint32
	view
}

// released are what a strong write publishes: narrow to threads of the same block, wide to others.
type released struct{ narrow, wide *snapshot }

// clocks is what is handed on: P with the own times, which is C of 000, and H. They are one where no lock was taken.
type clocks struct{ c, h *clock.Grid }

// snapshot is what a thread knew at a fence. Lanes of a warp may share one: with own, each means itself up to epoch too.
type snapshot struct {
	p, h  know
	epoch uint32
	own   bool
	lane  int // that trees is for
	trees clocks
}

// pending is what a thread's strong reads of a location have observed and no fence has acquired yet.
type pending struct {
	at           *location // nil: told by a barrier
	wide, narrow clocks
}

type warp struct {
	live   uint32 // lanes that have not exited
	groups []group
}

// block is a running block. Epochs are numbered by block: each synchronisation takes the next number, which becomes the
// epoch of those that took part. That is the forced compression at barriers of 000, section 5.2.
type block struct {
	index, first uint32 // first: warp
	number       uint32 // the last epoch given out
	alive        int
	warps        []warp
	barriers     map[uint8]*barrier
	mores        []*more       // of the lines of its shared memory
	async        *asynchronous // nil: it has issued nothing
}

// barrier is a CTA barrier that some have arrived at.
type barrier struct {
	waits []uint32  // lanes by warp
	early []arrival // those that do not wait
	any   bool
}

// arrival is what a thread that arrived and went on brings to a barrier.
type arrival struct {
	wi, lanes uint32
	view
}

// launch is the running kernel.
type launch struct {
	info   event.Launch
	wpb    uint32
	depth  int
	last   uint32 // lanes of the last warp of a block
	blocks map[uint32]*block
	recent *block
	spare  []*block
}

func newLaunch(info event.Launch) *launch {
	l := &launch{info: info, wpb: info.WarpsPerBlock(), depth: clock.Depth(info.Grid.Count()), last: ^uint32(0), blocks: map[uint32]*block{}}
	if n := info.Block.Count() % 32; n != 0 {
		l.last = 1<<uint(n) - 1
	}
	return l
}

// block gives the block of a warp, and the warp's number within.
func (l *launch) block(w uint32) (*block, uint32) {
	if b := l.recent; b != nil && w-b.first < l.wpb {
		return b, w - b.first
	}
	i := w / l.wpb
	b := l.blocks[i]
	if b == nil {
		b = l.begin(i)
	}
	l.recent = b
	return b, w - i*l.wpb
}

func (l *launch) begin(i uint32) *block {
	var b *block
	if n := len(l.spare); n > 0 {
		b = l.spare[n-1]
		l.spare = l.spare[:n-1]
	} else {
		b = &block{warps: make([]warp, l.wpb), barriers: map[uint8]*barrier{}}
	}
	b.index, b.first, b.number, b.alive, b.async = i, i*l.wpb, 1, int(l.info.Block.Count()), nil
	for _, x := range b.barriers {
		x.reset()
	}
	for j := range b.warps {
		w := &b.warps[j]
		w.live = ^uint32(0)
		if uint32(j) == l.wpb-1 {
			w.live = l.last
		}
		w.groups = append(w.groups[:0], group{lanes: w.live, view: view{epoch: 1}})
	}
	l.blocks[i] = b
	return b
}

// end forgets a block whose threads have all exited.
func (l *launch) end(b *block) {
	for j := range b.warps {
		clear(b.warps[j].groups[:cap(b.warps[j].groups)])
	}
	delete(l.blocks, b.index)
	l.spare = append(l.spare, b)
	if l.recent == b {
		l.recent = nil
	}
}

func (l *launch) window(b *block) shadow.Window {
	return shadow.Window{Launch: l.info.ID, Block: b.index}
}

// split makes groups such that lanes are whole groups, and calls f for each of these.
func (w *warp) split(lanes uint32, f func(g *group)) {
	n := len(w.groups)
	for i, rest := 0, lanes; i < n && rest != 0; i++ {
		g := &w.groups[i]
		in := g.lanes & lanes
		if in != 0 && in != g.lanes {
			other := *g
			other.lanes &^= lanes
			g.lanes = in
			w.groups = append(w.groups, other)
		}
		rest &^= in
	}
	for i, rest := 0, lanes; i < n && rest != 0; i++ {
		if g := &w.groups[i]; g.lanes&lanes != 0 {
			rest &^= g.lanes
			f(g)
		}
	}
}

// each splits as split does, into single lanes.
func (w *warp) each(lanes uint32, f func(g *group, lane int)) {
	for m := lanes & w.live; m != 0; m &= m - 1 {
		w.split(m&-m, func(g *group) { f(g, bits.TrailingZeros32(m)) })
	}
}

// of gives the group of a live lane.
func (w *warp) of(lane uint32) *group {
	for i := range w.groups {
		if g := &w.groups[i]; g.lanes&lane != 0 {
			return g
		}
	}
	panic("BUG: a lane of no group")
}

// alone gives a live lane a group of its own.
func (w *warp) alone(lane uint32) *group {
	g := w.of(lane)
	if g.lanes == lane {
		return g
	}
	other := *g
	other.lanes &^= lane
	g.lanes = lane
	w.groups = append(w.groups, other)
	return w.of(lane)
}

// set gives lanes the view v.
func (w *warp) set(lanes uint32, v *view) {
	keep := w.groups[:0]
	for _, g := range w.groups {
		if g.lanes &^= lanes; g.lanes != 0 {
			keep = append(keep, g)
		}
	}
	n := len(keep)
	keep = append(keep, group{lanes, *v})
	if n+1 < len(w.groups) {
		clear(w.groups[n+1:])
	}
	w.groups = keep
}

// unknown gives those of lanes of a warp whose epoch c k does not know. b is the block of the thread that knows k.
func (l *launch) unknown(k *know, b *block, warp, lanes, c uint32) uint32 {
	if w := warp - b.first; w < l.wpb {
		return k.block.Unknown(w, lanes, c)
	}
	if k.grid == nil {
		return lanes
	}
	if k.grid.Min >= c {
		return 0
	}
	i := warp / l.wpb
	return k.grid.Unknown(l.depth, i, warp-i*l.wpb, lanes, c)
}

// tree gives k, with the lanes of a warp of b set to epoch (lanes 0: none), as one clock.
func (l *launch) tree(k *know, b *block, wi, lanes, epoch uint32) *clock.Grid {
	switch {
	case lanes != 0:
		return k.grid.WithLanes(l.depth, b.index, k.block, int(l.wpb), wi, lanes, epoch)
	case k.block == nil:
		return k.grid
	}
	return k.grid.With(l.depth, b.index, k.block)
}

// learn joins g into k, of a thread of b. It remembers the last joins, which the lanes of a warp mostly repeat.
func (d *Detector) learn(k *know, b *block, g *clock.Grid) {
	if g == nil || g == k.grid {
		return
	}
	for i := range d.memo {
		if m := &d.memo[i]; m.with == g && m.from == *k && m.block == b.index {
			*k = m.to
			return
		}
	}
	m := &d.memo[d.memoAt]
	d.memoAt ^= 1
	m.from, m.with, m.block = *k, g, b.index
	k.grid = d.join.Join(k.grid, g)
	k.block = k.block.Join(g.At(d.run.depth, b.index))
	m.to = *k
}

// follow joins m into both clocks of v: a hard edge.
func (d *Detector) follow(v *view, b *block, m clocks) {
	same := v.p == v.h && m.c == m.h
	d.learn(&v.h, b, m.h)
	if same {
		v.p = v.h
		return
	}
	d.learn(&v.p, b, m.c)
}

// spread keeps the clocks of lanes expanded, each lane's for itself, where they are not to be compressed.
func (d *Detector) spread(w *warp, lanes uint32) {
	if !d.expand {
		return
	}
	n := int(d.run.wpb)
	w.each(lanes, func(g *group, _ int) {
		g.p = know{g.p.block.Expanded(n), g.p.grid.Expanded(n)}
		g.h = know{g.h.block.Expanded(n), g.h.grid.Expanded(n)}
	})
}

// both joins m and n.
func (d *Detector) both(m, n clocks) clocks {
	same := m.c == m.h && n.c == n.h
	m.h = d.join.Join(m.h, n.h)
	if same {
		m.c = m.h
		return m
	}
	m.c = d.join.Join(m.c, n.c)
	return m
}

// trees gives p and h, with the lanes of a warp of b set to epoch, as clocks.
func (l *launch) trees(p, h *know, b *block, wi, lanes, epoch uint32) clocks {
	m := clocks{h: l.tree(h, b, wi, lanes, epoch)}
	if m.c = m.h; *p != *h {
		m.c = l.tree(p, b, wi, lanes, epoch)
	}
	return m
}

// of gives what lanes together released by s.
func (s *snapshot) of(l *launch, b *block, wi, lanes uint32) clocks {
	lane := bits.TrailingZeros32(lanes)
	switch {
	case !s.own:
		return s.trees
	case lanes != 1<<uint(lane):
		return l.trees(&s.p, &s.h, b, wi, lanes, s.epoch)
	case s.trees.h == nil || s.lane != lane:
		s.lane, s.trees = lane, l.trees(&s.p, &s.h, b, wi, lanes, s.epoch)
	}
	return s.trees
}

func (x *barrier) reset() {
	clear(x.waits)
	clear(x.early)
	x.early, x.any = x.early[:0], false
}

// without gives list without x, a copy.
func without(list []*section, x *section) []*section {
	i := slices.Index(list, x)
	if i < 0 {
		return list
	}
	if len(list) == 1 {
		return nil
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}
