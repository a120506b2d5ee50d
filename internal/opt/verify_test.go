package opt

import (
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
)

// sound returns a function with a loop, a phi, guarded accesses and a value of each kind, which the changes below
// break.
func sound(t *testing.T) *Func {
	t.Helper()
	return builtText(t, kernelBody+`mov.u32 %r3, 0;
	L: @%p0 st.global.u32 [%d0], %r3; add.u32 %r3, %r3, 1; cvt.u32.u8 %r4, %r3; setp.lt.u32 %p2, %r4, %r1; @%p2 bra L;
	@%p1 bra M; st.global.u32 [%d1], %r3; add.u32 %r3, %r3, %r2; M: st.global.u32 [%d1+4], %r3; ret; }
`)
}

// find returns the first instruction of an operation.
func find(t *testing.T, f *Func, op Op) *Instr {
	t.Helper()
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Op == op {
				return in
			}
		}
	}
	t.Fatalf("no %v\n%v", op, f)
	return nil
}

// TestVerify breaks one invariant of a sound function at a time.
func TestVerify(t *testing.T) {
	if err := Verify(sound(t)); err != nil {
		t.Fatal(err)
	}
	swap := func(b *Block, i, j int) { b.Instrs[i], b.Instrs[j] = b.Instrs[j], b.Instrs[i] }
	for name, breaks := range map[string]func(f *Func){
		"a block has another's number":          func(f *Func) { f.Blocks[1].ID = 2 },
		"an instruction names another block":    func(f *Func) { find(t, f, Store).Block = f.Blocks[0] },
		"a block is empty":                      func(f *Func) { b := find(t, f, Exit).Block; b.Instrs = nil },
		"a block has no terminator":             func(f *Func) { b := find(t, f, Exit).Block; b.Instrs = b.Instrs[:len(b.Instrs)-1] },
		"a terminator stands in the middle":     func(f *Func) { b := find(t, f, Exit).Block; swap(b, len(b.Instrs)-1, len(b.Instrs)-2) },
		"a phi stands behind a store":           func(f *Func) { b := find(t, f, Phi).Block; slices.Reverse(b.Instrs[:len(b.Instrs)-1]) },
		"a phi lacks an argument":               func(f *Func) { p := find(t, f, Phi); p.Args = p.Args[1:] },
		"a jump leads nowhere":                  func(f *Func) { j := find(t, f, Jump); j.Block.Succs = nil },
		"an exit leads on":                      func(f *Func) { e := find(t, f, Exit); e.Block.Succs = []*Block{e.Block} },
		"a successor does not know":             func(f *Func) { b := find(t, f, Branch).Block; b.Succs[0].Preds = nil },
		"a predecessor does not know":           func(f *Func) { b := find(t, f, Exit).Block; b.Preds = append(b.Preds, f.Blocks[1]) },
		"one that is no predecessor is listed":  func(f *Func) { b := f.Blocks[1]; b.Preds = append(b.Preds, find(t, f, Exit).Block) },
		"a predecessor is not of the function":  func(f *Func) { strange(f) },
		"a value is defined twice":              func(f *Func) { s, e := find(t, f, Add), find(t, f, ZExt); e.Dst = s.Dst },
		"a value does not know its definition":  func(f *Func) { f.Values[find(t, f, Add).Result()].Def = nil },
		"a value that nothing defines is used":  func(f *Func) { s := find(t, f, Store); s.Args[1] = f.NewValue(W32, nil) },
		"a guard that nothing defines":          func(f *Func) { s := find(t, f, Store); s.Guard = f.NewValue(W1, nil) },
		"a use before the definition":           func(f *Func) { a := find(t, f, Add); a.Args[0] = find(t, f, ZExt).Result() },
		"a use of its own result":               func(f *Func) { a := find(t, f, Add); a.Args[0] = a.Result() },
		"a use that not every way has computed": func(f *Func) { find(t, f, Exit).Args = []Value{added(f)} },
		"a phi of what its edge has not":        func(f *Func) { p := find(t, f, Phi); p.Args[0] = added(f) },
		"an access without a site":              func(f *Func) { s := find(t, f, Store); i := *s.Inst; i.Loc = 0; s.Inst, s.Site = &i, -1 },
		"a site that is none":                   func(f *Func) { find(t, f, Store).Site = int32(len(f.Sites)) },
		"a site below what stands for none":     func(f *Func) { find(t, f, Jump).Site = -2 },
		"a place of meeting at a site":          func(f *Func) { find(t, f, Jump).Block.Instrs[0] = &Instr{Op: Meet, Guard: NoValue, Block: f.Blocks[0]} },
		"an extension of no bits":               func(f *Func) { find(t, f, ZExt).Imm = 0 },
		"an extension of more bits than it has": func(f *Func) { find(t, f, ZExt).Imm = 33 },
		"a kernel returns":                      func(f *Func) { find(t, f, Exit).Op = Return },
		"a kernel is entered": func(f *Func) {
			j := find(t, f, Jump)
			insertBefore(j.Block, &Instr{Op: Enter, Guard: NoValue, Site: -1, Inst: &isa.Inst{Loc: -1}})
		},
	} {
		f := sound(t)
		breaks(f)
		if Verify(f) == nil {
			t.Errorf("%s: nothing is said\n%v", name, f)
		}
	}
}

