package barracuda

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

const needs = event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedValues | event.NeedLaunch

const (
	baseName = "barracuda"
	plusName = "barracuda+"
)

var options = []detect.Option{
	{Name: "compress", Doc: "on: clocks in the paper's formats; off: clocks with a number for each known thread; findings are the same", Values: []string{"on", "off"}},
	{Name: "prune", Doc: "whether to skip accesses that repeat an earlier one in the same straight-line code, as the paper's instrumentation does", Values: []string{"on", "off"}},
	{Name: "same-value", Doc: "whether lanes that write the same value in one instruction race", Values: []string{"ignore", "report"}},
}

// Spec is BARRACUDA.
var Spec = detect.Spec{
	Name:     baseName,
	Doc:      "Happens-before of warps in lockstep, with acquires and releases inferred from fences; branch ordering races.",
	Source:   "001, chapter 5",
	Needs:    needs | event.NeedBranches,
	Lockstep: true,
	Options:  options,
	New:      func(c detect.Config) detect.Detector { return newDetector(c, baseName, false) },
}

// PlusSpec is Barracuda+.
var PlusSpec = detect.Spec{
	Name:    plusName,
	Doc:     "Barracuda for threads that are scheduled independently, with scoped atomics and warp barriers.",
	Source:  "000, section 5.1",
	Needs:   needs,
	Options: options,
	New:     func(c detect.Config) detect.Detector { return newDetector(c, plusName, true) },
}

// Detector is either of the two.
type Detector struct {
	*findings.Set
	plus      bool // barracuda+
	pruned    bool
	sameValue bool // report same-value writes
	each      bool // each thread has its own clock with a number for each other thread

	launch   event.Launch
	wpb      uint32
	grid     int // number of blocks
	depth    int // of clock.Grid trees
	resident map[uint32]*block
	block    *block // the block used last
	free     []*warp
	ended    []*block // blocks whose memory is free
	spare    []*pending

	words      *shadow.Lines[cell, *cell]
	bytes      *shadow.Lines[cell, *cell] // for the bytes of split words
	readClocks []*readClock               // numbered from 1
	idle       []uint32                   // unused numbers of readClocks
	sync       map[location]*released
	joiner     clock.Joiner

	acc       access
	learnt    *clock.Grid // in lockstep: what lanes of the current warp have acquired
	done      uint32      // lanes of the current event that have acted
	last      race        // the race to report next
	sites     sites
	parts     map[divergence]int
	performed int // number of accesses judged, for tests
	// witness, for tests, is called for each location that races.
	witness func(a *access, lane int, addr uint64, size int, r race)
}

// block is a resident block.
type block struct { // first: the number of its first warp
	number, first uint32 // first: its first warp
	warps         []*warp
	threads       int
	exited        int
	bars          [16]arrivals
}

func newDetector(c detect.Config, name string, plus bool) *Detector {
	spec := detect.Spec{Name: name, Options: options}
	d := &Detector{plus: plus, pruned: spec.Option(c, "prune") == "on", sameValue: spec.Option(c, "same-value") == "report", each: spec.Option(c, "compress") == "off",
		words: shadow.NewLines[cell](wordBytes), bytes: shadow.NewLines[cell](1), Set: findings.New(spec.Name, c), parts: map[divergence]int{}}
	for _, cells := range []*shadow.Lines[cell, *cell]{d.words, d.bytes} {
		cells.Part, cells.Drop = d.own, d.dropReaders
	}
	d.begin(&event.Launch{})
	return d
}

// begin begins a launch and drops the previous one: the analysis handles one kernel at a time.
func (d *Detector) begin(l *event.Launch) {
	if l.Grid.Count()*uint64(l.WarpsPerBlock()) > 1<<27 {
		panic("BUG: a launch of more threads than this detector can number")
	}
	d.launch, d.wpb, d.grid = *l, max(l.WarpsPerBlock(), 1), int(l.Grid.Count())
	d.depth = clock.Depth(l.Grid.Count())
	d.ended = nil
	d.resident, d.block, d.sync, d.joiner = map[uint32]*block{}, nil, map[location]*released{}, clock.Joiner{}
	d.words.Clear()
	d.bytes.Clear()
	d.readClocks, d.idle = make([]*readClock, 1), nil
}

