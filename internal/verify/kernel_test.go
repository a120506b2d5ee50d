package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/candidates"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/kernel"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
	"fencepost.dev/fencepost/ptx"
)

// kernelMemory is the memory of the launches of the tests, one after the other.
var kernelMemory *devmem.Memory

// launchOf returns a launch of the kernel k with a body, after declarations of variables. Free registers are %r0 to
// %r31 and %p0 to %p7. %tid, the thread of the block, is in %t, and the block in %b.
func launchOf(t testing.TB, variables, body string, grid, block uint32) *engine.Launch {
	t.Helper()
	return launchText(t, kernelText(variables, body), grid, block)
}

// kernelText returns the PTX of the kernel.
func kernelText(variables, body string) string {
	return ".version 8.0\n.target sm_80\n.address_size 64\n" + variables + functions + `
.visible .entry k()
{
	.reg .b32 %r<32>, %t, %b;
	.reg .b64 %rd<8>;
	.reg .pred %p<8>;
	mov.u32 %t, %tid.x;
	mov.u32 %b, %ctaid.x;
` + body + "\n	ret;\n}\n"
}

func launchText(t testing.TB, src string, grid, block uint32) *engine.Launch {
	t.Helper()
	tree, err := ptx.Parse("k.ptx", src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	module, err := isa.Decode(tree)
	if err == nil {
		err = module.Check(module.ByName["k"])
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	if kernelMemory == nil {
		if kernelMemory, err = devmem.New(1 << 32); err != nil {
			t.Fatal(err)
		}
	}
	program, err := loader.Load(module, kernelMemory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(program.Unload)
	return &engine.Launch{Launch: event.Launch{ID: 1, Kernel: "k", Grid: event.Dim3{X: grid, Y: 1, Z: 1}, Block: event.Dim3{X: block, Y: 1, Z: 1}},
		Program: program, Places: places.New(), Func: program.Kernel("k")}
}

func verifyLaunch(t testing.TB, l *engine.Launch, o Options) *Result {
	t.Helper()
	if o.Unroll == 0 {
		o.Unroll = litmus.DefaultUnroll
	}
	r, err := Kernel(context.Background(), l, nil, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// functions are the functions that kernels may call. Between the use of their argument and their result there is an
// access to y.
const functions = `
.global .u32 y;
.func (.param .b32 old) take(.param .b64 at)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd0, [at];
	atom.acquire.gpu.global.cas.b32 %r0, [%rd0], 0, 1;
	st.param.b32 [old], %r0;
	ret;
}
.func (.param .b32 sum) add(.param .b32 a, .param .b32 b)
{
	.reg .b32 %r<4>;
	.local .align 4 .b8 slot[8];
	ld.global.u32 %r0, [y];
	ld.param.u32 %r1, [a];
	st.local.u32 [slot+4], %r1;
	ld.global.u32 %r0, [y];
	ld.local.u32 %r1, [slot+4];
	ld.param.u32 %r2, [b];
	add.u32 %r1, %r1, %r2;
	st.param.b32 [sum], %r1;
	ld.global.u32 %r0, [y];
	ret;
}
`

const lockPTX = `
LOCK:	atom.acquire.gpu.global.cas.b32 %r0, [lock], 0, 1;
	setp.ne.s32 %p0, %r0, 0;
	@%p0 bra LOCK;
	ld.global.u32 %r1, [x];
	add.u32 %r1, %r1, 1;
	st.global.u32 [x], %r1;
	atom.release.gpu.global.exch.b32 %r2, [lock], 0;`

const lockVariables = ".global .u32 lock;\n.global .u32 x;\n"

const casSum = `
	ld.relaxed.gpu.global.u32 %r0, [x];
L:	mov.u32 %r3, %r0;
	add.u32 %r1, %r3, 1;
	atom.relaxed.gpu.global.cas.b32 %r0, [x], %r3, %r1;
	setp.ne.u32 %p0, %r0, %r3;
	@%p0 bra L;`

// Each thread writes its element of x, and reads that of thread t^2 or, in blocks of three, 2.
const warpSync = `
	mov.u64 %rd0, x;
	mul.wide.u32 %rd1, %t, 4;
	add.u64 %rd1, %rd0, %rd1;
	st.global.u32 [%rd1], 1;
	`

const warpRead = `
	xor.b32 %r0, %t, 2;
	mul.wide.u32 %rd1, %r0, 4;
	add.u64 %rd1, %rd0, %rd1;
	ld.global.u32 %r1, [%rd1];`

// TestKernelCounts checks numbers of executions that are known in closed form.
func TestKernelCounts(t *testing.T) {
	for _, c := range []struct {
		name, variables, body string
		grid, block           uint32
		want                  int
		verdict               string
	}{
		{"increments", lockVariables, "red.relaxed.gpu.global.add.u32 [x], 1;", 5, 1, 120, OK},
		{"increments of one block", lockVariables, "atom.relaxed.cta.global.add.u32 %r0, [x], 1;", 1, 4, 24, OK},
		{"increments of narrow scope", lockVariables, "atom.relaxed.cta.global.add.u32 %r0, [x], 1;", 2, 1, 2, Error},
		{"compare-and-swap lock", lockVariables, lockPTX, 2, 2, 24, OK},
		{"the same without acquire", lockVariables, strings.Replace(lockPTX, "acquire", "relaxed", 1), 2, 1, 6, Error},
		{"ticket lock", ".global .u32 next;\n.global .u32 turn;\n.global .u32 x;", `
	atom.relaxed.gpu.global.add.u32 %r0, [next], 1;
WAIT:	ld.acquire.gpu.global.u32 %r1, [turn];
	setp.ne.u32 %p0, %r0, %r1;
	@%p0 bra WAIT;
	ld.global.u32 %r2, [x];
	add.u32 %r2, %r2, 1;
	st.global.u32 [x], %r2;
	add.u32 %r1, %r1, 1;
	st.release.gpu.global.u32 [turn], %r1;`, 4, 1, 24, OK},
		{"barrier", ".shared .u32 s[4];\n.global .u32 out[4];", `
	mov.u64 %rd0, s;
	mul.wide.u32 %rd1, %t, 4;
	add.u64 %rd0, %rd0, %rd1;
	st.shared.u32 [%rd0], %t;
	bar.sync 0;
	xor.b32 %r0, %t, 1;
	mul.wide.u32 %rd2, %r0, 4;
	mov.u64 %rd0, s;
	add.u64 %rd0, %rd0, %rd2;
	ld.shared.u32 %r1, [%rd0];
	mov.u64 %rd3, out;
	add.u64 %rd3, %rd3, %rd1;
	st.global.u32 [%rd3], %r1;
	setp.eq.u32 %p0, %r0, %r1;
	@!%p0 trap;`, 1, 4, 1, OK},
		{"a loop of the thread alone", lockVariables, `
	mov.u32 %r0, 0;
L:	add.u32 %r0, %r0, 1;
	setp.lt.u32 %p0, %r0, 1000;
	@%p0 bra L;
	red.relaxed.gpu.global.add.u32 [x], %r0;`, 2, 1, 2, OK},
		{"a loop past its bound", lockVariables, `
	mov.u32 %r0, 0;
L:	add.u32 %r0, %r0, 1;
	st.global.u32 [x], %r0;
	setp.lt.u32 %p0, %r0, 100;
	@%p0 bra L;`, 1, 1, 0, Bounded},
		// A failed attempt might as well have been the load, or the attempt before it.
		{"a sum by compare-and-swap", lockVariables, casSum, 4, 1, 24, OK},
		{"a sum by compare-and-swap, the load an acquire", lockVariables, strings.Replace(casSum, "ld.relaxed", "ld.acquire", 1), 2, 1, 4, OK},
		{"a sum by compare-and-swap that acquires", lockVariables, strings.Replace(casSum, "atom.relaxed", "atom.acquire", 1), 3, 1, 6, OK},
		{"a push, each attempt of which stores", lockVariables, strings.Replace(casSum, "mov.u32 %r3", "st.relaxed.gpu.global.u32 [lock], 7; mov.u32 %r3", 1), 1, 1, 1, OK},
		{"a lock that is taken with an exchange", lockVariables, `
L:	atom.acquire.gpu.global.exch.b32 %r0, [lock], 1;
	setp.ne.s32 %p0, %r0, 0;
	@%p0 bra L;
	st.release.gpu.global.u32 [lock], 0;`, 3, 1, 6, OK},
		{"a count that grows while it waits", lockVariables, `
L:	atom.acquire.gpu.global.add.u32 %r0, [x], 1;
	setp.ne.s32 %p0, %r0, 1000;
	@%p0 bra L;`, 1, 1, 0, Bounded},
		{"waiting with an addition of zero", lockVariables, `
	setp.ne.u32 %p0, %b, 0;
	@%p0 bra L;
	st.global.u32 [x], 7;
	st.release.gpu.global.u32 [lock], 1;
	ret;
L:	atom.acquire.gpu.global.add.u32 %r0, [lock], 0;
	setp.eq.s32 %p0, %r0, 0;
	@%p0 bra L;
	ld.global.u32 %r1, [x];
	setp.eq.u32 %p1, %r1, 7;
	@!%p1 trap;`, 3, 1, 2, OK},
		{"waiting with an exchange for what nobody writes", lockVariables, `
L:	atom.acquire.gpu.global.exch.b32 %r0, [x], 0;
	setp.eq.s32 %p0, %r0, 0;
	@%p0 bra L;`, 2, 1, 0, Error},
		{"a plain read while another waits with an exchange", lockVariables, `
	setp.ne.u32 %p0, %b, 0;
	@%p0 bra L;
	ld.global.u32 %r1, [x];
	st.release.gpu.global.u32 [x], 1;
	ret;
L:	atom.acquire.gpu.global.add.u32 %r0, [x], 0;
	setp.eq.s32 %p0, %r0, 0;
	@%p0 bra L;`, 2, 1, 1, Error},
		{"a lock that is taken in a function", lockVariables, `
	mov.u64 %rd0, lock;
L:	{
	.param .b64 at;
	.param .b32 old;
	st.param.b64 [at], %rd0;
	call (old), take, (at);
	ld.param.b32 %r0, [old];
	}
	setp.ne.s32 %p0, %r0, 0;
	@%p0 bra L;
	ld.global.u32 %r1, [x];
	add.u32 %r1, %r1, 1;
	st.global.u32 [x], %r1;
	st.release.gpu.global.u32 [lock], 0;`, 3, 1, 6, OK},
		{"what a call keeps", lockVariables, `
	mov.u32 %r5, 40;
	{
	.param .b32 a;
	.param .b32 b;
	.param .b32 s;
	st.param.b32 [a], 3;
	st.param.b32 [b], 4;
	ld.global.u32 %r7, [y];
	call (s), add, (a, b);
	ld.global.u32 %r7, [y];
	ld.param.b32 %r1, [s];
	}
	add.u32 %r1, %r1, %r5;
	setp.eq.u32 %p0, %r1, 47;
	@!%p0 trap;`, 1, 2, 1, OK},
		{"a guarded write", lockVariables, `
	mov.u32 %r1, 5;
	setp.eq.u32 %p0, %t, 9;
	ld.global.u32 %r2, [y];
	@%p0 mov.u32 %r1, 7;
	setp.eq.u32 %p1, %r1, 5;
	@!%p1 trap;`, 1, 2, 1, OK},
		{"shared memory of two blocks", ".shared .u32 s;", "st.shared.u32 [s], %b; ld.shared.u32 %r0, [s]; setp.eq.u32 %p0, %r0, %b; @!%p0 trap;", 2, 1, 1, OK},
		{"a loop that writes what is there", lockVariables, `
L:	ld.relaxed.gpu.global.u32 %r0, [y];
	st.relaxed.gpu.global.u32 [x], 1;
	ld.relaxed.gpu.global.u32 %r0, [y];
	setp.eq.u32 %p0, %r0, 0;
	@%p0 bra L;`, 1, 1, 0, Error},
		{"a loop that writes something else each time", lockVariables, `
L:	ld.relaxed.gpu.global.u32 %r0, [y];
	red.relaxed.gpu.global.add.u32 [x], 1;
	setp.eq.u32 %p0, %r0, 0;
	@%p0 bra L;`, 1, 1, 0, Bounded},
		{"a barrier that a thread leaves out by exiting", lockVariables, "setp.eq.u32 %p0, %t, 0; @%p0 exit; bar.sync 0; bar.sync 1;", 1, 3, 1, Error},
		{"a barrier that a thread waits before", lockVariables, `
	setp.eq.u32 %p0, %t, 0;
	@%p0 bar.sync 1;
	bar.sync 0;`, 1, 2, 0, Error},
		{"a barrier in both branches", lockVariables, `
	setp.eq.u32 %p0, %t, 0;
	@%p0 bar.sync 0;
	@!%p0 bar.sync 0;`, 1, 2, 1, Error},
		{"a barrier in both branches, not aligned", lockVariables, `
	setp.eq.u32 %p0, %t, 0;
	@%p0 barrier.sync 0;
	@!%p0 barrier.sync 0;`, 1, 2, 1, OK},
		{"a barrier at which one warp arrives and another waits", lockVariables, `
	setp.lt.u32 %p0, %t, 32;
	@%p0 bar.arrive 1, 64;
	@!%p0 bar.sync 1, 64;
	@%p0 bar.sync 2, 64;
	@!%p0 bar.sync 2, 64;`, 1, 64, 1, OK},
		{"volatile", lockVariables, "st.volatile.global.u32 [x], %b;", 2, 1, 2, Error},
		{"signed minimum", ".global .s32 x = -5;", "atom.relaxed.gpu.global.min.s32 %r0, [x], 3; setp.eq.s32 %p0, %r0, -5; @!%p0 trap;", 2, 1, 2, OK},
		{"a byte", ".global .u8 x = 255;", "ld.global.u8 %r0, [x]; setp.eq.u32 %p0, %r0, 255; @!%p0 trap;", 1, 1, 1, OK},
		{"a signed byte", ".global .u8 x = 255;", "ld.global.s8 %r0, [x]; setp.eq.s32 %p0, %r0, -1; @!%p0 trap;", 1, 1, 1, OK},
		{"a wrap", ".global .u32 x = 4294967295;", "atom.relaxed.gpu.global.add.u32 %r0, [x], 1; ld.relaxed.gpu.global.u32 %r1, [x]; setp.le.u32 %p0, %r1, 1; @!%p0 trap;", 2, 1, 4, OK},
		{"a vector", ".global .align 8 .b32 v[2] = {1, 2};", "ld.global.v2.u32 {%r0, %r1}, [v]; add.u32 %r0, %r0, %r1; setp.eq.u32 %p0, %r0, 3; @!%p0 trap; st.global.v2.u32 [v], {%r0, %r1};", 1, 1, 1, OK},
		{"a vector that races", ".global .align 8 .b32 v[2];", "st.global.v2.u32 [v], {%b, %b};", 2, 1, 4, Error},
		{"float addition", ".global .f32 x;", "red.relaxed.gpu.global.add.f32 [x], 0f3F800000;", 3, 1, 6, OK},
		{"a barrier that counts", "", "setp.lt.u32 %p0, %t, 2; bar.red.popc.u32 %r0, 0, %p0; setp.ne.u32 %p1, %r0, 2; @%p1 trap;", 1, 3, 1, OK},
		{"barriers that join predicates", "", `
	setp.lt.u32 %p0, %t, 2;
	bar.red.and.pred %p1, 0, %p0;
	@%p1 trap;
	bar.red.or.pred %p1, 0, %p0;
	@!%p1 trap;`, 1, 3, 1, OK},
		{"a barrier of lanes", ".global .u32 x[4];", warpSync + "bar.warp.sync -1;" + warpRead, 1, 3, 1, OK},
		{"a barrier of other lanes", ".global .u32 x[4];", warpSync + "and.b32 %r2, %t, 2; mov.u32 %r3, 3; shl.b32 %r3, %r3, %r2; bar.warp.sync %r3;" + warpRead, 1, 4, 16, Error},
		{"a barrier of lanes that have exited", "", "setp.eq.u32 %p0, %t, 0; @%p0 exit; bar.warp.sync -1;", 1, 3, 1, OK},
		{"a mask without its lane", "", "bar.warp.sync 2;", 1, 2, 1, Error},
		{"out of bounds", ".global .u32 x;", "st.global.u32 [x+4], 1;", 1, 1, 1, Error},
	} {
		r := verifyLaunch(t, launchOf(t, c.variables, c.body, c.grid, c.block), Options{})
		if r.Executions != c.want || r.Verdict() != c.verdict {
			t.Errorf("%s: %d executions, %s; want %d, %s (%s) %+v", c.name, r.Executions, r.Verdict(), c.want, c.verdict, r.Refusal, r.Findings)
		}
	}
}

// TestExchanges explores warp instructions: their results, that they order nothing, and that all lanes of the mask must
// execute the same one.
func TestExchanges(t *testing.T) {
	check := func(value string) string { return "setp.ne.u32 %p1, %r1, " + value + "; @%p1 trap;" }
	for _, c := range []struct {
		name, body string
		grid       uint32
		block      uint32
		want       int
		verdict    string
		finding    string
	}{
		{"a sum", "mov.u32 %r1, %t; shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1; add.u32 %r1, %r1, %r0; shfl.sync.bfly.b32 %r0, %r1, 2, 31, -1; add.u32 %r1, %r1, %r0;" +
			check("6"), 1, 4, 1, OK, ""},
		{"a wrong sum", "mov.u32 %r1, %t; shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1; add.u32 %r1, %r1, %r0;" + check("6"), 1, 4, 1, Error, "trap"},
		{"a predicate of range", "shfl.sync.down.b32 %r1|%p1, %t, 1, 3, -1; selp.u32 %r1, 0, 1, %p1; setp.eq.u32 %p2, %t, 3; @%p2 sub.u32 %r1, %r1, 1;" + check("0"), 1, 4, 1, OK, ""},
		{"a ballot", "setp.ge.u32 %p0, %t, 2; vote.sync.ballot.b32 %r1, %p0, -1;" + check("12"), 1, 4, 1, OK, ""},
		{"a vote in two blocks", "setp.eq.u32 %p0, %b, 1; vote.sync.any.pred %p2, %p0, -1; selp.u32 %r1, 1, 0, %p2;" + check("%b"), 2, 2, 1, OK, ""},
		{"a match", "and.b32 %r0, %t, 1; match.any.sync.b32 %r1, %r0, -1; mov.u32 %r2, 5; shl.b32 %r2, %r2, %r0;" + check("%r2"), 1, 4, 1, OK, ""},
		{"a maximum", "redux.sync.max.u32 %r1, %t, -1;" + check("3"), 1, 4, 1, OK, ""},
		{"two warps", "redux.sync.add.u32 %r1, %t, -1; setp.ge.u32 %p2, %t, 32; @%p2 add.u32 %r1, %r1, 464;" + check("496"), 1, 33, 1, OK, ""},
		{"masks of two halves", "and.b32 %r2, %t, 2; mov.u32 %r3, 3; shl.b32 %r3, %r3, %r2; redux.sync.add.u32 %r1, 1, %r3;" + check("2"), 1, 4, 1, OK, ""},
		{"what was read before", "atom.relaxed.gpu.global.add.u32 %r0, [y], 1; redux.sync.add.u32 %r1, %r0, -1;" + check("3"), 1, 3, 6, OK, ""},
		{"no order", warpSync + "shfl.sync.bfly.b32 %r3, %t, 2, 31, -1;" + warpRead, 1, 4, 16, Error, "data race on"},
		{"a barrier before it", warpSync + "bar.warp.sync -1; shfl.sync.bfly.b32 %r3, %t, 2, 31, -1;" + warpRead, 1, 4, 1, OK, ""},
		{"dependencies", // a lane writes what another has read before: no value comes out of thin air
			"setp.eq.u32 %p0, %t, 0; @%p0 ld.relaxed.gpu.global.u32 %r0, [y]; shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; setp.eq.u32 %p0, %t, 1; @%p0 st.relaxed.gpu.global.u32 [y], 1;" + check("0"), 1, 2, 1, OK, ""},
		{"lanes that have exited", "setp.eq.u32 %p0, %t, 0; @%p0 exit; redux.sync.add.u32 %r1, %t, -1;" + check("3"), 1, 3, 1, OK, ""},
		{"a lane that has exited", "setp.eq.u32 %p0, %t, 0; @%p0 exit; shfl.sync.idx.b32 %r1, %t, 0, 31, -1;" + check("%t"), 1, 3, 1, OK, "shuffle from a lane that takes no part"},
		{"a lane that is not there", "shfl.sync.down.b32 %r1, %t, 16, 31, -1;", 1, 2, 1, OK, "shuffle from a lane that takes no part"},
		{"a mask without its lane", "redux.sync.add.u32 %r1, %t, 2;", 1, 2, 1, Error, "mask"},
		{"masks that differ", "setp.eq.u32 %p0, %t, 0; selp.b32 %r0, 3, 2, %p0; redux.sync.add.u32 %r1, %t, %r0; bar.sync 0;", 1, 2, 0, Error, "barrier divergence"},
		{"in both branches", "setp.eq.u32 %p0, %t, 0; @%p0 redux.sync.add.u32 %r1, 1, -1; @!%p0 redux.sync.add.u32 %r1, 1, -1;" + check("2"), 1, 2, 1, Error, "barrier divergence"},
		{"another one", "setp.eq.u32 %p0, %t, 0; @%p0 redux.sync.add.u32 %r1, 1, -1; @!%p0 redux.sync.max.u32 %r1, 1, -1;", 1, 2, 1, Error, "barrier divergence"},
		{"a barrier of lanes at the other", "setp.eq.u32 %p0, %t, 0; @%p0 redux.sync.add.u32 %r1, 1, -1; @!%p0 bar.warp.sync -1; bar.sync 0;", 1, 2, 0, Error, "barrier divergence"},
	} {
		for _, ordered := range []bool{false, true} {
			r := verifyLaunch(t, launchOf(t, ".global .u32 x[4];", c.body, c.grid, c.block), Options{Ordered: ordered && c.block < 5, Schedules: true, Drawings: true})
			found := c.finding == ""
			for _, f := range r.Findings {
				found = found || strings.Contains(f.Title, c.finding)
			}
			if r.Executions != c.want && !(ordered && strings.Contains(c.body, "bar.")) || r.Verdict() != c.verdict || !found {
				t.Errorf("%s: %d executions, %s; want %d, %s, %q (%s) %+v", c.name, r.Executions, r.Verdict(), c.want, c.verdict, c.finding, r.Refusal, r.Findings)
			}
		}
	}
}

// TestExchangedValues compares the final memory of random warp instructions with that of the emulator.
func TestExchangedValues(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 9))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	for range 60 {
		block := []uint32{32, 32, 7, 40}[r.IntN(4)]
		body := "mul.lo.u32 %r0, %t, 77; and.b32 %r1, %t, 3; xor.b32 %r2, %t, 5; mov.u32 %r3, 9; setp.lt.u32 %p0, %r1, 2;\nand.b32 %r9, %t, 16; mov.u32 %r10, 0xffff; shl.b32 %r10, %r10, %r9;\n"
		for i := range 8 {
			d, a, b, mask := 4+i%4, r.IntN(4+min(i, 4)), r.IntN(4), pick("-1", "-1", "%r10")
			switch r.IntN(6) {
			case 0, 1:
				body += fmt.Sprintf("shfl.sync.%s.b32 %%r%d|%%p1, %%r%d, %s, %s, %s; selp.u32 %%r%d, 5, 6, %%p1;\n", pick("up", "down", "bfly", "idx"), d, a,
					pick("1", "2", "4", fmt.Sprintf("%%r%d", b)), pick("31", "0", "0x181f", "0x1c07"), mask, b)
			case 2:
				body += fmt.Sprintf("vote.sync.%s.pred %%p1, %s%%p0, %s; selp.u32 %%r%d, 3, 4, %%p1;\n", pick("all", "any", "uni"), pick("", "!"), mask, d)
			case 3:
				body += fmt.Sprintf("setp.lt.u32 %%p0, %%r%d, %d; vote.sync.ballot.b32 %%r%d, %%p0, %s;\n", a, r.IntN(40), d, mask)
			case 4:
				body += fmt.Sprintf("match.%s.b32 %%r%d, %%r%d, %s;\n", pick("any.sync", "all.sync"), d, a, mask)
			default:
				body += fmt.Sprintf("redux.sync.%s %%r%d, %%r%d, %s;\n", pick("add.s32", "min.s32", "max.u32", "xor.b32", "and.b32", "or.b32"), d, a, mask)
			}
		}
		body += "mad.lo.u32 %r20, %b, 40, %t; mul.wide.u32 %rd1, %r20, 32; mov.u64 %rd0, out; add.u64 %rd1, %rd0, %rd1;\n"
		for i := range 8 {
			body += fmt.Sprintf("st.global.u32 [%%rd1+%d], %%r%d;\n", 4*i, i)
		}
		l := launchOf(t, ".global .align 8 .b8 out[2560];", body, 2, block)
		at, _, _ := l.Program.Symbol("out")
		var got []byte
		judge := Expected{Name: "out", Addr: at, Size: 2560, Judge: func(data []byte) (string, bool) {
			got = slices.Clone(data)
			return "", true
		}}
		res, err := Kernel(context.Background(), l, []Expected{judge}, nil, Options{Unroll: 4})
		if err != nil || res.Executions != 1 || res.Refusal != "" {
			t.Fatalf("%v, %+v\n%s", err, res, body)
		}
		if _, err := engine.NewRef().Run(context.Background(), l); err != nil {
			t.Fatal(err)
		}
		want, err := l.Program.Memory.Bytes(at, 2560)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: memory\n%v\nwant\n%v\n%s", err, got, want, body)
		}
		l.Program.Unload()
	}
}

// TestWidths explores kernels whose accesses have several widths. Accesses that are not atomic are made in parts.
func TestWidths(t *testing.T) {
	first := "setp.eq.u32 %p0, %t, 0; @%p0 "
	check := func(value string) string { return "setp.ne.u32 %p1, %r1, " + value + "; @%p1 trap;" }
	for _, c := range []struct {
		name, body string
		want       int
		verdict    string
	}{
		{"halves of a word", first + "st.global.u32 [x], 0x30002; bar.sync 0; ld.global.u16 %r1, [x]; ld.global.u16 %r2, [x+2]; sub.u32 %r1, %r2, %r1;" + check("1"), 1, OK},
		{"bytes into a word", "mov.u64 %rd0, x; cvt.u64.u32 %rd1, %t; add.u64 %rd0, %rd0, %rd1; add.u32 %r0, %t, 1; st.global.u8 [%rd0], %r0; bar.sync 0; ld.global.u32 %r1, [x];" +
			check("0x201"), 1, OK},
		{"a signed half", first + "st.global.u32 [x], 0xfffe0000; bar.sync 0; ld.global.s16 %r1, [x+2];" + check("-2"), 1, OK},
		{"eight bytes, four, two and one", first + "st.global.u64 [x], 0x0807060504030201; bar.sync 0; ld.global.u32 %r1, [x+4]; ld.global.u16 %r2, [x+2]; ld.global.u8 %r3, [x+1];" +
			"add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;" + check("0x08070a0a"), 1, OK},
		{"a vector", first + "st.global.v2.u32 [x], {0x20001, 0x40003}; bar.sync 0; ld.global.u16 %r1, [x+6];" + check("4"), 1, OK},
		{"the initial value", "ld.global.u32 %r1, [x+8]; ld.global.u8 %r2, [x+9]; setp.eq.u32 %p2, %r2, 9; @%p2 st.global.u8 [x+9], 1;" + check("0x01000005"), 1, OK},
		{"shared memory", first + "st.shared.u32 [s], 0x70000; bar.sync 0; ld.shared.u16 %r1, [s+2];" + check("7"), 1, OK},
		{"a byte that is an atomic counter", "atom.relaxed.gpu.global.add.u32 %r0, [x], 1; bar.sync 0; ld.global.u64 %r16, [x]; cvt.u32.u64 %r1, %r16;" + check("2"), 2, OK},
		{"a race of two widths", first + "st.global.u32 [x], 1; @!%p0 ld.global.u16 %r1, [x+2];", 2, Error},
		{"another half", first + "st.global.u16 [x], 1; @!%p0 st.global.u16 [x+2], 1; bar.sync 0; ld.global.u32 %r1, [x];" + check("0x10001"), 1, OK},
		{"a race with one half", first + "st.global.u16 [x], 1; @!%p0 ld.global.u32 %r1, [x];", 2, Error},
		// As libcu++ has a byte: stores change its word, loads may be of a byte or a half.
		{"an atomic flag of a byte", first + "st.global.u32 [x+8], 7; @%p0 atom.release.gpu.global.cas.b32 %r0, [x], 0, 256; @%p0 bra END; " +
			"L: ld.acquire.gpu.global.u8 %r0, [x+1]; setp.eq.u32 %p1, %r0, 0; @%p1 bra L; ld.acquire.gpu.global.b16 %r1, [x]; shr.u32 %r1, %r1, 8; " +
			"add.u32 %r1, %r1, %r0;" + check("2") + "ld.global.u32 %r1, [x+8];" + check("7") + "END:", 1, OK},
		{"the same, relaxed", first + "st.global.u32 [x+8], 7; @%p0 atom.release.gpu.global.cas.b32 %r0, [x], 0, 256; @%p0 bra END; " +
			"L: ld.relaxed.gpu.global.u8 %r0, [x+1]; setp.eq.u32 %p1, %r0, 0; @%p1 bra L; ld.global.u32 %r1, [x+8];" + "END:", 2, Error},
		// And so a half that is stored: its word is swapped.
		{"a half that is swapped in its word", "mov.u64 %rd0, x; add.u64 %rd0, %rd0, 2; and.b64 %rd1, %rd0, -4;" + first + "st.relaxed.gpu.global.u16 [%rd0], 1; " +
			"@%p0 st.global.u16 [x], 9; @%p0 bra END; cvt.u32.u64 %r3, %rd0; and.b32 %r3, %r3, 3; shl.b32 %r3, %r3, 3; " +
			"mov.u32 %r4, 0xffff; shl.b32 %r4, %r4, %r3; not.b32 %r4, %r4; mov.u32 %r5, 2; shl.b32 %r5, %r5, %r3; " +
			"ld.relaxed.gpu.global.u32 %r0, [%rd1]; and.b32 %r1, %r0, %r4; or.b32 %r1, %r1, %r5; " +
			"atom.relaxed.gpu.global.cas.b32 %r2, [%rd1], %r0, %r1; END:", 3, OK},
		// Where others access the word too, it is the word that is swapped.
		{"a half that is swapped in its word, to which others add", "mov.u64 %rd0, x; add.u64 %rd0, %rd0, 2; and.b64 %rd1, %rd0, -4;" + first +
			"atom.relaxed.gpu.global.add.u32 %r2, [x], 1; @%p0 bra END; cvt.u32.u64 %r3, %rd0; and.b32 %r3, %r3, 3; shl.b32 %r3, %r3, 3; " +
			"mov.u32 %r4, 0xffff; shl.b32 %r4, %r4, %r3; not.b32 %r4, %r4; mov.u32 %r5, 2; shl.b32 %r5, %r5, %r3; " +
			"ld.relaxed.gpu.global.u32 %r0, [%rd1]; and.b32 %r1, %r0, %r4; or.b32 %r1, %r1, %r5; " +
			"atom.relaxed.gpu.global.cas.b32 %r2, [%rd1], %r0, %r1; END:", 3, OK},
		{"the byte beside it", first + "atom.release.gpu.global.cas.b32 %r0, [x], 0, 256; ld.acquire.gpu.global.s8 %r1, [x];" + check("0"), 2, OK},
		{"a race with an atomic half", first + "red.relaxed.gpu.global.add.u32 [x], 1; @!%p0 ld.global.u64 %r16, [x];", 2, Error},
	} {
		body := strings.ReplaceAll(c.body, "%r16", "%rd7")
		l := launchOf(t, ".global .align 8 .b8 x[16] = {0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 1};\n.shared .align 4 .b8 s[4];", body, 1, 2)
		for _, o := range []Options{{Jobs: 1}, {Jobs: 2}, {Model: PTX}} {
			o.Schedules = true
			r := verifyLaunch(t, l, o)
			if r.Executions != c.want || r.Verdict() != c.verdict || r.Refusal != "" {
				t.Errorf("%s: %d executions, %s; want %d, %s (%s) %+v", c.name, r.Executions, r.Verdict(), c.want, c.verdict, r.Refusal, r.Findings)
			}
			for _, f := range r.Findings {
				if f.Schedule == nil {
					t.Errorf("%s: no schedule of %s", c.name, f.Title)
				}
			}
		}
	}
}

// TestWidthBuffering checks load buffering through an atomic byte as in libcu++ under the model PTX. The byte is loaded
// by loading its word, and what depends on its value depends on the load of the word.
func TestWidthBuffering(t *testing.T) {
	for value, want := range map[string]int{"1": 4, "%r0": 3} {
		r := verifyLaunch(t, launchOf(t, lockVariables, "setp.eq.u32 %p0, %b, 0; @%p0 bra ONE; "+
			"ld.relaxed.gpu.global.u8 %r0, [x]; cvt.u32.u8 %r0, %r0; atom.relaxed.gpu.global.exch.b32 %r1, [y], "+value+"; ret; "+
			"ONE: ld.relaxed.gpu.global.u32 %r0, [y]; xor.b32 %r2, %r0, %r0; add.u32 %r2, %r2, 1; atom.relaxed.gpu.global.cas.b32 %r1, [x], 0, %r2;", 2, 1), Options{Model: PTX})
		if r.Executions != want || r.Verdict() != OK {
			t.Errorf("a store of %s: %d executions, %s %s; want %d", value, r.Executions, r.Verdict(), r.Refusal, want)
		}
	}
}

// TestWidthDependencies checks that the dependences of a store are known if a load before it is made in parts. Load
// buffering has the same executions with and without the load.
func TestWidthDependencies(t *testing.T) {
	const half = "st.global.u16 [%rd7+2], 1; "
	for _, own := range []string{"ld.global.u32 %r5, [%rd7];", "ld.global.v2.u32 {%r5, %r6}, [%rd7];", "ld.global.v4.u16 {%r3, %r4, %r5, %r6}, [%rd7]; ld.global.u64 %rd6, [%rd7];"} {
		for _, c := range []struct {
			value string
			want  int
		}{{"%r0", 3}, {"1", 4}, {"%r5", 4}} { // all of program order, or what nothing orders too
			threads := func(load string) string {
				return "mov.u64 %rd7, own; mul.wide.u32 %rd6, %b, 8; add.u64 %rd7, %rd7, %rd6; mov.u32 %r5, 1;" + load +
					"setp.eq.u32 %p0, %b, 0; @%p0 bra ONE; ld.relaxed.gpu.global.u32 %r0, [x]; st.relaxed.gpu.global.u32 [y], " + c.value +
					"; ret; ONE: ld.relaxed.gpu.global.u32 %r0, [y]; st.relaxed.gpu.global.u32 [x], " + c.value + ";"
			}
			variables := lockVariables + ".global .align 16 .b8 own[16] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};\n"
			r := verifyLaunch(t, launchOf(t, variables, threads(half+own), 2, 1), Options{Model: PTX})
			want := verifyLaunch(t, launchOf(t, variables, threads(""), 2, 1), Options{Model: PTX})
			if r.Executions != c.want || want.Executions != c.want || r.Verdict() != OK {
				t.Errorf("%s, a store of %s: %d executions, %s %s, and %d without the load; want %d", own, c.value, r.Executions, r.Verdict(), r.Refusal, want.Executions, c.want)
			}
		}
	}
}

// TestWidthValues has threads access 8 bytes each in every phase, with random widths, and compares the final memory
// with that of the emulator. Without a barrier some of these kernels race, and so do those that access only bytes.
func TestWidthValues(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 10))
	races, orders := 0, 0
	for range 60 {
		threads, barriers := 2+r.IntN(2), r.IntN(2) == 0
		body := "mov.u64 %rd7, 0; mov.u64 %rd6, x;\n"
		bytes := body
		for range 2 {
			body += fmt.Sprintf("mul.wide.u32 %%rd0, %%t, 8; add.u64 %%rd0, %%rd0, %%rd6; add.u32 %%t, %%t, 1; setp.ge.u32 %%p0, %%t, %d; @%%p0 mov.u32 %%t, 0;\n", threads)
			bytes += fmt.Sprintf("mul.wide.u32 %%rd0, %%t, 8; add.u64 %%rd0, %%rd0, %%rd6; add.u32 %%t, %%t, 1; setp.ge.u32 %%p0, %%t, %d; @%%p0 mov.u32 %%t, 0;\n", threads)
			for range 1 + r.IntN(3) {
				size := 1 << r.IntN(4)
				at := r.IntN(8/size) * size
				kind := map[int]string{1: "u8", 2: "u16", 4: "u32", 8: "u64"}[size]
				load := r.IntN(2) == 0
				if load {
					body += fmt.Sprintf("ld.global.%s %%rd1, [%%rd0+%d]; mad.lo.u64 %%rd7, %%rd7, 31, %%rd1;\n", kind, at)
				} else {
					body += fmt.Sprintf("mad.lo.u64 %%rd7, %%rd7, 7, 0x123456789abcdef1; st.global.%s [%%rd0+%d], %%rd7;\n", kind, at)
				}
				for k := range size {
					if load {
						bytes += fmt.Sprintf("ld.global.u8 %%rd1, [%%rd0+%d];\n", at+k)
					} else {
						bytes += fmt.Sprintf("st.global.u8 [%%rd0+%d], %%rd7;\n", at+k)
					}
				}
			}
			if barriers {
				body, bytes = body+"bar.sync 0;\n", bytes+"bar.sync 0;\n"
			}
		}
		store := "mul.wide.u32 %rd0, %t, 8; mov.u64 %rd6, out; add.u64 %rd0, %rd0, %rd6; st.global.u64 [%rd0], %rd7;"
		variables := ".global .align 8 .b8 x[32] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};\n.global .align 8 .b8 out[32];"
		l := launchOf(t, variables, body+store, 1, uint32(threads))
		var got [2][]byte
		var judges []Expected
		var at [2]uint64
		for i, name := range []string{"x", "out"} {
			at[i], _, _ = l.Program.Symbol(name)
			judges = append(judges, Expected{Name: name, Addr: at[i], Size: 32, Judge: func(data []byte) (string, bool) {
				got[i] = slices.Clone(data)
				return "", true
			}})
		}
		ctx, cancel := context.WithCancel(context.Background())
		told := 0
		few := Options{Unroll: 4, graphs: 1000, Progress: func(string) { // larger searches are cut
			if told++; told > 40 {
				cancel()
			}
		}}
		res, err := Kernel(ctx, l, judges, nil, few)
		if err != nil || res.Refusal != "" || barriers && res.Executions != 1 {
			t.Fatalf("%v, %+v\n%s", err, res, body)
		}
		cancel()
		b := launchOf(t, variables, bytes+store, 1, uint32(threads))
		ctx, cancel = context.WithCancel(context.Background())
		told = 0
		same, err := Kernel(ctx, b, nil, nil, few)
		cancel()
		if res.Verdict() == Bounded || same.Verdict() == Bounded {
			continue
		}
		if err != nil || same.Verdict() != res.Verdict() {
			t.Fatalf("%v, %+v, and with bytes %s, %d\n%s", err, res, same.Verdict(), told, body)
		}
		if res.Verdict() == Error {
			races++
			continue
		}
		orders++
		if _, err := engine.NewRef().Run(context.Background(), l); err != nil {
			t.Fatal(err)
		}
		for i := range at {
			want, err := l.Program.Memory.Bytes(at[i], 32)
			if err != nil || res.Executions == 1 && !slices.Equal(got[i], want) {
				t.Fatalf("%v: memory\n%v\nwant\n%v\n%s", err, got[i], want, body)
			}
		}
	}
	if races < 12 || orders < 25 {
		t.Errorf("%d kernels race, and %d do not", races, orders)
	}
}

