package cuda

import (
	"context"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

const contendingKernels = `.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
.global .u32 x;
.visible .entry reads() { .reg .b32 %r; atom.global.add.u32 %r, [x], 1; ret; }
.visible .entry polls() { .reg .b32 %r; ld.volatile.global.u32 %r, [x]; ret; }
.visible .entry counts() { red.global.add.u32 [x], 1; ret; }
.visible .entry stores() { st.volatile.global.u32 [x], 1; ret; }
.visible .entry allocates() { .reg .b32 %r; .reg .b64 %d; atom.global.add.u32 %r, [x], 1;
 { .param .b64 n; .param .b64 r; st.param.b64 [n], 8; call.uni (r), malloc, (n); ld.param.b64 %d, [r]; } ret; }
`

// actor is an engine whose launches write a word.
type actor struct {
	*testing.T
	stats    engine.Stats
	err      error
	word     []byte
	launches []engine.Launch
	began    []byte // what the word was for each
}

func (a *actor) Run(_ context.Context, l *engine.Launch) (engine.Stats, error) {
	a.launches, a.began = append(a.launches, *l), append(a.began, a.word[0])
	if l.Rerun() == 0 {
		a.word[0]++
	} else {
		a.word[0] = 99
		l.OnFault(engine.Fault{Kind: engine.StepLimit})
		l.OnFault(engine.Fault{Kind: engine.Deadlock})
		return engine.Stats{Warps: 3, Fault: engine.Deadlock}, engine.ErrDeadlock
	}
	return a.stats, a.err
}

// TestRerun checks which launches are executed once more, that this begins with the memory that the launch began with, and that the
// program notices nothing of it.
func TestRerun(t *testing.T) {
	for _, r := range []struct {
		name    string
		kernel  string
		change  func(*Config, *LaunchConfig, *actor)
		prepare func(*Context)
		want    bool
	}{
		{"an atomic operation that reads", "reads", nil, nil, true},
		{"a strong load", "polls", nil, nil, true},
		{"a reduction", "counts", nil, nil, false},
		{"a strong store", "stores", nil, nil, false},
		{"memory that the kernel allocates", "allocates", nil, nil, false},
		{"by default", "reads", func(c *Config, _ *LaunchConfig, _ *actor) { c.Rerun = false }, nil, false},
		{"a seed", "reads", func(c *Config, _ *LaunchConfig, _ *actor) { c.Seed = 1 }, nil, false},
		{"another schedule", "reads", func(c *Config, _ *LaunchConfig, _ *actor) { c.Schedule = engine.Lockstep }, nil, false},
		{"nobody watches", "reads", func(c *Config, _ *LaunchConfig, _ *actor) { c.Sink = nil }, nil, false},
		{"one warp", "reads", func(_ *Config, l *LaunchConfig, _ *actor) { l.Grid = one }, nil, false},
		{"two warps of a block", "reads", func(_ *Config, l *LaunchConfig, _ *actor) { l.Grid, l.Block.X = one, 33 }, nil, true},
		{"a fault", "reads", func(_ *Config, _ *LaunchConfig, a *actor) { a.stats.Fault = engine.OutOfBounds }, nil, false},
		{"an error", "reads", func(_ *Config, _ *LaunchConfig, a *actor) { a.err = engine.ErrStopped }, nil, false},
		{"a deadlock", "reads", func(_ *Config, _ *LaunchConfig, a *actor) { a.err = engine.ErrDeadlock }, nil, true},
		{"many steps", "reads", func(_ *Config, _ *LaunchConfig, a *actor) { a.stats.Warps = 2 * rerunFree }, nil, false},
		{"much memory", "reads", nil, func(c *Context) { malloc(t, c, rerunBytes, devmem.DeviceAlloc) }, false},
		{"memory of the host", "reads", nil, func(c *Context) {
			malloc(t, c, 64, devmem.ManagedAlloc)
			c.alone = func() bool { return true }
		}, true},
		{"memory of the host, which has threads", "reads", nil, func(c *Context) {
			malloc(t, c, 64, devmem.ManagedAlloc)
			c.alone = func() bool { return false }
		}, false},
		{"threads of the host", "reads", nil, func(c *Context) {
			c.alone = func() bool { return false }
		}, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			a := &actor{T: t, stats: engine.Stats{Warps: 100}}
			told, faults := 0, 0
			cfg := Config{Engine: a, MemorySize: 1 << 28, Sink: &log{}, Rerun: true, OnLaunch: func(LaunchReport) { told++ },
				OnFault: func(engine.Fault) { faults++ }, Progress: func(string, uint64, engine.Stats) {}}
			lc := LaunchConfig{Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: one}
			if r.change != nil {
				r.change(&cfg, &lc, a)
			}
			d, err := NewDevice(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			c := d.NewContext()
			if r.prepare != nil {
				r.prepare(c)
			}
			at := malloc(t, c, 4, devmem.DeviceAlloc)
			a.word, _ = d.mem.Bytes(at, 4)
			a.word[0] = 7
			m, err := c.LoadModule(Image{"k.ptx", contendingKernels})
			if err != nil {
				t.Fatal(err)
			}
			k, err := m.Kernel(r.kernel)
			if err == nil {
				err = c.Launch(context.Background(), k, lc, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := len(a.launches) - 1; n != 0 && n != len(reruns) || n > 0 != r.want || told != 1 {
				t.Fatalf("%d executions, %d of them told to the program", len(a.launches), told)
			}
			if a.word[0] != 8 {
				t.Errorf("the memory holds %d", a.word[0])
			}
			if !r.want {
				return
			}
			for i, l := range a.launches {
				want := Rerun{}
				if i > 0 {
					want = Reruns()[i-1]
				}
				if l.Number() != 1 || l.Rerun() != i || l.Schedule != want.Schedule || l.Seed != want.Seed || a.began[i] != 7 ||
					i > 0 && (l.MaxSteps != 100*rerunFactor+rerunSteps || l.Progress != nil || l.Printf != nil) {
					t.Errorf("execution %d: %+v, schedule %d, seed %d, at most %d steps; the word was %d", i, l.Launch, l.Schedule, l.Seed, l.MaxSteps, a.began[i])
				}
			}
			want := len(reruns) // each execution comes to a deadlock, which is news where the first does not
			if a.err != nil {
				want = 0
			}
			if faults != want || (c.sticky != nil) != (a.err != nil) {
				t.Errorf("%d faults are told; the context is lost: %v", faults, c.sticky)
			}
		})
	}
}

// TestRerunShare checks that of many launches so many are executed once more as their kernel may, and a part of the others.
func TestRerunShare(t *testing.T) {
	a := &actor{T: t, stats: engine.Stats{Warps: rerunFree / 4}, word: make([]byte, 4)}
	d, err := NewDevice(Config{Engine: &fixed{a}, MemorySize: 1 << 24, Sink: &log{}, Rerun: true, OnFault: func(engine.Fault) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c := d.NewContext()
	m, err := c.LoadModule(Image{"k.ptx", contendingKernels})
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("reads")
	if err != nil {
		t.Fatal(err)
	}
	const launches = 100
	for range launches {
		if err := c.Launch(context.Background(), k, LaunchConfig{Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: one}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.launches) - launches; n < launches/rerunShare-1 || n > launches/rerunShare+4 {
		t.Errorf("of %d launches %d are executed once more", launches, n)
	}
}

// fixed is an actor whose executions all cost the same.
type fixed struct{ *actor }

func (f *fixed) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	_, _ = f.actor.Run(ctx, l)
	return f.stats, nil
}

func malloc(t *testing.T, c *Context, size uint64, kind devmem.AllocKind) uint64 {
	t.Helper()
	at, err := c.Malloc(size, kind)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
