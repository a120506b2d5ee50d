package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/report"
)

// byEachEngine checks a kernel in PTX with each engine, and returns the reports by engine.
func byEachEngine(t *testing.T, text, launch string) map[string]*report.Report {
	t.Helper()
	l, err := ReadLaunchFile("l.toml", []byte(launch))
	if err != nil {
		t.Fatal(err)
	}
	reports := map[string]*report.Report{}
	for name, engine := range Engines() {
		r, err := Check(context.Background(), &Options{FailOn: detect.Error, Jobs: 1, Engine: engine},
			&Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: l})
		if err != nil {
			t.Fatal(err)
		}
		reports[name] = r
	}
	return reports
}

// TestOutlives ends blocks while bulk copies may be in flight. This must be reported, unless an error reports the same
// copy.
func TestOutlives(t *testing.T) {
	const (
		out    = "cp.async.bulk.global.shared::cta.bulk_group [%p], [%s], 128; cp.async.bulk.commit_group;"
		in     = "mbarrier.arrive.expect_tx.shared.b64 _, [%b], 128; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%p], 128, [%b];"
		waited = "again: mbarrier.try_wait.parity.shared.b64 %done, [%b], 0; @!%done bra again;"
	)
	for _, c := range []struct{ name, body, want string }{
		{"to global memory", out, "warning copy-outlives-block"},
		{"to global memory, its source waited for", out + "cp.async.bulk.wait_group.read 0;", ""},
		{"to global memory, waited for", out + "cp.async.bulk.wait_group 0;", ""},
		{"to global memory, the wait leaves it pending", out + "cp.async.bulk.wait_group.read 1;", "warning copy-outlives-block"},
		{"to global memory, its source changed", out + "st.shared.u32 [%s], 1;", "error stage-reuse"},
		{"to shared memory", in, "warning copy-outlives-block"},
		{"to shared memory, waited for", in + waited, ""},
		{"to shared memory, read too early", in + "ld.shared.u32 %r, [%s]; st.global.u32 [%p+128], %r;", "error copy-not-awaited"},
	} {
		text := fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .b64 %%p; .reg .b32 %%r, %%s, %%b; .reg .pred %%done; .shared .align 128 .b8 tile[128]; .shared .b64 bar;
	ld.param.u64 %%p, [p]; mov.u32 %%s, tile; mov.u32 %%b, bar;
	st.shared.u32 [%%s], 7; fence.proxy.async.shared::cta; mbarrier.init.shared.b64 [%%b], 1;
	%s
	ret;
}
`, c.body)
		for name, r := range byEachEngine(t, text, "grid = 1\nblock = 1\nargs = [{ buffer = \"p\", type = \"u32\", shape = [64] }]\n") {
			got := ""
			for _, f := range r.Findings {
				got += fmt.Sprint(f.Severity, " ", f.Kind)
			}
			if got != c.want || len(r.Skipped) > 0 {
				t.Errorf("%s, by engine %s: %q, want %q; %v", c.name, name, got, c.want, r.Skipped)
			}
		}
	}
}

// TestFirstTest checks that a thread must know that an mbarrier is initialised before it tests it, even if in this
// execution it was initialised and the phase is complete.
func TestFirstTest(t *testing.T) {
	const (
		load  = "@%first mbarrier.arrive.expect_tx.shared.b64 _, [%b], 128; @%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%p], 128, [%b];"
		start = "@%first mbarrier.init.shared.b64 [%b], 1;"
		wait  = "again: mbarrier.try_wait.parity.shared.b64 %done, [%b], 0; @!%done bra again;"
	)
	for _, c := range []struct{ name, body, want string }{
		{"a barrier after the initialisation", start + "bar.sync 0;" + load + wait, ""},
		{"no barrier", start + load + wait, "atomic-mixed-with-plain"},
		{"a barrier after the copy", start + load + "bar.sync 0;" + wait, ""},
		{"tested again", start + "bar.sync 0;" + load + wait + "mbarrier.try_wait.parity.shared.b64 %done, [%b], 0;", ""},
	} {
		text := fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .b64 %%p; .reg .b32 %%r, %%s, %%b; .reg .pred %%done, %%first; .shared .align 128 .b8 tile[128]; .shared .b64 bar;
	ld.param.u64 %%p, [p]; mov.u32 %%s, tile; mov.u32 %%b, bar; mov.u32 %%r, %%tid.x; setp.eq.u32 %%first, %%r, 0;
	%s
	ret;
}
`, c.body)
		for name, r := range byEachEngine(t, text, "grid = 1\nblock = 64\nargs = [{ buffer = \"p\", type = \"u32\", shape = [32] }]\n") {
			got := ""
			for _, f := range r.Findings {
				got += string(f.Kind)
			}
			if got != c.want || len(r.Skipped) > 0 {
				t.Errorf("%s, by engine %s: %q, want %q; %v", c.name, name, got, c.want, r.Skipped)
			}
		}
	}
}

