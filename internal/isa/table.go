package isa

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"fencepost.dev/fencepost/internal/event"
)

// The notation of Form.Syntax is that of the manual with a few annotations:
//
//	.mod{.mod} operand, operand{, operand}; name: value value ...; name: value ...
//
// A modifier in braces is optional. A modifier whose name has a list of values (after a semicolon, or in sets) stands
// for any of them; any other stands for itself. The order of modifiers is not checked, except that types keep theirs.
//
// Operands named d, d1, p, q are results and all others sources. An operand without annotation has the instruction's
// type, the first type modifier.
//
//	a:u32    has that type; a:atype has the type chosen for .atype; a:wide twice the width of the instruction's type
//	a~       the register may be wider than the type
//	[a]      is an address
//	d|p      is a pair; d{|p} a pair whose second half is optional
//	a^2      may have a selector of 1, 2 or 4 parts, which becomes a source of its own; d^1 must have one (see videoRows)
//	-a       may have a sign, which becomes a source of its own, or part of its selector
//	<a>      is a vector, of .vec elements or as many as fill the instruction's type
//	a*4      is a vector of 4 registers; for one register the braces are optional
//	word'    is text for people: the decoder reads the operands of that instruction itself
//	{, b}    is optional
var sets = map[string][]string{
	"rnd":   {"rn", "rz", "rm", "rp"},
	"scope": {"cta", "cluster", "gpu", "sys"},
	"space": {"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry", "param::func"},
	"vec":   {"v2", "v4", "v8"},
	"ehint": {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
		"L2::evict_normal", "L2::evict_first", "L2::evict_last"},
	"prefetch_size": {"L2::64B", "L2::128B", "L2::256B"},
}

// form is a parsed Form.
type form struct {
	row   *Row
	decl  *Form
	slots []slot
	ops   []opSpec
	// text says that the operands are text for people.
	text bool
}

// slot is one modifier of a form.
type slot struct {
	name string // "" for a literal
	opt  bool
	toks []string
}

// opSpec is one operand of a form.
type opSpec struct {
	name   string
	ann    string // the annotation after the colon
	typ    Type   // resolved for a spelling
	dst    bool
	opt    bool
	addr   bool
	vector bool
	wider  bool    // the register may be wider
	ways   int     // number of parts that a selector names, 0 if there is none
	count  int     // number of registers of a vector if the form fixes it, else 0
	neg    bool    // may have a sign
	braced bool    // an element in braces, where one untyped register makes the others untyped
	pair   *opSpec // the half after the bar
}

// table is the parsed instruction table: the forms of each opcode in the order of the rows.
type table struct {
	rows  []*Row
	forms map[string][]*form
	ops   []string // sorted
}

// theTable parses the rows once.
var theTable = sync.OnceValue(func() *table {
	t := &table{forms: map[string][]*form{}}
	for _, chapter := range [][]*Row{integerRows, extendedRows, videoRows, floatRows, halfRows, mixedRows, compareRows, logicRows, convertRows,
		memoryRows, controlRows, syncRows, warpRows, matrixRows, multiplyRows, wmmaRows, copyRows, tensorRows, wgmmaRows, tensorCoreRows, textureRows, surfaceRows, mbarrierRows, stackRows, miscRows} {
		t.rows = append(t.rows, chapter...)
	}
	for _, r := range t.rows {
		if t.forms[r.Op] == nil {
			t.ops = append(t.ops, r.Op)
		}
		for i := range r.Forms {
			t.forms[r.Op] = append(t.forms[r.Op], readForm(r, &r.Forms[i]))
		}
	}
	slices.Sort(t.ops)
	return t
})

// Rows returns the instruction table in the order of the manual. The rows are shared: do not change them.
func Rows() []*Row { return theTable().rows }

// forms makes a list of exact forms.
func forms(syntax ...string) []Form {
	fs := make([]Form, len(syntax))
	for i, s := range syntax {
		fs[i].Syntax = s
	}
	return fs
}

