package engine

import (
	"context"
	"fmt"
	"math"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
)

// Turn is what one thread does in a Replay: it runs up to its next operation that others can observe or that waits for
// others (see Request), and executes that.
type Turn struct {
	Thread int // number within the launch, blocks one after the other
	// Kind is the kind of the operation, from a load to a barrier; or RequestExit; or RequestFault: the thread fails
	// before its next operation or in it.
	Kind RequestKind
}

// Replay is an engine that executes a launch according to turns. After the last turn it continues like engine ref with
// schedule Fair.
type Replay struct {
	Turns []Turn
	// At is called with the place at which the thread of turn i reaches its operation. An error ends the launch.
	At func(i int, place uint32) error
}

// TurnError says that a launch cannot perform a turn.
type TurnError struct {
	Turn   int
	Place  uint32 // the current place of the thread
	Reason string
}

func (e *TurnError) Error() string { return fmt.Sprintf("turn %d: %s", e.Turn+1, e.Reason) }

// Run implements Engine.
func (p *Replay) Run(ctx context.Context, l *Launch) (Stats, error) {
	fair := *l
	fair.Schedule = Fair
	r := NewRun(ctx, &fair)
	r.Machine = refMachine{r}
	r.placeElements()
	r.Sched.window = math.MaxInt32
	return r.Execute(func() error {
		if err := p.replay(r); err != nil {
			return err
		}
		if err := r.halted(); err != nil {
			return r.interrupted(err)
		}
		return r.Loop()
	})
}

// replay performs all turns, or those up to the end of the run.
func (p *Replay) replay(r *Run) error {
	r.admit()
	ctas := make([]*CTA, r.Sched.blocks)
	for _, c := range r.Sched.resident {
		ctas[c.index] = c
	}
	t := &Threads{r: r, ctas: ctas, live: map[*loader.Code]*liveness{}, loops: map[*loader.Code][]bool{}, clocks: true} // clocks can be read here
	for i := range p.Turns {
		if n := p.Turns[i].Thread; n < 0 || n >= t.Count() {
			return &TurnError{Turn: i, Reason: fmt.Sprintf("there is no thread %d: the launch has %d", n, t.Count())}
		}
		if err := p.turn(t, i); err != nil || r.halted() != nil {
			return err
		}
	}
	return nil
}

// turn performs turn number n.
func (p *Replay) turn(t *Threads, n int) error {
	r, turn := t.r, &p.Turns[n]
	w, i := t.lane(turn.Thread)
	ln := &w.lanes[i]
	wrong := func(format string, args ...any) error {
		return &TurnError{n, ln.place(), fmt.Sprintf(format, args...)}
	}
	for range maxSilent {
		switch {
		case w.Live>>i&1 == 0:
			return wrong("the thread has exited")
		case w.Ready>>i&1 == 0:
			return wrong("the thread waits for others")
		}
		in, place := &ln.code.Insts[ln.pc], ln.place()
		w.group, w.lead = 1<<i, i
		w.Together(r, w.group)
		last := false
		if in.Guard < 0 || (ln.regs[in.Guard]&1 != 0) != in.GuardNot {
			if q, ok := t.request(w, i, in, place, 0); ok {
				if q.Kind != turn.Kind {
					return wrong("the thread comes to %s", q.Kind)
				}
				if err := p.At(n, place); err != nil {
					return err
				}
				last = !t.astray(w, i, in, place, &q)
			}
		}
		faults := len(r.Faults.list)
		r.step(w)
		w.Regroup = true
		failed := r.Stop != nil || len(r.Faults.list) > faults
		switch {
		case last, failed && turn.Kind == RequestFault:
			return nil
		case failed:
			return wrong("the thread fails before it comes to its operation")
		}
	}
	return wrong("the thread executes %d instructions and comes to no operation", maxSilent)
}

// astray reports whether a swap of an element will fail only because of the bytes around the element: others have
// written there since the thread read them. The author of the schedule does not know that; the thread will try again.
func (t *Threads) astray(w *Warp, i int, in *loader.Instr, place uint32, q *Request) bool {
	if q.Kind != RequestAtomic || uint64(q.Size) == in.Width {
		return false
	}
	at := q.Addr & (in.Width - 1)
	word, kind := sharedWindow(w.CTA, in, q.Addr-at)
	if q.Space == event.Global {
		word, kind = t.r.global(q.Addr-at, in, event.FlagRead, place)
	}
	if kind != "" {
		return false
	}
	has := devmem.Uint(word, in.Width)
	return LowBytes(has>>(8*at), uint64(q.Size)) == q.Value && has != LowBytes(t.r.value(w, i, &in.Operands[1]), in.Width)
}

// String returns the kind in words.
func (k RequestKind) String() string {
	return [...]string{"its end", "a load", "a store", "an atomic operation", "a fence", "a barrier", "an arrival at a barrier", "a failure",
		"what is not explored"}[k]
}
