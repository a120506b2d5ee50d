package instrument

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/testsize"
)

// ptxas returns the path of the assembler next to nvcc, or skips the test.
func ptxas(t *testing.T) string {
	t.Helper()
	nvcc := os.Getenv("FENCEPOST_NVCC")
	if nvcc == "" {
		nvcc, _ = exec.LookPath("nvcc")
	}
	path := filepath.Join(filepath.Dir(nvcc), "ptxas")
	if _, err := os.Stat(path); nvcc == "" || err != nil {
		t.Skip("no ptxas: FENCEPOST_NVCC is not set and nvcc is not on PATH")
	}
	return path
}

// assemble returns the error of ptxas for PTX.
func assemble(t *testing.T, ptxas, text, arch string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.ptx")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(ptxas, "-arch="+arch, "-O1", file, "-o", os.DevNull).CombinedOutput()
	if err != nil {
		t.Logf("%s", out)
	}
	return err
}

func programs(t *testing.T) []*corpus.Program {
	t.Helper()
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAssembles assembles instrumented programs of the corpus in each mode with ptxas.
func TestAssembles(t *testing.T) {
	as := ptxas(t)
	archs := []string{"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"}
	seen := map[string]bool{}
	n, refused := 0, 0
	for _, p := range programs(t) {
		if seen[p.File()] {
			continue
		}
		seen[p.File()] = true
		text, _, err := Text(p.Path()+".ptx", p.PTX, Options{Mode: Mode(n % 2), Prune: n/2%2 == 1})
		if err != nil {
			refused++
			continue
		}
		n++
		if testing.Short() && n%20 > 1 || n%12 > 1 && !testsize.Long() { // with both modes
			continue
		}
		arch := archs[n/2%len(archs)]
		if strings.Contains(text, ".target sm_90") {
			arch = "sm_90"
		}
		retarget := func(text string) string { return strings.Replace(text, ".target sm_80", ".target "+arch, 1) }
		if err := assemble(t, as, retarget(text), arch); err != nil && assemble(t, as, retarget(p.PTX), arch) == nil {
			t.Errorf("%s: ptxas refuses it for %s: %v", p.Path(), arch, err)
		}
	}
	t.Logf("%d instrumented, %d refused", n, refused)
}

// TestCounts compares docs/gpu.md with the number of instructions of the corpus that log.
func TestCounts(t *testing.T) {
	seen := map[string]bool{}
	files, static, logged, pruned := 0, 0, 0, 0
	for _, p := range programs(t) {
		if seen[p.File()] {
			continue
		}
		seen[p.File()] = true
		_, out, err := Text(p.Path()+".ptx", p.PTX, Options{Prune: true})
		if err != nil {
			continue
		}
		files++
		static += out.Static
		logged += out.Logged
		pruned += out.Pruned
	}
	share := func(n int) string { return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(static)) }
	want := fmt.Sprintf("| %d | %d | %s | %s |", files, static, share(logged+pruned), share(logged))
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "gpu.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), want) {
		t.Errorf("docs/gpu.md lacks the row %s", want)
	}
}