// strange makes a block that is not in the function, with the number of a block that is, lead to the last block.
func strange(f *Func) {
	last := f.Blocks[len(f.Blocks)-1]
	b := &Block{ID: last.Preds[0].ID, Succs: []*Block{last}}
	last.Preds = append(last.Preds, b)
	for _, in := range last.Instrs {
		if in.Op == Phi {
			in.Args = append(in.Args, in.Args[0])
		}
	}
}

// added returns the value that one path of the last branch computes.
func added(f *Func) Value {
	v := NoValue
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Op == Add {
				v = in.Result()
			}
		}
	}
	return v
}

// TestText checks that the text of an instruction names all its arguments and successors.
func TestText(t *testing.T) {
	b := &Block{Succs: []*Block{{ID: 4}, {ID: 7}}}
	f := &Func{Fn: &isa.Func{Name: "k"}}
	for _, w := range []Width{W1, W32, W64} {
		f.NewValue(w, nil)
	}
	f.Values[1].Shape = Shape{Affine, 4, 0}
	f.Values[2].Shape = Shape{Affine, 4, -8}
	f.Values[0].Shape = Shape{Kind: Uniform}
	for _, c := range []struct {
		in   Instr
		want string
	}{
		{Instr{Op: Row, Dst: []Value{NoValue, 1}, Args: []Value{2, NoValue}}, "_, v1:32a4 = row v2 _"},
		{Instr{Op: Row, Dst: []Value{0, NoValue}, Args: []Value{1}}, "v0:1u, _ = row v1"},
		{Instr{Op: Load, Dst: []Value{2}, Args: []Value{2}, Imm: 16, Guard: 0, GuardNot: true}, "v2:64a4,-8 = @!v0 load #0x10 v2"},
		{Instr{Op: Store, Args: []Value{2, 1}, Guard: 0}, "@v0 store #0x0 v2 v1"},
		{Instr{Op: Cmp, Dst: []Value{0}, Args: []Value{1, 1}, Imm: uint64(GEU)}, "v0:1u = cmp.geu v1 v1"},
		{Instr{Op: Depth, Fn: f.Fn}, "depth k"},
		{Instr{Op: Branch, Args: []Value{0}, Block: b}, "branch v0 b4 b7"},
		{Instr{Op: Op(200)}, "op200"},
	} {
		if !strings.Contains(c.want, "@") {
			c.in.Guard = NoValue
		}
		if got := f.Text(&c.in); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
