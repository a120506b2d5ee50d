package opt

import (
	"errors"
	"fmt"

	"fencepost.dev/fencepost/internal/isa"
)

// ErrUnsupported says that a kernel has no internal form: it is too large, or its warps run in lockstep and it contains
// something that has no form there (Env.Lockstep). The reference engine runs it then.
var ErrUnsupported = errors.New("not expressible in the internal form")

const (
	// maxInstrs bounds the size of a function.
	maxInstrs = 1 << 20
	// maxInlined bounds the size of a Func without its own function. maxNest bounds the depth of inlined calls in it.
	// Calls beyond these bounds are not inlined. The compiler's tables grow with the square of the size.
	maxInlined = 1 << 16
	// maxSpent bounds what is inlined in all functions of a kernel together.
	maxSpent = 4 * maxInlined
	maxNest  = 64
	// frameAlign is the alignment of a frame of local memory: that of the widest access.
	frameAlign = 32
	// ampleLocal is an amount of local memory far below the limit of a thread.
	ampleLocal = 256 << 10
)

// Build converts a kernel and the functions that are not inlined to internal form, the kernel first.
func Build(kernel *isa.Func, env Env) ([]*Func, error) {
	graph := newCallGraph()
	seen := map[*isa.Func]bool{kernel: true}
	todo := []*isa.Func{kernel}
	var built []*Func
	memory := false
	spent := 0
	for i := 0; i < len(todo); i++ {
		if env.Lockstep {
			if err := inStep(graph, todo[i]); err != nil {
				return nil, err
			}
		}
		if len(todo[i].Insts) > maxInstrs {
			return nil, fmt.Errorf("%w: %s has %d instructions", ErrUnsupported, todo[i].Name, len(todo[i].Insts))
		}
		f, inlined := buildFunc(todo[i], env, graph, min(maxInlined, maxSpent-spent))
		spent += inlined
		if env.Lockstep && f.hasCalls() {
			return nil, fmt.Errorf("%w: warps in lockstep, and calls that are not inlined", ErrUnsupported)
		}
		built = append(built, f)
		memory = memory || f.Local > 0
		for _, g := range f.Calls {
			if !seen[g] {
				seen[g] = true
				todo = append(todo, g)
			}
		}
	}
	if env.Uninit {
		for _, f := range built {
			Shadow(f, memory)
		}
	}
	return built, nil
}

// buildFunc builds one function with at most so many instructions inlined, and says how many there are.
func buildFunc(fn *isa.Func, env Env, graph *callGraph, most int) (f *Func, inlined int) {
	b := &builder{
		most:    most,
		f:       &Func{Fn: fn, Env: env},
		graph:   graph,
		aligns:  MayHaveElements(fn),
		defs:    map[*Block]map[int32]Value{},
		pending: map[*Block]map[int32]*Instr{},
		phiUses: map[*Instr][]*Instr{},
	}
	entry := b.expand(fn, nil, -1, nil)
	if !fn.Entry {
		entry = &draft{fr: entry.fr, prologue: true, succs: []*draft{entry}}
	}
	b.fill(entry)
	b.finish()
	return b.f, b.size
}

// frame is one inlined instance of a function.
type frame struct {
	fn     *isa.Func
	up     *frame
	level  int   // number of inlined calls above it
	call   int32 // site of the call; -1 in the function that is built
	regs   int32 // variable of register slot 0
	params int32 // variable of byte 0 of the parameter frame, which holds results and the .param variables that blocks share
	local  uint64
	// formals are the bytes of the parameters, as set by the call.
	formals map[int]atom
	leads   map[int]*draft // the block that starts at an instruction
	meets   map[int]uint64 // Env.Lockstep: the instructions at which lanes reconverge, -1 for after the call, and the Imm of the Meet there
}

// atom is one byte of a value.
type atom struct {
	v Value
	k uint8
}

// draft is a block before its instructions are in SSA form.
type draft struct {
	fr       *frame
	from, to int // instructions [from, to)
	// check: the block only tests the guard of instruction from, which is alone in the block Succs[0].
	check bool
	// applied: the guard of instruction from has been tested.
	applied bool
	// prologue: the block at which a called function receives its parameters.
	prologue bool
	// inlines is the callee whose entry follows. returns is the callee that has returned when the block begins.
	inlines, returns *frame
	before           *draft // the block of the call that returns here, or the block that this one continues
	params           map[int]atom
	succs, preds     []*draft
	block            *Block
	filled           bool
}

