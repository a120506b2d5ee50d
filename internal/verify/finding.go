package verify

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// Finding is an error, with an execution that shows it.
type Finding struct {
	Kind  detect.Kind
	Class detect.Class
	Title string
	Cause string // of a data race, in a few words: the access that is not atomic, the scope that is too small, or the missing order
	Sides []Side
	Why   string
	Fix   string
	// Warning says that the model does not call this an error, and hardware and compilers do what the programmer
	// expects.
	Warning bool
	Graph   string // the relevant part of the execution, drawn as text
	Count   int    // how often the search found it
	// Schedule replays the finding. It is nil if it was not requested, or if no interleaving shows the finding.
	Schedule     *Schedule
	ScheduleFile string   // its name; "" if it has not been written
	scheduled    bool     // a schedule was looked for
	Drawing      *Drawing // of the execution; nil if not requested
	DrawingFile  string   // its name; "" if it has not been written
	// Executions is the number of complete executions explored before the finding.
	Executions int
}

// Side is a place of a finding.
type Side struct {
	File      string
	Line, Col int
	What      string // "write, not atomic"
	Thread    string // "P0"
	Of        string // the place of the thread: "cta 0"
	block, in event.Dim3
	frames    []event.Frame
	op        detect.Op
	variable  string
}

// describe makes a finding out of an error.
func (v *verifier) describe(e explore.Error, x explore.Execution) *Finding {
	f := &Finding{Executions: x.Executions()}
	events := x.Events()
	switch e.Kind {
	case explore.DataRace, explore.HeterogeneousRace, explore.VolatileRace, explore.PolledRace:
		v.describeRace(f, e, x, events)
	case explore.AssertionFailed:
		var what string
		f.Kind, f.Class, f.Title, what = v.subject.failure(x.Next(e.Thread))
		f.Sides = []Side{v.stands(e.Thread, e.Pos, what)}
		f.Why = fmt.Sprintf("%s allows the execution below, in which thread %s comes to this state.", v.modelName(), f.Sides[0].Thread)
	case explore.BarrierDivergence:
		f.Kind, f.Class = "barrier-divergence", detect.Divergence
		f.Title = "barrier divergence"
		f.Fix = "let every thread of the CTA reach the same barrier"
		if e.B >= 0 {
			f.Sides = []Side{v.stands(e.Thread, e.Pos, "arrives by this barrier"), v.stands(e.Other, e.OtherPos, "arrives by this one")}
			f.Why = "threads that meet at a barrier must execute the same instruction: it is in divergent code."
			break
		}
		f.Sides = []Side{v.stands(e.Thread, e.Pos, "waits at this barrier"), v.stands(e.Other, e.OtherPos, "does not come to it, and is here")}
		f.Why = "all threads of a CTA must come to a barrier before any leaves it; in the execution below no thread can go on."
	case explore.ExitedBarrier:
		f.Kind, f.Class = "barrier-divergence", detect.Divergence
		f.Title = "barrier without a thread that has exited"
		f.Sides = []Side{v.stands(e.Thread, e.Pos, "leaves this barrier"), v.stands(e.Other, e.OtherPos, "has exited here")}
		f.Why = "all threads of a block must come to a barrier; hardware does not wait for those that have exited, and the search continues in the same way."
		f.Fix = "let every thread of the block reach the same barrier"
	case explore.Undefined:
		f.Kind, f.Class, f.Warning = detect.Kind(engine.UndefinedShuffle), detect.Divergence, true
		f.Title = "shuffle from a lane that takes no part"
		f.Sides = []Side{v.stands(e.Thread, e.Pos, "reads a lane that takes no part in it")}
		f.Why = "the value is undefined: the lane does not exist, has exited, or is not named in the mask."
		f.Fix = "let the lanes that are read take part, or do not use the values of other lanes"
	case explore.Deadlock:
		v.describeDeadlock(f, e, x, events)
	}
	if f.Graph = v.draw(x, events, e); f.Graph == "" && e.Kind == explore.AssertionFailed {
		f.Why = fmt.Sprintf("thread %s comes to this state before it accesses memory that others see.", f.Sides[0].Thread)
	}
	if v.options.Drawings {
		f.Drawing = v.drawing(x, events, e, fmt.Sprintf("%s [%s]", f.Title, f.Kind))
	}
	return f
}

