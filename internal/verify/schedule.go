package verify

import (
	"container/heap"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// Schedule is an interleaving of the operations of a launch: each read sees the last write before it.
type Schedule struct {
	Kernel      string // linker name
	Grid, Block event.Dim3
	Turns       []Turn
}

// Turn is one operation of one thread.
type Turn struct {
	Block, Thread uint64 // numbers
	Kind          engine.RequestKind
	Frames        []event.Frame // of the instruction; nil if it does not matter
	What          string
}

// maxScheduled is the greatest number of executions with one error that are tried for a schedule.
const maxScheduled = 1000

// schedule returns the execution of an error as an interleaving, and nil if it is not one.
func (v *verifier) schedule(x explore.Execution, e explore.Error) *Schedule {
	k, ok := v.subject.(kernelLaunch)
	if !ok {
		return nil
	}
	events := x.Events()
	all := make([]bool, len(events))
	for i := range all {
		all[i] = true
	}
	if s := v.interleave(k, x, events, e, all); s != nil || e.A < 0 || e.B < 0 {
		return s
	}
	// In a race, operations on which neither access depends may be left out.
	for i := range all {
		all[i] = i == e.A || i == e.B || x.Prefix(i, e.A) || x.Prefix(i, e.B)
	}
	for i := range events {
		if r := i - 1; events[i].RMW && events[i].Kind == model.W && r >= 0 && all[r] { // an update is one operation
			all[i] = true
		}
	}
	return v.interleave(k, x, events, e, all)
}

// order is a graph of operations. Each is one event, or several that one instruction makes at once.
type order struct {
	node  []int // by event; -1 for none
	next  map[int][]int
	in    map[int]int
	ready nodes
}

// nodes is a heap, the smallest first.
type nodes []int

func (n nodes) Len() int           { return len(n) }
func (n nodes) Less(i, j int) bool { return n[i] < n[j] }
func (n nodes) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *nodes) Push(x any)        { *n = append(*n, x.(int)) }
func (n *nodes) Pop() any {
	last := (*n)[len(*n)-1]
	*n = (*n)[:len(*n)-1]
	return last
}

// edge records that event a precedes event b.
func (o *order) edge(a, b int) {
	if from, to := o.node[a], o.node[b]; from >= 0 && to >= 0 && from != to {
		o.next[from] = append(o.next[from], to)
		o.in[to]++
	}
}

// interleave orders the shown events by po, rf, co, fr and the barriers. Each node has the number of its first event.
func (v *verifier) interleave(k kernelLaunch, x explore.Execution, events []explore.Event, e explore.Error, shown []bool) *Schedule {
	o := &order{node: make([]int, len(events)), next: map[int][]int{}, in: map[int]int{}}
	last := map[int]int{}     // by thread: its last event
	pieces := map[int][]int{} // by node of a vector access: its events
	open := map[int]int{}     // by thread: the number of elements its current vector access lacks
	for i := range events {
		ev := &events[i]
		if o.node[i] = -1; !shown[i] {
			continue
		}
		o.node[i] = i
		prev, ok := last[ev.Thread]
		switch access := ev.Kind == model.R || ev.Kind == model.W; {
		case access && ev.RMW && ev.Kind == model.W, access && open[ev.Thread] > 0:
			o.node[i] = o.node[prev]
		}
		if ev.Kind == model.R || ev.Kind == model.W && !ev.RMW {
			if open[ev.Thread] == 0 {
				open[ev.Thread] = k.Pieces(&ev.Op)
			}
			open[ev.Thread]--
			pieces[o.node[i]] = append(pieces[o.node[i]], i)
		}
		if ok {
			o.edge(prev, i)
		}
		last[ev.Thread] = i
	}
	v.communicate(o, x, events, shown)
	for u := range events {
		up := &events[u]
		if up.Kind != model.R || up.RMW || up.Op.Kind != explore.Update || !shown[u] {
			continue
		}
		if written, writes := v.subject.Apply(&up.Op, up.Value); writes && written != up.Value {
			// The write of the update has not been added yet: no later read may read the value that the update has
			// read.
			for i := range events {
				if ev := &events[i]; i != u && ev.Kind == model.R && ev.Loc == up.Loc && ev.RF == up.RF {
					o.edge(i, u)
				}
			}
		}
	}
	for t, missing := range open {
		// A vector store with missing elements goes last.
		if n := o.node[last[t]]; missing > 0 && events[n].Kind == model.W {
			for i := range events {
				o.edge(i, n)
			}
		}
	}
	return v.turns(k, x, events, e, o, last)
}

