package emulated

import (
	"context"
	"fmt"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/instrument"
)

// Checker has the input of programs that check themselves by HiRace, and receives their findings.
type Checker struct {
	Machine  []byte // see instrument.CheckedLaunch
	LastTick uint32
	Bounds   instrument.Bounds
	// Select returns the checked part of a launch, given the size of its blocks' shared memory. If it is nil,
	// everything is checked.
	Select func(l *engine.Launch, shared uint64) instrument.Selection
	Found  func(l *engine.Launch, r *instrument.Result)
}

// check runs a launch of a program that checks itself, if the launch is watched.
func (e *Engine) check(ctx context.Context, l *engine.Launch, p *program) (engine.Stats, error) {
	mem := l.Program.Memory
	launch := &instrument.CheckedLaunch{Bounds: e.Checker.Bounds, Launch: &l.Launch, Sites: p.sites, Enter: l.Places.Enter,
		SharedBytes: sharedBytes(l, p), Machine: e.Checker.Machine, LastTick: e.Checker.LastTick}
	unwatched := *l
	unwatched.Sink = nil
	if l.Sink == nil {
		return e.Engine.Run(ctx, &unwatched)
	}
	if launch.TooLarge() {
		e.Checker.Found(l, &instrument.Result{TooLarge: true})
		return e.Engine.Run(ctx, &unwatched)
	}
	known := map[uint64]bool{}
	for _, a := range mem.Known() {
		if known[a.Addr] = true; !a.Freed {
			launch.Ranges = append(launch.Ranges, instrument.Range{From: a.Addr, Bytes: a.Size})
		}
	}
	if e.Checker.Select != nil {
		launch.Selection = e.Checker.Select(l, launch.SharedBytes)
	}
	state := instrument.NewChecked(launch)
	addr, free, err := e.alloc(mem, state.Bytes(), "the shadow memory of the instrumented program")
	if err != nil {
		return engine.Stats{}, err
	}
	defer free()
	bytes, err := mem.Bytes(addr, state.Bytes())
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	state.Format(bytes, addr)
	defer point(l.Program, instrument.StateSymbol, addr)()
	stats, err := e.Engine.Run(ctx, &unwatched)
	result := state.Result(bytes)
	for _, a := range mem.Known() {
		result.Allocated = result.Allocated || a.Kind == devmem.HeapAlloc && !known[a.Addr]
	}
	e.Checker.Found(l, result)
	return stats, err
}