// Events implements event.Sink.
func (d *Detector) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.Load, event.Store, event.Atomic:
			var next *event.Event
			if i+1 < len(b.Events) && b.Events[i+1].Warp == e.Warp && b.Events[i+1].Launch == e.Launch {
				next = &b.Events[i+1]
			}
			d.memory(b, e, next)
		case event.Branch, event.Else, event.Reconverge:
			if !d.plus {
				d.branch(e)
			}
		case event.Fence:
			d.fence(b, e)
		case event.Arrive:
			d.arrive(b, e)
		case event.BarrierDone:
			d.barrierDone(e)
		case event.WarpSync:
			w := d.warp(e.Warp)
			d.settle(w, b, e)
			w.fenced &^= e.Mask
			w.stretch()
			if d.plus {
				d.join(w, e.Mask)
				d.spread(w, e.Mask)
			}
		case event.Exit:
			d.exit(b, e)
		case event.KernelBegin:
			d.begin(&b.Launches[e.Side])
		case event.KernelEnd:
			d.end()
		}
	}
}

// warp returns the state of a warp of the launch.
func (d *Detector) warp(number uint32) *warp {
	c := d.block
	if c == nil || number-c.first >= d.wpb {
		c = d.blockOf(number)
		d.block = c
	}
	w := c.warps[number-c.first]
	if w == nil {
		w = d.newWarp(c, number)
		c.warps[number-c.first] = w
	}
	return w
}

func (d *Detector) blockOf(number uint32) *block {
	n := number / d.wpb
	c := d.resident[n]
	if c == nil {
		if k := len(d.ended); k > 0 {
			c, d.ended = d.ended[k-1], d.ended[:k-1]
		} else {
			c = &block{warps: make([]*warp, d.wpb)}
		}
		c.number, c.first, c.threads, c.exited = n, n*d.wpb, int(d.launch.Block.Count()), 0
		d.resident[n] = c
	}
	return c
}

func (d *Detector) newWarp(c *block, number uint32) *warp {
	w := &warp{}
	if n := len(d.free); n > 0 {
		w, d.free = d.free[n-1], d.free[:n-1]
	}
	mask := ^uint32(0)
	if left := c.threads - 32*int(number-c.first); left < 32 {
		mask = 1<<uint(left) - 1
	}
	w.number, w.block, w.exist, w.live = number, c, mask, mask // field by field, since the struct is large
	w.stack, w.waits, w.fenced, w.wide = w.stack[:0], w.waits[:0], 0, 0
	w.logs, w.place, w.stretches = 0, 0, 0
	w.views = append(w.views[:0], view{mask: mask, local: 1})
	return w
}

func (d *Detector) window(c *block) shadow.Window {
	return shadow.Window{Launch: d.launch.ID, Block: c.number}
}

// current returns the view of the active lanes of a warp in lockstep; lanes are some of them. If lanes that are not
// active act in a stream, they act as a path of their own.
func (d *Detector) current(w *warp, lanes uint32) *view {
	mask := w.active()
	if lanes&^mask != 0 {
		mask = lanes & w.live
	}
	for i := range w.views {
		if w.views[i].mask == mask {
			return &w.views[i]
		}
	}
	return d.join(w, mask)
}

// endi is rule ENDINSN for the active lanes of a warp. lanes have acted.
func (d *Detector) endi(w *warp, lanes uint32) {
	v := d.current(w, lanes)
	v.peer = v.local
	d.tick(v)
	v.rest = d.joiner.Join(v.rest, d.learnt)
	d.learnt = nil
}

// branch is rules IF and ELSEENDIF. The stack holds the running path of each split; Else gives the lanes that wait for
// their turn.
func (d *Detector) branch(e *event.Event) {
	w := d.warp(e.Warp)
	w.stretch()
	switch {
	case e.Kind == event.Branch:
		w.stack = append(w.stack, e.Mask)
	case len(w.stack) == 0:
	case e.Kind == event.Else:
		w.stack[len(w.stack)-1] = e.Mask
	default:
		w.stack = w.stack[:len(w.stack)-1]
	}
	d.join(w, w.active())
}

func (d *Detector) exit(b *event.Batch, e *event.Event) {
	w := d.warp(e.Warp)
	d.settle(w, b, e)
	c := w.block
	c.exited += w.exit(e.Mask)
	if c.exited < c.threads {
		return
	}
	d.words.EndWindow(d.window(c))
	d.bytes.EndWindow(d.window(c))
	for _, w := range c.warps {
		if w != nil {
			d.free = append(d.free, w)
		}
	}
	delete(d.resident, c.number)
	d.block = nil
	clear(c.warps)
	for i := range c.bars {
		c.bars[i] = arrivals{waiting: c.bars[i].waiting[:0]}
	}
	d.ended = append(d.ended, c)
}