// modelName is the name of the model within a sentence.
func (v *verifier) modelName() string {
	if v.options.Model == PTX {
		return "the memory model of PTX"
	}
	return "scoped RC11"
}

// stands returns the place at which a thread waits.
func (v *verifier) stands(thread int, pos int32, what string) Side {
	s := v.side(thread, pos)
	s.What, s.op = what, detect.Wait
	return s
}

func (v *verifier) side(thread int, pos int32) Side {
	s := Side{frames: v.subject.frames(pos)}
	s.Thread, s.Of, _ = v.subject.thread(thread)
	s.block, s.in = v.subject.coordinates(thread)
	s.File, s.Line, s.Col = place(s.frames)
	return s
}

// place returns the file, line and column to show to the user: of the source, or of the PTX if it names no source.
func place(frames []event.Frame) (file string, line, col int) {
	f := (&report.Access{Frames: frames}).Place()
	if f.File == "" {
		return f.PTXFile, f.PTXLine, 0
	}
	return f.File, f.Line, f.Column
}

// operation describes the step of an event: "write, relaxed at cta scope".
func operation(e *explore.Event) (string, detect.Op) {
	what, op := "read", detect.Read
	switch {
	case e.Op.Kind == explore.Update:
		what, op = "read-modify-write", detect.AtomicOp
	case e.Kind == model.W:
		what, op = "write", detect.Write
	}
	switch {
	case e.Op.Volatile:
		return "volatile " + what, op
	case !e.Op.Order.Atomic():
		return what + ", not atomic", op
	}
	return fmt.Sprintf("%s, %s at %s scope", what, e.Op.Order, e.Op.Scope), op
}

func (v *verifier) describeRace(f *Finding, e explore.Error, x explore.Execution, events []explore.Event) {
	f.Class = detect.Race
	variable := v.subject.location(events[e.A].Loc)
	for _, i := range []int{e.A, e.B} {
		s := v.side(events[i].Thread, events[i].Op.Pos)
		s.What, s.op = operation(&events[i])
		s.variable = variable
		f.Sides = append(f.Sides, s)
	}
	a, b := &events[e.A], &events[e.B]
	f.Title = "data race on " + variable
	if e.Kind == explore.VolatileRace || e.Kind == explore.PolledRace {
		// A flag is polled in a loop. Data that a lock or a flag should protect is not.
		f.Kind, f.Warning = detect.Unordered, e.Kind == explore.PolledRace
		f.Title = "race of a volatile access on " + variable
		f.Why = "PTX treats volatile accesses as relaxed atomics of sys scope, and they are explored as such; in CUDA C++ they are not atomic, and neither happens before the other."
		f.Fix = "make both atomic: cuda::atomic_ref with a scope that includes both threads"
	} else if e.Kind == explore.HeterogeneousRace {
		f.Kind = detect.AtomicScope
		f.Title = "heterogeneous race on " + variable
		var why []string
		for _, p := range [][2]*explore.Event{{a, b}, {b, a}} {
			if need := model.Need(p[0].Place, p[1].Place); p[0].Scope < need {
				why = append(why, fmt.Sprintf("the scope %s of thread %s does not include thread %s", p[0].Scope, v.name(p[0]), v.name(p[1])))
			}
		}
		f.Why = "both are atomic and nothing orders them, but " + strings.Join(why, ", and ") + "."
		f.Fix = fmt.Sprintf("give both the scope %s", model.Need(a.Place, b.Place))
	} else if !a.SameProxy(&b.Event) {
		v.describeProxies(f, a, b, x.Before(e.A, e.B) || x.Before(e.B, e.A))
	} else if v.subject.mbarrier(a.Loc) { // arrivals and tests are atomic; init and inval are not
		f.Kind, f.Class = detect.MixedAtomic, detect.Race
		f.Cause = "nothing orders mbarrier.init or mbarrier.inval with another operation on the barrier"
		f.Why = "in the execution below neither happens before the other: the barrier begins with mbarrier.init and ends with mbarrier.inval, which are plain writes."
		f.Fix = "put a barrier of the block (__syncthreads()) after mbarrier.init and before mbarrier.inval"
	} else {
		f.Kind = detect.Unordered
		if a.Order.Atomic() != b.Order.Atomic() {
			f.Kind = detect.MixedAtomic
		}
		m := v.missing(x, events, e.A, e.B)
		if m.why == "" {
			m = v.missing(x, events, e.B, e.A)
		}
		if m.why == "" {
			m.cause = notAtomic(a, b)
			m.why = "the threads do not synchronise between them, and " + m.cause
			m.fix = "order them with a release and an acquire, a lock or a barrier; or make both atomic"
		} else if plain := a; f.Kind == detect.MixedAtomic {
			if a.Order.Atomic() {
				plain = b
			}
			m.fix += fmt.Sprintf("; or make the %s at line %d atomic", [...]string{"read", "write"}[plain.Kind], v.line(plain)) + v.cuda("cuda::atomic_ref")
		}
		f.Cause, f.Fix = m.cause, m.fix
		f.Why = "in the execution below neither happens before the other: " + m.why + "."
	}
}

