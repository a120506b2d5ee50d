package hb

import (
	"maps"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// A stage is what a block does between two barriers at which all of its live threads meet. As long as nothing else
// synchronises and its accesses of shared memory are weak, whether they race depends on nothing but which accesses each warp
// made: threads of different warps, and lanes of one, are not ordered at all, and no access of another stage counts. So they
// are not judged as they come. Each warp's are followed in a tree of the launch, in which a way from the root says what a warp
// did; when the stage ends, warps that went ways on which nothing raced before have no race now. Otherwise, and where
// anything else happens within the stage, the accesses are judged then, in their order: see perform.
type stage struct {
	on     bool
	strong bool      // a strong access of shared memory was made, whose value may outlive stages
	at     []uint32  // by warp: the last of its accesses in the tree, 0 for none
	was    []uint32  // the same when the last stage ended in which it made any
	log    []stretch // the accesses, in their order
	n      int       // how many
	values []uint64  // what they wrote, in their order, as in event.Batch
}

// stretch is accesses that a warp made while no other of its block did: those of the tree from at upwards.
type stretch struct {
	at uint32
	by uint32 // how many<<5 | warp within the block
}

func newScripts(wpb uint32) *scripts {
	return &scripts{nodes: make([]scriptNode, 1+wpb), edges: map[scriptEdge]uint32{}, clean: map[uint64][]uint32{}}
}

// scripts are the tree of a launch and the ways on which nothing raced.
type scripts struct {
	nodes  []scriptNode          // 0 is the root; 1+w stands for what warp w of a block did before its first stage: nothing
	edges  map[scriptEdge]uint32 // but for those to a node's first
	clean  map[uint64][]uint32   // by hash: stage.at
	hits   int                   // accesses that were not judged
	broken int                   // stages in which something else happened
	off    bool
}

type scriptNode struct {
	scriptStep
	first uint32                            // child
	next  uint32                            // the child that was taken last
	then  uint32                            // the first access of the stage behind the last that ended here
	up    uint32                            // the access before
	again struct{ series, from, to uint32 } // the series made last, from here or from the root in the stage behind, see then
}

type scriptEdge struct {
	from uint32
	scriptStep
}

// Bounds of scripts. A launch whose stages do not repeat does without them.
const (
	maxScript    = 1 << 15
	maxStage     = 1 << 12 // accesses
	maxWritten   = 1 << 15 // words of values
	scriptTrial  = 1 << 10 // nodes before it is asked whether they are of use
	brokenStages = 16
)

// scriptStep is a weak access of shared memory, but for its warp and values.
type scriptStep struct {
	addr   uint32
	stride int32
	mask   uint32
	place  uint32
	side   uint32 // of rows
	aux    uint32
	flags  event.Flags
	kind   event.Kind
	scope  event.Scope
	size   uint8
	row    uint8
}

func stepOf(e *event.Event) scriptStep {
	x := scriptStep{addr: uint32(e.Addr), stride: int32(e.Stride), mask: e.Mask, place: e.Place, aux: e.Aux, flags: e.Flags, kind: e.Kind, scope: e.Scope, size: e.Size}
	if e.Flags&event.FlagRows != 0 {
		x.side, x.row = e.Side, e.RowShift
	}
	return x
}

// is says that x is stepOf an event. (To make that first costs more than the rest of following it.)
func (x *scriptStep) is(e *event.Event) bool {
	return uint64(x.addr) == e.Addr && x.mask == e.Mask && x.place == e.Place && int64(x.stride) == e.Stride && x.flags == e.Flags && x.kind == e.Kind &&
		x.size == e.Size && x.aux == e.Aux && x.scope == e.Scope && (e.Flags&event.FlagRows == 0 || x.side == e.Side && x.row == e.RowShift)
}

// event gives an event of which x is.
func (x *scriptStep) event() event.Event {
	return event.Event{Addr: uint64(x.addr), Stride: int64(x.stride), Mask: x.mask, Place: x.place, Side: x.side, Aux: x.aux, Kind: x.kind, Scope: x.scope,
		Space: event.Shared, Size: x.size, RowShift: x.row, Flags: x.flags}
}

// beginStage begins a stage of a block whose shared window holds nothing.
func (b *block) beginStage() {
	s, t := &b.stage, b.launch.scripts
	if s.on = t != nil && !t.off && !s.strong; s.on && uint32(len(s.at)) != b.wpb {
		s.at, s.was = slices.Grow(s.at[:0], int(b.wpb))[:b.wpb], slices.Grow(s.was[:0], int(b.wpb))[:b.wpb]
		clear(s.at)
		for i := range s.was {
			s.was[i] = 1 + uint32(i)
		}
	}
}

// staged takes note of an access in a stage. It says false when the access is to be judged now.
func (d *Detector) staged(b *event.Batch, e *event.Event, blk *block, wi uint32) bool {
	inShared := e.Space == event.Shared
	if e.Order != event.Weak || e.Kind == event.Atomic || inShared && e.Flags&event.FlagScattered != 0 {
		d.breakStage(blk)
		return false
	}
	if !inShared {
		return false
	}
	s, t := &blk.stage, blk.launch.scripts
	at := s.at[wi]
	n := t.nodes[at].next
	if at == 0 {
		n = t.nodes[s.was[wi]].then
	}
	if n == 0 || !t.nodes[n].is(e) {
		if n = d.follow(t, blk.launch, at, e); n == 0 {
			d.perform(blk)
			s.on = false
			return false
		}
		if at != 0 {
			t.nodes[at].next = n
		} else {
			t.nodes[s.was[wi]].then = n
		}
	}
	d.wentTo(blk, wi, n, 1, e.Mask)
	if e.Flags&event.FlagValues != 0 {
		blk.wrote(b.Values[e.Val:][:valueWords(e)])
	}
	d.bound(blk)
	return true
}

// wrote adds to the values of a block's stage. Stages that write are often short, so few blocks need memory for that at once.
func (b *block) wrote(values []uint64) {
	s, spare := &b.stage, b.spare
	if n := len(spare.values); s.values == nil && n > 0 {
		s.values, spare.values = spare.values[n-1], spare.values[:n-1]
	}
	s.values = append(s.values, values...)
}

// series judges or puts off a series of accesses.
func (d *Detector) series(b *event.Batch, e *event.Event, l *launch) {
	blk, wi := l.block(e.Warp)
	if blk.stage.on && d.stagedAgain(b, e, blk, wi) {
		return
	}
	for i := range b.Series[e.Side].Events {
		d.one = b.Nth(e, i)
		d.access(b, &d.one, l)
	}
}

// stagedAgain is staged for a series.
func (d *Detector) stagedAgain(b *event.Batch, e *event.Event, blk *block, wi uint32) bool {
	s, t := &blk.stage, blk.launch.scripts
	x := b.Series[e.Side]
	from := s.at[wi]
	here := from
	if from == 0 {
		here = s.was[wi]
	}
	to := t.nodes[here].again.to
	if known := &t.nodes[here].again; known.series != x.ID || known.from != from {
		to = from
		for i := range x.Events {
			if to = d.follow(t, blk.launch, to, &x.Events[i]); to == 0 {
				d.perform(blk)
				s.on = false
				return false
			}
		}
		known = &t.nodes[here].again
		known.series, known.from, known.to = x.ID, from, to
	}
	d.wentTo(blk, wi, to, uint32(len(x.Events)), e.Mask)
	if x.Words > 0 {
		blk.wrote(b.Values[e.Val:][:x.Words])
	}
	d.bound(blk)
	return true
}

// wentTo notes that a warp made accesses, the last of which is node at.
func (d *Detector) wentTo(b *block, wi, at, accesses, mask uint32) {
	s, w := &b.stage, &b.warps[wi]
	s.at[wi] = at
	if n := len(s.log); n > 0 && s.log[n-1].by&31 == wi {
		s.log[n-1].at = at
		s.log[n-1].by += accesses << 5
	} else {
		s.log = append(s.log, stretch{at, accesses<<5 | wi})
	}
	s.n += int(accesses)
	w.used |= mask
	w.usedSmem |= mask
}

// bound keeps a stage from becoming too long.
func (d *Detector) bound(b *block) {
	if s := &b.stage; s.n >= maxStage || len(s.values) >= maxWritten {
		d.breakStage(b)
	}
}

// valueWords is how many words of event.Batch.Values are an event's.
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

// follow gives the node behind another that an access leads to, made when there is none; 0 when scripts are of no use.
func (d *Detector) follow(t *scripts, l *launch, from uint32, e *event.Event) uint32 {
	if n := t.nodes[from].first; n != 0 && t.nodes[n].is(e) {
		return n
	}
	k := scriptEdge{from, stepOf(e)}
	if !k.is(e) {
		return 0 // addresses that no shared memory has
	}
	n, ok := t.edges[k]
	if ok {
		return n
	}
	if len(t.nodes) >= maxScript || len(t.nodes) >= scriptTrial && t.hits < len(t.nodes) {
		t.off = true
	}
	if t.off {
		return 0
	}
	d.classOf(l, e) // classes are numbered in the order of first execution
	n = uint32(len(t.nodes))
	t.nodes = append(t.nodes, scriptNode{scriptStep: k.scriptStep, up: from})
	if p := &t.nodes[from]; p.first == 0 {
		p.first = n
	} else {
		t.edges[k] = n
	}
	return n
}

// breakStage judges the accesses of a stage in which something else happens, or is about to. Those that follow are
// judged as they come.
func (d *Detector) breakStage(b *block) {
	if !b.stage.on {
		return
	}
	if t := b.launch.scripts; len(b.stage.log) > 0 {
		if t.broken++; t.broken >= brokenStages && t.hits < 64*t.broken {
			t.off = true
		}
	}
	d.perform(b)
	b.stage.on = false
}

// endStage ends a stage after which nothing in shared memory counts that was before.
func (d *Detector) endStage(b *block) {
	s := &b.stage
	if !s.on || len(s.log) == 0 {
		return
	}
	t := b.launch.scripts
	h := uint64(0)
	for _, n := range s.at {
		h = (h ^ h>>29 ^ uint64(n)) * 0x9e3779b97f4a7c15
	}
	was, ok := t.clean[h]
	if ok && slices.Equal(was, s.at) {
		t.hits += s.n
		b.forgetStage()
		return
	}
	at := slices.Clone(s.at)
	if n := d.findings.Races(); !ok {
		if d.perform(b); d.findings.Races() == n {
			t.clean[h] = at
		}
		return
	}
	d.perform(b)
}

func (b *block) forgetStage() {
	s := &b.stage
	for i, n := range s.at {
		if n != 0 {
			s.was[i], s.at[i] = n, 0
		}
	}
	if s.values != nil {
		b.spare.values = append(b.spare.values, s.values[:0])
	}
	s.log, s.values, s.n = s.log[:0], nil, 0
}

// perform judges and records the accesses of a stage.
func (d *Detector) perform(b *block) {
	s := &b.stage
	t := b.launch.scripts
	rest := event.Batch{Values: s.values}
	val := 0
	var way []uint32
	for _, x := range s.log {
		way = slices.Grow(way[:0], int(x.by>>5))[:x.by>>5]
		for i, n := len(way)-1, x.at; i >= 0; i-- {
			way[i], n = n, t.nodes[n].up
		}
		for _, n := range way {
			e := t.nodes[n].event()
			e.Launch, e.Warp, e.Val = b.info.ID, b.first+(x.by&31), uint32(val)
			val += valueWords(&e)
			d.judge(&rest, &e, b, x.by&31)
		}
	}
	b.forgetStage()
}

// performAll judges what the stages of blocks that still run hold.
func (d *Detector) performAll() {
	for _, id := range slices.Sorted(maps.Keys(d.launches)) {
		l := d.launches[id]
		for _, n := range slices.Sorted(maps.Keys(l.running())) {
			if b := l.listed[n]; b.stage.on {
				d.perform(b)
				b.stage.on = false
			}
		}
	}
}
