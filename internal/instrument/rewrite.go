package instrument

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/ptx"
)

// rewriter rewrites the modules of a program.
type rewriter struct {
	out     *Program
	options Options
	funcs   map[*ptx.Func]*isa.Func
	logs    map[*isa.Func]bool
	// elements are the functions of kernels with accesses to words that may touch only elements (opt.FindElements). The
	// addresses that these functions align are logged.
	elements map[*isa.Func]bool
	joins    map[*isa.Func]map[int32]bool // instructions before which the lanes that execute them together are logged
	missing  []lack

	tree   *ptx.Module // the tree being rewritten
	prefix string      // the prefix of the names in inserted code
	// The function that is being rewritten.
	f       *isa.Func
	index   map[*ptx.Inst]int32
	private map[int32]bool // registers that hold addresses of local memory
	pruned  map[int32]bool // instructions that another one covers
}

// module returns the instrumented form of a module.
func (r *rewriter) module(tree *ptx.Module) *ptx.Module {
	device, err := ptx.Parse("device.ptx", deviceCode[r.options.Mode])
	if err != nil {
		panic(fmt.Sprintf("BUG: the device code: %v", err))
	}
	r.tree, r.prefix = tree, freshPrefix(tree)
	out := *tree
	if v := tree.Version; v.Major < minVersion.Major || v.Major == minVersion.Major && v.Minor < minVersion.Minor {
		out.Version = minVersion
	}
	for _, t := range tree.Targets {
		if arch, ok := target(t); ok && arch < minTarget {
			r.refuse(ptx.Pos{Line: 1}, fmt.Sprintf("code for %s: compile it for sm_%d or newer", t, minTarget))
		}
	}
	if tree.AddressSize != 64 {
		r.refuse(ptx.Pos{Line: 1}, "a module with 32-bit addresses")
	}
	out.Decls = nil
	for _, d := range device.Decls {
		out.Decls = append(out.Decls, weak(d))
	}
	for _, d := range tree.Decls {
		if name := nameOf(d); strings.HasPrefix(name, reserved) {
			r.refuse(d.Position(), name+" is declared: the module is instrumented already")
		}
		if fn, ok := d.(*ptx.Func); ok && r.funcs[fn] != nil {
			d = r.function(fn)
			r.f = nil
		}
		out.Decls = append(out.Decls, d)
	}
	return &out
}

// target returns the number of an architecture: 80 for "sm_80".
func target(name string) (arch int, ok bool) {
	_, err := fmt.Sscanf(name, "sm_%d", &arch)
	return arch, err == nil
}

func nameOf(d ptx.Decl) string {
	switch d := d.(type) {
	case *ptx.Func:
		return d.Name
	case *ptx.Var:
		return d.Names[0].Name
	}
	return ""
}

// weak changes a declaration of the device code so that linked modules share one copy.
func weak(d ptx.Decl) ptx.Decl {
	switch d := d.(type) {
	case *ptx.Func:
		if d.Linkage&ptx.Visible != 0 {
			d.Linkage = ptx.Weak
		}
	case *ptx.Var:
		if d.Linkage&ptx.Visible != 0 {
			d.Linkage = ptx.Weak
		}
	}
	return d
}

// freshPrefix returns a prefix of names that does not occur in a module.
func freshPrefix(tree *ptx.Module) string {
	var text bytes.Buffer
	_ = ptx.Print(&text, tree) // a Buffer never fails
	for i := 0; ; i++ {
		if p := fmt.Sprintf("fp%d_", i); !bytes.Contains(text.Bytes(), []byte(p)) {
			return p
		}
	}
}

// refuse records something that cannot be instrumented, in the current function if there is one.
func (r *rewriter) refuse(pos ptx.Pos, what string) {
	r.missing = append(r.missing, lack{f: r.f, what: fmt.Sprintf("%s:%d: %s", r.tree.Name, pos.Line, what)})
}