// TestSenderEnds has a block of a cluster send to the other by st.async or in bulk, and end before the other reads. The
// data arrives, and a thread that has waited for the phase may read it. A source in shared memory of an ended block
// must be reported.
func TestSenderEnds(t *testing.T) {
	const (
		store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%to], %t, [%bar];"
		bulk  = "@!%first bra end; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%to], [%s], 128, [%bar];"
		wait  = "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%b], 0; @!%done bra again;"
	)
	for _, c := range []struct{ name, send, wait, want string }{
		{"st.async", store, wait, ""},
		{"in bulk", bulk, wait, "warning copy-outlives-block"},
		{"st.async, without a wait", store, "", "error unordered"},
	} {
		text := fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) .explicitcluster .reqnctapercluster 2 {
	.reg .b64 %%p; .reg .b32 %%t, %%s, %%b, %%c, %%to, %%bar, %%r; .reg .pred %%done, %%first, %%low; .shared .align 128 .b8 tile[128]; .shared .b64 full;
	ld.param.u64 %%p, [p]; mov.u32 %%t, %%tid.x; mov.u32 %%c, %%cluster_ctarank; mov.u32 %%s, tile; mov.u32 %%b, full;
	setp.eq.u32 %%first, %%t, 0; setp.eq.u32 %%low, %%c, 0;
	@%%first mbarrier.init.shared.b64 [%%b], 1;
	@%%first fence.mbarrier_init.release.cluster;
	@%%first mbarrier.arrive.expect_tx.shared.b64 _, [%%b], 128;
	mad.lo.u32 %%r, %%t, 4, %%s;
	@%%low st.shared.u32 [%%r], %%t;
	fence.proxy.async.shared::cta;
	barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
	@!%%low bra take;
	mapa.shared::cluster.u32 %%to, %%s, 1; mapa.shared::cluster.u32 %%bar, %%b, 1;
	%s
	%s
	bra end;
take: mov.u32 %%c, 0;
more: add.u32 %%c, %%c, 1; setp.lt.u32 %%done, %%c, 5000; @%%done bra more;
	%s
	ld.shared.u32 %%c, [%%r]; mad.wide.u32 %%p, %%t, 4, %%p; st.global.u32 [%%p], %%c;
end: ret;
}
`, map[bool]string{true: "mad.lo.u32 %to, %t, 4, %to;"}[c.send == store], c.send, c.wait)
		for name, r := range byEachEngine(t, text, "grid = 2\nblock = 32\nargs = [{ buffer = \"p\", type = \"u32\", shape = [32] }]\n") {
			got := ""
			for _, f := range r.Findings {
				got += fmt.Sprint(f.Severity, " ", f.Kind)
			}
			if got != c.want || len(r.Skipped) > 0 {
				t.Errorf("%s, by engine %s: %q, want %q; %v", c.name, name, got, c.want, r.Skipped)
			}
		}
	}
}

// TestInitFence checks that fence.mbarrier_init and a relaxed arrival at the cluster barrier release the initialised
// mbarrier to the other block, but not other stores.
func TestInitFence(t *testing.T) {
	for _, c := range []struct{ name, store, arrive, read, want string }{
		{"the mbarrier", "", ".relaxed", "", ""},
		{"data", "st.shared.u32 [%s], %t;", ".relaxed", "ld.shared::cluster.u32 %r, [%to];", "error unordered"},
		{"data, an arrival that releases", "st.shared.u32 [%s], %t;", ".release", "ld.shared::cluster.u32 %r, [%to];", ""},
		{"data that the peer does not read", "st.shared.u32 [%s], %t;", ".relaxed", "ld.shared.u32 %r, [%s];", ""},
	} {
		text := fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) .explicitcluster .reqnctapercluster 2 {
	.reg .b32 %%t, %%s, %%b, %%c, %%to, %%bar, %%r; .reg .pred %%done, %%first; .shared .align 128 .b8 tile[128]; .shared .b64 full;
	mov.u32 %%t, %%tid.x; mov.u32 %%c, %%cluster_ctarank; mad.lo.u32 %%s, %%t, 4, tile; mov.u32 %%b, full;
	setp.eq.u32 %%first, %%t, 0; xor.b32 %%c, %%c, 1;
	mapa.shared::cluster.u32 %%to, %%s, %%c; mapa.shared::cluster.u32 %%bar, %%b, %%c;
	@%%first mbarrier.init.shared.b64 [%%b], 1;
	%s
	fence.mbarrier_init.release.cluster;
	barrier.cluster.arrive%s.aligned; barrier.cluster.wait.aligned;
	%s
	@%%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%%bar];
again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %%done, [%%b], 0; @!%%done bra again;
	barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
	ret;
}
`, c.store, c.arrive, c.read)
		for name, r := range byEachEngine(t, text, "grid = 2\nblock = 32\nargs = [{ buffer = \"p\", type = \"u32\", shape = [32] }]\n") {
			got := ""
			for _, f := range r.Findings {
				got += fmt.Sprint(f.Severity, " ", f.Kind)
			}
			if got != c.want || len(r.Skipped) > 0 {
				t.Errorf("%s, by engine %s: %q, want %q; %v", c.name, name, got, c.want, r.Skipped)
			}
		}
	}
}