// maxWaits is the number of waiting threads that are named.
const maxWaits = 3

// describeDeadlock describes an execution in which each thread that has not ended loops forever on final values.
func (v *verifier) describeDeadlock(f *Finding, e explore.Error, x explore.Execution, events []explore.Event) {
	f.Kind, f.Class = detect.Liveness, detect.Deadlock
	f.Title = "liveness: a spin that no fair execution leaves"
	f.Sides = []Side{v.stands(e.Thread, e.Pos, "waits in this loop")}
	var what []string
	told := map[int][]int32{} // by thread, the locations that it reads again and again
	lost := ""
	for _, wait := range explore.Waits(x) {
		r := &events[wait.Read]
		if of := told[r.Thread]; !slices.Contains(of, r.Loc) && (of != nil || len(told) < maxWaits) && len(of) < maxWaits {
			told[r.Thread] = append(of, r.Loc)
			by := "which no thread has written"
			if r.RF >= 0 {
				by = fmt.Sprintf("last written by thread %s at line %d", v.name(&events[r.RF]), v.line(&events[r.RF]))
			}
			if where := fmt.Sprintf("%s, %s", v.subject.location(r.Loc), by); of == nil {
				what = append(what, fmt.Sprintf("thread %s waits for %s", v.name(r), where))
			} else {
				what[len(what)-1] += ", or " + where
			}
		}
		if len(wait.Lost) == 0 || lost != "" {
			continue
		}
		w, last := &events[wait.Lost[0]], &events[r.RF]
		lost = fmt.Sprintf(" The write to %s by thread %s at line %d is lost: nothing orders the write by thread %s at line %d before it", v.subject.location(r.Loc), v.name(w), v.line(w), v.name(last), v.line(last))
		m := v.missing(x, events, r.RF, wait.Lost[0])
		if f.Fix = m.fix; m.why != "" {
			lost += " (" + m.why + ")"
		}
		lost += "."
		if f.Fix == "" {
			f.Fix = "order the two writes with a release and an acquire, a lock or a barrier"
		}
	}
	if what == nil {
		what = []string{"the loop reads no memory"}
	}
	for i := range events {
		if a := &events[i]; a.Kind == model.Arrival && a.Op.Kind == explore.Arrive && final(events, i) {
			at := "at the barrier"
			if a.Op.Exchanges {
				at = "for the other lanes"
			}
			what = append(what, fmt.Sprintf("thread %s waits %s at line %d", v.name(a), at, v.line(a)))
			break
		}
	}
	f.Why = "in the execution below no thread can go on: " + strings.Join(what, "; ") + "." + lost
}

