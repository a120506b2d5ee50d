package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/toolchain"
	"fencepost.dev/fencepost/ptx"
)

const head = ".version 7.0\n.target sm_80\n.address_size 64\n"

// placeAll loads modules as one program, and returns their placed texts.
func placeAll(t *testing.T, texts ...string) ([]string, *loader.Program, error) {
	t.Helper()
	var trees []*ptx.Module
	for i, text := range texts {
		tree, err := ptx.Parse(fmt.Sprintf("m%d.ptx", i), text)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	m, err := isa.Decode(trees...)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := devmem.New(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mem.Close() })
	p, err := loader.Load(m, mem)
	if err != nil {
		t.Fatal(err)
	}
	out, err := placed(p, 0x1230)
	return out, p, err
}

// TestPlaced checks that each name of a variable is replaced by an address, and that nothing else changes.
func TestPlaced(t *testing.T) {
	const kernel = ".visible .entry k()\n{\n.reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p<3>;\n%BODY\nret;\n}\n"
	for _, c := range []struct{ vars, body, want string }{
		{".global .b32 x[4];", "ld.global.u32 %r1, [x+8];", "mov.b64 %fencepost_at0, X; ld.global.u32 %r1, [%fencepost_at0+8];"},
		{".global .b32 x[4];", "@%p1 st.global.u32 [x], %r1;", "mov.b64 %fencepost_at0, X; @%p1 st.global.u32 [%fencepost_at0], %r1;"},
		{".global .b32 x[4];", "mov.u64 %rd1, x;", "mov.b64 %fencepost_at0, X; mov.u64 %rd1, %fencepost_at0;"},
		{".global .b32 x[4];", "mov.u64 %rd1, x+4;", "mov.b64 %fencepost_at0, X+4; mov.u64 %rd1, %fencepost_at0;"},
		{".global .b32 x[4];", "st.global.v2.u64 [%rd1], {x, %rd2};", "mov.b64 %fencepost_at0, X; st.global.v2.u64 [%rd1], {%fencepost_at0, %rd2};"},
		{".const .b32 x[4];", "ld.const.u32 %r1, [x+4];", "mov.b64 %fencepost_at0, X; ld.global.u32 %r1, [%fencepost_at0+4];"},
		{".const .b32 x[4];", "cvta.const.u64 %rd1, %rd2;", "cvta.global.u64 %rd1, %rd2;"},
		{".const .b32 x[4];", "@%p2 isspacep.const %p1, %rd2;", "@%p2 mov.b64 %fencepost_at0, %rd2; @%p2 setp.lt.u64 %p1, %fencepost_at0, 0; " +
			"@%p2 mov.b64 %fencepost_at0, %rd2; @%p2 sub.u64 %fencepost_at0, %fencepost_at0, X; @%p2 setp.lt.or.u64 %p1, %fencepost_at0, 16, %p1;"},
		{".global .b32 x[4];", ".shared .b32 x[2]; st.shared.u32 [x], %r1;", ".shared .b32 x[2]; st.shared.u32 [x], %r1;"},
		{".global .b32 x[4];", "{ .reg .b64 x; mov.u64 x, %rd1; } mov.u64 %rd1, x;", ".reg .b64 x; mov.u64 x, %rd1; mov.b64 %fencepost_at0, X; mov.u64 %rd1, %fencepost_at0;"},
		{"", "@!%p1 mov.u32 %r1, %envreg1; mov.b32 %r2, %envreg2; mov.u32 %r1, %envreg3;", "mov.b64 %fencepost_at0, 4656; @!%p1 ld.global.b32 %r1, [%fencepost_at0]; " +
			"mov.b64 %fencepost_at0, 4660; ld.global.b32 %r2, [%fencepost_at0]; mov.u32 %r1, %envreg3;"},
		{".shared .b32 x[4];", "st.shared.u32 [x], %r1;", "st.shared.u32 [x], %r1;"},
		{".extern .shared .align 4 .b8 x[];", "mov.u64 %rd1, x;", "mov.u64 %rd1, x;"},
	} {
		texts, p, err := placeAll(t, head+c.vars+"\n"+strings.Replace(kernel, "%BODY", c.body, 1))
		if err != nil {
			t.Errorf("%s %s: %v", c.vars, c.body, err)
			continue
		}
		want := c.want
		if at, _, ok := p.Symbol("x"); ok {
			for _, off := range []uint64{4, 0} {
				sum := "X"
				if off > 0 {
					sum = fmt.Sprintf("X+%d", off)
				}
				want = strings.ReplaceAll(want, sum, fmt.Sprint(at+off))
			}
			if strings.Contains(texts[0], c.vars[:6]+" .") && !strings.HasPrefix(c.vars, ".shared") {
				t.Errorf("%s is still declared:\n%s", c.vars, texts[0])
			}
		}
		_, body, _ := strings.Cut(texts[0], "%p<3>;")
		body = strings.NewReplacer("{\n", "\n", "}\n", "\n", "\t", " ").Replace(strings.TrimSuffix(body, "\tret;\n}\n"))
		body = strings.ReplaceAll(body, ".reg .b64 %fencepost_at0;", "")
		if got := strings.Join(strings.Fields(body), " "); got != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.vars, c.body, got, want)
		}
	}
}