// TestInitFenceOfOthers checks that fence.mbarrier_init releases data in no detector that knows release and acquire.
func TestInitFenceOfOthers(t *testing.T) {
	l, err := ReadLaunchFile("l.toml", []byte("grid = 2\nblock = 1\nargs = [{ buffer = \"p\", type = \"u32\", shape = [128] }]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hb", "gwcp", "barracuda+", "curd"} {
		spec, err := detect.Choose(all.Detectors(), name)
		if err != nil {
			t.Fatal(err)
		}
		for fence, want := range map[string]int{"fence.acq_rel.gpu": 0, "fence.mbarrier_init.release.cluster": 1} {
			text := fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .pred %%p; .reg .b32 %%c, %%x; .reg .b64 %%p1;
	ld.param.u64 %%p1, [p]; mov.u32 %%c, %%ctaid.x; setp.ne.u32 %%p, %%c, 0; @%%p bra take;
	st.global.u32 [%%p1], 7;
	%s;
	st.relaxed.gpu.global.u32 [%%p1+128], 1;
	ret;
take: ld.relaxed.gpu.global.u32 %%x, [%%p1+128]; setp.eq.u32 %%p, %%x, 0; @%%p bra take;
	fence.acq_rel.gpu;
	ld.global.u32 %%x, [%%p1];
	ret;
}
`, fence)
			r, err := Check(context.Background(), &Options{FailOn: detect.Error, Jobs: 1, Detectors: []detect.Spec{spec}},
				&Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: l})
			if err != nil || len(r.Findings) != want || len(r.Skipped) > 0 {
				t.Errorf("%s, %s: %v, want %d; %v, %v", name, fence, r.Findings, want, r.Skipped, err)
			}
		}
	}
}

// TestStageOvertaken has a copy overwrite a buffer that the other warp has read and freed without a release. The race
// with the previous copy must not be reported too, unless nobody reads that copy's data.
func TestStageOvertaken(t *testing.T) {
	const wait = "%s_again: mbarrier.try_wait.parity.shared::cta.b64 %%done, [%s], 0; @!%%done bra %[1]s_again;\n"
	for _, c := range []struct{ name, read, sem, want string }{
		{"released", "ld.shared.u32 %r, [%s];", "release", ""},
		{"relaxed", "ld.shared.u32 %r, [%s];", "relaxed", "error stage-reuse"},
		{"relaxed, and not read", "", "relaxed", "error copy-not-awaited"},
	} {
		text := fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .b64 %%p; .reg .b32 %%t, %%s, %%f, %%e, %%r; .reg .pred %%done, %%first, %%one; .shared .align 128 .b8 tile[128]; .shared .b64 full, empty;
	ld.param.u64 %%p, [p]; mov.u32 %%t, %%tid.x; mad.lo.u32 %%s, %%t, 4, tile; mov.u32 %%f, full; mov.u32 %%e, empty;
	setp.eq.u32 %%first, %%t, 0; setp.eq.u32 %%one, %%t, 32;
	@%%first mbarrier.init.shared.b64 [%%f], 1;
	@%%first mbarrier.init.shared.b64 [%%e], 32;
	bar.sync 0;
	setp.ge.u32 %%done, %%t, 32; @%%done bra copy;
	%s
	%s
	mbarrier.arrive.%s.cta.shared.b64 _, [%%e];
	bra end;
copy: @!%%one bra end;
	mov.u32 %%s, tile;
	mbarrier.arrive.expect_tx.shared.b64 _, [%%f], 128;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%s], [%%p], 128, [%%f];
	%s
	fence.proxy.async.shared::cta;
	mbarrier.arrive.expect_tx.shared.b64 _, [%%f], 128;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%s], [%%p], 128, [%%f];
last: mbarrier.try_wait.parity.shared::cta.b64 %%done, [%%f], 1; @!%%done bra last;
end: ret;
}
`, fmt.Sprintf(wait, "full", "%f"), c.read, c.sem, fmt.Sprintf(wait, "empty", "%e"))
		for name, r := range byEachEngine(t, text, "grid = 1\nblock = 64\nargs = [{ buffer = \"p\", type = \"u32\", shape = [32] }]\n") {
			got := ""
			for _, f := range r.Findings {
				got += fmt.Sprint(f.Severity, " ", f.Kind)
			}
			if got != c.want || len(r.Skipped) > 0 {
				t.Errorf("%s, by engine %s: %q, want %q; %v", c.name, name, got, c.want, r.Skipped)
			}
		}
	}
}

