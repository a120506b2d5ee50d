package instrument

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// kernel returns a kernel with a body, a pointer in %rd1, a predicate %p1 and a shared variable.
func kernel(body string) string {
	return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" +
		".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>; .reg .b32 fp0_m; .shared .align 4 .b32 s; .local .align 4 .b32 t;\n" +
		"ld.param.u64 %rd1, [p];\n" + body + "\nret;\n}\n"
}

// calledBy matches the calls of device code.
var calledBy = regexp.MustCompile(`call (?:\([^)]*\), )?__fencepost_(\w+)`)

// TestForms checks the calls for each form of an instruction. The last call is that of ret.
func TestForms(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"ld.global.u32 %r1, [%rd1];", "operation"},
		{"ld.global.v2.u32 {%r1, %r2}, [%rd1+8];", "operation"},
		{"@%p1 st.global.u32 [%rd1], %r1;", "store"},
		{"@!%p1 st.shared.u32 [s], %r1;", "store"},
		{"st.global.v2.u32 [%rd1], {%r1, %r2};", "store"},
		{"st.v2.u64 [%rd1], {%rd1, 3};", "operation store_generic"},
		{"ld.u32 %r1, [%rd1];", "generic"},
		{"st.volatile.u32 [%rd1], %r1;", "operation begin_generic end_generic"},
		{"ld.acquire.gpu.global.u32 %r1, [%rd1];", "begin end"},
		{"atom.global.add.u32 %r1, [%rd1], 1;", "begin end"},
		{"red.global.add.u32 [%rd1], 1;", "begin end"},
		{"atom.shared.add.u32 %r1, [s], 1;", "begin_shared end_shared"},
		{"atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", "begin end"},
		{"atom.cas.b32 _, [%rd1], %r2, %r3;", "begin_generic end_generic"},
		{"membar.gl;", "operation"},
		{"bar.sync 0;", "operation"},
		{"bar.sync 1, 64;", "operation"},
		{"bar.warp.sync 0xffffffff;", "operation"},
		{"@%p1 exit;", "operation"},
		{"ld.local.u32 %r1, [t];", ""},
		{"cvta.local.u64 %rd2, %rd1; add.s64 %rd2, %rd2, 4; st.u32 [%rd2], %r1;", ""},
		{"add.u32 %r1, %r1, 1;", ""},
		{"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%rd1];", "operation"},
		{"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], %r2;", "operation operation"},
		{"wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], 32;", "generic"},
		{"wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r1, %r2, %r3, %r4};", "operation"},
		{"cp.async.ca.shared.global [%r1+4], [%rd1+8], 4;", "operation operation"},
		{"@%p1 cp.async.ca.shared.global [%rd2], [%rd1], 8, %r2;", "operation operation operation"},
		{"cp.async.cg.shared.global [%rd2], [%rd1], 16, %p1;", "operation operation operation"},
		{"cp.async.commit_group;", "operation"},
		{"mbarrier.init.shared.b64 [%rd2], 4;", "operation begin_shared end_shared"},
		{"@%p1 mbarrier.arrive.shared.b64 %rd3, [%rd2];", "begin_shared end_shared"},
		{"mbarrier.arrive.b64 %rd3, [%rd2], 2;", "operation begin_generic end_generic"},
		{"mbarrier.test_wait.shared.b64 %p1, [%rd2], %rd3;", "operation begin_shared end_shared"},
		{"mbarrier.try_wait.parity.shared.b64 %p1, [%rd2], 0, 1000;", "operation begin_shared end_shared"},
		{"cp.async.mbarrier.arrive.noinc.shared.b64 [%rd2];", "begin_shared end_shared"},
		{"mbarrier.pending_count.b64 %r1, %rd3;", ""},
		{"cp.async.wait_group 2;", "operation"},
		{"@%p1 cp.async.wait_all;", "operation"},
	} {
		out, _, err := Text("k.ptx", kernel(c.body), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		_, body, _ := strings.Cut(strings.ReplaceAll(out, "\t", ""), ".entry k(")
		var got []string
		for _, m := range calledBy.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		if got, want := strings.Join(got, " "), strings.TrimSpace(c.want+" operation"); got != want {
			t.Errorf("%s: calls %q, want %q", c.body, got, want)
		}
		if skips := strings.Count(body, "bra $fp1_skip"); (skips == 1) != strings.HasPrefix(c.body, "@") {
			t.Errorf("%s: %d guards with names of their own", c.body, skips)
		}
		if pred, _, ok := strings.Cut(c.body, " "); ok && pred[0] == '@' {
			opposite := strings.Replace("@!"+pred[1:], "!!", "", 1)
			if !strings.Contains(body, opposite+" bra $fp1_skip") {
				t.Errorf("%s: the record is not skipped by %s", c.body, opposite)
			}
		}
		if _, _, err := Text("k.ptx", out, Options{}); err == nil || !strings.Contains(err.Error(), "instrumented already") {
			t.Errorf("%s: instrumented twice: %v", c.body, err)
		}
	}
}

