// Package warp is the fast engine. It executes the vector form of kernels (package vcode) 32 lanes at a time.
package warp

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

type (
	v32 = lanes.V32
	v64 = lanes.V64
)

// runner is engine warp. Raw leaves out the passes of the optimiser, so that tests can tell whether the optimiser is at
// fault.
type runner struct{ raw bool }

// New makes the fast engine. It optimises kernels (package opt) for the shape of the launch and executes them 32 lanes
// a step. It keeps the contract of engine ref: the accesses, their order within a thread, the results, faults and
// events are the same. The order between threads may differ; in lockstep (lockstep.go), only the order between warps.
// Kernels that opt cannot express run on ref.
//
// The lanes of a warp form groups. The lanes of a group are at one place of the text and have the same scalars. A group
// runs until it reaches a place after that of another group. Groups with equal scalars that are at the start of a
// block, or after a barrier, join. So a scalar is right for every lane of its group even if the analysis was wrong:
// the analysis only decides how soon groups join again.
func New() engine.Engine { return runner{} }

// Run implements Engine.
func (e runner) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	t, err := textOf(l, e.raw)
	if err != nil {
		if !errors.Is(err, opt.ErrUnsupported) {
			panic("BUG: " + err.Error())
		}
		return engine.NewRef().Run(ctx, l)
	}
	r := engine.NewRun(ctx, l)
	x := newMachine(r, t)
	r.Machine = x
	defer x.finish()
	return r.Execute(r.Loop)
}

// keptBytes bounds the register files that a text keeps from one launch to the next.
const keptBytes = 1 << 20

// finish keeps some of the register files for the next launch.
func (x *machine) finish() {
	kept := 0
	for _, v := range x.slots {
		kept += v.size()
	}
	if x.crew != nil {
		for _, v := range x.crew.regs {
			if v != nil {
				x.pool = append(x.pool, v)
			}
		}
	}
	for _, v := range x.pool {
		if kept += v.size(); kept <= keptBytes {
			v.files = lanes.Regs{} // which would keep this machine's memory alive
			x.slots = append(x.slots, v)
		}
	}
	x.t.Done(x.tells, x.lists)
	if x.calls != nil {
		for _, u := range x.calls.units {
			u.t.Done(x.tells, u.lists)
		}
	}
	e := x.of
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(x.slots) > len(e.files) {
		e.files = x.slots
	}
}

// textKey is what a text is compiled for.
type textKey struct {
	kernel      *isa.Func
	block, grid event.Dim3
	raw         bool
	lockstep    bool
	uninit      bool
}

const (
	// maxTexts bounds the compiled kernels of a program. The least recently used is dropped.
	maxTexts = 64
	// maxGrids bounds the grids that a kernel is compiled for. All further grids share one text.
	maxGrids = 3
)

// texts caches compiled kernels.
type texts struct {
	mu   sync.Mutex
	list []*textEntry // least recently used first
}

// textEntry is a compiled kernel with the register files of launches that have ended.
type textEntry struct {
	key textKey
	*vcode.Text
	err error

	mu    sync.Mutex
	files []*registers
}

func (x *texts) has(key textKey) bool {
	return slices.ContainsFunc(x.list, func(e *textEntry) bool { return e.key == key })
}

// grids counts the texts whose keys differ from key in the grid at most.
func (x *texts) grids(key textKey) int {
	n := 0
	for _, e := range x.list {
		if k := e.key; k.kernel == key.kernel && k.block == key.block && k.raw == key.raw && k.lockstep == key.lockstep && k.uninit == key.uninit {
			n++
		}
	}
	return n
}

type textsKey struct{}

// textsOf returns the compiled kernels of a program.
func textsOf(p *loader.Program) *texts {
	return p.Keep(textsKey{}, func() any { return new(texts) }).(*texts)
}

