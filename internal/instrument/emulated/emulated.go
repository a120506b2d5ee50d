// Package emulated runs instrumented programs and reads their records. The engine is an emulator in the role of a GPU,
// or a GPU (package gpu). It makes no events: all events come from the log, and all races from the programs' own
// checks.
package emulated

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/ptx"
)

// DefaultShape is the log of an emulated device, of 1 MiB. The log of a GPU has 32 MiB.
var (
	DefaultShape = instrument.Shape{Queues: 4, Slots: 1 << 12}
	gpuShape     = instrument.Shape{Queues: 128, Slots: 1 << 12}
)

// Engine executes programs that Rewrite has instrumented.
type Engine struct {
	engine.Engine
	Shape   instrument.Shape // of the log
	Checker Checker          // of instrument.HiRace
	// Unchecked is called for launches of kernels that cannot be instrumented. They run without instrumentation.
	Unchecked func(l *engine.Launch, why error)
	options   instrument.Options

	mu       sync.Mutex
	programs map[*ptx.Module]*program
	logs     map[*devmem.Memory]uint64 // by memory, on a GPU, where logs are kept
}

// largeCode is the minimum number of instructions of a device code function that is not inlined. Programs call the
// device code at every access.
const largeCode = 300

// program describes an instrumented module.
type program struct {
	original  *isa.Module
	sites     []instrument.Site
	unchecked map[string]*instrument.Error // by kernel
	marked    bool                         // the functions that must not be inlined have been marked

	mu       sync.Mutex
	elements map[*isa.Func]opt.Elements // by kernel of original, if it was launched
}

// elementsOf returns the elements of a kernel of original. It computes them once.
func (p *program) elementsOf(kernel *isa.Func) opt.Elements {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, ok := p.elements[kernel]
	if !ok {
		// A kernel that opt cannot represent has no elements: its accesses remain those of the instructions.
		of, _ = opt.FindElements(kernel, p.original.SharedLayout(kernel))
		p.elements[kernel] = of
	}
	return of
}

// New returns an engine that instruments programs and runs them on e.
func New(e engine.Engine, o instrument.Options) *Engine {
	o.Partly = true
	x := &Engine{Engine: e, options: o, Shape: DefaultShape, programs: map[*ptx.Module]*program{}, logs: map[*devmem.Memory]uint64{}}
	if x.gpu() {
		x.Shape = gpuShape
	}
	return x
}

func (e *Engine) gpu() bool {
	g, ok := e.Engine.(GPU)
	return ok && g.GPU()
}

// log allocates memory for a log. It returns the function that ends the use of the memory.
func (e *Engine) log(m *devmem.Memory) (addr uint64, end func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if addr, ok := e.logs[m]; ok {
		return addr, func() {}, nil
	}
	addr, free, err := e.alloc(m, e.Shape.Bytes(), "the log of the instrumented program")
	if err == nil && e.gpu() {
		e.logs[m], free = addr, func() {}
	}
	return addr, free, err
}

// alloc allocates memory for the device code. A GPU needs all memory in the arena. An emulated device has this memory
// apart from that of the program.
func (e *Engine) alloc(m *devmem.Memory, size uint64, name string) (addr uint64, free func(), err error) {
	if e.gpu() {
		addr, err = m.Alloc(size, 64, devmem.DeviceAlloc, name)
		free = func() { _, _ = m.Free(addr) }
	} else {
		addr, free, err = m.AllocApart(size, name)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", name, err)
	}
	return addr, free, nil
}

// Rewrite instruments a module. It is for cuda.Config.Rewrite.
func (e *Engine) Rewrite(m *isa.Module) ([]*ptx.Module, error) {
	p, err := instrument.Instrument(m, e.options)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(p.Modules) > 0 {
		e.programs[p.Modules[0]] = &program{original: m, sites: p.Sites, unchecked: p.Unchecked, elements: map[*isa.Func]opt.Elements{}}
	}
	return p.Modules, nil
}

