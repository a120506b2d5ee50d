package session

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
)

// TestUnawaited accesses the destination of bulk copies with a missing or faulty wait. The report must tell this, and
// the fix in the words of the language, whether or not something else orders the access after the issue.
func TestUnawaited(t *testing.T) {
	const (
		// Thread 0 copies to shared memory; the others go on. Both know the mbarrier at %b.
		in = "@%first mbarrier.init.shared.b64 [%b], 1; bar.sync 0; @%first mbarrier.arrive.expect_tx.shared.b64 _, [%b], 128;" +
			"@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%p], 128, [%b];"
		wait = "again: mbarrier.try_wait.parity.shared.b64 %done, [%b], 0; @!%done bra again;"
		miss = "mbarrier.try_wait.parity.shared.b64 %done, [%b], 1;"
		next = "bar.sync 0; @%first mbarrier.arrive.expect_tx.shared.b64 _, [%b], 128; @%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%p+128], 128, [%b];"
		late = "mov.u32 %r, 0; more: add.u32 %r, %r, 1; setp.lt.u32 %done, %r, 5000; @%done bra more;" // the copy has been issued by then
		read = "ld.shared.u32 %r, [%s]; st.global.u32 [%q], %r;"
		// Thread 0 of block 0 copies to global memory and sets a flag that the other block waits for.
		out  = "@%other bra take; @!%first bra end; cp.async.bulk.global.shared::cta.bulk_group [%p], [%s], 128; cp.async.bulk.commit_group;"
		flag = "st.release.gpu.global.u32 [%p+1024], 1; bra end; take: ld.acquire.gpu.global.u32 %r, [%p+1024]; setp.eq.u32 %done, %r, 1; @!%done bra take; ld.global.u32 %r, [%p]; st.global.u32 [%q], %r; end:"
		// Thread 0 copies to global memory, and all threads of the block read it after a barrier.
		own = "@%first cp.async.bulk.global.shared::cta.bulk_group [%p], [%s], 128; @%first cp.async.bulk.commit_group;"
		bar = "bar.sync 0; ld.global.u32 %r, [%p]; st.global.u32 [%q], %r;"
	)
	const gluon = "// fencepost: made by Triton with Gluon\n"
	for _, c := range []struct {
		name, head, body string
		grid             int
		want, fix        string
	}{
		{"waited for", "", in + wait + read, 1, "", ""},
		{"no wait", "", in + read, 1, "copy-not-awaited", "mbarrier.try_wait"},
		{"no wait, by another warp alone", "", in + "@%low bra end;" + late + read + "end:", 1, "copy-not-awaited", "mbarrier.try_wait"},
		{"another phase, by another warp alone", "", in + "@%low bra end;" + late + miss + read + "end:", 1, "wrong-phase", "mbarrier.arrive.expect_tx"},
		{"another phase", "", in + miss + read, 1, "wrong-phase", "mbarrier.arrive.expect_tx"},
		{"the phase of a second copy", "", in + wait + next + strings.NewReplacer("again", "again1", ", 0;", ", 1;").Replace(wait) + read, 1, "", ""},
		{"the phase before a second copy", "", in + wait + next + "@%low bra end;" + late + strings.Replace(miss, ", 1;", ", 0;", 1) + read + "end:", 1, "wrong-phase", "mbarrier.arrive.expect_tx"},
		{"no wait, in Gluon", gluon, in + read, 1, "copy-not-awaited", "access: mbarrier.wait"},
		{"another phase, in Gluon", gluon, in + miss + read, 1, "wrong-phase", "mbarrier.wait with phase 0"},
		{"a flag after the wait", "", out + "cp.async.bulk.wait_group 0;" + flag, 2, "", ""},
		{"a flag after the wait for the source", "", out + "cp.async.bulk.wait_group.read 0;" + flag, 2, "source-wait", "cp.async.bulk.wait_group 0"},
		{"a flag without a wait", "", out + flag, 2, "copy-not-awaited", "cp.async.bulk.wait_group 0"},
		{"a flag after a wait that leaves the copy pending", "", out + "cp.async.bulk.wait_group 1;" + flag, 2, "group-pending", "cp.async.bulk.wait_group 0"},
		{"a flag that releases nothing", "", out + "cp.async.bulk.wait_group.read 0;" + strings.Replace(flag, "release", "relaxed", 1), 2, "missing-fence", "__threadfence"},
		{"a barrier after the wait", "", own + "@%first cp.async.bulk.wait_group 0;" + bar, 1, "", ""},
		{"a barrier after the wait for the source", "", own + "@%first cp.async.bulk.wait_group.read 0;" + bar, 1, "source-wait", "cp.async.bulk.wait_group 0"},
		{"a barrier after the wait for the source, in Gluon", gluon, own + "@%first cp.async.bulk.wait_group.read 0;" + bar, 1, "source-wait", "tma.store_wait(0, read_only=False), and then gl.barrier()"},
		{"a barrier without a wait, in Gluon", gluon, own + bar, 1, "copy-not-awaited", "tma.store_wait(0), with read_only=False"},
	} {
		text := c.head + fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .b64 %%p, %%q; .reg .b32 %%r, %%s, %%b, %%t, %%c; .reg .pred %%done, %%first, %%other, %%low; .shared .align 128 .b8 tile[128]; .shared .b64 bar;
	ld.param.u64 %%p, [p]; mov.u32 %%s, tile; mov.u32 %%b, bar; mov.u32 %%t, %%tid.x; mov.u32 %%c, %%ctaid.x;
	setp.eq.u32 %%first, %%t, 0; setp.eq.u32 %%other, %%c, 1; setp.lt.u32 %%low, %%t, 32; mad.lo.u32 %%t, %%c, 64, %%t; mad.wide.u32 %%q, %%t, 4, %%p; add.u64 %%q, %%q, 512;
	%s
	ret;
}
`, c.body)
		for name, r := range byEachEngine(t, text, fmt.Sprintf("grid = %d\nblock = 64\nargs = [{ buffer = \"p\", type = \"u32\", shape = [512] }]\n", c.grid)) {
			got, fix := "", ""
			for _, f := range r.Findings {
				if f.Severity == detect.Error {
					got, fix = got+string(f.Kind), f.Fix
				}
			}
			if got != c.want || !strings.Contains(fix, c.fix) || len(r.Skipped) > 0 {
				t.Errorf("%s, by engine %s: %q, want %q; fix %q, want %q; %v", c.name, name, got, c.want, fix, c.fix, r.Skipped)
			}
		}
	}
}

// TestAllocationReadEarly reads the address of allocated tensor memory before a barrier. tcgen05.alloc writes the word
// itself and is not a copy.
func TestAllocationReadEarly(t *testing.T) {
	const text = `.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .b32 %r, %s, %t; .reg .pred %first; .shared .align 16 .b8 at[16];
	mov.u32 %s, at; mov.u32 %t, %tid.x; setp.lt.u32 %first, %t, 32;
	@!%first bra skip;
	tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s], 32;
skip:
	@!%first ld.shared.u32 %r, [%s];
	bar.sync 0;
	@!%first bra end;
	ld.shared.u32 %r, [%s];
	tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r, 32;
end:
	ret;
}
`
	for name, r := range byEachEngine(t, text, "grid = 1\nblock = 64\nargs = [{ buffer = \"p\", type = \"u32\", shape = [64] }]\n") {
		if len(r.Findings) != 1 || r.Findings[0].Kind != detect.MissingBarrier || r.Findings[0].Severity != detect.Error || r.Findings[0].Accesses[0].Size != 4 ||
			!strings.HasPrefix(r.Findings[0].Message, "a write and a read of the same bytes") || len(r.Skipped) > 0 {
			t.Errorf("by engine %s: %+v; %v", name, r.Findings, r.Skipped)
		}
	}
}
