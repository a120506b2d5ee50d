// Package explore visits every execution of a small concurrent program under scoped RC11 once: the stateless search of seed 004
// (algorithms 1 to 3 and appendix .1), which is the TruSt algorithm with scopes.
//
// The search grows one execution graph, an event at a time. A read tries each write that it may read from; a write tries each
// place in coherence order, and then each earlier read that it could have served (a revisit): the events that the write does
// not depend on are cut, and the read reads from the write. A revisit is made from exactly one of the graphs that it could be
// made from, the one whose cut events are all maximal. So no execution is reached twice, and what is kept is one graph for each
// revisit that is being explored.
//
// The package knows no language: a program is asked for the next step of a thread and is resumed with a value.
package explore

import "fencepost.dev/fencepost/internal/verify/model"

// OpKind is the kind of a step.
type OpKind uint8

// The kinds of steps.
const (
	End     OpKind = iota // the thread has ended
	Fail                  // an assertion of the thread has failed; the thread has ended
	Await                 // the thread spins: the last Value steps are an iteration of a loop that changed nothing
	Assumed               // the thread has assumed what does not hold; the execution does not count
	Bound                 // a loop has reached its bound, and the thread stops there
	Read                  // resumed with the value read
	Write                 // resumed with 0
	Update                // a read-modify-write, resumed with the value read
	Fence                 // resumed with 0
	Arrive                // at a barrier of the CTA; resumed with 0 once all threads of the CTA have arrived
	Signal                // as Arrive, but without waiting for the others
	Refused               // the program cannot say what the thread does next: the search ends
	depart                // what the search does next for a thread that has arrived
)

// Function is what an Update computes of the old value and its operand.
type Function uint8

// The functions of updates.
const (
	Exchange Function = iota
	Add
	And
	Or
	Xor
	Min
	Max
	Sub
	Inc         // 0 if the old value is Value or more, as in PTX
	Dec         // Value if the old value is 0 or more than Value, as in PTX
	CompareSwap // writes Value if the old value is Expected; otherwise it is a read
)

// Op is a step of a thread.
type Op struct {
	Kind     OpKind
	Order    model.Order
	Scope    model.Scope
	Function Function
	// Aligned says that all threads must arrive by the same step.
	Aligned bool
	// Volatile says that the access, which counts as atomic here, is volatile: the language that the program is written in does
	// not call it atomic.
	Volatile bool
	// Loops says that the thread may Await after this step. It has an effect on the order of the search alone.
	Loops bool
	// Vain says of an Assumed that the thread might have done without its last iteration, which has changed nothing: the execution
	// without it is another one.
	Vain bool
	// Inserted says that the step is none of the program, and does not count for an Await.
	Inserted bool
	// Proxy is that of an access, or of a fence that is a proxy fence; Address numbers the virtual address of an access; Reduction
	// is an update whose old value nobody takes; and Deps are the reads of the thread, by number, that the step depends on. They
	// matter to the model PTX alone.
	Proxy     model.Proxy
	Reduction bool
	Address   int32
	Deps      uint64
	// Control are those of Deps that all later steps of the thread depend on too.
	Control uint64
	// Lanes are, if not 0, the threads that a barrier is of, as bits: of 32 threads of the CTA, that of the step among them. 0 are
	// all threads of the CTA.
	Lanes uint32
	// Reduces says that a barrier gives each thread the Function of the Values of all that arrive, which are 0 or 1.
	Reduces bool
	// Exchanges says that a barrier orders nothing, and gives each thread what the Exchanger says.
	Exchanges bool
	// Converges says that the exchange is of threads that happen to be at the place Value together, of the 32: see converge.go.
	Converges bool
	Loc       int32 // the location, or the number of the barrier
	Pos       int32 // a place in the source, which the search hands on
	Value     int64 // what is written, the operand of an update, or see Await
	Expected  int64
}

