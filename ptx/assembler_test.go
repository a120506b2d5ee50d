package ptx

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAssembler compares the printed module with the original one by NVIDIA's assembler: their code and data must be
// the same. Debug sections contain lines of the PTX text and differ.
func TestAssembler(t *testing.T) {
	if testing.Short() {
		t.Skip("runs ptxas")
	}
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("no ptxas")
	}
	target := regexp.MustCompile(`\.target\s+(\w+)`)
	sources := files(t, "compiler")
	const constants = "testdata/hand/constants.ptx"
	sources[constants] = files(t, "hand")[constants]
	for path, src := range sources {
		t.Run(path, func(t *testing.T) {
			arch := target.FindStringSubmatch(src)[1]
			a := assemble(t, ptxas, arch, src)
			b := assemble(t, ptxas, arch, printed(t, mustParse(t, path, src)))
			if len(a) == 0 || len(a) != len(b) {
				t.Fatalf("%d sections as written, %d as printed", len(a), len(b))
			}
			for name, data := range a {
				if !bytes.Equal(data, b[name]) {
					t.Errorf("section %s differs", name)
				}
			}
		})
	}
}

// assemble returns the sections of the cubin with code and data.
func assemble(t *testing.T, ptxas, arch, src string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.ptx"), filepath.Join(dir, "out.cubin")
	if err := os.WriteFile(in, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	if log, err := exec.Command(ptxas, "-arch", arch, "-c", in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("ptxas: %v\n%s", err, log)
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sections := make(map[string][]byte)
	for _, s := range f.Sections {
		// .nv.shared and .nv.global reserve space only: what debug/elf reads for them is other sections' bytes.
		if !strings.HasPrefix(s.Name, ".text.") && !strings.HasPrefix(s.Name, ".nv.constant") &&
			!strings.HasPrefix(s.Name, ".nv.info") && s.Name != ".nv.global.init" {
			continue
		}
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		sections[s.Name] = data
	}
	return sections
}
