// Package judge gives the trace of a CPU program to detectors and makes a report of what they find.
//
// Detectors keep no source places: metadata with places could be shared by few variables. A second reading of the trace finds the
// earlier access of each race, which is the last one of its kind by its thread to the variable.
package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
)

// Options say what judges and what is told.
type Options struct {
	Detectors   []cpu.Spec
	MaxFindings int
	FailOn      detect.Severity
	Progress    func(text string) // may be nil
}

// mostRaces is how many pairs of accesses are remembered of a detector until the second reading.
const mostRaces = 1 << 20

// batch is how many events are read at once: they fit into the first cache.
const batch = 1 << 10

// judged is a detector at work.
type judged struct {
	name     string
	detector cpu.Detector
	races    []cpu.Race
	more     int // races that are not in races
	seconds  float64
}

// Trace judges a trace. It is opened twice if there is something to tell. The error is of a trace that could not even be opened;
// one that goes wrong later is judged as far as it goes.
func Trace(ctx context.Context, name string, open func() (io.ReadCloser, error), o Options) (*report.Report, error) {
	var all []*judged
	for _, spec := range o.Detectors {
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
	var out report.Report
	names := &trace.Names{}
	err := read(ctx, open, o.Progress, func(r *trace.Reader, events []cpu.Event, _ uint64) bool {
		for _, j := range all {
			begin := time.Now()
			j.detector.Events(events)
			j.seconds += time.Since(begin).Seconds()
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
	p := newPlaces(name, names, all)
	if len(p.races) > 0 {
		if err := read(ctx, open, o.Progress, p.events); err != nil && len(out.Skipped) == 0 {
			out.Skipped = append(out.Skipped, report.Skipped{What: "source places", Reason: err.Error()})
		}
	}
	finish(&out, all, p, o)
	return &out, nil
}

// openError is one of opening a trace.
type openError struct{ err error }

func (e *openError) Error() string { return e.err.Error() }

// read reads a trace, from event number on at each call of each, until that says no.
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

// pending is a race whose places are looked for.
type pending struct {
	cpu.Race
	detector int
}

// access is where an access stands: its location, and its line in a text or the number of its event from 1.
type access struct {
	location uint32
	at       int
}

// pair tells findings apart: accesses at two locations, or of one variable by two threads where locations are not known.
type pair struct {
	detector         int
	earlier, later   uint32
	wrote, write     bool
	variable         uint32
	threadA, threadB uint16
}

// found is a finding in the making.
type found struct {
	race      cpu.Race // the first one
	a, b      access
	count     int
	variables map[uint32]bool
	predicted bool // all of them are
}

// places finds the accesses of races.
type places struct {
	trace string
	names *trace.Names
	races []pending // by the later access
	next  int
	last  map[uint32]map[lastKey]access // of the variables that race
	first map[uint32]int                // where each location is first used
	found map[pair]*found
	order []pair
}

type lastKey struct {
	thread uint16
	write  bool
}

func newPlaces(name string, names *trace.Names, all []*judged) *places {
	p := &places{trace: name, names: names, last: map[uint32]map[lastKey]access{}, first: map[uint32]int{}, found: map[pair]*found{}}
	for i, j := range all {
		for _, r := range j.races {
			p.races = append(p.races, pending{r, i})
			p.last[r.Variable] = map[lastKey]access{}
		}
	}
	slices.SortStableFunc(p.races, func(a, b pending) int {
		switch {
		case a.Event < b.Event:
			return -1
		case a.Event > b.Event:
			return 1
		}
		return 0
	})
	return p
}

// events reads until the last race.
func (p *places) events(r *trace.Reader, events []cpu.Event, from uint64) bool {
	for i := range events {
		e := &events[i]
		if e.Op != cpu.Read && e.Op != cpu.Write {
			continue
		}
		of := p.last[e.Object]
		if of == nil {
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
		of[lastKey{e.Thread, e.Op == cpu.Write}] = now
	}
	return p.next < len(p.races)
}

func (p *places) add(r *pending, a, b access) {
	key := pair{detector: r.detector, earlier: a.location, later: b.location, wrote: r.Wrote, write: r.Write}
	if a.location == 0 || b.location == 0 {
		key.variable, key.threadA, key.threadB = r.Variable, r.Earlier, r.Thread
	}
	f := p.found[key]
	if f == nil {
		f = &found{race: r.Race, a: a, b: b, variables: map[uint32]bool{}, predicted: true}
		p.found[key] = f
		p.order = append(p.order, key)
	}
	f.count++
	f.variables[r.Variable] = true
	f.predicted = f.predicted && r.Predicted
}

// frame is where an access stands: a line of a source if the location names one, and else one of the trace.
func (p *places) frame(a access) event.Frame {
	name := ""
	if a.location > 0 {
		name = p.names.Of(cpu.Locations, a.location)
		if f, ok := sourcePlace(name); ok {
			return f
		}
		if _, err := strconv.Atoi(name); err == nil {
			name = "location_" + name // as one word, since a report takes a first word for a type
		}
		a.at = p.first[a.location] // the same whichever access was first to race
	}
	return event.Frame{File: p.trace, Line: a.at, Function: name}
}

// sourcePlace reads "file:line" and "file:line:column".
func sourcePlace(s string) (event.Frame, bool) {
	file, last, ok := cutLast(s)
	if !ok {
		return event.Frame{}, false
	}
	if name, line, ok := cutLast(file); ok {
		return event.Frame{File: name, Line: line, Column: last}, true
	}
	return event.Frame{File: file, Line: last}, true
}

func cutLast(s string) (string, int, bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 1 {
		return s, 0, false
	}
	n, err := strconv.Atoi(s[i+1:])
	return s[:i], n, err == nil && n > 0 && n < 1<<31
}

// finding makes the finding of a pair.
func (p *places) finding(key pair, detector string) report.Finding {
	f := p.found[key]
	thread := func(id uint16) string { return p.names.Of(cpu.Threads, uint32(id)) }
	variable := p.names.Of(cpu.Variables, f.race.Variable)
	side := func(id uint16, write bool, a access) report.Access {
		op := detect.Read
		if write {
			op = detect.Write
		}
		return report.Access{Op: op, Actor: thread(id), Object: report.Object{Name: variable}, Frames: []event.Frame{p.frame(a)}}
	}
	out := report.Finding{Class: detect.Race, Kind: detect.Unordered, Severity: detect.Error, Detector: detector, Predicted: f.predicted,
		Count: f.count, Addresses: len(f.variables), NoSync: true,
		Accesses: []report.Access{side(f.race.Earlier, f.race.Wrote, f.a), side(f.race.Thread, f.race.Write, f.b)},
		Message: fmt.Sprintf("no lock, atomic access, fork, join or barrier orders what threads %s and %s do here.",
			thread(f.race.Earlier), thread(f.race.Thread)),
		Fix: "hold one lock at both, or order them"}
	if f.predicted {
		out.Message = fmt.Sprintf("threads %s and %s were ordered only by critical sections that could have come in the other order.",
			thread(f.race.Earlier), thread(f.race.Thread))
	}
	return out
}

func finish(out *report.Report, all []*judged, p *places, o Options) {
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
