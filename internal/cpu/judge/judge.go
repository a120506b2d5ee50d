// Package judge passes the trace of a CPU program to detectors and makes a report of their findings.
//
// Detectors keep no source places, because variables could then rarely share metadata. A second pass over the trace
// finds the earlier access of each race. It is the last access of its kind by its thread to the variable.
package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// Options select the detectors and the reported findings.
type Options struct {
	Detectors   []cpu.Spec
	MaxFindings int
	FailOn      detect.Severity
	Progress    func(text string) // may be nil
}

// mostRaces is the number of races of a detector that are kept for the second pass.
const mostRaces = 1 << 20

// batch is the number of events that are read at a time. They fit into the first-level cache.
const batch = 1 << 10

// judged is a running detector and its races.
type judged struct {
	name     string
	detector cpu.Detector
	races    []cpu.Race
	more     int // number of races that are not in races
	seconds  float64
}

func attach(specs []cpu.Spec) (all []*judged) {
	for _, spec := range specs {
		j := &judged{name: spec.Name}
		j.detector = spec.New(func(r cpu.Race) {
			if len(j.races) < mostRaces {
				j.races = append(j.races, r)
			} else {
				j.more++
			}
		})
		all = append(all, j)
	}
	return all
}

// Trace judges a trace. It opens the trace a second time if there is a finding. It returns an error if it cannot open
// the trace. A trace that becomes invalid later is judged up to that point.
func Trace(ctx context.Context, name string, open func() (io.ReadCloser, error), o Options) (*report.Report, error) {
	all := attach(o.Detectors)
	var out report.Report
	names, parts := &trace.Names{}, map[uint32][]uint32{}
	err := read(ctx, open, o.Progress, func(r *trace.Reader, events []cpu.Event, _ uint64) bool {
		for _, j := range all {
			begin := time.Now()
			j.detector.Events(events)
			j.seconds += time.Since(begin).Seconds()
		}
		for i := range events {
			if e := &events[i]; e.Op == cpu.Part && !slices.Contains(parts[e.Object], e.Location) {
				parts[e.Object] = append(parts[e.Object], e.Location)
			}
		}
		names = &r.Names
		out.Trace = &report.Trace{Events: int(r.Events()), Threads: r.Count(cpu.Threads), Variables: r.Count(cpu.Variables), Syncs: r.Count(cpu.Syncs)}
		return true
	})
	var open1 *openError
	if errors.As(err, &open1) {
		return nil, open1.err
	}
	if out.Trace == nil {
		if err != nil {
			return nil, err
		}
		out.Trace = &report.Trace{}
		out.Skipped = append(out.Skipped, report.Skipped{What: "the trace", Reason: "it has no events"})
	}
	if err != nil {
		out.Skipped = append(out.Skipped, report.Skipped{What: "the rest of the trace", Reason: err.Error()})
	}
	p := newPlaces(name, names, all, parts)
	if len(p.races) > 0 {
		if err := read(ctx, open, o.Progress, p.events); err != nil && len(out.Skipped) == 0 {
			out.Skipped = append(out.Skipped, report.Skipped{What: "source places", Reason: err.Error()})
		}
	}
	finish(&out, all, &p.collector, o)
	return &out, nil
}

// openError is an error of opening a trace.
type openError struct{ err error }

func (e *openError) Error() string { return e.err.Error() }

// read reads a trace. It calls each with events and the number of the first one, until each returns false.
func read(ctx context.Context, open func() (io.ReadCloser, error), progress func(string),
	each func(r *trace.Reader, events []cpu.Event, from uint64) bool) error {
	f, err := open()
	if err != nil {
		return &openError{err}
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		return err
	}
	events := make([]cpu.Event, batch)
	for {
		from := r.Events()
		n, err := r.Next(events)
		if n > 0 && !each(r, events[:n], from) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errors.New("the time is over (--timeout)")
			}
			return errors.New("interrupted")
		}
		if progress != nil {
			progress(fmt.Sprintf("%d M events", r.Events()/1e6))
		}
	}
}

// pending is a race whose places are being searched for.
type pending struct {
	cpu.Race
	detector int
}

// places searches for the accesses of races.
type places struct {
	collector
	races []pending // in the order of the later accesses
	next  int
	last  map[uint32]map[lastKey]access // last accesses of the racing variables, and of those that they are parts of
}

type lastKey struct {
	thread uint16
	write  bool
}

func newPlaces(name string, names *trace.Names, all []*judged, parts map[uint32][]uint32) *places {
	p := &places{collector: newCollector(traceNames{name, names}), last: map[uint32]map[lastKey]access{}}
	var track func(variable uint32)
	track = func(variable uint32) {
		if p.last[variable] == nil {
			p.last[variable] = map[lastKey]access{}
			for _, of := range parts[variable] {
				track(of)
			}
		}
	}
	for i, j := range all {
		for _, r := range j.races {
			p.races = append(p.races, pending{r, i})
			track(r.Variable)
		}
	}
	slices.SortStableFunc(p.races, func(a, b pending) int { return cmp.Compare(a.Event, b.Event) })
	return p
}

// events searches events, up to the last race.
func (p *places) events(r *trace.Reader, events []cpu.Event, from uint64) bool {
	for i := range events {
		e := &events[i]
		of := p.last[e.Object]
		switch {
		case of == nil || !e.Op.Access() && e.Op != cpu.Part && e.Op != cpu.Forget:
			continue
		case e.Op == cpu.Part:
			clear(of)
			maps.Copy(of, p.last[e.Location])
			continue
		case e.Op == cpu.Forget:
			clear(of)
			continue
		}
		at := r.Line(i)
		if at == 0 {
			at = int(from) + i + 1
		}
		if _, ok := p.first[e.Location]; !ok {
			p.first[e.Location] = at
		}
		now := access{e.Location, at}
		for ; p.next < len(p.races) && p.races[p.next].Event == from+uint64(i); p.next++ {
			r := &p.races[p.next]
			p.add(r, of[lastKey{r.Earlier, r.Wrote}], now)
		}
		of[lastKey{e.Thread, e.Op.Writes()}] = now
	}
	return p.next < len(p.races)
}

func finish(out *report.Report, all []*judged, p *collector, o Options) {
	for _, key := range p.order {
		out.Findings = append(out.Findings, p.finding(key, all[key.detector].name))
	}
	out.Findings = report.Merge(out.Findings)
	for _, j := range all {
		out.More = max(out.More, j.more)
		out.Detectors = append(out.Detectors, report.Detector{Name: j.name, Seconds: j.seconds, Metadata: j.detector.MemoryBytes()})
	}
	if o.MaxFindings == 0 {
		o.MaxFindings = detect.DefaultFindings
	}
	out.Cut(o.MaxFindings)
	out.Verdict = report.Clean
	if len(out.Skipped) > 0 {
		out.Verdict = report.NotChecked
	}
	for i := range out.Findings {
		if out.Findings[i].Severity >= o.FailOn {
			out.Verdict = report.Found
		}
	}
}
