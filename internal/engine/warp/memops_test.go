package warp

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

func TestAccessFaults(t *testing.T) {
	for _, c := range []struct {
		name, body, decl string
		kind             engine.FaultKind
		text             string
		count            int
	}{
		{"past the end", `st.global.u32 [%mine], 1;`, "", engine.OutOfBounds, "writes 4 bytes at 0x200000000040, just past the end of buffer 1", 16},
		{"far past", `add.u64 %rd1, %out, 80; ld.global.u32 %r1, [%rd1];`, "", engine.OutOfBounds, "reads 4 bytes at 0x200000000050, 16 bytes past the end of buffer 1", 32},
		{"across the end", `ld.global.u64 %rd1, [%out+56]; ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+64];`, "", engine.OutOfBounds, "0x200000000040, just past", 32},
		{"before", `ld.global.u32 %r1, [%out+-8];`, "", engine.OutOfBounds, "8 bytes before buffer 1", 32},
		{"null", `mov.u64 %rd1, 0; st.global.u32 [%rd1+8], 1;`, "", engine.OutOfBounds, "0x8: a null pointer", 32},
		{"host", `mov.u64 %rd1, 0x7fff12345678; ld.u32 %r1, [%rd1];`, "", engine.OutOfBounds, "host memory", 32},
		{"nonsense", `mov.u64 %rd1, 0x7fff123456789abc; ld.u32 %r1, [%rd1];`, "", engine.OutOfBounds, "no address of data", 32},
		{"misaligned", `st.global.u32 [%out+2], 1;`, "", engine.Misaligned, "(buffer 1 + 2), which is not a multiple of 4", 32},
		{"misaligned vector", `st.global.v2.u32 [%out+4], {%r1,%r2};`, "", engine.Misaligned, "not a multiple of 8", 32},
		{"atomic", `atom.global.add.u32 %r1, [%out+64], 1;`, "", engine.OutOfBounds, "updates 4 bytes", 32},
		{"constant", `mov.u64 %rd1, table; st.u32 [%rd1], 1;`, ".const .align 4 .u32 table[4] = {1,2,3,4};", engine.ReadOnly, "(table + 0), which is constant memory", 32},
		{"shared", `.shared .align 4 .b8 box[64]; mov.u32 %r1, box; shl.b32 %r2, %ln, 2; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], 1;`, "",
			engine.OutOfBounds, "offset 0x40 of shared memory, of which the block has 64 bytes: just past the end", 16},
		{"local misaligned vector", `.local .align 16 .b8 box[64]; ld.local.v4.u32 {%r1,%r2,%r3,%r4}, [box+4]; st.local.u32 [box], %r1;`, "", engine.Misaligned, "not a multiple of 16", 32},
		{"shared misaligned", `.shared .align 4 .b8 box[64]; ld.shared.u32 %r1, [box+6];`, "", engine.Misaligned, "(box + 6), which is not a multiple of 4", 32},
		{"local", `.local .align 8 .b8 mem[16]; mov.u64 %rd1, mem; st.local.u32 [%rd1+16], 1;`, "", engine.OutOfBounds, "local memory, of which the thread has 16 bytes", 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, prelude+c.decl+entry("k", c.body))
			out := g.buffer(16)
			// The buffer has room on both sides, so that other buffers are far.
			o := g.run(launch{out: out})
			if o.err != nil {
				t.Error(o.err)
			}
			f := o.wantFault(t, c.kind, c.text)
			if f.Count != c.count || len(f.Stands) != 1 || f.Stands[0].Threads != 1 {
				t.Errorf("count %d, stands %+v", f.Count, f.Stands)
			}
			if o.stats.Fault != c.kind {
				t.Errorf("the device is lost by %q", o.stats.Fault)
			}
			fr := g.places.Frames(f.Stands[0].Place)
			if len(fr) != 1 || fr[0].Function != "k" || fr[0].PTXFile != "test.ptx" || fr[0].PTXLine == 0 {
				t.Errorf("frames %+v", fr)
			}
		})
	}
}

