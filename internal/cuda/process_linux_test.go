package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// processCase is what is expected of one of the programs in testdata/process.
type processCase struct {
	launches    string // that ended well
	errors      string // in the errors of the others
	code        int
	undelivered bool
	unheard     string // their texts
	users, left string
	faults      bool // connections may break
}

var processCases = map[string]processCase{
	"once":                     {launches: "add"},
	"closes":                   {launches: "add add add"},
	"closes_first":             {launches: "add"},
	"reuses":                   {launches: "add add add"},
	"shuts_down":               {launches: "add add add"},
	"loses_environment":        {launches: "add"},
	"leaves_network":           {launches: "add"},
	"leaves_root":              {launches: "add"},
	"few_descriptors":          {launches: "add"},
	"no_descriptors":           {unheard: "Too many open files"},
	"no_room":                  {unheard: "Cannot allocate memory"},
	"small_files":              {launches: "add"},
	"forbids":                  {launches: "add", undelivered: true},
	"interrupted":              {launches: strings.Repeat("add ", 50) + "spin"},
	"nested":                   {launches: "add spin add", undelivered: true},
	"cancelled":                {launches: "add spin add"},
	"jumps":                    {errors: ErrEnded.Error(), undelivered: true},
	"leaves_thread":            {launches: "add", errors: ErrEnded.Error()},
	"forks":                    {launches: "add add", unheard: "add"},
	"forks_among_threads":      {launches: "add add"},
	"spawns":                   {launches: "add add add"},
	"empty_environment":        {launches: "add"},
	"empty_environment_orphan": {launches: "add"},
	"daemonizes":               {launches: "add"},
	"lingers":                  {launches: "add", users: "prog"},
	"leaves_sleeper":           {launches: "add", left: "sleep"},
	"truncates":                {launches: "add add"},
	"covers":                   {launches: "add add", undelivered: true},
	"killed_child":             {launches: "add", errors: ErrEnded.Error()},
	"killed_before_us":         {launches: "add", errors: ErrEnded.Error()},
	"killed":                   {errors: ErrEnded.Error(), code: -1},
	"no_output":                {launches: "add"},
	"loads_at_run_time":        {launches: "add add add"},
	"replaces_itself":          {launches: "add add"},
}