// TestPlacedModules checks that a variable that several modules share has one address, and that variables of single
// modules have different addresses.
func TestPlacedModules(t *testing.T) {
	const kernel = ".visible .entry %s() { .reg .b64 %%rd<3>; mov.u64 %%rd1, x; mov.u64 %%rd2, own; ret; }\n"
	texts, _, err := placeAll(t, head+".visible .global .b32 x;\n.global .b32 own;\n"+fmt.Sprintf(kernel, "k"),
		head+".extern .global .b32 x;\n.global .b32 own;\n"+fmt.Sprintf(kernel, "l"))
	if err != nil {
		t.Fatal(err)
	}
	var at [2][]string
	for i, text := range texts {
		for _, line := range strings.Split(text, "\n") {
			if _, a, ok := strings.Cut(strings.ReplaceAll(line, "\t", ""), "mov.b64 %fencepost_at0, "); ok {
				at[i] = append(at[i], a)
			}
		}
		if len(at[i]) != 2 {
			t.Fatalf("%d addresses in\n%s", len(at[i]), text)
		}
	}
	if at[0][0] != at[1][0] || at[0][1] == at[1][1] {
		t.Errorf("%q", at)
	}
}

// TestUnplaced checks that tables of functions are refused, and that tables of virtual functions remain.
func TestUnplaced(t *testing.T) {
	const table = ".func f() { ret; }\n.global .u64 %s[1] = {f};\n.visible .entry k() { .reg .b64 %%rd<3>; mov.u64 %%rd1, %[1]s; ret; }\n"
	if _, _, err := placeAll(t, head+fmt.Sprintf(table, "table")); err == nil || !strings.Contains(err.Error(), "table holds the address of a function") {
		t.Errorf("%v", err)
	}
	texts, _, err := placeAll(t, head+fmt.Sprintf(table, "_ZTV1A"))
	if err != nil || !strings.Contains(texts[0], "_ZTV1A[1] = {f};") {
		t.Errorf("%v %v", texts, err)
	}
}

// TestAssembles checks with NVIDIA's assembler the code that is loaded on a GPU: instrumented programs of the corpus.
func TestAssembles(t *testing.T) {
	nvcc, err := (&toolchain.Finder{}).FindNVCC(t.Context())
	if err != nil {
		t.Skip("no nvcc")
	}
	ptxas := filepath.Join(filepath.Dir(nvcc.Path), "ptxas")
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	n, refused := 0, 0
	for i, p := range all {
		if i%testsize.Of(100, 50, 8) != 0 {
			continue
		}
		text, _, err := instrument.Text(p.Path()+".ptx", p.PTX, instrument.Options{Mode: instrument.Mode(i % 2)})
		if err != nil {
			continue
		}
		texts, _, err := placeAll(t, text)
		if err != nil {
			refused++
			continue
		}
		n++
		file := filepath.Join(t.TempDir(), "k.ptx")
		if err := os.WriteFile(file, []byte(texts[0]), 0o644); err != nil {
			t.Fatal(err)
		}
		arch := "sm_80"
		if strings.Contains(texts[0], ".target sm_90") {
			arch = "sm_90"
		}
		if out, err := exec.Command(ptxas, "-arch="+arch, "-O1", file, "-o", os.DevNull).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", p.Path(), err, out)
		}
	}
	t.Logf("%d assembled, %d cannot be placed", n, refused)
	if n == 0 || refused > max(1, n/10) { // one of a few says nothing
		t.Errorf("%d assembled, %d cannot be placed", n, refused)
	}
}
