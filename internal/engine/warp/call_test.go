package warp

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
)

// callFunctions are the functions that the kernels of TestCallsNoDiff call.
const callFunctions = `
.global .align 1 .b8 format[4] = {37, 100, 10, 0};
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func (.param .b32 r) nowhere (.param .b32 n);
.func (.param .b32 r) deep (.param .b32 n);
.func (.param .b32 r) twice (.param .b32 n)
{
	.reg .b32 %r<4>;
	.local .align 4 .b8 box[16];
	ld.param.u32 %r1, [n];
	st.local.u32 [box+4], %r1;
	add.u32 %r1, %r1, %r1;
	st.param.b32 [r], %r1;
	ret;
}
// deep calls a function that is inlined, and then itself until the stack is full.
.func (.param .b32 r) deep (.param .b32 n)
{
	.reg .b32 %r<4>;
	.reg .pred %p;
	.param .b32 a;
	.param .b32 b;
	ld.param.u32 %r1, [n];
	setp.eq.u32 %p, %r1, 0;
	@%p bra last;
	st.param.b32 [a], %r1;
	call (b), twice, (a);
	sub.u32 %r1, %r1, 1;
	st.param.b32 [a], %r1;
	call (b), deep, (a);
	ld.param.b32 %r1, [b];
last:
	add.u32 %r1, %r1, 3;
	st.param.b32 [r], %r1;
	ret;
}
.func (.param .b32 r) up (.param .b32 n)
{
	.reg .b32 %r<4>;
	.reg .pred %p;
	ld.param.u32 %r1, [n];
	shfl.sync.up.b32 %r1|%p, %r1, 1, 0, 0xffffffff;
	st.param.b32 [r], %r1;
	ret;
}
.func (.param .b32 r) shift (.param .b32 n)
{
	.reg .b32 %r<4>;
	.reg .pred %p;
	ld.param.u32 %r1, [n];
	mul.lo.u32 %r2, %r1, 5;
	shfl.sync.up.b32 %r2|%p, %r2, 1, 0, 0xffffffff;
	bar.sync 0;
	bar.red.popc.u32 %r1, 0, %p;
	add.u32 %r1, %r1, %r2;
	st.param.b32 [r], %r1;
	ret;
}
// alike and akin match numbers of 64 bits with lanes that are in the other function, in other registers; all and any vote there.
.func (.param .b32 r) alike (.param .b32 n)
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<4>;
	.reg .pred %p, %q;
	ld.param.u32 %r1, [n];
	mul.lo.u32 %r2, %r1, %r1;
	and.b32 %r2, %r2, 12;
	mul.wide.u32 %rd1, %r2, 0x10000001;
	match.any.sync.b64 %r3, %rd1, 0xffffffff;
	match.any.sync.b32 %r4, %r2, 0xffffffff;
	add.u32 %r3, %r3, %r4;
	setp.lt.u32 %p, %r2, 3;
	match.all.sync.b64 %r4|%q, %rd1, 0xffffffff;
	vote.sync.ballot.b32 %r5, %p, 0xffffffff;
	@%q add.u32 %r3, %r3, 1;
	xor.b32 %r3, %r3, %r5;
	st.param.b32 [r], %r3;
	ret;
}
.func (.param .b32 r) akin (.param .b32 n)
{
	.reg .b32 %r<9>;
	.reg .b64 %rd<6>;
	.reg .pred %p, %q, %s;
	ld.param.u32 %r1, [n];
	mul.lo.u32 %r2, %r1, %r1;
	mul.wide.u32 %rd2, %r2, %r2;
	mul.wide.s32 %rd3, %r2, 77;
	setp.gt.u32 %s, %r2, 40;
	xor.b32 %r7, %r2, %r1;
	mul.lo.u32 %r8, %r7, %r7;
	and.b32 %r2, %r2, 12;
	mul.wide.u32 %rd1, %r2, 0x10000001;
	match.any.sync.b64 %r3, %rd1, 0xffffffff;
	match.any.sync.b32 %r4, %r2, 0xffffffff;
	add.u32 %r3, %r3, %r4;
	setp.gt.u32 %p, %r2, 7;
	match.all.sync.b64 %r4|%q, %rd1, 0xffffffff;
	vote.sync.ballot.b32 %r5, %p, 0xffffffff;
	@%q add.u32 %r3, %r3, 1;
	@%s add.u32 %r3, %r3, %r8;
	xor.b32 %r3, %r3, %r5;
	add.u64 %rd2, %rd2, %rd3;
	cvt.u32.u64 %r6, %rd2;
	add.u32 %r3, %r3, %r6;
	add.u32 %r3, %r3, %r7;
	st.param.b32 [r], %r3;
	ret;
}
// outer calls alike, whose frame lies above its own then.
.func (.param .b32 r) outer (.param .b32 n)
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<4>;
	.reg .pred %p;
	.param .b32 a0;
	.param .b32 r0;
	ld.param.u32 %r1, [n];
	mul.lo.u32 %r2, %r1, %r1;
	mul.wide.u32 %rd2, %r2, %r2;
	setp.gt.u32 %p, %r2, 50;
	mov.u64 %rd1, alike;
	st.param.b32 [a0], %r1;
	sig : .callprototype (.param .b32 _) _ (.param .b32 _);
	call (r0), %rd1, (a0), sig;
	ld.param.b32 %r3, [r0];
	cvt.u32.u64 %r4, %rd2;
	@%p add.u32 %r3, %r3, %r4;
	st.param.b32 [r], %r3;
	ret;
}
.func (.param .b32 r) meet (.param .b32 n)
{
	.reg .b32 %r<4>;
	.reg .pred %p;
	ld.param.u32 %r1, [n];
	setp.lt.u32 %p, %r1, 9;
	bar.sync 0;
	bar.red.popc.u32 %r1, 0, %p;
	st.param.b32 [r], %r1;
	ret;
}
.func (.param .b32 r) leave (.param .b32 n)
{
	.reg .b32 %r<4>;
	.reg .pred %p;
	ld.param.u32 %r1, [n];
	and.b32 %r2, %r1, 3;
	setp.eq.u32 %p, %r2, 0;
	@%p exit;
	st.param.b32 [r], %r1;
	ret;
}
.func (.param .b32 r) stop (.param .b32 n)
{
	trap;
}
// wait waits until lane 9, which calls nobody, has written.
.func (.param .b32 r) wait (.param .b64 flag)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	.reg .pred %p;
	ld.param.u64 %rd1, [flag];
again:
	ld.volatile.global.u32 %r1, [%rd1];
	setp.eq.u32 %p, %r1, 0;
	@%p bra again;
	st.param.b32 [r], %r1;
	ret;
}
.func (.param .align 8 .b8 r[20]) large (.param .align 4 .b8 s[12], .param .b64 at)
{
	.reg .b32 %r<8>;
	.reg .b64 %rd<8>;
	.reg .b16 %rs<2>;
	mov.b64 %rd1, s;
	cvta.param.u64 %rd1, %rd1;
	ld.param.u64 %rd2, [at];
	add.u64 %rd1, %rd1, %rd2;
	ld.u32 %r1, [%rd1];
	ld.param.u32 %r2, [s+8];
	ld.param.u16 %rs1, [s+2];
	st.param.b32 [r], %r1;
	st.param.b32 [r+16], %r2;
	st.param.b16 [r+6], %rs1;
	ret;
}
`