// textOf returns the compiled form of a launch's kernel.
func textOf(l *engine.Launch, raw bool) (*textEntry, error) {
	p, x := l.Program, textsOf(l.Program)
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.list
	key := textKey{l.Func, l.Block, l.Grid, raw, l.Schedule == engine.Lockstep, l.Needs&event.NeedLocal != 0}
	if !x.has(key) && x.grids(key) >= maxGrids {
		key.grid = event.Dim3{}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if e := list[i]; e.key == key {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = e
			return e, e.err
		}
	}
	e := &textEntry{key: key}
	img := p.Image(l.Func)
	funcs, err := opt.Build(l.Func, opt.Env{
		Block:  [3]uint32{l.Block.X, l.Block.Y, l.Block.Z},
		Grid:   [3]uint32{key.grid.X, key.grid.Y, key.grid.Z},
		Shared: img.Layout,

		Lockstep: key.lockstep,
		Uninit:   key.uninit,
	})
	if err == nil {
		for _, f := range funcs {
			if raw {
				opt.Order(f)
				opt.AnalyseShapes(f)
			} else {
				opt.Optimise(f, nil)
			}
		}
		elements := img.ElementsOf(l.Func)
		for _, f := range funcs {
			f.AttachElements(elements)
		}
		e.Text = vcode.Compile(funcs, img)
	}
	e.err = err
	if len(list) >= maxTexts {
		list = append(list[:0], list[1:]...)
	}
	x.list = append(list, e)
	return e, e.err
}

// machine is the engine.Machine of engine warp for one launch.
type machine struct {
	r      *engine.Run
	of     *textEntry // the kernel of the launch
	calls  *calling   // nil if all calls are inlined
	stride int        // number of scalars in a slot
	places []uint32   // by effect
	loaded
	own, end uint64 // bytes of local memory of each lane of the running warp, and the end of the current frame in them

	x32      [4]v32 // scalars spread to vectors
	x64      [4]v64
	pool     []*registers // free register files
	slots    []*registers // register files of earlier launches
	out      v64          // addresses or values for an event
	left     v64          // the values that an atomic left in memory
	offsets  v64          // the offsets of an access, by lane, in the memory of the span
	shuffled []shuffled
	before   v64 // the old values, if events report them
	was      v32
	olds     []uint64 // the values that a store overwrote, for its event
	tells    bool     // accesses have events
	span     span
	short    short
	late     [8]uint64 // scalar results of the current access
	isLate   bool

	log    *lanes.Log     // the accesses that have events; nil if none has
	said   *remembered    // nil if runs is nil
	shared unsafe.Pointer // the shared memory of the running warp's block
	// variables are the variables of shared memory that lists access.
	variables []*variable
	crew      *crew // nil before the first block
}

// loaded is the state of a machine for the text that it executes.
type loaded struct {
	t        *vcode.Text
	template []uint64 // the scalars at the start of a warp or call, without special registers
	specials []vcode.Fixed
	cache    []cached // by effect

	access  *lanes.Access // the first of reaches
	reaches []lanes.Access
	bases   []unsafe.Pointer // the memory of reaches
	begins  []uint64         // the address at which it begins, as in events
	events  []event.Event    // the events of reaches, without the fields that vary
	runs    []uint8          // by reach: the length of the last sequence that began there, 0 if none can; nil if none can anywhere
	epoch   uint64           // the epoch of the memory that reaches point to
	shares  bool             // lists have stores to shared memory

	machine *lanes.Compiled // the lists, once they are compiled
	lists   int             // executed before that, by earlier launches too
}

// registers is the state of a warp.
type registers struct {
	groups  []group
	cur     int   // the group that runs
	next    int32 // the least place of the other groups that can run
	several bool  // other groups can run
	slots   uint32
	sc      []uint64
	v32     []v32
	v64     []v64
	preds   []uint32
	local   []byte
	passed  []v64      // shadows passed to and from calls
	written []byte     // with shadows: the bits of local that were written
	stack   *callStack // nil if all calls are inlined
	files   lanes.Regs // the registers in the form of package lanes, with the scalars of the group that ran last
}