// TestPartOfAWord checks an atomic operation on 16 bits of a small allocation, made from a load and a compare-and-swap
// of the surrounding word.
func TestPartOfAWord(t *testing.T) {
	const swap = `ld.relaxed.gpu.global.b32 %r1, [%rd2];
	add.u32 %r2, %r1, 5;
	atom.relaxed.gpu.global.cas.b32 %r3, [%rd2], %r1, %r2;`
	for _, c := range []struct {
		name, body string
		fault      bool
	}{
		{"rounded", `and.b64 %rd2, %out, -4;` + swap, false},
		{"not rounded", `mov.b64 %rd2, %out;` + swap, true},
		{"rounded on one way", `mov.b64 %rd2, %out; and.b64 %rd2, %rd2, -4;` + swap, true},
		{"behind", `add.u64 %rd1, %out, 4; and.b64 %rd2, %rd1, -4;` + swap, true},
		{"a store", `and.b64 %rd2, %out, -4;` + swap + `st.global.b32 [%rd2], %r1;`, true},
		{"no swap", `and.b64 %rd2, %out, -4; ld.global.b32 %r1, [%rd2];`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(c.body))
			out, err := g.mem.Alloc(2, 256, devmem.DeviceAlloc, "two bytes")
			if err != nil {
				t.Fatal(err)
			}
			o := g.run(launch{block: 1, out: out})
			if fault := len(o.faults) > 0; fault != c.fault {
				t.Errorf("faults %+v", o.faults)
			}
			if data, err := g.mem.Bytes(out, 2); err != nil || !c.fault && data[0] != 5 {
				t.Errorf("%v, %v", data, err)
			}
		})
	}
}

// TestSharedEnds checks the size of a block's shared memory: its static variables, or up to the end of the dynamic ones
// if the launch has some, which begin at their alignment.
func TestSharedEnds(t *testing.T) {
	for _, c := range []struct {
		offset, dynamic int
		fault           string
	}{
		{0, 0, ""}, {4, 0, "of which the block has 4 bytes"}, {12, 0, "of which the block has 4 bytes"}, {16, 0, "of which the block has 4 bytes"},
		{4, 8, "just past the end"}, {20, 8, "16 bytes past the end"}, {24, 8, "of which the block has 24 bytes"},
	} {
		g := newRig(t, prelude+".extern .shared .align 16 .b8 more[];\n"+entry("k", fmt.Sprintf(`
	.shared .align 4 .b8 box[4];
	mov.u32 %%r1, box;
	st.shared.u32 [%%r1+%d], 1;
	mov.u32 %%r2, more;
	sub.u32 %%r2, %%r2, %%r1;
	st.global.u32 [%%mine], %%r2;`, c.offset)))
		out := g.buffer(1)
		o := g.run(launch{block: 1, out: out, dynamic: c.dynamic})
		if c.fault != "" && c.dynamic > 0 && c.offset < 24 {
			o.wantFault(t, engine.OutOfVariable, c.fault)
		} else if c.fault != "" {
			o.wantFault(t, engine.OutOfBounds, c.fault)
		} else if len(o.faults) != 0 {
			t.Errorf("offset %d, %d dynamic bytes: %+v", c.offset, c.dynamic, o.faults)
		}
		wants(t, g, out, 16)
	}
}

