package opt

import (
	"slices"

	"fencepost.dev/fencepost/internal/isa"
)

// ParamPart is a piece of a parameter or result that a call passes in one value, zero-extended.
type ParamPart struct{ Off, Size int }

// Width is the width of the value that holds a part.
func (p ParamPart) Width() Width { return pieceWidth(p.Size) }

// ParamParts cuts a parameter into pieces of 8 bytes; the last one is the remainder. Caller and callee derive the same
// pieces from the size of each parameter.
func ParamParts(p isa.Param) []ParamPart {
	var list []ParamPart
	for off := 0; off < p.Size; off += 8 {
		list = append(list, ParamPart{off, min(8, p.Size-off)})
	}
	return list
}

// callGraph is the knowledge about surrounding functions that building a function needs.
type callGraph struct {
	callees map[*isa.Func][]*isa.Func
	cyclic  map[*isa.Func]bool
	stored  map[*isa.Func][]bool // by byte of the parameter frame: something stores it
	spreads map[*isa.Func][]bool // by byte of the parameter frame: a block may read it that another one stored
}

func newCallGraph() *callGraph {
	return &callGraph{callees: map[*isa.Func][]*isa.Func{}, cyclic: map[*isa.Func]bool{}, stored: map[*isa.Func][]bool{}, spreads: map[*isa.Func][]bool{}}
}

// hasBody reports whether a function can be executed.
func hasBody(fn *isa.Func) bool { return len(fn.Insts) > 0 && fn.Err == nil }

// direct lists the functions that fn calls by name.
func (g *callGraph) direct(fn *isa.Func) []*isa.Func {
	list, ok := g.callees[fn]
	if !ok {
		for i := range fn.Insts {
			if in := &fn.Insts[i]; in.Class == isa.Call && in.Callee != nil {
				list = append(list, in.Callee)
			}
		}
		g.callees[fn] = list
	}
	return list
}

// recursive reports whether fn can call itself by direct calls. Indirect calls are never inlined.
func (g *callGraph) recursive(fn *isa.Func) bool {
	if _, ok := g.cyclic[fn]; !ok {
		g.findCycles(fn)
	}
	return g.cyclic[fn]
}

// visit is a function on the path of findCycles.
type visit struct {
	fn     *isa.Func
	number int // of the visit
	low    int // the lowest number of a visit that is known to be on a cycle with this one
	next   int // which of the callees is next
	open   int // where fn is among the functions that are in no component yet
}

// findCycles says of fn and all functions that it can call whether they are on a cycle of calls. It is Tarjan's algorithm for
// strongly connected components, without recursion: a chain of calls may be as long as a module is.
func (g *callGraph) findCycles(fn *isa.Func) {
	numbers := map[*isa.Func]int{} // of the functions in open
	visits := 0
	var path []visit
	var open []*isa.Func
	enter := func(fn *isa.Func) {
		path = append(path, visit{fn: fn, number: visits, low: visits, open: len(open)})
		numbers[fn] = visits
		visits++
		open = append(open, fn)
		g.cyclic[fn] = false
	}
	enter(fn)
	for len(path) > 0 {
		v := &path[len(path)-1]
		if calls := g.direct(v.fn); v.next < len(calls) {
			c := calls[v.next]
			v.next++
			if n, ok := numbers[c]; ok {
				v.low = min(v.low, n)
				g.cyclic[c] = g.cyclic[c] || c == v.fn
			} else if _, ok := g.cyclic[c]; !ok {
				enter(c)
			}
			continue
		}
		done := *v
		if path = path[:len(path)-1]; len(path) > 0 {
			up := &path[len(path)-1]
			up.low = min(up.low, done.low)
		}
		if done.low != done.number {
			continue
		}
		for _, x := range open[done.open:] {
			g.cyclic[x] = g.cyclic[x] || len(open)-done.open > 1
			delete(numbers, x)
		}
		open = open[:done.open]
	}
}

// stores reports whether fn stores byte off of its parameter frame, directly or as the result of a call.
func (g *callGraph) stores(fn *isa.Func, off int) bool {
	bytes, ok := g.stored[fn]
	if !ok {
		bytes = make([]bool, fn.ParamFrame)
		for i := range fn.Insts {
			markStored(bytes, &fn.Insts[i])
		}
		g.stored[fn] = bytes
	}
	return off >= 0 && off < len(bytes) && bytes[off]
}

func markStored(bytes []bool, in *isa.Inst) {
	mark := func(off, n int) {
		for k := max(off, 0); k < min(off+n, len(bytes)); k++ {
			bytes[k] = true
		}
	}
	switch {
	case paramAccess(in, isa.Store):
		mark(int(in.Src[0].Imm)+int(in.Off), in.Type.Size()*int(max(in.Vec, 1)))
	case in.Class == isa.Call && in.CallSig != nil:
		for i := range in.RetOps {
			if op := &in.RetOps[i]; op.Kind == isa.ParamAddr {
				mark(int(op.Imm), in.CallSig.Rets[i].Size)
			}
		}
	}
}

// spread reports whether fn reads byte off of its parameter frame at a place where another block may have stored it. It
// walks the function in source order and drops its knowledge of stores wherever control may come from elsewhere.
func (g *callGraph) spread(fn *isa.Func, off int) bool {
	bytes, ok := g.spreads[fn]
	if !ok {
		bytes = g.findSpread(fn)
		g.spreads[fn] = bytes
	}
	return off >= 0 && off < len(bytes) && bytes[off]
}

