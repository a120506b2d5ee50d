package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
)

// player is an engine whose launches end as the test requires.
type player struct {
	last  *engine.Launch
	stats engine.Stats
	err   error
}

func (p *player) Run(_ context.Context, l *engine.Launch) (engine.Stats, error) {
	p.last = l
	return p.stats, p.err
}

// TestAfterLaunch checks the error that a launch leaves behind, by the first fault and by how the launch ended.
func TestAfterLaunch(t *testing.T) {
	for _, r := range []struct {
		fault engine.FaultKind
		err   error
		want  Code
	}{
		{"", nil, Success},
		{engine.OutOfBounds, nil, 700}, {engine.UseAfterFree, nil, 700}, {engine.ReadOnly, nil, 700},
		{engine.Misaligned, nil, 716}, {engine.Assertion, nil, 710}, {engine.Deadlock, nil, 702}, {engine.StepLimit, nil, 702},
		{engine.TrapHit, nil, 719}, {engine.StackOverflow, nil, 719}, {engine.BarrierDivergence, nil, 719},
		{"", engine.ErrDeadlock, 702}, {"", engine.ErrStopped, 702}, {"", engine.ErrHostWait, 702}, {"", engine.ErrDeviceWait, 702}, {"", ErrEnded, 702},
		{"", context.DeadlineExceeded, 702},
		{"", fmt.Errorf("block 3: %w", engine.ErrDeadlock), 702}, {"", errors.New("another"), 719}, {"", ErrMemory, 719},
		{engine.OutOfBounds, engine.ErrDeadlock, 700}, {engine.TrapHit, engine.ErrStopped, 719},
	} {
		e := &player{stats: engine.Stats{Fault: r.fault, Lanes: 5}, err: r.err}
		var last LaunchReport
		d, err := NewDevice(Config{Engine: e, MemorySize: 1 << 24, OnLaunch: func(r LaunchReport) { last = r }})
		if err != nil {
			t.Fatal(err)
		}
		s := &script{T: t, c: d.NewContext()}
		m, err := s.c.LoadModule(Image{"k.ptx", emptyKernel})
		s.must(err)
		s.k, err = m.Kernel("k")
		s.must(err)
		s.launch(0)
		if last.ID != 1 || last.Kernel != "k" || last.Grid != one || last.Block != (event.Dim3{X: 32, Y: 1, Z: 1}) || last.Stats != e.stats ||
			!errors.Is(last.Err, r.err) || (r.err == nil) != (last.Err == nil) {
			t.Errorf("fault %q, error %v: report %+v", r.fault, r.err, last)
		}
		err = s.c.Synchronize()
		if code(err) != r.want || r.want != 0 && !strings.HasSuffix(err.Error(), ": after launch 1") {
			t.Errorf("fault %q, error %v: later calls give %v, want %v", r.fault, r.err, err, r.want)
		}
		e.last = nil
		err = s.c.Launch(context.Background(), s.k, LaunchConfig{Grid: one, Block: one}, nil)
		var lost *Lost
		if code(err) != r.want || (e.last != nil) != (r.want == 0) || errors.As(last.Err, &lost) != (r.want != 0) || last.Block != one || last.Grid != one || last.Kernel != "k" {
			t.Errorf("fault %q, error %v: the next launch gives %v, is told as %+v", r.fault, r.err, err, last)
		}
		d.Close()
	}
}