// TestFaultingLanes checks that a faulting load returns 0, that a faulting store has no effect, that both make no
// event, and that the thread continues.
func TestFaultingLanes(t *testing.T) {
	g := newRig(t, kernel(`
	mov.u32 %r1, 77;
	ld.global.u32 %r1, [%mine];
	st.global.u32 [%mine], %ln;`))
	out := g.buffer(8)
	o := g.run(launch{out: out})
	if len(o.faults) != 2 {
		t.Fatalf("%+v", o.faults)
	}
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		load w0 000000ff global r4 out+0 +4
		store w0 000000ff global w4 out+0 +4
		exit w0 ffffffff
		kernel-end w0 00000000`)
}

func TestUseAfterFree(t *testing.T) {
	g := newRig(t, kernel(`st.global.u32 [%mine], 1;`))
	out := g.buffer(32)
	if _, err := g.mem.Free(out); err != nil {
		t.Fatal(err)
	}
	g.run(launch{out: out}).wantFault(t, engine.UseAfterFree, "(buffer 1 + 0), which has been freed")
}

func TestVectorsAndBytes(t *testing.T) {
	g := newRig(t, kernel(`
	ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%out];
	st.global.v2.u32 [%out+16], {%r4, %r1};
	ld.global.s8 %r5, [%out+24];
	ld.global.u8 %r6, [%out+24];
	st.global.u32 [%out+28], %r5;
	st.global.u32 [%out+32], %r6;
	ld.global.s16 %rd1, [%out+24];
	st.global.u64 [%out+40], %rd1;
	ld.global.v2.b64 {_, %rd2}, [%out];
	st.global.u8 [%out+48], %rd2;`))
	out := g.buffer(16)
	b, _ := g.mem.Bytes(out, 64)
	for i := range 16 {
		b[i] = byte(i + 1)
	}
	b[24], b[25] = 0x80, 0x90
	o := g.mustRun(launch{block: 1, out: out, set: func(l *engine.Launch) { l.Needs |= event.NeedValues }})
	w := g.words(out, 16)
	want := []uint32{0x04030201, 0x08070605, 0x0c0b0a09, 0x100f0e0d, 0x100f0e0d, 0x04030201, 0x9080, 0xffffff80, 0x80, 0, 0xffff9080, 0xffffffff, 9, 0, 0, 0}
	for i := range want {
		if w[i] != want[i] {
			t.Errorf("word %d is %#x, want %#x", i, w[i], want[i])
		}
	}
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		load w0 00000001 global r16 out+0 +0
		store w0 00000001 global w8 out+16 +0 = [4030201100f0e0d]
		load w0 00000001 global r1 out+24 +0
		load w0 00000001 global r1 out+24 +0
		store w0 00000001 global w4 out+28 +0 = [ffffff80]
		store w0 00000001 global w4 out+32 +0 = [80]
		load w0 00000001 global r2 out+24 +0
		store w0 00000001 global w8 out+40 +0 = [ffffffffffff9080]
		load w0 00000001 global r16 out+0 +0
		store w0 00000001 global w1 out+48 +0 = [9]
		exit w0 00000001
		kernel-end w0 00000000`)
}

