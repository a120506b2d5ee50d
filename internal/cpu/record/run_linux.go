package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"fencepost.dev/fencepost/internal/cpu"
)

// Supported returns an error if this system cannot record programs. On Linux it returns nil.
func Supported() error { return nil }

// linger is how long Run waits for processes that outlive the program.
const linger = 10 * time.Second

// session is the shared memory of a run.
type session struct {
	file *os.File
	mem  []byte
	done []chan Recorded // by process
	over chan struct{}   // the program has ended
}

// Run runs a program that "fencepost cc" built, and passes on its events. When ctx ends, Run kills the program; the
// events until then count. Run returns an error if it could not start the program.
func Run(ctx context.Context, o Options) (Result, error) {
	s, err := newSession()
	if err != nil {
		return Result{}, err
	}
	defer s.close()
	stopped := make(chan struct{})
	go s.accept(o.Process, stopped)
	cmd := command(&o, s.file)
	code, sig, err := wait(ctx, cmd)
	close(s.over)
	<-stopped
	if err != nil {
		return Result{}, err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	out := Result{Exit: code, Signal: sig, Processor: used, Unseen: max(0, int(atomic.LoadUint32(s.half(4)))-processes)}
	for _, done := range s.done {
		out.Processes = append(out.Processes, <-done)
	}
	return out, nil
}

func newSession() (*session, error) {
	fd, err := unix.MemfdCreate("fencepost-records", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for records: memfd_create: %w", err)
	}
	s := &session{file: os.NewFile(uintptr(fd), "fencepost-records"), over: make(chan struct{})}
	if err = unix.Ftruncate(fd, fileBytes); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		s.mem, err = unix.Mmap(fd, 0, fileBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	}
	if err != nil {
		s.file.Close()
		return nil, fmt.Errorf("memory for records, of %d bytes (address space, most of it never used): %w", uint64(fileBytes), err)
	}
	atomic.StoreUint32(s.half(0), version)
	return s, nil
}

func (s *session) half(at int) *uint32 { return (*uint32)(unsafe.Pointer(&s.mem[at])) }

func (s *session) close() {
	_ = unix.Munmap(s.mem)
	_ = s.file.Close()
}

// accept reads each process that requests a region, until the program and all these processes have ended.
func (s *session) accept(begin func(*Names) func([]cpu.Event), stopped chan<- struct{}) {
	defer close(stopped)
	for over := false; ; {
		for n := min(int(atomic.LoadUint32(s.half(4))), processes); len(s.done) < n; {
			region := s.mem[fileHead+len(s.done)*regionBytes:][:regionBytes]
			p := newProcess(region, nil)
			names := &Names{process: p}
			p.asm.sink = begin(names)
			done := make(chan Recorded, 1)
			s.done = append(s.done, done)
			go func() { done <- p.read(s.over, names) }()
		}
		if over {
			return
		}
		select {
		case <-s.over:
			over = true // one more pass
		case <-time.After(time.Millisecond):
		}
	}
}

// read reads the records of the process until it has ended.
func (p *process) read(over <-chan struct{}, names *Names) Recorded {
	var ended time.Time // when the program ended
	for pause := time.Duration(0); ; {
		if p.drain() {
			pause = 0
			continue
		}
		p.asm.flush()
		if !alive(int(atomic.LoadUint32(p.half(headPid)))) { // the process may have written more before it ended
			if !p.drain() && !p.skip() {
				break
			}
			continue
		}
		if ended.IsZero() {
			select {
			case <-over:
				ended = time.Now()
			default:
			}
		} else if time.Since(ended) > linger {
			p.asm.problem("what it did when the program had ended %s before", linger)
			break
		}
		pause = min(pause+20*time.Microsecond, 2*time.Millisecond)
		time.Sleep(pause)
	}
	atomic.StoreUint32(p.half(headStop), 1)
	return p.recorded(names)
}

func (p *process) recorded(names *Names) Recorded {
	a := p.asm
	a.flush()
	names.keep()
	if n := atomic.LoadUint32(p.half(headLost)); n > 0 {
		a.problem("%d threads beyond the %d that are recorded at a time", n, slotCount)
	}
	if n := atomic.LoadUint32(p.half(headSignals)); n > 0 {
		a.problem("%d accesses of signal handlers that interrupted the recorder", n)
	}
	return Recorded{Names: names, Events: a.count, Threads: len(a.ids), Variables: int(a.memory.count), Syncs: len(a.syncs), Problems: a.problems}
}

// alive reports whether a process runs. A process that has requested a region and not yet stored its number counts as
// running. So does a process whose first thread has ended before others.
func alive(pid int) bool {
	if pid == 0 {
		return true
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // fields from the third on
	const state, threads = 0, 17
	if len(fields) <= threads {
		return false
	}
	return fields[state] != "X" && (fields[state] != "Z" || fields[threads] != "0" && fields[threads] != "1")
}

// command returns the command for the program. The program gets its own process group, unless it must read the
// terminal.
func command(o *Options, file *os.File) *exec.Cmd {
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=/proc/%d/fd/%d", EnvName, os.Getpid(), file.Fd()))
	in, ok := o.Stdin.(*os.File)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !ok || !term.IsTerminal(int(in.Fd()))}
	if !o.Outlives {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	cmd.WaitDelay = 2 * time.Second // a process that outlives the program may keep an output open
	return cmd
}

// wait runs a program, forwards signals to it, and kills it when ctx ends.
func wait(ctx context.Context, cmd *exec.Cmd) (code int, sig syscall.Signal, err error) {
	begun, done := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig refers to the thread that starts the program
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	if err := <-begun; err != nil {
		return 0, 0, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	send := func(s syscall.Signal) {
		if cmd.SysProcAttr.Setpgid {
			_ = syscall.Kill(-cmd.Process.Pid, s)
		} else if s == syscall.SIGKILL || s == syscall.SIGTERM {
			_ = cmd.Process.Signal(s)
		}
	}
	for stop := ctx.Done(); ; {
		select {
		case err := <-done:
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
				return 0, 0, err
			}
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				return 128 + int(ws.Signal()), ws.Signal(), nil
			}
			return cmd.ProcessState.ExitCode(), 0, nil
		case s := <-signals:
			send(s.(syscall.Signal))
		case <-stop:
			stop = nil
			send(syscall.SIGKILL)
		}
	}
}
