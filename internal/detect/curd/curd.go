package curd

import (
	"maps"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/barracuda"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/event"
)

const name = "curd"

var mode = detect.Option{Name: "mode", Doc: "when races between blocks are searched: at the kernel's end, or also at each barrier",
	Values: []string{"lazy", "eager"}}

// Spec is CURD. It runs warps in lockstep because of the kernels that BARRACUDA judges.
var Spec = detect.Spec{
	Name:     name,
	Doc:      "Sets of the regions that threads and blocks read and write between barriers; barracuda judges kernels with atomics or fences.",
	Source:   "001, chapter 6",
	Needs:    barracuda.Spec.Needs,
	Lockstep: barracuda.Spec.Lockstep,
	Options:  []detect.Option{mode},
	New:      func(c detect.Config) detect.Detector { return newDetector(c) },
}

// Detector is one run of CURD.
type Detector struct {
	*findings.Set
	eager bool
	other detect.Detector // judges kernels with atomics or fences
	last  pending

	launch    event.Launch
	running   bool
	delegated bool // the kernel is judged by other
	perBlock  uint32
	shape     shape
	blocks    map[uint32]*block // mode lazy: blocks that have not ended
	order     []*block          // mode eager: all blocks, in the order of their beginnings
	numbers   []uint32          // numbers of blocks, in the order of their beginnings
	block     *block            // the block used last
	time      uint64            // subsets appended so far
	spare     []*threads
	free      []*block   // mode lazy: ended blocks, for reuse
	all       [2][]owned // mode lazy: BRS and BWS of ended blocks; the owner is an index in numbers

	writes, reads []owned // scratch space
	crs, cws      []region
	spans         [2][]span
	// witness, for tests, is called for each race.
	witness func(race)
}

// block is the state of a block.
type block struct {
	number  uint32
	index   uint32                     // in Detector.numbers
	left    uint64                     // threads that have not exited
	threads *threads                   // nil: no access since the last barrier
	parts   uint16                     // a bit for each barrier at which only part of the block arrived or waited
	total   [2]blockSet                // mode lazy: BRS and BWS
	subsets [2][]subset                // mode eager: BRS and BWS
	span    [2]struct{ lo, hi uint64 } // of subsets
	checked uint64                     // mode eager: the time of its last check
}

const (
	reads = iota
	writes
)

// threads is TRS and TWS of a block's threads, by space (global, shared) and kind.
type threads [2][2]threadSets

// blockSet is BRS or BWS in mode lazy.
type blockSet struct {
	regions []region
	tidied  int // its length after the last tidy
}

func newDetector(c detect.Config) *Detector {
	spec := detect.Spec{Name: name, Options: []detect.Option{mode}}
	return &Detector{eager: spec.Option(c, mode.Name) == "eager", Set: findings.New(name, c),
		other: barracuda.Spec.New(detect.Config{Model: c.Model, Places: c.Places})}
}

// Events implements event.Sink.
func (d *Detector) Events(b *event.Batch) {
	from := -1 // the index of the first event for the other detector
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind == event.KernelBegin {
			d.begin(&b.Launches[e.Side])
		}
		if d.delegated && e.Kind != event.Host {
			if from < 0 {
				from = i
			}
			if e.Kind == event.KernelEnd {
				d.running, d.delegated = false, false
				d.delegate(b, from, i+1)
				from = -1
			}
			continue
		}
		if from >= 0 {
			d.delegate(b, from, i)
			from = -1
		}
		if e.Kind != event.Host && e.Kind != event.KernelBegin {
			d.event(b, e)
		}
	}
	if from >= 0 {
		d.delegate(b, from, len(b.Events))
	}
}

func (d *Detector) delegate(b *event.Batch, from, to int) {
	part := *b
	part.Events = b.Events[from:to]
	d.other.Events(&part)
}