// TestOverwritten checks the overwritten values of writes: of adjacent lanes, of lanes that write one address in turn,
// of bytes, pairs and atomics.
func TestOverwritten(t *testing.T) {
	g := newRig(t, kernel(`
	mov.u32 %r1, 7;
	add.u32 %r2, %ln, 5;
	st.global.u32 [%mine], %r2;
	st.global.u32 [%out], %r2;
	cvt.u64.u32 %rd1, %ln;
	add.u64 %rd1, %rd1, %out;
	st.global.u8 [%rd1+4], %r1;
	st.global.v2.u32 [%out+8], {%r1, %r2};
	atom.global.add.u32 %r3, [%out+4], %ln;
	atom.global.exch.b64 %rd2, [%out+8], %rd1;`))
	out := g.buffer(5)
	b, _ := g.mem.Bytes(out, 20)
	for i := range b {
		b[i] = byte(i + 1)
	}
	o := g.mustRun(launch{block: 2, out: out, set: func(l *engine.Launch) { l.Needs |= event.NeedValues | event.NeedOld }})
	at := func(n uint64) string { return fmt.Sprintf("%x", out+n) }
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		store w0 00000003 global w4 out+0 +4 = [5] [6] over [4030201] [8070605]
		store w0 00000003 global w4 out+0 +0 = [5] [6] over [5] [5]
		store w0 00000003 global w1 out+4 +1 = [7] [7] over [6] [7]
		store w0 00000003 global w8 out+8 +0 = [500000007] [600000007] over [100f0e0d0c0b0a09] [500000007]
		atomic w0 00000003 global relaxed.gpu rw4 out+4 +0 = [707] [708] over [707] [707]
		atomic w0 00000003 global relaxed.gpu rw8 exch out+8 +0 = [`+at(0)+`] [`+at(1)+`] over [600000007] [`+at(0)+`]
		exit w0 00000003
		kernel-end w0 00000000`)
}

func TestAtomics(t *testing.T) {
	g := newRig(t, kernel(`
	atom.global.add.f32 %f1, [%out], 0f3F000000;       // 0.5 by each
	red.global.add.u32 [%out+4], %ln;
	atom.global.max.s32 %r1, [%out+8], %ln;
	red.release.gpu.global.inc.u32 [%out+12], 9;
	atom.global.add.f64 %fd1, [%out+16], 0d3FF0000000000000;
	atom.global.or.b64 %rd1, [%out+24], 5;`))
	out := g.buffer(8)
	o := g.mustRun(launch{out: out})
	w := g.words(out, 8)
	if f := math.Float32frombits(w[0]); f != 16 {
		t.Errorf("f32 sum %v", f)
	}
	if w[1] != 31*16 || w[2] != 31 || w[3] != 2 || w[6] != 5 {
		t.Errorf("words %v", w)
	}
	if f := math.Float64frombits(uint64(w[5])<<32 | uint64(w[4])); f != 32 {
		t.Errorf("f64 sum %v", f)
	}
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		atomic w0 ffffffff global relaxed.gpu rw4 out+0 +0
		atomic w0 ffffffff global relaxed.gpu rw4 out+4 +0
		atomic w0 ffffffff global relaxed.gpu rw4 out+8 +0
		atomic w0 ffffffff global release.gpu rw4 out+12 +0
		atomic w0 ffffffff global relaxed.gpu rw8 out+16 +0
		atomic w0 ffffffff global relaxed.gpu rw8 out+24 +0
		exit w0 ffffffff
		kernel-end w0 00000000`)
}

// TestFailedCompareAndSwap checks the events of lanes that succeed and fail in one step, in every order.
func TestFailedCompareAndSwap(t *testing.T) {
	run := func(body, want string) {
		t.Helper()
		g := newRig(t, kernel(body))
		out := g.buffer(8)
		g.mustRun(launch{block: 4, out: out}).wantEvents(t, out, "kernel-begin w0 00000000\n"+strings.TrimSpace(want)+"\nexit w0 0000000f\nkernel-end w0 00000000")
	}
	// One location: lane 0 wins.
	run(`atom.global.cas.b32 %r1, [%out], 0, 1;`, `
		atomic w0 00000001 global relaxed.gpu rw4 cas out+0 +0
		atomic w0 0000000e global relaxed.gpu r4 cas out+0 +0`)
	// Only lane 2 expects 0: lanes 0 and 1 fail before it, lane 3 after it.
	run(`setp.eq.u32 %p1, %ln, 2; selp.u32 %r2, 0, 9, %p1; atom.global.cas.b32 %r1, [%out], %r2, 1;`, `
		atomic w0 00000003 global relaxed.gpu r4 cas out+0 +0
		atomic w0 00000004 global relaxed.gpu rw4 cas out+0 +0
		atomic w0 00000008 global relaxed.gpu r4 cas out+0 +0`)
	// Only lane 3 succeeds.
	run(`setp.eq.u32 %p1, %ln, 3; selp.u32 %r2, 0, 9, %p1; atom.global.cas.b32 %r1, [%out], %r2, 1;`, `
		atomic w0 00000007 global relaxed.gpu r4 cas out+0 +0
		atomic w0 00000008 global relaxed.gpu rw4 cas out+0 +0`)
	// The order of different locations is free.
	run(`and.b32 %r3, %ln, 1; atom.global.cas.b32 %r1, [%mine], %r3, 1;`, `
		atomic w0 00000005 global relaxed.gpu rw4 cas out+0 +4
		atomic w0 0000000a global relaxed.gpu r4 cas out+4 +4`)
	run(`atom.global.exch.b32 %r1, [%out], 1; atom.global.exch.b32 _, [%out], 1;`, `
		atomic w0 0000000f global relaxed.gpu rw4 exch out+0 +0
		atomic w0 0000000f global relaxed.gpu w4 exch out+0 +0`)
}