// TestCheckedForms checks the calls in mode hirace for each form of an instruction, and the description of the access.
func TestCheckedForms(t *testing.T) {
	for _, c := range []struct{ body, want, what string }{
		{"ld.global.u32 %r1, [%rd1];", "access", "size 4 action 0 space 0"},
		{"ld.global.v2.u32 {%r1, %r2}, [%rd1+8];", "access", "size 8 action 0 space 0"},
		{"@%p1 st.global.u16 [%rd1], 1;", "access", "size 2 action 1 space 0"},
		{"@!%p1 st.shared.u32 [s], %r1;", "access", "size 4 action 1 space 1"},
		{"ld.u32 %r1, [%rd1];", "access", "size 4 action 0 space 2"},
		{"st.volatile.u32 [%rd1], %r1;", "access", "size 4 action 1 space 2"},
		{"ld.acquire.gpu.global.u32 %r1, [%rd1];", "access", "size 4 action 3 space 0"},
		{"ld.relaxed.cta.global.u32 %r1, [%rd1];", "access", "size 4 action 2 space 0"},
		{"atom.global.add.u32 %r1, [%rd1], 1;", "access", "size 4 action 3 space 0"},
		{"red.shared.cta.add.u32 [s], 1;", "access", "size 4 action 2 space 1"},
		{"atom.cas.b64 _, [%rd1], %rd2, %rd3;", "access", "size 8 action 3 space 2"},
		{"membar.gl;", "", ""},
		{"bar.sync 0;", "arrive passed", ""},
		{"bar.red.popc.u32 %r1, 1, %p1;", "arrive passed", ""},
		{"bar.arrive 1, 64;", "arrive", ""},
		{"bar.warp.sync 0xffffffff;", "together", ""},
		{"@%p1 exit;", "exit", ""},
		{"ld.local.u32 %r1, [t];", "", ""},
		{"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%rd1];", "access", "size 16 action 0 space 1"},
		{"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], %r2;", "tile", "size 16 action 0 space 1"},
		{"wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], 32;", "tile", "size 16 action 0 space 2"},
		{"wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r1, %r2, %r3, %r4};", "tile", "size 16 action 1 space 0"},
		{"@%p1 cp.async.ca.shared.global [%rd2], [%rd1], 8, %r2;", "copy", "size 8 action 1 space 1"},
		{"cp.async.cg.shared.global [%rd2], [%rd1], 16, %p1;", "copy", "size 16 action 1 space 1"},
		{"cp.async.commit_group;", "", ""},
		{"cp.async.wait_group 2;", "", ""},
	} {
		out, p, err := Text("k.ptx", kernel(c.body), Options{Mode: HiRace})
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		_, body, _ := strings.Cut(strings.ReplaceAll(out, "	", ""), ".entry k(")
		var got []string
		for _, m := range calledBy.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		if got, want := strings.Join(got, " "), strings.TrimSpace(c.want+" exit"); got != want {
			t.Errorf("%s: calls %q, want %q", c.body, got, want)
		}
		if c.what == "" {
			continue
		}
		in := p.Sites[0].Inst()
		d := described(in, 7)
		if got := fmt.Sprintf("size %d action %d space %d", d>>32&255, d>>40&3, d>>42); got != c.what || uint32(d) != 7 {
			t.Errorf("%s: %s of site %d, want %s", c.body, got, uint32(d), c.what)
		}
		if !strings.Contains(body, fmt.Sprint(described(in, 0))) {
			t.Errorf("%s: the access is not described as %d", c.body, described(in, 0))
		}
	}
}