// function returns the instrumented form of a function.
func (r *rewriter) function(d *ptx.Func) *ptx.Func {
	f := r.funcs[d]
	for i := range f.Insts {
		// A kernel that launches others may run in parallel with them, and may call functions that log for them.
		if c := f.Insts[i].Callee; c != nil && c.DeviceCall() != "" {
			r.refuse(f.Insts[i].Source.Pos, "cuda"+c.DeviceCall()+" in device code")
			r.missing[len(r.missing)-1].all = true
		}
	}
	r.f, r.index = f, map[*ptx.Inst]int32{}
	for i := range r.f.Insts {
		in := &r.f.Insts[i]
		if src := in.Source; src != nil {
			if _, ok := r.index[src]; !ok {
				r.index[src] = int32(i)
			}
		}
	}
	r.private, r.pruned = privateRegisters(r.f), nil
	if r.options.Prune {
		r.pruned = redundant(r.f, r.options.Mode == Log)
	}
	r.out.Static += len(r.index)
	out := *d
	if switches[d.Name] {
		if r.options.Mode == HiRace {
			out.Body = r.code(handedOn(d), nil)
		} else {
			out.Body = r.code(r.logged(d), nil)
		}
		return &out
	}
	out.Body = r.block(d.Body)
	if r.f.Entry && fallsOff(d.Body) {
		out.Body.Stmts = append(out.Body.Stmts, r.code(r.exit(r.site(Exit, int32(len(r.f.Insts)))), nil))
	}
	return &out
}

// fallsOff reports whether control may reach the end of a body.
func fallsOff(b *ptx.Block) bool {
	for _, s := range slices.Backward(b.Stmts) {
		switch s := s.(type) {
		case *ptx.Inst:
			return s.Pred != "" || s.Op != "ret" && s.Op != "exit" && s.Op != "bra" && s.Op != "trap"
		case *ptx.Label, *ptx.Block:
			return true
		}
	}
	return true
}

// block returns the instrumented form of a block.
func (r *rewriter) block(b *ptx.Block) *ptx.Block {
	out := *b
	out.Stmts = nil
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *ptx.Block:
			out.Stmts = append(out.Stmts, r.nested(s)...)
		case *ptx.Inst:
			out.Stmts = append(append(out.Stmts, r.joined(s)...), r.inst(s)...)
		default:
			out.Stmts = append(out.Stmts, s)
		}
	}
	return &out
}

// nested returns a block within a body. A call and the instructions that pass its arguments are in a block of their
// own, which has no other call. The records are put around that block.
func (r *rewriter) nested(b *ptx.Block) []ptx.Stmt {
	var call *ptx.Inst
	others := false
	for _, s := range b.Stmts {
		in, ok := s.(*ptx.Inst)
		if !ok {
			_, inner := s.(*ptx.Block)
			others = others || inner
			continue
		}
		if i, ok := r.index[in]; ok && r.calls(&r.f.Insts[i]) {
			others = others || call != nil
			call = in
		} else if ok {
			_, logged := kindOf(r.f, &r.f.Insts[i])
			others = others || logged && !r.leftOut(&r.f.Insts[i])
		}
	}
	join := r.joined(firstOf(b)) // not between a call and its arguments
	if call == nil {
		return append(join, r.block(b))
	}
	if others {
		r.refuse(call.Pos, "a call in a block with other operations")
	}
	return append(join, r.around(call, b)...)
}

// firstOf returns the instruction of a block that control reaches from outside; nil if a label is before it.
func firstOf(b *ptx.Block) *ptx.Inst {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *ptx.Inst:
			return s
		case *ptx.Label, *ptx.Block:
			return nil
		}
	}
	return nil
}

// joined logs which lanes execute an instruction together, once, if a branch ends there.
func (r *rewriter) joined(in *ptx.Inst) []ptx.Stmt {
	i, ok := r.index[in]
	if !ok || !r.joins[r.f][i] {
		return nil
	}
	delete(r.joins[r.f], i)
	return []ptx.Stmt{r.code(operation("0", r.site(Join, i)), nil)}
}

// around adds the records of a call before and after a statement.
func (r *rewriter) around(call *ptx.Inst, s ptx.Stmt) []ptx.Stmt {
	i := r.index[call]
	r.out.Logged++
	if r.options.Mode == HiRace {
		return []ptx.Stmt{r.code(entered(call, r.site(CallBegin, i)), s)}
	}
	before := r.code(guarded(call, operation("0", r.site(CallBegin, i))), nil)
	after := r.code(guarded(call, operation("0", r.site(CallEnd, i))), nil)
	return []ptx.Stmt{before, s, after}
}

// calls reports whether an instruction calls a function that logs.
func (r *rewriter) calls(in *isa.Inst) bool {
	return in.Class == isa.Call && (in.Callee == nil || r.logs[in.Callee])
}