// TestWarnings checks that a volatile flag that is polled is reported, without an error.
func TestWarnings(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"setp.eq.u32 %p0, %t, 0; @!%p0 bra L; st.volatile.global.u32 [x], 1; ret; L: ld.volatile.global.u32 %r0, [x]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L;",
			"race of a volatile access on x"},
		{"L: atom.relaxed.cta.global.cas.b32 %r0, [lock], 0, 1; setp.ne.s32 %p0, %r0, 0; @%p0 bra L; fence.acq_rel.cta; ld.global.u32 %r1, [x]; " +
			"add.u32 %r1, %r1, 1; st.global.u32 [x], %r1; fence.acq_rel.cta; st.volatile.global.u32 [lock], 0;", "race of a volatile access on lock"},
		{"atom.relaxed.cta.global.add.u32 %r0, [y], 1; L: ld.volatile.global.u32 %r1, [lock]; setp.ne.u32 %p0, %r0, %r1; @%p0 bra L; fence.acq_rel.cta; " +
			"ld.global.u32 %r2, [x]; add.u32 %r2, %r2, 1; st.global.u32 [x], %r2; fence.acq_rel.cta; add.u32 %r1, %r1, 1; st.volatile.global.u32 [lock], %r1;",
			"race of a volatile access on lock"},
		{"st.relaxed.gpu.global.u32 [x], %t;", ""},
		{"ld.volatile.global.u32 %r0, [x]; ld.global.u32 %r1, [x];", ""},
	} {
		r := verifyLaunch(t, launchOf(t, lockVariables, c.body, 1, 2), Options{})
		if r.Verdict() != OK || c.want == "" && len(r.Findings) > 0 || c.want != "" && (len(r.Findings) == 0 || r.Findings[0].Title != c.want || !r.Findings[0].Warning) {
			t.Errorf("%s: %s, %+v; want %q", c.body, r.Verdict(), r.Findings, c.want)
		}
	}
	// A count that volatile accesses keep in a loop: some execution has two writes neither of which has seen the other.
	r := verifyLaunch(t, launchOf(t, lockVariables, "mov.u32 %r1, 0; L: ld.volatile.global.u32 %r0, [x]; add.u32 %r0, %r0, 1; st.volatile.global.u32 [x], %r0; "+
		"add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 2; @%p0 bra L;", 1, 2), Options{})
	if r.errors() != 1 || len(r.Findings) != 2 {
		t.Errorf("a count: %d errors, %d findings", r.errors(), len(r.Findings))
	}
}