func (d *Detector) event(b *event.Batch, e *event.Event) {
	if !d.running {
		panic("BUG: an event of no launch that runs")
	}
	switch e.Kind {
	case event.Load:
		d.access(b, e, reads)
	case event.Store:
		d.access(b, e, writes)
	case event.Arrive:
		if part := e.Aux != 0 && uint64(e.Aux) < d.launch.Block.Count(); part || e.Flags&event.FlagWait == 0 {
			d.at(e.Warp).parts |= 1 << e.Barrier
		}
	case event.BarrierDone:
		c := d.at(e.Warp)
		if bit := uint16(1) << e.Barrier; c.parts&bit != 0 {
			c.parts &^= bit
		} else {
			d.endRegion(c)
		}
	case event.Exit:
		c := d.at(e.Warp)
		if c.left -= uint64(bits.OnesCount32(e.Mask)); c.left == 0 {
			d.endRegion(c)
			if !d.eager {
				d.endBlock(c)
			}
		}
	case event.KernelEnd:
		d.end()
	case event.Atomic, event.Fence:
		panic("BUG: an atomic operation or a fence of a kernel whose code has none")
	}
}

// begin begins a launch and drops the previous one: sets belong to one kernel.
func (d *Detector) begin(l *event.Launch) {
	d.launch, d.running, d.delegated = *l, true, l.Synchronises
	d.perBlock = l.WarpsPerBlock()
	d.blocks, d.order, d.numbers, d.block, d.time = map[uint32]*block{}, nil, d.numbers[:0], nil, 0
	d.all[reads], d.all[writes] = d.all[reads][:0], d.all[writes][:0]
	d.shape = 32
	if x := l.Block.X; x < 32 && 32%x == 0 && l.Block.Count() > uint64(x) {
		d.shape = shape(x)
	}
	if len(d.spare) > 0 && (len(d.spare[0][0][0].warps) != int(d.perBlock) || d.spare[0][0][0].shape != d.shape) {
		d.spare = nil
	}
}

// end finds the races that show at the end of a kernel.
func (d *Detector) end() {
	left := slices.SortedFunc(maps.Values(d.blocks), func(x, y *block) int { return int(x.index) - int(y.index) })
	for _, c := range left {
		d.endRegion(c)
	}
	if d.eager {
		for _, c := range d.order {
			d.checkOlder(c)
		}
	} else {
		for _, c := range left {
			d.endBlock(c)
		}
		d.checkAll()
	}
	d.flush()
	d.running = false
	d.blocks, d.order, d.block = nil, nil, nil
}

// endBlock keeps the sets of an ended block and drops the rest. Mode lazy only.
func (d *Detector) endBlock(c *block) {
	for kind := range c.total {
		s := &c.total[kind]
		for _, r := range tidy(s.regions) {
			d.all[kind] = append(d.all[kind], owned{r, c.index})
		}
		s.regions, s.tidied = s.regions[:0], 0
	}
	delete(d.blocks, c.number)
	d.block = nil
	if len(d.free) < 64 {
		d.free = append(d.free, c)
	}
}

// at returns the block of a warp.
func (d *Detector) at(warp uint32) *block {
	n := warp / d.perBlock
	if d.block != nil && d.block.number == n {
		return d.block
	}
	c := d.blocks[n]
	if c == nil {
		if k := len(d.free); k > 0 && !d.eager {
			c, d.free = d.free[k-1], d.free[:k-1]
		} else {
			c = &block{}
		}
		c.number, c.index, c.left, c.parts = n, uint32(len(d.numbers)), d.launch.Block.Count(), 0
		d.blocks[n] = c
		d.numbers = append(d.numbers, n)
		if d.eager {
			d.order = append(d.order, c)
		}
	}
	d.block = c
	return c
}

// access adds an access of a warp to the sets of its threads.
func (d *Detector) access(b *event.Batch, e *event.Event, kind int) {
	space := 0
	switch e.Space {
	case event.Global:
	case event.Shared:
		space = 1
	default:
		return
	}
	c := d.at(e.Warp)
	if c.threads == nil {
		c.threads = d.newThreads()
	}
	set := &c.threads[space][kind]
	set.used = true
	w := &set.warps[e.Warp-c.number*d.perBlock]
	x := line{size: uint64(e.Size), place: e.Place, complete: true, strength: strength(e)}
	switch {
	case e.Affine():
		x.slope = slope{e.Stride, int64(d.shape) * e.Stride}
	case e.Flags&event.FlagRows != 0 && d.shape == 1<<e.RowShift:
		x.slope = slope{e.Stride, e.RowStride()}
	default:
		var room [32]uint64
		w.insertEach(d.shape, e.Mask, x, b.Addresses(e, &room))
		return
	}
	x.lo = e.Addr - d.shape.at(&x, bits.TrailingZeros32(e.Mask)) // lo is 0 there
	d.shape.extend(&x, e.Mask)
	w.insert(d.shape, e.Mask, x)
}