// Awaits says that the thread spins, and that the iteration has steps: if it has none, the thread never goes on, whatever it has read before.
func (op *Op) Awaits() bool { return op.Kind == Await && op.Value > 0 }

// Apply is the value that the functions above write, and whether they write. A Program whose values are 64-bit integers returns it.
func (op *Op) Apply(old int64) (int64, bool) {
	switch op.Function {
	case Add:
		return old + op.Value, true
	case And:
		return old & op.Value, true
	case Or:
		return old | op.Value, true
	case Xor:
		return old ^ op.Value, true
	case Min:
		return min(old, op.Value), true
	case Max:
		return max(old, op.Value), true
	case Sub:
		return old - op.Value, true
	case Inc:
		if uint64(old) >= uint64(op.Value) {
			return 0, true
		}
		return old + 1, true
	case Dec:
		if old == 0 || uint64(old) > uint64(op.Value) {
			return op.Value, true
		}
		return old - 1, true
	case CompareSwap:
		return op.Value, old == op.Expected
	}
	return op.Value, true
}

// Reduce is what a barrier gives of the values that the threads arrive with.
func (op *Op) Reduce(values []int64) int64 {
	if !op.Reduces || len(values) == 0 {
		return 0
	}
	sum := int64(0)
	for _, v := range values {
		sum += v
	}
	switch op.Function {
	case And:
		return truth(sum == int64(len(values)))
	case Or:
		return truth(sum > 0)
	}
	return sum
}

// Reductions are the values that a barrier of at most n threads may give.
func (op *Op) Reductions(n int) []int64 {
	switch {
	case !op.Reduces:
		return []int64{0}
	case op.Function == Add:
		out := make([]int64, n+1)
		for i := range out {
			out[i] = int64(i)
		}
		return out
	}
	return []int64{0, 1}
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Groups says which threads a barrier is of.
type Groups struct {
	Places []model.Place
	index  []int // of a thread in its CTA
}

// NewGroups numbers the threads of each CTA.
func NewGroups(places []model.Place) Groups {
	g := Groups{Places: places}
	counts := map[int32]int{}
	for _, p := range places {
		g.index = append(g.index, counts[p.CTA])
		counts[p.CTA]++
	}
	return g
}

// Same says that a barrier of thread t is of thread o too.
func (g *Groups) Same(t, o int, op *Op) bool {
	if g.Places[t].CTA != g.Places[o].CTA {
		return false
	}
	return op.Lanes == 0 || g.index[t]/32 == g.index[o]/32 && op.Lanes>>(g.index[o]%32)&1 != 0
}

// Exchanger is a program with steps that exchange values. It gives what the thread at step op gets if all arrive, that thread among them;
// ok says that it is defined.
type Exchanger interface {
	Exchange(op *Op, all []*Op) (value int64, ok bool)
}

// OneProxy says that all accesses of p are by the generic proxy and one virtual address for each location. It is false where p does not tell.
func OneProxy(p Program) bool {
	of, ok := p.(interface{ OneProxy() bool })
	return ok && of.OneProxy()
}

// Program is a program to explore. Threads are deterministic but for the values that they read: the state of a thread and the
// value it is resumed with determine what it does next.
type Program interface {
	// Places says where each thread stands. Threads with equal CTA share its barriers.
	Places() []model.Place
	// Initial is the value of a location before any thread runs. Locations are numbered from 0. Which there are is known when a
	// step names them.
	Initial(loc int32) int64
	// Apply is the value that an update writes over old, and whether it writes.
	Apply(op *Op, old int64) (int64, bool)
	// StateWords is the size of a thread's state.
	StateWords() int
	// Start brings thread t to its first step. The state is zero.
	Start(t int, state []int64, op *Op)
	// Resume completes the step that thread t stood at and brings it to the next.
	Resume(t int, state []int64, value int64, op *Op)
	// Alike says that thread t does the same from two states on if it reads the same, but for the bounds of its loops. False is always right.
	Alike(t int, a, b []int64) bool
}