// describeProxies describes a race of accesses by two proxies, or by two virtual addresses of one location.
func (v *verifier) describeProxies(f *Finding, a, b *explore.Event, ordered bool) {
	f.Kind = detect.MissingProxyFence
	var fences []string
	for _, e := range []*explore.Event{a, b} {
		if e.Proxy != model.Generic && !slices.Contains(fences, "fence.proxy."+e.Proxy.String()) {
			fences = append(fences, "fence.proxy."+e.Proxy.String())
		}
	}
	if fences == nil {
		fences = []string{"fence.proxy.alias"}
	}
	fence := strings.Join(fences, " and ")
	how := fmt.Sprintf("by the proxies %s and %s", a.Proxy, b.Proxy)
	switch {
	case a.Proxy == b.Proxy && a.Address == b.Address:
		how = fmt.Sprintf("by the proxy %s of two blocks", a.Proxy)
	case a.Proxy == b.Proxy:
		how = "by two virtual addresses"
	}
	f.Why = "both access one location, " + how + "; in the execution below "
	if ordered {
		f.Why += "one comes before the other, but no " + fence + " is between them."
	} else {
		f.Why += "neither comes before the other."
	}
	f.Fix = "order them, and put " + fence + " between them: in the block that uses that proxy"
	if fence == "fence.proxy.alias" {
		f.Fix = "order them, and put fence.proxy.alias between them"
	}
}

func (v *verifier) name(e *explore.Event) string {
	name, _, _ := v.subject.thread(e.Thread)
	return name
}

// missed is the reason why a read does not synchronise with the write it reads from: the cause in a few words, a
// sentence with the facts, and the fix.
type missed struct{ cause, why, fix string }

// notAtomic says which of two accesses are not atomic. At least one is not.
func notAtomic(a, b *explore.Event) string {
	switch {
	case a.Order.Atomic() || b.Order.Atomic():
		plain := a
		if a.Order.Atomic() {
			plain = b
		}
		what, _ := operation(plain)
		return "the " + strings.TrimSuffix(what, ", not atomic") + " is not atomic"
	case a.Kind == model.W && b.Kind == model.W:
		return "neither write is atomic"
	}
	return "neither access is atomic"
}

// missing looks for a read, ordered before b, of a write that is ordered after a, and says why the two do not
// synchronise. If they did, a would happen before b.
func (v *verifier) missing(x explore.Execution, events []explore.Event, a, b int) missed {
	for r := range events {
		read := &events[r]
		if read.Kind != model.R || read.RF < 0 || r != b && !x.Before(r, b) {
			continue
		}
		write := &events[read.RF]
		if write.Thread == read.Thread || read.RF != a && !x.Before(a, read.RF) || x.Before(read.RF, b) {
			continue
		}
		plain := !write.Order.Atomic() || !read.Order.Atomic()
		if plain && read.RF == a && r == b {
			continue // the race itself
		}
		if !write.Order.Atomic() && !read.Order.Atomic() && read.Loc == events[a].Loc {
			continue // accesses to the data, as in x += 1
		}
		need := model.Need(write.Place, read.Place)
		at := fmt.Sprintf("thread %s reads at line %d what thread %s writes at line %d, but ", v.name(read), v.line(read), v.name(write), v.line(write))
		const scope = "a scope is too small"
		switch {
		case write.Scope < need && write.Order.Atomic():
			return missed{scope, at + fmt.Sprintf("the scope %s of the write does not include the reader", write.Scope),
				fmt.Sprintf("give the write at line %d the scope %s", v.line(write), need)}
		case read.Scope < need && read.Order.Atomic():
			return missed{scope, at + fmt.Sprintf("the scope %s of the read does not include the writer", read.Scope),
				fmt.Sprintf("give the read at line %d the scope %s", v.line(read), need)}
		case plain:
			return missed{v.subject.location(read.Loc) + ", which should order the accesses, is not atomic", at + notAtomic(write, read) + ", and so they synchronise nothing", "make both atomic: a release and an acquire"}
		case !v.fenced(events, read.RF, true) && !write.Order.Releases():
			fix := fmt.Sprintf("make the write at line %d a release, or put a release fence before it", v.line(write)) + v.cuda("memory_order_release; __threadfence()")
			return missed{"a release is missing", at + "the write is no release" + v.fencedElsewhere(x, events, a, read.RF, r, b), fix}
		case !v.fenced(events, r, false) && !read.Order.Acquires():
			return missed{"an acquire is missing", at + "the read is no acquire", fmt.Sprintf("make the read at line %d an acquire, or put an acquire fence after it", v.line(read)) + v.cuda("memory_order_acquire; __threadfence()")}
		}
		if m := v.fences(x, events, a, read.RF, r, b); m.why != "" {
			m.why = at + m.why
			return m
		}
		return missed{scope, at + "the release and the acquire do not include each other in their scopes, or the access is outside of them",
			fmt.Sprintf("give fences and accesses on both sides the scope %s", need)}
	}
	return missed{}
}

