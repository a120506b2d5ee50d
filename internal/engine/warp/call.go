package warp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// This file executes calls that are not inlined. Each function has a text of its own. A group that calls gets a frame:
// a window of the warp's vector and predicate registers above the caller's window, local memory above the caller's, and
// a copy of the caller's scalars, which the group gets back when it returns. Groups that diverge inside a function
// share its frame. Groups that return reach the instruction after the call and join there. So lanes that call different
// functions at one place, or that recur to different depths, need no mechanism other than groups.

// A warp that is deepCalls calls deep has turns longer by deepTurn steps. Thus if a recursion never ends, one stack is
// full before the stacks of all resident warps have grown.
const (
	deepCalls = 256
	deepTurn  = 1 << 18
)

// deepEnd returns the end of a turn that would otherwise end at end, both as warp times.
func (x *machine) deepEnd(w *engine.Warp, end uint64) uint64 {
	v, r := regsOf(w), x.r
	if v.stack.depth(v.groups[v.cur].frame) < deepCalls {
		return end
	}
	end += deepTurn
	if most := r.Launch.MaxSteps; most != 0 {
		end = min(end, w.Time+most-r.Clock)
	}
	return end
}

// calling is the state of a machine for kernels that have calls.
type calling struct {
	units []*unit
	of    map[*vcode.Text]*unit
	now   *unit // the unit whose text is loaded
	root  *frameAtPlace
	known map[frameKey]*frameAtPlace
}

// unit is the state of a machine for one of its texts while it executes another.
type unit struct {
	loaded
	locals []vcode.Fixed
}

// frameAtPlace is a function called at a place, with the places of its effects. Frames that a recursion folds into one
// place share it.
type frameAtPlace struct {
	t      *vcode.Text
	base   uint32
	places []uint32
	called [][]*frameAtPlace // by effect: the callees
}

type frameKey struct {
	t    *vcode.Text
	base uint32
}

// callFrame is one call of a function by lanes of a warp.
type callFrame struct {
	unit  *unit
	at    *frameAtPlace
	users int32 // groups in it, and frames of the calls made in it
	up    int32 // the caller's frame
	call  int32 // the effect that called
	pc    int32 // the place after the call
	saved []uint64
	// The call depth and the start of the function's local memory that engine ref would have.
	depth, stack int32
	v32, v64     int32 // the start of its registers
	preds        int32
	local        uint64 // the start of its local memory
}

// callStack holds the frames of a warp's calls and the register files. The running frame sees a window of the files.
type callStack struct { // the first is the kernel's
	frames []callFrame // the first is the kernel's
	free   []int32
	v32    []v32
	v64    []v64
	preds  []uint32
	own    uint64 // bytes of local memory of a lane
}

// prepareCalls sets up the texts of the functions that the kernel can call.
func (x *machine) prepareCalls() {
	c := &calling{of: map[*vcode.Text]*unit{}, known: map[frameKey]*frameAtPlace{}}
	kernel := x.t
	for _, t := range kernel.Units {
		x.stride = max(x.stride, t.Scalars)
		x.prepare(t)
		u := &unit{loaded: x.loaded}
		for _, f := range t.Fixed {
			if f.From == vcode.FixedLocal {
				u.locals = append(u.locals, f)
			}
		}
		c.units = append(c.units, u)
		c.of[t] = u
	}
	c.root = &frameAtPlace{t: kernel, base: x.r.Root, places: x.places, called: make([][]*frameAtPlace, len(kernel.Effects))}
	c.now = c.units[len(c.units)-1]
	x.calls = c
}

// turnTo makes the machine execute the text of a unit. It must not be inlined: its copy of a loaded would then be
// cleared for each warp that begins, whether it calls or not.
//
//go:noinline
func (x *machine) turnTo(u *unit) {
	if now := x.calls.now; now != u {
		now.loaded, x.loaded, x.calls.now = x.loaded, u.loaded, u
	}
}

