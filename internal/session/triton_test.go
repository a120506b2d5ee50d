package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestSampled checks that only a bounded number of elements of an instruction is recorded. From there on, its stores
// count as stores that other blocks may make too.
func TestSampled(t *testing.T) {
	r := replicas{places: map[uint32]*sharing{}}
	l := event.Launch{Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}}
	next := &event.Batch{}
	sink := r.over(sinkFunc(func(b *event.Batch) { next = b }), &l)
	a := &detect.Access{Place: 7}
	for i := range uint64(sampled) {
		// Both warps store the same 32 elements.
		b := &event.Batch{Events: []event.Event{{Kind: event.Store, Space: event.Global, Place: 7, Warp: uint32(i % 2), Mask: 1<<32 - 1,
			Addr: i / 2 * 128, Stride: 4, Size: 4, Flags: event.FlagWrite}}}
		if sink.Events(b); next != b {
			t.Fatal("a batch is not handed on")
		}
		if i == 1 && (!r.replicated(a) || r.crossed(a)) {
			t.Errorf("after two events: replicated %v, crossed %v", r.replicated(a), r.crossed(a))
		}
	}
	if n := sampled / len(span{}); len(r.held) != n || len(r.stored) != n || !r.crossed(a) {
		t.Errorf("%d pages of elements and %d of stored ones are kept, want %d; crossed %v", len(r.held), len(r.stored), n, r.crossed(a))
	}
	if !r.replicated(a) {
		t.Error("when no more notes are taken, the elements are not replicated any more")
	}
	if !r.crossed(&detect.Access{Place: 8}) {
		t.Error("of an unknown instruction it is known that blocks do not share elements")
	}
}

type sinkFunc func(b *event.Batch)

func (f sinkFunc) Events(b *event.Batch) { f(b) }

// TestTritonRaces judges a kernel as CUDA, Triton and Gluon code: the accesses of its two blocks of 64 threads to
// memory p and shared memory s. %a is &p[64 * block + thread % 64], and %h the same with thread % 32, so that two
// threads have each element.
func TestTritonRaces(t *testing.T) {
	const none = detect.Severity(255)
	for _, c := range []struct {
		name, body             string
		threads, triton, gluon detect.Severity
	}{
		{"stores of one shared word", "st.shared.u32 [s], %t;", detect.Error, detect.Info, detect.Error},
		{"two places in shared memory", "st.shared.u32 [%w], %t; ld.shared.u32 %r, [%v];", detect.Error, detect.Info, detect.Error},
		{"stores of one element by replicas", "st.global.u32 [%h], %t;", detect.Error, detect.Info, detect.Info},
		{"the same value by replicas", "st.global.u32 [%h], 1;", detect.Warning, detect.Info, detect.Info},
		{"stores of two elements at one address", "setp.eq.u32 %low, %t, 63; selp.u32 %i, 0, %t, %low; mad.lo.u32 %i, %c, 64, %i; mad.wide.u32 %h, %i, 4, %p; st.global.u32 [%h], %t;", detect.Error, detect.Warning, detect.Warning},
		{"stores of two elements at one address by one warp", "min.u32 %i, %t, 62; mad.lo.u32 %i, %c, 64, %i; mad.wide.u32 %h, %i, 4, %p; st.global.u32 [%h], %t;", detect.Error, detect.Warning, detect.Warning},
		{"the same value by all blocks", "st.global.u32 [%p], 1;", detect.Warning, detect.Warning, detect.Warning},
		{"different values by all blocks", "st.global.u32 [%p], %t;", detect.Error, detect.Error, detect.Error},
		{"a replica loads what its twin stores", "ld.global.u32 %r, [%h]; @%low st.global.u32 [%h], %r;", detect.Error, detect.Info, detect.Info},
		{"another thread's element loaded before", "ld.global.u32 %r, [%b]; st.global.u32 [%a], %r;", detect.Error, detect.Warning, detect.Warning},
		{"another thread's element loaded after", "st.global.u32 [%a], %t; ld.global.u32 %r, [%b];", detect.Error, detect.Warning, detect.Warning},
		{"with a barrier between", "st.global.u32 [%a], %t; bar.sync 0; ld.global.u32 %r, [%b];", none, none, none},
		{"another block's element", "ld.global.u32 %r, [%o]; st.global.u32 [%a], %r;", detect.Error, detect.Error, detect.Error},
		{"an atomic and a load of one block", "ld.global.u32 %r, [%h]; @%low atom.global.add.u32 %r, [%h], 1;", detect.Error, detect.Error, detect.Error},
	} {
		for head, want := range map[string]detect.Severity{"": c.threads, "// fencepost: made by Triton\n": c.triton, "// fencepost: made by Triton with Gluon\n": c.gluon} {
			text := head + fmt.Sprintf(`.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .b64 %%a, %%b, %%h, %%o, %%p, %%d; .reg .b32 %%r, %%t, %%c, %%i, %%v, %%w; .reg .pred %%low; .shared .b32 s[64];
	ld.param.u64 %%p, [p]; mov.u32 %%t, %%tid.x; mov.u32 %%c, %%ctaid.x; setp.lt.u32 %%low, %%t, 32;
	mad.lo.u32 %%i, %%c, 64, %%t; mad.wide.u32 %%a, %%i, 4, %%p;
	xor.b32 %%i, %%i, 32; mad.wide.u32 %%b, %%i, 4, %%p;
	and.b32 %%i, %%t, 31; mad.lo.u32 %%i, %%c, 64, %%i; mad.wide.u32 %%h, %%i, 4, %%p;
	mad.lo.u32 %%i, %%c, 64, %%t; xor.b32 %%i, %%i, 64; mad.wide.u32 %%o, %%i, 4, %%p;
	mov.u32 %%v, s; xor.b32 %%i, %%t, 32; mad.lo.u32 %%w, %%t, 4, %%v; mad.lo.u32 %%v, %%i, 4, %%v;
	%s
	ret;
}
`, c.body)
			l, err := ReadLaunchFile("l.toml", []byte("grid = 2\nblock = 64\nargs = [{ buffer = \"p\", type = \"u32\", shape = [128] }]\n"))
			if err != nil {
				t.Fatal(err)
			}
			for _, engine := range Engines() {
				in := &Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: l}
				r, err := Check(context.Background(), &Options{FailOn: detect.Error, Jobs: 1, Engine: engine}, in)
				if err != nil {
					t.Fatal(err)
				}
				got := none
				if len(r.Findings) > 0 {
					got = r.Findings[0].Severity
				}
				if strings.HasPrefix(c.name, "stores of two elements") && c.triton == got && r.Findings[0].Kind != detect.Unordered {
					t.Errorf("%s after %q: %s", c.name, head, r.Findings[0].Kind)
				}
				if len(r.Findings) > 1 || got != want || len(r.Skipped) > 0 {
					t.Errorf("%s after %q: %d findings, the first %v, want %v; %v", c.name, head, len(r.Findings), got, want, r.Skipped)
				}
			}
		}
	}
}

