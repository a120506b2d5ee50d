package isa

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// Decode checks and decodes the modules and links them: names with linkage are shared by all modules, others belong to
// their module. It returns a ptx.ErrorList of errors at module level, together with a module that contains everything
// that could be decoded. Errors inside functions are in Func.Err: see Module.Check.
func Decode(ms ...*ptx.Module) (*Module, error) {
	l := &linker{
		table:   theTable(),
		out:     &Module{Source: ms, ByName: map[string]*Func{}},
		globals: map[string]*symbol{},
		spelled: map[string]spellings{},
	}
	if len(ms) > 0 {
		l.out.Name = ms[0].Name
	}
	for _, m := range ms {
		l.units = append(l.units, l.collect(m))
	}
	for _, u := range l.units {
		for _, s := range u.order {
			l.resolve(s)
		}
		l.aliases(u)
	}
	l.names()
	l.initialisers()
	for _, f := range l.out.Funcs {
		l.signature(f)
	}
	for _, f := range l.out.Funcs {
		if f.Decl.Body != nil {
			l.function(f)
		}
	}
	l.calls()
	words(l.out)
	for _, f := range l.out.Funcs {
		if f.Err == nil {
			objects(f)
		}
	}
	l.errs.Sort()
	return l.out, l.errs.Err()
}

// linker is the state of one Decode.
type linker struct {
	table   *table
	out     *Module
	units   []*unit
	globals map[string]*symbol
	owners  []*symbol // of the functions, by index
	errs    ptx.ErrorList
	spelled map[string]spellings
	// taken are the functions whose address is used, in order of first use.
	taken []*Func
}

// spellings is the result of looking up an opcode with modifiers in the table.
type spellings struct {
	list []*spelling
	err  error
}

// unit is one module being decoded.
type unit struct {
	m       *ptx.Module
	symbols map[string]*symbol
	order   []*symbol
	files   map[int]string
	strings *debugStrings
	alias   []*ptx.Alias
	era     era
	outside map[string]string // names at module level that are private to each thread, with their space
}

// symbol is a name at module level. If it has linkage, the symbols with that name in all modules share their target.
type symbol struct {
	unit    *unit
	name    string
	pos     ptx.Pos
	linkage ptx.Linkage

	fn *Func // one of the two
	v  *Var
	// The declaration in this module; a definition if there is one.
	decl     *ptx.Func
	varDecl  *ptx.Var
	varName  *ptx.VarName
	defined  bool
	resolved *symbol // the symbol with the definition
}

// unitOf is the module with a function's declaration.
func (l *linker) unitOf(f *Func) *unit { return l.owners[f.Index].unit }