// variable is a register, or a byte of the parameter frame, of one frame. Its index is the key of read and write.
type variable struct {
	// writes counts the instructions that write a register. Most registers have one. Dominance then says whether this
	// definition reaches a block, and no block in between needs a phi for it.
	writes int32
	v      Value // of the one definition; NoValue before it is built
	at     *Block
}

type builder struct {
	f       *Func
	graph   *callGraph
	vars    []variable
	local   uint64
	size    int // instructions that are inlined
	most    int // how many may be
	dom     *DomTree
	defs    map[*Block]map[int32]Value
	pending map[*Block]map[int32]*Instr // phis of blocks whose predecessors are not all filled
	draft   map[*Block]*draft
	phiUses map[*Instr][]*Instr
	subst   substitution // for the values of removed phis
	zeros   [3]Value
	hasZero [3]bool
	entry   *Block
	cur     *draft
	site    int32
	meets   uint64 // number of Meets so far
	aligns  bool   // there may be elements, see FindElements
}

// splits reports whether a guard on the instruction becomes control flow.
func splits(in *isa.Inst) bool {
	switch in.Class {
	case isa.Pure, isa.Special, isa.Load, isa.Store, isa.Atomic, isa.Hint:
		return false
	case isa.Branch:
		return in.Guard >= 0 && len(in.Src) > 0 // brx.idx
	}
	return in.Guard >= 0
}

// ends reports whether the instruction ends its block.
func ends(in *isa.Inst) bool {
	switch in.Class {
	case isa.Branch, isa.Ret, isa.Exit, isa.Trap:
		return true
	case isa.Call:
		return in.Callee == nil || in.Callee.Builtin == ""
	}
	return false
}

// expand drafts the blocks of one instance of fn and of all functions inlined in it.
func (b *builder) expand(fn *isa.Func, up *frame, call int32, cont *draft) *draft {
	fr := &frame{fn: fn, up: up, call: call, leads: map[int]*draft{}, formals: map[int]atom{}}
	if up != nil {
		fr.level = up.level + 1
		b.size += len(fn.Insts)
	}
	b.declare(fr)
	if fn.LocalFrame > 0 && b.local > 0 {
		b.local++ // so that the end of a frame is not the beginning of the next: see promoter.mayReach
	}
	b.local = (b.local + frameAlign - 1) &^ (frameAlign - 1)
	fr.local = b.local
	b.local += uint64(fn.LocalFrame)
	if fn.LocalFrame > 0 {
		b.f.Frames = append(b.f.Frames, [2]uint64{fr.local, b.local})
	}
	if int(b.local) > b.f.Local {
		b.f.Local = int(b.local)
	}
	b.leaders(fr)
	for at := 0; at < len(fn.Insts); {
		d := fr.leads[at]
		b.link(d, cont)
		at = d.to
		if d.check {
			inner := d.succs[0]
			b.link(inner, cont)
			at = inner.to
		}
	}
	return fr.leads[0]
}

// declare makes the variables of a frame and counts the instructions that write them.
func (b *builder) declare(fr *frame) {
	fn := fr.fn
	fr.regs = int32(len(b.vars))
	fr.params = fr.regs + int32(fn.Regs)
	for range fn.Regs + fn.ParamFrame {
		b.vars = append(b.vars, variable{v: NoValue})
	}
	count := func(ops []isa.Operand) {
		for i := range ops {
			if ops[i].Kind == isa.Reg {
				b.vars[fr.regs+ops[i].Reg].writes++
			}
		}
	}
	for i := range fn.Insts {
		count(fn.Insts[i].Dst)
		count(fn.Insts[i].RetOps)
	}
	for _, p := range fn.Sig.Params {
		if p.Off < 0 {
			b.vars[fr.regs+p.Reg].writes++
		}
	}
}

// stays reports whether a call in a frame is not inlined.
func (b *builder) stays(fr *frame, in *isa.Inst) bool {
	fn := in.Callee
	return fn == nil || fn.Called || !hasBody(fn) || fr.level >= maxNest || b.size+len(fn.Insts) > b.most || b.graph.recursive(fn)
}

// leaders cuts a function into drafts.
func (b *builder) leaders(fr *frame) {
	insts := fr.fn.Insts
	lead := make([]bool, len(insts)+1)
	lead[0] = true
	if b.f.Env.Lockstep {
		b.meetings(fr, lead)
	}
	for i := range insts {
		in := &insts[i]
		for _, t := range in.Targets {
			lead[t] = true
		}
		if splits(in) {
			lead[i], lead[i+1] = true, true
		}
		if ends(in) {
			lead[i+1] = true
		}
	}
	for i := 0; i < len(insts); {
		j := i + 1
		for j < len(insts) && !lead[j] {
			j++
		}
		d := &draft{fr: fr, from: i, to: j}
		if splits(&insts[i]) {
			inner := &draft{fr: fr, from: i, to: j, applied: true, before: d}
			d.check, d.to = true, i
			d.succs = []*draft{inner}
		}
		fr.leads[i] = d
		i = j
	}
}