// approx makes a list of forms whose results have a tolerance.
func approx(ulp float64, syntax ...string) []Form {
	fs := forms(syntax...)
	for i := range fs {
		fs[i].Ulp = ulp
	}
	return fs
}

// readForm parses a form. An error in the table is a panic.
func readForm(r *Row, f *Form) *form {
	head, defs := splitDefs(f.Syntax)
	out := &form{row: r, decl: f}
	mods, operands, _ := strings.Cut(head, " ")
	if !strings.HasPrefix(head, ".") && !strings.HasPrefix(head, "{.") {
		mods, operands = "", head
	}
	for mods != "" {
		opt := mods[0] == '{'
		mods = strings.TrimPrefix(mods, "{")
		end := strings.IndexAny(mods[1:], ".{}") + 1
		if end == 0 {
			end = len(mods)
		}
		name := mods[1:end]
		s := slot{name: name, opt: opt, toks: defs[name]}
		if s.toks == nil {
			s.toks = sets[name]
		}
		if s.toks == nil {
			s.name, s.toks = "", []string{name}
		}
		out.slots = append(out.slots, s)
		mods = mods[end:]
		if opt {
			mods = strings.TrimPrefix(mods, "}")
		}
	}
	if strings.HasSuffix(operands, "'") {
		out.text = true
		return out
	}
	out.ops = readOperands(operands)
	return out
}

// splitDefs separates a form's head from its lists of values.
func splitDefs(syntax string) (string, map[string][]string) {
	head, rest, _ := strings.Cut(syntax, ";")
	defs := map[string][]string{}
	for _, d := range strings.Split(rest, ";") {
		if name, values, ok := strings.Cut(d, ": "); ok {
			defs[strings.TrimSpace(name)] = strings.Fields(values)
		}
	}
	return strings.TrimSpace(head), defs
}

// readOperands reads the operand part of a form.
func readOperands(s string) []opSpec {
	var ops []opSpec
	opt := false
	for s = strings.TrimSpace(s); s != ""; {
		if strings.HasPrefix(s, "{,") {
			opt, s = true, s[1:]
		}
		s = strings.TrimLeft(s, ", ")
		end := strings.IndexAny(s, ",{}|")
		if end < 0 {
			end = len(s)
		}
		o := readOperand(strings.TrimSpace(s[:end]), opt)
		s = s[end:]
		if strings.HasPrefix(s, "|") || strings.HasPrefix(s, "{|") {
			optPair := s[0] == '{'
			s = strings.TrimLeft(s, "{|")
			end = strings.IndexAny(s+",", ",}{")
			p := readOperand(strings.TrimSpace(s[:end]), optPair)
			o.pair = &p
			s = s[end:]
			if optPair {
				s = strings.TrimPrefix(s, "}")
			}
		}
		ops = append(ops, o)
		if opt && strings.HasPrefix(s, "}") {
			opt, s = false, s[1:]
		}
		s = strings.TrimSpace(s)
	}
	return ops
}

func readOperand(s string, opt bool) opSpec {
	o := opSpec{opt: opt}
	s, o.ann, _ = strings.Cut(s, ":")
	s, o.neg = strings.CutPrefix(s, "-")
	if name, ways, ok := strings.Cut(s, "^"); ok {
		s, o.ways = name, int(ways[0]-'0')
	}
	if name, n, ok := strings.Cut(s, "*"); ok {
		s, o.count = name, number(n)
	}
	if strings.HasSuffix(o.ann, "~") {
		o.ann, o.wider = strings.TrimSuffix(o.ann, "~"), true
	}
	if strings.HasSuffix(s, "~") {
		s, o.wider = strings.TrimSuffix(s, "~"), true
	}
	switch {
	case strings.HasPrefix(s, "["):
		o.addr, s = true, strings.Trim(s, "[]")
	case strings.HasPrefix(s, "<"):
		o.vector, s = true, strings.Trim(s, "<>")
	}
	o.name = s
	o.dst = s == "d" || s == "d1" || s == "p" || s == "q"
	return o
}