func (l *linker) errorf(u *unit, pos ptx.Pos, format string, args ...any) {
	l.errs = append(l.errs, &ptx.Error{File: u.m.Name, Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// collect gathers the names of a module.
func (l *linker) collect(m *ptx.Module) *unit {
	u := newUnit(m)
	for _, d := range m.Decls {
		switch d := d.(type) {
		case *ptx.Func:
			l.declareFunc(u, d)
		case *ptx.Var:
			for i := range d.Names {
				l.declareVar(u, d, &d.Names[i])
			}
		case *ptx.Alias:
			u.alias = append(u.alias, d)
		}
	}
	return u
}

// newUnit makes the unit of a module, with the debugging information and without names.
func newUnit(m *ptx.Module) *unit {
	u := &unit{m: m, symbols: map[string]*symbol{}, files: map[int]string{}, era: eraOf(m), outside: map[string]string{}}
	var sections []*ptx.Section
	for _, d := range m.Decls {
		switch d := d.(type) {
		case *ptx.File:
			u.files[d.Index] = d.Name
		case *ptx.Section:
			sections = append(sections, d)
		}
	}
	u.strings = readDebugStrings(sections)
	return u
}

// symbol finds or makes a name. It reports an error and returns nil if the name is already used for something else.
func (l *linker) symbol(u *unit, name string, pos ptx.Pos, isFunc bool) *symbol {
	s := u.symbols[name]
	if s == nil {
		s = &symbol{unit: u, name: name, pos: pos}
		u.symbols[name] = s
		u.order = append(u.order, s)
		return s
	}
	if isFunc != (s.decl != nil) {
		l.errorf(u, pos, "%s is declared as a function and as a variable (line %d)", name, s.pos.Line)
		return nil
	}
	return s
}

func (l *linker) declareFunc(u *unit, d *ptx.Func) {
	s := l.symbol(u, d.Name, d.Pos, true)
	if s == nil {
		return
	}
	if s.defined && d.Body != nil {
		l.errorf(u, d.Pos, "function %s is defined twice (first in line %d)", d.Name, s.pos.Line)
		return
	}
	s.linkage |= d.Linkage
	if s.decl == nil || d.Body != nil {
		s.decl, s.pos = d, d.Pos
	}
	s.defined = s.defined || d.Body != nil
}

func (l *linker) declareVar(u *unit, d *ptx.Var, n *ptx.VarName) {
	switch d.Space {
	case "global", "const", "shared":
	case "reg", "sreg", "local", "param":
		u.outside[n.Name] = d.Space // PTX 1.x has them; their uses are refused
		return
	default:
		return // .tex and the like: using one is an unknown name
	}
	if _, ok := typeByName[d.Type]; !ok {
		return // texref, samplerref, surfref
	}
	s := l.symbol(u, n.Name, n.Pos, false)
	if s == nil {
		return
	}
	defines := d.Linkage&ptx.Extern == 0
	if defines && n.Init == nil && slices.Contains(n.Dims, -1) {
		l.errorf(u, n.Pos, "variable %s needs a size, an initial value or .extern", n.Name)
	}
	if s.defined && defines && d.Linkage&ptx.Common == 0 {
		l.errorf(u, n.Pos, "variable %s is defined twice (first in line %d)", n.Name, s.pos.Line)
		return
	}
	s.linkage |= d.Linkage
	if s.varDecl == nil || defines && !s.defined {
		s.varDecl, s.varName, s.pos = d, n, n.Pos
	}
	s.defined = s.defined || defines
}

// resolve determines the meaning of a name of a module and makes the function or variable at its first appearance.
func (l *linker) resolve(s *symbol) {
	if s.linkage == 0 {
		s.resolved = s
		l.make(s)
		return
	}
	g := l.globals[s.name]
	if g == nil {
		l.globals[s.name] = s
		s.resolved = s
		l.make(s)
		return
	}
	s.resolved = g
	switch {
	case (g.decl != nil) != (s.decl != nil):
		l.errorf(s.unit, s.pos, "%s is a function in one module and a variable in another (%s)", s.name, g.unit.m.Name)
	case !s.defined, g.defined && s.linkage&(ptx.Weak|ptx.Common) != 0:
	case !g.defined || g.linkage&(ptx.Weak|ptx.Common) != 0:
		g.take(s)
	default:
		l.errorf(s.unit, s.pos, "%s is defined in %s too (line %d)", s.name, g.unit.m.Name, g.pos.Line)
	}
	if g.linkage&ptx.Common != 0 && g.v != nil {
		if size, _ := varSize(s.varDecl, s.varName); size > g.v.Size {
			g.v.Size = size
		}
	}
}

// take copies the definition of s to g.
func (g *symbol) take(s *symbol) {
	g.defined, g.unit, g.pos, g.linkage = true, s.unit, s.pos, s.linkage
	g.decl, g.varDecl, g.varName = s.decl, s.varDecl, s.varName
	if g.fn != nil {
		g.fn.Decl, g.fn.Entry = s.decl, s.decl.Entry
		return
	}
	fillVar(g.v, s)
}

// make creates the function or variable of a symbol.
func (l *linker) make(s *symbol) {
	if s.decl != nil {
		s.fn = &Func{Index: len(l.out.Funcs), Name: s.name, Entry: s.decl.Entry, Decl: s.decl}
		l.out.Funcs = append(l.out.Funcs, s.fn)
		l.owners = append(l.owners, s)
		return
	}
	s.v = &Var{Index: len(l.out.Vars), Name: s.name}
	fillVar(s.v, s)
	if s.v.Size > maxVar {
		l.errorf(s.unit, s.pos, "variable %s is too large", s.name)
		s.v.Size = 0
	}
	l.out.Vars = append(l.out.Vars, s.v)
}

// maxVar bounds the size of a variable, far above any device.
const maxVar = 1 << 44

// declaredSize is the bytes of an element of a declared variable.
func declaredSize(d *ptx.Var) int { return typeByName[d.Type].Size() * max(d.Vector, 1) }

// varSize returns the size of a declared name and of one element; the size is beyond maxVar when it is absurd.
func varSize(d *ptx.Var, n *ptx.VarName) (size, elem int64) {
	elem = int64(declaredSize(d))
	size = elem
	for i, dim := range n.Dims {
		if dim < 0 {
			dim = 0
			if i == 0 && n.Init != nil {
				dim = int64(len(n.Init.List))
			}
		}
		if dim > 0 && size > maxVar/dim {
			return maxVar + 1, elem
		}
		size *= dim
	}
	return size, elem
}

func fillVar(v *Var, s *symbol) {
	d, n := s.varDecl, s.varName
	size, elem := varSize(d, n)
	v.Decl, v.Size, v.Linkage = d, size, s.linkage
	v.Align = int64(d.Align)
	if v.Align == 0 {
		v.Align = max(elem, 1)
	}
	v.Space = spaceNames[d.Space]
	v.Dynamic = v.Space == event.Shared && d.Linkage&ptx.Extern != 0
	for _, a := range d.Attributes {
		for _, arg := range a.Args {
			v.Managed = v.Managed || arg.Name == "managed"
		}
	}
}

// aliases resolves the .alias directives of a module.
func (l *linker) aliases(u *unit) {
	for _, a := range u.alias {
		old, s := u.target(a.Old), u.target(a.New)
		switch {
		case old == nil || old.fn == nil:
			l.errorf(u, a.Pos, ".alias of %s, which is not a function of this module", a.Old)
		case s == nil || s.fn == nil:
			l.errorf(u, a.Pos, ".alias %s is not declared as a function", a.New)
		case s == old:
			l.errorf(u, a.Pos, ".alias of %s to itself", a.New)
		default:
			s.resolved = old
		}
	}
}

// target follows a symbol to its function or variable. It returns nil if the name is unknown.
func (u *unit) target(name string) *symbol {
	s := u.symbols[name]
	if s == nil {
		return nil
	}
	for s.resolved != s {
		s = s.resolved
	}
	return s
}

// names fills Module.ByName: visible names first, then names private to a module; the first of each name counts.
func (l *linker) names() {
	for pass := range 2 {
		for _, u := range l.units {
			for _, s := range u.order {
				t := u.target(s.name)
				if t.fn == nil || (s.linkage != 0) != (pass == 0) {
					continue
				}
				if _, ok := l.out.ByName[s.name]; !ok {
					l.out.ByName[s.name] = t.fn
				}
			}
		}
	}
}

// signature lays out the parameters of a function and reads its directives.
func (l *linker) signature(f *Func) {
	u := l.unitOf(f)
	f.Sig, f.ParamFrame = layParams(f.Decl.Rets, f.Decl.Params)
	if f.Decl.Body == nil && builtins[f.Name] {
		f.Builtin = f.Name
	}
	extents := func(d *ptx.Directive) *event.Dim3 {
		x := dims(d.Args)
		if x == nil {
			l.errorf(u, d.Pos, ".%s takes one to three numbers of at most 31 bits", d.Name)
		}
		return x
	}
	for _, d := range append(append([]*ptx.Directive{}, f.Decl.Attributes...), f.Decl.Directives...) {
		switch d.Name {
		case "noreturn":
			f.NoReturn = true
		case "maxntid":
			if x := extents(d); x != nil {
				f.MaxThreads = int(min(x.Count(), 1<<31-1))
			}
		case "reqntid":
			if x := extents(d); x != nil {
				f.ReqThreads = *x
			}
		case "explicitcluster":
			f.ExplicitCluster = true
		case "reqnctapercluster":
			if x := extents(d); x != nil {
				f.Cluster = *x
			}
		case "maxclusterrank":
			if x := extents(d); x != nil {
				f.MaxCluster = int(x.X)
			}
		}
	}
	if f.ParamFrame > maxFrame {
		l.errorf(u, f.Decl.Pos, "the parameters of %s are too large", f.Name)
		f.ParamFrame = 0
	}
}

// maxFrame bounds the frames of one function, in bytes: the greatest size of a thread's local memory on any device.
const maxFrame = 512 << 10

// dims reads up to three extents; absent ones are 1. nil when there is none, or what is no number, or too large.
func dims(args []ptx.Operand) *event.Dim3 {
	d := [3]uint32{1, 1, 1}
	if len(args) == 0 {
		return nil
	}
	for i, a := range args {
		lit, err := ptx.ParseLiteral(a.Name)
		if i > 2 || err != nil || lit.Bits > 1<<31-1 {
			return nil
		}
		d[i] = uint32(lit.Bits)
	}
	return &event.Dim3{X: d[0], Y: d[1], Z: d[2]}
}

// layParams lays out parameters and results in a parameter frame. Parameters come first, so that those of a kernel
// begin at 0.
func layParams(rets, params []*ptx.Var) (Signature, int) {
	var s Signature
	at := 0
	lay := func(vars []*ptx.Var) []Param {
		var ps []Param
		for _, v := range vars {
			for i := range v.Names {
				p := layParam(v, &v.Names[i], &at)
				slots := max(v.Vector, 1) * slotsOf(p.Type)
				if v.Space != "reg" || slots < 2 {
					ps = append(ps, p)
					continue
				}
				p.Size, p.Vec = min(p.Type.Size(), 8), slots
				for range slots {
					ps = append(ps, p)
					p.Vec = 0
				}
			}
		}
		return ps
	}
	s.Params = lay(params)
	s.Rets = lay(rets)
	return s, (at + 15) &^ 15
}

func layParam(v *ptx.Var, n *ptx.VarName, at *int) Param {
	t := typeByName[v.Type]
	size, elem := varSize(v, n)
	p := Param{Name: n.Name, Type: t, Size: int(min(size, 2*maxFrame)), Align: v.Align, Reg: -1, Off: -1}
	if p.Align == 0 {
		p.Align = max(int(elem), 1)
	}
	if v.Space == "reg" {
		return p
	}
	*at = min(alignUp(*at, p.Align), 2*maxFrame)
	p.Off = *at
	*at = min(*at+p.Size, 2*maxFrame)
	return p
}

// alignUp rounds up to a multiple of a positive number.
func alignUp(x, align int) int {
	if r := x % align; r != 0 {
		x += align - r
	}
	return x
}

// Matches reports whether parameters and results have the same sizes, so that one function can be called as the other.
func (s *Signature) Matches(o *Signature) bool {
	size := func(p, q Param) bool { return p.Size == q.Size }
	return slices.EqualFunc(s.Params, o.Params, size) && slices.EqualFunc(s.Rets, o.Rets, size)
}

// calls completes Func.Calls: direct callees, and for an indirect call its listed candidates or all functions with its
// signature whose address is taken.
func (l *linker) calls() {
	for _, f := range l.out.Funcs {
		seen := map[*Func]bool{}
		add := func(g *Func) {
			if !seen[g] {
				seen[g] = true
				f.Calls = append(f.Calls, g)
			}
		}
		for i := range f.Insts {
			in := &f.Insts[i]
			switch {
			case in.Class != Call:
			case in.Callee != nil:
				add(in.Callee)
			case in.Callees != nil:
				for _, g := range in.Callees {
					add(g)
				}
			default:
				for _, g := range l.taken {
					if g.Sig.Matches(in.CallSig) {
						add(g)
					}
				}
			}
		}
	}
}

// takeAddress records that the address of a function is used.
func (l *linker) takeAddress(f *Func) {
	for _, g := range l.taken {
		if g == f {
			return
		}
	}
	l.taken = append(l.taken, f)
}

// spell looks up an opcode with modifiers, once for each spelling and era.
func (l *linker) spell(op, mods string, of era) ([]*spelling, error) {
	key := op + mods
	if of != today {
		key = string('0'+rune(of)) + key
	}
	s, ok := l.spelled[key]
	if !ok {
		s.list, s.err = l.table.spellings(op, withoutBank(mods))
		if taken := implied[of][op+lastModifier(mods)]; s.err != nil && taken != "" {
			s.list, s.err = l.table.spellings(op, taken+mods)
		}
		// The key is part of the source text; a copy of its own would keep less alive, but the tree is kept anyway.
		l.spelled[strings.Clone(key)] = s
	}
	return s.list, s.err
}