// link sets the successors of a draft, drafting callees on the way.
func (b *builder) link(d *draft, cont *draft) {
	fn := d.fr.fn
	next := func(i int) *draft {
		n := d.fr.leads[i]
		if n == nil {
			panic("BUG: control runs off the end of " + fn.Name)
		}
		return n
	}
	if d.check {
		d.succs = append(d.succs, next(d.succs[0].to))
		return
	}
	in := &fn.Insts[d.to-1]
	switch {
	case in.Class == isa.Branch:
		for _, t := range in.Targets {
			d.succs = append(d.succs, next(int(t)))
		}
		if in.Guard < 0 || d.applied || d.succs[0] == d.fr.leads[d.to] {
			return
		}
	case in.Class == isa.Exit, in.Class == isa.Trap:
		return
	case in.Class == isa.Ret:
		if cont != nil {
			d.succs = []*draft{cont}
		}
		return
	case ends(in) && !b.stays(d.fr, in):
		join := &draft{fr: d.fr, from: d.to, to: d.to, before: d, succs: []*draft{next(d.to)}}
		entry := b.expand(in.Callee, d.fr, b.siteOf(d.fr, d.to-1), join)
		d.inlines, join.returns = entry.fr, entry.fr
		d.succs = []*draft{entry}
		return
	}
	d.succs = append(d.succs, next(d.to))
}

// siteOf numbers the place of an instruction of a frame.
func (b *builder) siteOf(fr *frame, at int) int32 {
	b.f.Sites = append(b.f.Sites, Site{Call: fr.call, Fn: fr.fn, At: int32(at)})
	return int32(len(b.f.Sites) - 1)
}

// fill puts the drafts reachable from entry into SSA form, predecessors first (Braun et al., "Simple and Efficient
// Construction of Static Single Assignment Form", CC 2013).
func (b *builder) fill(entry *draft) {
	order := postorder(entry)
	b.draft = map[*Block]*draft{}
	// A fresh entry block holds constants and has no predecessors, even if the kernel's first block has some.
	b.entry = &Block{}
	b.f.Blocks = append(b.f.Blocks, b.entry)
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		d.block = &Block{ID: len(b.f.Blocks)}
		b.f.Blocks = append(b.f.Blocks, d.block)
		b.draft[d.block] = d
	}
	b.entry.Succs = []*Block{entry.block}
	entry.block.Preds = append(entry.block.Preds, b.entry)
	for _, d := range order {
		for _, s := range d.succs {
			s.preds = append(s.preds, d)
		}
	}
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		for _, s := range d.succs {
			d.block.Succs = append(d.block.Succs, s.block)
			s.block.Preds = append(s.block.Preds, d.block)
		}
	}
	b.dom = Dominators(b.f)
	b.defs[b.entry] = map[int32]Value{}
	for i := len(order) - 1; i >= 0; i-- {
		b.cur = order[i]
		b.defs[b.cur.block] = map[int32]Value{}
		if !b.ready(b.cur) {
			b.pending[b.cur.block] = map[int32]*Instr{}
		}
		b.block(b.cur)
		b.cur.filled = true
		for _, s := range b.cur.succs {
			if b.pending[s.block] != nil && b.ready(s) {
				b.seal(s.block)
			}
		}
	}
	b.add(b.entry, &Instr{Op: Jump, Site: -1, Guard: NoValue})
}

// ready reports whether every predecessor has been filled.
func (b *builder) ready(d *draft) bool {
	for _, p := range d.preds {
		if !p.filled {
			return false
		}
	}
	return true
}

func postorder(entry *draft) []*draft {
	var order []*draft
	seen := map[*draft]bool{entry: true}
	type visit struct {
		d *draft
		i int
	}
	stack := []visit{{entry, 0}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.i < len(top.d.succs) {
			s := top.d.succs[top.i]
			top.i++
			if !seen[s] {
				seen[s] = true
				stack = append(stack, visit{s, 0})
			}
			continue
		}
		order = append(order, top.d)
		stack = stack[:len(stack)-1]
	}
	return order
}

