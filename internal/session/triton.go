package session

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// replicas notes how the threads of a Triton kernel share the elements of its loads and stores: the compiler gives an element to
// several threads where a block has more threads than elements, or where a value is one for all. It is the sink of such a
// launch, and hands everything on.
type replicas struct {
	next   event.Sink
	warps  uint32         // of a block
	held   map[page]*span // in this launch, the thread that an element was seen with first, plus 1
	stored map[page]*span // in this launch, the block that stored an element first, plus 1; the page's block is 0
	places map[uint32]*sharing
}

// page is elements next to each other that one instruction accesses in a block, and span what is noted of each; 0: nothing.
type page struct {
	place, block uint32
	index        uint64
}

type span [32]uint32

// sharing is what is known of an instruction.
type sharing struct {
	notes              int
	elements, repeated int  // those that several threads of one block hold
	blocks             bool // several blocks store one
}

// over makes the sink of a launch.
func (r *replicas) over(next event.Sink, l *event.Launch) event.Sink {
	r.next, r.warps, r.held, r.stored = next, l.WarpsPerBlock(), map[page]*span{}, map[page]*span{}
	return r
}

// Events implements event.Sink.
func (r *replicas) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if e.Space != event.Global || e.Kind != event.Load && e.Kind != event.Store {
			continue
		}
		s := r.places[e.Place]
		if s == nil {
			s = &sharing{}
			r.places[e.Place] = s
		}
		r.note(s, b, e)
	}
	r.next.Events(b)
}

// sampled is of how many elements of an instruction notes are taken. How the compiler spreads a block over threads is the same for
// all blocks, so that many elements tell of all.
const sampled = 1 << 18

// noted is how many notes are taken of an instruction. The other threads that hold the last elements of a sample come later.
const noted = 8 * sampled

// again marks an element, in place of a thread, that several threads hold.
const again = 1 << 31

// note takes notes of the elements that an event accesses. Those of a warp mostly lie on one or two pages.
func (r *replicas) note(s *sharing, b *event.Batch, e *event.Event) {
	block := e.Warp / r.warps
	var last page
	var held, stored *span
	for m := e.Mask; m != 0 && s.notes < noted; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := b.AddrOf(e, lane) / uint64(max(e.Size, 1))
		thread := e.Warp%r.warps*32 + uint32(lane) + 1
		if k := (page{e.Place, block, at / uint64(len(span{}))}); held == nil || k != last {
			last, held, stored = k, r.held[k], nil
		}
		s.notes++
		at %= uint64(len(span{}))
		if held == nil || held[at] == 0 {
			if s.elements == sampled {
				continue
			}
			if held == nil {
				held = &span{}
				r.held[last] = held
			}
			held[at] = thread
			s.elements++
		} else if held[at] != thread && held[at] != again {
			held[at] = again
			s.repeated++
		}
		if e.Kind != event.Store || s.blocks {
			continue
		}
		if stored == nil {
			any := page{place: e.Place, index: last.index}
			if stored = r.stored[any]; stored == nil {
				stored = &span{}
				r.stored[any] = stored
			}
		}
		s.blocks = stored[at] != 0 && stored[at] != block+1
		stored[at] = block + 1
	}
}

// replicated says whether all elements that the instruction of an access touches are held by several threads of a block.
func (r *replicas) replicated(a *detect.Access) bool {
	s := r.places[a.Place]
	return s != nil && s.elements > 0 && s.repeated == s.elements
}

// crossed says whether blocks may store the same element by the instruction of an access.
func (r *replicas) crossed(a *detect.Access) bool {
	s := r.places[a.Place]
	return s == nil || s.blocks || s.elements >= sampled
}

// tritonRace judges a race of one program instance of a Triton kernel by what its author can mend: nothing, where the compiler has
// spread the instance over threads so that they race without effect, or where it orders shared memory itself. ok is false
// for any other race, which stays what it is. It may give the finding another kind.
func (r *once) tritonRace(f *detect.Finding) (severity detect.Severity, why, fix string, ok bool) {
	// Of a pair of places with races of several kinds the gravest is told. One between plain accesses of two blocks is graver than
	// one within a block, so that there is none where this is within a block; for races of these kinds that does not hold.
	switch f.Kind {
	case detect.MixedAtomic, detect.AtomicScope, detect.MixedSize, detect.VolatileOnly:
		return 0, "", "", false
	}
	if f.Class != detect.Race || len(f.Accesses) != 2 {
		return 0, "", "", false
	}
	a, b := &f.Accesses[0], &f.Accesses[1]
	l := &a.Launch
	if l.Language == event.Threads || a.Host != "" || b.Host != "" || l.ID != b.Launch.ID || a.Warp/l.WarpsPerBlock() != b.Warp/l.WarpsPerBlock() {
		return 0, "", "", false
	}
	if l.Language == event.Gluon && (a.Async || b.Async) {
		return 0, "", "", false // its author waits for copies
	}
	shared := a.Space == event.Shared || a.Space == event.Tensor
	const nothing = "nothing in the script: the Triton compiler decides it"
	switch {
	case shared && l.Language == event.Gluon && f.Kind == detect.SameValue && a.Place == b.Place:
		return detect.Info, "several threads of one program instance store one element, which the Triton compiler has given to each of them", nothing, true
	case shared && l.Language == event.Gluon:
		return 0, "", "", false
	case shared:
		return detect.Info, "two threads of one program instance meet in shared memory, which the Triton compiler allocates and synchronises", nothing, true
	case f.Kind == detect.SameValue && (a.Place != b.Place || r.replicas.crossed(a)):
		return 0, "", "", false
	case a.Op == detect.Write && b.Op == detect.Write && (a.Place == b.Place && (f.Kind == detect.SameValue || r.replicas.replicated(a)) || a.Async && b.Async && r.oneLine(a, b)):
		return detect.Info, "several threads of one program instance store one element, which the Triton compiler has given to each of them", nothing, true
	case a.Op == detect.Write && b.Op == detect.Write && r.oneLine(a, b):
		f.Kind = detect.Unordered
		return detect.Warning, "one program instance stores two elements of a tensor at one address, by two threads, and which one remains is undefined",
			sayIn(dialectOf(l), "let the addresses of the elements differ, or make the store an atomic operation (atomicAdd, atomicMax, ...); between iterations of a loop, put __syncthreads() at the end of its body"), true
	case a.Op != b.Op && (r.replicas.replicated(a) || r.replicas.replicated(b)):
		return detect.Info, "two threads of one program instance hold the same element, and one stores it while the other still loads it", nothing, true
	}
	between := "tl.debug_barrier()"
	if l.Language == event.Gluon {
		between = "gl.barrier()"
	}
	return detect.Warning, "one program instance stores an element with one thread and accesses it with another, and the Triton compiler orders accesses " +
		"of global memory by themselves only, not across threads", "put " + between + " between the two, or keep the value in the program instead of memory", true
}

// oneLine says that two accesses are at one place of the source: the compiler makes several instructions of one store, and gives each of
// several groups of warps a copy of the code.
func (r *once) oneLine(a, b *detect.Access) bool {
	if a.Place == b.Place {
		return true
	}
	x, y := r.places.Frames(a.Place), r.places.Frames(b.Place)
	return len(x) > 0 && len(y) > 0 && x[0].File != "" && x[0].File == y[0].File && x[0].Line == y[0].Line && x[0].Column == y[0].Column
}
