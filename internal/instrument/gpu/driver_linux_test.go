package gpu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/cuda/standin"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/instrument/gpu"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/toolchain"
	"fencepost.dev/fencepost/ptx"
)

// driver is the other side of testdata/driver.c: an NVIDIA driver whose GPU is an engine. Kernels execute between two
// queries, and pause while the host reads their log.
type driver struct {
	t      *testing.T
	engine func() engine.Engine
	worker string

	mu         sync.Mutex
	memory     *devmem.Memory    // of the run; see spy
	registered map[uint64]uint64 // pages, with the range in which they were registered
	modules    []*loader.Program
	functions  []function
	running    *execution
	launches   int
	queries    int
	dies       atomic.Bool // at the next query
}

type function struct {
	program *loader.Program
	f       *isa.Func
}

// execution is a launch that has not ended from the host's view.
type execution struct {
	resume, paused chan struct{}
	result         uint32
	text           []byte
	over           bool
}

// built is the folder of what is built once for all tests, and its folder of stand-in libraries.
type built struct {
	dir, libs string
	err       error
}

var build = sync.OnceValue(func() (b built) {
	cc, err := (&toolchain.Finder{}).FindCC(context.Background())
	if err != nil {
		return b
	}
	if b.dir, b.err = os.MkdirTemp("", "fencepost-gpu"); b.err != nil {
		return b
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = b.dir
	}
	if b.libs, b.err = standin.Build(context.Background(), cc.Path, filepath.Join(cache, "fencepost-test")); b.err != nil {
		return b
	}
	lib := filepath.Join(b.dir, "libcuda.so.1")
	out, err := exec.Command(cc.Path, "-std=gnu11", "-Wall", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", "-o", lib, "testdata/driver.c").CombinedOutput()
	if err != nil {
		b.err = fmt.Errorf("%w: %s", err, out)
	}
	return b
})

func TestMain(m *testing.M) {
	code := m.Run()
	if b := build(); b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// newDriver returns a driver for workers that are started until the test ends. The test must not be parallel.
func newDriver(t *testing.T) *driver {
	t.Helper()
	b := build()
	switch {
	case b.err != nil:
		t.Fatal(b.err)
	case b.dir == "":
		t.Skip("no C compiler")
	}
	socket := filepath.Join(t.TempDir(), "driver")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("LD_LIBRARY_PATH", b.dir)
	t.Setenv("FENCEPOST_TEST_DRIVER", socket)
	d := &driver{t: t, engine: warp.New, worker: filepath.Join(b.libs, calls.GPUWorker)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.begin()
			go d.serve(c)
		}
	}()
	return d
}

// begin prepares the driver for a new worker.
func (d *driver) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.registered, d.modules, d.functions, d.running = map[uint64]uint64{}, nil, nil, nil
}

func (d *driver) serve(c net.Conn) {
	defer c.Close()
	for {
		head := make([]byte, 8)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		data := make([]byte, binary.LittleEndian.Uint32(head[4:]))
		if _, err := io.ReadFull(c, data); err != nil {
			return
		}
		op := binary.LittleEndian.Uint32(head)
		if op == query && d.dies.CompareAndSwap(true, false) {
			return
		}
		result, text := d.answer(op, data)
		out := binary.LittleEndian.AppendUint32(nil, result)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
		if _, err := c.Write(append(out, text...)); err != nil {
			return
		}
	}
}

// Requests, as in testdata/driver.c.
const (
	register = iota
	unregister
	load
	find
	launch
	query
	printed
)

// Results of the driver.
const (
	invalidImage   = 200
	alreadyDone    = 712
	notRegistered  = 713
	notFound       = 500
	notReady       = 600
	illegalAddress = 700
	assertion      = 710
	misaligned     = 716
	failure        = 719
)

func (d *driver) answer(op uint32, data []byte) (uint32, []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	le := binary.LittleEndian
	switch op {
	case register:
		from, bytes := le.Uint64(data), le.Uint64(data[8:])
		for at := from; at < from+bytes; at += 4096 {
			if d.registered[at] != 0 {
				return alreadyDone, nil
			}
			d.registered[at] = from
		}
	case unregister:
		n := len(d.registered)
		if maps.DeleteFunc(d.registered, func(_, from uint64) bool { return from == le.Uint64(data) }); len(d.registered) == n {
			return notRegistered, nil
		}
	case load:
		p, err := d.load(data)
		if err != nil {
			return invalidImage, []byte(err.Error())
		}
		d.modules = append(d.modules, p)
		return 0, le.AppendUint64(nil, uint64(len(d.modules)))
	case find:
		var n int
		var name string
		if _, err := fmt.Sscan(string(data), &n, &name); err != nil || n < 1 || n > len(d.modules) {
			return notFound, nil
		}
		p := d.modules[n-1]
		f := p.Kernel(name)
		if f == nil {
			return notFound, nil
		}
		d.functions = append(d.functions, function{p, f})
		out := le.AppendUint64(nil, uint64(len(d.functions)))
		out = le.AppendUint64(out, uint64(len(f.Sig.Params)))
		for _, p := range f.Sig.Params {
			out = le.AppendUint64(out, uint64(p.Size))
		}
		return 0, out
	case launch:
		d.launch(data)
	case query:
		d.queries++
		x := d.running
		if !x.over {
			x.resume <- struct{}{}
			<-x.paused
		}
		if !x.over {
			return notReady, nil
		}
		return x.result, nil
	case printed:
		return d.running.result, d.running.text
	}
	return 0, nil
}