// newProcessDevice makes a device whose launches end by themselves alone.
func newProcessDevice(t *testing.T) (*Device, *log) {
	t.Helper()
	l := &log{}
	d, err := NewDevice(Config{Engine: engine.NewRef(), Sink: l, Needs: event.NeedHost, MemorySize: 1 << 30,
		OnLaunch: func(r LaunchReport) { l.launches = append(l.launches, r) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, l
}

// TestProcesses runs programs that close descriptors, fork, exec, catch signals and so on. What they do with the device is
// seen, or it is named as not seen; nothing hangs.
func TestProcesses(t *testing.T) {
	users, others := lingerUsers, lingerOthers
	lingerUsers, lingerOthers = time.Second, 300*time.Millisecond
	defer func() { lingerUsers, lingerOthers = users, others }()
	exe := compileProcess(t)
	for _, name := range sortedKeys(processCases) {
		t.Run(name, func(t *testing.T) { runProcess(t, exe, name, processCases[name]) })
	}
}

func compileProcess(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs("testdata/process/process.c")
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, source, []string{"-lcudart_static", "-lpthread", "-ldl", "-O1"})
}

func runProcess(t *testing.T, exe, name string, want processCase) {
	d, l := newProcessDevice(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	began := time.Now()
	st, err := Run(ctx, RunOptions{Path: exe, Args: []string{name}, Stdout: &out, Stderr: &errs, Device: d, Libraries: libs(t)})
	if err != nil {
		t.Fatalf("%v after %v; stdout %q, stderr %q", err, time.Since(began), out.String(), errs.String())
	}
	if len(st.Faults) > 0 && !want.faults {
		t.Errorf("protocol faults: %v", st.Faults)
	}
	var launches, failed, unheard []string
	for _, r := range l.launches {
		if r.Err != nil {
			failed = append(failed, r.Err.Error())
		} else {
			launches = append(launches, r.Kernel)
		}
	}
	for _, u := range st.Unheard {
		unheard = append(unheard, u.Text)
	}
	got := fmt.Sprintf("launches %q, errors %q, exit %d, undelivered %v, unheard %q, users %q, left %q", strings.Join(launches, " "),
		strings.Join(failed, " "), st.Code, st.Undelivered, strings.Join(unheard, " "), strings.Join(st.Users, " "), strings.Join(st.Left, " "))
	expect := fmt.Sprintf("launches %q, errors %q, exit %d, undelivered %v, unheard %q, users %q, left %q", want.launches, want.errors, want.code,
		want.undelivered, want.unheard, want.users, want.left)
	if got != expect {
		t.Errorf("got  %s\nwant %s\nstdout %q, stderr %q", got, expect, out.String(), errs.String())
	}
}

// TestStopped stops programs that would go on for ever. Each ends within a second, with what it had printed, and it is said
// where the host was.
func TestStopped(t *testing.T) {
	exe := compileProcess(t)
	for name, want := range map[string]struct{ out, host string }{
		"stops":          {"held back", "before its first CUDA call"},
		"loops":          {"held back", "before its first CUDA call"},
		"loops_later":    {"held back", "after a memory copy"},
		"spins_on":       {"held back", "in a kernel launch"},
		"blocks_signals": {"", "before its first CUDA call"},
		"leaves_group":   {"", "before its first CUDA call"},
	} {
		t.Run(name, func(t *testing.T) {
			// A busy machine may keep this process waiting: the quickest of three runs counts.
			const limit = 400 * time.Millisecond
			took := time.Duration(math.MaxInt64)
			for i := 0; i < 3 && took > limit+time.Second; i++ {
				took = min(took, stopAfter(t, limit, exe, name, want.out, want.host))
			}
			if took > limit+time.Second {
				t.Errorf("it took %v", took)
			}
			until(t, "all its processes to end", func() bool { return !runs(exe) })
		})
	}
}

// stopAfter stops a program after some time, and gives how long the whole took.
func stopAfter(t *testing.T, limit time.Duration, exe, name, out, host string) time.Duration {
	d, _ := newProcessDevice(t)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var printed bytes.Buffer
	began := time.Now()
	st, err := Run(ctx, RunOptions{Path: exe, Args: []string{name}, Stdout: &printed, Stderr: &printed, Device: d, Libraries: libs(t)})
	if !errors.Is(err, context.DeadlineExceeded) || printed.String() != out || st.Host != host || st.Undelivered {
		t.Errorf("%v, %+v, output %q; want output %q, host %q", err, st, printed.String(), out, host)
	}
	// A program may well end by itself when its launch does.
	if host != "in a kernel launch" && (st.Code != -1 || st.Signal != syscall.SIGKILL) {
		t.Errorf("%s ends with %d, %v", name, st.Code, st.Signal)
	}
	return time.Since(began)
}

// TestKilledChecker kills a process that runs a program: the program is not left behind. The process is this test, run again.
func TestKilledChecker(t *testing.T) {
	const variable = "FENCEPOST_TEST_PROGRAM"
	if exe := os.Getenv(variable); exe != "" {
		d, _ := newProcessDevice(t)
		_, err := Run(context.Background(), RunOptions{Path: exe, Args: []string{"loops"}, Device: d})
		t.Fatal(err) // it runs for ever
	}
	exe := compileProcess(t)
	ready := filepath.Join(t.TempDir(), "ready")
	checker := exec.Command(os.Args[0], "-test.run=^TestKilledChecker$")
	checker.Env = append(os.Environ(), variable+"="+exe, "READY="+ready)
	if err := checker.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the program to start", func() bool { _, err := os.Stat(ready); return err == nil })
	checker.Process.Kill()
	checker.Wait()
	until(t, "the program to end", func() bool { return !runs(exe) })
}

// until waits for something, 20 seconds at most.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("waited in vain for " + what)
}

// runs reports whether some process runs an executable.
func runs(exe string) bool {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && target == exe {
			return true
		}
	}
	return false
}

// stuck is an engine whose launches print and go on until they are stopped.
type stuck struct{}

func (stuck) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	l.Printf([]byte("from the kernel\n"))
	<-ctx.Done()
	return engine.Stats{}, ctx.Err()
}

// TestStoppedLaunch stops a program within a launch: what the kernel has printed is not lost, and the launch ends with the reason.
func TestStoppedLaunch(t *testing.T) {
	exe := compileProcess(t)
	for _, printed := range []*bytes.Buffer{{}, nil} {
		var launches []LaunchReport
		d, err := NewDevice(Config{Engine: stuck{}, MemorySize: 1 << 24, OnLaunch: func(r LaunchReport) { launches = append(launches, r) }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		opts := RunOptions{Path: exe, Args: []string{"spins_on"}, Device: d, Libraries: libs(t)}
		if printed != nil {
			opts.Stdout = printed
		}
		st, err := Run(ctx, opts)
		if err == nil || err.Error() != context.DeadlineExceeded.Error() || st.Host != "in a kernel launch" || len(launches) != 1 || !errors.Is(launches[0].Err, context.DeadlineExceeded) {
			t.Errorf("%v, %+v, launches %+v", err, st, launches)
		}
		if printed != nil && printed.String() != "held backfrom the kernel\n" {
			t.Errorf("output %q", printed.String())
		}
	}
}

// TestLinger checks how long is waited for what stays.
func TestLinger(t *testing.T) {
	if Linger() != 10*time.Second || lingerOthers != time.Second || lingerStopped != 300*time.Millisecond {
		t.Errorf("%v, %v, %v", Linger(), lingerOthers, lingerStopped)
	}
}