// TestFinalMemory checks that expectations about memory are judged at the end of every execution, whatever the widths
// of the stores.
func TestFinalMemory(t *testing.T) {
	body := `
	setp.eq.u32 %p0, %b, 0;
	@%p0 st.relaxed.gpu.global.u8 [x], 1;
	@!%p0 st.relaxed.gpu.global.u8 [x], 2;
	@%p0 st.global.u8 [x+1], 3;`
	l := launchOf(t, ".global .align 4 .b8 x[8] = {9, 9, 9, 9, 5, 0, 0, 0};", body, 2, 1)
	addr, _, _ := l.Program.Symbol("x")
	for _, c := range []struct {
		allowed []uint32
		verdict string
	}{{[]uint32{0x09090301, 0x09090302}, OK}, {[]uint32{0x09090301}, Error}} {
		expected := []Expected{
			{Name: "x", Addr: addr, Size: 4, Judge: func(data []byte) (string, bool) {
				v := binary.LittleEndian.Uint32(data)
				return fmt.Sprintf("%#x", v), slices.Contains(c.allowed, v)
			}},
			{Name: "x", Index: 1, Addr: addr + 4, Size: 4, Judge: func(data []byte) (string, bool) { return "5", data[0] == 5 && data[1] == 0 }},
		}
		r, err := Kernel(context.Background(), l, expected, nil, Options{Unroll: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict() != c.verdict || len(r.Outcomes) != 2 || r.Outcomes[0].State != "x[0]=0x9090301 x[1]=5" || r.Outcomes[0].Count != 1 {
			t.Errorf("%s, %+v", r.Verdict(), r.Outcomes)
		}
	}
}

// TestRefusals checks that unsupported kernels are refused with the reason, and never called correct.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, variables, body, want string }{
		{"an old shuffle", "", "shfl.bfly.b32 %r0, %t, 1, 31;", "needs the warp"},
		{"clock", lockVariables, "mov.u32 %r0, %clock; st.global.u32 [x], %r0;", "depends on what a clock shows"},
		{"widths", ".global .align 4 .b8 x[4];", "st.relaxed.gpu.global.u32 [x], 1; ld.global.u8 %r0, [x+1];", "accesses of 1 and of 4 bytes overlap"},
		{"widths, read first", ".global .align 4 .b8 x[4];", "ld.global.u8 %r0, [x+1]; st.volatile.global.u32 [x], 1;", "accesses of 4 and of 1 bytes overlap"},
		{"widths, an atomic one later", ".global .align 4 .b8 x[4];", "st.global.u8 [x+1], 1; ld.global.u32 %r0, [x]; atom.relaxed.gpu.global.add.u32 %r0, [x], 1;", "accesses of 1 and of 4 bytes overlap"},
		{"widths, an atomic byte", ".global .align 4 .b8 x[4];", "st.relaxed.gpu.global.u8 [x+1], 1; atom.relaxed.gpu.global.add.u32 %r0, [x], 1;", "accesses of 4 and of 1 bytes overlap"},
		{"widths, a byte that is read both ways", ".global .align 4 .b8 x[4];", "ld.relaxed.gpu.global.u8 %r0, [x+1]; ld.global.u8 %r0, [x+1]; atom.relaxed.gpu.global.add.u32 %r0, [x], 1;", "accesses of 4 and of 1 bytes overlap"},
		{"widths, a byte that is read both ways, later", ".global .align 4 .b8 x[4];", "ld.relaxed.gpu.global.u8 %r0, [x+1]; atom.relaxed.gpu.global.add.u32 %r0, [x], 1; ld.global.u8 %r0, [x+1];", "accesses of 1 and of 4 bytes overlap"},
		{"widths, an atomic half of what is stored", ".global .align 4 .b8 x[4];", "st.release.gpu.global.u32 [x], 1; ld.acquire.gpu.global.u16 %r0, [x];", "accesses of 2 and of 4 bytes overlap"},
		{"widths, an atomic half of what is stored later", ".global .align 4 .b8 x[4];", "atom.relaxed.gpu.global.cas.b32 %r0, [x], 0, 1; ld.acquire.gpu.global.u16 %r0, [x]; st.relaxed.gpu.global.u32 [x], 2;", "accesses of 4 and of 2 bytes overlap"},
		{"the constant cache", ".global .u32 x;", "ld.global.nc.u32 %r0, [x]; st.global.u32 [x], 1;", "ld.global.nc"},
		{"barrier of a part", "", "bar.sync 0, 64;", "of a part of the block"},
		{"proxy fence", "", "fence.proxy.alias;", "proxies"},
		{"copy", ".global .u32 x; .shared .u32 s;", "cp.async.ca.shared.global [s], [x], 4;", "asynchronous"},
		{"an endless loop", "", "L: bra L;", "may never end"},
		{"a wide atomic access", ".global .align 16 .b64 x[2];", "ld.relaxed.gpu.global.v2.u64 {%rd0, %rd1}, [x];", "more than 8 bytes"},
	} {
		r := verifyLaunch(t, launchOf(t, c.variables, c.body, 1, 2), Options{})
		if r.Verdict() != Bounded && len(r.Findings) == 0 || !strings.Contains(r.Refusal, c.want) || len(r.Refused) == 0 {
			t.Errorf("%s: %s, %q at %+v", c.name, r.Verdict(), r.Refusal, r.Refused)
		}
	}
	if r := verifyLaunch(t, launchOf(t, ".global .align 4 .b8 x[4];", "ld.global.u32 %r0, [x]; ld.global.u8 %r0, [x+1];", 1, 2), Options{}); r.Verdict() != OK {
		t.Errorf("reads of several widths that nobody writes: %s, %s", r.Verdict(), r.Refusal)
	}
}