// group is the lanes of a warp that are at one place with the same scalars.
type group struct {
	mask  uint32
	pc    int32
	slot  int32  // the slot of its scalars
	frame int32  // the index in callStack.frames of the call it is in; 0 in the kernel
	ran   uint64 // Warp.Strain when it last ran
}

func newMachine(r *engine.Run, e *textEntry) *machine {
	t := e.Text
	x := &machine{r: r, of: e, stride: t.Scalars, own: uint64(t.Local), end: uint64(t.Local)}
	x.tells = r.Out.Needs&(event.NeedGlobal|event.NeedShared) != 0
	e.mu.Lock()
	x.slots, e.files = e.files, nil
	e.mu.Unlock()
	x.prepare(t)
	x.places = x.placesOf(t, r.Root)
	if t.Units != nil {
		x.prepareCalls()
	}
	return x
}

// prepare makes the machine execute a text.
func (x *machine) prepare(t *vcode.Text) {
	r := x.r
	x.loaded = loaded{t: t, template: make([]uint64, t.Scalars), cache: make([]cached, len(t.Effects))}
	for _, f := range t.Fixed {
		switch f.From {
		case vcode.FixedValue, vcode.FixedLocal:
			x.template[f.Reg] = f.Val
		case vcode.FixedParam:
			if f.Val+f.Size <= uint64(len(r.Params)) {
				x.template[f.Reg] = devmem.Uint(r.Params[f.Val:], f.Size)
			}
		case vcode.FixedSpecial:
			x.specials = append(x.specials, f)
		}
	}
	x.newReaches()
	x.machine, x.lists = t.ReadyCode(x.tells)
}

// placesOf returns the places of a text's effects in a frame, followed by those of Text.Origins.
func (x *machine) placesOf(t *vcode.Text, frame uint32) []uint32 {
	places := make([]uint32, len(t.Effects))
	bases := map[int32]uint32{-1: frame}
	var base func(call int32, fn *isa.Func) uint32
	base = func(call int32, fn *isa.Func) uint32 {
		b, ok := bases[call]
		if !ok {
			s := &t.Sites[call]
			b = x.r.Places.Enter(base(s.Call, s.Fn)+uint32(s.At), fn)
			bases[call] = b
		}
		return b
	}
	for i := range t.Effects {
		if at := t.Effects[i].Site; at >= 0 {
			s := &t.Sites[at]
			places[i] = base(s.Call, s.Fn) + uint32(s.At)
		}
	}
	for _, at := range t.Origins {
		s := &t.Sites[at]
		places = append(places, base(s.Call, s.Fn)+uint32(s.At))
	}
	return places
}

// scalars returns the scalars of a slot.
func (x *machine) scalars(v *registers, slot int32) []uint64 {
	n := x.stride
	return v.sc[int(slot)*n:][:n:n]
}

// takeSlot returns a free slot for the scalars of one more group.
func (x *machine) takeSlot(v *registers) int32 {
	s := int32(bits.TrailingZeros32(^v.slots))
	v.slots |= 1 << s
	if need := (int(s) + 1) * x.stride; need > len(v.sc) {
		v.sc = append(v.sc, make([]uint64, need-len(v.sc))...)
	}
	return s
}

// Start leaves the warp without a register file. The warp takes one when it first runs and returns it when its lanes
// have exited. So warps that run to their end without waiting use the same few cache lines one after the other.
func (x *machine) Start(w *engine.Warp, _ uint32) {
	if w.Own == nil {
		w.Own = &held{}
	}
	heldOf(w).exits.several = false
	if regsOf(w) != nil { // of a block that never ended
		x.release(w)
	}
}

