package judge

import (
	"time"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/report"
)

// Live judges a program while it runs. Its events cannot be read again, so it keeps the places of the last accesses.
type Live struct {
	options Options
	all     []*judged
	found   collector
	last    []lastTwo
	more    [][]lastAccess // of variables with more than two kinds of last accesses
	number  uint64
}

// lastAccess is the last read or write of a variable by a thread. The zero lastAccess is none.
type lastAccess struct {
	who      uint32 // thread + 1; bit 16 is set if it writes
	location uint32
}

// lastTwo holds the last two accesses of a variable, the newest first. Live.more has the others.
type lastTwo struct {
	two  [2]lastAccess
	more uint32 // number in Live.more, plus one; 0 is none
}

func whoDid(thread uint16, write bool) uint32 {
	who := uint32(thread) + 1
	if write {
		who |= 1 << 16
	}
	return who
}

// NewLive returns a Live without events.
func NewLive(o Options, names Names) *Live {
	return &Live{options: o, all: attach(o.Detectors), found: newCollector(names)}
}

// Events judges the next events, which have the form that a trace.Reader returns.
func (l *Live) Events(events []cpu.Event) {
	var races []pending
	for i, j := range l.all {
		begin := time.Now()
		j.detector.Events(events)
		j.seconds += time.Since(begin).Seconds()
		for _, r := range j.races {
			races = append(races, pending{r, i})
		}
		j.races = j.races[:0]
	}
	for i := range events {
		e := &events[i]
		for k := range races {
			if races[k].Event == l.number+uint64(i) {
				l.add(&races[k], e)
			}
		}
		l.keep(e)
	}
	l.number += uint64(len(events))
}

// add finds the place of the earlier access of a race.
func (l *Live) add(r *pending, e *cpu.Event) {
	l.room(e.Object)
	who := whoDid(r.Earlier, r.Wrote)
	v := &l.last[e.Object]
	earlier := access{}
	for _, a := range append(v.two[:], l.rest(v)...) {
		if a.who == who {
			earlier.location = a.location
		}
	}
	l.found.add(r, earlier, access{location: e.Location})
}

func (l *Live) rest(v *lastTwo) []lastAccess {
	if v.more == 0 {
		return nil
	}
	return l.more[v.more-1]
}

func (l *Live) room(variable uint32) {
	if int(variable) >= len(l.last) {
		l.last = append(l.last, make([]lastTwo, int(variable)+1-len(l.last))...)
	}
}

// keep records an access as the last of its kind.
func (l *Live) keep(e *cpu.Event) {
	switch e.Op {
	case cpu.Read, cpu.Write, cpu.ReadAtomic, cpu.WriteAtomic:
	case cpu.Forget:
		l.room(e.Object)
		l.clear(&l.last[e.Object])
		return
	case cpu.Part:
		l.room(max(e.Object, e.Location))
		v, of := &l.last[e.Object], &l.last[e.Location]
		l.clear(v)
		v.two = of.two
		for _, a := range l.rest(of) {
			l.put(v, a)
		}
		return
	default:
		return
	}
	l.room(e.Object)
	v := &l.last[e.Object]
	now := lastAccess{whoDid(e.Thread, e.Op.Writes()), e.Location}
	switch {
	case v.two[0].who == now.who || v.two[0].who == 0:
		v.two[0] = now
	case v.two[1].who == now.who || v.two[1].who == 0:
		v.two[1] = now
	default:
		l.put(v, now)
	}
}

// put adds an access to those in Live.more.
func (l *Live) put(v *lastTwo, a lastAccess) {
	if v.more == 0 {
		l.more = append(l.more, nil)
		v.more = uint32(len(l.more))
	}
	rest := &l.more[v.more-1]
	for i := range *rest {
		if (*rest)[i].who == a.who {
			(*rest)[i] = a
			return
		}
	}
	*rest = append(*rest, a)
}

func (l *Live) clear(v *lastTwo) {
	v.two = [2]lastAccess{}
	if v.more != 0 {
		l.more[v.more-1] = l.more[v.more-1][:0]
	}
}

// Describe returns the detectors' descriptions of their work, a sentence or more for each.
func (l *Live) Describe() (notes []string) {
	for _, j := range l.all {
		if d, ok := j.detector.(interface{ Describe() string }); ok {
			notes = append(notes, j.name+": "+d.Describe())
		}
	}
	return notes
}

// Report returns the findings.
func (l *Live) Report(count report.Trace, skipped []report.Skipped) *report.Report {
	out := &report.Report{Trace: &count, Skipped: skipped}
	finish(out, l.all, &l.found, l.options)
	return out
}
