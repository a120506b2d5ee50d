package warp

import "testing"

// TestGenericShared checks that instructions without a state space take generic addresses of shared memory, and those of
// the tensor cores also 32-bit addresses.
func TestGenericShared(t *testing.T) {
	const begin = `
	.shared .align 128 .b8 data[128];
	.shared .align 8 .b64 bar;
	mov.u32 %r1, data; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1;
	mov.u32 %r2, bar; cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd2, %rd2;
	setp.eq.u32 %p1, %tx, 0;
	mov.u32 %r3, 5;
	@%p1 st.shared.u32 [data], %r3;
	@%p1 st.shared.u32 [data+16], %r3;
	@%p1 mbarrier.init.b64 [%rd2], 1;
	bar.sync 0;
`
	const end = `
wait:
	mbarrier.try_wait.parity.b64 %p2, [%rd2], 0;
	@!%p2 bra wait;
	bar.sync 0;
	ld.shared.u32 %r4, [data];
	st.global.u32 [%mine], %r4;
`
	for _, c := range []struct {
		body string
		want uint32
	}{
		{"@%p1 mbarrier.arrive.expect_tx.b64 _, [%rd2], 4; @%p1 st.async.weak.mbarrier::complete_tx::bytes.u32 [%rd1], %r3, [%rd2]; add.u32 %r3, %r3, 1;", 5},
		{"@%p1 mbarrier.arrive.expect_tx.b64 _, [%rd2], 4; @%p1 red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [%rd1], %r3, [%rd2];", 10},
		{"@%p1 mbarrier.arrive.expect_tx.b64 _, [%rd2], 16; @%p1 clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%rd1], [%rd2];", 0},
		{"tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd1], 32; tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 32;" +
			"@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd2];", 0},
		{"tcgen05.alloc.cta_group::1.sync.aligned.b32 [%r1], 32; tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 32;" +
			"@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r2];", 0},
		{"@%p1 st.bulk [%rd1], 8, 0; @%p1 mbarrier.arrive.b64 _, [%rd2];", 0},
	} {
		g := newRig(t, kernel(begin+c.body+end))
		out := g.buffer(32)
		o := g.run(launch{out: out})
		if o.err != nil || len(o.faults) > 0 {
			t.Errorf("%s: %v, %+v", c.body, o.err, o.faults)
			continue
		}
		if got := g.words(out, 1)[0]; got != c.want {
			t.Errorf("%s: %d, want %d", c.body, got, c.want)
		}
	}
}
