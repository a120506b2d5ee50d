package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
)

// TestCopyThenAsyncProxy has 128 threads copy 16 bytes each by cp.async and wait. After a barrier, wgmma or a bulk copy
// reads all of them through the async proxy. The fence between them must come after the wait.
func TestCopyThenAsyncProxy(t *testing.T) {
	const copies, fence = "COPY\ncp.async.commit_group;\n", "fence.proxy.async.shared::cta;\n"
	const wait, barrier = "cp.async.wait_group 0;\n", "bar.sync 0;\n"
	const track = "COPY\ncp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;\n@!%p bra WAIT;\n"
	const multiply = `MULTIPLY
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 0;
`
	const store = `setp.ne.u32 %p, %t, 0;
	@%p bra DONE;
	STORE
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
DONE:
`
	for _, test := range []struct {
		name, code string
		missed     bool
	}{
		{"no fence", copies + wait + barrier + multiply, true},
		{"a fence after the wait", copies + wait + fence + barrier + multiply, false},
		{"a fence behind the barrier", copies + wait + barrier + fence + multiply, false},
		{"a fence before the wait", copies + fence + wait + barrier + multiply, true},
		{"a fence of shared memory of the cluster", copies + wait + "fence.proxy.async.shared::cluster;\n" + barrier + multiply, false},
		{"a fence without a space", copies + wait + "fence.proxy.async;\n" + barrier + multiply, false},
		{"a fence of global memory", copies + wait + "fence.proxy.async.global;\n" + barrier + multiply, true},
		{"a phase, no fence", track + multiply, true},
		{"a phase and a fence", track + fence + multiply, false},
		{"no fence before a copy in bulk", copies + wait + barrier + store, true},
		{"a fence before a copy in bulk", copies + wait + fence + barrier + store, false},
	} {
		text := `.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in) {
	.shared .align 128 .b8 tile[2048];
	.shared .align 8 .b64 bar;
	.reg .f32 %d<4>;
	.reg .b32 %t, %s;
	.reg .b64 %in, %from, %desc;
	.reg .pred %p;
	ld.param.u64 %in, [in];
	mov.u32 %t, %tid.x;
	mul.wide.u32 %from, %t, 16;
	add.u64 %from, %in, %from;
	shl.b32 %t, %t, 4;
	mov.u32 %s, tile;
	add.u32 %s, %s, %t;
	mov.u32 %t, %tid.x;
	setp.ne.u32 %p, %t, 0;
	@!%p mbarrier.init.shared::cta.b64 [bar], 128;
	bar.sync 0;
	mov.b64 %desc, 0x1000080000;
	mov.f32 %d0, 0f00000000;
	mov.f32 %d1, %d0;
	mov.f32 %d2, %d0;
	mov.f32 %d3, %d0;
	wgmma.fence.sync.aligned;
	` + test.code + "	ret;\n}\n"
		text = strings.NewReplacer("COPY", "cp.async.cg.shared::cta.global [%s], [%from], 16;", "STORE", "cp.async.bulk.global.shared::cta.bulk_group [%in], [tile], 2048;",
			"MULTIPLY", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %desc, %desc, 1, 1, 1, 0, 0;").Replace(text)
		l, err := ReadLaunchFile("l.toml", []byte(`grid = 1
block = 128
args = [{buffer = "in", type = "u8", shape = 2048, fill = 0}]`))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Check(context.Background(), &Options{FailOn: detect.Error}, &Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: l})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Skipped) > 0 {
			t.Errorf("%s: %v", test.name, r.Skipped)
		}
		var got []string
		for _, f := range r.Findings {
			s := fmt.Sprint(f.Kind, " ", f.Severity)
			for _, a := range f.Accesses {
				s += " " + strings.Fields(a.Frames[0].Inst)[0]
			}
			got = append(got, s)
		}
		want := ""
		if test.missed {
			later := "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
			if strings.HasSuffix(test.code, store) {
				later = "cp.async.bulk.global.shared::cta.bulk_group"
			}
			want = "missing-proxy-fence warning cp.async.cg.shared::cta.global " + later
		}
		if all := strings.Join(got, "; "); all != want {
			t.Errorf("%s: %q, want %q", test.name, all, want)
		}
	}
}
