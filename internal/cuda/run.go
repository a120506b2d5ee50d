package cuda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"fencepost.dev/fencepost/internal/cuda/calls"
)

// RunOptions say what program to run and how.
type RunOptions struct {
	Path string
	Args []string // without the program's name
	Env  []string // as os.Environ gives it; nil means this process's
	Dir  string   // working directory; "" means this process's

	Stdin          io.Reader // nil: empty. An *os.File is handed on as it is
	Stdout, Stderr io.Writer

	Device *Device
	// Libraries is the folder of the stand-in libraries (standin.Build), put before LD_LIBRARY_PATH. "" puts none.
	Libraries string
}

// ExitStatus is how a program ended.
type ExitStatus struct {
	Code   int            // exit code; -1 when a signal ended it
	Signal syscall.Signal // 0 when it exited
	// Unsupported lists the API calls the program made that are not supported, sorted.
	Unsupported []string
	// Faults are connections that broke the protocol: an old static library, or memory corruption in the program.
	Faults []error
}

// Run starts a program with a device and waits for its end. The program and its children may use the device; each process is a
// context of its own. When ctx ends, the program is killed with its process group, and the error is ctx's. Otherwise
// the error says why the program could not be started; how it ended is no error.
func Run(ctx context.Context, opts RunOptions) (ExitStatus, error) {
	dir, err := socketFolder()
	if err != nil {
		return ExitStatus{}, fmt.Errorf("folder for the program's socket: %w", err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "device")
	srv, err := newServer(opts.Device, socket)
	if err != nil {
		return ExitStatus{}, fmt.Errorf("socket for the program: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go srv.serve(serving)

	cmd := command(opts, socket)
	if err := cmd.Start(); err != nil {
		srv.close()
		return ExitStatus{}, err
	}
	runErr := wait(ctx, cmd, srv)
	stop()
	st := ExitStatus{Faults: srv.close(), Unsupported: opts.Device.Unsupported()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		st.Code, st.Signal = -1, ws.Signal()
	} else {
		st.Code = cmd.ProcessState.ExitCode()
	}
	if ctx.Err() != nil {
		return st, ctx.Err()
	}
	return st, runErr
}

// socketFolder makes a folder that nobody else can enter. The path of a socket is bounded (108 bytes on Linux), so a
// long TMPDIR is passed over.
func socketFolder() (string, error) {
	const longest = 80
	parent := os.TempDir()
	if len(parent) > longest {
		parent = "/tmp"
	}
	return os.MkdirTemp(parent, "fencepost-")
}

// command prepares the program's process: its own group unless it must read the terminal.
func command(opts RunOptions, socket string) *exec.Cmd {
	cmd := exec.Command(opts.Path, opts.Args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = opts.Dir, opts.Stdin, opts.Stdout, opts.Stderr
	env := opts.Env
	if env == nil {
		env = os.Environ()
	}
	cmd.Env = append(withLibraries(env, opts.Libraries), calls.Env+"="+socket)
	f, ok := opts.Stdin.(*os.File)
	onTerminal := ok && term.IsTerminal(int(f.Fd()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !onTerminal}
	// A grandchild that keeps an output open does not keep the run from ending.
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// withLibraries puts a folder before LD_LIBRARY_PATH.
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

// wait waits for the program, hands signals on to it, and kills it when ctx ends.
func wait(ctx context.Context, cmd *exec.Cmd, srv *server) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	own := cmd.SysProcAttr.Setpgid
	target := cmd.Process.Pid
	if own {
		target = -target
	}
	for {
		select {
		case err := <-done:
			return startError(err)
		case s := <-signals:
			// On a terminal the program is in our group and got the signal itself.
			if sig, ok := s.(syscall.Signal); ok && (own || sig == syscall.SIGTERM) {
				_ = syscall.Kill(target, sig)
			}
		case <-ctx.Done():
			_ = syscall.Kill(target, syscall.SIGKILL)
			for _, pid := range srv.pids() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			<-done
			return ctx.Err()
		}
	}
}

// startError keeps an error of waiting that is not just how the program ended.
func startError(err error) error {
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}
