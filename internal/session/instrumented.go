package session

import (
	"errors"
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/instrument/emulated"
	"fencepost.dev/fencepost/internal/simt"
)

// instrumented gives the engine of a run whose programs are instrumented. needBranches are those of its detectors that ask for branches.
func (o *Options) instrumented(engine simt.Engine, r *once, needBranches []string) (*emulated.Engine, error) {
	e := emulated.New(engine, instrument.Options{Mode: o.Mode, Prune: o.Prune})
	if o.Mode == instrument.HiRace {
		if len(r.detectors) != 1 {
			return nil, errors.New("programs instrumented for hirace detect races themselves: no detector but hirace can judge them: --detector hirace")
		}
		d, ok := r.detectors[0].Detector.(*hirace.Detector)
		if !ok || o.Record != nil {
			return nil, errors.New("programs instrumented for hirace detect races themselves and make no events: choose --detector hirace, or --instrument log")
		}
		if flags := o.Watch.raceFlags(); flags != "" {
			return nil, errors.New("programs instrumented for hirace keep one race of each pair of places, of which it is not known what the others are: " +
				"leave out " + flags + ", or choose --instrument log")
		}
		e.Checker = checkerOf(d)
		return e, nil
	}
	if len(needBranches) > 0 {
		return nil, fmt.Errorf("the log of an instrumented program has no branches, which the detector needs (%s): choose other detectors, as in --detector hb,gwcp",
			strings.Join(needBranches, " and "))
	}
	return e, nil
}

// checkerOf has a detector take what programs find by themselves.
func checkerOf(d *hirace.Detector) emulated.Checker {
	c := emulated.Checker{Machine: d.Table(), LastTick: d.LastTick(), Bounds: instrument.DefaultBounds}
	c.Bounds.Blocks = d.Groups()
	if n := d.Words(); n > 0 {
		c.Bounds.Global = c.Bounds.Shadow(n)
	}
	access := func(t instrument.Trace) hirace.Access { return hirace.Access{Event: t.Event, Sequence: t.Sequence} }
	c.Found = func(l *simt.Launch, r *instrument.Result) {
		told := make([]hirace.Told, len(r.Races))
		for i, x := range r.Races {
			told[i] = hirace.Told{Count: x.Count, Bytes: x.Bytes, Word: x.Word, Last: access(x.Last), Other: access(x.Other), Before: access(x.Before),
				OtherThread: x.OtherThread, BeforeThread: x.BeforeThread, Now: access(x.Now), Thread: x.Thread,
				Address: x.Address, Location: x.Location, Size: x.Size, Space: x.Space}
		}
		d.Tell(&l.Launch, told)
		unchecked(d, &l.Launch, &c.Bounds, r)
	}
	return c
}

// unchecked notes what a program that checks itself has not checked.
func unchecked(d *hirace.Detector, l *event.Launch, b *instrument.Bounds, r *instrument.Result) {
	if b.Blocks != 0 && l.Grid.Count() > b.Blocks {
		d.Unchecked(l, "of %d blocks the first %d were checked, as groups asks", l.Grid.Count(), b.Blocks)
	}
	if r.TooLarge {
		d.Unchecked(l, "it has more threads than a shadow word can tell apart, and was not checked")
	}
	if r.Stopped {
		d.Unchecked(l, "a clock overflowed, after that many barriers: races after that are not reported")
	}
	if r.Untracked > 0 {
		d.Unchecked(l, "%d accesses were to memory for whose shadow there was no room, and were not checked", r.Untracked)
	}
	if r.Dropped > 0 {
		d.Unchecked(l, "%d races were of more than %d pairs of places, and are not reported", r.Dropped, b.Pairs)
	}
	if r.Cut > 0 {
		d.Unchecked(l, "the kernel ended while it wrote what it knew of a pair of places with %d races: they are not reported", r.Cut)
	}
}