func (g *callGraph) findSpread(fn *isa.Func) []bool {
	bytes, known := make([]bool, fn.ParamFrame), make([]bool, fn.ParamFrame)
	target := make([]bool, len(fn.Insts)+1)
	for i := range fn.Insts {
		for _, t := range fn.Insts[i].Targets {
			target[t] = true
		}
	}
	reads := func(off, n int) {
		for k := max(off, 0); k < min(off+n, len(bytes)); k++ {
			bytes[k] = bytes[k] || !known[k] && g.stores(fn, k)
		}
	}
	for i := range fn.Insts {
		in := &fn.Insts[i]
		if target[i] || splits(in) || i > 0 && splits(&fn.Insts[i-1]) {
			clear(known)
		}
		n := in.Type.Size() * int(max(in.Vec, 1))
		switch {
		case paramAccess(in, isa.Load), paramAccess(in, isa.Store) && in.Guard >= 0:
			reads(int(in.Src[0].Imm)+int(in.Off), n)
		case in.Class == isa.Call && in.CallSig != nil:
			for k := range in.ArgOps {
				if op := &in.ArgOps[k]; op.Kind == isa.ParamAddr {
					reads(int(op.Imm), in.CallSig.Params[k].Size)
				}
			}
		}
		markStored(known, in)
	}
	return bytes
}

// paramAccess reports whether in loads or stores a variable of .param space by name.
func paramAccess(in *isa.Inst, class isa.Class) bool {
	return in.Class == class && len(in.Src) > 0 && in.Src[0].Kind == isa.ParamAddr
}

// formals receives the parameters of the function that is built.
func (b *builder) formals(fr *frame) {
	e := b.add(b.entry, &Instr{Op: Enter, Site: -1, Guard: NoValue, Inst: &isa.Inst{Class: isa.Call, Guard: -1, Loc: -1}})
	for _, p := range fr.fn.Sig.Params {
		bytes := map[int]atom{}
		for _, c := range ParamParts(p) {
			v := b.f.NewValue(c.Width(), e)
			e.Dst = append(e.Dst, v)
			setParam(bytes, c.Off, v, c.Size)
		}
		if p.Off < 0 {
			b.write(fr.regs+p.Reg, b.fit(b.gather(bytes, 0, p.Size), widthOf(p.Register().Size)))
			continue
		}
		for k, a := range bytes {
			fr.formals[p.Off+k] = a
		}
	}
	b.spill(fr)
}

// leave emits the end of the function that is built.
func (b *builder) leave(d *draft) {
	fn := d.fr.fn
	if fn.Entry {
		b.add(d.block, &Instr{Op: Exit, Site: b.site, Guard: NoValue})
		return
	}
	e := &Instr{Op: Return, Site: b.site, Guard: NoValue, Inst: &fn.Insts[d.to-1]}
	for i, p := range fn.Sig.Rets {
		bytes := b.returned(d.fr, i)
		for _, c := range ParamParts(p) {
			e.Args = append(e.Args, b.gather(bytes, c.Off, c.Size))
		}
	}
	b.add(d.block, e)
}

// call emits a call that is not inlined.
func (b *builder) call(d *draft, in *isa.Inst) {
	e := &Instr{Op: Call, Site: b.site, Guard: NoValue, Inst: in, Fn: in.Callee, Args: []Value{NoValue}}
	if in.Callee == nil {
		e.Args[0] = b.fit(b.operand(d.fr, &in.Src[0]), W64)
	}
	for i, p := range in.CallSig.Params {
		for _, c := range ParamParts(p) {
			e.Args = append(e.Args, b.argument(d, &in.ArgOps[i], c))
		}
	}
	b.add(b.cur.block, e)
	for i, p := range in.CallSig.Rets {
		bytes := map[int]atom{}
		for _, c := range ParamParts(p) {
			v := b.f.NewValue(c.Width(), e)
			e.Dst = append(e.Dst, v)
			setParam(bytes, c.Off, v, c.Size)
		}
		b.result(d, &in.RetOps[i], bytes, p.Size)
	}
	b.reaches(d.fr.fn, in)
}

// reaches records the possible targets of a call of fn.
func (b *builder) reaches(fn *isa.Func, in *isa.Inst) {
	list := fn.Calls
	if in.Callee != nil {
		list = []*isa.Func{in.Callee}
	} else if in.Callees != nil {
		list = in.Callees
	}
	for _, g := range list {
		if (in.Callee != nil || fn.MayCall(in, g)) && hasBody(g) && !slices.Contains(b.f.Calls, g) {
			b.f.Calls = append(b.f.Calls, g)
		}
	}
}

// pass passes the arguments of an inlined call to the callee.
func (b *builder) pass(d *draft, in *isa.Inst) {
	callee := d.inlines
	if !b.f.Fn.Entry || b.local > ampleLocal {
		b.add(b.cur.block, &Instr{Op: Depth, Site: b.site, Guard: NoValue, Inst: in, Fn: callee.fn})
	}
	for i, p := range callee.fn.Sig.Params {
		op := &in.ArgOps[i]
		switch {
		case p.Off < 0:
			v := b.argument(d, op, ParamPart{0, p.Size})
			b.write(callee.regs+p.Reg, b.fit(v, widthOf(p.Register().Size)))
		case op.Kind != isa.ParamAddr:
			setParam(callee.formals, p.Off, b.operand(d.fr, op), p.Size)
		default:
			for k := range p.Size {
				if a, ok := b.byteAt(d, int(op.Imm)+k); ok {
					callee.formals[p.Off+k] = a
				}
			}
		}
	}
	if n := callee.fn.LocalFrame; n > 0 && b.f.Env.Uninit {
		b.add(b.cur.block, &Instr{Op: ShadowFrame, Site: b.site, Guard: NoValue, Args: []Value{b.emit(LocalPtr, W64, callee.local)}, Imm: uint64(n), Inst: in})
	}
	b.spill(callee)
}
