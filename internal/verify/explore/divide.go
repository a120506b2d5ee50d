package explore

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// partGraphs is the number of graphs that a part visits, in some 20 ms, before its remainder is divided.
const partGraphs = 1 << 15

// Part is a part of a search. All parts in order are the search.
type Part struct {
	// Path identifies the part: the index at each level of the division, from the root on. It is the same in each
	// search of the program.
	Path    []int32
	Options *Options // nil if nothing has been reported to them
	Result  Result

	g     *graph // the graph that the part extends; nil if it has been explored
	share float64
	taken bool
	next  *Part
}

// Division is a search that is made in parts. Its functions are called by one goroutine at a time.
type Division struct {
	Program Program
	Jobs    int     // number of parts explored at a time; with more than one, the functions of Program are called concurrently
	Graphs  int     // number of graphs that a part visits; 0 for the default
	From    []int32 // the Path of the first part that an earlier search has not explored; nil for all
	// Begin returns the options of a part. The functions of one part are called by one goroutine at a time, those of
	// several parts concurrently.
	Begin func() *Options
	// Done is called for the parts in order, with the path of the next part, or nil after the last. It reports whether
	// the search goes on.
	Done func(p *Part, next []int32) bool
	// Progress is as in Options, for the whole search.
	Progress func(executions int, done float64)
}

// Explore makes the search. The parts and their order are the same for every number of jobs. It returns an error if
// there is no part From.
func (d *Division) Explore(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := d.Begin()
	g := newGraph(newShape(d.Program, options))
	w := &workers{Division: d, cancel: cancel, spare: []*Options{options}, first: &Part{g: g, share: 1}}
	w.changed.L = &w.mu
	var running sync.WaitGroup
	for range max(d.Jobs, 1) {
		running.Go(func() { w.work(ctx) })
	}
	running.Wait()
	return w.err
}

// workers explore the parts of a search.
type workers struct {
	*Division
	cancel context.CancelFunc

	mu      sync.Mutex
	changed sync.Cond
	first   *Part // the first part for which Done has not been called
	running int   // number of parts that are being explored
	stopped bool
	spare   []*Options // options to which nothing has been reported
	pools   [][]*graph // of explorers that have ended
	err     error

	executions int
	share      float64
}

func (w *workers) work(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.stopped {
		p := w.take()
		if p == nil {
			if w.running == 0 {
				break
			}
			w.changed.Wait()
			continue
		}
		w.running++
		w.mu.Unlock()
		into := w.explore(ctx, p)
		w.mu.Lock()
		w.running--
		w.replace(p, into)
		w.tell()
		w.changed.Broadcast()
	}
	w.changed.Broadcast()
}

// take returns the first part that no worker has taken.
func (w *workers) take() *Part {
	p := w.first
	for p != nil && (p.taken || p.g == nil) {
		p = p.next
	}
	if p != nil {
		p.taken = true
	}
	return p
}

// replace replaces a part by the parts that it became.
func (w *workers) replace(p *Part, into []*Part) {
	rest := p.next
	*p = *into[0]
	for _, q := range into[1:] {
		p.next = q
		p = q
	}
	p.next = rest
}

// tell calls Done.
func (w *workers) tell() {
	for !w.stopped && w.first != nil && w.first.g == nil {
		p := w.first
		w.first = p.next
		var next []int32
		if w.first != nil {
			next = w.first.Path
		}
		w.executions, w.share = w.executions+p.Result.Executions, w.share+p.share
		if !w.Done(p, next) {
			w.stopped = true
			w.cancel()
		}
	}
	if w.Progress != nil {
		w.Progress(w.executions, w.share)
	}
}

// pool returns the graphs that an earlier explorer has cut, for reuse.
func (w *workers) pool() (pool []*graph) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.pools); n > 0 {
		pool, w.pools = w.pools[n-1], w.pools[:n-1]
	}
	return pool
}

func (w *workers) begin() *Options {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.spare); n > 0 {
		o := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return o
	}
	return w.Begin()
}