func TestScatteredAndGeneric(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 4 .b8 box[16];
	mul.lo.u32 %r1, %ln, %ln;
	mul.wide.u32 %rd1, %r1, 4;
	add.u64 %rd1, %out, %rd1;
	st.u32 [%rd1], 1;
	mov.u64 %rd2, box;
	cvta.shared.u64 %rd2, %rd2;
	mul.wide.u32 %rd4, %ln, 4;
	add.u64 %rd3, %rd2, %rd4;
	setp.eq.u32 %p1, %ln, 1;
	selp.b64 %rd1, %rd3, %mine, %p1;
	ld.volatile.u32 %r2, [%rd1];`))
	out := g.buffer(16)
	o := g.mustRun(launch{block: 4, out: out})
	o.wantEvents(t, out, fmt.Sprintf(`
		kernel-begin w0 00000000
		store w0 0000000f global w4 scattered %s
		load w0 0000000d global volatile.sys r4 out+0 +4
		load w0 00000002 shared volatile.sys r4 4+0
		exit w0 0000000f
		kernel-end w0 00000000`, "out+0 out+4 out+16 out+36"))
}

func TestNeeds(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 4 .b8 box[128];
	shl.b32 %r1, %ln, 2;
	mov.u32 %r2, box;
	add.u32 %r1, %r1, %r2;
	st.shared.u32 [%r1], %ln;
	st.global.u32 [%mine], %ln;
	bar.sync 0;
	membar.gl;`))
	for needs, want := range map[event.Needs]string{
		0:                  "",
		event.NeedGlobal:   "store global",
		event.NeedShared:   "store shared",
		event.NeedSync:     "arrive wait,barrier-done bar0,fence sc.gpu,exit ffffffff",
		event.NeedLaunch:   "kernel-begin 00000000,kernel-end 00000000",
		event.NeedBranches: "",
	} {
		o := g.mustRun(launch{out: g.buffer(32), set: func(l *engine.Launch) { l.Needs = needs }})
		var got []string
		for _, l := range o.rec.lines {
			f := strings.Fields(l)
			last := f[len(f)-1]
			switch f[0] {
			case "store":
				last = f[3]
			case "arrive":
				last = f[4]
			}
			got = append(got, f[0]+" "+last)
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("needs %b: %s, want %s", needs, s, want)
		}
	}
}

const calls = prelude + `
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s) .noreturn;
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.global .align 1 .b8 text[10] = {37, 100, 32, 37, 115, 32, 37, 103, 10, 0};
.global .align 1 .b8 word[4] = {97, 98, 99, 0};
.file 1 "src.cu"
.func (.param .b32 r) fact (.param .b32 n)
{
	.reg .b32 %r<8>;
	.reg .pred %p;
	.loc 1 10 3
	ld.param.u32 %r1, [n];
	setp.gt.u32 %p, %r1, 1;
	@%p bra more;
	st.param.b32 [r+0], 1;
	ret;
more:
	sub.u32 %r2, %r1, 1;
	{
	.param .b32 a0;
	st.param.b32 [a0+0], %r2;
	.param .b32 r0;
	.loc 1 11 5
	call.uni (r0), fact, (a0);
	ld.param.b32 %r3, [r0+0];
	}
	mul.lo.u32 %r3, %r3, %r1;
	st.param.b32 [r+0], %r3;
	ret;
}
.func (.param .b32 r) twice (.param .b32 n)
{
	.reg .b32 %r<8>;
	ld.param.u32 %r1, [n];
	add.u32 %r1, %r1, %r1;
	st.param.b32 [r+0], %r1;
	ret;
}
.func forever ()
{
	.local .align 8 .b8 frame[1024];
	call.uni forever, ();
	ret;
}
.global .align 8 .u64 funcs[2] = {fact, twice};
`