// TestTritonCopies has two groups of warps of a Triton kernel copy one tile to global memory, by two copies of the code
// of one place.
func TestTritonCopies(t *testing.T) {
	for _, c := range []struct {
		head string
		line int // of the second copy
		want detect.Severity
	}{
		{"", 3, detect.Error}, {"// fencepost: made by Triton\n", 3, detect.Info}, {"// fencepost: made by Triton\n", 4, detect.Warning}, {"// fencepost: made by Triton with Gluon\n", 3, detect.Error},
	} {
		text := c.head + fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.file 1 "k.py"
.visible .entry k(.param .u64 p) {
	.reg .b64 %%p; .reg .b32 %%t, %%s; .reg .pred %%a, %%b; .shared .align 16 .b32 s[4];
	ld.param.u64 %%p, [p]; mov.u32 %%t, %%tid.x; mov.u32 %%s, s; setp.eq.u32 %%a, %%t, 0; setp.eq.u32 %%b, %%t, 32;
	@%%a st.shared.u32 [%%s], 1; fence.proxy.async.shared::cta; bar.sync 0;
	.loc 1 3 5
	@%%a cp.async.bulk.global.shared::cta.bulk_group [%%p], [%%s], 16;
	.loc 1 %d 5
	@%%b cp.async.bulk.global.shared::cta.bulk_group [%%p], [%%s], 16;
	cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
	ret;
}
`, c.line)
		for name, r := range byEachEngine(t, text, "grid = 1\nblock = 64\nargs = [{ buffer = \"p\", type = \"u32\", shape = [4] }]\n") {
			if len(r.Findings) != 1 || r.Findings[0].Severity != c.want || len(r.Skipped) > 0 {
				t.Errorf("%q, line %d, %s: %v, want %v; %v", c.head, c.line, name, r.Findings, c.want, r.Skipped)
			}
		}
	}
}