// both writes a random program as a litmus test and as the body of a kernel. If branches is set, the kernel jumps over
// a conditional store, and what follows depends on the branch as in the litmus test; otherwise the store is guarded.
func both(r *rand.Rand, size int, threads, block int, branches bool) (test, body string) {
	var c, p strings.Builder
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	ptxOrder := map[string]string{"rlx": "relaxed", "acq": "acquire", "rel": "release", "acqrel": "acq_rel"}
	ptxFence := map[string]string{"sc": "sc", "acqrel": "acq_rel"}
	c.WriteString("C both\nint x, y;\n")
	barriers := r.IntN(3) == 0
	label := 0
	for t := range threads {
		fmt.Fprintf(&c, "thread T%d @ cta %d, cluster %d {\n", t, 0, t/block)
		fmt.Fprintf(&p, "setp.ne.u32 %%p7, %%b, %d;\n@%%p7 bra T%d;\nsetp.ne.u32 %%p7, %%t, %d;\n@%%p7 bra T%d;\n", t/block, t, t%block, t)
		last := -1
		n := r.IntN(size) + 1
		barrier := r.IntN(n)
		for i := range n {
			if barriers && i == barrier {
				c.WriteString("  barrier(3);\n")
				p.WriteString("barrier.sync 3;\n")
			}
			v, value, scope := pick("x", "y"), 1+r.IntN(2), pick("cta", "gpu", "sys")
			switch k := r.IntN(17); {
			case k < 4:
				o := pick("rlx", "acq")
				fmt.Fprintf(&c, "  int r%d = load(%s, %s, %s);\n", i, v, o, scope)
				fmt.Fprintf(&p, "ld.%s.%s.global.u32 %%r%d, [%s];\n", ptxOrder[o], scope, i, v)
				last = i
			case k < 8:
				o := pick("rlx", "rel")
				operand, immediate := fmt.Sprint(value), fmt.Sprint(value)
				if last >= 0 && r.IntN(2) == 0 {
					operand, immediate = fmt.Sprintf("r%d + 1", last), "%r30"
					fmt.Fprintf(&p, "add.u32 %%r30, %%r%d, 1;\n", last)
				}
				over := ""
				if last >= 0 && r.IntN(3) == 0 {
					fmt.Fprintf(&c, "  if (r%d != 0)\n", last)
					fmt.Fprintf(&p, "setp.ne.u32 %%p0, %%r%d, 0;\n", last)
					if branches {
						over = fmt.Sprintf("L%d:\n", label)
						fmt.Fprintf(&p, "@!%%p0 bra L%d;\n", label)
						label++
					} else {
						p.WriteString("@%p0 ")
					}
				}
				fmt.Fprintf(&c, "  store(%s, %s, %s, %s);\n", v, operand, o, scope)
				fmt.Fprintf(&p, "st.%s.%s.global.u32 [%s], %s;\n%s", ptxOrder[o], scope, v, immediate, over)
			case k < 10:
				o := pick("sc", "acqrel")
				fmt.Fprintf(&c, "  fence(%s, %s);\n", o, scope)
				fmt.Fprintf(&p, "fence.%s.%s;\n", ptxFence[o], scope)
			case k < 12:
				o := pick("rlx", "acq", "rel", "acqrel")
				f := r.IntN(4)
				fmt.Fprintf(&c, "  int r%d = %s, %s, %s);\n", i, []string{"fetch_add(" + v + ", 1", "exchange(" + v + ", 2", "cas(" + v + ", 0, 1",
					"cas(" + v + ", 1, 2"}[f], o, scope)
				fmt.Fprintf(&p, "atom.%s.%s.global.%s;\n", ptxOrder[o], scope, fmt.Sprintf([]string{"add.u32 %%r%d, [%s], 1", "exch.b32 %%r%d, [%s], 2",
					"cas.b32 %%r%d, [%s], 0, 1", "cas.b32 %%r%d, [%s], 1, 2"}[f], i, v))
				last = i
			case k < 13:
				fmt.Fprintf(&c, "  int r%d = %s;\n", i, v)
				fmt.Fprintf(&p, "ld.global.u32 %%r%d, [%s];\n", i, v)
				last = i
			case k < 14:
				fmt.Fprintf(&c, "  %s = %d;\n", v, value)
				fmt.Fprintf(&p, "st.global.u32 [%s], %d;\n", v, value)
			case k < 15:
				fmt.Fprintf(&c, "  while (load(%s, acq, %s) == 0) ;\n", v, scope)
				fmt.Fprintf(&p, "L%d: ld.acquire.%s.global.u32 %%r29, [%s];\nsetp.eq.u32 %%p1, %%r29, 0;\n@%%p1 bra L%d;\n", label, scope, v, label)
				label++
			case k < 16:
				fmt.Fprintf(&c, "  while (exchange(%s, 1, acq, %s) != 0) ;\n", v, scope)
				fmt.Fprintf(&p, "L%d: atom.acquire.%s.global.exch.b32 %%r29, [%s], 1;\nsetp.ne.u32 %%p1, %%r29, 0;\n@%%p1 bra L%d;\n", label, scope, v, label)
				label++
			default:
				fmt.Fprintf(&c, "  while (cas(%s, 0, 1, acq, %s) != 0) ;\n", v, scope)
				fmt.Fprintf(&p, "L%d: atom.acquire.%s.global.cas.b32 %%r29, [%s], 0, 1;\nsetp.ne.u32 %%p1, %%r29, 0;\n@%%p1 bra L%d;\n", label, scope, v, label)
				label++
			}
		}
		c.WriteString("}\n")
		fmt.Fprintf(&p, "ret;\nT%d:\n", t)
	}
	return c.String(), p.String()
}

