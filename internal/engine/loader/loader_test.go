package loader

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

const source = `.version 8.0
.target sm_80
.address_size 64
.func helper () { ret; }
.global .align 4 .u32 counter = 7;
.global .align 8 .u64 where[2] = {generic(counter), helper};
.const .align 4 .b8 text[3] = {1, 2, 3};
.visible .entry k (.param .u64 p, .param .u32 n)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	.shared .align 4 .b8 first[10];
	.shared .align 4 .b8 second[8];
	mov.u64 %rd1, counter;
	mov.u32 %r1, second;
	ld.shared.u32 %r2, [second+4];
	st.shared.v2.u32 [first], {%r1, 5};
	ret;
}`

func load(t *testing.T) (*Program, *devmem.Memory) {
	t.Helper()
	mod, err := ptx.Parse("test.ptx", source)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := isa.Decode(mod)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := devmem.New(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mem.Close() })
	p, err := Load(dec, mem)
	if err != nil {
		t.Fatal(err)
	}
	return p, mem
}

// TestLoad checks that variables have addresses and initial values, which may be addresses, until the program is
// unloaded.
func TestLoad(t *testing.T) {
	p, mem := load(t)
	counter, size, ok := p.Symbol("counter")
	if !ok || size != 4 {
		t.Fatalf("counter has %d bytes, %v", size, ok)
	}
	where, _, _ := p.Symbol("where")
	data, err := mem.Bytes(where, 16)
	if err != nil {
		t.Fatal(err)
	}
	helper := p.Module.ByName["helper"]
	if a, f := devmem.Uint(data, 8), devmem.Uint(data[8:], 8); a != counter || f != p.FuncAddr(helper) || p.FuncAt(f) != helper || p.FuncAt(f+1<<20) != nil {
		t.Errorf("addresses %#x and %#x", a, f)
	}
	if data, err = mem.Bytes(counter, 4); err != nil || devmem.Uint(data, 4) != 7 {
		t.Errorf("counter is %v, %v", data, err)
	}
	text, _, _ := p.Symbol("text")
	if a, ok := mem.Find(text); !ok || !a.Const {
		t.Errorf("the constant is %+v", a)
	}
	if _, _, ok := p.Symbol("first"); ok || p.Kernel("helper") != nil || p.Kernel("k") == nil {
		t.Error("names stand for something else")
	}
	hello := p.ConstText("hello")
	if again := p.ConstText("hello"); hello == 0 || again != hello {
		t.Errorf("a text is at %#x and %#x", hello, again)
	}
	p.Unload()
	if l := mem.Allocs(); len(l) != 0 {
		t.Errorf("%+v stay", l)
	}
}

// TestImage checks that operands are resolved for a kernel.
func TestImage(t *testing.T) {
	p, _ := load(t)
	k := p.Kernel("k")
	img := p.Image(k)
	if p.Image(k) != img {
		t.Error("there are two images of one kernel")
	}
	c := img.Code(k)
	counter, _, _ := p.Symbol("counter")
	i := slices.IndexFunc(p.Module.Vars, func(v *isa.Var) bool { return v.Name == "second" })
	if i < 0 {
		t.Fatal("there is no variable second")
	}
	second := uint64(img.Layout.Offset[p.Module.Vars[i].Index])
	if c.Params != 12 || c.Insts[0].Operands[0] != (Operand{Val: counter}) || c.Insts[1].Operands[0] != (Operand{Val: second}) {
		t.Errorf("%d bytes of parameters, operands %+v and %+v", c.Params, c.Insts[0].Operands, c.Insts[1].Operands)
	}
	if in := &c.Insts[2]; in.Offset != 4 || in.Width != 4 || in.VarBegin != second || in.VarEnd != second+8 || in.Pieces() != 1 || in.Strong() || in.Mnemonic() != "ld.shared.u32" {
		t.Errorf("the load is %+v", in)
	}
	if in := &c.Insts[3]; in.Width != 8 || in.Piece != 4 || in.Pieces() != 2 {
		t.Errorf("the store is %+v", in)
	}
	if name, at, ok := p.SharedVar(k, second+7); name != "second" || at != second || !ok {
		t.Errorf("%s from %d on, %v", name, at, ok)
	}
}

// TestKeep checks that a kept value is made once for each key.
func TestKeep(t *testing.T) {
	type a struct{}
	type b struct{}
	p, _ := load(t)
	made := 0
	made1 := func() any { made++; return made }
	if x, y, z := p.Keep(a{}, made1), p.Keep(a{}, made1), p.Keep(b{}, made1); x != 1 || y != 1 || z != 2 {
		t.Errorf("%v, %v, %v", x, y, z)
	}
}