// TestSourceOverwritten has another block overwrite the global memory that a copy reads, after it has observed the
// issue of the copy, or its completion.
func TestSourceOverwritten(t *testing.T) {
	const release = "@%first red.release.gpu.global.add.u32 [%p+256], 1;\n"
	const fence = "fence.sc.gpu; @%first red.relaxed.gpu.global.add.u32 [%p+256], 1;\n"
	const wait = "more: mbarrier.try_wait.parity.shared::cta.b64 %done, [%b], 0; @!%done bra more;\n"
	const oneWaits = "@!%second bra behind; " + wait + "behind: "
	const awaits = "more: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %done, [%b], 0; @!%done bra more; fence.acq_rel.cta;\n"
	const race = "error copy-not-awaited"
	for _, c := range []struct{ name, then, want string }{
		{"after the issue", release + wait, race},
		{"after the issue, by a fence", fence + wait, race},
		{"when it is complete", wait + release, ""},
		{"when it is complete, by a fence", wait + fence, ""},
		{"when another warp has waited", oneWaits + "bar.sync 0; " + release, ""},
		{"when another warp has waited, by a fence", oneWaits + "bar.sync 0; " + fence, ""},
		{"before another warp has waited", "bar.sync 0; " + release + oneWaits, race},
		{"when another warp has waited, and not met", oneWaits + release, race},
		{"when it is complete, which a fence acquires", awaits + release, ""},
	} {
		for copies, issue := range map[string]string{
			"bulk, 132": "@%first mbarrier.init.shared.b64 [%b], 1; bar.sync 0; @%first mbarrier.arrive.expect_tx.shared.b64 _, [%b], 256;\n" +
				"@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%p], 256, [%b];\n",
			"cp.async, 0": "@%first mbarrier.init.shared.b64 [%b], 64; bar.sync 0; cp.async.ca.shared.global [%s], [%from], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%b];\n",
		} {
			text := `.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .b64 %p, %from; .reg .b32 %t, %s, %b, %c; .reg .pred %done, %first, %second, %other; .shared .align 128 .b8 tile[256]; .shared .b64 full;
	ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %s, %t, 4, tile; mov.u32 %b, full; mad.wide.u32 %from, %t, 4, %p;
	setp.eq.u32 %first, %t, 0; setp.ge.u32 %second, %t, 32; setp.eq.u32 %other, %c, 1;
	@%other bra overwrite;
` + issue + c.then + `
	bra end;
overwrite: @!%first bra end;
again: ld.acquire.gpu.global.u32 %c, [%p+256]; setp.eq.u32 %done, %c, 0; @%done bra again;
	fence.sc.gpu;
	st.global.u32 [%p+` + copies[strings.Index(copies, ", ")+2:] + `], 5;
end: ret;
}
`
			for name, r := range byEachEngine(t, text, "grid = 2\nblock = 64\nargs = [{ buffer = \"p\", type = \"u32\", shape = [65], fill = 0 }]\n") {
				got := ""
				for _, f := range r.Findings {
					got += fmt.Sprint(f.Severity, " ", f.Kind)
				}
				if got != c.want || len(r.Skipped) > 0 {
					t.Errorf("%s, %s, by engine %s: %q, want %q; %v", copies, c.name, name, got, c.want, r.Skipped)
				}
			}
		}
	}
}