// shape is the results of a search: the executions by identity with their ending, and the errors with their events.
type shape struct {
	result     explore.Result
	executions map[string]explore.Ending
	errors     map[string]bool
}

// shapeOf explores a program. variable returns the variable of a location.
func shapeOf(t *testing.T, p explore.Program, variable func(loc int32) int) shape {
	s := shape{executions: map[string]explore.Ending{}, errors: map[string]bool{}}
	event := func(x explore.Execution, e int) string {
		if e < 0 {
			return "none"
		}
		ev := x.Events()[e]
		return fmt.Sprintf("%d.%d", ev.Thread, ev.Index)
	}
	s.result = explore.Explore(context.Background(), p, explore.Options{Races: true,
		Leaf: func(x explore.Execution, end explore.Ending) {
			id := identityOf(x, 2, variable)
			if _, ok := s.executions[id]; ok {
				t.Fatalf("the search reaches an execution twice:\n%s", id)
			}
			s.executions[id] = end
		},
		Found: func(e explore.Error, x explore.Execution) bool {
			s.errors[fmt.Sprint(e.Kind, " ", event(x, e.A), " ", event(x, e.B), " ", e.Thread, e.Other)] = true
			return true
		}})
	return s
}

// TestFrontEnds checks that random programs have the same executions and errors as litmus tests and as kernels.
func TestFrontEnds(t *testing.T) {
	n := testsize.Of(300, 400, 10000)
	r := rand.New(rand.NewPCG(15, 1))
	stuck, cut := 0, 0
	for range n {
		blocks, block := 1+r.IntN(2), 1+r.IntN(2)
		test, body := both(r, 8/(blocks*block), blocks*block, block, false)
		parsed, err := litmus.Parse("both.litmus", test, litmus.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, test)
		}
		l := launchOf(t, ".global .u32 x;\n", body, uint32(blocks), uint32(block))
		p, err := kernel.New(l, kernel.Options{Unroll: litmus.DefaultUnroll, Attempts: true})
		if err != nil {
			t.Fatal(err)
		}
		want := shapeOf(t, parsed, func(loc int32) int { return int(loc) })
		got := shapeOf(t, p, func(loc int32) int { return strings.Index("xy", kernelLaunch{p}.location(loc)) })
		p.Close()
		l.Program.Unload()
		stuck, cut = stuck+got.result.Stuck, cut+got.result.Cut
		if p.Refusal() != nil || !maps.Equal(want.executions, got.executions) || !maps.Equal(want.errors, got.errors) {
			t.Fatalf("%+v\n%+v\n%v\n%s\n%s\n%v\n%v\n%v\n%v", want.result, got.result, p.Refusal(), test, body, slices.Sorted(maps.Keys(want.errors)),
				slices.Sorted(maps.Keys(got.errors)), want.executions, got.executions)
		}
	}
	if stuck == 0 {
		t.Error("no program was stuck")
	}
}

