package cuda

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lockedBuffer is a buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestSignals hands signals on to a program: all where it has a process group of its own, otherwise SIGTERM alone, because a
// terminal sends the others to it as well.
func TestSignals(t *testing.T) {
	needTool(t, "sh")
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM)
	defer signal.Stop(signals)
	for own, want := range map[bool][]string{true: {"ready", "HUP", "TERM"}, false: {"ready", "TERM"}} {
		var out lockedBuffer
		r := &running{cmd: exec.Command("/bin/sh", "-c", "trap 'printf \" HUP\"' HUP; trap 'printf \" TERM\"; exit 7' TERM; printf ready; while :; do sleep 0.01; done")}
		r.cmd.Stdout = &out
		r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: own, Pdeathsig: syscall.SIGKILL}
		if r.own() != own {
			t.Errorf("a group of its own: %v", r.own())
		}
		if err := r.start(); err != nil {
			t.Fatal(err)
		}
		pid := r.cmd.Process.Pid
		if !started.has(pid) {
			t.Error("it counts as an orphan")
		}
		done := make(chan error, 1)
		go func() { done <- r.wait(context.Background()) }()
		until(t, "the program to begin", func() bool { return out.String() == "ready" })
		// The first may come before r waits for signals.
		send := func(s syscall.Signal) {
			syscall.Kill(os.Getpid(), s)
			<-signals
		}
		hups := 0
		until(t, "the program to catch the first", func() bool {
			send(syscall.SIGHUP)
			hups++
			return own && strings.HasSuffix(out.String(), " HUP") || !own && hups > 5
		})
		until(t, "the program to end", func() bool {
			send(syscall.SIGTERM)
			return len(done) > 0
		})
		got := slices.Compact(strings.Fields(out.String()))
		if err := <-done; err != nil || !slices.Equal(got, want) || !r.over || r.cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("own group %v: %q, %v, %v; want %q", own, got, err, r.cmd.ProcessState, want)
		}
		until(t, "the process to be forgotten", func() bool { return !started.has(pid) })
	}
}

// TestAwait waits for a program that has ended, and for one that does not.
func TestAwait(t *testing.T) {
	r := &running{done: make(chan error, 1)}
	r.await(time.Millisecond)
	if r.over {
		t.Error("a program that runs is over")
	}
	r.done <- nil
	r.await(time.Hour)
	r.await(time.Hour)
	if !r.over {
		t.Error("a program that has ended is not over")
	}
}

// TestStartError checks which errors of waiting are more than how a program ended.
func TestStartError(t *testing.T) {
	other := errors.New("another")
	for in, want := range map[error]error{nil: nil, &exec.ExitError{}: nil, exec.ErrWaitDelay: nil, other: other} {
		if got := startError(in); got != want {
			t.Errorf("%v becomes %v", in, got)
		}
	}
	r := &running{cmd: exec.Command("/no/such/program")}
	if err := r.start(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestCommand prepares programs: input, environment, group.
func TestCommand(t *testing.T) {
	t.Setenv("A", "1")
	cmd := command(RunOptions{Path: "/bin/x", Args: []string{"a", "b"}, Dir: "/d", Libraries: "/lib"}, "sock")
	env := strings.Join(cmd.Env, " ") + " "
	if cmd.Path != "/bin/x" || strings.Join(cmd.Args, " ") != "/bin/x a b" || cmd.Dir != "/d" || !cmd.SysProcAttr.Setpgid || cmd.SysProcAttr.Pdeathsig != syscall.SIGKILL ||
		!strings.Contains(env, "A=1 ") || !strings.HasSuffix(env, "FENCEPOST_SOCKET=sock ") {
		t.Errorf("%+v", cmd)
	}
	cmd = command(RunOptions{Path: "/bin/x", Env: []string{"B=2"}}, "sock")
	if got := strings.Join(cmd.Env, " "); got != "B=2 FENCEPOST_SOCKET=sock" {
		t.Errorf("environment %q", got)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if cmd = command(RunOptions{Path: "/bin/x", Stdin: null}, "sock"); !cmd.SysProcAttr.Setpgid || cmd.Stdin != null {
		t.Errorf("%+v reads the terminal", cmd)
	}
}