// number reads a number of the table. An error is a panic.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("BUG: in the instruction table: " + err.Error())
	}
	return n
}

// spelling is an opcode with modifiers, checked against the table: the data that all its uses share.
type spelling struct {
	form  *form
	proto Inst
	ops   []opSpec // with types
}

// spellings returns the forms that an opcode with modifiers may have, which then differ in their operands. The error is
// a text without a place.
func (t *table) spellings(op, mods string) ([]*spelling, error) {
	fs := t.forms[op]
	if fs == nil && missing[op] {
		return nil, fmt.Errorf("%s is not supported", op+mods)
	}
	if fs == nil {
		return nil, fmt.Errorf("unknown instruction %s%s", op+mods, didYouMean(op, t.ops))
	}
	var toks []string
	if mods != "" {
		toks = strings.Split(mods[1:], ".")
	}
	var out []*spelling
	for _, f := range fs {
		if chosen, ok := f.match(toks); ok {
			out = append(out, f.spell(chosen))
		}
	}
	if out == nil && partly[op] {
		return nil, fmt.Errorf("%s is not supported", op+mods)
	}
	if out == nil {
		return nil, mismatch(op, toks, fs)
	}
	return out, nil
}

// match assigns each token to a modifier of the form: the first free one that accepts it. The result has one entry a
// slot, "" for an absent one.
func (f *form) match(toks []string) ([]string, bool) {
	chosen := make([]string, len(f.slots))
	for _, tok := range toks {
		if f.take(chosen, tok) < 0 {
			return nil, false
		}
	}
	for i, s := range f.slots {
		if chosen[i] == "" && !s.opt {
			return nil, false
		}
	}
	return chosen, true
}

// take returns the first free modifier that accepts a token, and -1 if there is none. Types are in the order of the
// form: cvt.rn.bf16.f16 is not cvt.rn.f16.bf16.
func (f *form) take(chosen []string, tok string) int {
	from := 0
	if typeByName[tok] != NoType {
		for i, c := range chosen {
			if typeByName[c] != NoType {
				from = i + 1
			}
		}
	}
	for i, s := range f.slots {
		if i >= from && chosen[i] == "" && slices.Contains(s.toks, tok) {
			chosen[i] = tok
			return i
		}
	}
	return -1
}

// spell makes the spelling of a form with the chosen modifiers.
func (f *form) spell(chosen []string) *spelling {
	sp := &spelling{form: f}
	in := &sp.proto
	in.Row, in.Class = f.row, f.row.Class
	in.Guard, in.Loc, in.Vec = -1, -1, 1
	in.CarryIn = f.row.Carry
	types := map[string]Type{}
	for i, tok := range chosen {
		if tok == "" {
			continue
		}
		in.Mods = append(in.Mods, tok)
		name := f.slots[i].name
		if t, ok := typeByName[tok]; ok {
			types[name] = t
			if in.Type == NoType {
				in.Type = t
			} else if in.Type2 == NoType {
				in.Type2 = t
			}
			continue
		}
		in.setMod(name, tok)
	}
	memoryDefaults(in)
	for _, o := range f.ops {
		if !o.dst {
			in.sources++
		}
	}
	sp.ops = make([]opSpec, len(f.ops))
	for i, o := range f.ops {
		sp.ops[i] = o.resolve(in, types)
	}
	if f.row.Bind != nil {
		f.row.Bind(in)
	}
	return sp
}

// resolve returns the operand with its type.
func (o opSpec) resolve(in *Inst, types map[string]Type) opSpec {
	switch t, ok := types[o.ann]; {
	case o.ann == "":
		o.typ = in.Type
	case ok && o.ann != "":
		o.typ = t
	case o.ann == "wide":
		o.typ = map[Type]Type{U16: U32, S16: S32, U32: U64, S32: S64}[in.Type]
	default:
		o.typ = typeByName[o.ann]
	}
	if o.typ == NoType && !o.addr {
		panic(fmt.Sprintf("BUG: %s: operand %s has no type", in.Row.Op, o.name))
	}
	if o.pair != nil {
		p := o.pair.resolve(in, types)
		o.pair = &p
	}
	return o
}