// leftOut reports whether an access needs no record because it is to constant or local memory, whatever its address.
func (r *rewriter) leftOut(in *isa.Inst) bool {
	return (in.Class == isa.Load || in.Class == isa.Store || in.Class == isa.Atomic) && spaceOf(in) == event.Generic &&
		in.Src[0].Kind == isa.Reg && r.private[in.Src[0].Reg]
}

// inst returns the replacement of an instruction.
func (r *rewriter) inst(src *ptx.Inst) []ptx.Stmt {
	i, ok := r.index[src]
	if !ok {
		return []ptx.Stmt{src}
	}
	in := &r.f.Insts[i]
	if r.calls(in) {
		if len(in.ArgOps)+len(in.RetOps) > 0 && in.Callee != nil && slices.ContainsFunc(in.Callee.Decl.Params, isParam) {
			r.refuse(src.Pos, "a call outside a block of its own")
		}
		return r.around(src, src)
	}
	if r.options.Mode.missing(in) {
		r.refuse(src.Pos, src.Op+src.Mods)
		return []ptx.Stmt{src}
	}
	if r.elements[r.f] && opt.AlignsDown(in) {
		r.out.Logged++
		return []ptx.Stmt{r.code(operation(src.Operands[1].String(), r.site(AlignDown, i))+"@op;\n", src)}
	}
	kind, ok := kindOf(r.f, in)
	if !ok || r.leftOut(in) || r.options.Mode == HiRace && (kind == Fence || kind == CopyCommit || kind == CopyWait) {
		return []ptx.Stmt{src}
	}
	if r.pruned[i] {
		r.out.Pruned++
		return []ptx.Stmt{src}
	}
	r.out.Logged++
	site := r.site(kind, i)
	if r.options.Mode == HiRace {
		return []ptx.Stmt{r.code(guarded(src, checked(src, in, kind, site)), src)}
	}
	switch kind {
	case Access:
		return []ptx.Stmt{r.access(src, in, site)}
	case Mbarrier:
		return []ptx.Stmt{r.code(guarded(src, address(src, in)+r.mbarrierOperand(src, in, i)+begin(in)+"@op;\n"+untested(src, in)+end(in, site, "%@f")), tested(src, in))}
	case CopyFrom:
		return []ptx.Stmt{r.code(guarded(src, r.copied(src, in, i)+operation("%@v", site)+"@op;\n"), src)}
	case CopyWait:
		value := ".reg .b64 %@v; mov.b64 %@v, 0;\n"
		if in.Op == isa.OpWaitGroup {
			value = ".reg .b64 %@v; .reg .b32 %@m; mov.b32 %@m, " + src.Operands[0].String() + "; cvt.u64.u32 %@v, %@m;\n"
		}
		return []ptx.Stmt{r.code(guarded(src, value+operation("%@v", site)+"@op;\n"), src)}
	case Barrier:
		return []ptx.Stmt{r.code(guarded(src, barrierValue(src, in)+operation("%@v", site)+"@op;\n"), src)}
	case WarpSync:
		value := ".reg .b64 %@v; .reg .b32 %@m; mov.b32 %@m, " + src.Operands[0].String() + "; cvt.u64.u32 %@v, %@m;\n"
		return []ptx.Stmt{r.code(guarded(src, value+operation("%@v", site)+"@op;\n"), src)}
	}
	return []ptx.Stmt{r.code(guarded(src, operation("0", site)+"@op;\n"), src)}
}

func isParam(v *ptx.Var) bool { return v.Space == "param" }

// site adds a site and returns its number.
func (r *rewriter) site(k Kind, index int32) int {
	r.out.Sites = append(r.out.Sites, Site{k, r.f, index})
	return len(r.out.Sites) - 1
}

