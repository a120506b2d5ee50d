package hb

import (
	"cmp"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// An interval is the part of a block's execution between two barriers at which all its live threads meet. As long as
// nothing else synchronises, no view changes, and no two threads of different warps, or lanes of one warp, are ordered.
// Whether weak accesses to shared memory race then depends only on which accesses each warp made. They are deferred.
// Each warp's accesses are followed in a tree of the launch (paths). If all warps end the interval on paths on which
// nothing raced before, nothing races now, and the barrier makes it possible to forget the accesses. In all other cases
// the accesses are judged later, in their order, which gives the same result as judging them at once: see perform.
// An interval may instead consist of relaxed read-modify-writes of words of shared memory (atomics.go). These do not
// race either.
type interval struct { // nil: the slot has no running block
	block   *order.Block // nil: ended
	paths   *paths       // accesses are deferred
	on      bool         // the history may hold accesses to the block's shared memory
	judged  bool         // by warp: the node of its last access in the interval; 0: none
	at      []uint32     // by warp: the node at the end of the last interval in which the warp made an access
	was     []uint32     // deferred weak accesses, in execution order
	log     []deferred   // the number of deferred accesses
	n       int          // the values that they wrote, in the same order, in the format of event.Batch
	values  []uint64     // what they wrote, in their order, as in event.Batch
	atomics atomics
}

// deferred is n consecutive weak accesses by one warp: the access of node at, and those of the n-1 nodes above it.
type deferred struct{ at, n, warp uint32 }

// paths is the tree of a launch: each path from the root is a sequence of accesses of a warp in an interval. It also
// holds the combinations of paths on which nothing raced.
type paths struct {
	nodes  []node              // nodes[0] is the root; nodes[1+w] is the time of warp w before its first interval
	edges  map[edge]uint32     // to the children other than node.first
	clean  map[uint64][]uint32 // by hash of interval.at: a value of it with which nothing raced
	hits   int                 // the number of accesses that were never judged
	broken int                 // the number of intervals that were broken off
	off    bool                // deferral is off for this launch
}

// node is an access of a path.
type node struct {
	step
	first uint32 // the child made first; 0: none
	next  uint32 // the child taken last
	then  uint32 // of a last access in an interval: the first access of the next interval, when last taken
	up    uint32 // the access before it
	// series is the last series of accesses that began after this node: its ID, and its first and last node. If from is
	// 0, the series began at the root in the interval that follows.
	series struct{ id, from, to uint32 }
}

type edge struct {
	from uint32
	step
}

// step is a weak access to shared memory, without its warp and its values.
type step struct {
	addr   uint32
	stride int32
	mask   uint32
	place  uint32
	side   uint32 // Event.Side; only with FlagRows
	aux    uint32
	flags  event.Flags
	kind   event.Kind
	scope  event.Scope
	size   uint8
	row    uint8
}

// Limits of deferral. It is switched off for a launch whose intervals do not repeat.
const (
	maxNodes        = 1 << 16
	maxDeferred     = 1 << 14 // in one interval
	maxWritten      = 1 << 15 // words of values in one interval
	trialNodes      = 1 << 13 // with so many nodes, deferral stays on only if paths were of use
	brokenIntervals = 16      // after so many broken intervals, deferral stays on only if paths were of use
	maxWarps        = 32      // in a block
)

func stepOf(e *event.Event) step {
	x := step{addr: uint32(e.Addr), stride: int32(e.Stride), mask: e.Mask, place: e.Place, aux: e.Aux, flags: e.Flags, kind: e.Kind,
		scope: e.Scope, size: e.Size}
	if e.Flags&event.FlagRows != 0 {
		x.side, x.row = e.Side, e.RowShift
	}
	return x
}

// is reports whether x equals stepOf(e). Comparing field by field is faster: making the step costs more than the rest
// of following the path.
func (x *step) is(e *event.Event) bool {
	return uint64(x.addr) == e.Addr && x.mask == e.Mask && x.place == e.Place && int64(x.stride) == e.Stride && x.flags == e.Flags &&
		x.kind == e.Kind && x.size == e.Size && x.aux == e.Aux && x.scope == e.Scope &&
		(e.Flags&event.FlagRows == 0 || x.side == e.Side && x.row == e.RowShift)
}

// event returns an event whose step is x.
func (x *step) event() event.Event {
	return event.Event{Addr: uint64(x.addr), Stride: int64(x.stride), Mask: x.mask, Place: x.place, Side: x.side, Aux: x.aux,
		Kind: x.kind, Scope: x.scope, Space: event.Shared, Size: x.size, RowShift: x.row, Flags: x.flags}
}

// interval returns the interval of a block, and begins one if there is none.
func (d *Detector) interval(b *order.Block) *interval {
	for len(d.intervals) <= b.Slot {
		d.intervals = append(d.intervals, &interval{})
	}
	v := d.intervals[b.Slot]
	if v.block == nil {
		v.begin(b, d.pathsOf(b))
	}
	return v
}

func (d *Detector) pathsOf(b *order.Block) *paths {
	t := d.paths[b.Info.ID]
	if t == nil {
		t = &paths{nodes: make([]node, 1+b.WarpsPerBlock), edges: map[edge]uint32{}, clean: map[uint64][]uint32{}}
		t.off = b.WarpsPerBlock > maxWarps
		d.paths[b.Info.ID] = t
	}
	return t
}

func (v *interval) begin(b *order.Block, t *paths) {
	n := int(b.WarpsPerBlock)
	v.block, v.paths, v.judged, v.on = b, t, false, !t.off && !b.Launch.Info.Bulk
	v.at, v.was = slices.Grow(v.at[:0], n)[:n], slices.Grow(v.was[:0], n)[:n]
	clear(v.at)
	for i := range v.was {
		v.was[i] = 1 + uint32(i)
	}
}

// deferAccess defers an access. It returns false if the access must be judged now.
func (d *Detector) deferAccess(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) bool {
	v := d.interval(blk)
	weak, shared := e.Order == event.Weak && e.Kind != event.Atomic, e.Space == event.Shared
	switch {
	case !v.on || weak && !shared:
		return false
	case e.Kind == event.Atomic && shared && len(v.log) == 0 && d.deferAtomic(v, b, e, wi):
		return true
	case !weak || e.Flags&event.FlagScattered != 0 || e.Barrier == event.StoreInits || v.atomics.any():
		d.breakInterval(v)
		return false
	}
	t := v.paths
	at := v.at[wi]
	n := t.nodes[at].next
	if at == 0 {
		n = t.nodes[v.was[wi]].then
	}
	if n == 0 || !t.nodes[n].is(e) {
		if n = d.follow(t, at, e); n == 0 {
			d.breakInterval(v)
			return false
		}
		if at != 0 {
			t.nodes[at].next = n
		} else {
			t.nodes[v.was[wi]].then = n
		}
	}
	if e.Flags&event.FlagValues != 0 {
		v.values = append(v.values, b.Values[e.Val:][:valueWords(e)]...)
	}
	d.went(v, wi, n, 1, e.Mask)
	return true
}

// series defers a series of accesses, or judges them.
func (d *Detector) series(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	if d.deferSeries(b, e, d.interval(blk), wi) {
		return
	}
	for i := range b.Series[e.Side].Events {
		d.again = b.Nth(e, i)
		if !d.deferAccess(b, &d.again, blk, wi) {
			d.access(b, &d.again, blk, wi)
		}
	}
}

func (d *Detector) deferSeries(b *event.Batch, e *event.Event, v *interval, wi uint32) bool {
	if !v.on || v.atomics.any() {
		return false
	}
	t, x, from := v.paths, b.Series[e.Side], v.at[wi]
	here := from
	if from == 0 {
		here = v.was[wi]
	}
	known := &t.nodes[here].series
	if known.id != x.ID || known.from != from {
		to := from
		for i := range x.Events {
			if to = d.follow(t, to, &x.Events[i]); to == 0 {
				d.breakInterval(v)
				return false
			}
		}
		known = &t.nodes[here].series
		known.id, known.from, known.to = x.ID, from, to
	}
	v.values = append(v.values, b.Values[e.Val:][:x.Words]...)
	d.went(v, wi, known.to, uint32(len(x.Events)), e.Mask)
	return true
}

// went records that a warp made n more accesses, the last of which is that of node to.
func (d *Detector) went(v *interval, wi, to, n, lanes uint32) {
	v.at[wi] = to
	if k := len(v.log); k > 0 && v.log[k-1].warp == wi {
		v.log[k-1].at = to
		v.log[k-1].n += n
	} else {
		v.log = append(v.log, deferred{to, n, wi})
	}
	v.n += int(n)
	v.block.Accesses(wi, lanes, true)
	if v.n >= maxDeferred || len(v.values) >= maxWritten {
		d.breakInterval(v)
	}
}

// follow returns the child of a node for an access, and makes it if necessary. It returns 0 if the access cannot be
// deferred.
func (d *Detector) follow(t *paths, from uint32, e *event.Event) uint32 {
	if n := t.nodes[from].first; n != 0 && t.nodes[n].is(e) {
		return n
	}
	k := edge{from, stepOf(e)}
	if !k.is(e) {
		return 0 // an address or stride that does not fit a step: it is outside shared memory
	}
	if n, ok := t.edges[k]; ok {
		return n
	}
	if len(t.nodes) >= maxNodes || len(t.nodes) >= trialNodes && t.hits < len(t.nodes) {
		t.off = true
	}
	if t.off {
		return 0
	}
	d.site(e) // sites are numbered in the order of first execution
	n := uint32(len(t.nodes))
	t.nodes = append(t.nodes, node{step: k.step, up: from})
	if p := &t.nodes[from]; p.first == 0 {
		p.first = n
	} else {
		t.edges[k] = n
	}
	return n
}

// valueWords is the number of words in event.Batch.Values that belong to an event.
func valueWords(e *event.Event) int {
	if e.Flags&event.FlagValues == 0 {
		return 0
	}
	n := bits.OnesCount32(e.Mask) * event.ValueWords(e.Size)
	if e.Flags&event.FlagOld != 0 {
		n *= 2
	}
	return n
}

// synchronise prepares a block's interval for a synchronisation event that is about to be performed.
func (d *Detector) synchronise(e *event.Event, b *order.Block, wi uint32) {
	v := d.interval(b)
	switch {
	case b.Ends(wi, e):
		d.endInterval(v)
		v.block = nil
	case !v.on, e.Kind == event.Exit, e.Kind == event.Arrive && e.Flags&event.FlagWait != 0:
		// This does not change any view.
	case b.AllWait(e):
		d.endInterval(v)
	default:
		d.breakInterval(v)
	}
}

// resume begins the next interval of a block after a barrier of all its threads. It says whether the history may hold
// accesses of the last interval.
func (d *Detector) resume(b *order.Block) (judged bool) {
	v := d.interval(b)
	judged = v.judged
	v.on, v.judged = !v.paths.off && !d.copying(b) && !b.Launch.Info.Bulk, false
	return judged
}

// breakInterval judges the deferred accesses of an interval because something other than an access or a barrier happens
// in it. The accesses that follow in the interval are judged at once.
func (d *Detector) breakInterval(v *interval) {
	if !v.on {
		return
	}
	if t := v.paths; len(v.log) > 0 || v.atomics.any() {
		d.broken++
		if t.broken++; t.broken >= brokenIntervals && t.hits < 64*t.broken {
			t.off = true
		}
	}
	d.perform(v)
	v.on = false
}

// endInterval ends an interval at a barrier after which earlier accesses to shared memory no longer matter.
func (d *Detector) endInterval(v *interval) {
	t := v.paths
	if v.atomics.any() {
		d.tellAtomics(v)
		t.hits += len(v.atomics.log)
		d.skipped += len(v.atomics.log)
		v.forget()
	}
	if len(v.log) == 0 {
		return
	}
	hash := uint64(0)
	for _, n := range v.at {
		hash = (hash ^ hash>>29 ^ uint64(n)) * 0x9e3779b97f4a7c15
	}
	known := t.clean[hash]
	if slices.Equal(known, v.at) {
		t.hits += v.n
		d.skipped += v.n
		v.forget()
		return
	}
	at, races := slices.Clone(v.at), d.findings.Races()
	d.perform(v)
	if known == nil && d.findings.Races() == races {
		t.clean[hash] = at
	}
}

// forget drops the deferred accesses of an interval.
func (v *interval) forget() {
	for i, n := range v.at {
		if n != 0 {
			v.was[i], v.at[i] = n, 0
		}
	}
	v.log, v.values, v.n = v.log[:0], v.values[:0], 0
	v.atomics.reset()
}

// perform judges and records the deferred accesses of an interval.
func (d *Detector) perform(v *interval) {
	rest := event.Batch{Values: v.values}
	val := uint32(0)
	var path []uint32
	for _, x := range v.log {
		path = slices.Grow(path[:0], int(x.n))[:x.n]
		for i, n := len(path)-1, x.at; i >= 0; i-- {
			path[i], n = n, v.paths.nodes[n].up
		}
		for _, n := range path {
			e := v.paths.nodes[n].event()
			e.Launch, e.Warp, e.Val = v.block.Info.ID, v.block.Index*v.block.WarpsPerBlock+x.warp, val
			val += uint32(valueWords(&e))
			d.access(&rest, &e, v.block, x.warp)
		}
	}
	for i := range v.atomics.log {
		x := &v.atomics.log[i]
		b, e := v.atomics.event(v.block, x)
		d.access(&b, &e, v.block, x.warp)
	}
	v.forget()
}

// endIntervals ends the intervals of a launch.
func (d *Detector) endIntervals(l *order.Launch) {
	for _, v := range d.running() {
		if v.block.Launch == l {
			d.endInterval(v)
			v.block = nil
		}
	}
	delete(d.paths, l.Info.ID)
}

// performAll judges everything that is deferred.
func (d *Detector) performAll() {
	for _, v := range d.running() {
		if v.on {
			d.perform(v)
			v.on = false
		}
	}
}

// running returns the intervals of running blocks, ordered by launch and block.
func (d *Detector) running() []*interval {
	all := slices.DeleteFunc(slices.Clone(d.intervals), func(v *interval) bool { return v.block == nil })
	slices.SortFunc(all, func(v, w *interval) int {
		return cmp.Or(cmp.Compare(v.block.Info.ID, w.block.Info.ID), cmp.Compare(v.block.Index, w.block.Index))
	})
	return all
}
