package gwcp

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// Spec is the detector.
var Spec = detect.Spec{
	Name:    "gwcp",
	Doc:     "Weak-causally-precedes for GPUs (PreDataR): races of the observed execution, and those of other orders of its critical sections.",
	Source:  "Dey et al., \"Predictive Data Race Detection for GPUs\", definition 1, algorithms 1 and 2, section 5",
	Needs:   event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedValues | event.NeedOld | event.NeedLaunch | event.NeedAgain,
	Options: options,
	New:     func(c detect.Config) detect.Detector { return New(c) },
}

var options = []detect.Option{
	{Name: "compress", Doc: "on: compressed clocks (section 5.2); off: clocks with a number for each pair of threads that know of each other; findings are the same", Values: []string{"on", "off"}},
	{Name: "report", Doc: "all races, or only predicted ones, which the observed order does not show", Values: []string{"all", "predicted"}},
}

// Detector is one run of gwcp.
type Detector struct {
	*findings.Set
	cfg       detect.Config
	predicted bool // report only predicted races
	expand    bool // clocks are not compressed
	run       *launch
	batch     *event.Batch
	tracker   *lock.Tracker
	mem       *shadow.Memory[line]
	join      clock.Joiner
	memo      [2]learned
	memoAt    int
	barrier   barrierClock
	act       actor
	values    *shadow.Memory[word]

	spare   []*more // spare memory of lines, from the shared memory of ended blocks
	classes []class
	ids     map[class]uint32
	recent  [64]recent // cache of classOf, by place

	locations  map[locKey]*location
	lockStates map[lock.ID]*lockState
	indexes    []map[granule]int
	taken      uint32      // number of critical sections so far
	one        event.Event // scratch space: one access of a series
}

// learned is a memo of a join into a know.
type learned struct {
	from  know
	with  *clock.Grid
	block uint32
	to    know
}

// New makes a Detector.
func New(c detect.Config) *Detector {
	s := detect.Spec{Name: "gwcp", Options: options}
	return &Detector{cfg: c, predicted: s.Option(c, "report") == "predicted", expand: s.Option(c, "compress") == "off",
		tracker: lock.New(lock.Rules{}), mem: shadow.New[line](lineBytes), Set: findings.New(s.Name, c), classes: make([]class, 1), ids: map[class]uint32{},
		values: shadow.New[word](4), locations: map[locKey]*location{}, lockStates: map[lock.ID]*lockState{}}
}

// Events consumes a batch.
func (d *Detector) Events(b *event.Batch) {
	d.batch = b
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.KernelBegin:
			d.begin(b.Launches[e.Side])
		case event.KernelEnd:
			if d.run != nil && d.run.info.ID == e.Launch {
				d.run = nil
			}
		case event.Host:
		case event.Again:
			if d.run != nil && d.run.info.ID == e.Launch {
				for i := range b.Series[e.Side].Events {
					d.one = b.Nth(e, i)
					d.device(&d.one)
				}
			}
		default:
			if d.run != nil && d.run.info.ID == e.Launch && (e.Mask != 0 || e.Kind == event.BarrierDone) {
				d.device(e)
			}
		}
	}
	d.batch = nil
}

// begin begins a launch and drops the previous one: races between kernels are not reported (000, section 2.1).
func (d *Detector) begin(info event.Launch) {
	d.run = nil
	if info.ClusterShape().Count() > 1 {
		return // cluster barriers are not supported
	}
	if d.predicted && !info.Swaps {
		return // without locks nothing is predicted
	}
	d.run = newLaunch(info)
	d.tracker.Begin(&info)
	d.mem.Clear()
	d.values.Clear()
	d.join, d.memo = clock.Joiner{}, [2]learned{}
	clear(d.locations)
	clear(d.lockStates)
	d.taken = 0
}

func (d *Detector) device(e *event.Event) {
	blk, wi := d.run.block(e.Warp)
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		if (e.Space == event.Global || e.Space == event.Shared) && e.Size > 0 {
			d.memory(blk, wi, e)
		}
	case event.Fence:
		d.fence(blk, wi, e, d.tracker.Event(d.batch, e))
	case event.Arrive:
		d.arrive(blk, wi, e)
	case event.BarrierDone:
		d.complete(blk, e)
	case event.WarpSync:
		d.warpSync(blk, wi, e)
	case event.Bulk, event.BulkDone, event.Core, event.CoreCommit, event.CoreDone, event.CoreWait, event.Wgmma, event.WgmmaCommit, event.WgmmaWait:
		d.async(blk, wi, e)
	case event.Exit:
		d.locks(blk, wi, e.Place, d.tracker.Event(d.batch, e))
		d.exit(blk, wi, e)
	}
}

// memory judges and records an access, and performs the synchronisation that it is part of.
func (d *Detector) memory(blk *block, wi uint32, e *event.Event) {
	w := &blk.warps[wi]
	if e.Mask&^w.live != 0 {
		panic("BUG: an access by threads that have exited")
	}
	var steps []lock.Step
	if e.Kind == event.Atomic || e.Kind == event.Store && d.tracker.Holds(e.Warp) {
		steps = d.tracker.Event(d.batch, e)
		d.sane(e, steps)
	}
	d.inside(blk, wi, w, e)
	d.judge(blk, wi, w, e)
	d.wrote(blk, e)
	if e.Kind != event.Atomic && e.Order < event.Volatile && len(steps) == 0 {
		return
	}
	split := 0
	for split < len(steps) && steps[split].Kind != lock.Acquire {
		split++
	}
	d.locks(blk, wi, e.Place, steps[:split])
	if e.Kind == event.Atomic || e.Order >= event.Volatile {
		d.strong(blk, wi, e, steps)
	}
	d.locks(blk, wi, e.Place, steps[split:])
	d.spread(w, e.Mask)
}
