package detect

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"fencepost.dev/fencepost/internal/event"
)

const (
	// inFlight is how many batches are on their way to the detectors, or being judged, at most.
	inFlight = 8
	// together is how many are handed over at once: waking a goroutine on another core takes about 10 us.
	together = 4
	// inPlace is how many batches are judged in place before the first one is handed over: a short launch does not wake
	// other cores.
	inPlace = 8
)

// Judges is the sink of a run: it hands every batch to all of its detectors. With more than one core, batches that it
// may take are judged on goroutines of their own, one for each detector, while the producer makes the next ones. A
// detector gets the batches one at a time and in their order all the same, and a detector depends on nothing else: what
// it finds is the same for any number of cores.
//
// Its methods are for the producer's goroutine. Between Wait and the next Take the detectors are at rest.
type Judges struct {
	detectors []Detector
	several   bool           // goroutines are worth having
	direct    int            // batches yet to be judged in place
	queues    []chan *handed // of the detectors, while their goroutines run
	running   bool
	kept      []*handed    // taken, and not in the queues yet
	free      chan *handed // the batches that are not in flight
	bug       atomic.Pointer[Defect]
}

// handed is a batch on its way.
type handed struct {
	batch event.Batch
	left  atomic.Int32 // detectors that have not judged it
}

// Defect is the panic of a detector on its own goroutine. Judges panics with it on the producer's.
type Defect struct {
	Value any    // what the detector panicked with
	Stack []byte // of its goroutine
}

func (d *Defect) Error() string { return fmt.Sprintf("%v\n%s", d.Value, d.Stack) }

// NewJudges makes a sink for detectors that may use so many cores, the producer's included.
func NewJudges(cores int, ds ...Detector) *Judges {
	return &Judges{detectors: ds, several: cores > 1 && len(ds) > 0, direct: inPlace}
}

// Events implements event.Sink: b has been judged when it returns.
func (j *Judges) Events(b *event.Batch) {
	j.Wait()
	if len(b.Events) > 0 {
		j.judge(b)
	}
}

func (j *Judges) judge(b *event.Batch) {
	for _, d := range j.detectors {
		d.Events(b)
	}
}

// Take implements event.Taker.
func (j *Judges) Take(b *event.Batch) {
	if !j.several || j.direct > 0 {
		j.direct = max(0, j.direct-1)
		j.judge(b)
		return
	}
	j.start()
	h := <-j.free
	if j.bug.Load() != nil {
		j.free <- h
		j.Wait()
	}
	h.batch, *b = *b, h.batch
	h.left.Store(int32(len(j.detectors)))
	if j.kept = append(j.kept, h); len(j.kept) == together {
		j.send()
	}
}

// send gives the kept batches to the detectors.
func (j *Judges) send() {
	for _, q := range j.queues {
		for _, h := range j.kept {
			q <- h
		}
	}
	j.kept = j.kept[:0]
}

// start makes the goroutines.
func (j *Judges) start() {
	if j.running {
		return
	}
	if j.free == nil {
		j.free = make(chan *handed, inFlight)
		for range inFlight {
			j.free <- &handed{}
		}
		for range j.detectors {
			j.queues = append(j.queues, make(chan *handed, inFlight+1)) // the one more is the end
		}
	}
	for i, d := range j.detectors {
		go j.work(d, j.queues[i])
	}
	j.running = true
}

// work judges what comes, until nil does.
func (j *Judges) work(d Detector, queue chan *handed) {
	for h := <-queue; h != nil; h = <-queue {
		j.try(d, &h.batch)
		if h.left.Add(-1) == 0 {
			j.free <- h
		}
	}
}

// try judges a batch. After a panic there is nothing more to judge: the producer would not have gone on.
func (j *Judges) try(d Detector, b *event.Batch) {
	defer func() {
		if bug := recover(); bug != nil {
			j.bug.CompareAndSwap(nil, &Defect{bug, debug.Stack()})
		}
	}()
	if j.bug.Load() == nil {
		d.Events(b)
	}
}

// Wait returns when everything taken has been judged and no goroutine runs any more. It panics with the *Defect of a
// detector that panicked meanwhile.
func (j *Judges) Wait() {
	j.direct = inPlace
	if !j.running {
		return
	}
	j.send()
	var rest [inFlight]*handed
	for i := range rest {
		rest[i] = <-j.free
	}
	for _, h := range rest {
		j.free <- h
	}
	for _, q := range j.queues {
		q <- nil
	}
	j.running = false
	if bug := j.bug.Swap(nil); bug != nil {
		panic(bug)
	}
}
