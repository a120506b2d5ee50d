package opt

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// kernelHead declares the parameters and registers of these tests: a parameter block of 48 bytes, and registers of
// every size.
const kernelHead = ".version 8.0\n.target sm_80\n.address_size 64\n"

const kernelBody = ".visible .entry k(.param .align 8 .b8 in[48])\n{\n" +
	".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b16 %h<9>; .reg .b8 %b<9>; .reg .pred %p<9>;\n" +
	"ld.param.u32 %r0, [in]; ld.param.u32 %r1, [in+4]; ld.param.u32 %r2, [in+8]; ld.param.u64 %d0, [in+16]; ld.param.u64 %d1, [in+24];\n" +
	"ld.param.u16 %h0, [in+32]; ld.param.u16 %h1, [in+34]; setp.lt.s32 %p0, %r0, %r1; setp.lt.u32 %p1, %r1, %r2;\n"

// TestSmallPrograms runs kernels as decoded and as optimised.
func TestSmallPrograms(t *testing.T) {
	functions := `.func (.reg .b32 r) down(.reg .b32 x, .reg .b64 y) {
	.reg .pred %p; .reg .b32 %a; .reg .b64 %b;
	cvt.u32.u64 r, y; setp.eq.u32 %p, x, 0; @%p bra END;
	sub.u32 %a, x, 1; add.u64 %b, y, 7; call (r), down, (%a, %b); add.u32 r, r, x;
END: ret; }
.func (.reg .b32 r) twice(.reg .b32 x, .reg .b64 y) { .reg .b32 %a; cvt.u32.u64 %a, y; shl.b32 r, x, 1; sub.u32 r, r, %a; ret; }
`
	for _, c := range []struct{ name, code string }{
		{"a thrown away result leaves every register", "add.u32 _, %r0, 5; add.u64 _, %d0, 5; mov.u32 _, %r1; not.b32 _, %r2;"},
		{"one of two predicates thrown away", "setp.lt.and.s32 %p2|_, %r0, %r1, %p1; selp.u32 %r3, 1, 2, %p2; st.global.u32 [48], %r3; " +
			"setp.lt.and.s32 %p3|%p4, %r0, %r1, %p1; selp.u32 %r4, 1, 2, %p3; selp.u32 %r5, 1, 2, %p4; st.global.u32 [52], %r4; st.global.u32 [56], %r5;"},
		{"the other of two predicates thrown away", "setp.lt.and.s32 _|%p2, %r0, %r1, %p1; selp.u32 %r3, 1, 2, %p2; st.global.u32 [48], %r3; " +
			"setp.lt.and.s32 %p3|%p4, %r0, %r1, %p1; selp.u32 %r4, 1, 2, %p3; selp.u32 %r5, 1, 2, %p4; st.global.u32 [52], %r4; st.global.u32 [56], %r5;"},
		{"half of a register thrown away", "mov.b64 {%r3, _}, %d0; st.global.u32 [48], %r3; mov.b64 {_, %r4}, %d0; st.global.u32 [52], %r4; mov.b64 {%r5, %r6}, %d0; add.u32 %r5, %r5, %r6; st.global.u32 [56], %r5;"},
		{"arguments and results in registers, of a call that stays", "and.b32 %r3, %r1, 7; call (%r4), down, (%r3, %d0); st.global.u32 [48], %r4;"},
		{"arguments and results in registers, of an inlined call", "call (%r4), twice, (%r1, %d0); call (%r5), twice, (%r4, %d1); st.global.u32 [48], %r5;"},
		{"parameters and results across branches out", "{ .param .b32 x; .param .b64 y; .param .b32 o; st.param.b32 [x], %r1; st.param.b64 [y], %d0; @%p0 bra S; st.global.u32 [48], 1; call (o), twice, (x, y); " +
			"@%p1 bra S; ld.param.b32 %r3, [o]; st.global.u32 [52], %r3; st.param.b32 [x], %r3; @!%p1 bra S; call (o), twice, (x, y); ld.param.b32 %r4, [o]; st.global.u32 [56], %r4; } S:"},
		{"arguments that are numbers", "call (%r4), twice, (5, %d0); call (%r5), down, (3, 11); st.global.u32 [48], %r4; st.global.u32 [52], %r5;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			end := "st.global.u32 [0], %r0; st.global.u32 [4], %r1; st.global.u32 [8], %r2; st.global.u64 [16], %d0; st.global.u64 [24], %d1; st.global.u16 [32], %h0; ret; }\n"
			checkProgram(t, 1, kernelHead+functions+kernelBody+c.code+end)
		})
	}
}