// through calls a function by its address in %rd3 with %r1, and stores the result.
const through = `
	.param .b32 a0;
	.param .b32 r0;
	st.param.b32 [a0], %r1;
	sig : .callprototype (.param .b32 _) _ (.param .b32 _);
	call (r0), %rd3, (a0), sig;
	ld.param.b32 %r2, [r0];
	st.global.u32 [%mine], %r2;`

// either returns code that sets %rd3 to one of two addresses.
func either(p, yes, no string) string {
	return fmt.Sprintf("\tmov.u64 %%rd3, %s;\n\tmov.u64 %%rd4, %s;\n\t%s;\n\tselp.b64 %%rd3, %%rd3, %%rd4, %%p1;\n\tmov.u32 %%r1, %%gid;\n", yes, no, p)
}

// chain returns n functions, each of which calls the next, and a kernel that calls the first.
func chain(n int) (functions, kernel string) {
	var b strings.Builder
	fmt.Fprintf(&b, ".func (.param .b32 r) link%d (.param .b32 n)\n{\n\t.reg .b32 %%r<4>;\n\tld.param.u32 %%r1, [n];\n\tst.param.b32 [r], %%r1;\n\tret;\n}\n", n)
	for i := n - 1; i >= 0; i-- {
		fmt.Fprintf(&b, ".func (.param .b32 r) link%d (.param .b32 n)\n{\n\t.reg .b32 %%r<4>;\n\t.param .b32 a;\n\t.param .b32 b;\n\t.local .align 4 .b8 box[8];\n"+
			"\tld.param.u32 %%r1, [n];\n\tst.local.u32 [box], %%r1;\n\tadd.u32 %%r1, %%r1, %d;\n\tst.param.b32 [a], %%r1;\n\tcall (b), link%d, (a);\n\tld.param.b32 %%r1, [b];\n"+
			"\tld.local.u32 %%r2, [box];\n\tadd.u32 %%r1, %%r1, %%r2;\n\tst.param.b32 [r], %%r1;\n\tret;\n}\n", i, i, i+1)
	}
	return b.String(), direct("%gid", "link0")
}