// explore explores a part until it has visited the given number of graphs. The graphs that it would visit next become
// parts. In order between them are parts with its own findings.
func (w *workers) explore(ctx context.Context, p *Part) []*Part {
	n := len(p.Path)
	above := n < len(w.From) && slices.Equal(p.Path, w.From[:n])
	unexplored := []*Part{{Path: p.Path, Result: Result{Stopped: true}}}
	if above {
		unexplored[0].Path = w.From
	}
	if ctx.Err() != nil {
		return unexplored
	}
	s := &divider{workers: w, of: p.Path, x: &explorer{g: p.g, ctx: ctx, part: p.share, left: w.Graphs, pool: w.pool()}}
	if s.x.left == 0 {
		s.x.left = partGraphs
	}
	s.begin()
	s.x.divide = func() {
		s.end()
		s.add(&Part{g: s.x.g.clone(), share: s.x.part})
		s.begin()
	}
	if len(p.Path) == 0 {
		s.x.begin()
	} else {
		s.x.init()
	}
	s.x.visit()
	s.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spare = append(w.spare, s.own)
	w.pools = append(w.pools, s.x.pool)
	if !above {
		return s.all
	}
	// The parts before From have been explored.
	if first := int(w.From[n]); first >= 0 && first < len(s.all) && (n+1 == len(w.From) || s.all[first].g != nil) {
		return s.all[first:]
	}
	if ctx.Err() == nil {
		w.err = fmt.Errorf("the search has no part %v", w.From)
	}
	return unexplored
}

// divider explores and divides a part.
type divider struct {
	*workers
	of   []int32
	all  []*Part
	x    *explorer
	own  *Options // to which x reports
	told bool     // x has reported something
}

// begin begins a stretch that may become a part.
func (s *divider) begin() {
	if s.own == nil {
		s.own, s.told = s.workers.begin(), false
	}
	o := *s.own
	if found := o.Found; found != nil {
		o.Found = func(e Error, x Execution) bool { s.told = true; return found(e, x) }
	}
	if leaf := o.Leaf; leaf != nil {
		o.Leaf = func(x Execution, end Ending) { s.told = true; leaf(x, end) }
	}
	s.x.Options = &o
}

// end ends the stretch.
func (s *divider) end() {
	p := &Part{Result: s.x.result, share: s.x.done}
	if s.told {
		p.Options, s.own, s.told = s.own, nil, false
	}
	s.x.result, s.x.done = Result{Stopped: p.Result.Stopped}, 0
	n := len(s.all)
	switch {
	case n > 0 && s.all[n-1].Result.Stopped: // nothing comes after
	case n > 0 && p.Options == nil && p.Result == (Result{}):
		s.all[n-1].share += p.share
	default:
		s.add(p)
	}
	if s.own == nil {
		s.own = s.workers.begin()
	}
}

func (s *divider) add(p *Part) {
	p.Path = append(slices.Clone(s.of), int32(len(s.all)))
	s.all = append(s.all, p)
}

// clone copies the graph.
func (g *graph) clone() *graph {
	n := len(g.events)
	c := *g
	c.events = slices.Clone(g.events)
	c.hb, c.prefix = slices.Clone(g.hb[:n*len(g.threads)]), slices.Clone(g.prefix[:n*len(g.threads)])
	c.over = slices.Clone(g.over)
	c.states = slices.Clone(g.states[:n*g.words])
	c.threads = slices.Clone(g.threads)
	for t := range c.threads {
		c.threads[t].events = slices.Clone(c.threads[t].events)
	}
	c.locs = nil
	for _, l := range g.locs {
		c.locs = append(c.locs, &location{slices.Clone(l.co), slices.Clone(l.reads), l.weak})
	}
	c.barriers = slices.Clone(g.barriers)
	for i, b := range c.barriers {
		c.barriers[i].arrivals = slices.Clone(b.arrivals)
		for j, a := range b.arrivals {
			c.barriers[i].arrivals[j] = slices.Clone(a)
		}
	}
	return &c
}
