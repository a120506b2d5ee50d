package hirace

import (
	"fmt"
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

var (
	machineOption = detect.Option{Name: "machine", Doc: "the state machine: derived from the histories that its states represent, or the published table",
		Values: []string{"derived", "published"}}
	clockOption = detect.Option{Name: "clockbits", Doc: "width of the block's and the warp's clock; checking stops when one overflows",
		Values: []string{"16", "8", "4"}}
)

// Spec is HiRace.
var Spec = spec()

func spec() detect.Spec {
	s := detect.Spec{
		Name:    "hirace",
		Doc:     "HiRace: a state machine of 25 states represents all accesses to a location in one word; barriers and scoped atomics.",
		Source:  "HiRace, sections III and IV, figures 1 to 4, algorithm 1",
		Needs:   event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch,
		Options: []detect.Option{machineOption, clockOption, groupsOption, wordsOption, granularityOption, pairsOption},
	}
	s.New = func(c detect.Config) detect.Detector {
		all := c
		all.Watch = nil // only watched races are added
		d := &Detector{machine: derive(), Set: findings.New("hirace", all), words: shadow.NewLines[cell](wordBytes), bytes: shadow.NewLines[cell](1), bounds: boundsOf(&s, c)}
		if s.Option(c, machineOption.Name) == "published" {
			d.machine.asPublished()
		}
		d.coarse = s.Option(c, granularityOption.Name) == "4"
		d.lastTick = map[string]uint32{"16": 1<<16 - 1, "8": 1<<8 - 1, "4": 1<<4 - 1}[s.Option(c, clockOption.Name)]
		return d
	}
	return s
}

// Detector is one run of HiRace.
type Detector struct {
	*findings.Set
	machine  *machine
	lastTick uint32 // the largest value of a clock
	notes    []string
	bounds   bounds
	coarse   bool // words are not split

	words *lines
	bytes *lines // for words split by a narrower access

	launch   event.Launch
	running  bool
	perBlock uint32
	sequence uint32 // number of the current event
	warps    []warpState
	blocks   []*blockState // nil: no thread has arrived at a barrier or exited, or all threads have exited
	free     []*blockState
}

// warpState is the clocks of a warp's threads: the warp's clock in the low half, the block's in the high half.
type warpState struct {
	clock uint32      // of all lanes
	gone  uint32      // lanes that have exited
	lanes *[32]uint32 // clocks by lane, if barriers of some lanes have made them differ; otherwise nil
}

func (w *warpState) of(lane int) uint32 {
	if w.lanes != nil {
		return w.lanes[lane]
	}
	return w.clock
}

// blockState is the state of a block besides its warps.
type blockState struct {
	exited  uint64
	arrived [16][]arrival // by barrier: arrivals since its last completion
}

type arrival struct {
	warp, mask uint32
	waits      bool
}

// Events implements event.Sink.
func (d *Detector) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		switch {
		case e.Kind == event.KernelBegin:
			d.begin(&b.Launches[e.Side])
		case !d.running || e.Launch != d.launch.ID:
		case e.Kind == event.KernelEnd:
			d.running = false
			d.say(d.bounds.end(&d.launch))
		case !d.bounds.tracks(e.Warp, d.perBlock):
		case e.Kind <= event.Atomic:
			d.sequence++
			if e.Space == event.Global || e.Space == event.Shared {
				if b, e := d.bounds.admit(b, e); e != nil {
					d.access(b, e)
				}
			}
		case e.Kind == event.WarpSync:
			d.warpSync(e)
		case e.Kind == event.Arrive:
			s := &d.block(e).arrived[e.Barrier]
			*s = append(*s, arrival{e.Warp, e.Mask, e.Flags&event.FlagWait != 0})
		case e.Kind == event.BarrierDone:
			d.barrierDone(e)
		case e.Kind == event.Exit:
			d.exit(e)
		}
	}
}

func (d *Detector) begin(l *event.Launch) {
	d.launch, d.running, d.perBlock = *l, true, l.WarpsPerBlock()
	d.words.Clear()
	d.bytes.Clear()
	d.say(d.bounds.begin(&d.launch))
	d.free = nil
	n := l.Grid.Count() * uint64(d.perBlock)
	if n > 1<<(threadBits-5) {
		d.discontinue("it has more threads than the %d bits of a thread's number can tell apart", threadBits)
		n = 0
	}
	d.warps, d.blocks = make([]warpState, n), make([]*blockState, n/uint64(d.perBlock))
}

// say adds a note about what was not checked, unless it is empty.
func (d *Detector) say(note string) {
	if note != "" {
		d.notes = append(d.notes, note)
	}
}

