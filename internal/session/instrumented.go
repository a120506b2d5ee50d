package session

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/instrument/emulated"
	"fencepost.dev/fencepost/internal/report"
)

// instrumented returns the engine of a run whose programs are instrumented. needBranches are the detectors of the run
// that need branches.
func (o *Options) instrumented(emulator engine.Engine, r *once, needBranches []string) (*emulated.Engine, error) {
	e := emulated.New(emulator, instrument.Options{Mode: o.Mode, Prune: o.Prune})
	e.Unchecked = func(l *engine.Launch, why error) {
		r.skip("kernel "+report.ShortName(report.BareName(l.Kernel)), "it ran unchecked: it "+why.Error()+": choose --device watched")
	}
	if o.Mode == instrument.HiRace {
		if len(r.detectors) != 1 {
			return nil, errors.New("programs instrumented for hirace detect races themselves: no detector but hirace can judge them: --detector hirace")
		}
		d, ok := r.detectors[0].Detector.(*hirace.Detector)
		if !ok || o.Record != nil {
			return nil, errors.New("programs instrumented for hirace detect races themselves and make no events: choose --detector hirace, or --instrument log")
		}
		e.Checker = checkerOf(d, r.skip)
		if watch := o.Watch.detectors(r.object); watch != nil {
			e.Checker.Select = func(l *engine.Launch, shared uint64) instrument.Selection { return r.selection(watch, l, shared) }
		}
		return e, nil
	}
	if len(needBranches) > 0 {
		return nil, fmt.Errorf("the log of an instrumented program has no branches, which the detector needs (%s): choose other detectors, as in --detector hb,gwcp",
			strings.Join(needBranches, " and "))
	}
	return e, nil
}

// selection returns the threads and the memory of a launch that are watched, in the form for programs that check
// themselves.
func (r *once) selection(w *detect.Watch, l *engine.Launch, shared uint64) instrument.Selection {
	var s instrument.Selection
	if w.Blocks != nil || w.Threads != nil {
		s.Thread = func(warp uint32, lane int) bool { return w.Thread(&l.Launch, warp, lane) }
	}
	if w.Object == nil {
		return s
	}
	s.Some = true
	mem := l.Program.Memory
	edges := r.edges(l)
	s.Global = pieces(edges, func(at uint64) bool {
		a, ok := mem.Find(at)
		return ok && !a.Freed && w.Object(event.Global, l.ID, at)
	})
	layout := l.Program.Module.SharedLayout(l.Func)
	edges = []uint64{0, shared, uint64(layout.Reserved), uint64(layout.Dynamic)}
	for i, v := range l.Program.Module.Vars {
		if at := layout.Offset[i]; at >= 0 {
			edges = append(edges, uint64(at), uint64(at+v.Size))
		}
	}
	s.Shared = pieces(edges, func(at uint64) bool { return at < shared && w.Object(event.Shared, l.ID, at) })
	return s
}

// edges returns addresses of global memory between which all bytes have one name.
func (r *once) edges(l *engine.Launch) (edges []uint64) {
	for _, a := range l.Program.Memory.Known() {
		edges = append(edges, a.Addr, a.Addr+a.Size)
	}
	for i := range r.buffers {
		b := &r.buffers[i]
		edges = append(edges, b.addr, b.addr+b.Bytes())
	}
	for _, n := range l.Arguments {
		edges = append(edges, n.Addr, n.Addr+n.Size)
	}
	for _, x := range r.opts.Watch.Addresses {
		edges = append(edges, x.First, min(x.Last, math.MaxUint64-1)+1)
	}
	return edges
}

// pieces returns the ranges between edges that are chosen, by address.
func pieces(edges []uint64, chosen func(at uint64) bool) (out []instrument.Range) {
	slices.Sort(edges)
	edges = slices.Compact(edges)
	for i, from := range edges[:max(len(edges)-1, 0)] {
		if !chosen(from) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].From+out[n-1].Bytes == from {
			out[n-1].Bytes += edges[i+1] - from
		} else {
			out = append(out, instrument.Range{From: from, Bytes: edges[i+1] - from})
		}
	}
	return out
}

// checkerOf makes a detector take the findings that programs make themselves, and report through skip what they have
// not checked.
func checkerOf(d *hirace.Detector, skip func(what, reason string)) emulated.Checker {
	c := emulated.Checker{Machine: d.Table(), LastTick: d.LastTick(), Bounds: instrument.DefaultBounds}
	c.Bounds.Blocks, c.Bounds.Coarse = d.Groups(), d.Coarse()
	if n := d.Pairs(); n > 0 {
		c.Bounds.Pairs = n
	}
	if n := d.Words(); n > 0 {
		c.Bounds.Global = c.Bounds.Shadow(n)
	}
	access := func(t instrument.Trace) hirace.Access { return hirace.Access{Event: t.Event, Sequence: t.Sequence} }
	c.Found = func(l *engine.Launch, r *instrument.Result) {
		told := make([]hirace.Told, len(r.Races))
		for i, x := range r.Races {
			told[i] = hirace.Told{Count: x.Count, Bytes: x.Bytes, Word: x.Word, Last: access(x.Last), Other: access(x.Other), Before: access(x.Before),
				OtherThread: x.OtherThread, BeforeThread: x.BeforeThread, Now: access(x.Now), Thread: x.Thread,
				Address: x.Address, Location: x.Location, Size: x.Size, Space: x.Space}
		}
		d.Tell(&l.Launch, told)
		unchecked(d, &l.Launch, &c.Bounds, r, skip)
	}
	return c
}

// unchecked reports what a program that checks itself has not checked. Omissions that the user or the paper intends are
// notes.
func unchecked(d *hirace.Detector, l *event.Launch, b *instrument.Bounds, r *instrument.Result, skip func(what, reason string)) {
	unasked := func(format string, args ...any) {
		skip(fmt.Sprintf("launch %d of %s", l.ID, report.ShortName(report.BareName(l.Kernel))), fmt.Sprintf(format, args...))
	}
	if b.Blocks != 0 && l.Grid.Count() > b.Blocks {
		d.Unchecked(l, "of %d blocks the first %d were checked, as groups asks", l.Grid.Count(), b.Blocks)
	}
	if r.TooLarge {
		unasked("it has more threads than a shadow word can tell apart: choose --instrument log")
	}
	if r.Stopped {
		d.Unchecked(l, "a clock overflowed, after that many barriers: races after that are not reported")
	}
	if r.Untracked > 0 {
		tell := unasked
		if d.Words() > 0 {
			tell = func(format string, args ...any) { d.Unchecked(l, format, args...) }
		}
		tell("%d accesses were to memory for whose shadow there was no room, and were not checked", r.Untracked)
	}
	if r.Dropped > 0 {
		remedy := ""
		switch {
		case b.Pairs < 1<<16:
			remedy = ": --detector hirace:pairs=64K has room for more"
		case b.Pairs < 1<<20:
			remedy = ": --detector hirace:pairs=1M has room for more"
		}
		d.Unchecked(l, "%d races were of more than %d pairs of places, and are not reported%s", r.Dropped, b.Pairs, remedy)
	}
	if r.Allocated {
		unasked("memory that it allocated itself, by malloc, was not checked: choose --instrument log")
	}
	if r.Cut > 0 {
		unasked("it ended while it wrote what it knew of a pair of places with %d races: they are not reported", r.Cut)
	}
}
