// Package explore visits every execution of a small concurrent program under scoped RC11 once. It is the stateless
// search of seed 004 (algorithms 1 to 3 and appendix .1), which is the TruSt algorithm with scopes.
//
// The search grows one execution graph, one event at a time. A read tries each write that it may read from. A write
// tries each place in coherence order, and then each earlier read that it could have served (a revisit): the events on
// which the write does not depend are cut, and the read reads from the write. A revisit is made from exactly one of the
// graphs from which it could be made, the one whose cut events are all maximal. So no execution is reached twice, and
// the search keeps one graph for each nested revisit.
//
// The package knows no language: it asks a program for the next step of a thread and resumes it with a value.
package explore

import "fencepost.dev/fencepost/internal/verify/model"

// OpKind is the kind of a step.
type OpKind uint8

// The kinds of steps.
const (
	End     OpKind = iota // the thread has ended
	Fail                  // an assertion of the thread has failed; the thread has ended
	Await                 // the thread spins: its last Value steps are an iteration of a loop that changed nothing
	Assumed               // an assumption of the thread does not hold; the execution does not count
	Bound                 // a loop has reached its bound, and the thread stops there
	Read                  // resumed with the value read
	Write                 // resumed with 0
	Update                // a read-modify-write, resumed with the value read
	Fence                 // resumed with 0
	Arrive                // at a barrier of the CTA; resumed with 0 once all threads of the CTA have arrived
	Signal                // as Arrive, but without waiting for the others
	Refused               // the program cannot compute the next step of the thread: the search ends
	depart                // the internal next step of a thread that has arrived
)

// Function is the function of the old value and the operand that an Update computes.
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
	// Volatile says that the access is volatile. It counts as atomic here, but the language of the program does not
	// call it atomic.
	Volatile bool
	// Loops says that the thread may Await after this step. It only affects the order of the search.
	Loops bool
	// Vain says, for an Assumed, that the thread might have skipped its last iteration, which has changed nothing: the
	// execution without it is another one.
	Vain bool
	// Inserted says that the step is not one of the program, and does not count for an Await.
	Inserted bool
	// Proxy is the proxy of an access, or of a proxy fence. Address numbers the virtual address of an access. Reduction
	// marks an update whose old value is not used. Deps are the reads of the thread, by number, on which the step
	// depends. Only the model PTX uses them.
	Proxy     model.Proxy
	Reduction bool
	Address   int32
	Deps      uint64
	// Control are those of Deps on which all later steps of the thread depend too.
	Control uint64
	// Lanes, if not 0, are the threads of a barrier, as bits for the 32 threads of the CTA that include the thread of
	// the step. 0 means all threads of the CTA.
	Lanes uint32
	// Reduces says that a barrier returns to each thread the Function of the Values, 0 or 1, of all arriving threads.
	Reduces bool
	// Exchanges says that a barrier orders nothing, and returns to each thread the result of the Exchanger.
	Exchanges bool
	// Converges says that the exchange is between those of the 32 threads that happen to be at the place Value
	// together: see converge.go.
	Converges bool
	Loc       int32 // the location, or the number of the barrier
	Pos       int32 // a place in the source, which the search passes on
	Value     int64 // the value written, the operand of an update, or see Await
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

// Reduce is the result of a barrier for the values of the arriving threads.
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

// Reductions are the possible results of a barrier of at most n threads.
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

// Groups tells which threads a barrier synchronises.
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

// Same reports whether a barrier of thread t is also one of thread o.
func (g *Groups) Same(t, o int, op *Op) bool {
	if g.Places[t].CTA != g.Places[o].CTA {
		return false
	}
	return op.Lanes == 0 || g.index[t]/32 == g.index[o]/32 && op.Lanes>>(g.index[o]%32)&1 != 0
}

// Exchanger is a program with steps that exchange values. Its method returns the value for the thread at step op if all
// threads arrive, including that one. ok reports whether the value is defined.
type Exchanger interface {
	Exchange(op *Op, all []*Op) (value int64, ok bool)
}

// OneProxy reports whether all accesses of p are by the generic proxy and by one virtual address for each location. It
// returns false if p does not say.
func OneProxy(p Program) bool {
	of, ok := p.(interface{ OneProxy() bool })
	return ok && of.OneProxy()
}

// Program is a program to explore. Threads are deterministic apart from the values they read: the state of a thread and
// the value it is resumed with determine its next step.
type Program interface {
	// Places returns the place of each thread in the hierarchy. Threads with equal CTA share its barriers.
	Places() []model.Place
	// Initial is the value of a location before any thread runs. Locations are numbered from 0. They become known when
	// a step accesses them.
	Initial(loc int32) int64
	// Apply returns the value that an update writes over old, and whether it writes.
	Apply(op *Op, old int64) (int64, bool)
	// StateWords is the size of a thread's state.
	StateWords() int
	// Start brings thread t to its first step. The state is zero.
	Start(t int, state []int64, op *Op)
	// Resume completes the current step of thread t and advances it to the next.
	Resume(t int, state []int64, value int64, op *Op)
	// Alike reports whether thread t behaves equally from two states on if it reads the same values, apart from the
	// bounds of its loops. False is always right.
	Alike(t int, a, b []int64) bool
}
