package isa

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// body is the decoding of one function.
type body struct {
	l      *linker
	u      *unit
	f      *Func
	errs   ptx.ErrorList
	scope  *scope
	locs   *locations
	frame  int // bytes of .param variables currently in scope, above the function's own
	cc     int32
	jumps  []jump
	spills map[string]*Spill
	named  map[string]int // offset of each formal parameter in the frame
	// taken and area are the stack of the function: see stackRows.
	taken Operand
	area  int
	// selected is the selector of the result of the current instruction.
	selected uint64
}

// scope is a naming scope: a block of statements.
type scope struct {
	up     *scope
	names  map[string]*local
	ranges map[string]*registers // `%r<9>` by prefix
	// numbered is, by prefix, the least index that a name declared alone could have in a range: see fresh.
	numbered map[string]int
	labels   map[string]*label
	protos   map[string]*ptx.Prototype
	targets  map[string]*ptx.TargetList
}

// local is a name in a function: a register, a parameter, or a variable.
type local struct {
	regs   *registers // of a register
	param  bool       // a .param variable at off of the parameter frame
	formal bool       // which is a parameter of the function itself
	local  bool       // a .local variable at off of the local frame
	v      *Var       // of a variable with an address of its own
	off    int
	size   int
	elem   int // bytes of an element of a .local or .param variable
}

// registers is one declared register or range of registers; slots are assigned at first use.
type registers struct {
	typ   Type
	vec   int
	n     int // of a range; 1 otherwise
	slots map[int]int32
}

// label is a branch target.
type label struct {
	name string
	pos  ptx.Pos
	at   int32
}

// jump is a branch whose targets are resolved when all labels are placed.
type jump struct {
	inst   int
	labels []*label
}

// maxInsts bounds the instructions of a function, so that indices fit everywhere they are kept.
const maxInsts = 1 << 24

// function decodes the body of a function. Errors go to Func.Err.
func (l *linker) function(f *Func) {
	u := l.unitOf(f)
	b := &body{l: l, u: u, f: f, locs: newLocations(u, f.Decl), frame: f.ParamFrame, cc: -1, spills: map[string]*Spill{},
		named: map[string]int{}}
	b.open(f.Decl.Body)
	b.formals(f.Decl.Params, f.Sig.Params)
	b.formals(f.Decl.Rets, f.Sig.Rets)
	b.stack()
	b.statements(f.Decl.Body)
	b.end()
	f.LocalFrame = alignUp(f.LocalFrame, 16)
	f.ParamFrame = alignUp(f.ParamFrame, 16)
	b.place()
	b.spill()
	f.Locs = b.locs.list()
	if f.LocalFrame > maxFrame || f.ParamFrame > maxFrame {
		b.errorf(f.Decl.Pos, "the local variables of %s take more than %d KiB", f.Name, maxFrame>>10)
		f.LocalFrame, f.ParamFrame = 0, 0
	}
	b.errs.Sort()
	u.locate(f.Decl, b.errs)
	f.Err = b.errs.Err()
	if f.Err == nil {
		leaders(f)
		watchRegisters(f)
		flow(f)
		copies(f)
	}
}

