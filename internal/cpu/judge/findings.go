package judge

import (
	"fmt"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
)

// Names resolve the numbers in events.
type Names interface {
	Thread(id uint16) string
	// Object returns the current memory object of a variable.
	Object(variable uint32) report.Object
	// Frames returns the call stack of a location, innermost first. at is the place of its first occurrence in the
	// trace.
	Frames(location uint32, at int) []event.Frame
}

// access is the place of an access: its location, and its line in a text trace or the number of its event from 1.
type access struct {
	location uint32
	at       int
}

// pair identifies a finding: accesses at two locations, or, if locations are not known, accesses to one variable by two
// threads.
type pair struct {
	detector         int
	earlier, later   uint32
	wrote, write     bool
	variable         uint32
	threadA, threadB uint16
}

// found is a finding that is being collected.
type found struct {
	race      cpu.Race // the first race of the pair
	object    report.Object
	a, b      access
	count     int
	variables map[uint32]bool
	predicted bool // all of its races are predicted
}

// collector collects races as findings.
type collector struct {
	names Names
	first map[uint32]int // where each location is used first
	found map[pair]*found
	order []pair
}

func newCollector(names Names) collector {
	return collector{names: names, first: map[uint32]int{}, found: map[pair]*found{}}
}

func (p *collector) add(r *pending, a, b access) {
	key := pair{detector: r.detector, earlier: a.location, later: b.location, wrote: r.Wrote, write: r.Write}
	if a.location == 0 || b.location == 0 {
		key.variable, key.threadA, key.threadB = r.Variable, r.Earlier, r.Thread
	}
	f := p.found[key]
	if f == nil {
		f = &found{race: r.Race, object: p.names.Object(r.Variable), a: a, b: b, variables: map[uint32]bool{}, predicted: true}
		p.found[key] = f
		p.order = append(p.order, key)
	}
	f.count++
	f.variables[r.Variable] = true
	f.predicted = f.predicted && r.Predicted
}

// frames returns the call stack of an access.
func (p *collector) frames(a access) []event.Frame {
	if a.location > 0 {
		a.at = p.first[a.location] // independent of which access raced first
	}
	return p.names.Frames(a.location, a.at)
}

// traceNames are the names in a trace.
type traceNames struct {
	trace string
	names *trace.Names
}

func (n traceNames) Thread(id uint16) string { return n.names.Of(cpu.Threads, uint32(id)) }

func (n traceNames) Object(variable uint32) report.Object {
	return report.Object{Name: n.names.Of(cpu.Variables, variable)}
}

// Frames returns source lines if the name of the location has them, and otherwise the line of the trace.
func (n traceNames) Frames(location uint32, at int) []event.Frame {
	name := ""
	if location > 0 {
		name = n.names.Of(cpu.Locations, location)
		if frames := Places(name); frames != nil {
			return frames
		}
		if _, err := strconv.Atoi(name); err == nil {
			name = "location_" + name // one word, because a report takes a first word for a type
		}
	}
	return []event.Frame{{File: n.trace, Line: at, Function: name}}
}

// Location returns the name of a location in a trace: a line for each frame, "file:line:column" and, after a tab, the
// function.
func Location(frames []event.Frame) string {
	var lines []string
	for _, f := range frames {
		s := f.File + ":" + strconv.Itoa(f.Line)
		if f.Column > 0 {
			s += ":" + strconv.Itoa(f.Column)
		}
		if f.Function != "" {
			s += "\t" + f.Function
		}
		lines = append(lines, s)
	}
	return strings.Join(lines, "\n")
}

// Places parses the output of Location. It returns nil if the name has another form.
func Places(name string) (frames []event.Frame) {
	for line := range strings.SplitSeq(name, "\n") {
		place, function, _ := strings.Cut(line, "\t")
		f, ok := sourcePlace(place)
		if !ok {
			return nil
		}
		f.Function = function
		frames = append(frames, f)
	}
	return frames
}

// sourcePlace parses "file:line" and "file:line:column".
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

// finding returns the finding of a pair.
func (p *collector) finding(key pair, detector string) report.Finding {
	f := p.found[key]
	thread := p.names.Thread
	side := func(id uint16, write bool, a access) report.Access {
		op := detect.Read
		if write {
			op = detect.Write
		}
		return report.Access{Op: op, Actor: thread(id), Object: f.object, Frames: p.frames(a)}
	}
	out := report.Finding{Class: detect.Race, Kind: detect.Unordered, Severity: detect.Error, Detector: detector, Predicted: f.predicted,
		Count: f.count, Addresses: len(f.variables), NoSync: true,
		Accesses: []report.Access{side(f.race.Earlier, f.race.Wrote, f.a), side(f.race.Thread, f.race.Write, f.b)},
		Message: fmt.Sprintf("no lock, atomic access, fork, join or barrier orders what threads %s and %s do here.",
			thread(f.race.Earlier), thread(f.race.Thread)),
		Fix: "hold one lock at both, or order them"}
	if thread(f.race.Earlier) == cpu.TaskName(f.race.Earlier) || thread(f.race.Thread) == cpu.TaskName(f.race.Thread) {
		out.Message = strings.Replace(out.Message, "fork, join or", "taskwait, taskgroup, depend or", 1)
		out.Fix = "order the tasks by taskwait, taskgroup or depend, or hold one lock at both"
	}
	if f.race.Atomic {
		out.Kind = detect.MixedAtomic
		out.Message = fmt.Sprintf("one of the accesses is atomic and the other is not, and nothing orders what threads %s and %s do here.",
			thread(f.race.Earlier), thread(f.race.Thread))
		out.Fix = "make both atomic, or order them"
	}
	if f.predicted {
		out.Message = fmt.Sprintf("threads %s and %s were ordered only by critical sections that could have come in the other order.",
			thread(f.race.Earlier), thread(f.race.Thread))
	}
	return out
}