func (d *Detector) newThreads() *threads {
	if n := len(d.spare); n > 0 {
		t := d.spare[n-1]
		d.spare = d.spare[:n-1]
		return t
	}
	t := &threads{}
	for space := range t {
		for kind := range t[space] {
			t[space][kind] = threadSets{warps: make([]warpSet, d.perBlock), shape: d.shape}
		}
	}
	return t
}

// endRegion ends the synchronisation-free region of a block: it finds the races within the region, drops the sets of
// shared memory, and adds those of global memory to the sets of the block.
func (d *Detector) endRegion(c *block) {
	t := c.threads
	if t == nil {
		return
	}
	c.threads = nil
	for space := range t {
		r, w := &t[space][reads], &t[space][writes]
		if !r.used && !w.used {
			continue
		}
		race := w.used && !d.raceFree(r, w)
		if race || space == 0 {
			d.crs, d.cws = r.compress(d.crs[:0]), w.compress(d.cws[:0])
			order(d.crs)
			order(d.cws)
		}
		if race {
			d.checkThreads(c, t, space)
		}
		if space == 0 {
			d.add(c)
		}
		r.clear()
		w.clear()
	}
	if len(d.spare) < 64 {
		d.spare = append(d.spare, t)
	}
	d.flush()
}

// checkThreads finds races within a block. d.crs and d.cws are the compressed sets.
func (d *Detector) checkThreads(c *block, t *threads, space int) {
	n := c.number
	d.writes = t[space][writes].each(d.writes[:0])
	if overlap(d.crs, d.cws) { // a race, or a thread that reads what it writes
		d.reads = t[space][reads].each(d.reads[:0])
		readWrite(d.writes, d.reads, func(w, r *owned) { d.report(space, n, n, w.region, r.region, detect.Read) })
	}
	writeWrite(d.writes, func(x, y *owned) { d.report(space, n, n, x.region, y.region, detect.Write) })
}

// Findings implements detect.Detector. A launch that has not ended is judged as if it had.
func (d *Detector) Findings() []detect.Finding {
	if d.running && !d.delegated {
		d.end()
	}
	out := d.Set.Findings()
	for _, f := range d.other.Findings() {
		f.Detector = name
		out = append(out, f)
	}
	return out
}

// More implements detect.Capped.
func (d *Detector) More() (int, bool) {
	n, atLeast := d.Set.More()
	m, more := d.other.(detect.Capped).More()
	return n + m, atLeast || more
}

// MemoryBytes implements detect.Metered. It counts the sets, including spare memory.
func (d *Detector) MemoryBytes() uint64 {
	n := d.other.(detect.Metered).MemoryBytes()
	n += uint64(cap(d.writes)+cap(d.reads)+cap(d.all[0])+cap(d.all[1]))*(regionBytes+8) + uint64(cap(d.crs)+cap(d.cws))*regionBytes
	n += uint64(cap(d.numbers)) * 4
	for _, c := range d.blocks {
		n += c.bytes()
	}
	for _, c := range d.free {
		n += c.bytes()
	}
	for _, t := range d.spare {
		n += t.bytes()
	}
	return n
}

func (t *threads) bytes() (n uint64) {
	for space := range t {
		for kind := range t[space] {
			n += t[space][kind].bytes()
		}
	}
	return n
}

func (c *block) bytes() (n uint64) {
	n = 256
	if c.threads != nil {
		n += c.threads.bytes()
	}
	for kind := range c.total {
		n += uint64(cap(c.total[kind].regions)) * regionBytes
		for i := range c.subsets[kind] {
			n += uint64(cap(c.subsets[kind][i].regions))*regionBytes + 32
		}
	}
	return n
}