// TestPassesReport checks that a pass reports a change if and only if it changed the function.
func TestPassesReport(t *testing.T) {
	for seed := range uint64(24) {
		f := builtText(t, strings.TrimPrefix(randomProgram(seed), kernelHead))
		for round := range 3 {
			for _, p := range Passes() {
				before := f.String()
				said, did := p.Run(f), f.String() != before
				if said != did {
					t.Fatalf("program %d, round %d: %s says %v, changed the function: %v\nbefore\n%s\nafter\n%s", seed, round, p.Name, said, did, before, f)
				}
			}
		}
	}
}

// countOps counts the instructions of an operation.
func (f *Func) countOps(op Op) int {
	n := 0
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Op == op {
				n++
			}
		}
	}
	return n
}

// optimised builds and optimises a kernel.
func optimised(t *testing.T, code string) *Func {
	t.Helper()
	f := builtText(t, kernelBody+code+" ret; }\n")
	optimiseVerified(t, "k.ptx", f)
	return f
}

// TestUnrolls checks that a loop with a known number of iterations is unrolled, whatever loops are around it.
func TestUnrolls(t *testing.T) {
	five := "mov.u32 %r3, 0; FIVE: st.global.u32 [%d0], %r3; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5; @%p2 bra FIVE;\n"
	// The loop search has two ways out, and times as many turns as a parameter says.
	search := "mov.u32 %r4, 0; SEARCH: ld.global.u32 %r5, [%d1]; setp.eq.u32 %p3, %r5, 7; @%p3 bra FOUND; add.u32 %r4, %r4, 1; setp.lt.u32 %p4, %r4, %r0; @%p4 bra SEARCH; FOUND: st.global.u32 [%d1], %r4;\n"
	times := "mov.u32 %r4, 0; TIMES: ld.global.u32 %r5, [%d1]; add.u32 %r4, %r4, %r5; setp.lt.u32 %p4, %r4, %r0; @%p4 bra TIMES; st.global.u32 [%d1], %r4;\n"
	down := "mov.u32 %r6, 9; DOWN: shr.u32 %r6, %r6, 1; st.global.u32 [%d0], %r6; setp.ne.u32 %p5, %r6, 0; @%p5 bra DOWN;\n"
	for _, c := range []struct {
		name, code           string
		loops, stores, loads int
	}{
		{"alone", five, 0, 5, 0}, {"behind a loop with two ways out", search + five, 1, 6, 1}, {"before one", five + search, 1, 6, 1},
		{"behind a loop of unknown turns", times + five, 1, 6, 1}, {"halving", down, 0, 4, 0}, {"one behind the other", five + down, 0, 9, 0},
		{"unknown", times, 1, 1, 1},
		{"nested", "mov.u32 %r7, 0; OUTER: " + five + "add.u32 %r7, %r7, 1; setp.lt.u32 %p6, %r7, 3; @%p6 bra OUTER;", 0, 15, 0},
	} {
		f := optimised(t, c.code)
		loops := len(byDepth(f, Dominators(f)))
		if stores, loads := f.countOps(Store), f.countOps(Load); loops != c.loops || stores != c.stores || loads != c.loads {
			t.Errorf("%s: %d loops, %d stores, %d loads, want %d, %d, %d\n%v", c.name, loops, stores, loads, c.loops, c.stores, c.loads, f)
		}
	}
}