// bottom resets the stack of a warp to the kernel's frame alone.
func (x *machine) bottom(v *registers) {
	copy(x.scalars(v, 0), x.template)
	if v.stack == nil {
		v.stack = &callStack{v32: v.v32[:cap(v.v32)], v64: v.v64[:cap(v.v64)], preds: v.preds, own: uint64(x.t.Local)}
	}
	s := v.stack
	s.free = s.free[:0]
	s.frames = s.frames[:0]
	f := s.take()
	saved := f.saved
	*f = callFrame{unit: x.calls.units[0], at: x.calls.root, users: 1, saved: saved}
	// Calls have overwritten the constants.
	copy(s.v32[x.t.V32:], x.t.Const32)
	copy(s.v64[x.t.V64:], x.t.Const64)
	v.clearFrame(f, ^uint32(0))
}

// take returns a new frame at the end, or one freed earlier.
func (s *callStack) take() *callFrame {
	if n := len(s.frames); n < cap(s.frames) {
		s.frames = s.frames[:n+1]
	} else {
		s.frames = append(s.frames, callFrame{})
	}
	return &s.frames[len(s.frames)-1]
}

// retain counts one more user of a frame. release counts one less, and frees frames without users.
func (s *callStack) retain(frame int32) {
	if s != nil {
		s.frames[frame].users++
	}
}

func (s *callStack) release(frame int32) {
	for s != nil {
		f := &s.frames[frame]
		if f.users--; f.users > 0 || frame == 0 {
			return
		}
		s.free = append(s.free, frame)
		frame = f.up
	}
}

// stage makes the frame of the running group current: registers, places and local memory are those of the frame.
func (x *machine) stage(v *registers) {
	s := v.stack
	f := &s.frames[v.groups[v.cur].frame]
	x.turnTo(f.unit)
	t := x.t
	x.places = f.at.places
	x.own, x.end = s.own, f.local+uint64(t.Local)
	v.v32 = s.v32[f.v32 : int(f.v32)+t.V32]
	v.v64 = s.v64[f.v64 : int(f.v64)+t.V64]
	v.preds = s.preds[f.preds : int(f.preds)+t.Preds]
	x.open(v)
}

// textOf returns the text that a group executes.
func (x *machine) textOf(v *registers, g *group) *vcode.Text {
	if v.stack == nil {
		return x.t
	}
	return v.stack.frames[g.frame].unit.t
}

// depth returns the call depth of a frame.
func (s *callStack) depth(frame int32) int32 {
	if s == nil {
		return 0
	}
	return s.frames[frame].depth
}

// window32, window64 and windowPreds return the registers that a lane sees.
func (v *registers) window32(lane int) []v32 {
	return v.stack.v32[v.stack.frames[v.groupOf(lane).frame].v32:]
}

func (v *registers) window64(lane int) []v64 {
	return v.stack.v64[v.stack.frames[v.groupOf(lane).frame].v64:]
}

func (v *registers) windowPreds(lane int) []uint32 {
	return v.stack.preds[v.stack.frames[v.groupOf(lane).frame].preds:]
}

// clearFrame clears a frame's local memory for the lanes of mask.
func (v *registers) clearFrame(f *callFrame, mask uint32) {
	if n := f.unit.t.Local; n > 0 {
		for m := mask; m != 0; m &= m - 1 {
			at := uint64(bits.TrailingZeros32(m))*v.stack.own + f.local
			clear(v.local[at:][:n])
			if v.written != nil {
				clear(v.written[at:][:n])
			}
		}
	}
}

// size is the approximate number of bytes of the registers and local memory.
func (v *registers) size() int {
	n := 128*cap(v.v32) + 256*cap(v.v64) + 8*cap(v.sc) + cap(v.local) + cap(v.written) + 1024
	if s := v.stack; s != nil {
		n = 128*cap(s.v32) + 256*cap(s.v64) + 8*cap(v.sc) + cap(v.local) + cap(v.written) + 128*cap(s.frames) + 1024
	}
	return n
}

// cross executes calls and returns.
func (x *machine) cross(w *engine.Warp, in *vcode.Instr, mask uint32) {
	v, e, place := regsOf(w), &x.t.Effects[in.A], x.places[in.A]
	switch {
	case in.Op == vcode.OpDepth:
		x.fitsStack(w, e, e.Fn, mask, place)
	case in.Op == vcode.OpReturn:
		x.leaveFrame(w, e, mask)
	case e.Fn != nil:
		x.callOne(w, in.A, v.cur, e.Fn, e.Call.Target, place)
	default:
		x.callMany(w, in.A, mask, place)
	}
}

