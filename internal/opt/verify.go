package opt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/isa"
)

// Verify checks the invariants of the form: every value is defined once and before its uses on every path, phis match
// their predecessors, edges are mirrored, blocks end in their only terminator, sites exist, the effects that the law
// protects have one, extensions have bits to extend, and calls and functions pass the parts that their signatures
// require. Tests run it after every pass.
func Verify(f *Func) error {
	dom := Dominators(f)
	pos := map[*Instr]int{}
	defined := map[Value]*Instr{}
	for id, b := range f.Blocks {
		if b.ID != id {
			return fmt.Errorf("block %d stands at %d", b.ID, id)
		}
		for i, in := range b.Instrs {
			pos[in] = i
			if in.Block != b {
				return fmt.Errorf("b%d: %s does not know its block", id, f.Text(in))
			}
			for _, v := range in.Dst {
				if v == NoValue {
					continue
				}
				if defined[v] != nil || f.Def(v) != in {
					return fmt.Errorf("b%d: v%d is defined twice or elsewhere", id, v)
				}
				defined[v] = in
			}
			if term := in.Op >= Jump; term != (i == len(b.Instrs)-1) {
				return fmt.Errorf("b%d: %s: terminators stand last and only there", id, f.Text(in))
			}
			if in.Op == Phi && i > 0 && b.Instrs[i-1].Op != Phi {
				return fmt.Errorf("b%d: phi after other instructions", id)
			}
			if in.Site < -1 || int(in.Site) >= len(f.Sites) || in.Op == Meet && in.Site >= 0 {
				return fmt.Errorf("b%d: %s stands at site %d of %d", id, f.Text(in), in.Site, len(f.Sites))
			}
			if in.Op >= Load && in.Op < Jump && in.Op != Meet && in.Site < 0 && in.Inst.Loc >= 0 {
				return fmt.Errorf("b%d: %s has no site", id, f.Text(in))
			}
			if in.Op == SExt || in.Op == ZExt {
				if n := int(in.Imm); n < 1 || n > f.Width(in.Result()).Bits() {
					return fmt.Errorf("b%d: %s extends no bits, or more than its result has", id, f.Text(in))
				}
			}
			if err := verifyCall(f, in); err != nil {
				return fmt.Errorf("b%d: %s: %w", id, f.Text(in), err)
			}
		}
		if len(b.Instrs) == 0 {
			return fmt.Errorf("b%d is empty", id)
		}
		if err := verifyEdges(f, b); err != nil {
			return err
		}
	}
	for _, b := range f.Blocks {
		for i, in := range b.Instrs {
			uses := in.Args
			if in.Guard != NoValue {
				uses = append(uses[:len(uses):len(uses)], in.Guard)
			}
			for k, a := range uses {
				if a == NoValue {
					continue
				}
				def := defined[a]
				if def == nil {
					return fmt.Errorf("b%d: %s uses v%d, which nothing defines", b.ID, f.Text(in), a)
				}
				at, before := b, def.Block == b && pos[def] < i
				if in.Op == Phi {
					at, before = b.Preds[k], def.Block == b.Preds[k]
				}
				if !before && (def.Block == at || !dom.Dominates(def.Block, at)) {
					return fmt.Errorf("b%d: %s uses v%d before its definition in b%d", b.ID, f.Text(in), a, def.Block.ID)
				}
			}
		}
	}
	return nil
}

// verifyCall checks calls and function boundaries.
func verifyCall(f *Func, in *Instr) error {
	fits := func(vs []Value, params []isa.Param) error {
		for _, p := range params {
			for _, c := range ParamParts(p) {
				if len(vs) == 0 {
					return errors.New("a part is missing")
				}
				if v := vs[0]; v != NoValue && f.Width(v) != c.Width() {
					return fmt.Errorf("v%d has not the width of its part", v)
				}
				vs = vs[1:]
			}
		}
		if len(vs) > 0 {
			return errors.New("a part too many")
		}
		return nil
	}
	switch in.Op {
	case Enter:
		if in.Block != f.entry() || f.Fn.Entry {
			return errors.New("only functions that are called are entered, and at their begin")
		}
		return fits(in.Dst, f.Fn.Sig.Params)
	case Return:
		if f.Fn.Entry {
			return errors.New("a kernel does not return")
		}
		return fits(in.Args, f.Fn.Sig.Rets)
	case Call:
		if len(in.Args) == 0 || (in.Args[0] == NoValue) != (in.Fn != nil) || in.Fn == nil && f.Width(in.Args[0]) != W64 {
			return errors.New("a call is of a function or of an address")
		}
		if in.Fn != nil && hasBody(in.Fn) && !slices.Contains(f.Calls, in.Fn) {
			return errors.New("the function is not listed in Func.Calls")
		}
		if err := fits(in.Args[1:], in.Inst.CallSig.Params); err != nil {
			return err
		}
		return fits(in.Dst, in.Inst.CallSig.Rets)
	}
	return nil
}