// TestEmptyWays checks that a branch with two empty paths is removed, with blocks that only jump.
func TestEmptyWays(t *testing.T) {
	for _, c := range []struct {
		name, code       string
		blocks, branches int // the entry block counts
	}{
		{"straight", "st.global.u32 [%d0], %r0;", 2, 0},
		{"if of nothing", "@%p0 bra A; bra B; A: bra B; B: st.global.u32 [%d0], %r0;", 2, 0},
		{"one empty way", "@%p0 bra A; st.global.u32 [%d0], %r1; A: bra B; B: st.global.u32 [%d0], %r0;", 4, 1},
		{"an if of nothing within one", "mov.u32 %r3, 1; @%p0 bra S; mov.u32 %r3, 2; @%p1 bra C; bra D; C: bra J; D: bra J; J: bra S; S: st.global.u32 [%d0], %r3;", 4, 1},
		{"a chain of jumps", "bra A; C: bra D; B: bra C; A: bra B; D: st.global.u32 [%d0], %r0;", 2, 0},
	} {
		f := optimised(t, c.code)
		if n := f.countOps(Branch); n != c.branches || len(f.Blocks) > c.blocks {
			t.Errorf("%s: %d branches and %d blocks, want %d and %d\n%v", c.name, n, len(f.Blocks), c.branches, c.blocks, f)
		}
	}
}

// TestSpacesKnown checks that an address in a window determines the space of accesses and the result of isspacep.
func TestSpacesKnown(t *testing.T) {
	for _, c := range []struct {
		space string
		want  map[string]uint64
		event event.Space
	}{
		{"shared", map[string]uint64{"shared": 1, "local": 0, "global": 0}, event.Shared},
		{"local", map[string]uint64{"shared": 0, "local": 1, "global": 0}, event.Local},
	} {
		for asked, want := range c.want {
			f := optimised(t, "."+c.space+" .align 4 .b32 box[4]; mov.u64 %d3, box; cvta."+c.space+".u64 %d3, %d3; isspacep."+asked+
				" %p2, %d3; selp.u32 %r3, 1, 0, %p2; st.global.u32 [%d0], %r3; st.global.u64 [%d1], %d3; ld.u32 %r4, [%d3]; st.global.u32 [%d0+4], %r4;")
			for _, b := range f.Blocks {
				for _, in := range b.Instrs {
					if in.Op == Load && in.Inst.Space != c.event {
						t.Errorf("%s: the load is of %v\n%v", c.space, in.Inst.Space, f)
					}
					if in.Op != Store || in.Imm != 0 || f.Width(in.Args[1]) != W32 {
						continue
					}
					if got, ok := f.ConstOf(in.Args[1]); !ok || got != want {
						t.Errorf("isspacep.%s of %s is %d, %v, want %d\n%v", asked, c.space, got, ok, want, f)
					}
				}
			}
		}
	}
}

// TestPromotes checks how many accesses to local memory remain.
func TestPromotes(t *testing.T) {
	const box = ".local .align 8 .b8 box[16];\n"
	for _, c := range []struct {
		name, code string
		stay       int
	}{
		{"its own", box + "st.local.u32 [box], %r0; ld.local.u32 %r3, [box]; st.global.u32 [%d0], %r3;", 0},
		{"up to its end", box + "st.local.u64 [box+8], %d0; ld.local.u64 %d3, [box+8]; st.global.u64 [%d0], %d3;", 0},
		{"vectors", box + "st.local.v2.u32 [box+8], {%r0, %r1}; ld.local.u32 %r3, [box+12]; st.global.u32 [%d0], %r3;", 0},
		{"behind its end: that access alone stays", box + "st.local.u32 [box], %r0; ld.local.u32 %r3, [box]; st.local.u32 [box+16], %r1; st.global.u32 [%d0], %r3;", 1},
		{"across its end", box + "st.local.u32 [box], %r0; st.local.v4.u32 [box+8], {%r0, %r1, %r2, %r0}; ld.local.u32 %r3, [box]; st.global.u32 [%d0], %r3;", 3},
		{"of two sizes", box + "st.local.u64 [box], %d0; ld.local.u32 %r3, [box]; st.global.u32 [%d0], %r3;", 2},
		{"overlapping", box + "st.local.u64 [box], %d0; ld.local.u32 %r3, [box+4]; st.global.u32 [%d0], %r3;", 2},
		{"at a place that is not known", box + "st.local.u32 [box], %r0; mov.u64 %d3, box; and.b64 %d4, %d1, 12; add.u64 %d3, %d3, %d4; ld.local.u32 %r3, [%d3]; st.global.u32 [%d0], %r3;", 2},
	} {
		f := optimised(t, c.code)
		n := 0
		for _, b := range f.Blocks {
			for _, in := range b.Instrs {
				if (in.Op == Load || in.Op == Store) && in.Inst.Space == event.Local {
					n++
				}
			}
		}
		if n != c.stay {
			t.Errorf("%s: %d accesses of local memory, want %d\n%v", c.name, n, c.stay, f)
		}
	}
}

