package warp

import (
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
)

// copyBody begins kernels in which lane l has a word of the source, 100 + l, at [%rd1], and words 7 in shared memory at
// [%r1] and [%r1+128].
const copyBody = `
	.shared .align 16 .b8 tile[256];
	mov.u32 %r1, tile;
	mad.lo.u32 %r1, %tx, 4, %r1;
	mov.u32 %r2, 7;
	st.shared.u32 [%r1], %r2;
	st.shared.u32 [%r1+128], %r2;
	add.u64 %rd1, %mine, 128;
	add.u32 %r3, %tx, 100;
	st.global.u32 [%rd1], %r3;
	mov.pred %p1, 1;
`

// TestCopies checks that with seed 0 copies are performed when they are waited for, by the waiting lanes, and as far as
// the wait covers them.
func TestCopies(t *testing.T) {
	const copy = "cp.async.ca.shared.global [%%r1+%d], [%%rd1], 4%s;\n"
	one, two := fmt.Sprintf(copy, 0, ""), fmt.Sprintf(copy, 128, "")
	const commit, all = "cp.async.commit_group;\n", "cp.async.wait_all;\n"
	wait := func(n int) string { return fmt.Sprintf("cp.async.wait_group %d;\n", n) }
	odd := "and.b32 %r4, %tx, 1; setp.ne.u32 %p2, %r4, 0; shl.b32 %r4, %r4, 2;\n"
	old := func(int) uint32 { return 7 }
	new := func(l int) uint32 { return uint32(100 + l) }
	for _, c := range []struct {
		name, body    string
		first, second func(l int) uint32
	}{
		{"no wait", one + commit, old, old},
		{"wait", one + commit + wait(0), new, old},
		{"wait for all", one + two + all, new, new},
		{"wait before commit", one + wait(0) + commit, old, old},
		{"two groups, one left", one + commit + two + commit + wait(1), new, old},
		{"two groups, both left", one + commit + two + commit + wait(2), old, old},
		{"an empty group counts", one + commit + commit + wait(1), new, old},
		{"not committed", one + commit + two + wait(0), new, old},
		{"the source changes", one + commit + "add.u32 %r3, %r3, 1; st.global.u32 [%rd1], %r3;" + wait(0), func(l int) uint32 { return uint32(101 + l) }, old},
		{"size", odd + fmt.Sprintf(copy, 0, ", %r4") + all, func(l int) uint32 { return uint32(l % 2 * (100 + l)) }, old},
		{"some bytes", "mov.u32 %r5, 0x01020304; st.global.u32 [%rd1], %r5;" + fmt.Sprintf(copy, 0, ", 3") + all, func(int) uint32 { return 0x020304 }, old},
		{"ignored", odd + fmt.Sprintf(copy, 0, ", %p2") + all, func(l int) uint32 { return uint32((1 - l%2) * (100 + l)) }, old},
		{"not ignored", odd + fmt.Sprintf(copy, 0, ", !%p2") + all, func(l int) uint32 { return uint32(l % 2 * (100 + l)) }, old},
		{"guarded", odd + "@%p2 " + one + "@!%p2 " + two + commit + "@%p2 " + wait(0), func(l int) uint32 { return uint32(7 + l%2*(93+l)) }, old},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(copyBody+c.body+`
	ld.shared.u32 %r5, [%r1];
	st.global.u32 [%mine], %r5;
	ld.shared.u32 %r5, [%r1+128];
	st.global.u32 [%mine+256], %r5;`))
			out := g.buffer(96)
			g.mustRun(launch{out: out})
			got := g.words(out, 96)
			for l := range 32 {
				if got[l] != c.first(l) || got[64+l] != c.second(l) {
					t.Fatalf("lane %d reads %d and %d, want %d and %d", l, got[l], got[64+l], c.first(l), c.second(l))
				}
			}
		})
	}
}

// TestCopiesBySeed checks that with another seed a copy, or only its reads, may be performed immediately or later, the
// same in each run.
func TestCopiesBySeed(t *testing.T) {
	g := newRig(t, kernel(copyBody+`
	cp.async.ca.shared.global [%r1], [%rd1], 4;
	ld.shared.u32 %r5, [%r1];
	st.global.u32 [%mine+256], %r5;
	st.global.u32 [%rd1], %r2;
	cp.async.wait_all;
	ld.shared.u32 %r5, [%r1];
	st.global.u32 [%mine], %r5;`))
	seen := map[[2]uint32]int{}
	for seed := range uint64(32) {
		out := g.buffer(96)
		g.mustRun(launch{out: out, set: func(l *engine.Launch) { l.Seed = seed }})
		got := g.words(out, 96)
		seen[[2]uint32{got[64], got[0]}]++
		if seed == 0 && seen[[2]uint32{7, 7}] != 1 {
			t.Errorf("seed 0: %d, then %d", got[64], got[0])
		}
	}
	if len(seen) != 3 || seen[[2]uint32{100, 100}] == 0 || seen[[2]uint32{7, 100}] == 0 || seen[[2]uint32{7, 7}] == 0 {
		t.Errorf("what is in shared memory at once and after the wait: %v", seen)
	}
}

// TestCopyEvents checks that a copy makes the events of a load and a store when it is issued.
func TestCopyEvents(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 16 .b8 tile[512];
	mov.u32 %r1, tile;
	mad.lo.u32 %r1, %tx, 16, %r1;
	mul.wide.u32 %rd1, %tx, 16;
	add.u64 %rd1, %out, %rd1;
	and.b32 %r2, %tx, 1;
	mad.lo.u32 %r2, %r2, 8, 4;
	cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16, %r2;
	cp.async.commit_group;
	cp.async.wait_group 3;`))
	out := g.buffer(128)
	o := g.mustRun(launch{block: 4, out: out})
	o.wantEvents(t, out, `
		kernel-begin w0 00000000
		load w0 0000000a global r8 out+16 +16
		load w0 0000000f global r4 scattered out+0 out+24 out+32 out+56
		store w0 0000000f shared w16 0+16
		copy-commit w0 0000000f
		copy-wait w0 0000000f
		exit w0 0000000f
		kernel-end w0 00000000
	`)
}

// TestCopyFaults checks that a lane with invalid addresses copies nothing.
func TestCopyFaults(t *testing.T) {
	for _, c := range []struct {
		body, text string
		kind       engine.FaultKind
	}{
		{"cp.async.ca.shared.global [%r1+256], [%rd1], 4;", "", engine.OutOfBounds},
		{"cp.async.ca.shared.global [%r1+2], [%rd1], 4;", "", engine.Misaligned},
		{"cp.async.ca.shared.global [%r1], [%rd1+1000], 4;", "", engine.OutOfBounds},
		{"cp.async.ca.shared.global [%r1], [%rd1+2], 4;", "", engine.Misaligned},
		{"cp.async.ca.shared.global [%r1], [%rd1], 4, 5;", "is told to read 5", engine.OutOfBounds},
	} {
		g := newRig(t, kernel(copyBody+"setp.eq.u32 %p1, %tx, 3; @%p1 "+c.body))
		o := g.run(launch{out: g.buffer(96)})
		o.wantFault(t, c.kind, c.text)
	}
}
