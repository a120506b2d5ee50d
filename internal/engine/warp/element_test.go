package warp

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// eachEvent is a sink that handles events one by one.
type eachEvent func(b *event.Batch, e *event.Event)

func (f eachEvent) Events(b *event.Batch) {
	for i := range b.Events {
		f(b, &b.Events[i])
	}
}

// setByte stores byte %r1 at %rd1 through the word that contains it.
const setByte = `
	and.b64 %rd2, %rd1, -4;
	cvt.u32.u64 %r2, %rd1; shl.b32 %r2, %r2, 3; and.b32 %r2, %r2, 24;
	mov.u32 %r3, 255; shl.b32 %r3, %r3, %r2; not.b32 %r4, %r3;
	and.b32 %r5, %r1, 255; shl.b32 %r5, %r5, %r2;
	ld.relaxed.gpu.b32 %r6, [%rd2];
LOOP:
	and.b32 %r7, %r6, %r4; or.b32 %r7, %r7, %r5;
	atom.cas.release.gpu.b32 %r8, [%rd2], %r6, %r7;
	setp.ne.u32 %p1, %r8, %r6; mov.u32 %r6, %r8;
	@%p1 bra LOOP;`

// TestElements checks that accesses to bytes through words make events of the bytes, with their values and their
// surroundings.
func TestElements(t *testing.T) {
	g := newRig(t, kernel(`
	setp.ne.u32 %p7, %ln, 0; @%p7 bra END;
	mov.u32 %r1, 0x1ab; add.u64 %rd1, %out, 6;`+setByte+`
	and.b64 %rd3, %rd1, -2; cvt.u32.u64 %r10, %rd1; shl.b32 %r10, %r10, 3; and.b32 %r10, %r10, 8;
	add.u64 %rd4, %rd1, 1; and.b64 %rd5, %rd4, -2; cvt.u32.u64 %r11, %rd4; shl.b32 %r11, %r11, 3; and.b32 %r11, %r11, 8;
	ld.acquire.gpu.b16 %rs1, [%rd5]; cvt.u32.u16 %r12, %rs1; shr.u32 %r12, %r12, %r11; and.b32 %r12, %r12, 255;
	st.global.u32 [%out], %r12;
	.shared .align 4 .b8 box[8]; mov.u64 %rd6, box; cvta.shared.u64 %rd6, %rd6; add.u64 %rd1, %rd6, 5;
	and.b64 %rd7, %rd1, -4; cvt.u32.u64 %r13, %rd1; shl.b32 %r13, %r13, 3; and.b32 %r13, %r13, 24;
	ld.relaxed.cta.b32 %r14, [%rd7]; shr.u32 %r14, %r14, %r13; cvt.s32.s8 %r14, %r14; st.global.u32 [%out], %r14;
END:`))
	out := g.buffer(2)
	b, _ := g.mem.Bytes(out, 8)
	copy(b, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	o := g.mustRun(launch{out: out, set: func(l *engine.Launch) { l.Needs |= event.NeedValues | event.NeedOld }})
	wants(t, g, out, 0, 0x08ab0605)
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		load w0 00000001 global relaxed.gpu r1 out+6 +0
		atomic w0 00000001 global release.gpu rw1 cas out+6 +0 = [ab] over [8070605]
		load w0 00000001 global acquire.gpu r1 out+7 +0
		store w0 00000001 global w4 out+0 +0 = [8] over [4030201]
		load w0 00000001 shared relaxed.cta r1 5+0
		store w0 00000001 global w4 out+0 +0 = [0] over [8]
		exit w0 ffffffff
		kernel-end w0 00000000`)
}

// TestElementsOfLanes swaps different bytes of words in the lanes of a warp. A failed swap is a read.
func TestElementsOfLanes(t *testing.T) {
	g := newRig(t, kernel(`
	setp.gt.u32 %p7, %ln, 3; @%p7 bra END;
	add.u32 %r1, %ln, 16; cvt.u64.u32 %rd1, %ln; add.u64 %rd1, %out, %rd1;`+setByte+"\nEND:"))
	out := g.buffer(1)
	accesses, wrote := 0, 0
	g.mustRun(launch{out: out, set: func(l *engine.Launch) {
		l.Sink = eachEvent(func(b *event.Batch, e *event.Event) {
			if e.Kind != event.Load && e.Kind != event.Atomic {
				return
			}
			accesses++
			if e.Size != 1 {
				t.Errorf("an access of %d bytes", e.Size)
			}
			for l := range 4 {
				if e.Mask>>l&1 != 0 && b.AddrOf(e, l) != out+uint64(l) {
					t.Errorf("lane %d accesses byte %d", l, b.AddrOf(e, l)-out)
				}
				if e.Mask>>l&1 != 0 && e.Flags&event.FlagWrite != 0 {
					wrote++
				}
			}
		})
	}})
	wants(t, g, out, 0x13121110)
	if accesses < 2 || wrote != 4 {
		t.Errorf("%d accesses, %d swaps that succeeded", accesses, wrote)
	}
}

// TestElementsOfCalls accesses bytes in functions that remain calls because they are recursive or called through a
// pointer, and in their callees.
func TestElementsOfCalls(t *testing.T) {
	g := newRig(t, prelude+`
.func set (.param .b64 at)
{
	.reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p1;
	ld.param.u64 %rd1, [at]; mov.u32 %r1, 0xcd;`+setByte+`
	ret;
}
.func down (.param .b64 at, .param .b32 n)
{
	.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
	.param .b64 a; .param .b32 b;
	ld.param.u64 %rd1, [at]; ld.param.u32 %r1, [n];
	st.param.b64 [a], %rd1;
	setp.eq.u32 %p, %r1, 0; @%p bra LAST;
	sub.u32 %r1, %r1, 1; st.param.b32 [b], %r1;
	call down, (a, b);
	ret;
LAST:
	call set, (a);
	ret;
}
.func (.param .b32 r) get (.param .b64 at)
{
	.reg .b32 %r<16>; .reg .b64 %rd<8>;
	ld.param.u64 %rd1, [at]; and.b64 %rd2, %rd1, -2; cvt.u32.u64 %r2, %rd1; shl.b32 %r2, %r2, 3; and.b32 %r2, %r2, 8;
	.reg .b16 %rs; ld.acquire.gpu.b16 %rs, [%rd2]; cvt.u32.u16 %r3, %rs; shr.u32 %r3, %r3, %r2; and.b32 %r3, %r3, 255;
	st.param.b32 [r], %r3;
	ret;
}
.global .align 8 .u64 table[1] = {get};
`+entry("k", `
	.param .b64 a; .param .b32 b; .param .b32 c;
	setp.ne.u32 %p7, %ln, 0; @%p7 bra END;
	add.u64 %rd1, %out, 6; st.param.b64 [a], %rd1; st.param.b32 [b], 3;
	call down, (a, b);
	add.u64 %rd1, %out, 7; st.param.b64 [a], %rd1;
	ld.global.u64 %rd2, [table];
	P: .callprototype (.param .b32 _) _ (.param .b64 _);
	call (c), %rd2, (a), P;
	ld.param.u32 %r1, [c]; st.global.u32 [%out], %r1;
END:`))
	out := g.buffer(2)
	b, _ := g.mem.Bytes(out, 8)
	copy(b, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	var got []string
	g.mustRun(launch{out: out, set: func(l *engine.Launch) {
		l.Sink = eachEvent(func(b *event.Batch, e *event.Event) {
			if e.Order >= event.Relaxed && (e.Kind == event.Load || e.Kind == event.Atomic) {
				got = append(got, fmt.Sprintf("%d bytes at %d", e.Size, b.AddrOf(e, 0)-out))
			}
		})
	}})
	wants(t, g, out, 8, 0x08cd0605)
	if want := "1 bytes at 6, 1 bytes at 6, 1 bytes at 7"; strings.Join(got, ", ") != want {
		t.Errorf("accesses %q, want %s", got, want)
	}
}

// TestElementsAcrossCalls checks that an address that a function aligned before it called itself still belongs to its
// own access.
func TestElementsAcrossCalls(t *testing.T) {
	g := newRig(t, prelude+`
.func (.param .b32 r) sum (.param .b64 at, .param .b32 n)
{
	.reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .b16 %rs; .reg .pred %p;
	.param .b64 a; .param .b32 b; .param .b32 c;
	ld.param.u64 %rd1, [at]; ld.param.u32 %r1, [n];
	and.b64 %rd2, %rd1, -2; cvt.u32.u64 %r2, %rd1; shl.b32 %r2, %r2, 3; and.b32 %r2, %r2, 8; mov.u32 %r4, 0;
	setp.eq.u32 %p, %r1, 0; @%p bra LAST;
	sub.u32 %r1, %r1, 1; add.u64 %rd1, %rd1, 1; st.param.b64 [a], %rd1; st.param.b32 [b], %r1;
	call (c), sum, (a, b);
	ld.param.u32 %r4, [c];
LAST:
	ld.acquire.gpu.b16 %rs, [%rd2]; cvt.u32.u16 %r3, %rs; shr.u32 %r3, %r3, %r2; and.b32 %r3, %r3, 255;
	add.u32 %r3, %r3, %r4; st.param.b32 [r], %r3;
	ret;
}
`+entry("k", `
	.param .b64 a; .param .b32 b; .param .b32 c;
	add.u64 %rd1, %out, 5; st.param.b64 [a], %rd1; mov.u32 %r1, 2; st.param.b32 [b], %r1;
	call (c), sum, (a, b);
	ld.param.u32 %r1, [c]; st.global.u32 [%out], %r1;`))
	for _, e := range []engine.Engine{engine.NewRef(), New()} {
		out := g.buffer(2)
		b, _ := g.mem.Bytes(out, 8)
		copy(b, []byte{1, 2, 3, 4, 5, 6, 7, 8})
		var got []string
		l := g.prepare(launch{block: 1, out: out})
		l.Needs = event.NeedGlobal
		l.Sink = eachEvent(func(b *event.Batch, e *event.Event) {
			if e.Order == event.Acquire {
				got = append(got, fmt.Sprintf("%d bytes at %d", e.Size, b.AddrOf(e, 0)-out))
			}
		})
		if _, err := e.Run(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		wants(t, g, out, 6+7+8)
		if want := "1 bytes at 7, 1 bytes at 6, 1 bytes at 5"; strings.Join(got, ", ") != want {
			t.Errorf("%T: accesses %q, want %s", e, got, want)
		}
	}
}

// TestWholeWords checks that an access whose other bytes are used, or whose element is not aligned, remains an access
// to the word.
func TestWholeWords(t *testing.T) {
	for _, c := range []struct{ name, use, want string }{
		{"all of it is used", "st.global.u32 [%out], %r6;", "r4 out+4 +0"},
		{"two bytes at an odd address", "shr.u32 %r7, %r6, %r2; cvt.u32.u16 %r7, %r7; st.global.u32 [%out], %r7;", "r4 out+4 +0"},
		{"one byte", "shr.u32 %r7, %r6, %r2; cvt.u32.u8 %r7, %r7; st.global.u32 [%out], %r7;", "r1 out+5 +0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(`
	add.u64 %rd1, %out, 5; and.b64 %rd2, %rd1, -4; cvt.u32.u64 %r2, %rd1; shl.b32 %r2, %r2, 3; and.b32 %r2, %r2, 24;
	ld.relaxed.gpu.b32 %r6, [%rd2];`+c.use))
			out := g.buffer(2)
			o := g.mustRun(launch{block: 1, out: out})
			o.wantEvents(t, out, `
				kernel-begin w0 00000000
				load w0 00000001 global relaxed.gpu `+c.want+`
				store w0 00000001 global w4 out+0 +0
				exit w0 00000001
				kernel-end w0 00000000`)
		})
	}
}

// TestQualified checks that the qualifiers of an instruction are in its events.
func TestQualified(t *testing.T) {
	g := newRig(t, kernel(`
	ld.global.nc.u32 %r1, [%out]; ld.global.nc.v2.u32 {%r1, %r2}, [%out]; ld.global.u32 %r1, [%out];
	red.global.add.noftz.f16x2 [%out], %r1; red.global.add.u32 [%out], %r1;
	@%p7 ld.global.nc.u32 %r1, [%out]; st.global.u32 [%out], %r1; st.global.u32 [%out+4], %r2;`))
	type said struct {
		nc  bool
		aux uint32
	}
	var got []said
	g.mustRun(launch{block: 1, out: g.buffer(2), set: func(l *engine.Launch) {
		l.Sink = eachEvent(func(b *event.Batch, e *event.Event) {
			if e.Kind == event.KernelBegin && !b.Launches[e.Side].NonCoherent {
				t.Error("the launch does not tell of the loads")
			}
			if e.Space == event.Global {
				aux := e.Aux
				if e.Flags&event.FlagVector == 0 {
					aux = 0
				}
				got = append(got, said{e.Flags&event.FlagNonCoherent != 0, aux})
			}
		})
	}})
	want := []said{{true, 0}, {true, 4}, {}, {false, 2}, {}, {}, {}}
	if len(got) != len(want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("event %d is %v, want %v", i, got[i], want[i])
		}
	}
}