// TestKernelsPTX checks executions of kernels under the memory model of PTX: load buffering has four, and three if a
// store depends on the load, however the value is passed on.
func TestKernelsPTX(t *testing.T) {
	other := func(between string) string { // thread 0 reads x and writes y, thread 1 the other way round
		return `
	setp.eq.u32 %p7, %b, 0;
	mov.u64 %rd0, x;
	mov.u64 %rd1, y;
	@%p7 bra SAME;
	mov.u64 %rd0, y;
	mov.u64 %rd1, x;
SAME:
	ld.relaxed.gpu.global.u32 %r0, [%rd0];
	mov.u32 %r1, 0;
	` + between + `
	add.u32 %r1, %r1, 1;
	st.relaxed.gpu.global.u32 [%rd1], %r1;
OVER:`
	}
	local := ".local .align 8 .b8 slot[8];\n"
	for _, c := range []struct {
		name, body string
		grid       uint32
		block      uint32
		want       int
		verdict    string
	}{
		{"load buffering", other(""), 2, 1, 4, OK},
		{"with the value", other("xor.b32 %r1, %r0, %r0;"), 2, 1, 3, OK},
		{"with an address", other("and.b32 %r2, %r0, 0; cvt.u64.u32 %rd2, %r2; add.u64 %rd1, %rd1, %rd2;"), 2, 1, 3, OK},
		{"with a branch", other("setp.ge.u32 %p0, %r0, 9; @%p0 bra OVER;"), 2, 1, 3, OK},
		{"with a guard", other("setp.ge.u32 %p0, %r0, 9; @%p0 mov.u32 %r1, 1;"), 2, 1, 3, OK},
		{"with a select", other("setp.ge.u32 %p0, %r0, 9; selp.u32 %r1, 1, 0, %p0;"), 2, 1, 3, OK},
		{"through local memory", other("st.local.u32 [slot+4], %r0; ld.local.u32 %r2, [slot+4]; and.b32 %r1, %r2, 0;"), 2, 1, 3, OK},
		{"beside it in local memory", other("st.local.u32 [slot+4], %r0; ld.local.u32 %r2, [slot]; and.b32 %r1, %r2, 0;"), 2, 1, 4, OK},
		{"through a function", other("call (%r1), same, (%r0, %b); and.b32 %r1, %r1, 0;"), 2, 1, 3, OK},
		{"not through a function", other("call (%r1), same, (%b, %r0); and.b32 %r1, %r1, 0;"), 2, 1, 4, OK},
		{"a register that is written again", other("mov.u32 %r1, %r0; mov.u32 %r1, 0;"), 2, 1, 4, OK},
		{"compare-and-swap lock", lockPTX, 2, 2, 24, OK},
		{"the same without acquire", strings.Replace(lockPTX, "acquire", "relaxed", 1), 2, 1, 6, Error},
		{"volatile", "st.volatile.global.u32 [x], %b;", 2, 1, 2, OK},
		{"a spin", "L: ld.relaxed.gpu.global.u32 %r0, [x]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L;", 1, 1, 0, Error},
		{"a bound", "L: ld.relaxed.gpu.global.u32 %r0, [x]; red.relaxed.gpu.global.add.u32 [y], 1; setp.eq.u32 %p0, %r0, 0; @%p0 bra L;", 1, 1, 0, Bounded},
		{"a barrier that counts", "setp.lt.u32 %p0, %t, 2; bar.red.popc.u32 %r0, 0, %p0; setp.ne.u32 %p1, %r0, 2; @%p1 trap;", 1, 3, 1, OK},
		{"a barrier of lanes", strings.ReplaceAll(warpSync+"bar.warp.sync -1;"+warpRead, "x;", "four;"), 1, 3, 1, OK},
		{"a barrier that a thread leaves out by exiting", "setp.eq.u32 %p0, %t, 0; @%p0 exit; bar.sync 0;", 1, 2, 1, Error},
		{"a barrier in both branches", "setp.eq.u32 %p0, %t, 0; @%p0 bar.sync 0; @!%p0 bar.sync 0;", 1, 2, 1, Error},
		{"out of bounds", "st.global.u32 [x+1048576], 1;", 1, 1, 1, Error},
		{"a shuffle", "shfl.sync.bfly.b32 %r0, %t, 1, 31, -1; xor.b32 %r1, %t, 1; setp.ne.u32 %p0, %r0, %r1; @%p0 trap; red.relaxed.gpu.global.add.u32 [x], %r0;", 2, 2, 24, OK},
		{"a vote", "setp.eq.u32 %p0, %t, 0; vote.sync.any.pred %p1, %p0, -1; @!%p1 trap; st.global.u32 [x], %t; bar.sync 0;", 1, 1, 1, OK},
		{"a vote of what was read", "ld.acquire.gpu.global.u32 %r0, [x]; setp.eq.u32 %p0, %r0, 0; vote.sync.any.pred %p1, %p0, -1;", 1, 2, 1, OK},
		// The load may read from the store after the shuffle, which orders nothing.
		{"a shuffle between a load and a store", "setp.eq.u32 %p0, %t, 0; @%p0 ld.relaxed.gpu.global.u32 %r1, [x]; shfl.sync.idx.b32 %r0, 1, 0, 31, -1; @!%p0 st.relaxed.gpu.global.u32 [x], 1;", 1, 2, 0, Bounded},
		{"load buffering beside a shuffle", "shfl.sync.idx.b32 %r0, 1, 0, 31, -1; setp.eq.u32 %p0, %b, 0; @%p0 ld.relaxed.gpu.global.u32 %r1, [x]; @%p0 st.relaxed.gpu.global.u32 [lock], 1;" +
			"@!%p0 ld.relaxed.gpu.global.u32 %r1, [lock]; @!%p0 st.relaxed.gpu.global.u32 [x], 1;", 2, 1, 0, Bounded},
		{"a race behind a shuffle", "shfl.sync.idx.b32 %r0, 1, 0, 31, -1; st.global.u32 [x], %t;", 1, 2, 0, Error},
		{"an addition between a vote and a shuffle", "setp.lt.u32 %p1, %t, 2; vote.sync.ballot.b32 %r1, %p1, -1; setp.eq.u32 %p0, %t, 0; @%p0 atom.relaxed.gpu.global.add.u32 %r0, [x], %r1; " +
			"shfl.sync.idx.b32 %r0, %r0, 0, 31, -1; rem.u32 %r0, %r0, 3; setp.ne.u32 %p0, %r0, 0; @%p0 trap;", 2, 2, 2, OK},
	} {
		variables := lockVariables + ".global .u32 four[4];\n.func (.reg .b32 a) same(.reg .b32 b, .reg .b32 c) { mov.u32 a, b; ret; }\n"
		text := strings.Replace(kernelText(variables, c.body), "\t.reg .b64 %rd<8>;\n\t.reg .pred", local+"\t.reg .b64 %rd<8>;\n\t.reg .pred", 1)
		r := verifyLaunch(t, launchText(t, text, c.grid, c.block), Options{Model: PTX, Unroll: 4})
		if r.Executions != c.want || r.Verdict() != c.verdict {
			t.Errorf("%s: %d executions, %s; want %d, %s (%s) %+v", c.name, r.Executions, r.Verdict(), c.want, c.verdict, r.Refusal, r.Findings)
		}
	}
}

