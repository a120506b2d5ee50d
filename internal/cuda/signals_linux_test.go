package cuda

import (
	"bytes"
	"context"
	"errors"
	"net"
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
		r := &running{srv: &server{name: "none"}, cmd: exec.Command("/bin/sh", "-c", "trap 'printf \" HUP\"' HUP; trap 'printf \" TERM\"; exit 7' TERM; printf ready; while :; do sleep 0.01; done")}
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

// TestInterrupted does not hand SIGINT and SIGTERM to a program that has no handler for them if they end the run: it would die with
// what its standard output holds back. One that has a handler gets them.
func TestInterrupted(t *testing.T) {
	needTool(t, "sh")
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, trap := range []bool{false, true} {
			script := "printf ready; exec sleep 600"
			if trap {
				script = "trap 'printf \" caught\"' INT TERM; printf ready; while :; do sleep 0.01; done"
			}
			var out lockedBuffer
			r := &running{cmd: exec.Command("/bin/sh", "-c", script), srv: &server{name: "none"}}
			r.cmd.Stdout = &out
			r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			if err := r.start(); err != nil {
				t.Fatal(err)
			}
			// Shells catch SIGINT until they are sleep.
			until(t, "the program to begin", func() bool { return out.String() == "ready" && (trap || !handles(r.cmd.Process.Pid, sig)) })
			if got := r.catches(sig); got != trap {
				t.Errorf("%v is caught: %v, want %v", sig, got, trap)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- r.wait(ctx) }()
			if trap {
				until(t, "the program to catch it", func() bool {
					syscall.Kill(os.Getpid(), sig)
					<-signals
					return strings.Contains(out.String(), "caught")
				})
				cancel()
			} else {
				time.Sleep(20 * time.Millisecond) // until r waits for signals; too short a time passes too
				syscall.Kill(os.Getpid(), sig)
				<-signals
				cancel()
			}
			if err := <-done; err != context.Canceled || r.over {
				t.Errorf("%v: %v, over %v", sig, err, r.over)
			}
			r.signal(syscall.SIGKILL)
			r.await(time.Minute)
		}
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
	if !r.over {
		t.Error("a program that has ended is not over")
	}
	r.done <- nil
	if r.await(time.Hour); len(r.done) != 1 {
		t.Error("a program that is over is waited for")
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
	if cmd = command(RunOptions{Path: "/bin/x", Outlives: true}, "sock"); cmd.SysProcAttr.Pdeathsig != 0 || !cmd.SysProcAttr.Setpgid {
		t.Errorf("%+v", cmd.SysProcAttr)
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

// TestFamily tells the processes of a run from others: by their environment, their group, or as orphans that this process has
// adopted. Those that this process has started by itself are none.
func TestFamily(t *testing.T) {
	needTool(t, "sleep")
	s := newTestServer(t)
	begin := func(group int, env ...string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sleep", "60")
		cmd.Env = append([]string{"BEGUN=1"}, env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group >= 0, Pgid: max(group, 0)}
		return cmd
	}
	r := &running{srv: s, cmd: begin(0, "FENCEPOST_SOCKET="+s.name)}
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	leader := r.cmd.Process.Pid
	const none, same = 0, -1
	for _, c := range []struct {
		name  string
		cmd   *exec.Cmd
		ours  bool // it counts as started by us
		found bool
	}{
		{"compiler", begin(same), false, false},
		{"orphan", begin(none), false, true},
		{"program of another run", begin(none, "FENCEPOST_SOCKET=x"), false, false},
		{"program started by us", begin(none), true, false},
		{"descendant", begin(same, "FENCEPOST_SOCKET="+s.name), false, true},
		{"descendant in the group", begin(leader, "FENCEPOST_SOCKET=x"), false, true},
	} {
		if err := c.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := c.cmd.Process.Pid
		started.set(pid, c.ours)
		until(t, "the process to begin", func() bool { _, set := variable(pid, "BEGUN"); return set })
		family, ended := r.family()
		if _, found := family[pid]; found != c.found || found && family[pid].name != "sleep" || ended[pid] {
			t.Errorf("%s: %+v, found %v", c.name, family[pid], found)
		}
		for _, other := range []int{os.Getpid(), leader} {
			if _, found := family[other]; found {
				t.Errorf("process %d is among them", other)
			}
		}
		left, users, _ := r.survivors()
		if slices.Contains(left, "sleep") != c.found || len(users) != 0 {
			t.Errorf("%s: left %q, users %q", c.name, left, users)
		}
		s.conns[&net.UnixConn{}] = int32(pid)
		if left, users, _ = r.survivors(); !slices.Equal(users, []string{"sleep"}) == !c.ours || slices.Contains(left, "sleep") {
			t.Errorf("%s with a connection: left %q, users %q", c.name, left, users)
		}
		clear(s.conns)
		id, _ := executable(pid)
		s.programs[id] = true
		if left, users, _ = r.survivors(); slices.Contains(users, "sleep") != c.found || slices.Contains(left, "sleep") {
			t.Errorf("%s whose program has used the device: left %q, users %q", c.name, left, users)
		}
		clear(s.programs)
		c.cmd.Process.Kill()
		c.cmd.Wait()
		started.set(pid, false)
	}
	r.signal(syscall.SIGKILL)
	r.await(time.Minute)
}