func TestRecursion(t *testing.T) {
	g := newRig(t, calls+entry("k", `
	.param .b32 a0;
	.param .b32 r0;
	rem.u32 %r1, %ln, 7;
	st.param.b32 [a0+0], %r1;
	.loc 1 50 1
	call.uni (r0), fact, (a0);
	ld.param.b32 %r2, [r0+0];
	st.global.u32 [%mine], %r2;`))
	out := g.buffer(32)
	o := g.mustRun(launch{out: out})
	fact := []uint32{1, 1, 2, 6, 24, 120, 720}
	for i, v := range g.words(out, 32) {
		if v != fact[i%7] {
			t.Errorf("lane %d: %d", i, v)
		}
	}
	if n := len(o.rec.lines); n != 4 {
		t.Errorf("the lanes did not meet again: %q", o.rec.lines)
	}
	// There are frames of the kernel, of fact called by it, and of fact called by fact.
	var fr []event.Frame
	deepest := 0
	for p := uint32(1); g.places.Frames(p) != nil; p++ {
		f := g.places.Frames(p)
		if deepest = max(deepest, len(f)); len(f) == 3 && fr == nil {
			fr = g.places.Frames(p + 1) // of the second instruction
		}
	}
	if deepest != 3 {
		t.Errorf("a stack of %d calls", deepest)
	}
	if len(fr) != 3 || fr[0].Line != 10 || fr[1].Line != 11 || fr[2].Line != 50 || fr[0].File != "src.cu" || fr[2].Function != "k" ||
		fr[1].Function != "fact" || fr[0].Inst != "setp.gt.u32 %p, %r1, 1" {
		t.Errorf("frames %+v", fr)
	}
}

func TestIndirectCall(t *testing.T) {
	g := newRig(t, calls+entry("k", `
	.param .b32 a0;
	.param .b32 r0;
	and.b32 %r1, %ln, 1;
	mul.wide.u32 %rd1, %r1, 8;
	mov.u64 %rd2, funcs;
	add.u64 %rd1, %rd1, %rd2;
	ld.global.u64 %rd3, [%rd1];
	st.param.b32 [a0+0], 5;
	sig : .callprototype (.param .b32 _) _ (.param .b32 _);
	call (r0), %rd3, (a0), sig;
	ld.param.b32 %r2, [r0+0];
	st.global.u32 [%mine], %r2;
	setp.ne.u32 %p1, %n, 0;
	@%p1 mov.u64 %rd3, 4096;
	@%p1 call (r0), %rd3, (a0), sig;`))
	out := g.buffer(32)
	g.mustRun(launch{out: out})
	for i, v := range g.words(out, 32) {
		if want := []uint32{120, 10}[i&1]; v != want {
			t.Errorf("lane %d: %d", i, v)
		}
	}
	g.run(launch{out: out, n: 1}).wantFault(t, engine.BadCall, "0x1000, which is no function")
}

func TestStackOverflow(t *testing.T) {
	g := newRig(t, calls+entry("k", `call.uni forever, ();`))
	o := g.run(launch{out: g.buffer(1)})
	if !errors.Is(o.err, engine.ErrTrap) || o.stats.Fault != engine.StackOverflow {
		t.Errorf("ended with %v, lost by %q", o.err, o.stats.Fault)
	}
	o.wantFault(t, engine.StackOverflow, "512 calls deep")
}