// open gives package lanes the registers of a warp, except the scalars, and the machine's table of accesses.
func (x *machine) open(v *registers) {
	f := &v.files
	f.V32, f.V64, f.Preds, f.Reach, f.Log = &v.v32[0], &v.v64[0], &v.preds[0], x.access, x.log
}

// begin gives a warp its register file.
func (x *machine) begin(w *engine.Warp) {
	if x.calls != nil {
		x.turnTo(x.calls.units[0])
	}
	var v *registers
	switch {
	case len(x.pool) > 0:
		// The values that never change are still in the first slot.
		v, x.pool = x.pool[len(x.pool)-1], x.pool[:len(x.pool)-1]
	case len(x.slots) > 0:
		v, x.slots = x.slots[len(x.slots)-1], x.slots[:len(x.slots)-1]
		copy(x.scalars(v, 0), x.template)
		x.open(v)
	default:
		v = x.registers()
		copy(x.scalars(v, 0), x.template)
		x.open(v)
	}
	heldOf(w).registers = v
	if x.calls != nil {
		x.open(v)
		x.bottom(v)
	} else {
		clear(v.local)
		clear(v.written)
	}
	v.slots = 1
	v.groups = v.groups[:1]
	g := &v.groups[0] // field by field: copying a composite literal would stall on its own stores
	g.mask, g.pc, g.slot, g.frame, g.ran = w.Live, 0, 0, 0, 0
	v.cur, v.several, v.next = 0, false, math.MaxInt32
	w.Regroup = x.t.Lockstep
	s := x.scalars(v, 0)
	for _, f := range x.specials {
		s[f.Reg] = x.r.Special(w, 0, isa.SpecialID(f.Val))
	}
}

// registers makes a register file.
func (x *machine) registers() *registers {
	t := x.t
	v := &registers{v32: make([]v32, t.V32, t.V32+len(t.Const32)), v64: make([]v64, t.V64, t.V64+len(t.Const64)),
		preds: make([]uint32, t.Preds), sc: make([]uint64, x.stride), local: make([]byte, 32*t.Local), groups: make([]group, 0, 4)}
	if t.Shadows {
		v.written = make([]byte, len(v.local))
	}
	copy(v.v32[t.V32:cap(v.v32)], t.Const32)
	copy(v.v64[t.V64:cap(v.v64)], t.Const64)
	return v
}

// release takes the register file of a warp away.
func (x *machine) release(w *engine.Warp) {
	x.pool = append(x.pool, regsOf(w))
	heldOf(w).registers = nil
}

func (x *machine) Run(w *engine.Warp, end uint64) {
	if regsOf(w) == nil {
		x.begin(w)
	}
	if x.calls != nil {
		end = x.deepEnd(w, end)
	}
	for w.Time < end && !w.Over && w.Runnable() && x.r.Stop == nil {
		if w.Regroup {
			if x.choose(w); !w.Runnable() {
				break
			}
		}
		x.exec(w, end)
	}
	if w.Live == 0 {
		x.release(w)
	}
}

// held is the state that engine warp keeps for a warp (engine.Warp.Own).
type held struct {
	registers *registers // nil before a lane has run and after all have exited
	exits     exits
}

func heldOf(w *engine.Warp) *held { return w.Own.(*held) }

func regsOf(w *engine.Warp) *registers { return heldOf(w).registers }

// exits records the places at which the lanes of a warp exited.
type exits struct {
	place   uint32 // of all lanes, if several is false
	several bool   // the places are in each
	each    *v32
}

// note records that the lanes of mask exit at a place.
func (e *exits) note(mask, live, place uint32) {
	if !e.several && mask == live {
		e.place = place
		return
	}
	if e.each == nil {
		e.each = new(v32)
	}
	e.several = true
	lanes.Set32(e.each, place, mask)
}

// of returns the place at which a lane exited.
func (e *exits) of(lane int) uint32 {
	if e.several {
		return e.each[lane]
	}
	return e.place
}