// fencedElsewhere handles a write w that does not release a, where the thread of a has a fence after a, and a barrier
// leads from the fence to w. It explains that this fence does not help. It does help under the model PTX if it is an sc
// fence and another sc fence is between b and the read r, which reads from w. That model orders sc fences, and they
// synchronise in this order. Were the second fence before the first, r would precede w.
func (v *verifier) fencedElsewhere(x explore.Execution, events []explore.Event, a, w, r, b int) string {
	if a == w || events[a].Thread == events[w].Thread {
		return ""
	}
	need := model.Need(events[a].Place, events[r].Place)
	between := func(thread, from, to int) (fence int) {
		fence = -1
		for i := range events {
			if f := &events[i]; f.Kind == model.F && f.Proxy == model.Generic && f.Thread == thread && f.Scope >= need && x.Before(from, i) && x.Before(i, to) &&
				(fence < 0 || f.Order == model.SC) {
				fence = i
			}
		}
		return fence
	}
	first, second := between(events[a].Thread, a, w), between(events[r].Thread, r, b)
	if first < 0 || !events[first].Order.Releases() {
		return ""
	}
	text := fmt.Sprintf(" (the fence of thread %s at line %d is for what thread %s itself writes after it: no barrier makes it one of thread %s)",
		v.name(&events[first]), v.line(&events[first]), v.name(&events[first]), v.name(&events[w]))
	if v.options.Model != PTX && second >= 0 && events[first].Order == model.SC && events[second].Order == model.SC {
		text += ". The memory model of PTX has an order of sc fences" + v.cuda("__threadfence()") + " and no race of the two (--model ptx); scoped RC11, like C++, has the race"
	}
	return text
}