// budget is a context that ends when it has been asked a number of times.
type budget struct {
	context.Context
	left int
}

func (b *budget) Err() error {
	if b.left--; b.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestFrontEndsPTX checks that random programs have the same final states, equally often, and the same errors under the
// model PTX.
func TestFrontEndsPTX(t *testing.T) {
	n := testsize.Of(40, 60, 1200)
	r := rand.New(rand.NewPCG(15, 2))
	explored := func(p explore.Program, locate func(variable int) int32) (states map[string]int, res explore.Result) {
		states = map[string]int{}
		o := explore.Options{Races: true,
			Leaf: func(x explore.Execution, end explore.Ending) {
				state := ""
				for v := range 2 {
					if loc := locate(v); loc >= 0 {
						state += fmt.Sprintf(" %d=%d", v, x.Final(loc))
					}
				}
				states[state]++
			},
			Found: func(e explore.Error, x explore.Execution) bool { states[fmt.Sprint("error ", e.Kind)] = 1; return true }}
		// Larger programs are left out.
		res, err := candidates.Enumerate(&budget{context.Background(), 20}, p, model.PTX{}, o, func() { clear(states) })
		if err != nil && err != candidates.ErrTooLarge {
			t.Fatal(err)
		}
		res.Stopped = res.Stopped || err != nil
		return states, res
	}
	compared, counted := 0, 0
	for range n {
		blocks, block := 1+r.IntN(2), 1+r.IntN(2)
		test, body := both(r, 8/(blocks*block), blocks*block, block, true)
		test = strings.Replace(test, "int x, y;", "int x, y;\nthread INIT @ cta 9 { }", 1)
		parsed, err := litmus.Parse("both.litmus", test, litmus.Options{PTX: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, test)
		}
		l := launchOf(t, ".global .u32 x;\n", body, uint32(blocks), uint32(block))
		run := func(use kernel.Options) (states map[string]int, res explore.Result, refusal *kernel.Refusal) {
			use.Unroll, use.Dependencies = litmus.DefaultUnroll, true
			p, err := kernel.New(l, use)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			states, res = explored(p, func(v int) int32 {
				for loc := range int32(p.Locations()) {
					if (kernelLaunch{p}).location(loc) == "xy"[v:v+1] {
						return loc
					}
				}
				return -1
			})
			return states, res, p.Refusal()
		}
		want, a := explored(parsed, func(v int) int32 { return int32(v) })
		got, b, refusal := run(kernel.Options{Attempts: true})
		few, c, counts := run(kernel.Options{})
		l.Program.Unload()
		if a.Stopped || b.Stopped || c.Stopped {
			continue
		}
		compared++
		if refusal != nil || a.Executions != b.Executions || a.Stuck != b.Stuck || a.Cut != b.Cut || len(got) != len(want) {
			t.Fatalf("%+v %v\n%+v %v %v\n%s\n%s", a, want, b, got, refusal, test, body)
		}
		if counts != nil {
			counted++
		} else if c.Executions > b.Executions || !slices.Equal(slices.Sorted(maps.Keys(few)), slices.Sorted(maps.Keys(got))) {
			t.Fatalf("%+v %v\nwithout attempts %+v %v\n%s\n%s", b, got, c, few, test, body)
		}
	}
	t.Log(compared, "programs compared,", counted, "count attempts")
	if compared < n/2 {
		t.Errorf("only %d programs of %d were small enough", compared, n)
	}
}