func verifyEdges(f *Func, b *Block) error {
	want := map[Op]int{Jump: 1, Branch: 2, Exit: 0, Trap: 0, Return: 0}
	if n, ok := want[b.Term().Op]; ok && n != len(b.Succs) {
		return fmt.Errorf("b%d: %s with %d successors", b.ID, b.Term().Op, len(b.Succs))
	}
	for _, s := range b.Succs {
		if count(s.Preds, b) != count(b.Succs, s) {
			return fmt.Errorf("b%d: the edge to b%d is not mirrored", b.ID, s.ID)
		}
	}
	for _, p := range b.Preds {
		if p.ID >= len(f.Blocks) || f.Blocks[p.ID] != p || count(p.Succs, b) != count(b.Preds, p) {
			return fmt.Errorf("b%d: the edge from b%d is not mirrored", b.ID, p.ID)
		}
	}
	for _, in := range b.Instrs {
		if in.Op == Phi && len(in.Args) != len(b.Preds) {
			return fmt.Errorf("b%d: phi with %d arguments for %d predecessors", b.ID, len(in.Args), len(b.Preds))
		}
	}
	return nil
}

func count(bs []*Block, b *Block) int {
	n := 0
	for _, x := range bs {
		if x == b {
			n++
		}
	}
	return n
}

var opNames = [...]string{Nop: "nop", Phi: "phi", Const: "const", Special: "special", KParam: "param", Symbol: "symbol",
	LocalPtr: "local", Copy: "copy", Add: "add", Sub: "sub", Mul: "mul", And: "and", Or: "or", Xor: "xor", Not: "not",
	Shl: "shl", ShrU: "shru", ShrS: "shrs", MulU: "mulu", MulS: "muls", SExt: "sext", ZExt: "zext", Cmp: "cmp", Sel: "sel",
	Row: "row", Load: "load", Store: "store", Atomic: "atomic", Fence: "fence", Barrier: "barrier", Warp: "warp",
	WarpBar: "warpbar", Builtin: "builtin", Jump: "jump", Branch: "branch", Switch: "switch", Exit: "exit",
	Trap: "trap", Call: "call", Enter: "enter", Depth: "depth", Meet: "meet",
	ShadowLoad: "shadowload", ShadowStore: "shadowstore", ShadowShuffle: "shadowshuffle", ShadowPass: "shadowpass", ShadowTake: "shadowtake", ShadowFrame: "shadowframe", Undefined: "undefined", Return: "return"}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op%d", uint8(o))
}

var condNames = [...]string{"eq", "ne", "lts", "les", "gts", "ges", "ltu", "leu", "gtu", "geu"}

// Text writes an instruction for people.
func (f *Func) Text(in *Instr) string {
	var s strings.Builder
	for i, d := range in.Dst {
		if i > 0 {
			s.WriteString(", ")
		}
		if d == NoValue {
			s.WriteString("_")
			continue
		}
		fmt.Fprintf(&s, "v%d:%d%s", d, f.Width(d).Bits(), f.Values[d].Shape)
	}
	if len(in.Dst) > 0 {
		s.WriteString(" = ")
	}
	if in.Guard != NoValue {
		fmt.Fprintf(&s, "@%sv%d ", map[bool]string{true: "!"}[in.GuardNot], in.Guard)
	}
	s.WriteString(in.Op.String())
	switch in.Op {
	case Cmp:
		s.WriteString("." + condNames[in.Imm])
	case Const, Special, KParam, LocalPtr, SExt, ZExt, Load, Store, Atomic, ShadowLoad, ShadowStore, ShadowFrame, Undefined:
		fmt.Fprintf(&s, " #%#x", in.Imm)
	}
	if in.Fn != nil {
		s.WriteString(" " + in.Fn.Name)
	}
	if in.Inst != nil && in.Inst.Source != nil {
		fmt.Fprintf(&s, " {%s%s}", in.Inst.Source.Op, in.Inst.Source.Mods)
	}
	for _, a := range in.Args {
		if a == NoValue {
			s.WriteString(" _")
			continue
		}
		fmt.Fprintf(&s, " v%d", a)
	}
	if in.Block != nil && in.Op >= Jump {
		for _, t := range in.Block.Succs {
			fmt.Fprintf(&s, " b%d", t.ID)
		}
	}
	return s.String()
}

func (s Shape) String() string {
	switch s.Kind {
	case Uniform:
		return "u"
	case Affine:
		if s.Row != 0 {
			return fmt.Sprintf("a%d,%d", s.Stride, s.Row)
		}
		return fmt.Sprintf("a%d", s.Stride)
	}
	return ""
}

// String writes the whole function for people.
func (f *Func) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "func %s\n", f.Fn.Name)
	for _, b := range f.Blocks {
		fmt.Fprintf(&s, "b%d:", b.ID)
		for _, p := range b.Preds {
			fmt.Fprintf(&s, " <-b%d", p.ID)
		}
		s.WriteString("\n")
		for _, in := range b.Instrs {
			fmt.Fprintf(&s, "\t%s\n", f.Text(in))
		}
	}
	return s.String()
}