func (d *driver) load(data []byte) (*loader.Program, error) {
	var trees []*ptx.Module
	for len(data) > 0 {
		end := slices.Index(data, 0)
		tree, err := ptx.Parse("kernel", string(data[:end]))
		if err != nil {
			return nil, err
		}
		trees, data = append(trees, tree), data[end+1:]
	}
	m, err := isa.Decode(trees...)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Funcs {
		if f.Err != nil {
			return nil, f.Err
		}
	}
	for _, v := range m.Vars {
		if v.Space != event.Shared && !strings.HasPrefix(v.Name, "_ZTV") { // tables of virtual functions remain variables of the driver
			return nil, fmt.Errorf("variable %s is not placed", v.Name)
		}
	}
	return loader.Load(m, d.memory)
}

// launch begins a launch. The kernel executes when the host queries it.
func (d *driver) launch(data []byte) {
	le := binary.LittleEndian
	f := d.functions[le.Uint64(data)-1]
	n := func(i int) uint32 { return le.Uint32(data[8+4*i:]) }
	x := &execution{resume: make(chan struct{}), paused: make(chan struct{})}
	d.running = x
	d.launches++
	l := &engine.Launch{Launch: event.Launch{ID: uint32(d.launches), Kernel: f.f.Name, Grid: event.Dim3{X: n(0), Y: n(1), Z: n(2)}, Block: event.Dim3{X: n(3), Y: n(4), Z: n(5)}},
		Program: f.program, Places: places.New(), Func: f.f, DynamicShared: int(n(6)), Cooperative: n(7) == 1, HostWrites: true, Printf: func(text []byte) { x.text = append(x.text, text...) }}
	params := data[40:]
	for _, p := range f.f.Sig.Params {
		for len(l.Params) < p.Off {
			l.Params = append(l.Params, 0)
		}
		l.Params, params = append(l.Params, params[:p.Size]...), params[p.Size:]
	}
	l.Progress = func(engine.Stats) {
		x.paused <- struct{}{}
		<-x.resume
	}
	go func() {
		<-x.resume
		stats, err := d.engine().Run(context.Background(), l)
		switch {
		case errors.Is(err, engine.ErrAssert):
			x.result = assertion
		case errors.Is(err, engine.ErrTrap):
			x.result = failure
		case stats.Fault == engine.Misaligned:
			x.result = misaligned
		case stats.Fault != "" || err != nil:
			x.result = illegalAddress
		}
		x.over = true
		close(x.paused)
	}()
}

// unregistered returns the live allocations that have a page not registered with the driver. needless is the number of
// registered pages that are at least 2 MiB away from all live allocations.
func (d *driver) unregistered() (names []string, needless int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pieces := map[uint64]bool{}
	for _, a := range d.memory.Known() {
		for at := a.Addr &^ 4095; !a.Freed && at < a.Addr+a.Size; at += 4096 {
			if pieces[at>>21] = true; d.registered[at] == 0 {
				names = append(names, a.Name)
				break
			}
		}
	}
	for at := range d.registered {
		if !pieces[at>>21] {
			needless++
		}
	}
	return names, needless
}

// spy is the engine under test. It tells the driver which memory launches use.
type spy struct {
	*gpu.Engine
	d *driver
}

// New returns a spy.
func (d *driver) New() engine.Engine { return &spy{gpu.New(d.worker), d} }

// Run implements engine.Engine.
func (s *spy) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	s.d.mu.Lock()
	s.d.memory = l.Program.Memory
	s.d.mu.Unlock()
	stats, err := s.Engine.Run(ctx, l)
	if names, needless := s.d.unregistered(); err == nil && (names != nil || needless > 0) {
		s.d.t.Errorf("%s ran with memory that is not registered with the driver: %q; %d pages are for nothing", l.Func.Name, names, needless)
	}
	return stats, err
}