func (b *body) errorf(pos ptx.Pos, format string, args ...any) {
	b.errs = append(b.errs, &ptx.Error{File: b.u.m.Name, Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// open begins a scope. Labels and prototypes of a block can be used before their declaration.
func (b *body) open(blk *ptx.Block) {
	s := &scope{up: b.scope, names: map[string]*local{}, ranges: map[string]*registers{}, numbered: map[string]int{}, labels: map[string]*label{},
		protos: map[string]*ptx.Prototype{}, targets: map[string]*ptx.TargetList{}}
	b.scope = s
	for _, st := range blk.Stmts {
		switch st := st.(type) {
		case *ptx.Label:
			if old := s.labels[st.Name]; old != nil {
				b.errorf(st.Pos, "label %s stands twice (first in line %d)", st.Name, old.pos.Line)
			}
			s.labels[st.Name] = &label{name: st.Name, pos: st.Pos, at: -1}
		case *ptx.Prototype:
			s.protos[st.Name] = st
		case *ptx.TargetList:
			s.targets[st.Name] = st
		case *ptx.File:
			b.u.files[st.Index] = st.Name
		}
	}
}

// formals declares the function's own parameters or results.
func (b *body) formals(vars []*ptx.Var, ps []Param) {
	i := 0
	for _, v := range vars {
		for j := range v.Names {
			p := &ps[i]
			i++
			b.fresh(&v.Names[j])
			if slices.Contains(v.Names[j].Dims, -1) {
				b.errorf(v.Names[j].Pos, "parameters without a size are not supported: %s", p.Name)
			}
			if p.Off >= 0 {
				b.scope.names[p.Name] = &local{param: true, formal: true, off: p.Off, size: p.Size, elem: declaredSize(v)}
				b.named[p.Name] = p.Off
				continue
			}
			r := b.register(v, &v.Names[j])
			p.Reg = b.slot(r, 0)
			for k := 1; k < p.Vec; k++ {
				ps[i].Reg = p.Reg + int32(k)
				i++
			}
		}
	}
}

func (b *body) statements(blk *ptx.Block) {
	for _, st := range blk.Stmts {
		switch st := st.(type) {
		case *ptx.Inst:
			b.inst(st)
		case *ptx.Label:
			if l := b.scope.labels[st.Name]; l.at < 0 {
				l.at = int32(len(b.f.Insts))
			}
		case *ptx.Block:
			frame := b.frame
			b.open(st)
			b.statements(st)
			b.scope, b.frame = b.scope.up, frame
		case *ptx.Var:
			for i := range st.Names {
				b.declare(st, &st.Names[i])
			}
		case *ptx.Loc:
			b.locs.directive(st)
		}
	}
}

// fresh handles a name that the scope already has. Ranges may overlap, as NVIDIA's assembler allows.
func (b *body) fresh(n *ptx.VarName) {
	s := b.scope
	known := s.names[n.Name] != nil || s.inRange(n.Name) != nil
	if n.Range >= 0 {
		least, ok := s.numbered[n.Name]
		known = s.ranges[n.Name] != nil || ok && least < n.Range
	}
	if known {
		b.errorf(n.Pos, "%s is declared twice in one scope", n.Name)
	}
	for prefix, i := range splits(n.Name) {
		if least, ok := s.numbered[prefix]; n.Range < 0 && (!ok || i < least) {
			s.numbered[prefix] = i
		}
	}
}

// declare declares a variable of the function.
func (b *body) declare(d *ptx.Var, n *ptx.VarName) {
	b.fresh(n)
	if _, ok := typeByName[d.Type]; !ok {
		b.errorf(d.Pos, "variables of type .%s are not supported%s", d.Type, didYouMean(d.Type, typeNames[1:]))
		return
	}
	size, elem := varSize(d, n)
	align := d.Align
	if align == 0 {
		align = max(int(elem), 1)
	}
	if d.Space != "reg" && size > maxVar || (d.Space == "param" || d.Space == "local") && size > maxFrame {
		b.errorf(n.Pos, "variable %s is too large", n.Name)
		return
	}
	switch d.Space {
	case "reg":
		b.register(d, n)
	case "param":
		b.frame = alignUp(b.frame, align)
		b.scope.names[n.Name] = &local{param: true, off: b.frame, size: int(size), elem: int(elem)}
		b.frame = min(b.frame+int(size), 2*maxFrame)
		b.f.ParamFrame = max(b.f.ParamFrame, b.frame)
	case "local":
		b.scope.names[n.Name] = &local{local: true, off: b.localSpace(int(size), align), size: int(size), elem: int(elem)}
		if n.Init != nil {
			b.errorf(n.Init.Pos, "initialised .local variables are not supported: %s", n.Name)
		}
	case "shared", "global", "const":
		b.declareStatic(d, n)
	default:
		b.errorf(d.Pos, ".%s variables in functions are not supported: %s", d.Space, n.Name)
	}
}

// declareStatic declares a shared, global or constant variable in a function.
func (b *body) declareStatic(d *ptx.Var, n *ptx.VarName) {
	v := &Var{Index: len(b.l.out.Vars), Name: n.Name, In: b.f}
	fillVar(v, &symbol{varDecl: d, varName: n, linkage: d.Linkage})
	b.l.out.Vars = append(b.l.out.Vars, v)
	b.scope.names[n.Name] = &local{v: v}
	if n.Init != nil {
		lookup := func(name string) *symbol {
			if s := b.scope.find(name); s != nil && s.v != nil {
				return &symbol{v: s.v, defined: true}
			}
			return b.u.target(name)
		}
		b.l.initialise(b.u, v, d, n, lookup)
	}
}

// localSpace reserves bytes of the local frame and returns their offset.
func (b *body) localSpace(size, align int) int {
	at := alignUp(b.f.LocalFrame, align)
	b.f.LocalFrame = min(at+size, 2*maxFrame)
	return at
}

// register declares a register or a range of them.
func (b *body) register(d *ptx.Var, n *ptx.VarName) *registers {
	r := &registers{typ: typeByName[d.Type], vec: max(d.Vector, 1), n: 1, slots: map[int]int32{}}
	if len(n.Dims) > 0 {
		b.errorf(n.Pos, "arrays of registers are not supported: %s", n.Name)
	}
	if n.Range >= 0 {
		r.n = n.Range
		b.scope.ranges[n.Name] = r
		return r
	}
	b.scope.names[n.Name] = &local{regs: r}
	return r
}

// slot returns the first slot of register i of r.
func (b *body) slot(r *registers, i int) int32 {
	s, ok := r.slots[i]
	if !ok {
		s = int32(b.f.Regs)
		b.f.Regs += r.vec * slotsOf(r.typ)
		r.slots[i] = s
	}
	return s
}

// slotsOf is the number of 8-byte slots of a scalar register.
func slotsOf(t Type) int {
	if t == B128 {
		return 2
	}
	return 1
}

// find looks a name up from the innermost scope outward. It returns nil if the function has no such name.
func (s *scope) find(name string) *local {
	for ; s != nil; s = s.up {
		if x := s.names[name]; x != nil {
			return x
		}
		if x := s.inRange(name); x != nil {
			return x
		}
	}
	return nil
}

// inRange looks `%r12` up among ranges like `%r<20>`.
func (s *scope) inRange(name string) *local {
	if len(s.ranges) == 0 {
		return nil
	}
	for prefix, i := range splits(name) {
		if r := s.ranges[prefix]; r != nil && i < r.n {
			return &local{regs: r, off: i}
		}
	}
	return nil
}

// splits yields the prefixes and indices of which a name like `%r12` may consist: `%r1` and 2, `%r` and 12.
func splits(name string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		i, scale, at := 0, 1, len(name)
		for at > 1 && name[at-1] >= '0' && name[at-1] <= '9' && len(name)-at < 9 {
			at--
			i += int(name[at]-'0') * scale
			scale *= 10
			if name[at] == '0' && at < len(name)-1 {
				continue // a leading zero belongs to the prefix
			}
			if !yield(name[:at], i) {
				return
			}
		}
	}
}

func (s *scope) label(name string) *label {
	for ; s != nil; s = s.up {
		if x := s.labels[name]; x != nil {
			return x
		}
	}
	return nil
}

func (s *scope) proto(name string) *ptx.Prototype {
	for ; s != nil; s = s.up {
		if x := s.protos[name]; x != nil {
			return x
		}
	}
	return nil
}

func (s *scope) targetList(name string) *ptx.TargetList {
	for ; s != nil; s = s.up {
		if x := s.targets[name]; x != nil {
			return x
		}
	}
	return nil
}

// inst decodes one instruction.
func (b *body) inst(src *ptx.Inst) {
	if len(b.f.Insts) >= maxInsts {
		if len(b.f.Insts) == maxInsts {
			b.errorf(src.Pos, "a function has at most %d instructions", maxInsts)
			b.f.Insts = append(b.f.Insts, Inst{})
		}
		return
	}
	list, err := b.l.spell(src.Op, src.Mods, b.u.era)
	if err != nil {
		b.errorf(src.Pos, "%v", err)
		return
	}
	// Of several forms use the one that fits the operands. If none does, report the errors of the first with as many
	// operands.
	var in Inst
	before := len(b.errs)
	var why ptx.ErrorList
	hasShape := false
	for i, sp := range list {
		in = sp.proto
		in.Source, in.File, in.Loc, in.Made = src, b.u.m, b.locs.now, b.locs.made
		insts := len(b.f.Insts)
		shape := b.operands(&in, sp)
		if len(b.errs) == before {
			why = nil
			break
		}
		b.f.Insts = b.f.Insts[:insts]
		if i == 0 || shape && !hasShape {
			why = slices.Clone(b.errs[before:])
		}
		hasShape = hasShape || shape
		b.errs = b.errs[:before]
	}
	b.errs = append(b.errs, why...)
	b.guard(&in)
	if len(b.errs) > before {
		return
	}
	b.finish(&in)
	b.f.Insts = append(b.f.Insts, in)
}

// finish completes what depends on the operands.
func (b *body) finish(in *Inst) {
	in.Tool = strings.HasPrefix(b.f.Name, ToolPrefix)
	switch {
	case in.Class == Load || in.Class == Store || in.Class == Atomic:
		b.widenAddress(in, &in.Src[0], in.Space)
	case in.Class == Call && in.Callee == nil:
		b.widenAddress(in, &in.Src[0], event.NoSpace)
	case in.Row.Op == "isspacep":
		b.widenAddress(in, &in.Src[0], event.Generic)
	}
	if in.Class == Pure {
		for _, s := range in.Src {
			if s.Kind == SpecialReg {
				in.Class = Special
			}
		}
	}
	if !b.f.Entry && in.Space == event.Param && !in.Has("param::entry") {
		b.paramInLocal(in)
	}
	if in.Row.Op == "cvt" && in.Type.Signed() && len(in.Dst) == 1 && len(in.Src) == 1 {
		if size := in.Dst[0].Size; int(size) > in.Type.Size() {
			inner, t := in.Eval, in.Type
			in.Eval = func(in *Inst, a *Args) {
				inner(in, a)
				a.D[0] = t.Extend(a.D[0], size)
			}
		}
	}
}

// paramInLocal converts operations of a device function on the address of one of its parameters to operations on an
// address in local space, where such parameters are.
func (b *body) paramInLocal(in *Inst) {
	switch {
	case in.Row.Op == "cvta":
		in.Space = event.Local
		in.Row.Bind(in)
	case (in.Class == Load || in.Class == Store) && in.Src[0].Kind == Reg:
		in.Space = event.Local
	}
}

func (b *body) guard(in *Inst) {
	if in.Source.Pred == "" {
		return
	}
	x := b.scope.find(in.Source.Pred)
	if x == nil || x.regs == nil || x.regs.typ != Pred {
		b.errorf(in.Source.Pos, "guard %s is not a declared predicate register", in.Source.Pred)
		return
	}
	in.Guard, in.GuardNot = b.slot(x.regs, x.off), in.Source.PredNot
}

// end appends a ret if control can fall off the end of the function.
func (b *body) end() {
	f := b.f
	n := len(f.Insts)
	if n > 0 && !b.endIsTarget(int32(n)) {
		last := &f.Insts[n-1]
		if last.Guard < 0 {
			switch last.Class {
			case Ret, Exit, Branch, Trap:
				return
			}
		}
	}
	list, _ := b.l.spell("ret", "", today)
	in := list[0].proto
	in.Source = &ptx.Inst{Pos: f.Decl.Body.End, Op: "ret"}
	in.File, in.Loc = b.u.m, b.locs.now
	f.Insts = append(f.Insts, in)
}

func (b *body) endIsTarget(n int32) bool {
	for _, j := range b.jumps {
		for _, l := range j.labels {
			if l.at == n {
				return true
			}
		}
	}
	return false
}

// place fills in the targets of branches.
func (b *body) place() {
	for _, j := range b.jumps {
		if j.inst >= len(b.f.Insts) {
			continue // its instruction was refused
		}
		in := &b.f.Insts[j.inst]
		in.Targets = make([]int32, len(j.labels))
		for i, l := range j.labels {
			in.Targets[i] = l.at
		}
	}
}

// spill converts accesses to parameters whose address is taken to accesses to their place in the local frame.
func (b *body) spill() {
	if len(b.spills) == 0 {
		return
	}
	for _, p := range b.f.Sig.Params {
		if s := b.spills[p.Name]; s != nil {
			b.f.Spills = append(b.f.Spills, *s)
		}
	}
	for i := range b.f.Insts {
		in := &b.f.Insts[i]
		if in.Class != Load && in.Class != Store || len(in.Src) == 0 || in.Src[0].Kind != ParamAddr {
			continue
		}
		for _, s := range b.f.Spills {
			if at := int(in.Src[0].Imm); at >= s.Param && at < s.Param+max(s.Size, 1) {
				in.Src[0] = Operand{Kind: LocalAddr, Imm: uint64(s.Local + at - s.Param)}
				in.Space = event.Local
				break
			}
		}
	}
}

// describe returns an operand as written, for messages.
func describe(o *ptx.Operand) string {
	switch o.Kind {
	case ptx.OperandAddr:
		return "an address in brackets"
	case ptx.OperandVector:
		return "a vector"
	case ptx.OperandPair:
		return "a pair"
	case ptx.OperandList:
		return "a list in parentheses"
	case ptx.OperandNot:
		return "!" + o.Args[0].Name
	case ptx.OperandNeg:
		return "-" + o.Args[0].Name
	case ptx.OperandString:
		return "a string"
	}
	return strings.TrimSpace(o.Name)
}