// fitsStack reports whether the stacks of the lanes of mask have room for a call of fn. If they have not, it reports a
// fault.
func (x *machine) fitsStack(w *engine.Warp, e *vcode.Effect, fn *isa.Func, mask, place uint32) bool {
	f := &regsOf(w).stack.frames[regsOf(w).groups[regsOf(w).cur].frame]
	depth, localAt := f.depth+e.Call.Level, f.stack+e.Call.LocalAt
	if engine.StackFits(depth, loader.FrameAt(localAt, e.Call.Caller), fn) {
		return true
	}
	for m := mask; m != 0; m &= m - 1 {
		x.r.Overflow(w, bits.TrailingZeros32(m), place, fn, depth, localAt)
	}
	return false
}

// callMany executes an indirect call: each lane of the running group calls the function that its pointer names.
func (x *machine) callMany(w *engine.Warp, i int32, mask, place uint32) {
	v, e := regsOf(w), &x.t.Effects[i]
	sc := x.scalars(v, v.groups[v.cur].slot)
	addrs := *x.vec64(v, sc, e.Addr, 0)
	for rest := mask; rest != 0; {
		lane := bits.TrailingZeros32(rest)
		addr := addrs[lane]
		same := lanes.EQ64S(&addrs, addr, rest)
		rest &^= same
		to := e.Call.Find(addr)
		if to == nil {
			x.r.BadTarget(w, same, place, addr)
			x.noResults(w, e, same)
			continue
		}
		at := v.cur
		if v.groups[at].mask != same {
			at = x.part(v, at, same)
		}
		x.callOne(w, i, at, to.Fn, to.Text, place)
	}
	w.Regroup = true
}

// noResults gives the lanes of a faulting call defined results.
func (x *machine) noResults(w *engine.Warp, e *vcode.Effect, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		for _, d := range e.Results {
			x.Put(w, bits.TrailingZeros32(m), d, 0)
		}
	}
}

// callOne makes group k call fn. The group is already at the instruction after the call.
func (x *machine) callOne(w *engine.Warp, i int32, k int, fn *isa.Func, to *vcode.Text, place uint32) {
	v, e := regsOf(w), &x.t.Effects[i]
	mask := v.groups[k].mask
	switch {
	case fn.Builtin != "":
		called := *e
		called.Fn = fn
		x.builtin(w, &called, mask, place)
	case to == nil:
		x.r.NoBody(w, mask, place, fn)
		x.noResults(w, e, mask)
	case x.fitsStack(w, e, fn, mask, place):
		x.enterFrame(w, i, k, fn, to, place)
		w.Regroup = true
	}
}

