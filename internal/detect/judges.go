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
	// inFlight is the most chunks that are being filled, queued or judged.
	inFlight = 2
	// A chunk has chunkBuffers buffers of about bufferEvents events. Waking a goroutine on another core takes about 10
	// us, which is much compared with the time to judge one batch.
	chunkBuffers, bufferEvents = 8, 512
)

// Judges is the sink of a run: it hands every batch to all detectors. With more than one core, each detector judges on
// a goroutine of its own while the producer continues, even past the end of a launch. Every detector receives the same
// batches, one at a time and in order, and depends on nothing else. Its findings are therefore the same for any number
// of cores.
//
// A detector that panics receives no more batches; Defects reports it. After Stop no detector receives any; Unjudged
// reports the affected launches.
//
// The methods must not be called concurrently. The detectors are idle between Wait and the next batch.
type Judges struct {
	judges  []*judge // use goroutines
	several bool     // goroutines are worth having
	running bool
	filling *chunk
	free    chan *chunk
	made    int // the number of chunks made
	stopped atomic.Bool
}

// judge is a detector that takes part in a run.
type judge struct {
	detector Detector
	queue    chan *chunk
	defect   *Defect
	stopped  *atomic.Bool    // Judges.stopped
	unjudged map[uint32]bool // launches that it did not receive all events of; 0: the host
}

// portion is the most events that a detector receives at once, so that Stop takes effect soon: one event that races
// with thousands of accesses takes milliseconds. It is a number of events and not a time, so that what a detector
// receives does not depend on timing.
const portion = 64

// chunk is batches on their way to the detectors.
type chunk struct {
	buffers [chunkBuffers]buffer
	n       int          // the number of buffers in use
	left    atomic.Int32 // the number of detectors that have not judged it
}

// buffer is one long batch, or several short ones joined, with their side tables.
type buffer struct {
	event.Batch
	ends []event.Extent // where each batch ends
}

// Defect is the panic of a detector.
type Defect struct {
	Detector int    // its index
	Launch   uint32 // the launch whose events it was judging; 0: the host
	Value    any    // what it panicked with
	Stack    []byte
}

func (d *Defect) Error() string { return fmt.Sprintf("%v\n%s", d.Value, d.Stack) }

// NewJudges makes a sink for detectors that may use the given number of cores, including the producer's.
func NewJudges(cores int, ds ...Detector) *Judges {
	j := &Judges{several: cores > 1 && len(ds) > 0, free: make(chan *chunk, inFlight)}
	for _, d := range ds {
		j.judges = append(j.judges, &judge{detector: d, stopped: &j.stopped, unjudged: map[uint32]bool{}})
	}
	return j
}

// Stop makes the detectors stop after the portion that they are judging. It may be called concurrently.
func (j *Judges) Stop() { j.stopped.Store(true) }

// Unjudged returns the launches of which some detector did not receive all events because of Stop; 0 is the host. Call
// it after Wait.
func (j *Judges) Unjudged() []uint32 {
	all := map[uint32]bool{}
	for _, d := range j.judges {
		maps.Copy(all, d.unjudged)
	}
	return slices.Sorted(maps.Keys(all))
}

// Events implements event.Sink. When it returns, b has been judged.
func (j *Judges) Events(b *event.Batch) {
	j.Wait()
	if len(b.Events) > 0 {
		j.judge(b)
	}
}

// judge judges a batch on this goroutine.
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
		if cap(s.Events) == 0 { // the producer's next batch may be as long as this one
			s.Events, s.Addrs, s.Values = make([]event.Event, 0, cap(b.Events)), make([]uint64, 0, cap(b.Addrs)), make([]uint64, 0, cap(b.Values))
		}
		s.Batch, *b = *b, s.Batch
	} else {
		s.Append(b)
	}
	s.ends = append(s.ends, s.Extent())
}

// empty returns an unused chunk, waiting for one if necessary.
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

// pass hands the filled chunk to the detectors.
func (j *Judges) pass() {
	if !j.running {
		j.running = true
		for i, d := range j.judges {
			d.queue = make(chan *chunk, inFlight+1) // one more, for the nil that ends it
			go j.work(i, d)
		}
	}
	j.filling.left.Store(int32(len(j.judges)))
	for _, d := range j.judges {
		d.queue <- j.filling
	}
	j.filling = nil
}

// work judges the chunks of a queue until nil arrives.
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

// try hands a batch to a detector and catches a panic.
func (d *judge) try(i int, b *event.Batch) {
	if d.defect != nil {
		return
	}
	defer func() {
		if bug := recover(); bug != nil {
			d.defect = &Defect{i, b.Events[len(b.Events)-1].Launch, bug, debug.Stack()}
		}
	}()
	before, end, ok := b.CutEnd() // so that the memory of a detector can be measured before the launch ends
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

// Wait waits until everything has been judged. Afterwards no goroutine is running.
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

// Defects returns the panics of detectors. Call it after Wait.
func (j *Judges) Defects() []*Defect {
	var all []*Defect
	for _, d := range j.judges {
		if d.defect != nil {
			all = append(all, d.defect)
		}
	}
	return all
}