func TestPrintf(t *testing.T) {
	g := newRig(t, calls+entry("k", `
	.local .align 8 .b8 args[24];
	mov.u64 %rd1, args;
	cvta.local.u64 %rd2, %rd1;
	st.local.u32 [%rd1], %ln;
	mov.u64 %rd3, word;
	st.local.u64 [%rd1+8], %rd3;
	mov.f64 %fd1, 0d3FF8000000000000;
	st.local.f64 [%rd1+16], %fd1;
	.param .b64 a0;
	.param .b64 a1;
	.param .b32 r0;
	mov.u64 %rd4, text;
	st.param.b64 [a0], %rd4;
	st.param.b64 [a1], %rd2;
	call.uni (r0), vprintf, (a0, a1);
	ld.param.b32 %r1, [r0];
	st.global.u32 [%mine], %r1;
	st.param.b64 [a0], 0;
	call.uni (r0), vprintf, (a0, a1);
	ld.param.b32 %r1, [r0];
	st.global.u32 [%mine+8], %r1;`))
	out := g.buffer(4)
	o := g.mustRun(launch{block: 2, out: out})
	if o.text != "0 abc 1.5\n1 abc 1.5\n" {
		t.Errorf("printed %q", o.text)
	}
	if w := g.words(out, 4); w[0] != 3 || w[2] != 0xffffffff {
		t.Errorf("results %#x", w)
	}
}

func TestAssertAndTrap(t *testing.T) {
	g := newRig(t, calls+entry("k", `
	.param .b64 a0;
	.param .b64 a1;
	.param .b32 a2;
	.param .b64 a3;
	.param .b64 a4;
	setp.ne.u32 %p1, %n, 0;
	@%p1 trap;
	mov.u64 %rd1, word;
	st.param.b64 [a0], %rd1;
	st.param.b64 [a1], %rd1;
	st.param.b32 [a2], 17;
	st.param.b64 [a3], %rd1;
	st.param.b64 [a4], 1;
	setp.eq.u32 %p1, %tx, 1;
	@%p1 call.uni __assertfail, (a0, a1, a2, a3, a4);
	st.global.u32 [%mine], 1;`))
	o := g.run(launch{block: 2, grid: 5, out: g.buffer(10)})
	if !errors.Is(o.err, engine.ErrAssert) || o.stats.Fault != engine.Assertion {
		t.Errorf("ended with %v, lost by %q", o.err, o.stats.Fault)
	}
	o.wantFault(t, engine.Assertion, "assertion `abc` failed in abc (abc:17)")
	if o.text != "abc:17: abc: block: [0,0,0], thread: [1,0,0] Assertion `abc` failed.\n" {
		t.Errorf("printed %q", o.text)
	}
	o = g.run(launch{block: 2, n: 1, out: g.buffer(2)})
	if !errors.Is(o.err, engine.ErrTrap) {
		t.Errorf("ended with %v", o.err)
	}
	o.wantFault(t, engine.TrapHit, "trap")
}

func TestDeviceHeap(t *testing.T) {
	g := newRig(t, calls+entry("k", `
	.param .b64 p;
	.param .b64 q;
	st.param.b64 [p], 16;
	call.uni (q), malloc, (p);
	ld.param.b64 %rd1, [q];
	st.u32 [%rd1], %ln;
	ld.u32 %r1, [%rd1];
	st.global.u32 [%mine], %r1;
	st.param.b64 [p], %rd1;
	call.uni free, (p);
	setp.eq.u32 %p1, %n, 1;
	@%p1 call.uni free, (p);
	setp.eq.u32 %p1, %n, 2;
	@%p1 ld.u32 %r1, [%rd1];`))
	out := g.buffer(32)
	g.mustRun(launch{out: out})
	if w := g.words(out, 32); w[31] != 31 {
		t.Errorf("%v", w)
	}
	g.run(launch{out: out, n: 1, block: 1}).wantFault(t, engine.DeviceHeap, "freed already")
	g.run(launch{out: out, n: 2, block: 1}).wantFault(t, engine.UseAfterFree, "malloc of 16 bytes by thread (0,0,0)")
}