// discontinue stops checking the launch, with a warning (footnote 3 of the paper).
func (d *Detector) discontinue(format string, args ...any) {
	d.running = false
	d.say(fmt.Sprintf("hirace stopped checking launch %d of kernel %s: %s. Races after that are not reported.",
		d.launch.ID, d.launch.Kernel, fmt.Sprintf(format, args...)))
}

func (d *Detector) block(e *event.Event) *blockState {
	n := e.Warp / d.perBlock
	s := d.blocks[n]
	if s == nil {
		if k := len(d.free); k > 0 {
			s, d.free = d.free[k-1], d.free[:k-1]
			s.exited = 0
		} else {
			s = new(blockState)
		}
		d.blocks[n] = s
	}
	return s
}

// exit drops the shared memory of a block when all its threads have exited.
func (d *Detector) exit(e *event.Event) {
	d.warps[e.Warp].gone |= e.Mask
	s := d.block(e)
	s.exited += uint64(bits.OnesCount32(e.Mask))
	if s.exited < d.launch.Block.Count() {
		return
	}
	n := e.Warp / d.perBlock
	w := shadow.Window{Launch: d.launch.ID, Block: n}
	d.words.EndWindow(w)
	d.bytes.EndWindow(w)
	for i := range s.arrived {
		s.arrived[i] = s.arrived[i][:0]
	}
	d.blocks[n] = nil
	d.free = append(d.free, s)
}

// warpSync gives the lanes of a warp barrier a clock greater than that of each of them.
func (d *Detector) warpSync(e *event.Event) {
	w := &d.warps[e.Warp]
	if w.lanes == nil && e.Mask == d.everyLane(e.Warp) {
		w.clock = d.tick(w.clock, 0)
		return
	}
	latest := uint32(0)
	for m := e.Mask; m != 0; m &= m - 1 {
		latest = max(latest, w.of(bits.TrailingZeros32(m))&(1<<clockBits-1))
	}
	d.set(e.Warp, e.Mask, d.tick(latest, 0), 0)
}

// barrierDone gives the threads that waited at a barrier a clock greater than that of every thread that arrived.
func (d *Detector) barrierDone(e *event.Event) {
	s := &d.block(e).arrived[e.Barrier]
	latest := uint32(0)
	for _, a := range *s {
		w := &d.warps[a.warp]
		if w.lanes == nil {
			latest = max(latest, w.clock)
			continue
		}
		for m := a.mask; m != 0; m &= m - 1 {
			latest = max(latest, w.of(bits.TrailingZeros32(m)))
		}
	}
	next := d.tick(latest, clockBits) >> clockBits
	for _, a := range *s {
		if a.waits {
			d.set(a.warp, a.mask, next, clockBits)
		}
	}
	*s = (*s)[:0]
}

// everyLane returns the lanes of a warp that are threads and have not exited.
func (d *Detector) everyLane(warp uint32) uint32 {
	every := ^uint32(0)
	if left := d.launch.Block.Count() - uint64(warp%d.perBlock)*32; left < 32 {
		every = 1<<left - 1
	}
	return every &^ d.warps[warp].gone
}

// tick advances the clock at shift in a pair of clocks.
func (d *Detector) tick(pair uint32, shift int) uint32 {
	if pair>>shift&(1<<clockBits-1) == d.lastTick {
		d.discontinue("a clock of %d bits overflowed, after that many barriers", bits.Len32(d.lastTick))
		return pair
	}
	return pair + 1<<shift
}

// set sets the clock at shift for the lanes of a mask.
func (d *Detector) set(warp, mask, clock uint32, shift int) {
	w := &d.warps[warp]
	other := uint32(1<<clockBits-1) << (clockBits - shift)
	if w.lanes == nil {
		if next := w.clock&other | clock<<shift; mask == d.everyLane(warp) || next == w.clock {
			w.clock = next
			return
		}
		w.lanes = new([32]uint32)
		for i := range w.lanes {
			w.lanes[i] = w.clock
		}
	}
	for m := mask; m != 0; m &= m - 1 {
		l := &w.lanes[bits.TrailingZeros32(m)]
		*l = *l&other | clock<<shift
	}
	same := w.lanes[bits.TrailingZeros32(mask)]
	for m := d.everyLane(warp); m != 0; m &= m - 1 {
		if w.lanes[bits.TrailingZeros32(m)] != same {
			return
		}
	}
	w.clock, w.lanes = same, nil
}

// Notes implements detect.Noted.
func (d *Detector) Notes() []string { return d.notes }

// MemoryBytes implements detect.Metered. It counts words with the places beside them, and clocks.
func (d *Detector) MemoryBytes() uint64 {
	return d.words.Bytes() + d.bytes.Bytes() + uint64(len(d.warps))*uint64(unsafe.Sizeof(warpState{})) + uint64(len(d.blocks))*8
}