// direct returns a call of a function by name.
func direct(arg, fn string) string {
	return fmt.Sprintf("\t.param .b32 a0;\n\t.param .b32 r0;\n\tst.param.b32 [a0], %s;\n\tcall (r0), %s, (a0);\n\tld.param.b32 %%r2, [r0];\n\tst.global.u32 [%%mine], %%r2;", arg, fn)
}

// huge returns a function of very many instructions.
func huge() string {
	return ".func (.param .b32 r) huge (.param .b32 n)\n{\n\t.reg .b32 %r<4>;\n\tld.param.u32 %r1, [n];\n" +
		strings.Repeat("\tmad.lo.u32 %r1, %r1, %r1, 3;\n", 70_000) + "\tst.param.b32 [r], %r1;\n\tret;\n}\n"
}

// TestCallsNoDiff compares the engines if calls remain calls, including faults and places.
func TestCallsNoDiff(t *testing.T) {
	odd := "and.b32 %r1, %gid, 1; setp.eq.u32 %p1, %r1, 1"
	links, nested := chain(150)
	for _, c := range []struct {
		name, functions, body string
		loose                 bool // the actions of lanes depend on the schedule
	}{
		{"two functions", "", either(odd, "twice", "leave") + through, false},
		{"no function", "", either(odd, "twice", "format") + strings.Replace(through, "ld.param.b32 %r2, [r0]", "mov.u32 %r2, 5", 1), false},
		{"no body", "", either(odd, "twice", "nowhere") + strings.Replace(through, "ld.param.b32 %r2, [r0]", "mov.u32 %r2, 5", 1), false},
		{"shuffle between functions", "", either(odd, "up", "shift") + through, false},
		{"match between functions", "", either(odd, "alike", "akin") + through, false},
		{"match between depths", "", either(odd, "outer", "akin") + through, false},
		{"barrier between functions", "", either(odd, "meet", "shift") + through, false},
		{"exit in a function", "", either(odd, "leave", "twice") + through, false},
		{"trap in a function", "", either(odd, "twice", "stop") + through, false},
		{"recursion", "", direct("%gid", "deep"), false},
		{"full stack", "", direct("100000", "deep"), false},
		{"some stacks full", "", "and.b32 %r1, %gid, 5; mul.lo.u32 %r1, %r1, 4000;" + direct("%r1", "deep"), true},
		{"nested deeply", links, nested, false},
		{"a large function", huge(), direct("%gid", "huge") + `
	st.param.b32 [a0], %r2;
	call (r0), huge, (a0);
	ld.param.b32 %r2, [r0];
	st.global.u32 [%mine], %r2;`, false},
		{"print through a pointer", "", `
	.local .align 8 .b8 args[8];
	.param .b64 p0;
	.param .b64 p1;
	.param .b32 p2;
	st.local.u32 [args], %gid;
	mov.u64 %rd1, format;
	cvta.global.u64 %rd1, %rd1;
	mov.u64 %rd2, args;
	cvta.local.u64 %rd2, %rd2;
	mov.u64 %rd3, vprintf;
	st.param.b64 [p0], %rd1;
	st.param.b64 [p1], %rd2;
	print : .callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _);
	call (p2), %rd3, (p0, p1), print;
	ld.param.b32 %r2, [p2];
	st.global.u32 [%mine], %r2;`, false},
		{"lanes that wait in a function", "", `
	.param .b64 p0;
	.param .b32 p1;
	mov.u64 %rd3, wait;
	setp.eq.u32 %p1, %gid, 9;
	@%p1 bra writes;
	add.u64 %rd1, %out, 4096;
	st.param.b64 [p0], %rd1;
	waits : .callprototype (.param .b32 _) _ (.param .b64 _);
	call (p1), %rd3, (p0), waits;
	ld.param.b32 %r2, [p1];
	st.global.u32 [%mine], %r2;
	ret;
writes:
	st.volatile.global.u32 [%out+4096], 7;`, true},
		{"structs", "", `
	.param .align 4 .b8 p0[12];
	.param .b64 p1;
	.param .align 8 .b8 p2[20];
	mov.u64 %rd3, large;
	and.b32 %r1, %gid, 4;
	cvt.u64.u32 %rd1, %r1;
	st.param.v2.b32 [p0], {%gid, %r1};
	st.param.b32 [p0+8], 99;
	st.param.b64 [p1], %rd1;
	structs : .callprototype (.param .align 8 .b8 _[20]) _ (.param .align 4 .b8 _[12], .param .b64 _);
	call (p2), %rd3, (p0, p1), structs;
	ld.param.b32 %r2, [p2];
	ld.param.b32 %r3, [p2+16];
	ld.param.b16 %rs1, [p2+6];
	cvt.u32.u16 %r4, %rs1;
	xor.b32 %r2, %r2, %r3;
	xor.b32 %r2, %r2, %r4;
	st.global.u32 [%mine], %r2;`, false},
		{"guarded brx.idx", "", `
	and.b32 %r1, %gid, 1;
	setp.lt.u32 %p1, %gid, 20;
	mov.u32 %r2, 3;
	list : .branchtargets one, two;
	@%p1 brx.idx %r1, list;
one:
	add.u32 %r2, %r2, 5;
two:
	@%p1 bra next;
next:
	st.global.u32 [%mine], %r2;`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, prelude+callFunctions+c.functions+entry("k", c.body))
			l := g.prepare(launch{out: g.buffer(2048)})
			l.Printf = func([]byte) {}
			text, err := textOf(l, false)
			if err != nil || text.Units == nil && c.name != "guarded brx.idx" {
				t.Errorf("no calls stay: %v", err)
			}
			d := &diff{t: t, exact: true}
			if _, _ = d.Run(t.Context(), l); d.strict == 0 && !c.loose {
				t.Error("not compared in full")
			}
		})
	}
}