// fences says why the fences around a write w and the read r of it do not order a, which precedes w, before b: no fence
// is between them, or none with the required scope. A fence of another thread does not count, even with a barrier
// between it and w.
func (v *verifier) fences(x explore.Execution, events []explore.Event, a, w, r, b int) missed {
	need := model.Need(events[w].Place, events[r].Place)
	side := func(own int, orders func(model.Order) bool, before bool) (other, narrow int, wide bool) {
		other, narrow = -1, -1
		for i := range events {
			f := &events[i]
			if f.Kind != model.F || f.Thread != events[own].Thread || !orders(f.Order) || before != (f.Index < events[own].Index) {
				continue
			}
			between := before && x.Before(a, i) || !before && x.Before(i, b)
			switch {
			case !between:
				other = i
			case f.Scope < need:
				narrow = i
			default:
				wide = true
			}
		}
		return other, narrow, wide
	}
	tell := func(f, narrow, access, own int, place, kind string) missed {
		if narrow >= 0 {
			return missed{"a scope is too small", fmt.Sprintf("the scope %s of the fence at line %d does not include the other thread", events[narrow].Scope, v.line(&events[narrow])),
				fmt.Sprintf("give the fence at line %d the scope %s", v.line(&events[narrow]), need)}
		}
		at := fmt.Sprintf("line %d of thread %s", v.line(&events[access]), v.name(&events[access]))
		first, second := at, fmt.Sprintf("line %d", v.line(&events[own]))
		if own == r {
			first, second = second, first
		}
		return missed{"a fence is in the wrong place", fmt.Sprintf("the fence of thread %s at line %d does not come %s %s", v.name(&events[f]), v.line(&events[f]), place, at),
			fmt.Sprintf("put %s fence in thread %s between %s and %s", kind, v.name(&events[own]), first, second) + v.cuda("__threadfence()")}
	}
	if !events[w].Order.Releases() {
		if other, narrow, wide := side(w, model.Order.Releases, true); !wide {
			if a == w {
				return missed{"a release is missing", "the write is no release, and the fence before it releases only what comes before the fence",
					fmt.Sprintf("make the write at line %d a release", v.line(&events[w])) + v.cuda("memory_order_release")}
			}
			m := tell(other, narrow, a, w, "after", "a release")
			if elsewhere := v.fencedElsewhere(x, events, a, w, r, b); narrow < 0 && elsewhere != "" {
				m.why += elsewhere
				m.fix = fmt.Sprintf("put a release fence in thread %s between the barrier and line %d", v.name(&events[w]), v.line(&events[w])) + v.cuda("__threadfence()")
			}
			return m
		}
	}
	if !events[r].Order.Acquires() {
		if other, narrow, wide := side(r, model.Order.Acquires, false); !wide {
			if b == r {
				return missed{"an acquire is missing", "the read is no acquire, and the fence after it orders only what comes after the fence",
					fmt.Sprintf("make the read at line %d an acquire", v.line(&events[r])) + v.cuda("memory_order_acquire")}
			}
			return tell(other, narrow, b, r, "before", "an acquire")
		}
	}
	return missed{}
}

// cuda returns, in parentheses, the CUDA C++ form of the fix. It returns "" for a litmus test.
func (v *verifier) cuda(text string) string {
	if v.test != nil {
		return ""
	}
	return " (" + text + ")"
}

func (v *verifier) line(e *explore.Event) int {
	_, line, _ := place(v.subject.frames(e.Op.Pos))
	return line
}

// fenced reports whether a release fence precedes event e in its thread (before), or an acquire fence follows it.
func (v *verifier) fenced(events []explore.Event, e int, before bool) bool {
	for i := range events {
		f := &events[i]
		if f.Kind != model.F || f.Thread != events[e].Thread {
			continue
		}
		if before && f.Index < events[e].Index && f.Order.Releases() || !before && f.Index > events[e].Index && f.Order.Acquires() {
			return true
		}
	}
	return false
}

// report converts the finding to the form in which all commands report.
func (f *Finding) report() report.Finding {
	severity := detect.Error
	if f.Warning {
		severity = detect.Warning
	}
	out := report.Finding{Class: f.Class, Kind: f.Kind, Severity: severity, Detector: "verify", Count: f.Count, Message: f.Why,
		Fix: f.Fix, Graph: f.Graph, Schedule: f.ScheduleFile, Drawing: f.DrawingFile, NoSync: true}
	for _, s := range f.Sides {
		if len(s.frames) == 1 && s.frames[0].Function == "" {
			s.frames[0].Function = s.Thread // of a litmus test
		}
		out.Accesses = append(out.Accesses, report.Access{Op: s.op, Object: report.Object{Name: s.variable, Named: true},
			Block: s.block, Thread: s.in, Frames: s.frames})
	}
	return out
}
