package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestProcStat reads the state of a process whose name looks like the rest of the line, and of some others.
func TestProcStat(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("sleep is not installed")
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "x) Z 1 1 (y")
	if err := os.WriteFile(name, program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "60")
	cmd.Env = []string{"AB=1", "B=2"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	pid, self := cmd.Process.Pid, os.Getpid()
	// Start returns while the kernel still sets the new program up.
	until(t, "the program to begin", func() bool { _, set := variable(pid, "AB"); return set })
	st, ok := statOf(pid)
	if !ok || st.name != filepath.Base(name) || st.parent != self || st.state == 'Z' || st.group == 0 {
		t.Errorf("%+v, %v", st, ok)
	}
	if v, set := variable(pid, "B"); !set || v != "2" {
		t.Errorf("variable B is %q, %v", v, set)
	}
	if v, set := variable(pid, "A"); set {
		t.Errorf("variable A is %q", v)
	}
	for p, want := range map[int]bool{self: true, pid: true, 1: false, os.Getppid(): false, 1 << 30: false} {
		if ours(p) != want {
			t.Errorf("ours(%d) is %v", p, !want)
		}
	}
	if living, _ := processes(); living[pid].parent != self {
		t.Errorf("process %d is not among those that run", pid)
	}
	if known, maps := mapsDevice(pid, 1<<45); !known || maps {
		t.Errorf("sleep has the device's memory: %v, %v", known, maps)
	}
	cmd.Process.Kill()
	until(t, "the process to end", func() bool { _, ended := processes(); return ended[pid] })
	if known, maps := mapsDevice(pid, 1<<45); !known || maps {
		t.Errorf("a process that has ended has the device's memory: %v, %v", known, maps)
	}
}
