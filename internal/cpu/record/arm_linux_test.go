package record

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/testsize"
)

// TestARM judges C programs of corpus/cpu that are compiled for ARM, together with the recorder. It needs
// aarch64-linux-gnu-gcc and qemu-aarch64 (Debian's gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user). The
// emulator runs on the processor of this machine, so executions that only the memory model of ARM allows do not occur.
func TestARM(t *testing.T) {
	cc, err1 := exec.LookPath("aarch64-linux-gnu-gcc")
	qemu, err2 := exec.LookPath("qemu-aarch64")
	if err1 != nil || err2 != nil || runtime.GOARCH != "amd64" {
		t.Skip("no aarch64-linux-gnu-gcc or no qemu-aarch64, or not on x86-64")
	}
	c := &Compiler{Path: cc, Recorder: recorder(cc)}
	every := testsize.Of(15, 12, 1)
	for _, folder := range []string{"race", "norace"} {
		sources, _ := filepath.Glob(filepath.Join("..", "..", "..", "corpus", "cpu", folder, "*.c"))
		if len(sources) < 15 {
			t.Fatalf("corpus/cpu/%s has %d programs in C", folder, len(sources))
		}
		for i, source := range sources {
			if i%every != 0 {
				continue
			}
			t.Run(filepath.Base(source), func(t *testing.T) {
				program := compileProgram(t, c, source)
				rep, r, out := judged(t, fasttrack.Spec, qemu, "-L", "/usr/aarch64-linux-gnu", program)
				if r.Exit != 0 {
					t.Fatalf("exit code %d: %s", r.Exit, out)
				}
				compareLines(t, source, rep)
			})
		}
	}
}