// TestNative checks that integer arithmetic is built from native operations, which passes can analyse, in all widths.
func TestNative(t *testing.T) {
	for _, code := range []string{
		"add.u16 %h2, %h0, %h1;", "sub.s16 %h2, %h0, 5;", "mul.lo.u16 %h2, %h0, %h1;", "mad.lo.u16 %h2, %h0, %h1, 7;", "neg.s16 %h2, %h0;", "shl.b16 %h2, %h0, %r0;", "shl.b16 %h2, %h0, 3;",
		"shr.s16 %h2, %h0, %r0;", "shr.u16 %h2, %h0, 2;", "and.b16 %h2, %h0, %h1;", "not.b16 %h2, %h0;", "mul.wide.s16 %r3, %h0, %h1;", "mad.wide.u16 %r3, %h0, %h1, %r0;", "setp.lt.s16 %p2, %h0, %h1;",
		"setp.lt.u16 %p2, %h0, 9;", "selp.u16 %h2, %h0, %h1, %p0;",
		"add.u32 %r3, %r0, %r1;", "sub.s32 %r3, %r0, -1;", "mul.lo.s32 %r3, %r0, %r1;", "mad.lo.s32 %r3, %r0, %r1, %r2;", "neg.s32 %r3, %r0;", "shl.b32 %r3, %r0, %r1;", "shr.s32 %r3, %r0, 40;",
		"or.b32 %r3, %r0, %r1;", "not.b32 %r3, %r0;", "mul.wide.s32 %d3, %r0, %r1;", "mad.wide.u32 %d3, %r0, %r1, %d0;", "setp.ge.s32 %p2, %r0, -1;", "setp.ne.b32 %p2, %r0, %r1;", "setp.gt.u32 %p2, %r0, %r1;", "selp.b32 %r3, %r0, -1, %p0;",
		"add.u64 %d3, %d0, %d1;", "sub.u64 %d3, %d0, 1;", "mul.lo.u64 %d3, %d0, %d1;", "mad.lo.u64 %d3, %d0, %d1, %d0;", "shl.b64 %d3, %d0, %r1;", "shr.u64 %d3, %d0, 3;", "xor.b64 %d3, %d0, %d1;", "setp.le.u64 %p2, %d0, %d1;",
		"cvt.u64.u32 %d3, %r0;", "cvt.s64.s32 %d3, %r0;", "cvt.u32.u64 %r3, %d0;", "cvt.u32.u16 %r3, %h0;", "cvt.s32.s16 %r3, %h0;", "cvt.u16.u32 %h2, %r0;", "cvt.u32.u8 %r3, %r0;", "cvt.s32.s8 %r3, %r0;", "cvt.u64.u8 %d3, %r0;", "cvt.s16.s8 %h2, %h0;",
		"mov.u32 %r3, %r0;", "mov.u64 %d3, 7;", "and.pred %p2, %p0, %p1;", "not.pred %p2, %p0;", "cvta.to.global.u64 %d3, %d0;", "cvta.shared.u64 %d3, %d0;",
	} {
		f := builtText(t, kernelBody+code+" ret; }\n")
		if n := f.countOps(Row); n != 0 {
			t.Errorf("%s stays a row\n%v", code, f)
		}
	}
}