// enterFrame puts group k in a frame of fn.
func (x *machine) enterFrame(w *engine.Warp, i int32, k int, fn *isa.Func, to *vcode.Text, place uint32) {
	v, e, t := regsOf(w), &x.t.Effects[i], x.t
	s, g := v.stack, &v.groups[k]
	n := int32(len(s.frames))
	if m := len(s.free); m > 0 {
		n, s.free = s.free[m-1], s.free[:m-1]
	} else {
		s.take()
	}
	f, from := &s.frames[n], &s.frames[g.frame]
	sc := x.scalars(v, g.slot)
	*f = callFrame{
		unit: x.calls.of[to], at: x.frameOf(from.at, i, place, fn, to), users: 1, up: g.frame, call: i, pc: g.pc,
		saved: append(f.saved[:0], sc[:t.Scalars]...),
		depth: from.depth + e.Call.Level + 1, stack: loader.FrameAt(from.stack+e.Call.LocalAt, e.Call.Caller),
		v32: from.v32 + int32(t.V32+len(t.Const32)), v64: from.v64 + int32(t.V64+len(t.Const64)), preds: from.preds + int32(t.Preds),
		local: devmem.RoundUp(from.local+uint64(t.Local), loader.LocalAlign),
	}
	x.makeRoom(v, f, to)
	for _, d := range to.Enter {
		if d.Kind == loader.OpV32 {
			lanes.Copy32(&s.v32[f.v32+d.Reg], x.vec32(v, sc, e.Vals[d.At], 0), g.mask)
		} else {
			lanes.Copy64(&s.v64[f.v64+d.Reg], x.vec64(v, sc, e.Vals[d.At], 0), g.mask)
		}
	}
	for j := range to.Const32 { // the registers of other lanes may belong to another function
		lanes.Copy32(&s.v32[int(f.v32)+to.V32+j], &to.Const32[j], g.mask)
	}
	for j := range to.Const64 {
		lanes.Copy64(&s.v64[int(f.v64)+to.V64+j], &to.Const64[j], g.mask)
	}
	v.clearFrame(f, g.mask)
	copy(sc, f.unit.template)
	for _, r := range f.unit.locals {
		sc[r.Reg] = f.local + r.Val
	}
	for _, r := range f.unit.specials {
		sc[r.Reg] = x.r.Special(w, 0, isa.SpecialID(r.Val))
	}
	g.frame, g.pc = n, 0
}

// frameOf returns the frameAtPlace of a function called in a frame.
func (x *machine) frameOf(from *frameAtPlace, i int32, place uint32, fn *isa.Func, to *vcode.Text) *frameAtPlace {
	for _, f := range from.called[i] {
		if f.t == to {
			return f
		}
	}
	key := frameKey{to, x.r.Places.Enter(place, fn)}
	f := x.calls.known[key]
	if f == nil {
		f = &frameAtPlace{t: to, base: key.base, places: x.placesOf(to, key.base), called: make([][]*frameAtPlace, len(to.Effects))}
		x.calls.known[key] = f
	}
	from.called[i] = append(from.called[i], f)
	return f
}

// makeRoom grows the register files and local memory so that they hold a frame of a text. The running frame keeps its
// window.
func (x *machine) makeRoom(v *registers, f *callFrame, t *vcode.Text) {
	s := v.stack
	grown := false
	if need := int(f.v32) + t.V32 + len(t.Const32); need > len(s.v32) {
		s.v32, grown = engine.Grow(s.v32, need), true
	}
	if need := int(f.v64) + t.V64 + len(t.Const64); need > len(s.v64) {
		s.v64, grown = engine.Grow(s.v64, need), true
	}
	if need := int(f.preds) + t.Preds; need > len(s.preds) {
		s.preds, grown = engine.Grow(s.preds, need), true
	}
	if need := f.local + uint64(t.Local); need > s.own {
		own := max(need, 2*s.own)
		local := make([]byte, 32*own)
		for l := range uint64(32) {
			copy(local[l*own:][:s.own], v.local[l*s.own:][:s.own])
		}
		if v.written != nil {
			written := make([]byte, 32*own)
			for l := range uint64(32) {
				copy(written[l*own:][:s.own], v.written[l*s.own:][:s.own])
			}
			v.written = written
		}
		v.local, s.own, grown = local, own, true
	}
	if grown {
		x.stage(v)
	}
}

// leaveFrame returns the running group to the caller.
func (x *machine) leaveFrame(w *engine.Warp, e *vcode.Effect, mask uint32) {
	v := regsOf(w)
	s, g := v.stack, &v.groups[v.cur]
	f := &s.frames[g.frame]
	up := &s.frames[f.up]
	sc := x.scalars(v, g.slot)
	for _, d := range up.unit.t.Effects[f.call].Results {
		if d.Kind == loader.OpV32 {
			lanes.Copy32(&s.v32[up.v32+d.Reg], x.vec32(v, sc, e.Vals[d.At], 0), mask)
		} else {
			lanes.Copy64(&s.v64[up.v64+d.Reg], x.vec64(v, sc, e.Vals[d.At], 0), mask)
		}
	}
	copy(sc, f.saved)
	frame := g.frame
	g.frame, g.pc = f.up, f.pc
	s.retain(f.up)
	s.release(frame)
	w.Regroup = true
}
