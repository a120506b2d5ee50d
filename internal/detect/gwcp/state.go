package gwcp

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// know is a vector clock: what is known of the threads of the own block, and of other blocks. What grid says of the own
// block is never more than what block says.
type know struct {
	block *clock.Block
	grid  *clock.Grid
}

// view is the state of a thread. Lanes that have synchronised alike share one.
type view struct {
	p        know       // P of 000: what precedes by GWCP alone, without program order
	h        know       // H of 000: what happens before
	epoch    uint32     // N of 000: the local time
	sections []*section // the critical sections that it is in; the slice is not modified in place
	fenced   released
	seen     []pending // the slice is not modified in place
}

// group is lanes of a warp with a common view.
type group struct {
	lanes uint32
	view
}

// released is what a strong write publishes: narrow to threads of the same block, wide to others.
type released struct{ narrow, wide *snapshot }

// clocks is knowledge that is passed on: c is P with the own times (C of 000), h is H. They are the same pointer as
// long as no lock was taken.
type clocks struct{ c, h *clock.Grid }

// snapshot is what a thread knew at a fence. Lanes of a warp may share one. With own, each lane's own actions up to
// epoch are included.
type snapshot struct {
	p, h  know
	epoch uint32
	own   bool
	lane  int // the lane that trees was computed for
	trees clocks
}

// pending is what a thread's strong reads of a location have observed and no fence has acquired yet.
type pending struct {
	at           *location // nil: received through a barrier
	wide, narrow clocks
}

type warp struct {
	live   uint32 // lanes that have not exited
	groups []group
}

// block is a running block. Epochs are numbered by block: each synchronisation takes the next number, which becomes the
// epoch of the threads that took part. That is the forced compression at barriers of 000, section 5.2.
type block struct {
	index, first uint32 // first: the number of its first warp
	number       uint32 // the last epoch given out
	alive        int
	warps        []warp
	barriers     map[uint8]*barrier
	mores        []*more       // of the lines of its shared memory
	async        *asynchronous // nil: it has issued nothing
}

// barrier is a CTA barrier at which some threads have arrived.
type barrier struct {
	waits []uint32  // by warp: lanes that wait
	early []arrival // arrivals that do not wait
	any   bool
}

// arrival is the view of threads that arrived at a barrier without waiting.
type arrival struct {
	wi, lanes uint32
	view
}

// launch is the running kernel.
type launch struct {
	info   event.Launch
	wpb    uint32
	depth  int
	last   uint32 // the lanes of the last warp of a block
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

// block returns the block of a warp, and the number of the warp within it.
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

// end drops a block whose threads have all exited.
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

// split divides groups so that lanes consist of whole groups, and calls f for each of these.
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

// each is split into single lanes.
func (w *warp) each(lanes uint32, f func(g *group, lane int)) {
	for m := lanes & w.live; m != 0; m &= m - 1 {
		w.split(m&-m, func(g *group) { f(g, bits.TrailingZeros32(m)) })
	}
}

// of returns the group of a live lane.
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

// unknown returns those of lanes of a warp whose epoch c is not known to k. b is the block of the thread with the clock
// k.
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

// tree returns k as one clock, with the given lanes of a warp of b set to epoch (lanes 0: none).
func (l *launch) tree(k *know, b *block, wi, lanes, epoch uint32) *clock.Grid {
	switch {
	case lanes != 0:
		return k.grid.WithLanes(l.depth, b.index, k.block, int(l.wpb), wi, lanes, epoch)
	case k.block == nil:
		return k.grid
	}
	return k.grid.With(l.depth, b.index, k.block)
}

// learn joins g into k, the clock of a thread of b. It memoises the last joins, since the lanes of a warp mostly repeat
// them.
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

// spread keeps the clocks of lanes expanded and separate if clocks are not to be compressed.
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

// trees returns p and h as clocks, with the given lanes of a warp of b set to epoch.
func (l *launch) trees(p, h *know, b *block, wi, lanes, epoch uint32) clocks {
	m := clocks{h: l.tree(h, b, wi, lanes, epoch)}
	if m.c = m.h; *p != *h {
		m.c = l.tree(p, b, wi, lanes, epoch)
	}
	return m
}

// of returns what lanes together have released with snapshot s.
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

// without returns a copy of list without x.
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