// choose joins the groups that are at one place with equal scalars and chooses the group that runs next. Among the
// groups deepest in calls that is the one at the smallest place (the blocks of a loop are before the code after it), or
// else a group that has waited for long.
func (x *machine) choose(w *engine.Warp) {
	v := regsOf(w)
	w.Regroup = false
	n := 0
	for i := range v.groups {
		g := v.groups[i]
		if g.mask &= w.Live; g.mask == 0 {
			v.slots &^= 1 << g.slot
			v.stack.release(g.frame)
			continue
		}
		v.groups[n] = g
		n++
	}
	v.groups = v.groups[:n]
	v.several, v.next = false, math.MaxInt32
	if x.t.Lockstep {
		x.choosePath(w)
		return
	}
	if n == 1 {
		v.cur = 0
		w.Together(x.r, v.groups[0].mask&w.Ready)
		return
	}
	tells, ending := x.r.Out.Needs&event.NeedReconverge != 0, uint32(0)
	if tells {
		ending = x.ending(v)
		for i := range v.groups {
			on := v.groups[i].mask
			w.Apart = w.Apart || on&^ending != 0 && on|ending != w.Live
		}
	}
	if w.Strain >= w.Check {
		w.Forced = x.longWaiting(w)
		w.Period = x.r.Patience()
		w.Check = w.Strain + w.Period
	}
	from := w.Ready
	if w.Forced &= w.Ready; w.Forced != 0 {
		from = w.Forced
	}
	x.join(v, from)
	v.cur = -1
	for i := range v.groups {
		g := &v.groups[i]
		switch {
		case g.mask&from == 0:
		case v.cur < 0:
			v.cur = i
		default:
			v.several = true
			cur := &v.groups[v.cur]
			switch deeper := v.stack.depth(g.frame) - v.stack.depth(cur.frame); {
			case deeper > 0:
				v.next, v.cur = math.MaxInt32, i
			case deeper == 0 && g.pc < cur.pc:
				v.next, v.cur = cur.pc, i
			case deeper == 0:
				v.next = min(v.next, g.pc)
			}
		}
	}
	v.several = v.several || v.groups[v.cur].mask != w.Ready
	if tells {
		w.Together(x.r, v.groups[v.cur].mask|ending)
	}
}

// ending returns the lanes that are about to exit.
func (x *machine) ending(v *registers) (lanes uint32) {
	for i := range v.groups {
		if g := &v.groups[i]; x.textOf(v, g).Code[g.pc].Op == vcode.OpExit {
			lanes |= g.mask
		}
	}
	return lanes
}

// join joins the groups that are at one place with equal scalars, among the lanes of from.
func (x *machine) join(v *registers, from uint32) {
	for i := 0; i < len(v.groups); i++ {
		g := &v.groups[i]
		t := x.textOf(v, g)
		if g.mask&from == 0 || t.Meet[g.pc] < 0 {
			continue
		}
		for j := i + 1; j < len(v.groups); j++ {
			h := &v.groups[j]
			if h.pc != g.pc || h.frame != g.frame || h.mask&from == 0 || !x.agree(v, t, g, h) {
				continue
			}
			v.stack.release(h.frame)
			g.mask |= h.mask
			g.ran = min(g.ran, h.ran)
			v.slots &^= 1 << h.slot
			v.groups = append(v.groups[:j], v.groups[j+1:]...)
			j--
		}
	}
}

// agree reports whether two groups at one place have the same values in the scalars that are live there.
func (x *machine) agree(v *registers, t *vcode.Text, g, h *group) bool {
	a, b := x.scalars(v, g.slot), x.scalars(v, h.slot)
	for _, reg := range t.Meets[t.Meet[g.pc]] {
		if a[reg] != b[reg] {
			return false
		}
	}
	return true
}

