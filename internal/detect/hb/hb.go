package hb

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/reference"
	"fencepost.dev/fencepost/internal/event"
)

// Spec is the detector.
var Spec = detect.Spec{
	Name:   "hb",
	Doc:    "Scoped happens-before with vector clocks: every data race and scope race of the observed execution, and no other.",
	Source: "PTX ISA, \"Memory Consistency Model\"; CUDA C++ Programming Guide",
	Needs: event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedValues | event.NeedOld | event.NeedHost | event.NeedLaunch |
		event.NeedAgain | event.NeedReconverge,
	Options: []detect.Option{{Name: "history", Doc: "how access histories are kept: fast; interned, which will replace it; or plain, as the definition reads, for comparison",
		Values: []string{"fast", "plain", "interned"}}},
	New: func(c detect.Config) detect.Detector {
		if h := c.Options["history"]; h == "plain" || h == "interned" {
			return reference.New(c, "hb", h == "interned")
		}
		return New(c)
	},
}

// Detector is one run of hb.
type Detector struct {
	cfg      detect.Config
	launches map[uint32]*launch
	recent   [64]recentClass
	classes  []class
	agents   map[uint32]*agent
	tokens   map[uint64]*clock.Foreign
	mem      *shadow
	join     clock.Joiner
	act      actor
	part     whole
	spare    spareBlocks
	acting   bool // act stands for part
	scratch  [32]uint64
	waiting  []uint32
	uniforms []*clock.Block
	cooling  []*gathered
	cooled   [8]samePages // by turns
	turn     uint
	colds    map[classKey]uint32 // classes of cold accesses
	free     []uint32            // classes to use again
	born     uint32              // how many classes were made
	warm     []*launch           // that have ended and were not cooled
	lingers  []*launch           // that have ended and left notes, see stale.go
	patience int32               // of new classes, see sets
	// cellsOnly keeps lines from being packed: the reference that packs are compared with.
	cellsOnly bool
	manyLanes int // see there
	tallied   [warpsTallied]*talliedLines
	// rangePages is that constant, or another number to test ranges, or none.
	rangePages uint64
	linger     int // how many launches have notes after their end: manyLingers, or less to test what is done then

	findings   *explain.Findings
	hostPlaces map[string]uint32
	lastLaunch *launch
	one        event.Event // of a series
}

// New makes a Detector.
func New(c detect.Config) *Detector {
	return &Detector{cfg: c, patience: patience, manyLanes: manyLanes, linger: manyLingers, rangePages: rangePages, colds: map[classKey]uint32{}, launches: map[uint32]*launch{}, classes: make([]class, 1), agents: map[uint32]*agent{},
		tokens: map[uint64]*clock.Foreign{}, mem: newShadow(), findings: explain.NewFindings(c.MaxFindings), hostPlaces: map[string]uint32{}}
}

// Events consumes a batch.
func (d *Detector) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.Load, event.Store:
			if !d.habitual(e) {
				d.device(b, e)
			}
		case event.KernelBegin:
			d.begin(b.Launches[e.Side])
		case event.KernelEnd:
			d.end(e.Launch)
			d.lastLaunch = nil
		case event.Host:
			d.host(&b.Hosts[e.Side])
		default:
			d.device(b, e)
		}
	}
}

func (d *Detector) device(b *event.Batch, e *event.Event) {
	l := d.lastLaunch
	if l == nil || l.info.ID != e.Launch {
		l = d.launches[e.Launch]
		if l == nil || l.end != 0 {
			return
		}
		d.lastLaunch = l
	}
	if e.Mask == 0 && e.Kind != event.BarrierDone {
		return
	}
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		if (e.Space == event.Global || e.Space == event.Shared) && e.Size > 0 {
			d.access(b, e, l)
		}
		return
	case event.Again:
		d.series(b, e, l)
		return
	}
	blk, wi := l.block(e.Warp)
	blk.synced = blk.synced || e.Kind != event.Exit
	switch e.Kind {
	case event.Fence:
		d.breakStage(blk)
		d.fence(blk, wi, e)
	case event.Arrive:
		d.arrive(blk, wi, e)
	case event.BarrierDone:
		d.complete(blk, e)
	case event.WarpSync:
		d.warpSync(blk, wi, e)
	case event.Reconverge:
		d.reconverge(blk, wi, e)
	case event.Exit:
		d.exit(blk, wi, e)
	}
}
