package verify

import (
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

const (
	maxColumns = 4  // threads that are drawn side by side
	maxDrawn   = 40 // events; of more only those of the threads that matter are drawn
)

// draw writes an execution: a line for each event, in an order that extends program order, with a column for each thread. Behind
// the event stands where the value that it reads was written. For a race, only what the two accesses depend on is drawn. It is empty if there is nothing.
func (v *verifier) draw(x explore.Execution, events []explore.Event, e explore.Error) string {
	shown, left := v.shown(x, events, e)
	columns := map[int]int{}
	var threads []int
	for i := range events {
		if _, ok := columns[events[i].Thread]; shown[i] && !ok {
			columns[events[i].Thread] = len(threads)
			threads = append(threads, events[i].Thread)
		}
	}
	numbers, n := make([]int, len(events)), 0
	for i := range events {
		if shown[i] {
			n++
			numbers[i] = n
		}
	}
	if n == 0 {
		return ""
	}
	texts, widths := make([]string, len(events)), make([]int, len(threads))
	for c, t := range threads {
		widths[c] = len(v.heading(t))
	}
	for i := range events {
		if shown[i] {
			texts[i] = v.eventText(&events[i], numbers)
			c := columns[events[i].Thread]
			widths[c] = max(widths[c], len(texts[i]))
		}
	}
	var b strings.Builder
	side := len(threads) <= maxColumns
	if side {
		b.WriteString("        ")
		for c, t := range threads {
			fmt.Fprintf(&b, "%-*s", widths[c]+3, v.heading(t))
		}
		trim(&b)
	}
	for i := range events {
		if !shown[i] {
			continue
		}
		sign := " "
		if i == e.A || i == e.B {
			sign = ">"
		}
		fmt.Fprintf(&b, "  %s%3d  ", sign, numbers[i])
		if side {
			for c := range columns[events[i].Thread] {
				b.WriteString(strings.Repeat(" ", widths[c]+3))
			}
		} else {
			fmt.Fprintf(&b, "%-22s ", v.heading(events[i].Thread))
		}
		b.WriteString(texts[i])
		trim(&b)
	}
	if left > 0 {
		fmt.Fprintf(&b, "        (%s)\n", leftOut(left, e))
	}
	return b.String()
}

// shown says which events are drawn, and how many are left out of a long execution.
func (v *verifier) shown(x explore.Execution, events []explore.Event, e explore.Error) (shown []bool, left int) {
	shown = make([]bool, len(events))
	for i := range events {
		shown[i] = e.A < 0 || e.B < 0 || i == e.A || i == e.B || x.Prefix(i, e.A) || x.Prefix(i, e.B)
	}
	if e.Kind == explore.Deadlock {
		left = turns(shown, x, events)
	}
	return shown, left + v.thin(shown, events, e)
}

// leftOut says what is left out of the drawing of an error.
func leftOut(left int, e explore.Error) string {
	of := "of other threads"
	if e.Kind == explore.Deadlock {
		of += " or earlier iterations of loops"
	}
	return count(left, "event") + " " + of + " left out"
}

// turns leaves out what threads that go round a loop for ever have done before their last turn, as far as it was the same. It gives how many events
// these are.
func turns(shown []bool, x explore.Execution, events []explore.Event) (left int) {
	of := map[int][]int{} // by thread
	for i := range events {
		of[events[i].Thread] = append(of[events[i].Thread], i)
	}
	for t, es := range of {
		if x.Next(t).Kind != explore.Bound {
			continue
		}
		same := func(i, turn int) bool { // as in the turn after it
			a, b := &events[es[i]], &events[es[i+turn]]
			return a.Kind == b.Kind && a.Loc == b.Loc && a.Value == b.Value && a.Op.Pos == b.Op.Pos
		}
		for turn := 1; 2*turn <= len(es); turn++ {
			i := len(es) - turn - 1
			for i >= 0 && same(i, turn) {
				i--
			}
			if i >= len(es)-2*turn { // not all of the turn before
				continue
			}
			for _, e := range es[i+1 : len(es)-turn] {
				shown[e] = false
				left++
			}
			break
		}
	}
	return left
}

// thin leaves out events of a long execution: it keeps those of the threads of e and the writes that they read from. It gives how
// many it leaves out.
func (v *verifier) thin(shown []bool, events []explore.Event, e explore.Error) int {
	n := 0
	for _, s := range shown {
		if s {
			n++
		}
	}
	if n <= maxDrawn || e.Thread < 0 {
		return 0
	}
	threads := map[int]bool{e.Thread: true, e.Other: true}
	for _, i := range []int{e.A, e.B} {
		if i >= 0 {
			threads[events[i].Thread] = true
		}
	}
	keep := make([]bool, len(events))
	for i := range events {
		if threads[events[i].Thread] {
			keep[i] = true
			if events[i].Kind == model.R && events[i].RF >= 0 {
				keep[events[i].RF] = true
			}
		}
	}
	left := 0
	for i := range shown {
		if shown[i] && !keep[i] {
			shown[i] = false
			left++
		}
	}
	return left
}

// trim ends a line without white space before its end.
func trim(b *strings.Builder) {
	s := strings.TrimRight(b.String(), " ")
	b.Reset()
	b.WriteString(s + "\n")
}

func (v *verifier) heading(thread int) string {
	name, of, place := v.subject.thread(thread)
	s := fmt.Sprintf("%s (%s", name, of)
	if place.GPU > 0 {
		s += fmt.Sprintf(", gpu %d", place.GPU)
	}
	return s + ")"
}

// eventText is an event in the notation of the paper: "R x=1 acq gpu <- 3" reads what event 3 wrote.
func (v *verifier) eventText(e *explore.Event, numbers []int) string {
	s := ""
	switch e.Kind {
	case model.R, model.W:
		s = fmt.Sprintf("%s %s=%s %s", [...]string{"R", "W"}[e.Kind], v.subject.location(e.Loc), v.subject.value(e.Loc, e.Value), e.Order)
		if e.Proxy != model.Generic {
			s += " by " + e.Proxy.String()
		}
	case model.F:
		if e.Proxy != model.Generic {
			return "F of the proxy " + e.Proxy.String()
		}
		s = "F " + e.Order.String()
	case model.Arrival, model.Leave:
		barrier := fmt.Sprintf("barrier %d", e.Loc)
		if e.Op.Lanes != 0 {
			barrier = fmt.Sprintf("the barrier of lanes %#x", e.Op.Lanes)
		}
		if e.Op.Exchanges {
			if barrier = fmt.Sprintf("the exchange of lanes %#x", e.Op.Lanes); e.Op.Converges {
				barrier = "the active lanes"
			}
		}
		return map[model.Kind]string{model.Arrival: "arrives at ", model.Leave: "leaves "}[e.Kind] + barrier
	}
	if e.Order.Atomic() {
		s += " " + e.Scope.String()
	}
	if e.Kind == model.R {
		from := "initial value"
		if e.RF >= 0 {
			from = "left out"
			if numbers == nil {
				return s
			}
			if n := numbers[e.RF]; n > 0 {
				from = fmt.Sprint(n)
			}
		}
		s += " <- " + from
	}
	return s
}