// longWaiting returns the lanes of the group that has waited longest, and none if no group is starved.
func (x *machine) longWaiting(w *engine.Warp) uint32 {
	oldest, lanes := w.Strain-w.Period+1, uint32(0)
	v := regsOf(w)
	for i := range v.groups {
		if g := &v.groups[i]; g.mask&w.Ready != 0 && g.ran < oldest {
			oldest, lanes = g.ran, g.mask
		}
	}
	if lanes == w.Ready {
		return 0
	}
	return lanes
}

// part splits the lanes of mask off group i and returns the index of their new group.
func (x *machine) part(v *registers, i int, mask uint32) int {
	slot := x.takeSlot(v)
	g := &v.groups[i]
	copy(x.scalars(v, slot), x.scalars(v, g.slot))
	v.stack.retain(g.frame)
	n := len(v.groups)
	v.groups = slices.Grow(v.groups, 1)[:n+1]
	g = &v.groups[i]
	h := &v.groups[n]
	*h = *g
	g.mask &^= mask
	h.mask, h.slot = mask, slot
	return n
}

// carve makes the lanes of mask groups of their own and calls f for each.
func (x *machine) carve(v *registers, mask uint32, f func(g *group)) {
	for i, n := 0, len(v.groups); i < n; i++ {
		in := v.groups[i].mask & mask
		if in == 0 {
			continue
		}
		k := i
		if in != v.groups[i].mask {
			k = x.part(v, i, in)
		}
		f(&v.groups[k])
	}
}

func (x *machine) Woken(w *engine.Warp, mask uint32) {
	v := regsOf(w)
	for i := range v.groups {
		if g := &v.groups[i]; g.mask&mask != 0 {
			g.ran = w.Strain
		}
	}
}

func (x *machine) Hold(w *engine.Warp, mask uint32, _ uint32) {
	v := regsOf(w)
	if g := &v.groups[v.cur]; g.mask == mask {
		g.pc--
		return
	}
	x.carve(v, mask, func(g *group) { g.pc-- })
}

func (x *machine) Pass(w *engine.Warp, mask uint32) {
	x.carve(regsOf(w), mask, func(g *group) { g.pc++ })
}

// groupOf returns the group of a lane, and nil for a lane that has exited.
func (v *registers) groupOf(lane int) *group {
	if g := &v.groups[v.cur]; g.mask>>uint(lane)&1 != 0 {
		return g
	}
	for i := range v.groups {
		if g := &v.groups[i]; g.mask>>uint(lane)&1 != 0 {
			return g
		}
	}
	return nil
}

func (x *machine) Place(w *engine.Warp, lane int) uint32 {
	if w.Live>>uint(lane)&1 == 0 {
		return heldOf(w).exits.of(lane)
	}
	t, places, pc := x.t, x.places, int32(0)
	if x.calls != nil {
		t, places = x.calls.units[0].t, x.calls.root.places
	}
	if regsOf(w) != nil {
		g := regsOf(w).groupOf(lane)
		pc = g.pc
		if x.calls != nil {
			f := &regsOf(w).stack.frames[g.frame]
			t, places = f.unit.t, f.at.places
		}
	}
	// Find the next instruction with a place of its own: the instructions before it only compute.
	for ; int(pc) < len(t.Code); pc++ {
		if in := &t.Code[pc]; in.Op >= vcode.OpSwitch && in.Op <= vcode.OpAtomic {
			if p := places[in.A]; p != 0 {
				return p
			}
		}
	}
	return x.r.Root
}

func (x *machine) At(w *engine.Warp, lane int) *loader.Instr {
	g := regsOf(w).groupOf(lane)
	t := x.textOf(regsOf(w), g)
	return &t.Effects[t.Code[g.pc].A].Instr
}

