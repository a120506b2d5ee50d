package simt

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// maxPlaces is the number of places from which call stacks are no longer told apart.
const maxPlaces = 1 << 30

// PlaceTable numbers the places of a device: it implements event.Places. A place is a call frame's base plus an
// instruction's index, and frames are interned by the place that called and the function called, so a place names the
// whole call stack. A recursive call by a call site that is on the stack already shares the frame of the earlier one:
// the stack of a recursion names each of its call sites once.
//
// Its methods may be called from several goroutines.
type PlaceTable struct {
	mu     sync.Mutex
	next   uint32
	frames []placeFrame // by base
	index  map[placeKey]uint32
}

type placeKey struct {
	caller uint32
	callee *isa.Func
}

type placeFrame struct {
	base   uint32
	caller uint32 // place of the call; 0 for a kernel
	fn     *isa.Func
}

// NewPlaceTable makes an empty table.
func NewPlaceTable() *PlaceTable {
	return &PlaceTable{next: 1, index: map[placeKey]uint32{}}
}

// enter gives the base of the frame of callee called at place caller (0: launched by the host).
func (t *PlaceTable) enter(caller uint32, callee *isa.Func) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if base, ok := t.index[placeKey{caller, callee}]; ok {
		return base
	}
	base, ok := t.folded(caller, callee)
	if !ok {
		from := caller
		if t.next > maxPlaces {
			from = 0 // one frame a function from here on
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

// folded finds the frame on caller's stack that the same call of the same function made.
func (t *PlaceTable) folded(caller uint32, callee *isa.Func) (uint32, bool) {
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

// frame gives the frame that place lies in.
func (t *PlaceTable) frame(place uint32) *placeFrame {
	i := sort.Search(len(t.frames), func(i int) bool { return t.frames[i].base > place }) - 1
	return &t.frames[i]
}

// Frames gives the call stack of a place, innermost first, inlined calls included; nil for an unknown place.
func (t *PlaceTable) Frames(place uint32) []event.Frame {
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

// appendFrames adds the frames of instruction i of fn: those the compiler inlined, then fn itself.
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
		base.PTXLine, base.Inst = int(in.Source.Pos.Line), instText(in.Source)
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

// instText is an instruction as one line of text.
func instText(in *ptx.Inst) string {
	var b strings.Builder
	if in.Pred != "" {
		b.WriteByte('@')
		if in.PredNot {
			b.WriteByte('!')
		}
		b.WriteString(in.Pred + " ")
	}
	b.WriteString(in.Op + in.Mods)
	for i := range in.Operands {
		b.WriteString([]string{" ", ", "}[min(i, 1)])
		b.WriteString(operandText(&in.Operands[i]))
	}
	return b.String()
}

// operandText is an operand as text.
func operandText(o *ptx.Operand) string {
	args := make([]string, len(o.Args))
	for i := range o.Args {
		args[i] = operandText(&o.Args[i])
	}
	list := strings.Join(args, ", ")
	off := ""
	if o.HasOff {
		off = fmt.Sprintf("%+d", o.Off)
	}
	switch o.Kind {
	case ptx.OperandAddr:
		if len(args) == 0 {
			return "[" + off + "]"
		}
		args[0] += off
		return "[" + strings.Join(args, ", ") + "]" + o.Name
	case ptx.OperandVector:
		return "{" + list + "}"
	case ptx.OperandList:
		return "(" + list + ")"
	case ptx.OperandPair:
		return strings.Join(args, "|")
	case ptx.OperandNot:
		return "!" + list
	case ptx.OperandNeg:
		return "-" + list
	default:
		return o.Name + off
	}
}
