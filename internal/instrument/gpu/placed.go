package gpu

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// placed returns the PTX of each module of a loaded program, with addresses instead of the names of variables in global
// and constant memory, so that the variables are where the program has them. Constant memory is then global memory.
// Tables of virtual functions remain variables of the module, because only the driver knows the addresses of functions.
// The workspace of a cooperative launch is the one whose address is at environment. The driver's workspace is not used,
// because the host does not know it. Line information is omitted, because the GPU does not need it. The error names
// what cannot be placed.
func placed(p *loader.Program, environment uint64) ([]string, error) {
	for _, v := range p.Module.Vars {
		if virtual := strings.HasPrefix(v.Name, virtualTable); slices.ContainsFunc(v.Relocs, func(r isa.Reloc) bool { return (r.Func == nil) == virtual }) {
			return nil, fmt.Errorf("variable %s holds the address of a function: --device gpu cannot place it; choose --device emulated", v.Name)
		}
	}
	var texts []string
	for _, tree := range p.Module.Source {
		x := placer{program: p, environment: environment, tree: tree}
		m := x.module()
		if x.err != nil {
			return nil, x.err
		}
		var out bytes.Buffer
		if err := ptx.Print(&out, m); err != nil {
			return nil, err
		}
		texts = append(texts, out.String())
	}
	return texts, nil
}

// placer rewrites a module.
type placer struct {
	program     *loader.Program
	environment uint64 // address of the contents of %envreg1 and %envreg2, which are the halves of an address, the upper one first
	tree        *ptx.Module
	names       map[string]uint64 // addresses of the variables in scope; 0 if the name is not that of a variable
	err         error
}

func (x *placer) module() *ptx.Module {
	out := *x.tree
	out.Decls = nil
	x.names = map[string]uint64{}
	for _, d := range x.tree.Decls {
		if v, ok := d.(*ptx.Var); ok {
			x.declare(v)
		}
	}
	for _, d := range x.tree.Decls {
		switch d := d.(type) {
		case *ptx.Var:
			if !inMemory(d) {
				out.Decls = append(out.Decls, d)
			}
		case *ptx.Func:
			out.Decls = append(out.Decls, x.function(d))
		case *ptx.File, *ptx.Section, *ptx.Dwarf, *ptx.Loc:
		default:
			out.Decls = append(out.Decls, d)
		}
	}
	return &out
}

// virtualTable is the prefix of the names of tables of virtual functions.
const virtualTable = "_ZTV"

// inMemory reports whether the program places a variable.
func inMemory(v *ptx.Var) bool {
	return (v.Space == "global" || v.Space == "const") && !strings.HasPrefix(v.Names[0].Name, virtualTable)
}

// declare records the names of a declaration.
func (x *placer) declare(d *ptx.Var) {
	for i := range d.Names {
		name := d.Names[i].Name
		x.names[name] = 0
		if inMemory(d) {
			x.names[name] = x.address(d, name)
		}
	}
}

// address returns the address of a variable: of the declaration, or of the definition that the declaration refers to.
func (x *placer) address(d *ptx.Var, name string) uint64 {
	other := uint64(0)
	for _, v := range x.program.Module.Vars {
		switch {
		case v.Name != name || v.Space != event.Global && v.Space != event.Const:
		case v.Decl == d:
			return x.program.Address(v)
		case d.Linkage != 0 && v.Linkage != 0:
			other = x.program.Address(v)
		}
	}
	if other == 0 && x.err == nil {
		x.err = fmt.Errorf("%s:%d: variable %s cannot be placed for --device gpu: choose --device emulated", x.tree.Name, d.Pos.Line, name)
	}
	return other
}

func (x *placer) function(f *ptx.Func) *ptx.Func {
	out := *f
	out.Params = nil
	for _, p := range f.Params {
		if p.Ptr != nil && p.Ptr.Space == "const" {
			q, to := *p, *p.Ptr
			to.Space, q.Ptr = "global", &to
			p = &q
		}
		out.Params = append(out.Params, p)
	}
	if f.Body == nil {
		return &out
	}
	outer := maps.Clone(x.names)
	for _, list := range [][]*ptx.Var{f.Rets, f.Params} {
		for _, v := range list {
			x.declare(v)
		}
	}
	out.Body = x.block(f.Body)
	x.names = outer
	return &out
}

func (x *placer) block(b *ptx.Block) *ptx.Block {
	outer := maps.Clone(x.names)
	out := *b
	out.Stmts = nil
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *ptx.Block:
			out.Stmts = append(out.Stmts, x.block(s))
		case *ptx.Var:
			x.declare(s)
			if !inMemory(s) {
				out.Stmts = append(out.Stmts, s)
			}
		case *ptx.Inst:
			out.Stmts = append(out.Stmts, x.inst(s))
		case *ptx.Loc, *ptx.File, *ptx.Section, *ptx.Dwarf:
		default:
			out.Stmts = append(out.Stmts, s)
		}
	}
	x.names = outer
	return &out
}

