package release

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/testsize"
)

// TestARM64 checks that the command on ARM writes the same report, byte for byte, as on x86-64, for one of 24 programs
// of the corpus. It needs qemu-aarch64 (Debian's qemu-user), which executes the command. Each program has its own
// process, because qemu 7 keeps 0.3 GB for each device memory.
func TestARM64(t *testing.T) {
	qemu, err := exec.LookPath("qemu-aarch64")
	if err != nil || !testsize.Long() || runtime.GOARCH != "amd64" {
		t.Skip("no qemu-aarch64, or takes a minute, or not on x86-64")
	}
	commands := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		commands[arch] = filepath.Join(t.TempDir(), "fencepost")
		cmd := exec.Command("go", "build", "-trimpath", "-o", commands[arch], "./cmd/fencepost")
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOARCH="+arch)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(programs); i += 24 {
		path := programs[i].Path()
		args := []string{"check", "--json", "-", "corpus/" + path}
		here := outcome(t, exec.Command(commands["amd64"], args...))
		there := outcome(t, exec.Command(qemu, append([]string{commands["arm64"]}, args...)...))
		if here != there || !strings.Contains(here, `"findings"`) {
			t.Errorf("%s:\n%s\non ARM:\n%s", path, here, there)
		}
	}
}

// outcome returns the output of a command and how it ended.
func outcome(t *testing.T, cmd *exec.Cmd) string {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, &stderr)
	}
	return string(out) + stderr.String()
}