func (e *Engine) program(l *engine.Launch) *program {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.programs[l.Program.Module.Source[0]]
	if p != nil && !p.marked {
		p.marked = true
		for _, f := range l.Program.Module.Funcs {
			f.Called = instrument.Ours(f.Name) && len(f.Insts) >= largeCode
		}
	}
	return p
}

// Run implements engine.Engine. A launch that is not watched, or whose kernel is not instrumented, does not log.
func (e *Engine) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	p := e.program(l)
	if p == nil {
		panic("BUG: a launch of a program that is not instrumented")
	}
	if why := p.unchecked[l.Func.Name]; why != nil {
		if e.Unchecked != nil && l.Sink != nil {
			e.Unchecked(l, why)
		}
		unwatched := *l
		unwatched.Sink = nil
		return e.Engine.Run(ctx, &unwatched)
	}
	if e.options.Mode == instrument.HiRace {
		return e.check(ctx, l, p)
	}
	if l.Sink == nil {
		return e.Engine.Run(ctx, l)
	}
	mem := l.Program.Memory
	addr, end, err := e.log(mem)
	if err != nil {
		return engine.Stats{}, err
	}
	defer end()
	log, err := mem.Bytes(addr, e.Shape.Bytes())
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	e.Shape.Format(log, addr)
	defer point(l.Program, instrument.LogSymbol, addr)()

	reader := instrument.NewReader(e.Shape, log)
	unwatched := *l
	unwatched.Sink, unwatched.HostWrites = nil, true // threads wait for room in the log
	launch := launchOf(l, p)
	if e.gpu() {
		f := &faults{l: l, own: addr}
		launch.Global, launch.Outside, unwatched.OnFault = f.there, f.outside, f.add
		defer f.tell()
	}
	events := instrument.NewEvents(launch)
	drain := func() { reader.Drain(events.Record) }
	unwatched.Progress = func(s engine.Stats) {
		drain()
		if l.Progress != nil {
			l.Progress(s)
		}
	}
	stats, err := e.Engine.Run(ctx, &unwatched)
	drain()
	events.End()
	if n := reader.Lost(); n > 0 && err == nil {
		panic(fmt.Sprintf("BUG: %d records of the log stand behind one that is missing", n))
	}
	return stats, err
}

// point sets a variable of the program to addr. It returns the function that resets it.
func point(p *loader.Program, symbol string, addr uint64) (end func()) {
	at, size, ok := p.Symbol(symbol)
	if !ok {
		panic("BUG: an instrumented program without " + symbol)
	}
	to, err := p.Memory.Bytes(at, size)
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	binary.LittleEndian.PutUint64(to, addr)
	return func() { clear(to) }
}

// sharedBytes returns the end of the shared memory of a block.
func sharedBytes(l *engine.Launch, p *program) uint64 {
	layout := p.original.SharedLayout(p.original.ByName[l.Func.Name])
	if l.DynamicShared > 0 {
		return uint64(layout.Dynamic) + uint64(l.DynamicShared)
	}
	return uint64(layout.Reserved + layout.Static)
}

// launchOf returns the description of a launch for instrument.Events.
func launchOf(l *engine.Launch, p *program) *instrument.Launch {
	kernel := p.original.ByName[l.Func.Name]
	shared := sharedBytes(l, p)
	mem := l.Program.Memory
	return &instrument.Launch{Launch: l.Launch, Kernel: kernel, Sites: p.sites, Enter: l.Places.Enter, Needs: l.Needs, Sink: l.Sink,
		Elements: p.elementsOf(kernel).At(l.Places.Site),
		Global: func(in *isa.Inst, addr, size uint64) bool {
			a, ok := mem.Find(addr)
			return ok && addr&(size-1) == 0 && (in.Word || addr+size <= a.Addr+a.Size) && !(a.Const && in.Class != isa.Load)
		},
		Shared: func(in *isa.Inst, addr, size uint64) bool {
			if in.Word && addr < shared {
				return addr&(size-1) == 0
			}
			return addr&(size-1) == 0 && addr <= shared && size <= shared-addr
		}}
}