// inst returns an instruction whose operands have no names of variables. Registers hold the addresses.
func (x *placer) inst(in *ptx.Inst) ptx.Stmt {
	out := *in
	if i := slices.IndexFunc(in.Operands, func(o ptx.Operand) bool { return o.Name == "%envreg1" || o.Name == "%envreg2" }); i >= 0 {
		return x.workspace(in, x.environment+4*uint64(in.Operands[i].Name[7]-'1'))
	}
	if mods := strings.Split(in.Mods, "."); slices.Contains(mods, "const") {
		if in.Op == "isspacep" {
			return x.isConstant(in)
		}
		for i, m := range mods {
			if m == "const" {
				mods[i] = "global"
			}
		}
		out.Mods = strings.Join(mods, ".")
	}
	var addresses []uint64
	out.Operands = x.operands(in.Operands, &addresses)
	if addresses == nil {
		return &out
	}
	block := &ptx.Block{Pos: in.Pos, End: in.Pos}
	regs := &ptx.Var{Space: "reg", Type: "b64"}
	block.Stmts = append(block.Stmts, regs)
	for i, a := range addresses {
		r := register(i)
		regs.Names = append(regs.Names, ptx.VarName{Name: r, Range: -1})
		block.Stmts = append(block.Stmts, &ptx.Inst{Op: "mov", Mods: ".b64", Operands: []ptx.Operand{
			{Kind: ptx.OperandIdent, Name: r}, {Kind: ptx.OperandImm, Name: fmt.Sprint(a)}}})
	}
	block.Stmts = append(block.Stmts, &out)
	return block
}

// workspace returns a load from an address instead of a read of a register of the environment.
func (x *placer) workspace(in *ptx.Inst, at uint64) ptx.Stmt {
	if in.Op != "mov" && x.err == nil {
		x.err = fmt.Errorf("%s:%d: %s of %s: --device gpu cannot place it; choose --device emulated", x.tree.Name, in.Pos.Line, in.Op, in.Operands[1])
	}
	address := ptx.Operand{Kind: ptx.OperandIdent, Name: register(0)}
	return &ptx.Block{Pos: in.Pos, End: in.Pos, Stmts: []ptx.Stmt{
		&ptx.Var{Space: "reg", Type: "b64", Names: []ptx.VarName{{Name: address.Name, Range: -1}}},
		&ptx.Inst{Op: "mov", Mods: ".b64", Operands: []ptx.Operand{address, {Kind: ptx.OperandImm, Name: fmt.Sprint(at)}}},
		&ptx.Inst{Pos: in.Pos, Pred: in.Pred, PredNot: in.PredNot, Op: "ld", Mods: ".global.b32", Operands: []ptx.Operand{
			in.Operands[0], {Kind: ptx.OperandAddr, Args: []ptx.Operand{address}}}}}}
}

// isConstant replaces isspacep.const by a test whether an address is in a variable in constant memory.
func (x *placer) isConstant(in *ptx.Inst) ptx.Stmt {
	to := in.Operands[0]
	number := func(n uint64) ptx.Operand { return ptx.Operand{Kind: ptx.OperandImm, Name: fmt.Sprint(n)} }
	offset := ptx.Operand{Kind: ptx.OperandIdent, Name: register(0)}
	block := &ptx.Block{Pos: in.Pos, End: in.Pos, Stmts: []ptx.Stmt{
		&ptx.Var{Space: "reg", Type: "b64", Names: []ptx.VarName{{Name: offset.Name, Range: -1}}}}}
	add := func(op, mods string, operands ...ptx.Operand) {
		block.Stmts = append(block.Stmts, &ptx.Inst{Pos: in.Pos, Pred: in.Pred, PredNot: in.PredNot, Op: op, Mods: mods, Operands: operands})
	}
	add("mov", ".b64", offset, in.Operands[1])
	add("setp", ".lt.u64", to, offset, number(0)) // in none
	for _, v := range x.program.Module.Vars {
		if v.Space == event.Const && v.Size > 0 {
			at := x.program.Address(v)
			add("mov", ".b64", offset, in.Operands[1])
			add("sub", ".u64", offset, offset, number(at))
			add("setp", ".lt.or.u64", to, offset, number(uint64(v.Size)), to)
		}
	}
	return block
}

// register returns the name of the register for the i-th address of an instruction. The instruction has a block of its
// own.
func register(i int) string { return fmt.Sprintf("%%fencepost_at%d", i) }

// operands returns the operands with registers instead of variables. It appends the addresses for these registers.
func (x *placer) operands(list []ptx.Operand, addresses *[]uint64) []ptx.Operand {
	out := slices.Clone(list)
	for i := range out {
		o := &out[i]
		o.Args = x.operands(o.Args, addresses)
		switch o.Kind {
		case ptx.OperandIdent, ptx.OperandAddrOf, ptx.OperandIndex:
		default:
			continue
		}
		at := x.names[o.Name]
		if at == 0 {
			continue
		}
		if o.Kind == ptx.OperandIndex {
			if x.err == nil {
				x.err = fmt.Errorf("%s:%d: %s: --device gpu cannot place what is named by an index; choose --device emulated", x.tree.Name, o.Pos.Line, o)
			}
			continue
		}
		*o = ptx.Operand{Kind: ptx.OperandIdent, Pos: o.Pos, Name: register(len(*addresses))}
		*addresses = append(*addresses, at+uint64(list[i].Off))
	}
	return out
}
