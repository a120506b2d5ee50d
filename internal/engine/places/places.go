// Package places numbers the places that threads can be at: instructions together with the calls that led there.
package places

import (
	"slices"
	"sort"
	"strings"
	"sync"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// maxPlaces is the number of places from which call stacks are no longer distinguished.
const maxPlaces = 1 << 30

// Table numbers the places of a device. It implements event.Places. A place is the base of a call frame plus the index
// of an instruction. Frames are interned by the calling place and the called function, so a place identifies the whole
// call stack. A recursive call by a call site that is already on the stack shares the frame of the earlier one: the
// stack of a recursion contains each of its call sites once.
//
// The methods may be called concurrently.
type Table struct {
	mu     sync.Mutex
	next   uint32
	frames []placeFrame // by base
	index  map[placeKey]uint32
	// Caches of the methods of event.Places.
	arms     map[uint32][]event.Arm
	armsOf   map[*isa.Func]funcArms
	updates  map[*isa.Func][]int32
	discards map[*isa.Func][]isa.Use
	pointers map[*isa.Func][]bool
	passed   map[[2]uint32]bool
}

// funcArms is what Arms needs of a function.
type funcArms struct {
	of        [][]event.Arm // indexed by instruction
	again     bool          // lanes that have parted and reconverged may part again
	recursive bool
}

type placeKey struct {
	caller uint32
	callee *isa.Func
}

type placeFrame struct {
	base   uint32
	caller uint32 // place of the call; 0: a kernel
	fn     *isa.Func
}

// New makes an empty table.
func New() *Table {
	return &Table{next: 1, index: map[placeKey]uint32{}, arms: map[uint32][]event.Arm{},
		armsOf: map[*isa.Func]funcArms{}, updates: map[*isa.Func][]int32{}, discards: map[*isa.Func][]isa.Use{}, pointers: map[*isa.Func][]bool{},
		passed: map[[2]uint32]bool{}}
}

// Enter returns the base of the places of a call: the place of instruction 0 of callee, called at the place caller (0:
// launched by the host). It also serves events that do not come from an engine.
func (t *Table) Enter(caller uint32, callee *isa.Func) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if base, ok := t.index[placeKey{caller, callee}]; ok {
		return base
	}
	base, ok := t.folded(caller, callee)
	if !ok {
		from := caller
		if t.next > maxPlaces {
			from = 0 // from here on, one frame for each function
			if b, ok := t.index[placeKey{0, callee}]; ok {
				return b
			}
		}
		base = t.next
		t.next += uint32(len(callee.Insts)) + 1 // falling off the end is a place too
		t.frames = append(t.frames, placeFrame{base, from, callee})
		t.index[placeKey{from, callee}] = base
	}
	t.index[placeKey{caller, callee}] = base
	return base
}

// folded finds the frame on caller's stack made by an earlier call from the same place to the same function.
func (t *Table) folded(caller uint32, callee *isa.Func) (uint32, bool) {
	if caller == 0 {
		return 0, false
	}
	site := t.frame(caller)
	index := caller - site.base
	for f := site; f.caller != 0; {
		up := t.frame(f.caller)
		if f.fn == callee && up.fn == site.fn && f.caller-up.base == index {
			return f.base, true
		}
		f = up
	}
	return 0, false
}

// Site returns the site of a place: an instruction of a function, and the place of the call of that function, which is
// 0 for a kernel.
func (t *Table) Site(place uint32) (fn *isa.Func, at int, caller uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.frame(place)
	return f.fn, int(place - f.base), f.caller
}

// frame returns the frame that place lies in.
func (t *Table) frame(place uint32) *placeFrame {
	i := sort.Search(len(t.frames), func(i int) bool { return t.frames[i].base > place }) - 1
	return &t.frames[i]
}

// Frames returns the call stack of a place, innermost first, including inlined calls; nil for an unknown place.
func (t *Table) Frames(place uint32) []event.Frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	if place == 0 || place >= t.next {
		return nil
	}
	var out []event.Frame
	for place != 0 {
		f := t.frame(place)
		out = appendFrames(out, f.fn, int(place-f.base))
		place = f.caller
	}
	return out
}

// Arms implements event.Places.
func (t *Table) Arms(place uint32) []event.Arm {
	t.mu.Lock()
	defer t.mu.Unlock()
	if place == 0 || place >= t.next {
		return nil
	}
	out, ok := t.arms[place]
	if !ok {
		for at := place; at != 0; {
			f := t.frame(at)
			out = t.appendArms(out, f, at-f.base)
			at = f.caller
		}
		t.arms[place] = out
	}
	return out
}

// Updates implements event.Places.
func (t *Table) Updates(place uint32) (load uint32, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if place == 0 || place >= t.next {
		return 0, false
	}
	f := t.frame(place)
	of, ok := t.updates[f.fn]
	if !ok {
		of = f.fn.Updates()
		t.updates[f.fn] = of
	}
	if i := of[place-f.base]; i >= 0 {
		return f.base + uint32(i), true
	}
	return 0, false
}

