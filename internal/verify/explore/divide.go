package explore

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// partGraphs is the number of graphs that a part visits, in some 20 ms, before its remainder is divided.
const partGraphs = 1 << 15

// A Search explores a tree: the nodes that follow from a node extend its execution.
type Search interface {
	// Explore explores what follows from a node, nil for the root, which is the given share of the whole search. It
	// visits the given number of graphs, and then calls divide with each node that it would visit next, and with its
	// share. If the number is negative, it visits all.
	Explore(ctx context.Context, o *Options, node any, share float64, graphs int, divide func(node any, share float64))
	// Report sets the options from now on. It returns what has been explored since the last call, and the share of it.
	Report(o *Options) (Result, float64)
}

// Part is a part of a search. All parts in order are the search.
type Part struct {
	// Path identifies the part: the index at each level of the division, from the root on. It is the same in each
	// search of the program.
	Path    []int32
	Options *Options // nil if nothing has been reported to them
	Result  Result

	node    any  // with which the part begins
	pending bool // it has not been explored
	share   float64
	taken   bool
	next    *Part
}

// Division is a search that is made in parts. Its functions are called by one goroutine at a time.
type Division struct {
	Search func() Search // makes a search of the program; with more than one job, several of them explore concurrently
	Jobs   int           // number of parts explored at a time, each by a search of its own
	Graphs int           // number of graphs that a part visits; 0 for the default
	From   []int32       // the Path of the first part that an earlier search has not explored; nil for all
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
	w := &workers{Division: d, cancel: cancel, first: &Part{pending: true, share: 1}}
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
	idle    []Search
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
	for p != nil && (p.taken || !p.pending) {
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
	for !w.stopped && w.first != nil && !w.first.pending {
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

// search returns a search that is idle, or a new one.
func (w *workers) search() Search {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.idle); n > 0 {
		s := w.idle[n-1]
		w.idle = w.idle[:n-1]
		return s
	}
	return w.Search()
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
	s := &divider{workers: w, of: p.Path, search: w.search()}
	graphs := w.Graphs
	if graphs == 0 {
		graphs = partGraphs
	}
	s.search.Explore(ctx, s.begin(), p.node, p.share, graphs, func(node any, share float64) {
		s.end()
		s.add(&Part{node: node, pending: true, share: share})
	})
	s.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spare = append(w.spare, s.own)
	w.idle = append(w.idle, s.search)
	if !above {
		return s.all
	}
	// The parts before From have been explored.
	if first := int(w.From[n]); first >= 0 && first < len(s.all) && (n+1 == len(w.From) || s.all[first].pending) {
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
	of     []int32
	all    []*Part
	search Search
	own    *Options // to which the search reports
	told   bool     // it has reported something
}

// begin begins a stretch that may become a part, and returns its options.
func (s *divider) begin() *Options {
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
	return &o
}

// end ends the stretch, and begins the next one.
func (s *divider) end() {
	own, told := s.own, s.told
	if told {
		s.own = nil
	}
	p := &Part{}
	p.Result, p.share = s.search.Report(s.begin())
	if told {
		p.Options = own
	}
	n := len(s.all)
	switch {
	case n > 0 && s.all[n-1].Result.Stopped: // nothing comes after
	case n > 0 && p.Options == nil && p.Result == (Result{}):
		s.all[n-1].share += p.share
	default:
		s.add(p)
	}
}

func (s *divider) add(p *Part) {
	p.Path = append(slices.Clone(s.of), int32(len(s.all)))
	s.all = append(s.all, p)
}
