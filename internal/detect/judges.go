package detect

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"fencepost.dev/fencepost/internal/event"
)

const (
	// inFlight is how many chunks are being filled, on their way to the detectors, or being judged, at most.
	inFlight = 2
	// A chunk has so many buffers of so many events: waking a goroutine on another core takes about 10 us, which is much for
	// the events of one batch.
	chunkBuffers, bufferEvents = 8, 512
)

// Judges is the sink of a run: it hands every batch to all of its detectors. With more than one core, detectors judge on
// goroutines of their own, one each, while the producer goes on, over the ends of launches too. A detector is given the same
// batches one at a time and in their order all the same, and depends on nothing else: what it finds is the same
// for any number of cores.
//
// A detector that panics is given nothing any more; Defects tells of it. Nor is any after Stop; Unjudged tells of what.
//
// The methods are for one goroutine at a time. The detectors are at rest between Wait and the next batch.
type Judges struct {
	judges  []*judge
	several bool // goroutines are worth having
	running bool
	filling *chunk
	free    chan *chunk
	made    int // chunks there are
	stopped atomic.Bool
}

// judge is a detector at work.
type judge struct {
	detector Detector
	queue    chan *chunk
	defect   *Defect
	stopped  *atomic.Bool    // of the Judges
	unjudged map[uint32]bool // launches of which it was not given all events, 0 for the host
}

// portion is how many events a detector is given at once, at most, so that Stop has its effect soon: one event that races
// with thousands of accesses takes milliseconds. It does not depend on time, so that what a detector is given does not.
const portion = 64

// chunk is batches on their way to the detectors.
type chunk struct {
	buffers [chunkBuffers]buffer
	n       int          // buffers in use
	left    atomic.Int32 // detectors that have not judged it
}

// buffer is one batch of some length, or several short ones with their side tables in one.
type buffer struct {
	event.Batch
	ends []event.Extent // of the batches
}

// Defect is the panic of a detector.
type Defect struct {
	Detector int    // its index
	Launch   uint32 // whose events it was judging; 0 for those of the host
	Value    any    // what it panicked with
	Stack    []byte
}

func (d *Defect) Error() string { return fmt.Sprintf("%v\n%s", d.Value, d.Stack) }

// NewJudges makes a sink for detectors that may use so many cores, the producer's included.
func NewJudges(cores int, ds ...Detector) *Judges {
	j := &Judges{several: cores > 1 && len(ds) > 0, free: make(chan *chunk, inFlight)}
	for _, d := range ds {
		j.judges = append(j.judges, &judge{detector: d, stopped: &j.stopped, unjudged: map[uint32]bool{}})
	}
	return j
}

// Stop lets the detectors judge nothing from now on but what they are at. Any goroutine may call it.
func (j *Judges) Stop() { j.stopped.Store(true) }

// Unjudged gives the launches of which some detector was not given all events, because of Stop; 0 is the host.
// Everything must have been judged.
func (j *Judges) Unjudged() []uint32 {
	all := map[uint32]bool{}
	for _, d := range j.judges {
		maps.Copy(all, d.unjudged)
	}
	return slices.Sorted(maps.Keys(all))
}

// Events implements event.Sink: b has been judged when it returns.
func (j *Judges) Events(b *event.Batch) {
	j.Wait()
	if len(b.Events) > 0 {
		j.judge(b)
	}
}

// judge judges a batch in place.
func (j *Judges) judge(b *event.Batch) {
	for i, d := range j.judges {
		d.try(i, b)
	}
}

// Take implements event.Taker.
func (j *Judges) Take(b *event.Batch) {
	if !j.several {
		j.judge(b)
		return
	}
	if j.filling == nil {
		j.filling = j.empty()
	}
	p := j.filling
	if len(p.buffers[p.n-1].Events)+len(b.Events) > bufferEvents && len(p.buffers[p.n-1].Events) > 0 {
		if p.n == chunkBuffers {
			j.pass()
			p = j.empty()
			j.filling = p
		} else {
			p.n++
		}
	}
	s := &p.buffers[p.n-1]
	if len(s.Events) == 0 {
		if cap(s.Events) == 0 { // the producer's next batch may be as long
			s.Events, s.Addrs, s.Values = make([]event.Event, 0, cap(b.Events)), make([]uint64, 0, cap(b.Addrs)), make([]uint64, 0, cap(b.Values))
		}
		s.Batch, *b = *b, s.Batch
	} else {
		s.Append(b)
	}
	s.ends = append(s.ends, s.Extent())
}

// empty gives a chunk that nobody uses.
func (j *Judges) empty() *chunk {
	var p *chunk
	if j.made < inFlight {
		j.made++
		p = &chunk{}
	} else {
		p = <-j.free
	}
	for i := range p.buffers {
		p.buffers[i].Reset()
		p.buffers[i].ends = p.buffers[i].ends[:0]
	}
	p.n = 1
	return p
}

// pass hands the chunk being filled over.
func (j *Judges) pass() {
	if !j.running {
		j.running = true
		for i, d := range j.judges {
			d.queue = make(chan *chunk, inFlight+1) // the one more is the end
			go j.work(i, d)
		}
	}
	j.filling.left.Store(int32(len(j.judges)))
	for _, d := range j.judges {
		d.queue <- j.filling
	}
	j.filling = nil
}

// work judges what comes, until nil does.
func (j *Judges) work(i int, d *judge) {
	for p := <-d.queue; p != nil; p = <-d.queue {
		p.judge(i, d)
		if p.left.Add(-1) == 0 {
			j.free <- p
		}
	}
}

// judge gives the batches of the chunk to a detector.
func (p *chunk) judge(i int, d *judge) {
	for k := range p.buffers[:p.n] {
		s, from := &p.buffers[k], event.Extent{}
		for _, to := range s.ends {
			b := s.Between(from, to)
			d.try(i, &b)
			from = to
		}
	}
}

// try gives a batch to a detector.
func (d *judge) try(i int, b *event.Batch) {
	if d.defect != nil {
		return
	}
	defer func() {
		if bug := recover(); bug != nil {
			d.defect = &Defect{i, b.Events[len(b.Events)-1].Launch, bug, debug.Stack()}
		}
	}()
	before, end, ok := b.CutEnd() // whose parts mean something to a detector that is measured
	if !ok {
		before = *b
	}
	rest := before.Events
	for len(rest) > 0 && !d.stopped.Load() {
		n := min(len(rest), portion)
		before.Events, rest = rest[:n], rest[n:]
		d.detector.Events(&before)
	}
	switch {
	case len(rest) > 0 || d.stopped.Load() && ok:
		d.unjudged[b.Events[0].Launch] = true
		d.unjudged[b.Events[len(b.Events)-1].Launch] = true
	case ok:
		d.detector.Events(&end)
	}
}

// Wait returns when everything has been judged, and no goroutine runs any more.
func (j *Judges) Wait() {
	last := j.filling
	if last != nil {
		j.filling = nil
		j.made--
	}
	if j.running {
		for ; j.made > 0; j.made-- {
			<-j.free
		}
		for _, d := range j.judges {
			d.queue <- nil
		}
		j.running = false
	}
	if last != nil {
		for i, d := range j.judges {
			last.judge(i, d)
		}
	}
}

// Defects tells which detectors panicked. Everything must have been judged.
func (j *Judges) Defects() []*Defect {
	var all []*Defect
	for _, d := range j.judges {
		if d.defect != nil {
			all = append(all, d.defect)
		}
	}
	return all
}