// access returns an access with its record.
func (r *rewriter) access(src *ptx.Inst, in *isa.Inst, site int) ptx.Stmt {
	var b strings.Builder
	b.WriteString(address(src, in))
	if in.Class == isa.Tile && !in.Tiles.Given && in.TileStride().Kind == isa.Reg {
		b.WriteString(".reg .b64 %@w; cvt.u64.u32 %@w, " + src.Operands[2].String() + ";\n" + operation("%@w", r.site(TileStride, r.out.Sites[site].Index)))
	}
	generic := spaceOf(in) == event.Generic
	words := storedWords(src, in)
	for i, w := range words {
		b.WriteString(w)
		if strong(in) || i < len(words)-1 {
			b.WriteString(operation("%@d", r.site(StoreWord, r.out.Sites[site].Index)))
		}
	}
	switch {
	case !strong(in) && len(words) > 0:
		name := reserved + "store"
		if generic {
			name += "_generic"
		}
		b.WriteString(call(name, "b64 %@v", "b64 %@d", fmt.Sprintf("b32 %d", site)) + "@op;\n")
		return r.code(guarded(src, b.String()), src)
	case !strong(in) && generic:
		b.WriteString(call(reserved+"generic", "b64 %@v", fmt.Sprintf("b32 %d", site)) + "@op;\n")
		return r.code(guarded(src, b.String()), src)
	case !strong(in):
		b.WriteString(operation("%@v", site) + "@op;\n")
		return r.code(guarded(src, b.String()), src)
	}
	op := src
	failed := "0"
	b.WriteString(begin(in))
	if in.Op == isa.OpCas && in.Class == isa.Atomic {
		bits := in.Type.Size() * 8
		result := src.Operands[0].String()
		if result == "_" {
			result = "%@d"
			changed := *src
			changed.Operands = slices.Clone(src.Operands)
			changed.Operands[0].Name = r.named(result)
			op = &changed
		}
		fmt.Fprintf(&b, ".reg .b%d %%@b, %%@d; .reg .pred %%@p; .reg .b32 %%@f; mov.b%d %%@b, %s;\n", bits, bits, src.Operands[2])
		failed = "%@f"
		b.WriteString("@op;\n")
		fmt.Fprintf(&b, "setp.ne.b%d %%@p, %s, %%@b; selp.b32 %%@f, 1, 0, %%@p;\n", bits, result)
	} else {
		b.WriteString("@op;\n")
	}
	b.WriteString(end(in, site, failed))
	return r.code(guarded(src, b.String()), op)
}

// begin returns the code before a synchronising operation on the address in %@v.
func begin(in *isa.Inst) string {
	suffix, argument, arguments := suffixOf(in), "", ""
	if suffix == "_generic" {
		argument, arguments = ".param .b64 @0; st.param.b64 [@0], %@v; ", "@0"
	}
	return ".reg .b32 %@m;\n{ .param .b32 @r; " + argument + "call (@r), " + reserved + "begin" + suffix + ", (" + arguments + "); ld.param.b32 %@m, [@r]; }\n"
}

// end returns the code after the operation. failed is a value that is not 0 if a compare-and-swap has failed, or the
// like.
func end(in *isa.Inst, site int, failed string) string {
	return call(reserved+"end"+suffixOf(in), "b64 %@v", fmt.Sprintf("b32 %d", site), "b32 %@m", "b32 "+failed)
}

// suffixOf returns the suffix of the names of the device code functions for a synchronising operation.
func suffixOf(in *isa.Inst) string {
	switch spaceOf(in) {
	case event.Generic:
		return "_generic"
	case event.Shared:
		return "_shared"
	}
	return ""
}

// mbarrierOperand returns code that logs the operand of an operation on an mbarrier besides the address, if there is
// one.
func (r *rewriter) mbarrierOperand(src *ptx.Inst, in *isa.Inst, index int32) string {
	i := 1 + slices.IndexFunc(src.Operands, func(o ptx.Operand) bool { return o.Kind == ptx.OperandAddr })
	if i >= len(src.Operands) {
		return ""
	}
	size := 4
	if in.Op == isa.OpTest && !in.Has("parity") {
		size = 8
	}
	return ".reg .b64 %@e;\n" + element(&src.Operands[i], &in.Src[1], size) + operation("%@e", r.site(MbarrierOperand, index))
}

// untested returns code that sets %@f if a test of an mbarrier finds the phase incomplete.
func untested(src *ptx.Inst, in *isa.Inst) string {
	if in.Op != isa.OpTest {
		return ".reg .b32 %@f; mov.b32 %@f, 0;\n"
	}
	return ".reg .b32 %@f; selp.b32 %@f, 0, 1, " + src.Operands[0].String() + ";\n"
}

// tested replaces a wait for an mbarrier by a test, so that other threads get turns to arrive.
func tested(src *ptx.Inst, in *isa.Inst) *ptx.Inst {
	if !in.Has("try_wait") {
		return src
	}
	out := *src
	out.Mods = strings.Replace(src.Mods, ".try_wait", ".test_wait", 1)
	out.Operands = src.Operands[:3]
	return &out
}