// communicate adds the edges between events of different threads.
func (v *verifier) communicate(o *order, x explore.Execution, events []explore.Event, shown []bool) {
	locs := map[int32]bool{}
	for i := range events {
		if ev := &events[i]; ev.Kind == model.R || ev.Kind == model.W {
			locs[ev.Loc] = true
		}
	}
	follows := make([]int, len(events)) // the next write in coherence order, -1 for none
	first := map[int32]int{}
	for loc := range locs {
		var co []int
		placed := map[int]bool{}
		for _, w := range x.Coherence(loc) {
			if placed[int(w)] = true; shown[w] {
				co = append(co, int(w))
			}
		}
		for i := range events { // a write that is being added has no place yet: it comes last
			if ev := &events[i]; ev.Kind == model.W && ev.Loc == loc && shown[i] && !placed[i] {
				co = append(co, i)
			}
		}
		first[loc] = -1
		for n, w := range co {
			if follows[w] = -1; n == 0 {
				first[loc] = w
			} else {
				o.edge(co[n-1], w)
				follows[co[n-1]] = w
			}
		}
	}
	arrived := map[int]int{} // by thread: its last arrival
	for i := range events {
		if !shown[i] {
			continue
		}
		switch ev := &events[i]; ev.Kind {
		case model.R:
			w := first[ev.Loc]
			if ev.RF >= 0 {
				o.edge(ev.RF, i)
				w = follows[ev.RF]
			}
			if w >= 0 {
				o.edge(i, w)
			}
		case model.Arrival:
			arrived[ev.Thread] = i
		case model.Leave:
			for _, a := range x.Arrivals(arrived[ev.Thread]) {
				o.edge(int(a), i)
			}
		}
	}
}

// kinds maps the operations of steps to requests.
var kinds = map[explore.OpKind]engine.RequestKind{explore.Read: engine.RequestLoad, explore.Write: engine.RequestStore, explore.Update: engine.RequestAtomic,
	explore.Fence: engine.RequestFence, explore.Arrive: engine.RequestBarrier, explore.Signal: engine.RequestArrive, explore.End: engine.RequestExit,
	explore.Fail: engine.RequestFault}

// turns makes the operations of an order. It returns nil if the order has a cycle.
func (v *verifier) turns(k kernelLaunch, x explore.Execution, events []explore.Event, e explore.Error, o *order, last map[int]int) *Schedule {
	s := &Schedule{Kernel: k.Launch.Kernel, Grid: k.Launch.Grid, Block: k.Launch.Block}
	block := k.Launch.Block.Count()
	turn := func(thread int, op *explore.Op, what string) {
		t := Turn{Block: uint64(thread) / block, Thread: uint64(thread) % block, Kind: kinds[op.Kind], What: what}
		if op.Kind != explore.End && op.Kind != explore.Fail {
			t.Frames = v.subject.frames(op.Pos)
		}
		s.Turns = append(s.Turns, t)
	}
	// Barriers do not wait for threads that have exited. Threads exit as soon as they can.
	exit := func(thread int) {
		if next := x.Next(thread); next.Kind == explore.End {
			turn(thread, next, "")
		}
	}
	for t := range k.Threads() {
		if _, ok := last[t]; !ok && !ran(events, t) {
			exit(t)
		}
	}
	total := 0
	for i, n := range o.node {
		if n == i {
			total++
			if o.in[i] == 0 {
				heap.Push(&o.ready, i)
			}
		}
	}
	for len(o.ready) > 0 {
		n := heap.Pop(&o.ready).(int)
		total--
		ev := &events[n]
		if ev.Kind != model.Leave {
			turn(ev.Thread, &ev.Op, v.eventText(ev, nil))
		}
		if l := last[ev.Thread]; o.node[l] == n && final(events, l) {
			exit(ev.Thread)
		}
		for _, to := range o.next[n] {
			if o.in[to]--; o.in[to] == 0 {
				heap.Push(&o.ready, to)
			}
		}
	}
	if total > 0 {
		return nil
	}
	if e.Kind == explore.AssertionFailed {
		turn(e.Thread, x.Next(e.Thread), "")
	}
	return s
}

// ran reports whether a thread has an event.
func ran(events []explore.Event, thread int) bool {
	for i := range events {
		if events[i].Thread == thread {
			return true
		}
	}
	return false
}

// final reports whether event i is the last of its thread.
func final(events []explore.Event, i int) bool {
	for k := i + 1; k < len(events); k++ {
		if events[k].Thread == events[i].Thread {
			return false
		}
	}
	return true
}
