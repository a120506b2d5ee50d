// Package cuda is the device of the CUDA API: memory, modules, streams, events and launches over the engines of
// package engine, and the server that lends it to programs under test through the stand-in libraries (standin).
//
// Launches run at once when they are enqueued, in the order of the API calls. What the CUDA documentation promises about
// order between host, streams and events is told to the sink as event.HostOp, and never follows from execution order.
package cuda

import (
	"io"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// Config says how a Device executes and whom it tells.
type Config struct {
	Engine   engine.Engine
	Sink     event.Sink  // nil: no events
	Needs    event.Needs // what Sink asks for
	Places   *places.Table
	Seed     uint64
	Schedule engine.Schedule
	MaxSteps uint64 // warp instructions a launch; 0: no bound
	// Rerun executes small launches whose threads may contend once more, by Reruns.
	Rerun bool
	// Devices is the number of devices that programs see, at most MaxDevices; 0 means 1.
	Devices int
	// Limits are those of the device. Zero: each process sees a device of the compute capability that it was built for.
	Limits engine.Limits

	// MemorySize is the size of the arena in bytes: one half device memory, the other visible to the host. The pages
	// are made as they are touched. 0 means DefaultMemorySize.
	MemorySize uint64

	// Pinned keeps the pages of device memory where they are, those that are freed too: a GPU has them.
	Pinned bool

	// Rewrite, when not nil, gives what is loaded in place of a module. Its error is that of the load.
	Rewrite func(*isa.Module) ([]*ptx.Module, error)

	OnFault  func(engine.Fault)
	OnLaunch func(LaunchReport)
	// Findings tells a process of what was found since it asked last; nil: nothing is ever found. The sink was handed all events
	// that there are so far, and no kernel runs.
	Findings func(Asked) []byte
	// Leaks makes a failure of each allocation that a context never frees, unless a fault has lost the device before.
	Leaks bool
	// OnSource takes a text that code was compiled from and that may be in no file; nil: it is dropped.
	OnSource func(name, text string)
	// Printf takes what kernels print when the device is driven directly. Programs under test print for themselves.
	Printf io.Writer
	// Watch says whether a kernel (linker name) is to be watched; the others run without events. Nil: all are.
	Watch func(kernel string) bool
	// Progress, when not nil, is called now and then while a kernel of so many blocks runs.
	Progress func(kernel string, blocks uint64, s engine.Stats)
}

// DefaultMemorySize is the arena of a device when Config does not say: 16 GiB of device memory and as much visible to the host.
const DefaultMemorySize = 32 << 30

// Asked is the question of a process for findings, with what the device itself knows of the answer.
type Asked struct {
	Process     uint64    // a number, as in LaunchReport
	Failures    []Failure // of all processes
	Unsupported []string  // as Device.Unsupported gives them
}

// LaunchReport tells what became of one launch.
type LaunchReport struct {
	ID      uint32 // event.Launch.ID; 0 when it was refused before it ran
	Process uint64 // numbers the processes of a device
	Kernel  string // linker name
	Grid    event.Dim3
	Block   event.Dim3
	Stats   engine.Stats
	// Err is nil when the grid ran to its end. Otherwise why it did not: the engine's errors, a *Error for a launch that the
	// API refuses (of a program, Device.Failures tells more), an *Unchecked for a kernel that cannot be executed, or a *Lost.
	Err error
}
