// Package gpu is an engine that executes launches on an NVIDIA GPU. It makes no events: it is for programs that record
// their own behaviour (package emulated). A separate process (internal/cuda/standin/src/gpu.c) calls the driver.
//
// Device memory stays in the file that all processes of a run map at the same addresses. The memory is registered with
// the driver (cuMemHostRegister), so the GPU accesses it there, at the same addresses, through its bus. So host code,
// pointers in memory and the log are the same as on the emulator, and a launch copies nothing.
package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
)

// Engine executes launches on the first GPU, one at a time.
type Engine struct {
	file string // the executable of the worker: calls.GPUWorker in the folder of the stand-in libraries

	mu         sync.Mutex
	worker     *worker
	loaded     map[*loader.Program]module
	registered map[uint64]bool // by number: pieces of memory that are registered
}

// module is a program that the worker has loaded.
type module struct {
	number      uint64
	environment []byte // variable for the address of the workspace of a cooperative launch (see placed); nil if it is not needed
}

// New returns an engine with the given executable of the worker.
func New(file string) *Engine { return &Engine{file: file} }

// Name returns the name of the GPU and its architecture, for example "NVIDIA H100 (sm_90)". It returns an error if no
// GPU can execute launches with the memory.
func Name(file string, m *devmem.Memory) (string, error) {
	w, err := start(file, m)
	if err != nil {
		return "", err
	}
	w.kill()
	return w.name, nil
}

// GPU implements emulated.GPU. The device reports few invalid accesses, without their places. Invalid accesses near an
// allocation take place.
func (e *Engine) GPU() bool { return true }

// Close ends the worker.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.worker != nil {
		e.worker.kill()
	}
	return nil
}

// pieceBytes is the unit in which memory is registered.
const pieceBytes = 2 << 20

// Pauses between two polls of a launch. The log is read in each pause.
const (
	firstPause = 20 * time.Microsecond
	lastPause  = time.Millisecond
)

// Run implements engine.Engine. Cancelling a launch ends the worker. The next launch starts another worker.
func (e *Engine) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	begin := time.Now()
	var workspace uint64
	if l.Cooperative {
		var err error
		if workspace, err = l.Program.Memory.Alloc(engine.WorkspaceBytes, engine.WorkspaceBytes, devmem.DeviceAlloc, engine.WorkspaceName); err != nil {
			return engine.Stats{}, err
		}
		defer func() { _, _ = l.Program.Memory.Free(workspace) }() // only this launch has the address
	}
	if err := e.begin(l, workspace); err != nil {
		return engine.Stats{}, fmt.Errorf("the GPU: %w", err)
	}
	err := e.wait(ctx, l)
	if ctx.Err() == nil {
		if text, e := e.worker.ask(opPrinted, nil); e == nil && text != "" && l.Printf != nil {
			l.Printf([]byte(text))
		}
	}
	stats := engine.Stats{Blocks: l.Grid.Count(), Threads: l.Grid.Count() * l.Block.Count(), Elapsed: time.Since(begin)}
	if err == nil {
		return stats, nil
	}
	e.worker.kill() // the worker's process cannot use the device any more
	if ctx.Err() != nil {
		return stats, ctx.Err()
	}
	var failed *driverError
	if !errors.As(err, &failed) {
		return stats, fmt.Errorf("the GPU: %w", err)
	}
	kind, err := faultOf(failed.result)
	if kind == "" {
		return stats, fmt.Errorf("the GPU: %w", failed)
	}
	stats.Fault = kind
	if l.OnFault != nil {
		l.OnFault(engine.Fault{Kind: kind, Launch: l.Launch, Count: 1,
			Message: fmt.Sprintf("the GPU has ended the kernel (%s); it does not tell where: --device watched does", failed.text)})
	}
	return stats, err
}

// faultOf returns the fault for a result of the driver, and the error of a launch that ends with it.
func faultOf(result uint32) (engine.FaultKind, error) {
	switch result {
	case illegal, wrongSpace:
		return engine.OutOfBounds, nil
	case misaligned:
		return engine.Misaligned, nil
	case assertion:
		return engine.Assertion, engine.ErrAssert
	case launchFailure, illegalInst:
		return engine.TrapHit, engine.ErrTrap
	}
	return "", nil
}