// Dereferences implements event.Places.
func (t *Table) Dereferences(place uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if place == 0 || place >= t.next {
		return false
	}
	f := t.frame(place)
	of, ok := t.pointers[f.fn]
	if !ok {
		of = f.fn.Dereferences()
		t.pointers[f.fn] = of
	}
	return of[place-f.base]
}

// Discards implements event.Places.
func (t *Table) Discards(place uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for place != 0 && place < t.next {
		f := t.frame(place)
		of, ok := t.discards[f.fn]
		if !ok {
			of = f.fn.Discards()
			t.discards[f.fn] = of
		}
		switch of[place-f.base] {
		case isa.Discarded:
			return true
		case isa.Used:
			return false
		}
		place = f.caller // the result of the function
	}
	return false
}

// Passed reports whether a thread at the place at will not come to place any more, and continues with what a thread
// does after place, rather than merely returning.
func (t *Table) Passed(at, place uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at == 0 || place == 0 || at >= t.next || place >= t.next {
		return false
	}
	key := [2]uint32{at, place}
	passed, ok := t.passed[key]
	if !ok {
		passed = t.passes(at, place)
		t.passed[key] = passed
	}
	return passed
}

func (t *Table) passes(at, place uint32) bool {
	// Leave calls, up to the innermost call that contains both: frames are older than those of the calls that they
	// make.
	f, g := t.frame(at), t.frame(place)
	for f != g {
		if f.base > g.base {
			if f.caller == 0 {
				return false
			}
			at = f.caller + 1
			f = t.frame(f.caller)
			continue
		}
		if place = g.caller; place == 0 {
			return false
		}
		g = t.frame(place)
	}
	acts, returns := f.fn.Passed(at-f.base, place-f.base)
	for !acts && returns && f.caller != 0 {
		at = f.caller + 1
		f = t.frame(f.caller)
		acts, returns = f.fn.Acts(at - f.base)
	}
	return acts
}

// appendArms adds the arms that instruction i of a frame lies on. For a branch to its callees it adds the frame's call.
func (t *Table) appendArms(out []event.Arm, f *placeFrame, i uint32) []event.Arm {
	of := t.of(f.fn)
	for _, a := range of.of[i] {
		out = append(out, event.Arm{Branch: f.base + a.Branch, Taken: a.Taken})
	}
	if of.recursive || f.caller == 0 && !f.fn.Entry {
		// One frame represents several calls. Lanes may be in any two of them.
		out = append(out, event.Arm{Branch: f.base + uint32(len(f.fn.Insts)), Taken: 3})
	}
	if f.caller != 0 {
		up := t.frame(f.caller)
		if up.fn.Insts[f.caller-up.base].Callee == nil {
			out = append(out, event.Arm{Branch: f.caller, Taken: event.ArmBit(slices.Index(up.fn.Calls, f.fn))})
		}
	}
	return out
}

func (t *Table) of(f *isa.Func) funcArms {
	x, ok := t.armsOf[f]
	if !ok {
		x.of, x.again = f.Arms()
		x.recursive = mayCall(f, f, map[*isa.Func]bool{})
		t.armsOf[f] = x
	}
	return x
}

// DivergesAgain reports whether lanes of a warp that runs a function may diverge at a branch with accesses on two arms,
// reconverge, and diverge there again. A called function may be called in a loop.
func (t *Table) DivergesAgain(f *isa.Func) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[*isa.Func]bool{f: true}
	for work := []*isa.Func{f}; len(work) > 0; {
		f := work[len(work)-1]
		work = work[:len(work)-1]
		x := t.of(f)
		if x.again || !f.Entry && slices.ContainsFunc(x.of, func(a []event.Arm) bool { return len(a) > 0 }) {
			return true
		}
		for _, g := range f.Calls {
			if !seen[g] {
				seen[g] = true
				work = append(work, g)
			}
		}
	}
	return false
}

// mayCall reports whether a function may call another, directly or indirectly.
func mayCall(from, to *isa.Func, seen map[*isa.Func]bool) bool {
	for _, f := range from.Calls {
		if f == to {
			return true
		}
		if !seen[f] {
			seen[f] = true
			if mayCall(f, to, seen) {
				return true
			}
		}
	}
	return false
}

// appendFrames adds the frames of instruction i of fn: the inlined ones, then fn itself.
func appendFrames(out []event.Frame, fn *isa.Func, i int) []event.Frame {
	if len(fn.Insts) == 0 {
		return append(out, event.Frame{Function: fn.Name})
	}
	in := &fn.Insts[min(i, len(fn.Insts)-1)]
	base := event.Frame{Function: fn.Name}
	if in.File != nil {
		base.PTXFile = in.File.Name
	}
	if in.Source != nil {
		base.PTXLine, base.Inst = int(in.Source.Pos.Line), strings.TrimSuffix(in.Source.String(), ";")
	}
	if in.Loc < 0 || int(in.Loc) >= len(fn.Locs) {
		return append(out, base)
	}
	for loc := &fn.Locs[in.Loc]; loc != nil; loc = loc.At {
		f := base
		f.File, f.Line, f.Column = loc.File, loc.Line, loc.Column
		if loc.At != nil {
			f.Function = loc.Function
		}
		out = append(out, f)
	}
	return out
}
