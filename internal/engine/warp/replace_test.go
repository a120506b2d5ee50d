package warp

import (
	"reflect"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/descriptor"
)

// TestTensorMapReplace sets a map field by field, and copies it to global memory.
func TestTensorMapReplace(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 128 .b8 made[128];
	mov.u32 %r1, made;
	setp.eq.u32 %p1, %tx, 0;
	shl.b32 %r2, %tx, 2;
	add.u32 %r2, %r2, %r1;
	st.shared.u32 [%r2], 0;
	bar.warp.sync -1;
	@!%p1 bra made_it;
	mov.u64 %rd1, 0x123456780;
	tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd1;
	tensormap.replace.tile.rank.shared::cta.b1024.b32 [made], 1;
	cvt.u64.u32 %rd2, %r1; cvta.shared.u64 %rd2, %rd2;
	tensormap.replace.tile.rank.b1024.b32 [%rd2], 2;
	mov.u32 %r3, 100;
	tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 0, %r3;
	tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 2, 7;
	tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1+0], 1, 32;
	tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 2, 3;
	tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 1, 4096;
	tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 7;
	tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r1], 0;
	tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 3;
	tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%r1], 0;
	tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r1], 1;
made_it:
	bar.warp.sync -1;
	tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%out+128], [%r1], 128;
	@%p1 tensormap.replace.tile.rank.global.b1024.b32 [%out+128], 1;
	fence.proxy.tensormap::generic.acquire.gpu [%out+128], 128;
`))
	out := g.buffer(1024)
	o := g.run(launch{out: out, block: 32})
	if o.err != nil || len(o.faults) > 0 {
		t.Fatalf("%v, %+v", o.err, o.faults)
	}
	data, _ := g.mem.Bytes(out+128, descriptor.TensorMapSize)
	want := descriptor.TensorMap{Rank: 2, Type: 7, Swizzle: 3, Fill: 1, Address: 0x123456780}
	want.Dims[0], want.Dims[2], want.Box[1], want.Steps[2], want.Strides[1] = 100, 7, 32, 3, 4096
	if got, _ := descriptor.DecodeTensorMap(data); got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("the map is %+v, want %+v", got, want)
	}
	fences := 0
	for _, line := range o.rec.lines {
		if strings.Contains(line, "map-fence") {
			fences++
		}
	}
	if fences != 32 {
		t.Errorf("%d fences of maps, want one a lane: %q", fences, o.rec.lines)
	}
}

// TestTensorMapFaults checks missing maps and missing dimensions.
func TestTensorMapFaults(t *testing.T) {
	for _, c := range []struct {
		body string
		kind engine.FaultKind
		text string
	}{
		{"tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1+64], 1;", engine.OutOfBounds, "writes 128 bytes"},
		{"tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1+8], 1;", engine.OutOfBounds, "writes 128 bytes"},
		{"tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 5, 1;", engine.TensorMisuse, "dimension 5: there are five, of global_stride four"},
		{"tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 4, 1;", engine.TensorMisuse, "dimension 4"},
		{"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%out+8], [%r1], 128;", engine.Misaligned, "which is not a multiple of"},
	} {
		g := newRig(t, kernel(".shared .align 128 .b8 made[128];\nmov.u32 %r1, made;\n"+c.body))
		g.run(launch{out: g.buffer(64)}).wantFault(t, c.kind, c.text)
	}
}