// Has reports whether the instruction has a modifier.
func (in *Inst) Has(mod string) bool { return slices.Contains(in.Mods, mod) }

// setMod records a modifier that is not a type.
func (in *Inst) setMod(slot, tok string) {
	switch slot {
	case "cmp":
		in.Cmp = cmpNames[tok]
		return
	case "op", "bop":
		in.Op = opNames[tok]
		return
	case "mode":
		in.Mode = modeNames[tok]
		return
	case "rnd", "irnd":
		in.Round = roundNames[tok]
		return
	case "space":
		in.Space = spaceNames[tok]
		return
	case "sem":
		in.Order = orderNames[tok]
		return
	case "scope":
		in.Scope = scopeNames[tok]
		return
	case "vec", "num":
		in.Vec = tok[1] - '0'
		return
	}
	switch tok {
	case "sat", "satfinite":
		in.Sat = true
	case "ftz":
		in.Ftz = true
	case "approx":
		in.Approx = true
	case "full":
		in.Full = true
	case "hi":
		in.Hi = true
	case "wide":
		in.Wide = true
	case "cc":
		in.CarryOut = true
	case "aligned":
		in.Aligned = true
	}
	if r, ok := roundNames[tok]; ok && slot == "" {
		in.Round = r
	}
}

var spaceNames = map[string]event.Space{"global": event.Global, "shared": event.Shared, "shared::cta": event.Shared,
	"shared::cluster": event.Shared, "local": event.Local, "const": event.Const, "param": event.Param,
	"param::entry": event.Param, "param::func": event.Param}

var orderNames = map[string]event.Order{"weak": event.Weak, "volatile": event.Volatile, "relaxed": event.Relaxed,
	"acquire": event.Acquire, "release": event.Release, "acq_rel": event.AcqRel, "sc": event.SC}

var scopeNames = map[string]event.Scope{"cta": event.ScopeCTA, "cluster": event.ScopeCluster, "gpu": event.ScopeGPU,
	"sys": event.ScopeSys, "gl": event.ScopeGPU}

// mismatch explains why no form accepts the modifiers. It uses the form that accepts most of them.
func mismatch(op string, toks []string, fs []*form) error {
	var best *form
	var bestLeft []string
	var bestMissing []string
	cost := 0
	for _, f := range fs {
		chosen := make([]string, len(f.slots))
		var left []string
		for _, tok := range toks {
			if f.take(chosen, tok) < 0 {
				left = append(left, tok)
			}
		}
		var missing []string
		for i, s := range f.slots {
			if chosen[i] == "" && !s.opt {
				missing = append(missing, "."+strings.Join(s.toks, " ."))
			}
		}
		// A superfluous modifier counts more than a missing one.
		if c := 2*len(left) + len(missing); best == nil || c < cost {
			best, bestLeft, bestMissing, cost = f, left, missing, c
		}
	}
	spelled := op
	for _, t := range toks {
		if !slices.Contains(bestLeft, t) {
			spelled += "." + t
		}
	}
	if len(bestLeft) > 0 {
		return fmt.Errorf("%s does not take .%s; known: %s", spelled, strings.Join(bestLeft, " ."), best.decl.Display(op))
	}
	return fmt.Errorf("%s needs one of %s; known: %s", spelled, strings.Join(bestMissing, ", and of "), best.decl.Display(op))
}

// didYouMean returns the nearest valid word, "" if none is near.
func didYouMean(word string, valid []string) string {
	best, at := 3, ""
	for _, v := range valid {
		if d := editDistance(word, v, best); d < best && d < max(2, len(word)/2) {
			best, at = d, v
		}
	}
	if at == "" {
		return ""
	}
	return "; the nearest known one is " + at
}

// editDistance is the Levenshtein distance, or limit if it is that or more.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 64 {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost = 1 + min(diag, row[j], row[j+1])
			}
			diag, row[j+1] = row[j+1], cost
		}
	}
	return min(row[len(b)], limit)
}