func TestBranchIndexed(t *testing.T) {
	g := newRig(t, kernel(`
	list: .branchtargets one, two, three;
	rem.u32 %r1, %ln, %n;
	brx.idx %r1, list;
one:
	st.global.u32 [%mine], 1;
	bra done;
two:
	st.global.u32 [%mine], 2;
	bra done;
three:
	st.global.u32 [%mine], 3;
done:
	bar.sync 0;`))
	for _, s := range []engine.Schedule{engine.Fair, engine.Lockstep} {
		out := g.buffer(32)
		o := g.mustRun(launch{out: out, n: 3, set: func(l *engine.Launch) { l.Schedule = s }})
		for i, v := range g.words(out, 32) {
			if int(v) != i%3+1 {
				t.Errorf("lane %d: %d", i, v)
			}
		}
		if !strings.HasPrefix(o.rec.lines[4], "arrive w0 ffffffff") {
			t.Errorf("schedule %d: the lanes did not meet: %q", s, o.rec.lines)
		}
	}
	g.run(launch{out: g.buffer(32), n: 4}).wantFault(t, engine.BadCall, "brx.idx by 3")
}

func TestSymbols(t *testing.T) {
	g := newRig(t, prelude+`
.const .align 4 .u32 table[4] = {1,2,3,4};
.visible .global .align 8 .u64 self[2] = {self, generic(table)+8};
.extern .shared .align 16 .b8 dyn[];
.visible .entry k() { .reg .b32 %r<4>; .shared .align 4 .b8 box[64]; mov.u32 %r1, box; mov.u32 %r2, dyn; ret; }
.visible .entry system() { .reg .b32 %r<4>; mov.u32 %r1, %reserved_smem_offset_1; mov.u32 %r2, dyn; ret; }`)
	addr, size, ok := g.prog.Symbol("self")
	table, _, _ := g.prog.Symbol("table")
	if !ok || size != 16 || addr == 0 || table == 0 {
		t.Fatalf("symbol: %#x %d %v", addr, size, ok)
	}
	if w := g.words(addr, 4); uint64(w[0])|uint64(w[1])<<32 != addr || uint64(w[2])|uint64(w[3])<<32 != table+8 {
		t.Errorf("initialised to %#x", w)
	}
	k := g.prog.Kernel("k")
	if name, at, ok := g.prog.SharedVar(k, 10); !ok || name != "box" || at != 0 {
		t.Errorf("shared variable: %s %d %v", name, at, ok)
	}
	if name, at, ok := g.prog.SharedVar(k, 100); !ok || name != "dyn" || at != 64 {
		t.Errorf("shared variable: %s %d %v", name, at, ok)
	}
	k = g.prog.Kernel("system")
	if name, at, ok := g.prog.SharedVar(k, 40); !ok || name != "reserved shared memory" || at != 0 {
		t.Errorf("shared variable: %s %d %v", name, at, ok)
	}
	if name, at, ok := g.prog.SharedVar(k, isa.ReservedShared+4); !ok || name != "dyn" || at != isa.ReservedShared {
		t.Errorf("shared variable: %s %d %v", name, at, ok)
	}
	g.prog.Unload()
	if a, ok := g.mem.Find(addr); !ok || !a.Freed {
		t.Error("the variables of an unloaded program are live")
	}
}

// TestReleaseAsync checks that st.async and red.async to global memory store, reduce and release.
func TestReleaseAsync(t *testing.T) {
	g := newRig(t, kernel(`
	setp.eq.u32 %p1, %tx, 0;
	@%p1 st.async.release.gpu.global.u32 [%out], 7;
	@%p1 red.async.release.gpu.global.add.u32 [%out], 5;
	@%p1 st.async.mmio.release.sys.b64 [%out+8], 9;
	@%p1 red.async.release.sys.max.s32 [%out], 15;
	@%p1 red.async.mmio.release.sys.global.xor.b32 [%out+8], 3;`))
	out := g.buffer(8)
	o := g.mustRun(launch{out: out, block: 32})
	wants(t, g, out, 15, 0, 10, 0)
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		store w0 00000001 global release.gpu w4 out+0 +0
		atomic w0 00000001 global release.gpu rw4 out+0 +0
		store w0 00000001 global release.sys w8 out+8 +0
		atomic w0 00000001 global release.sys rw4 out+0 +0
		atomic w0 00000001 global release.sys rw4 out+8 +0
		exit w0 ffffffff
		kernel-end w0 00000000`)
}
