package isa

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

const header = ".version 8.5\n.target sm_80\n.address_size 64\n"

// parse parses a module with the given text after the usual header.
func parse(t testing.TB, name, text string) *ptx.Module {
	t.Helper()
	m, err := ptx.Parse(name, header+text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// decode decodes a module that has no errors at module level.
func decode(t testing.TB, text string) *Module {
	t.Helper()
	m, err := Decode(parse(t, "test.ptx", text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// kernel decodes the body of a kernel k that has no errors.
func kernel(t testing.TB, text string) *Func {
	t.Helper()
	f := decode(t, ".visible .entry k(.param .u64 p0, .param .u32 p1)\n{\n"+text+"\n}").ByName["k"]
	if f.Err != nil {
		t.Fatal(f.Err)
	}
	return f
}

// TestMissing checks that an instruction with a row is not missing.
func TestMissing(t *testing.T) {
	for _, op := range theTable().ops {
		if missing[op] {
			t.Errorf("%s has a row and is listed as missing", op)
		}
	}
}

// TestBulkPrefetch checks that prefetch is a modifier of its own, and not the size of a prefetch (".L2::128B").
func TestBulkPrefetch(t *testing.T) {
	kernel(t, `.reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .b16 %h;
cp.async.bulk.prefetch.L2.global [%rd1], 16;
cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd1], %r1, %rd2;
cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];
cp.async.bulk.prefetch.tensor.3d.L2.global.im2col.L2::cache_hint [%rd1, {%r1, %r2, %r1}], {%h}, %rd2;
ld.global.L2::128B.b32 %r1, [%rd1];
ret;`)
}

// TestPredicateRegister checks the special register that is a predicate.
func TestPredicateRegister(t *testing.T) {
	kernel(t, ".reg .pred %p; mov.pred %p, %is_explicit_cluster; ret;")
}

// TestClusters checks the cluster directives of a kernel.
func TestClusters(t *testing.T) {
	f := decode(t, ".visible .entry k() .explicitcluster .reqnctapercluster 4, 2 .maxclusterrank 8 { ret; }").ByName["k"]
	if f.Err != nil || !f.ExplicitCluster || f.Cluster != (event.Dim3{X: 4, Y: 2, Z: 1}) || f.MaxCluster != 8 {
		t.Errorf("%v, %v, %v, %d", f.Err, f.ExplicitCluster, f.Cluster, f.MaxCluster)
	}
}

// TestRefusals checks that each line of a kernel gets the error in its comment.
func TestRefusals(t *testing.T) {
	const registers = ".reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>; .shared .b32 sh[4]; .reg .u32 x; .reg .u64 y; .reg .v2 .u32 v;"
	for _, line := range []string{
		"add.s3 %r1, %r2, %r3; // add does not take .s3",
		"{ .reg .b128 %q; ld.global.u32 %q, [%rd1]; } // operand %q has 128 bits, .u32 needs 32",
		"{ .reg .b128 %q; cvt.u64.u32 %q, %r1; } // operand %q has 128 bits, .u64 needs 64",
		"cvt.f32.rn.f16.f32 %f1, %f2; // does not take",
		"st.global.b128 [%rd1], %clock64; // takes a register or a constant here, not %clock64",
		"bar.sync sh; // takes a register or a constant here, not the address of sh",
		"selp.b32 %r1, %r2, %r3, WARP_SZ; // operand WARP_SZ must be a predicate",
		"mov.f32 %f1, WARP_SZ; // 32 is an integer",
		"bar.sync %laneid; // takes a register or a constant here, not %laneid",
		"selp.b32 %r1, %r2, %r3, %tid.x; // operand %tid.x must be a predicate",
		"addd.s32 %r1, %r2, %r3; // unknown instruction addd.s32; the nearest known one is add",
		"tcgen05.shift.cta_group::1.down [%r1]; // is not supported",
		"tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r1}, [%r1]; // is no shape of tensor memory: it would have 256 registers",
		"tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1}, [%r1]; // operand r is 2 registers in braces",
		"tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r1], %r1; // the columns between the halves must be an immediate",
		"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd1, %r1; // takes 5 to 7 operands, not 4",
		"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd1, %r1, {%r1, %r1}, %p1; // operand disable is 4 registers in braces",
		"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd1, %r1, %p1, 16; // the scale of D must be an immediate from 0 to 15",
		"tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r1], %rd1, %rd1, %r1, [%r1], [%r1], %p1; // is not supported",
		"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1]; // takes 2, not 1 operands",
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r1; // takes 3, not 2 operands",
		"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r1}, %rd1, %rd1; // is not supported",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd1, 1, 1, 1, 0; // takes 8 operands here, not 7",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd1, 1, 2, 1, 0, 0; // must be 1 or -1 for a scale",
		"cp.async.bulk.tensor.1d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1}], [%r2], {%rs1}; // takes 1 offsets in braces here, of a tensor of 3 to 5 dimensions",
		"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1}], [%r2]; // takes [map, {coordinates}] here, with 2 coordinates",
		"cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1}]; // takes 3, not 2 operands",
		"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, {%f1, %f2}]; // textures and surfaces are named by a 64-bit object in a register here",
		"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%r1, {%f1, %f2}]; // operand %r1 has 32 bits, .u64 needs 64",
		"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1}]; // takes 2 coordinates, not 1",
		"tex.2d.v4.f32.f32 {%f1, %f2, %f3}, [%rd1, {%f1, %f2}]; // operand d is 4 registers in braces",
		"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}], {%r1, %r2}; // takes 2, not 3 operands: offsets",
		"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, %rd2, {%f1, %f2}]; // does not take",
		"tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %rd2}]; // operand %rd2 has 64 bits, .s32 needs 32",
		"tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}]; // takes 3, not 2 operands",
		"tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2, %r3, %r3}]; // tex.2dms.v4.f32.s32 is not supported",
		"suld.b.2d.b64.trap {%r1}, [%rd1, {%r1, %r2}]; // operand %r1 has 32 bits, .b64 needs 64",
		"suq.memory_layout.b32 %r1, [%rd1]; // suq.memory_layout.b32 is not supported",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, [%r2]; // takes 5, not 4 operands",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16; // takes 4, not 3 operands",
		"cp.async.bulk.global.shared::cta.bulk_group [%r1], [%r1], 16; // %r1 cannot hold an address",
		"cp.async.cg.shared.global [%rd1], [%rd2], 8; // the size must be 16, or with .ca 4 or 8, not 8",
		"cp.async.ca.shared.global [%rd1], [%rd2], %r1; // the size must be 16, or with .ca 4 or 8, not %r1",
		"cp.async.ca.shared.global [%rd1], [%rd2]; // takes 3 to 5, not 2 operands",
		"cp.async.ca.shared.global [%rd1], [%rd2], 4, %r1, %rd1; // takes a cache policy only with .L2::cache_hint",
		"cp.async.ca.shared.global.L2::cache_hint [%rd1], [%rd2], 4; // the cache policy is missing",
		"cp.async.ca.shared.global [%rd1], [%r2], 4; // %r2 cannot hold an address",
		"mbarrier.arrive.shared::cluster.b64 %rd1, [%r1]; // gives no result: write _",
		"mbarrier.test_wait.shared::cluster.b64 %p1, [%r1], %rd1; // mbarrier.test_wait.shared::cluster.b64 is not supported",
		"mbarrier.init.shared::cluster.b64 [%r1], 1; // mbarrier.init.shared::cluster.b64 is not supported",
		"wmma.load.a.sync.aligned.row.m16n16k16.e4m3 {%r1}, [%rd1]; // wmma.load.a.sync.aligned.row.m16n16k16.e4m3 is not supported",
		"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1}, {%r2}, {%f1,%f2,%f3,%f4}; // operand a is 2 registers in braces",
		"add.rz.s32 %r1, %r2, %r3; // add.s32 does not take .rz",
		"add.s32 %r1, %r2; // takes 3, not 2 operands",
		"add.s32 %r1, %r2, %rd3; // operand %rd3 has 64 bits, .s32 needs 32",
		"add.s32 %r1, %r2, %p1; // operand %p1 must be a value of type .s32",
		"add.s32 %r1, %r2, %r99; // unknown name %r99",
		"add.s32 %r99, %r2, %r3; // %r99 is not a declared register",
		"add.s32 %r1, %r2, 1.5; // 1.5 is a floating-point number",
		"add.f32 %f1, %f2, 7; // 7 is an integer",
		"mov.u32 %r1, %tid.q; // unknown name %tid.q; the nearest known one is %tid.",
		"mov.u32 %r1, nothing; // unknown name nothing",
		"mov.u16 %rs1, sh; // the address of sh does not fit .u16",
		"setp.lt.s32 %r1, %r2, %r3; // operand %r1 must be a predicate",
		"setp.lt.b32 %p1, %r2, %r3; // does not take",
		"ld.global.u32 %r1, [sh]; // sh is a shared variable, accessed as global",
		"ld.u32 %r1, %rd1; // takes an address [a] here",
		"ld.global.u64 %r1, [%rd1]; // operand %r1 has 32 bits, .u64 needs 64",
		"ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1]; // takes a vector of 2 registers",
		"ld.global.v8.b64 {%rd1, %rd1, %rd1, %rd1, %rd1, %rd1, %rd1, %rd1}, [%rd1]; // ld.global.v8.b64 is a vector of 64 bytes: at most 32 can be accessed at once",
		"st.v8.f64 [%rd1], {%fd1, %fd1, %fd1, %fd1, %fd1, %fd1, %fd1, %fd1}; // is a vector of 64 bytes",
		"{ .reg .b128 %q; ld.v4.b128 {%q, %q, %q, %q}, [%rd1]; } // is a vector of 64 bytes",
		"ld.shared.v4.b64 {%rd1, %rd1, %rd1, %rd1}, [%r1]; // is a vector of 32 bytes: at most 16 can be accessed at once",
		"st.local.v8.b32 [%rd1], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}; // is a vector of 32 bytes",
		"ldu.global.v4.f64 {%fd1, %fd1, %fd1, %fd1}, [%rd1]; // is a vector of 32 bytes",
		"red.global.add.noftz.v8.bf16x2 [%rd1], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}; // is a vector of 32 bytes",
		"ld.global.u32 %r1, [%r2]; // cannot hold an address",
		"ld.relaxed.u32 %r1, [%rd2]; // ld.relaxed.u32 needs one of .cta .cluster .gpu .sys",
		"bra nowhere; // unknown label nowhere",
		"call nobody; // unknown function nobody",
		"call k; // k is a kernel",
		"@%r1 bra L; // guard %r1 is not a declared predicate register",
		"mov.b64 %rd1, {%r1, %rs2}; // operand %rs2 has 16 bits",
		"mov.b64 %rd1, {%r1, %r2, %r3}; // takes a vector of 2 or 4 elements",
		"atom.global.add.f16 %rs1, [%rd1], %rs2; // needs one of .noftz",
		"barrier.cluster.arrive.acquire; // barrier.cluster.arrive does not take .acquire",
		"vadd.u32.u32.u32 %r1, %r2.b5, %r3; // .b5 is no selector of an operand",
		"vadd.u32.u32.u32 %r1, %r2, %r3, %r4; // needs a second operation, or a selector of its result",
		"vadd4.u32.u32.u32 %r1.b12, %r2, %r3, %r4; // .b12 is no selector",
		"vadd2.u32.u32.u32 %r1, %r2.h4, %r3, %r4; // .h4 is no selector",
		"vmad.s32.s32.s32 %r1, -%r2, %r3, -%r4; // only the product or %r4 can be negated",
		"ld.shared.u32 %r1, sh[%rd1]; // %rd1 is no index",
		"ld.shared.u32 %r1, nowhere[1]; // nowhere is no array",
		"ld.global.u32 %r1, sh[1]; // sh is a shared variable, accessed as global",
		"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1, %r2, %r3}, [%r4]; // ldmatrix.sync.aligned.m8n8.shared.b16 does not take .x3",
		"ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r1}, [%r4]; // ldmatrix.sync.aligned.m8n8.x1.shared does not take .b8",
		"ldmatrix.sync.m8n8.x1.shared.b16 {%r1}, [%r4]; // needs one of .aligned",
		"ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r1}, [%rd1]; // does not take .global",
		"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [%r4]; // takes a vector of 4 registers",
		"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%rd1, %r2}, [%r4]; // operand %rd1 has 64 bits, .b32 needs 32",
		"ld.u32 %r1, [%r4]; // cannot hold an address",
		"add.s32 %r1, %r2, %f3; // operand %f3 is a register of type .f32, not of .s32 or .b32",
		"add.f32 %f1, %f2, x; // operand x is a register of type .u32, not of .f32 or .b32",
		"add.f16x2 %r1, %r2, x; // operand x is a register of type .u32, not of .f16x2 or .b32",
		"ld.global.u8 %f1, [%rd1]; // operand %f1 is a register of type .f32, not of .u8 or .b32",
		"st.global.f64 [%rd1], y; // operand y is a register of type .u64, not of .f64 or .b64",
		"mov.f32 %f1, v.x; // operand v.x is a register of type .u32, not of .f32 or .b32",
		"ld.global.u32 %r1, [%fd1]; // %fd1 cannot hold an address",
		"add.u64 %rd1, %rd2, 1.0; // 1.0 is a floating-point number; .u64 takes an integer",
		"mov.u32 %r1, 0f3F800000; // 0f3F800000 is a floating-point number; .u32 takes an integer",
		"add.f16 %rs1, %rs2, 0x3C00; // .f16 takes a register, not a constant",
		"st.const.u32 [%rd1], %r1; // does not take .const",
		"st.param.u32 [p], %r1; // p is a parameter of the function: it cannot be written",
		".reg .f32 x; // x is declared twice in one scope",
		".local .b32 x; // x is declared twice in one scope",
		".reg .f32 p; // p is declared twice in one scope",
		".reg .u32 %r3; // %r3 is declared twice in one scope",
		".reg .u32 z7, z<8>; // z is declared twice in one scope",
		".reg .f32 %r<2>; // %r is declared twice in one scope",
		"call (%r1), %rd1, (%r2), sh; // sh is neither a prototype nor a list of .calltargets nor an array of functions",
		".reg .b37 x; // variables of type .b37",
	} {
		code, want, _ := strings.Cut(line, " // ")
		src := header + ".visible .entry k(.param .b32 p) {\n" + registers + "\n" + code + "\nL: ret;\n}"
		m, err := ptx.Parse("test.ptx", src)
		if err != nil {
			if strings.Contains(code, ".b37") {
				continue // refused by the parser already
			}
			t.Fatalf("%s: %v", code, err)
		}
		d, err := Decode(m)
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		got := fmt.Sprint(d.Check(d.ByName["k"]))
		if !strings.Contains(got, want) || !strings.HasPrefix(got, "test.ptx:6:") {
			t.Errorf("%s\n got  %s\n want %s", code, got, want)
		}
	}
}

// TestTypes checks which registers are accepted although their type is not the instruction's.
func TestTypes(t *testing.T) {
	kernel(t, `.reg .b16 n16; .reg .b32 %r<5>; .reg .f32 %f<5>; .reg .u32 x; .reg .s32 y; .reg .f16x2 h; .reg .b64 %rd; .reg .u32 z<7>, z7;
{ .reg .f32 x; mov.f32 x, %f1; }
add.f32 %f1, %r1, %r2;
add.s32 x, y, %r1;
and.b32 %f1, h, x;
mov.b32 %f1, x;
ld.global.v2.u32 {%r1, %f1}, [%rd];
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %r1, %f3, %f4}, {%r1, x}, {h}, {%f1, %f2, %f3, %f4};
cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 %r1, n16, n16;
prefetch.L2::evict_last [%rd];
red.global.add.noftz.f32 [%rd], %f1;
ret;`)
}

// TestWithoutSize checks objects without a size, and an invalid alignment.
func TestWithoutSize(t *testing.T) {
	for src, want := range map[string]string{
		".shared .b8 s[]; .visible .entry k() { ret; }":                                              "test.ptx:4:13: variable s needs a size, an initial value or .extern",
		".extern .shared .b8 s[]; .global .b8 g[] = {1}; .visible .entry k() { ret; }":               "",
		".global .align 3 .b8 g; .visible .entry k() { ret; }":                                       "test.ptx:4:16: the alignment 3 is no power of two",
		".func f(.param .b32 n, .param .b8 rest[]) { ret; } .visible .entry k() { call f, (1, 2); }": "test.ptx:4:35: parameters without a size are not supported: rest",
		".visible .entry k(.param .b32 n, .param .b64 n) { ret; }":                                   "test.ptx:4:46: n is declared twice in one scope",
	} {
		m, err := ptx.Parse("test.ptx", header+src)
		var d *Module
		if err == nil {
			d, err = Decode(m)
		}
		if err == nil {
			err = d.Check(d.ByName["k"])
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

// TestLargeParameters checks that parameters larger than any device takes are one error.
func TestLargeParameters(t *testing.T) {
	for _, head := range []string{".entry k(.param .b8 a[1000000000], .param .b64 b)", ".func (.param .b8 r[600000]) f(.reg .b32 a)"} {
		_, err := Decode(parse(t, "test.ptx", head+" { ret; }"))
		if err == nil || strings.Count(err.Error(), "test.ptx:") != 1 || !strings.Contains(err.Error(), "are too large") {
			t.Errorf("%s: %v", head, err)
		}
	}
}

// TestExtents checks that a directive with invalid numbers is an error. If it were ignored, the launch would not be
// checked.
func TestExtents(t *testing.T) {
	for _, d := range []string{".reqntid 99999999999", ".reqntid 1,2,3,4", ".maxntid", ".maxntid 5000000000", ".reqnctapercluster 4294967297", ".maxclusterrank 99999999999"} {
		_, err := Decode(parse(t, "test.ptx", ".entry k() "+d+" { ret; }"))
		if err == nil || !strings.Contains(err.Error(), strings.Fields(d)[0]+" takes one to three numbers of at most 31 bits") {
			t.Errorf("%s: %v", d, err)
		}
	}
	if k := decode(t, ".entry k() .maxntid 4,4 .reqnctapercluster 2 { ret; }").ByName["k"]; k.MaxThreads != 16 || k.Cluster.X != 2 || k.Cluster.Y != 1 {
		t.Errorf("%+v", k)
	}
}

// TestErrorsStayWithTheirFunction checks that an unsupported kernel does not affect others, and that the functions that
// a kernel calls count.
func TestErrorsStayWithTheirFunction(t *testing.T) {
	m := decode(t, `
.func bad() { exotic.u32 1; ret; }
.extern .func missing();
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.visible .entry good() { ret; }
.visible .entry callsbad() { call bad; ret; }
.visible .entry callsmissing() { call missing; ret; }
.extern .func __cudaCDP2LaunchDeviceV2();
.visible .entry launches() { call __cudaCDP2LaunchDeviceV2; ret; }
.extern .func __cudaCDP2Memcpy3DAsync();
.visible .entry copies() { call __cudaCDP2Memcpy3DAsync; ret; }
.visible .entry prints() { .reg .b32 %r; .reg .b64 %rd;
  { .param .b64 p0; .param .b64 p1; .param .b32 rv; call (rv), vprintf, (p0, p1); ld.param.b32 %r, [rv]; } ret; }
`)
	for k, want := range map[string]string{"good": "", "prints": "", "callsbad": "unknown instruction exotic.u32", "callsmissing": "function missing is declared", "launches": "",
		"copies": "cudaMemcpy3DAsync in device code is not supported"} {
		err := m.Check(m.ByName[k])
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", k, err, want)
		}
	}
	if m.ByName["vprintf"].Builtin != "vprintf" {
		t.Error("vprintf is not a builtin")
	}
}

func TestOperands(t *testing.T) {
	f := kernel(t, `
.reg .pred %p<3>; .reg .b16 %rs<5>; .reg .b32 %r<5>, x; .reg .b64 %rd<5>; .reg .f32 %f<3>; .reg .v2 .b32 v; .reg .b128 %q;
.local .align 8 .b8 depot[24]; .local .b32 two; .shared .align 16 .b8 sh[32];
mov.u64 %rd1, depot+8;
mov.u32 %r1, two;
mov.u32 %r2, sh;
ld.param.u32 %r3, [p1+0];
{ .reg .b32 x; mov.u32 x, %tid.y; }
mov.u32 x, WARP_SZ;
setp.eq.and.s32 %p1|_, %r1, -1, !%p2;
mov.b64 {%r1, _}, %rd1;
mov.b64 %rd2, {%rs1, %rs2, %rs3, %rs4};
ld.global.v2.s16 {%r1, %r2}, [%rd1+-4];
ld.global.v2.b32 v, [%rd1];
mov.b32 v.y, %r1;
st.shared.v2.f32 [sh+8], {%f1, 0f3F800000};
cvt.s32.s8 %rd3, %r1;
add.cc.u32 %r1, %r2, %r3;
addc.u32 %r1, %r2, 0;
mov.b128 %q, {%rd1, %rd2};
bar.red.popc.u32 %r1, 0, !%p1;
st.volatile.u8 [%rd1], %r1;
atom.add.release.gpu.s32 %r1, [%rd1], 1;
membar.gl;
ld.global.b32 { %r4 }, [ %rd1 + 0 ];
st.global.b64 [%rd1], {%rd2};
ldmatrix.sync.aligned.x2.m8n8.shared.trans.b16 {%r1, _}, [%r2+-16];
ldmatrix.sync.aligned.m8n8.x2.b16 v, [sh+16];
ret;`)
	in := func(i int) *Inst { return &f.Insts[i] }
	check := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	check("depot+8", in(0).Src[0], Operand{Kind: LocalAddr, Imm: 8})
	check("two", in(1).Src[0], Operand{Kind: LocalAddr, Imm: 24})
	check("frame", f.LocalFrame, 32)
	check("sh", in(2).Src[0].Kind, SharedAddr)
	check("parameter", in(3).Src[0], Operand{Kind: ParamAddr, Imm: 8})
	check("special", in(4).Src[0].Special, TidY)
	check("special class", in(4).Class, Special)
	check("shadowing", in(4).Dst[0].Reg == in(5).Dst[0].Reg, false)
	check("WARP_SZ", in(5).Src[0].Imm, 32)
	check("setp", []any{in(6).Dst[1].Kind, in(6).Src[1].Imm, in(6).Src[2].Not, in(6).Op, in(6).Cmp}, []any{Sink, uint64(0xffffffff), true, OpAnd, CmpEQ})
	check("unpack", []any{len(in(7).Dst), in(7).Dst[1].Kind}, []any{2, Sink})
	check("pack", len(in(8).Src), 4)
	check("vector load", []any{in(9).Vec, in(9).Type, in(9).Off, len(in(9).Dst), in(9).Dst[0].Size, in(9).Space}, []any{2, S16, -4, 2, 4, event.Global})
	check("register vector", []any{len(in(10).Dst), in(10).Dst[1].Reg - in(10).Dst[0].Reg}, []any{2, 1})
	check("element", in(11).Dst[0].Reg, in(10).Dst[1].Reg)
	check("vector store", []any{in(12).Off, len(in(12).Src), in(12).Src[2].Imm}, []any{8, 3, math.Float32bits(1)})
	a := Args{S: [8]uint64{0x80}}
	in(13).Eval(in(13), &a)
	check("sign extension to a wider register", a.D[0], uint64(0xffffffffffffff80))
	check("condition code", []any{in(14).Dst[1].Reg == in(15).Src[2].Reg, len(in(15).Dst)}, []any{true, 1})
	check("b128", []any{len(in(16).Dst), len(in(16).Src)}, []any{2, 2})
	check("bar.red", []any{in(17).Op, in(17).Aligned, in(17).Src[1].Kind, in(17).Src[2].Not, len(in(17).Src)}, []any{OpPopc, true, Sink, true, 3})
	check("volatile", []any{in(18).Order, in(18).Space}, []any{event.Volatile, event.Generic})
	check("atom", []any{in(19).Order, in(19).Scope, in(19).Op, in(19).Type}, []any{event.Release, event.ScopeGPU, OpAdd, S32})
	check("load in braces", []any{in(21).Vec, len(in(21).Dst), in(21).Dst[0].Size}, []any{1, 1, 4})
	check("store in braces", []any{in(22).Vec, len(in(22).Src), in(22).Src[1].Size}, []any{1, 2, 8})
	check("ldmatrix", []any{in(23).Class, in(23).Mods, in(23).Space, in(23).Off, in(23).Vec, in(23).Dst[1].Kind, in(23).Src[1].Imm, len(in(23).Src)},
		[]any{Matrix, "[sync aligned m8n8 x2 trans shared b16]", event.Shared, -16, 2, Sink, uint64(0xffffffff), 2})
	check("ldmatrix of a variable", []any{in(24).Dst[1].Reg - in(24).Dst[0].Reg, in(24).Src[0].Kind, in(24).Src[0].Var.Name, in(24).Space}, []any{1, SharedAddr, "sh", event.Shared})
	check("rows", []any{in(23).Rows(), (&Inst{Vec: 1}).Rows(), (&Inst{Vec: 4}).Rows()}, []any{0xffff, 0xff, uint32(0xffffffff)})
	check("membar", []any{in(20).Order, in(20).Scope}, []any{event.SC, event.ScopeGPU})
}

// TestMovVectors packs and unpacks vectors of every shape.
func TestMovVectors(t *testing.T) {
	f := kernel(t, `.reg .b8 %b<3>; .reg .b16 %h<5>; .reg .b32 %r<5>; .reg .b64 %d<5>; .reg .b128 %q<3>;
mov.b32 %r1, {%h1, %h2};
mov.b64 %d1, {%r1, %r2};
mov.b64 %d1, {%h1, %h2, %h3, %h4};
mov.b128 %q1, {%d1, %d2};
mov.b32 {%h1, %h2}, %r1;
mov.b64 {%r1, %r2}, %d1;
mov.b64 {%h1, %h2, %h3, %h4}, %d1;
mov.b128 {%d1, %d2}, %q1;
mov.b128 %q1, %q2;
mov.b128 %q1, {%r1, %r2, %r3, %r4};
mov.b128 {%r1, %r2, %r3, %r4}, %q1;
ret;`)
	for i, c := range []struct{ in, want []uint64 }{
		{[]uint64{0x1111, 0x2222}, []uint64{0x22221111}},
		{[]uint64{0x11111111, 0x22222222}, []uint64{0x2222222211111111}},
		{[]uint64{1, 2, 3, 4}, []uint64{0x0004000300020001}},
		{[]uint64{5, 6}, []uint64{5, 6}},
		{[]uint64{0x22221111}, []uint64{0x1111, 0x2222}},
		{[]uint64{0x2222222211111111}, []uint64{0x11111111, 0x22222222}},
		{[]uint64{0x0004000300020001}, []uint64{1, 2, 3, 4}},
		{[]uint64{5, 6}, []uint64{5, 6}},
		{[]uint64{7, 8}, []uint64{7, 8}},
		{[]uint64{1, 2, 3, 4}, []uint64{0x200000001, 0x400000003}},
		{[]uint64{0x200000001, 0x400000003}, []uint64{1, 2, 3, 4}},
	} {
		in := &f.Insts[i]
		var a Args
		copy(a.S[:], c.in)
		in.Eval(in, &a)
		for k, w := range c.want {
			if a.D[k] != w {
				t.Errorf("line %d: result %d is %x, want %x", in.Source.Pos.Line, k, a.D[k], w)
			}
		}
		if len(in.Src) != len(c.in) || len(in.Dst) != len(c.want) {
			t.Errorf("line %d: %d sources, %d results", in.Source.Pos.Line, len(in.Src), len(in.Dst))
		}
	}
}

func TestInitialisers(t *testing.T) {
	m := decode(t, `
.func f() { ret; }
.global .align 4 .u32 a[4] = {1, 2, -1};
.global .u16 b[2][3] = {{1}, {2, 3}};
.global .u16 flat[2][2] = {1, 2, 3};
.global .f32 c[2] = {1.0, 0f40000000};
.global .f64 d = 0.5;
.global .u64 e[3] = {generic(a)+8, f, b-2};
.global .b8 g[16] = {1, 0, 0xFF(a), 0xFF00(a), 0xFF0000(f+1)};
.global .attribute(.managed) .u32 h = 5;
.const .u8 s[] = {104, 105};
.global .u8 huge[1099511627776];
.const .b16 warps[2] = {WARP_SZ, WARP_SZ*2};
`)
	vars := map[string]*Var{}
	for _, v := range m.Vars {
		vars[v.Name] = v
	}
	for name, want := range map[string]string{
		"a": "0100000002000000ffffffff", "b": "010000000000020003", "flat": "010002000300", "c": "0000803f00000040", "d": "000000000000e03f",
		"g": "01", "h": "05000000", "s": "6869", "warps": "20004",
	} {
		got := strings.TrimRight(fmt.Sprintf("%x", vars[name].Init), "0")
		if got != strings.TrimRight(want, "0") {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if v := vars["s"]; v.Size != 2 || v.Space != event.Const {
		t.Errorf("s: %+v", v)
	}
	if !vars["h"].Managed || vars["huge"].Size != 1<<40 || vars["huge"].Init != nil {
		t.Error("h or huge")
	}
	r := vars["e"].Relocs
	if len(r) != 3 || r[0].Var != vars["a"] || !r[0].Generic || r[0].Add != 8 || r[1].Func != m.ByName["f"] || r[1].At != 8 || r[2].Add != -2 {
		t.Errorf("e: %+v", r)
	}
	r = vars["g"].Relocs
	if len(r) != 3 || r[0].At != 2 || r[0].Size != 1 || r[1].Shift != 8 || r[2].Shift != 16 || r[2].Func == nil || r[2].Add != 1 {
		t.Errorf("g: %+v", r)
	}
}

func TestLinking(t *testing.T) {
	a := parse(t, "a.ptx", `
.extern .global .u32 shared_counter;
.extern .func (.param .b32 r) twice(.param .b32 x);
.weak .func w() { ret; }
.func private() { ret; }
.visible .entry k() { .reg .b32 %r; .reg .b64 %rd;
  ld.global.u32 %r, [shared_counter];
  { .param .b32 x; .param .b32 r; st.param.b32 [x], %r; call (r), twice, (x); ld.param.b32 %r, [r]; }
  call private; call w; ret; }`)
	b := parse(t, "b.ptx", `
.visible .global .u32 shared_counter = 7;
.weak .func w() { trap; }
.func private() { trap; }
.visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; add.s32 %r, %r, %r; st.param.b32 [r], %r; ret; }`)
	m, err := Decode(a, b)
	if err != nil {
		t.Fatal(err)
	}
	k := m.ByName["k"]
	if err := m.Check(k); err != nil {
		t.Fatal(err)
	}
	if v := k.Insts[0].Src[0].Var; v.Name != "shared_counter" || len(v.Init) == 0 || v.Linkage&ptx.Visible == 0 {
		t.Errorf("variable: %+v", v)
	}
	names := ""
	for _, f := range k.Calls {
		names += f.Name + fmt.Sprint(f.Insts[0].Class, " ")
	}
	if want := fmt.Sprint("twice", Load, " private", Ret, " w", Ret, " "); names != want {
		t.Errorf("calls %s, want %s", names, want)
	}
	if _, err := Decode(b, parse(t, "c.ptx", ".visible .global .u32 shared_counter;")); err == nil || !strings.Contains(err.Error(), "is defined in b.ptx too") {
		t.Errorf("two definitions: %v", err)
	}
}

// TestAddressOfParameter checks that a parameter of a device function whose address is taken is in the function's local
// frame.
func TestAddressOfParameter(t *testing.T) {
	m := decode(t, `.func f(.param .b32 n, .param .align 8 .b8 s[24]) { .reg .b64 %rd<4>; .reg .b32 %r<3>;
ld.param.b32 %r1, [s+4];
mov.b64 %rd1, s;
cvta.param.u64 %rd2, %rd1;
ld.param.b32 %r2, [%rd1+8];
ld.param.b32 %r1, [n];
ld.param.b32 %r2, s[5];
ret; }
.visible .entry k(.param .b64 p) { .reg .b64 %rd<4>; mov.b64 %rd1, p; cvta.param.u64 %rd2, %rd1; ld.param.b64 %rd3, [%rd1]; ret; }`)
	f := m.ByName["f"]
	if f.Err != nil {
		t.Fatal(f.Err)
	}
	if len(f.Spills) != 1 || f.Spills[0] != (Spill{Param: 8, Local: 0, Size: 24}) {
		t.Fatalf("spills %+v", f.Spills)
	}
	in := f.Insts
	if in[0].Space != event.Local || in[0].Src[0].Kind != LocalAddr || in[0].Off != 4 || in[1].Src[0].Kind != LocalAddr || in[5].Space != event.Local || in[5].Src[0].Imm != 5 ||
		in[3].Space != event.Local || in[4].Space != event.Param {
		t.Error("accesses are not where the parameters are")
	}
	a := Args{S: [8]uint64{16}}
	if in[2].Eval(&in[2], &a); a.D[0] != LocalWindow+16 {
		t.Errorf("generic address %x", a.D[0])
	}
	r := decode(t, ".func (.param .align 8 .b8 r[8]) f() { .reg .b64 %rd<2>; mov.b64 %rd1, r; ret; }").ByName["f"]
	if r.Err == nil || !strings.Contains(r.Err.Error(), "the address of r, a result of the function, cannot be taken") {
		t.Error("the address of a result:", r.Err)
	}
	k := m.ByName["k"]
	if k.Insts[0].Src[0].Kind != ParamAddr || k.Insts[2].Space != event.Param || len(k.Spills) != 0 {
		t.Error("a kernel's parameters have addresses of their own")
	}
	if k.Insts[1].Eval(&k.Insts[1], &a); a.D[0] != ParamWindow+16 {
		t.Errorf("generic address %x", a.D[0])
	}
}

func TestCalls(t *testing.T) {
	m := decode(t, `
.func (.reg .b32 d) r(.reg .b32 a) { add.s32 d, a, 1; ret; }
.func (.param .b32 z) g(.param .b32 a) { ret; }
.func (.param .b32 z) h(.param .b32 a) { ret; }
.func (.param .b32 z) i(.param .b32 a) { ret; }
.global .b64 table[3] = {h, i, h};
.visible .entry k() { .reg .b64 %rd<3>; .reg .b32 %r<3>;
  .param .b32 x; .param .b32 y;
  targets: .calltargets g, h;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  mov.u64 %rd1, g;
  mov.u64 %rd2, i;
  call (y), %rd1, (x), targets;
  call (y), %rd1, (x), proto;
  call (y), %rd1, (x), table;
  call (%r1), r, (%r2);
  call (_), r, (5);
  ret; }`)
	k := m.ByName["k"]
	if err := m.Check(k); err != nil {
		t.Fatal(err)
	}
	names := func(fs []*Func) (s string) {
		for _, f := range fs {
			s += f.Name
		}
		return s
	}
	in := k.Insts
	if names(in[4].Callees) != "hi" || in[4].CallSig == nil {
		t.Error("call by a table")
	}
	in = slices.Delete(in, 4, 5)
	if names(in[2].Callees) != "gh" || in[3].Callees != nil || in[3].CallSig == nil || in[3].Src[0].Kind != Reg {
		t.Error("indirect calls")
	}
	if in[4].ArgOps[0].Kind != Reg || in[4].RetOps[0].Kind != Reg || in[5].RetOps[0].Kind != Sink || in[5].ArgOps[0].Imm != 5 {
		t.Error("register arguments")
	}
	if got := names(k.Calls); got != "ghir" {
		t.Errorf("calls %s, want ghir", got)
	}
	if p := m.ByName["r"].Sig.Params[0]; p.Reg < 0 || p.Off != -1 {
		t.Errorf("parameter %+v", p)
	}
}

func TestLocations(t *testing.T) {
	m := decode(t, `
.visible .entry k() { .reg .b32 %r<3>;
mov.b32 %r1, 0;
.loc 1 10 3
mov.b32 %r1, 1;
.loc 2 5 1, function_name $L__info_string0, inlined_at 1 10 3
mov.b32 %r1, 2;
.loc 2 9 2, function_name $L__info_string1+4, inlined_at 2 5 1
mov.b32 %r1, 3;
.loc 2 0 4
mov.b32 %r1, 4;
.loc 1 0 5
mov.b32 %r1, 5;
.loc 1 10 3
ret; }
.file 1 "a.cu"
.file 2 "b.h"
.section .debug_str { $L__info_string0: .b8 102, 111, 111, 0
$L__info_string1: .b8 120, 120, 120, 0, 98, 97, 114, 0 }
`)
	f := m.ByName["k"]
	var got []string
	for _, in := range f.Insts {
		s := "-"
		if in.Loc >= 0 {
			s = ""
			for l := &f.Locs[in.Loc]; l != nil; l = l.At {
				s += fmt.Sprintf("%s:%d:%d %s;", l.File, l.Line, l.Column, l.Function)
			}
		}
		got = append(got, s)
	}
	const bar = "b.h:9:2 bar;b.h:5:1 foo;a.cu:10:3 ;"
	want := []string{"-", "a.cu:10:3 ;", "b.h:5:1 foo;a.cu:10:3 ;", bar, bar, "a.cu:0:5 ;", "a.cu:10:3 ;"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestErrorsHaveSourcePlaces checks that an error names the line of the source, and the calls that lead there.
func TestErrorsHaveSourcePlaces(t *testing.T) {
	const debug = `
.file 1 "a.py"
.file 2 "/lib/b.py"
.section .debug_str { $L__info_string0: .b8 102, 111, 111, 0
$L__info_string1: .b8 107, 0 }
`
	text := `
.extern .func missing();
.func device() { .reg .b32 %r<3>;
.loc 2 30 5
exotic.u32 %r1, 1;
ret; }
.visible .entry k() { .reg .b32 %r<3>;
exotic.u32 %r1, 1;
.loc 1 10 3
{
.loc 2 5 1, function_name $L__info_string0, inlined_at 1 10 3
exotic.u32 %r1, 2;
bra nowhere;
.loc 2 9 0, function_name $L__info_string1, inlined_at 2 5 1
exotic.u32 %r1, 3;
}
.loc 1 11 3
call missing;
.loc 1 12 3
call device;
.loc 1 13 3
ret; }
.visible .entry second() {
.loc 1 20 2
call device;
ret; }
` + debug
	m := decode(t, text)
	checkLines(t, m.Check(m.ByName["k"]),
		"/lib/b.py:30:5 in device, called from a.py:12:3 in k: unknown instruction exotic.u32 (test.ptx:8:1)",
		"test.ptx:11:1: unknown instruction exotic.u32",
		"/lib/b.py:5:1 in foo, called from a.py:10:3 in k: unknown instruction exotic.u32 (test.ptx:15:1)",
		"/lib/b.py:5:1 in foo, called from a.py:10:3 in k: unknown label nowhere (test.ptx:16:5)",
		"/lib/b.py:9, called from /lib/b.py:5:1 in foo, called from a.py:10:3 in k: unknown instruction exotic.u32 (test.ptx:18:1)",
		"a.py:11:3 in k: function missing is declared and defined in no module; sources that call each other's device functions are linked with -rdc=true (test.ptx:21:1)")
	checkLines(t, m.Check(m.ByName["second"]),
		"/lib/b.py:30:5 in device, called from a.py:20:2 in second: unknown instruction exotic.u32 (test.ptx:8:1)")

	broken, err := ptx.Parse("broken.ptx", ".version 8.0\n.target sm_80\n.entry k() {\n.loc 1 4 2\nret 1 2;\n}\n.what\n"+debug)
	Locate(broken, err)
	checkLines(t, err, `a.py:4:2 in k: expected ';' after instruction ret, found "2" (broken.ptx:5:7)`, "broken.ptx:7:1: unknown directive .what")
}

func checkLines(t *testing.T, err error, want ...string) {
	t.Helper()
	if got := fmt.Sprint(err); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestLocationsOfInlineAssembly has the line numbers that LLVM assigns within inline assembly, which is on one line of
// the source.
func TestLocationsOfInlineAssembly(t *testing.T) {
	m := decode(t, `
.visible .entry k() { .reg .b32 %r<3>;
.loc 1 8 1
	// begin inline asm
.loc 1 9 17 // a.py:9:17
mov.b32 %r1, 1;
.loc 1 10 17
mov.b32 %r1, 2;
.loc 1 11 17
	// end inline asm
mov.b32 %r1, 3;
.loc 1 12 5
	// begin inline asm
mov.b32 %r1, 4;
.loc 1 13 5
mov.b32 %r1, 5;
	// end inline asm
.loc 1 20 5
	// begin inline asm

{
.loc 1 22 5
again:
.loc 1 23 5
mov.b32 %r1, 6;
bra.uni again;
}

	// end inline asm
.loc 1 14 5
ret; }
.file 1 "a.py"
`)
	f := m.ByName["k"]
	var got []int
	for _, in := range f.Insts {
		got = append(got, f.Locs[in.Loc].Line)
	}
	if want := []int{9, 9, 9, 12, 12, 20, 20, 14}; !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
}

func TestSharedLayout(t *testing.T) {
	m := decode(t, `
.extern .shared .align 16 .b8 dyn[];
.shared .align 4 .b8 a[5];
.shared .align 8 .b8 unused[100];
.func f() { .reg .b32 %r; .shared .align 8 .b8 inside[8]; mov.u32 %r, inside; ret; }
.visible .entry k() { .reg .b32 %r; mov.u32 %r, a; mov.u32 %r, dyn; call f; ret; }
.visible .entry none() { ret; }
.visible .entry system() { .reg .b32 %r; mov.u32 %r, %reserved_smem_offset_1; mov.u32 %r, a; ret; }`)
	s := m.SharedLayout(m.ByName["k"])
	at := map[string]int64{}
	for _, v := range m.Vars {
		at[v.Name] = s.Offset[v.Index]
	}
	if at["a"] != 0 || at["inside"] != 8 || at["dyn"] != 16 || at["unused"] != -1 || s.Static != 16 || s.Dynamic != 16 {
		t.Errorf("%v %+v", at, s)
	}
	if s := m.SharedLayout(m.ByName["none"]); s.Static != 0 || s.Reserved != 0 {
		t.Errorf("none: %+v", s)
	}
	s = m.SharedLayout(m.ByName["system"])
	if at := s.Offset[m.ByName["system"].Insts[1].Src[0].Var.Index]; at != ReservedShared || s.Reserved != ReservedShared || s.Static != 5 || s.Dynamic != ReservedShared+5 {
		t.Errorf("system: a at %d, %+v", at, s)
	}
}

// TestNvcc decodes the output of nvcc for a program with many features. Nothing in it may be refused.
func TestNvcc(t *testing.T) {
	nvcc, err := exec.LookPath("nvcc")
	if err != nil || testing.Short() {
		t.Skip("needs nvcc, and time")
	}
	for _, args := range [][]string{
		{"-arch=compute_80", "-Xcicc", "-O0", "-DO0"}, {"-arch=compute_90"}, {"-arch=compute_100", "-Xcicc", "-O0"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "x.ptx")
			cmd := exec.Command(nvcc, append(args, "-std=c++17", "-w", "-lineinfo", "-ptx", "-o", out, "testdata/everything.cu")...)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			src, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			p, err := ptx.Parse("everything.ptx", string(src))
			if err != nil {
				t.Fatal(err)
			}
			m, err := Decode(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range m.Funcs {
				if f.Err != nil {
					t.Error(f.Err)
				}
			}
			for _, k := range m.Kernels() {
				if err := m.Check(k); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(header + ".visible .entry k(.param .u64 p) { .reg .b32 %r<5>; .reg .pred %p; L: add.s32 %r1, %r2, 3; @%p bra L; ret; }")
	f.Add(header + ".func (.param .b32 r) f(.param .b32 a) { ret; } .global .u64 x[2][2] = {{f}, {generic(x)+8, 1}}; .alias g, f;")
	f.Add(header + ".entry k { .reg .b64 %rd<9>; .param .b8 q[8]; mov.b64 {%rd1, _}, q; ts: .branchtargets A, B; A: brx.idx %rd1, ts; B: }")
	f.Add(header + ".func a() {ret;} .func b() {ret;} .func c() {ret;} .alias a, b; .alias b, c; .alias c, a; .global .u8 z[2][0] = {1, {2}};")
	f.Add(header + ".shared .u64 a[4]; .entry k { .reg .b32 %r<9>; vadd4.u32.u32.u32.add %r1.b20, -%r2.b4321, %r3, %r4; vmad.s32.s32.s32 %r1, -%r2.h0, %r3, %r4; ld.u64 %r1, a[%r2+-1]; }")
	f.Add(".version 1.3\n.target sm_10\n.const[2] .b32 c[4]; .entry k { .reg .b32 %r<9>; alloca.u32 %r1, %r2; st.u32 [%r1], c; ld.const[2].u32 %r1, [%r2]; call %r1, p; p: .callprototype _; mov.v4.u32 {%r1,%r2,%r3,_}, %tid; }")
	f.Fuzz(func(t *testing.T, src string) {
		m, err := ptx.Parse("fuzz.ptx", src)
		if err != nil {
			return
		}
		d, _ := Decode(m, m)
		for _, k := range d.Kernels() {
			_ = d.Check(k)
			d.SharedLayout(k)
		}
	})
}
