package detect

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"fencepost.dev/fencepost/internal/event"
)

const (
	// inFlight is how many packs are being filled, on their way to the detectors, or being judged, at most.
	inFlight = 8
	// together is how many are handed over at once: waking a goroutine on another core takes about 10 us.
	together = 4
	// packEvents is the number of events from which on a pack is full.
	packEvents = 512
)

// Judges is the sink of a run: it hands every batch to all of its detectors. With more than one core, detectors judge on
// goroutines of their own, one each, while the producer goes on, over the ends of launches too. A detector is given the same
// batches one at a time and in their order all the same, and depends on nothing else: what it finds is the same
// for any number of cores.
//
// A detector that panics is given nothing any more; Defects tells of it.
//
// The methods are for one goroutine at a time. The detectors are at rest between Wait and the next batch.
type Judges struct {
	judges  []*judge
	several bool // goroutines are worth having
	running bool
	filling *pack
	full    []*pack // not sent yet
	free    chan *pack
	made    int // packs there are
}

// judge is a detector at work.
type judge struct {
	detector Detector
	queue    chan *pack
	defect   *Defect
}

// pack is several batches on their way, with their side tables in one.
type pack struct {
	event.Batch
	ends []event.Extent // of the batches
	left atomic.Int32   // detectors that have not judged it
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
	j := &Judges{several: cores > 1 && len(ds) > 0, free: make(chan *pack, inFlight)}
	for _, d := range ds {
		j.judges = append(j.judges, &judge{detector: d})
	}
	return j
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
	if p := j.filling; p != nil && len(p.Events)+len(b.Events) > packEvents {
		j.pass()
	}
	if j.filling == nil {
		j.filling = j.empty()
	}
	p := j.filling
	if len(p.Events) == 0 {
		p.Batch, *b = *b, p.Batch
	} else {
		p.Append(b)
	}
	p.ends = append(p.ends, p.Extent())
	if len(p.Events) >= packEvents {
		j.pass()
	}
}

// empty gives a pack that nobody uses.
func (j *Judges) empty() *pack {
	if j.made < inFlight {
		j.made++
		return &pack{}
	}
	p := <-j.free
	p.Reset()
	p.ends = p.ends[:0]
	return p
}

// pass hands the pack being filled over, with those before it when they are enough.
func (j *Judges) pass() {
	j.full = append(j.full, j.filling)
	j.filling = nil
	if len(j.full) < together {
		return
	}
	if !j.running {
		j.running = true
		for i, d := range j.judges {
			d.queue = make(chan *pack, inFlight+1) // the one more is the end
			go j.work(i, d)
		}
	}
	for _, p := range j.full {
		p.left.Store(int32(len(j.judges)))
	}
	for _, d := range j.judges {
		for _, p := range j.full {
			d.queue <- p
		}
	}
	j.full = j.full[:0]
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

// judge gives the batches of the pack to a detector.
func (p *pack) judge(i int, d *judge) {
	from := event.Extent{}
	for _, to := range p.ends {
		b := p.Between(from, to)
		d.try(i, &b)
		from = to
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
	d.detector.Events(b)
}

// Wait returns when everything has been judged, and no goroutine runs any more.
func (j *Judges) Wait() {
	if j.filling != nil {
		j.full = append(j.full, j.filling)
		j.filling = nil
	}
	if j.running {
		back := make([]*pack, j.made-len(j.full))
		for i := range back {
			back[i] = <-j.free
		}
		for _, p := range back {
			j.free <- p
		}
		for _, d := range j.judges {
			d.queue <- nil
		}
		j.running = false
	}
	for _, p := range j.full {
		for i, d := range j.judges {
			p.judge(i, d)
		}
		j.free <- p
	}
	j.full = j.full[:0]
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