// begin begins a launch on a worker that has the launch's memory and program.
func (e *Engine) begin(l *engine.Launch, workspace uint64) error {
	m := l.Program.Memory
	if e.worker == nil || e.worker.dead {
		w, err := start(e.file, m)
		if err != nil {
			return err
		}
		e.worker, e.loaded, e.registered = w, map[*loader.Program]module{}, map[uint64]bool{}
	}
	mod, ok := e.loaded[l.Program]
	if !ok {
		var err error
		if mod, err = e.load(l.Program); err != nil {
			return err
		}
		e.loaded[l.Program] = mod
	}
	if mod.environment != nil {
		binary.LittleEndian.PutUint32(mod.environment, uint32(workspace>>32))
		binary.LittleEndian.PutUint32(mod.environment[4:], uint32(workspace))
	}
	if err := e.register(m); err != nil {
		return err
	}
	_, err := e.worker.ask(opLaunch, launchRequest(l, mod.number))
	return err
}

// register registers the memory of all allocations. It registers whole pieces and no other memory.
func (e *Engine) register(m *devmem.Memory) error {
	_, size := m.File()
	used := map[uint64]bool{}
	for _, a := range m.Known() {
		if a.Freed || a.Size == 0 {
			continue
		}
		if a.Addr < devmem.GlobalBase || a.Addr-devmem.GlobalBase >= size {
			return fmt.Errorf("memory of the host that is registered with CUDA (%s) cannot be reached from --device gpu: allocate it with cudaMallocHost, or choose --device emulated", a.Name)
		}
		first, last := (a.Addr-devmem.GlobalBase)/pieceBytes, (a.Addr+a.Size-1-devmem.GlobalBase)/pieceBytes
		for n := first; n <= last; n++ {
			if used[n] = true; e.registered[n] {
				continue
			}
			if _, err := e.worker.ask(opRegister, words(devmem.GlobalBase+n*pieceBytes, pieceBytes)); err != nil {
				return fmt.Errorf("memory for the GPU (%s): %w", a.Name, err)
			}
			e.registered[n] = true
		}
	}
	for n := range e.registered {
		if used[n] {
			continue
		}
		if _, err := e.worker.ask(opUnregister, words(devmem.GlobalBase+n*pieceBytes)); err != nil {
			return fmt.Errorf("memory that the GPU no longer needs: %w", err)
		}
		delete(e.registered, n)
	}
	return nil
}

// load returns the module of a program.
func (e *Engine) load(p *loader.Program) (m module, err error) {
	var at uint64
	if slices.ContainsFunc(p.Module.Funcs, (*isa.Func).SyncsGrid) {
		if at, m.environment, err = p.Own(8, 8, "address of the workspace of a cooperative launch"); err != nil {
			return m, err
		}
	}
	texts, err := placed(p, at)
	if err != nil {
		return m, err
	}
	var data []byte
	for _, t := range texts {
		data = binary.LittleEndian.AppendUint64(data, uint64(len(t)+1))
		data = append(append(data, t...), 0)
	}
	answer, err := e.worker.ask(opLoad, data)
	if err != nil {
		return m, err
	}
	m.number, err = strconv.ParseUint(answer, 10, 64)
	return m, err
}

// launchRequest returns the worker's struct launch and the data that follows it.
func launchRequest(l *engine.Launch, module uint64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, module)
	cooperative := uint32(0)
	if l.Cooperative {
		cooperative = 1
	}
	put := func(values ...uint32) {
		for _, v := range values {
			b = le.AppendUint32(b, v)
		}
	}
	params := l.Func.Sig.Params
	put(l.Grid.X, l.Grid.Y, l.Grid.Z, l.Block.X, l.Block.Y, l.Block.Z, uint32(l.DynamicShared), cooperative, uint32(len(params)), uint32(len(l.Params)))
	for _, p := range params {
		put(uint32(p.Off))
	}
	b = append(b, l.Params...)
	return append(append(b, l.Func.Name...), 0)
}

// wait waits until the launch ends, and reports progress meanwhile.
func (e *Engine) wait(ctx context.Context, l *engine.Launch) error {
	for pause := firstPause; ; pause = min(pause*5/4, lastPause) {
		_, err := e.worker.ask(opQuery, nil)
		if l.Progress != nil {
			l.Progress(engine.Stats{})
		}
		var failed *driverError
		if !errors.As(err, &failed) || failed.result != notReady {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