// storedWords returns the code that puts each 8 bytes of a store into %@d, the first bytes first. Stores of 128-bit
// registers are not supported.
func storedWords(src *ptx.Inst, in *isa.Inst) (code []string) {
	size := in.Type.Size()
	if in.Class != isa.Store || size > 8 {
		return nil
	}
	elements := []ptx.Operand{src.Operands[1]}
	if elements[0].Kind == ptx.OperandVector {
		elements = elements[0].Args
	}
	declare := ".reg .b64 %@d, %@e;\n"
	for first := 0; first < len(elements); first += 8 / size {
		s := declare + element(&elements[first], &in.Src[1+first], size) + "mov.b64 %@d, %@e;\n"
		declare = ""
		for i := first + 1; i < min(first+8/size, len(elements)); i++ {
			s += element(&elements[i], &in.Src[1+i], size) + fmt.Sprintf("shl.b64 %%@e, %%@e, %d;\nor.b64 %%@d, %%@d, %%@e;\n", 8*size*(i-first))
		}
		code = append(code, s)
	}
	return code
}

// element returns code that puts the low bytes of an operand into %@e, zero-extended.
func element(o *ptx.Operand, as *isa.Operand, size int) string {
	mask := uint64(1)<<(8*size) - 1
	if size == 8 {
		mask = ^uint64(0)
	}
	if as.Kind == isa.Imm {
		return fmt.Sprintf("mov.b64 %%@e, %#x;\n", as.Imm&mask)
	}
	s := "mov.b64 %@e, " + o.String() + ";\n"
	if n := int(as.Size); as.Kind == isa.Reg && n < 8 {
		s = fmt.Sprintf("{ .reg .b%d %%@x; mov.b%d %%@x, %s; cvt.u64.u%d %%@e, %%@x; }\n", 8*n, 8*n, o, 8*n)
		if n == 1 {
			s = fmt.Sprintf("cvt.u64.u8 %%@e, %s;\n", o)
		}
		if n == size {
			return s
		}
	}
	if size < 8 {
		s += fmt.Sprintf("and.b64 %%@e, %%@e, %#x;\n", mask)
	}
	return s
}

// In templates, @ is replaced by the prefix, and @op by the instruction itself.

// address returns the code that computes the address of an access in its space.
func address(src *ptx.Inst, in *isa.Inst) string {
	i := slices.IndexFunc(src.Operands, func(o ptx.Operand) bool { return o.Kind == ptx.OperandAddr })
	if i < 0 {
		panic(fmt.Sprintf("BUG: %s has no address", src))
	}
	return ".reg .b64 %@v; " + addressOf(&src.Operands[i], &in.Src[0])
}

// addressOf returns code that puts the address of an operand into %@v.
func addressOf(o *ptx.Operand, as *isa.Operand) string {
	load := "mov.b64 %@v, "
	if as.Kind == isa.Reg && as.Size == 4 {
		load = "cvt.u64.u32 %@v, "
	}
	s := load + o.Args[0].String() + ";"
	if o.HasOff {
		s += fmt.Sprintf(" add.s64 %%@v, %%@v, %d;", o.Off)
	}
	return s + "\n"
}

// copied returns code for an asynchronous copy. It logs the destination, and the number of bytes read if that differs
// from the number written, and puts the source into %@v.
func (r *rewriter) copied(src *ptx.Inst, in *isa.Inst, index int32) string {
	s := ".reg .b64 %@v;\n"
	if in.Src[2].Kind != isa.Sink {
		s += copySize(src, in) + operation("%@v", r.site(CopySize, index))
	}
	return s + addressOf(&src.Operands[0], &in.Src[0]) + operation("%@v", r.site(CopyTo, index)) + addressOf(&src.Operands[1], &in.Src[1])
}

// copySize returns code that puts the number of bytes that an asynchronous copy reads into %@v.
func copySize(src *ptx.Inst, in *isa.Inst) string {
	switch {
	case in.Src[2].Kind == isa.Sink:
		return fmt.Sprintf("mov.b64 %%@v, %d;\n", in.Type.Size())
	case in.Ignores:
		return fmt.Sprintf("selp.b64 %%@v, 0, %d, %s;\n", in.Type.Size(), src.Operands[3])
	}
	return ".reg .b32 %@m; mov.b32 %@m, " + src.Operands[3].String() + "; cvt.u64.u32 %@v, %@m;\n"
}

