package warp

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// benchKernels are loops of n iterations over one kind of work.
var benchKernels = map[string]string{
	"arithmetic": `
	mov.u32 %r1, %gid;
	mov.u32 %r2, 0;
loop:
	mad.lo.u32 %r1, %r1, 1664525, 1013904223;
	shr.u32 %r3, %r1, 7;
	xor.b32 %r1, %r1, %r3;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %n;
	@%p1 bra loop;
	st.global.u32 [%mine], %r1;`,
	"saxpy": `
	mov.u32 %r2, 0;
loop:
	ld.global.f32 %f1, [%mine];
	fma.rn.f32 %f1, %f1, 0f3F7F0000, 0f3F800000;
	st.global.f32 [%mine], %f1;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %n;
	@%p1 bra loop;`,
	"shared": `
	.shared .align 4 .b8 box[1024];
	mov.u32 %r4, box;
	shl.b32 %r1, %tx, 2;
	add.u32 %r1, %r1, %r4;
	st.shared.u32 [%r1], %gid;
	mov.u32 %r2, 0;
loop:
	bar.sync 0;
	xor.b32 %r5, %tx, 1;
	shl.b32 %r5, %r5, 2;
	add.u32 %r5, %r5, %r4;
	ld.shared.u32 %r6, [%r5];
	bar.sync 0;
	st.shared.u32 [%r1], %r6;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %n;
	@%p1 bra loop;
	ld.shared.u32 %r6, [%r1];
	st.global.u32 [%mine], %r6;`,
	"divergent": `
	mov.u32 %r1, %gid;
	mov.u32 %r2, 0;
loop:
	mad.lo.u32 %r1, %r1, 1664525, 1013904223;
	and.b32 %r3, %r1, 0x10000;
	setp.eq.u32 %p2, %r3, 0;
	@%p2 bra even;
	xor.b32 %r1, %r1, 0x5555;
	bra next;
even:
	add.u32 %r1, %r1, 77;
next:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %n;
	@%p1 bra loop;
	st.global.u32 [%mine], %r1;`,
	"shuffles": `
	mov.u32 %r1, %gid;
	mov.u32 %r2, 0;
loop:
	shfl.sync.down.b32 %r3, %r1, 16, 31, -1;
	add.u32 %r1, %r1, %r3;
	shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;
	add.u32 %r1, %r1, %r3;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %n;
	@%p1 bra loop;
	st.global.u32 [%mine], %r1;`,
	"atomics": `
	mov.u32 %r2, 0;
loop:
	and.b32 %r3, %gid, 63;
	mul.wide.u32 %rd1, %r3, 4;
	add.u64 %rd1, %out, %rd1;
	atom.global.add.u32 %r4, [%rd1], %r2;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %n;
	@%p1 bra loop;`,
	"recursive": `
	mov.u32 %r3, 0;
	and.b32 %r1, %gid, 3;
	add.u32 %r1, %r1, 7;
loop:
	.param .b32 a0;
	.param .b32 r0;
	st.param.b32 [a0], %r1;
	call.uni (r0), fib, (a0);
	ld.param.b32 %r2, [r0];
	add.u32 %r3, %r3, 100;
	setp.lt.u32 %p1, %r3, %n;
	@%p1 bra loop;
	st.global.u32 [%mine], %r2;`,
	"pointers": `
	mov.u32 %r2, 0;
	mov.u32 %r1, %gid;
	and.b32 %r3, %gid, 1;
	mul.wide.u32 %rd1, %r3, 8;
	mov.u64 %rd2, table;
	add.u64 %rd1, %rd1, %rd2;
	ld.global.u64 %rd3, [%rd1];
loop:
	.param .b32 a0;
	.param .b32 r0;
	st.param.b32 [a0], %r1;
	sig : .callprototype (.param .b32 _) _ (.param .b32 _);
	call (r0), %rd3, (a0), sig;
	ld.param.b32 %r1, [r0];
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %n;
	@%p1 bra loop;
	st.global.u32 [%mine], %r1;`,
}

// benchFunctions are the functions that benchKernels call.
const benchFunctions = `
.func (.param .b32 r) fib (.param .b32 n)
{
	.reg .b32 %r<8>;
	.reg .pred %p;
	ld.param.u32 %r1, [n];
	setp.gt.u32 %p, %r1, 1;
	@%p bra more;
	st.param.b32 [r], %r1;
	ret;
more:
	.param .b32 a0;
	.param .b32 r0;
	sub.u32 %r2, %r1, 1;
	st.param.b32 [a0], %r2;
	call.uni (r0), fib, (a0);
	ld.param.b32 %r3, [r0];
	sub.u32 %r2, %r1, 2;
	st.param.b32 [a0], %r2;
	call.uni (r0), fib, (a0);
	ld.param.b32 %r4, [r0];
	add.u32 %r3, %r3, %r4;
	st.param.b32 [r], %r3;
	ret;
}
.func (.param .b32 r) step (.param .b32 n)
{
	.reg .b32 %r<4>;
	ld.param.u32 %r1, [n];
	mad.lo.u32 %r1, %r1, 1664525, 1013904223;
	st.param.b32 [r], %r1;
	ret;
}
.func (.param .b32 r) mix (.param .b32 n)
{
	.reg .b32 %r<4>;
	ld.param.u32 %r1, [n];
	shr.u32 %r2, %r1, 7;
	xor.b32 %r1, %r1, %r2;
	st.param.b32 [r], %r1;
	ret;
}
.global .align 8 .u64 table[2] = {step, mix};
`

// benchSource returns a module with one of benchKernels.
func benchSource(body string) string { return prelude + benchFunctions + entry("k", body) }

// discard counts events.
type discard struct{ events int }

func (d *discard) Events(b *event.Batch) { d.events += len(b.Events) }

// benchEngine measures an engine without events, and with all events made and dropped. The digest is that of the
// result.
func BenchmarkRef(b *testing.B)  { benchEngine(b, engine.NewRef()) }
func BenchmarkWarp(b *testing.B) { benchEngine(b, New()) }

func benchEngine(b *testing.B, e engine.Engine) {
	for _, name := range []string{"arithmetic", "saxpy", "shared", "divergent", "shuffles", "atomics", "recursive", "pointers"} {
		for _, events := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/events=%v", name, events), func(b *testing.B) {
				g := newRig(b, benchSource(benchKernels[name]))
				const blocks, threads = 8, 256
				lanes, digest := uint64(0), uint32(0)
				for b.Loop() {
					out := g.buffer(blocks * threads)
					l := g.prepare(launch{grid: blocks, block: threads, out: out, n: 200})
					if events {
						l.Sink = &discard{}
						l.Needs = event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch
					}
					stats, err := e.Run(context.Background(), l)
					if err != nil {
						b.Fatal(err)
					}
					lanes += stats.Lanes
					h := fnv.New32a()
					for _, w := range g.words(out, blocks*threads) {
						if err := binary.Write(h, binary.LittleEndian, w); err != nil {
							b.Fatal(err)
						}
					}
					digest = h.Sum32()
				}
				b.ReportMetric(float64(lanes)/b.Elapsed().Seconds()/1e6, "Mlane-instr/s")
				b.ReportMetric(float64(digest), "digest")
			})
		}
	}
}