// TestResultsOfNoCall checks that a call that is a fault returns zeros, like a load, whatever an earlier call has left
// in the place of its results, and that the thread continues.
func TestResultsOfNoCall(t *testing.T) {
	const registers = `
.func (.reg .b32 r) same (.reg .b32 n) { mov.u32 r, n; ret; }
`
	for _, c := range []struct{ name, body string }{
		{"no function", "mov.u64 %rd3, format;"},
		{"no body", "mov.u64 %rd3, nowhere;"},
		{"a register", "mov.u64 %rd3, format;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `
	.param .b32 a0;
	.param .b32 r0;
	sig : .callprototype (.param .b32 _) _ (.param .b32 _);
	st.param.b32 [a0], 21;
	mov.u64 %rd4, twice;
	call (r0), %rd4, (a0), sig;
	ld.param.b32 %r3, [r0];
	` + c.body + `
	call (r0), %rd3, (a0), sig;
	ld.param.b32 %r2, [r0];
	add.u32 %r3, %r3, %r2;
	st.global.u32 [%mine], %r3;`
			if c.name == "a register" {
				body = `
	sig : .callprototype (.reg .b32 _) _ (.reg .b32 _);
	mov.u32 %r1, 42;
	call (%r2), same, (%r1);
	mov.u32 %r3, %r2;
	` + c.body + `
	call (%r2), %rd3, (%r1), sig;
	add.u32 %r3, %r3, %r2;
	st.global.u32 [%mine], %r3;`
			}
			for name, e := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New()} {
				g := newRig(t, prelude+callFunctions+registers+entry("k", body))
				out, faults := g.buffer(32), 0
				l := g.prepare(launch{out: out})
				l.OnFault = func(f engine.Fault) {
					if faults += f.Count; f.Kind != engine.BadCall {
						t.Errorf("%s: a fault %s", name, f.Kind)
					}
				}
				if _, err := e.Run(t.Context(), l); err != nil {
					t.Error(err)
				}
				if faults != 32 {
					t.Errorf("%s: %d threads at fault, want 32", name, faults)
				}
				for i, v := range g.words(out, 32) {
					if v != 42 {
						t.Fatalf("%s: thread %d has %d, want 42", name, i, v)
					}
				}
			}
		})
	}
}

// TestAddressOfHalfParameter takes the address of a parameter of which the caller has written only some bytes.
func TestAddressOfHalfParameter(t *testing.T) {
	const tail = `
.func (.param .b32 r) third (.param .b32 n, .param .align 8 .b8 s[16])
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	.reg .pred %p;
	mov.u64 %rd1, s;
	ld.param.u32 %r1, [s+8];
	cvta.param.u64 %rd2, %rd1;
	ld.u32 %r2, [%rd2+4];
	mad.lo.u32 %r1, %r1, 10, %r2;
	ld.u8 %r2, [%rd2+14];
	mad.lo.u32 %r1, %r1, 10, %r2;
	AGAIN
	st.param.b32 [r], %r1;
	ret;
}
`
	// The second function is not inlined.
	for _, again := range []string{"", `ld.param.u32 %r2, [n];
	setp.eq.u32 %p, %r2, 7;
	@!%p bra DONE;
	{ .param .b32 a; .param .align 8 .b8 b[16]; .param .b32 c; st.param.b32 [a], 0; call (c), third, (a, b); }
DONE:`} {
		g := newRig(t, prelude+".func (.param .b32 r) third (.param .b32 n, .param .align 8 .b8 s[16]);\n"+entry("k", `
	{ .param .b32 n; .param .align 8 .b8 s[16]; .param .b32 r;
	st.param.b32 [n], 0;
	st.param.b32 [s+4], 5;
	st.param.b32 [s+8], 3;
	mov.u16 %rs1, 4;
	st.param.b8 [s+14], %rs1;
	call (r), third, (n, s);
	ld.param.b32 %r1, [r]; }
	st.global.u32 [%out], %r1;`)+strings.Replace(tail, "AGAIN", again, 1))
		out := g.buffer(1)
		g.mustRun(launch{block: 1, out: out})
		wants(t, g, out, 354)
	}
}
