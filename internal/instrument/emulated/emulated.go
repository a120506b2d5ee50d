// Package emulated runs instrumented programs on an engine as a GPU would, and reads their logs meanwhile. The engine does
// not watch them: all events come from the log.
package emulated

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/simt"
	"fencepost.dev/fencepost/ptx"
)

// DefaultShape is the log of an emulated device: 1 MiB.
var DefaultShape = instrument.Shape{Queues: 4, Slots: 1 << 12}

// Engine executes programs that Rewrite has instrumented.
type Engine struct {
	simt.Engine
	Shape   instrument.Shape
	options instrument.Options

	mu       sync.Mutex
	programs map[*ptx.Module]*program
}

// program is what must be known of an instrumented module.
type program struct {
	original *isa.Module
	sites    []instrument.Site
}

// New makes an engine of one.
func New(e simt.Engine, o instrument.Options) *Engine {
	return &Engine{Engine: e, options: o, Shape: DefaultShape, programs: map[*ptx.Module]*program{}}
}

// Rewrite instruments a module: cuda.Config.Rewrite.
func (e *Engine) Rewrite(m *isa.Module) ([]*ptx.Module, error) {
	p, err := instrument.Log(m, e.options)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(p.Modules) > 0 {
		e.programs[p.Modules[0]] = &program{m, p.Sites}
	}
	return p.Modules, nil
}

func (e *Engine) program(l *simt.Launch) *program {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.programs[l.Program.Module.Source[0]]
}

// Run implements simt.Engine. A launch that nobody watches does not log.
func (e *Engine) Run(ctx context.Context, l *simt.Launch) (simt.Stats, error) {
	p := e.program(l)
	if p == nil {
		panic("BUG: a launch of a program that is not instrumented")
	}
	if l.Sink == nil {
		return e.Engine.Run(ctx, l)
	}
	mem := l.Program.Memory
	addr, err := mem.Alloc(e.Shape.Bytes(), 64, simt.DeviceAlloc, "the log of the instrumented program")
	if err != nil {
		return simt.Stats{}, fmt.Errorf("the log of the instrumented program: %w", err)
	}
	defer func() { _, _ = mem.Free(addr) }()
	log, err := mem.Bytes(addr, e.Shape.Bytes())
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	e.Shape.Format(log, addr)
	defer point(l.Program, addr)()

	reader := instrument.NewReader(e.Shape, log)
	events := instrument.NewEvents(launchOf(l, p))
	drain := func() { reader.Drain(events.Record) }
	unwatched := *l
	unwatched.Sink = nil
	unwatched.Progress = func(s simt.Stats) {
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

// point makes the program log to addr, and gives what ends that.
func point(p *simt.Program, addr uint64) (end func()) {
	at, size, ok := p.Symbol(instrument.LogSymbol)
	if !ok {
		panic("BUG: an instrumented program without " + instrument.LogSymbol)
	}
	to, err := p.Memory.Bytes(at, size)
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	binary.LittleEndian.PutUint64(to, addr)
	return func() { clear(to) }
}

// launchOf describes a launch for those who make its events.
func launchOf(l *simt.Launch, p *program) *instrument.Launch {
	kernel := p.original.ByName[l.Func.Name]
	layout := p.original.SharedLayout(kernel)
	shared := uint64(layout.Reserved + layout.Static)
	if l.DynamicShared > 0 {
		shared = uint64(layout.Dynamic) + uint64(l.DynamicShared)
	}
	mem := l.Program.Memory
	return &instrument.Launch{Launch: l.Launch, Kernel: kernel, Sites: p.sites, Enter: l.Places.Enter, Needs: l.Needs, Sink: l.Sink,
		Global: func(in *isa.Inst, addr, size uint64) bool {
			a, ok := mem.Find(addr)
			return ok && addr&(size-1) == 0 && (in.Word || addr+size <= a.Addr+a.Size) && !(a.Const && in.Class != isa.Load)
		},
		Shared: func(_ *isa.Inst, addr, size uint64) bool {
			return addr&(size-1) == 0 && addr <= shared && size <= shared-addr
		}}
}
