package cuda

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"fencepost.dev/fencepost/internal/cuda/calls"
)

// The waiting times for processes that outlive the program: for those that may use the device, since the newest call of
// any of them; for the others, since the program's end. The last is the time for a stopped program to write its
// buffered output.
var lingerUsers, lingerOthers, lingerStopped = 10 * time.Second, time.Second, 300 * time.Millisecond

// Linger is the waiting time, since the newest call, for processes that use the device.
func Linger() time.Duration { return lingerUsers }

// Supported returns the error of Run on systems on which programs cannot run. On this one they can.
func Supported() error { return nil }

// Run starts a program with a device and waits for its end, and for the end of its descendants while they use the
// device. Each process is a context of its own. When ctx ends, all of them are killed, and the error is ctx's.
// Otherwise the error says why the program could not be started; the way in which it ended is not an error.
func Run(ctx context.Context, opts RunOptions) (ExitStatus, error) {
	adopt()
	srv, err := newServer(opts.Device)
	if err != nil {
		return ExitStatus{}, fmt.Errorf("socket for the program: %w", err)
	}
	serving, stop := context.WithCancelCause(ctx)
	defer stop(ErrEnded)
	go srv.serve(serving)

	r := &running{cmd: command(opts, srv.name), srv: srv}
	if err := r.start(); err != nil {
		srv.close()
		return ExitStatus{}, err
	}
	runErr := r.wait(ctx)
	var st ExitStatus
	if ctx.Err() == nil {
		st.Left, st.Users = r.outlived(ctx)
	}
	stopped := ctx.Err()
	if stopped != nil {
		st.Host = srv.where()
		stop(context.Cause(ctx)) // the launches end for this reason, not because their process ends
		r.kill()
	}
	stop(ErrEnded)
	st.Faults, st.Unsupported, st.Unheard = srv.close(), opts.Device.Unsupported(), srv.notes()
	st.Undelivered = stopped == nil && (srv.refused || opts.Device.undelivered() > 0)
	st.Code = -1
	if ps := r.cmd.ProcessState; ps != nil {
		if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			st.Signal = ws.Signal()
		} else {
			st.Code = ps.ExitCode()
		}
	}
	if stopped == nil {
		return st, runErr
	}
	if opts.Stdout != nil {
		_, err = opts.Stdout.Write(srv.unprinted.Bytes())
	}
	return st, errors.Join(stopped, err)
}

// adopt makes this process the parent of its orphaned descendants, so that a daemon stays visible.
var adopt = sync.OnceFunc(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })

// command prepares the program's process, with a process group of its own unless it must read the terminal.
func command(opts RunOptions, socket string) *exec.Cmd {
	cmd := exec.Command(opts.Path, opts.Args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = opts.Dir, opts.Stdin, opts.Stdout, opts.Stderr
	env := opts.Env
	if env == nil {
		env = os.Environ()
	}
	cmd.Env = append(withThreads(withLibraries(env, opts.Libraries), opts.Libraries, cmd.Path), calls.Env+"="+socket)
	f, ok := opts.Stdin.(*os.File)
	onTerminal := ok && term.IsTerminal(int(f.Fd()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !onTerminal}
	if !opts.Outlives {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	// A grandchild that keeps an output open must not delay the end of the run.
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// withLibraries prepends a folder to LD_LIBRARY_PATH.
func withLibraries(env []string, folder string) []string {
	const name = "LD_LIBRARY_PATH="
	var out []string
	path := folder
	for _, e := range env {
		switch {
		case strings.HasPrefix(e, calls.Env+"="):
		case strings.HasPrefix(e, name) && folder != "":
			if old := e[len(name):]; old != "" {
				path += ":" + old
			}
		default:
			out = append(out, e)
		}
	}
	if folder != "" {
		out = append(out, name+path)
	}
	return out
}

// withThreads makes the library that observes host threads the first one (LD_PRELOAD). A program with a sanitizer whose
// own library must be first is left alone: its threads are one agent.
func withThreads(env []string, folder, program string) []string {
	const name = "LD_PRELOAD="
	library := filepath.Join(folder, calls.ThreadsLibrary)
	if _, err := os.Stat(library); folder == "" || err != nil || sanitized(program) {
		return env
	}
	var out []string
	for _, e := range env {
		if old, ok := strings.CutPrefix(e, name); !ok {
			out = append(out, e)
		} else if old != "" {
			library += ":" + old
		}
	}
	return append(out, name+library)
}

// sanitized reports whether a program needs the library of a sanitizer.
func sanitized(program string) bool {
	f, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer f.Close()
	needed, _ := f.ImportedLibraries()
	return slices.ContainsFunc(needed, func(l string) bool {
		return strings.HasPrefix(l, "libasan.") || strings.HasPrefix(l, "libtsan.") || strings.HasPrefix(l, "libhwasan.")
	})
}

// running is a running program.
type running struct {
	cmd  *exec.Cmd
	srv  *server
	done chan error // receives the result of waiting
	over bool       // done was received
}

// start starts a program that is killed when this process is, unless it outlives it. Linux kills it when the thread
// that started it ends, so that thread is kept until then.
func (r *running) start() error {
	begun := make(chan error)
	r.done = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		if err == nil {
			started.set(r.cmd.Process.Pid, true)
			defer started.set(r.cmd.Process.Pid, false)
		}
		begun <- err
		if err == nil {
			r.done <- r.cmd.Wait()
		}
	}()
	return <-begun
}

// own reports whether the program leads a process group of its own.
func (r *running) own() bool { return r.cmd.SysProcAttr.Setpgid }

// signal sends a signal to the program and its group.
func (r *running) signal(s syscall.Signal) {
	target := r.cmd.Process.Pid
	if r.own() {
		target = -target // the group may continue without its leader
	} else if r.over {
		return
	}
	_ = syscall.Kill(target, s)
}

// wait waits for the program and forwards signals to it, until ctx ends.
func (r *running) wait(ctx context.Context) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	for {
		select {
		case err := <-r.done:
			r.over = true
			return startError(err)
		case s := <-signals:
			// On a terminal the program is in this process's group and has received the signal itself.
			sig, ok := s.(syscall.Signal)
			if !ok || !r.own() && sig != syscall.SIGTERM {
				continue
			}
			if (sig == syscall.SIGINT || sig == syscall.SIGTERM) && !r.catches(sig) {
				// The program would die with its buffered standard output. These signals end the run as well, which
				// then asks the program to write its output.
				select {
				case err := <-r.done: // treat it as one that has just ended and handles nothing any more
					r.over = true
					return startError(err)
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(lingerStopped):
				}
			}
			r.signal(sig)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// catches reports whether the program, or a process that it has started, has a handler for a signal.
func (r *running) catches(sig syscall.Signal) bool {
	if handles(r.cmd.Process.Pid, sig) {
		return true
	}
	family, _ := r.family()
	for pid := range family {
		if handles(pid, sig) {
			return true
		}
	}
	return false
}

// outlived waits for the processes that the program has left behind, and returns the names of those that remain.
func (r *running) outlived(ctx context.Context) (left, users []string) {
	began := time.Now()
	var before map[int]bool
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		left, users, ended := r.survivors()
		if r.srv.idle() > 0 {
			r.srv.emptyAll() // a process that posts is not idle
		}
		idle := min(r.srv.idle(), time.Since(began))
		switch {
		case len(left) == 0 && len(users) == 0:
			// A process that ended while the list was made may have started another that is not in it.
			if before != nil && maps.Equal(before, ended) {
				return nil, nil
			}
			before = ended
			continue
		case len(users) > 0 && idle >= lingerUsers, len(users) == 0 && idle >= lingerOthers:
			return left, users
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// survivors returns the names of the processes of the run, without the program itself: those that use the device, or
// run a program that has used it, and the others.
func (r *running) survivors() (left, users []string, ended map[int]bool) {
	connected, programs := r.srv.users()
	family, ended := r.family()
	for pid, st := range family {
		program, known := executable(pid)
		if connected[pid] || known && programs[program] {
			users = append(users, st.name)
		} else {
			left = append(left, st.name)
		}
	}
	slices.Sort(left)
	slices.Sort(users)
	return slices.Compact(left), slices.Compact(users), ended
}

// family finds the processes that the program and its descendants have started. Each has a connection, the program's
// process group, or its environment; or it has none of these and is an orphan that this process has adopted (this
// process's own children, such as compilers, are in its group). Parents are not followed, because one that ends
// meanwhile would hide its children. ended are the orphans that have ended.
func (r *running) family() (out map[int]procStat, ended map[int]bool) {
	connected, _ := r.srv.users()
	self, own := os.Getpid(), unix.Getpgrp()
	living, ended := processes()
	out = map[int]procStat{}
	for pid, st := range living {
		if pid == self || started.has(pid) {
			continue
		}
		name, set := variable(pid, calls.Env)
		orphan := !set && st.parent == self && st.group != own
		if connected[pid] || name == r.srv.name || orphan || r.own() && st.group == r.cmd.Process.Pid {
			out[pid] = st
		}
	}
	return out, ended
}

// started are the processes that Run has started: children of this process that are not orphans.
var started pidSet

// pidSet is a set of processes. Its methods may be called concurrently.
type pidSet struct {
	mu   sync.Mutex
	pids map[int]bool
}

func (s *pidSet) has(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pids[pid]
}

func (s *pidSet) set(pid int, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pids == nil {
		s.pids = map[int]bool{}
	}
	if in {
		s.pids[pid] = true
	} else {
		delete(s.pids, pid)
	}
}

// kill ends the program and its descendants. It first asks them to write their buffered standard output, and continues
// stopped ones for that.
func (r *running) kill() {
	everyone := func(sig syscall.Signal) {
		r.signal(sig)
		family, _ := r.family()
		for pid := range family {
			_ = syscall.Kill(pid, sig)
		}
	}
	everyone(calls.FlushSignal)
	everyone(syscall.SIGCONT)
	r.await(lingerStopped)
	everyone(syscall.SIGKILL)
	r.await(lingerStopped)
}

// await waits for the program, at most until limit: this process cannot kill a process of another user.
func (r *running) await(limit time.Duration) {
	if r.over {
		return
	}
	select {
	case <-r.done:
		r.over = true
	case <-time.After(limit):
	}
}

// startError returns an error of waiting that is more than the way in which the program ended.
func startError(err error) error {
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}
