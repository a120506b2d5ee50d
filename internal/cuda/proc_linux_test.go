package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// TestNoProcess asks for a process that does not exist, and for this one.
func TestNoProcess(t *testing.T) {
	const none = 1 << 30
	self := os.Getpid()
	if f, err := watchEnd(none); err == nil || f != nil {
		t.Errorf("its end: %v, %v", f, err)
	}
	if _, ok := statOf(none); ok {
		t.Error("it has a state")
	}
	if v, set := variable(none, "PATH"); set || v != "" {
		t.Errorf("it has a variable, %q", v)
	}
	if id, ok := executable(none); ok || id != (fileID{}) {
		t.Errorf("it runs %v", id)
	}
	if known, maps := mapsDevice(none, 4096); !known || maps {
		t.Errorf("it has the memory: %v, %v", known, maps)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(exe, &st); err != nil {
		t.Fatal(err)
	}
	if id, ok := executable(self); !ok || id != (fileID{st.Dev, st.Ino}) {
		t.Errorf("this process runs %v, %v; want %v", id, ok, st)
	}
	d := newScript(t).c.dev
	at := uint64(addressOf(d.backing))
	for addr, want := range map[uint64]bool{at: true, at + 4096: false, at - 4096: false} {
		if known, maps := mapsDevice(self, addr); !known || maps != want {
			t.Errorf("the memory at %#x: %v, %v, want %v", addr, known, maps, want)
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	write.Write([]byte("x"))
	read.SetReadDeadline(time.Now().Add(10 * time.Second)) // else a defect would hang here
	if !waitReadable(read) {
		t.Error("what holds a byte is not readable")
	}
	write.Close()
	read.Close()
	if waitReadable(read) || waitReadable(nil) {
		t.Error("a closed file is readable")
	}
}

// TestWithLibraries checks the environment of a program.
func TestWithLibraries(t *testing.T) {
	for _, r := range []struct{ env, folder, want string }{
		{"A=1 B=2", "", "A=1 B=2"},
		{"A=1", "/lib", "A=1 LD_LIBRARY_PATH=/lib"},
		{"LD_LIBRARY_PATH=/a:/b A=1", "/lib", "A=1 LD_LIBRARY_PATH=/lib:/a:/b"},
		{"LD_LIBRARY_PATH= A=1", "/lib", "A=1 LD_LIBRARY_PATH=/lib"},
		{"LD_LIBRARY_PATH=/a", "", "LD_LIBRARY_PATH=/a"},
		{"FENCEPOST_SOCKET=x FENCEPOST_SOCKETS=y XLD_LIBRARY_PATH=z", "/lib", "FENCEPOST_SOCKETS=y XLD_LIBRARY_PATH=z LD_LIBRARY_PATH=/lib"},
	} {
		if got := strings.Join(withLibraries(strings.Fields(r.env), r.folder), " "); got != r.want {
			t.Errorf("%s with %q: %s, want %s", r.env, r.folder, got, r.want)
		}
	}
}