// add appends an instruction to a block.
func (b *builder) add(bl *Block, in *Instr) *Instr {
	in.Block = bl
	bl.Instrs = append(bl.Instrs, in)
	return in
}

// emit appends an instruction with one result to the current block.
func (b *builder) emit(op Op, w Width, imm uint64, args ...Value) Value {
	in := &Instr{Op: op, Site: b.site, Guard: NoValue, Args: args, Imm: imm}
	v := b.f.NewValue(w, in)
	in.Dst = []Value{v}
	b.add(b.cur.block, in)
	return v
}

// konst returns a constant. Constants are in the entry block.
func (b *builder) konst(w Width, x uint64) Value {
	in := &Instr{Op: Const, Site: -1, Guard: NoValue, Imm: x & w.Mask()}
	v := b.f.NewValue(w, in)
	in.Dst = []Value{v}
	b.add(b.entry, in)
	return v
}

// zero is the value of a register before it is written.
func (b *builder) zero(w Width) Value {
	if !b.hasZero[w] {
		b.zeros[w], b.hasZero[w] = b.konst(w, 0), true
		if b.f.Env.Uninit {
			b.f.Def(b.zeros[w]).Aux = undefinedConst
		}
	}
	return b.zeros[w]
}

func (b *builder) write(key int32, v Value) {
	if d := &b.vars[key]; d.writes == 1 {
		if d.v != NoValue {
			panic("BUG: a second definition of the only one")
		}
		d.v, d.at = v, b.cur.block
		return
	}
	b.defs[b.cur.block][key] = v
}

func (b *builder) read(bl *Block, key int32, w Width) Value {
	if d := &b.vars[key]; d.v != NoValue && b.dom.Dominates(d.at, bl) {
		return b.find(d.v)
	}
	if v, ok := b.defs[bl][key]; ok {
		return b.find(v)
	}
	var v Value
	switch {
	case bl == b.entry:
		v = b.zero(w)
	case b.pending[bl] != nil:
		phi := b.phi(bl, w)
		b.pending[bl][key] = phi
		v = phi.Result()
	case len(bl.Preds) == 1:
		v = b.read(bl.Preds[0], key, w)
	default:
		phi := b.phi(bl, w)
		b.defs[bl][key] = phi.Result()
		v = b.operands(phi, key, w)
	}
	b.defs[bl][key] = v
	return v
}

func (b *builder) phi(bl *Block, w Width) *Instr {
	phi := &Instr{Op: Phi, Site: -1, Guard: NoValue, Block: bl}
	phi.Dst = []Value{b.f.NewValue(w, phi)}
	bl.Instrs = append([]*Instr{phi}, bl.Instrs...)
	return phi
}

func (b *builder) operands(phi *Instr, key int32, w Width) Value {
	for _, p := range phi.Block.Preds {
		v := b.read(p, key, w)
		phi.Args = append(phi.Args, v)
		if d := b.f.Def(v); d != nil && d.Op == Phi {
			b.phiUses[d] = append(b.phiUses[d], phi)
		}
	}
	return b.simplify(phi)
}

// simplify removes a phi whose operands are all one value, and then the phis that become trivial thereby.
func (b *builder) simplify(phi *Instr) Value {
	self := phi.Result()
	same := NoValue
	for _, a := range phi.Args {
		a = b.find(a)
		if a == same || a == self {
			continue
		}
		if same != NoValue {
			return self
		}
		same = a
	}
	if same == NoValue {
		same = b.zero(b.f.Width(self)) // unreachable or undefined
	}
	b.subst.replace(self, same)
	phi.Op = Nop
	users := b.phiUses[phi]
	delete(b.phiUses, phi)
	if d := b.f.Def(same); d != nil && d.Op == Phi {
		b.phiUses[d] = append(b.phiUses[d], users...)
	}
	for _, u := range users {
		if u.Op == Phi && u != phi && len(u.Args) == len(u.Block.Preds) {
			b.simplify(u)
		}
	}
	return b.find(same)
}

func (b *builder) seal(bl *Block) {
	phis := b.pending[bl]
	delete(b.pending, bl)
	keys := make([]int32, 0, len(phis))
	for k := range phis {
		keys = append(keys, k)
	}
	sortKeys(keys)
	for _, k := range keys {
		phi := phis[k]
		v := b.operands(phi, k, b.f.Width(phi.Result()))
		if b.find(b.defs[bl][k]) == phi.Result() {
			b.defs[bl][k] = v
		}
	}
}

func (b *builder) find(v Value) Value { return b.subst.find(v) }