// TestLaunchArguments checks the description of a launch that the engine gets.
func TestLaunchArguments(t *testing.T) {
	e := &player{}
	l := &log{}
	var printed strings.Builder
	var progress string
	places := places.New()
	cfg := Config{Engine: e, Sink: l, Needs: event.NeedHost, MemorySize: 1 << 24, Seed: 42, MaxSteps: 77, Printf: &printed, Places: places,
		OnFault:  func(f engine.Fault) { l.faults = append(l.faults, f) },
		Progress: func(kernel string, blocks uint64, s engine.Stats) { progress = fmt.Sprint(kernel, blocks, s.Lanes) },
		Watch:    func(kernel string) bool { return kernel == "half" }}
	d, err := NewDevice(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := &script{T: t, c: d.NewContext()}
	m, err := s.c.LoadModule(Image{"k.ptx", emptyKernel})
	s.must(err)
	half, err := m.Kernel("half")
	s.must(err)
	st := s.stream(0)
	params := make([]byte, 16)
	grid, block := event.Dim3{X: 2, Y: 3, Z: 4}, event.Dim3{X: 5, Y: 6, Z: 7}
	s.must(s.c.Launch(context.Background(), half, LaunchConfig{Grid: grid, Block: block, Shared: 123, Stream: st, Cooperative: true}, params))
	got := e.last
	if got.ID != 1 || got.Agent != s.c.streams[st].agent || got.Kernel != "half" || got.Grid != grid || got.Block != block || got.Program != m.program ||
		got.Places != places || d.Places() != places || got.Func != half.fn || got.DynamicShared != 123 || &got.Params[0] != &params[0] || !got.Cooperative ||
		got.Seed != 42 || got.MaxSteps != 77 || got.Sink != event.Sink(l) || got.Needs != event.NeedHost {
		t.Errorf("the engine gets %+v", got)
	}
	got.Printf([]byte("text"))
	got.OnFault(engine.Fault{})
	got.Progress(engine.Stats{Lanes: 9})
	if printed.String() != "text" || len(l.faults) != 1 || progress != "half24 9" {
		t.Errorf("printed %q, %d faults, progress %q", printed.String(), len(l.faults), progress)
	}
	k, err := m.Kernel("k")
	s.must(err)
	s.must(s.c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one, Stream: StreamPerThread, Thread: 3}, nil))
	if got = e.last; got.ID != 2 || got.Agent != s.c.gpu.perThread[3].agent || got.Sink != nil || got.Needs != 0 || got.Cooperative {
		t.Errorf("the engine gets %+v of a kernel that is not watched", got)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if err := s.c.Launch(ended, k, LaunchConfig{Grid: one, Block: one}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a launch after the end gives %v", err)
	}
	quiet, err := NewDevice(Config{Engine: e, MemorySize: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	if quiet.Places() == nil || quiet.limits() != engine.DefaultLimits() {
		t.Error("a device without places or limits")
	}
	q := &script{T: t, c: quiet.NewContext()}
	m, err = q.c.LoadModule(Image{"k.ptx", emptyKernel})
	q.must(err)
	q.k, err = m.Kernel("k")
	q.must(err)
	q.launch(0)
	if e.last.Printf != nil || e.last.Progress != nil || e.last.Sink != nil || e.last.Places != quiet.Places() {
		t.Errorf("the engine gets %+v of a device that tells nobody", e.last)
	}
}

// TestCancelCause checks that a launch that is stopped ends with the reason.
func TestCancelCause(t *testing.T) {
	d, err := NewDevice(Config{Engine: &player{err: context.Canceled}, MemorySize: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, end := context.WithCancelCause(context.Background())
	end(ErrEnded)
	if _, err := d.execute(ctx, &engine.Launch{}); err != ErrEnded {
		t.Errorf("%v", err)
	}
	s := &script{T: t, c: d.NewContext()}
	m, err := s.c.LoadModule(Image{"k.ptx", emptyKernel})
	s.must(err)
	k, err := m.Kernel("k")
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.c.Launch(ctx, k, LaunchConfig{Grid: one, Block: one}, nil); err != context.Canceled || code(s.c.Synchronize()) != LaunchTimeout {
		t.Errorf("%v, then %v", err, s.c.Synchronize())
	}
}

// fault is a runtime error at an address, as the Go runtime makes them.
type fault struct{ at uintptr }

func (f fault) Addr() uintptr { return f.at }

// TestFaulted checks which panics are faults of device memory.
func TestFaulted(t *testing.T) {
	d := newScript(t).c.dev
	from := addressOf(d.backing)
	for at, want := range map[uintptr]bool{from - 1: false, from: true, from + uintptr(len(d.backing)) - 1: true, from + uintptr(len(d.backing)): false, 0: false} {
		if d.Faulted(fault{at}) != want {
			t.Errorf("a fault at %#x, in memory from %#x on: %v", at, from, !want)
		}
	}
	if d.Faulted("BUG") || d.Faulted(nil) {
		t.Error("a panic without an address is a fault")
	}
}

// TestAdmit checks what the API refuses, with what it says.
func TestAdmit(t *testing.T) {
	s := newScript(t)
	other := s.c.dev.NewContext()
	big := event.Dim3{X: 1 << 20, Y: 1, Z: 1}
	for _, r := range []struct {
		c    *Context
		cfg  LaunchConfig
		want string
	}{
		{s.c, LaunchConfig{Grid: one, Block: one, Shared: 49152}, ""},
		{s.c, LaunchConfig{Grid: one, Block: one, Shared: 49153},
			"cudaErrorInvalidValue: 49153 bytes of dynamic shared memory, and the kernel may have 49152 (cudaFuncSetAttribute raises that to at most 166912)"},
		{s.c, LaunchConfig{Grid: one, Block: one, Shared: -1},
			"cudaErrorInvalidValue: -1 bytes of dynamic shared memory, and the kernel may have 49152 (cudaFuncSetAttribute raises that to at most 166912)"},
		{other, LaunchConfig{Grid: one, Block: one}, "cudaErrorInvalidResourceHandle: the module of k is not loaded"},
		{s.c, LaunchConfig{Grid: one, Block: event.Dim3{X: 1025, Y: 1, Z: 1}}, "cudaErrorInvalidConfiguration: block (1025,1,1) is larger than (1024,1024,64)"},
		{s.c, LaunchConfig{Grid: big, Block: one, Cooperative: true}, "cudaErrorCooperativeLaunchTooLarge: 1048576 blocks, 3456 can be resident at once"},
		{s.c, LaunchConfig{Grid: big, Block: one}, ""},
	} {
		got := ""
		if err := r.c.Launch(context.Background(), s.k, r.cfg, nil); err != nil {
			got = err.Error()
		}
		if got != r.want {
			t.Errorf("%+v: %q, want %q", r.cfg, got, r.want)
		}
	}
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