func (x *machine) Value(w *engine.Warp, lane int, o *loader.Operand) uint64 {
	v := regsOf(w)
	switch o.Kind {
	case loader.OpUniform:
		return x.scalars(v, v.groupOf(lane).slot)[o.Reg]
	case loader.OpAffine32:
		return uint64(uint32(x.scalars(v, v.groupOf(lane).slot)[o.Reg] + uint64(lane)*o.Val))
	case loader.OpAffine64:
		return x.scalars(v, v.groupOf(lane).slot)[o.Reg] + uint64(lane)*o.Val
	case loader.OpPattern32:
		return uint64(uint32(x.scalars(v, v.groupOf(lane).slot)[o.Reg]) + x.textOf(v, v.groupOf(lane)).Patterns[o.Val].Low[lane])
	case loader.OpPattern64:
		return x.scalars(v, v.groupOf(lane).slot)[o.Reg] + x.textOf(v, v.groupOf(lane)).Patterns[o.Val].All[lane]
	case loader.OpV32:
		if v.stack != nil {
			return uint64(v.window32(lane)[o.Reg][lane])
		}
		return uint64(v.v32[o.Reg][lane])
	case loader.OpV64:
		if v.stack != nil {
			return v.window64(lane)[o.Reg][lane]
		}
		return v.v64[o.Reg][lane]
	case loader.OpPred:
		if v.stack != nil {
			return uint64(v.windowPreds(lane)[o.Reg] >> uint(lane) & 1)
		}
		return uint64(v.preds[o.Reg] >> uint(lane) & 1)
	}
	return o.Val
}

func (x *machine) Put(w *engine.Warp, lane int, d loader.Slot, val uint64) {
	v := regsOf(w)
	switch d.Kind {
	case loader.OpUniform:
		if x.isLate {
			x.late[d.At] = val
			return
		}
		x.scalars(v, v.groupOf(lane).slot)[d.Reg] = val
	case loader.OpV32:
		file := v.v32
		if v.stack != nil {
			file = v.window32(lane)
		}
		file[d.Reg][lane] = uint32(val)
	case loader.OpV64:
		file := v.v64
		if v.stack != nil {
			file = v.window64(lane)
		}
		file[d.Reg][lane] = val
	case loader.OpPred:
		file := v.preds
		if v.stack != nil {
			file = v.windowPreds(lane)
		}
		p := &file[d.Reg]
		*p = *p&^(1<<uint(lane)) | uint32(val&1)<<uint(lane)
	default:
		panic("BUG: a result without a register")
	}
}

func (x *machine) Argument(w *engine.Warp, lane int, in *loader.Instr, k int, off, size uint64) uint64 {
	at := 0
	for i := range k {
		at += opt.Pieces(in.CallSig.Params[i].Size)
	}
	return engine.LowBytes(x.Value(w, lane, &in.Actuals[at+int(off/8)])>>(off%8*8), size)
}

func (x *machine) Result(w *engine.Warp, lane int, in *loader.Instr, _ *isa.Func, val uint64) {
	if len(in.Results) > 0 {
		x.Put(w, lane, in.Results[0], val)
	}
}

func (x *machine) Local(w *engine.Warp, lane int) []byte {
	at := uint64(lane) * x.own
	return regsOf(w).local[at : at+x.end : at+x.end]
}

func (x *machine) ParamBytes(_ *engine.Warp, _ int, in *loader.Instr, off uint64) []byte {
	params := x.r.Params
	if off > uint64(len(params)) || in.Width > uint64(len(params))-off {
		return nil
	}
	return params[off : off+in.Width : off+in.Width]
}

// Element implements engine.Machine.
func (x *machine) Element(w *engine.Warp, lane int, in *loader.Instr, _ uint32) (addr uint64, size uint8) {
	if in.Element == 0 {
		return 0, 0
	}
	return x.Value(w, lane, &in.Operands[len(in.Operands)-1]), in.Element
}

// Running implements engine.Machine.
func (x *machine) Running(w *engine.Warp) uint32 {
	v := regsOf(w)
	if v == nil {
		return 0
	}
	return v.groups[v.cur].mask
}