// barrierValue returns code that packs the barrier and the number of threads.
func barrierValue(src *ptx.Inst, in *isa.Inst) string {
	ops := src.Operands
	if in.Op != isa.OpSync && in.Op != isa.OpArrive {
		ops = ops[1 : len(ops)-1] // without the result and the predicate of bar.red
	}
	threads := "0"
	if len(ops) > 1 {
		threads = ops[1].String()
	}
	return fmt.Sprintf(".reg .b64 %%@v; .reg .b32 %%@i, %%@n; mov.b32 %%@i, %s; mov.b32 %%@n, %s; mov.b64 %%@v, {%%@i, %%@n};\n", ops[0], threads)
}

// logged returns the body of one of switches, which logs the parameters.
func (r *rewriter) logged(d *ptx.Func) string {
	kinds := []Kind{SwitchThread}
	if len(d.Params) == 3 {
		kinds = []Kind{SwitchAddress, SwitchBytes, SwitchMemory}
	}
	var b strings.Builder
	for i, k := range kinds {
		p := d.Params[i]
		fmt.Fprintf(&b, ".reg .%s %%@%d; .reg .b64 %%@v%d; ld.param.%s %%@%d, [%s]; cvt.u64.u%s %%@v%d, %%@%d;\n", p.Type, i, i, p.Type, i, p.Names[0].Name, p.Type[1:], i, i)
		if value := fmt.Sprintf("%%@v%d", i); k == SwitchAddress {
			b.WriteString(call(reserved+"generic", "b64 "+value, fmt.Sprintf("b32 %d", r.site(k, 0))))
		} else {
			b.WriteString(operation(value, r.site(k, 0)))
		}
	}
	return b.String() + "ret;\n"
}

// operation returns code that logs a value for a site.
func operation(value string, site int) string {
	return call(reserved+"operation", "b64 "+value, fmt.Sprintf("b32 %d", site))
}

// call returns a call of a function. Each argument is "TYPE VALUE".
func call(name string, args ...string) string {
	var b, list strings.Builder
	b.WriteString("{ ")
	for i, a := range args {
		typ, value, _ := strings.Cut(a, " ")
		fmt.Fprintf(&b, ".param .%s @%d; st.param.%s [@%d], %s; ", typ, i, typ, i, value)
		if i > 0 {
			list.WriteString(", ")
		}
		fmt.Fprintf(&list, "@%d", i)
	}
	fmt.Fprintf(&b, "call %s, (%s); }\n", name, list.String())
	return b.String()
}

// guarded returns code that only the lanes execute for which the guard of an instruction holds.
func guarded(src *ptx.Inst, code string) string {
	if src.Pred == "" {
		return code
	}
	not := "!"
	if src.PredNot {
		not = ""
	}
	return "@" + not + src.Pred + " bra $@skip;\n" + code + "$@skip:\n"
}

// named replaces the prefix in a name of a template.
func (r *rewriter) named(s string) string { return strings.ReplaceAll(s, "@", r.prefix) }

// exit returns the call that a kernel makes at the end of a thread.
func (r *rewriter) exit(site int) string {
	if r.options.Mode == HiRace {
		return call(reserved + "exit")
	}
	return operation("0", site)
}

// code parses a template as a block, and replaces @op by op. The @ of a guard is the first character of a line.
func (r *rewriter) code(template string, op ptx.Stmt) *ptx.Block {
	lines := strings.Split(template, "\n")
	for i, l := range lines {
		switch {
		case l == "@op;":
			lines[i] = "trap;"
		case strings.HasPrefix(l, "@"):
			lines[i] = "@" + r.named(l[1:])
		default:
			lines[i] = r.named(l)
		}
	}
	m, err := ptx.Parse("instrumented", ".version 7.0\n.target sm_75\n.address_size 64\n.func f()\n{\n"+strings.Join(lines, "\n")+"\n}\n")
	if err != nil {
		panic(fmt.Sprintf("BUG: %v in\n%s", err, strings.Join(lines, "\n")))
	}
	b := m.Decls[0].(*ptx.Func).Body
	for i, s := range b.Stmts {
		if in, ok := s.(*ptx.Inst); ok && in.Op == "trap" {
			b.Stmts[i] = op
		}
	}
	return b
}