// TestJoins checks that there is a record where lanes that diverge repeatedly reconverge: before the instruction, or
// before the block of a call.
func TestJoins(t *testing.T) {
	const arms = "@%p1 bra B;\nst.shared.u32 [s], %r1;\nbra J;\nB: st.shared.u32 [s], %r2;\nJ: "
	const call = "{ .param .b32 a; st.param.b32 [a], %r1; call f, (a); }\n"
	for _, c := range []struct {
		body string
		want int
	}{
		{"L: " + arms + "add.u32 %r1, %r1, 1;\n@%p2 bra L;", 2},
		{"L: " + arms + call + "@%p2 bra L;", 2},
		{"L: " + arms + strings.Replace(call, "call f", "call g", 1) + "@%p2 bra L;", 2},
		{arms + "add.u32 %r1, %r1, 1;", 0},
		{"L: @%p1 bra J;\nst.shared.u32 [s], %r1;\nJ: add.u32 %r1, %r1, 1;\n@%p2 bra L;", 0},
	} {
		text := strings.Replace(kernel(c.body), ".visible", ".func f(.param .b32 a) { st.volatile.shared.u32 [0], 1; ret; }\n.func g(.param .b32 a) { ret; }\n.visible", 1)
		out, p, err := Text("k.ptx", text, Options{})
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		got := 0
		_, out, _ = strings.Cut(out, ".entry k(")
		for i, s := range p.Sites {
			if s.Kind != Join {
				continue
			}
			got++
			record, _, _ := strings.Cut(out[strings.Index(out, fmt.Sprintf("], %d;", i)):], "bra")
			if in := s.Inst().Source; in.Op == "add" && !strings.Contains(record, "add.u32") || in.Op == "st" && !strings.Contains(record, ".param .b32 a;") {
				t.Errorf("%s: the record of line %d stands before %q", c.body, in.Pos.Line, record)
			}
		}
		if got != c.want {
			t.Errorf("%s: %d records of joins, want %d", c.body, got, c.want)
		}
	}
}

// decoded parses and decodes a module.
func decoded(t *testing.T, text string) *isa.Module {
	t.Helper()
	tree, err := ptx.Parse("k.ptx", text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := isa.Decode(tree)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestUndecoded checks that a module with a kernel that cannot be decoded has its other kernels instrumented.
func TestUndecoded(t *testing.T) {
	text := kernel("L: @%p1 bra J;\nst.shared.u32 [s], %r1;\nJ: @%p2 bra L;") + ".visible .entry m() { .reg .pred %p; @%p bra L; unknown.op; L: ret; }\n"
	m := decoded(t, text)
	if p, err := Instrument(m, Options{Partly: true}); err != nil || len(p.Sites) == 0 {
		t.Errorf("error %v", err)
	}
}

// TestRefused checks that every instruction that cannot be instrumented is reported with its line.
func TestRefused(t *testing.T) {
	copies := kernel("mbarrier.init.shared.b64 [s], 1;\nadd.u32 %r1, %r1, 1;\nmbarrier.init.shared.b64 [s], 1;")
	_, _, err := Text("k.ptx", copies, Options{Mode: HiRace})
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatalf("error %v", err)
	}
	for _, body := range []string{"tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", "sust.b.1d.b32.trap [%rd1, {%r1}], %r2;",
		"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];", "mapa.shared::cluster.u32 %r1, %r2, 0;", "barrier.cluster.arrive;", "cp.async.bulk.commit_group;", "wgmma.commit_group.sync.aligned;"} {
		text := strings.NewReplacer("sm_80", "sm_90a", ".version 7.0", ".version 8.0").Replace(kernel(body))
		if _, _, err := Text("k.ptx", text, Options{}); !errors.As(err, new(*Error)) {
			t.Errorf("%s: error %v", body, err)
		}
	}
	want := "k.ptx:8: mbarrier.init.shared.b64 k.ptx:10: mbarrier.init.shared.b64"
	if got := strings.Join(refused.Missing, " "); got != want {
		t.Errorf("refused %q, want %q", got, want)
	}
}

// TestPartly checks that kernels that cannot be instrumented, or that call a function that cannot, are unchanged and
// listed, and that the others are instrumented.
func TestPartly(t *testing.T) {
	text := kernel("st.global.u32 [%rd1], %r1;") + `.func helper(.param .b64 q) { .reg .b64 %rd2; ld.param.b64 %rd2, [q]; cp.async.bulk.commit_group; ret; }
.visible .entry m(.param .u64 p) { .reg .b64 %rd1; ld.param.u64 %rd1, [p]; { .param .b64 a; st.param.b64 [a], %rd1; call helper, (a); } ret; }
`
	m := decoded(t, text)
	if _, err := Instrument(m, Options{}); !errors.As(err, new(*Error)) {
		t.Errorf("error %v", err)
	}
	p, err := Instrument(m, Options{Partly: true})
	if err != nil {
		t.Fatal(err)
	}
	if why := p.Unchecked["m"]; len(p.Unchecked) != 1 || why == nil || len(why.Missing) != 1 || !strings.Contains(why.Missing[0], "cp.async.bulk.commit_group") {
		t.Errorf("unchecked: %v", p.Unchecked)
	}
	for _, s := range p.Sites {
		if s.Func.Name != "k" {
			t.Errorf("a site in %s", s.Func.Name)
		}
	}
	if len(p.Sites) != 2 {
		t.Errorf("%d sites, want those of the store and of the exit", len(p.Sites))
	}
}

// TestPruned checks which accesses are not logged because another one covers them.
func TestPruned(t *testing.T) {
	for _, c := range []struct {
		body string
		want int
	}{
		{"ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1];", 1},
		{"ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], %r1;\nld.global.u32 %r1, [%rd1];", 1},
		{"st.global.u32 [%rd1], %r1;\nld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], %r1;", 2},
		{"st.global.v2.u32 [%rd1], {%r1, %r2};\nld.global.u32 %r1, [%rd1];", 1},
		{"st.global.u32 [%rd1], %r1;\nld.global.v2.u32 {%r1, %r2}, [%rd1];", 0},
		{"st.global.u16 [%rd1], %r1;\nld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], %r1;", 0},
		{"ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1+4];", 0},
		{"ld.global.u32 %r1, [%rd1];\nld.u32 %r2, [%rd1];", 0},
		{"ld.global.u32 %r1, [%rd1];\nadd.s64 %rd1, %rd1, 0;\nld.global.u32 %r2, [%rd1];", 0},
		{"ld.global.u64 %rd1, [%rd1];\nld.global.u64 %rd2, [%rd1];", 0},
		{"@%p1 ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1];", 0},
		{"ld.global.u32 %r1, [%rd1];\n@%p1 ld.global.u32 %r2, [%rd1];", 1},
		{"ld.global.u32 %r1, [%rd1];\nbar.sync 0;\nld.global.u32 %r2, [%rd1];", 0},
		{"ld.global.u32 %r1, [%rd1];\nmembar.gl;\nld.global.u32 %r2, [%rd1];", 0},
		{"ld.global.u32 %r1, [%rd1];\nbar.warp.sync 1;\nld.global.u32 %r2, [%rd1];", 0},
		{"ld.global.u32 %r1, [%rd1];\nred.global.add.u32 [%rd1], 1;\nld.global.u32 %r2, [%rd1];", 0},
		{"ld.global.u32 %r1, [%rd1];\nL: ld.global.u32 %r2, [%rd1];\n@%p1 bra L;", 0},
		{"ld.global.u32 %r1, [%rd1];\n@%p1 bra L;\nld.global.u32 %r2, [%rd1];\nL:", 0},
		{"ld.global.u32 %r1, [%rd1];\nld.global.nc.u32 %r2, [%rd1];", 0},
		{"ld.volatile.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1];", 0},
		{"st.shared.u32 [s], %r1;\nst.shared.u32 [s], %r1;", 1},
	} {
		_, all, err := Text("k.ptx", kernel(c.body), Options{Mode: HiRace})
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		_, p, err := Text("k.ptx", kernel(c.body), Options{Mode: HiRace, Prune: true})
		if err != nil || p.Pruned != c.want || p.Logged+p.Pruned != all.Logged {
			t.Errorf("%s: %d pruned, %d logged of %d, error %v; want %d pruned", c.body, p.Pruned, p.Logged, all.Logged, err, c.want)
		}
	}
	// In a log, stores have values.
	body := "st.global.u32 [%rd1], %r1;\nld.global.u32 %r2, [%rd1];\nst.global.u32 [%rd1], %r3;"
	if _, p, err := Text("k.ptx", kernel(body), Options{Prune: true}); err != nil || p.Pruned != 1 {
		t.Errorf("%d pruned, error %v; want the load", p.Pruned, err)
	}
}

// TestSignals checks that the inserted code has nothing that looks like synchronisation between the program and the
// host.
func TestSignals(t *testing.T) {
	for _, mode := range []Mode{Log, HiRace} {
		text, _, err := Text("k.ptx", kernel("st.global.u32 [%rd1], %r1;"), Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		if decoded(t, text).ByName["k"].Any((*isa.Inst).Signals) {
			t.Errorf("mode %d: the device code signals to the host", mode)
		}
	}
}
