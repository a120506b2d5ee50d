// Package cuda implements the device of the CUDA API: memory, modules, streams, events and launches over the engines of
// package engine, and the server that provides it to programs under test through the stand-in libraries (standin).
//
// Launches run immediately when they are enqueued, in the order of the API calls. The order that the CUDA documentation
// promises between host, streams and events is passed to the sink as event.HostOp. It is never derived from execution
// order.
package cuda

import (
	"io"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// Config configures a Device and its hooks.
type Config struct {
	Engine   engine.Engine
	Sink     event.Sink  // nil: no events
	Needs    event.Needs // the needs of Sink
	Places   *places.Table
	Seed     uint64
	Schedule engine.Schedule
	MaxSteps uint64 // warp instructions of a launch; 0: no bound
	// Rerun executes small launches whose threads may contend again, with Reruns.
	Rerun bool
	// Devices is the number of devices that programs see, at most MaxDevices; 0 means 1.
	Devices int
	// Limits are the limits of the device. Zero: each process sees a device of the compute capability for which it was
	// built.
	Limits engine.Limits

	// MemorySize is the size of the arena in bytes: one half is device memory, the other visible to the host. Pages are
	// allocated on first access. 0 means DefaultMemorySize.
	MemorySize uint64

	// Pinned keeps the pages of device memory in place, including freed ones: a GPU uses them.
	Pinned bool

	// Rewrite, if not nil, returns what is loaded in place of a module. An error of it is an error of the load.
	Rewrite func(*isa.Module) ([]*ptx.Module, error)

	OnFault  func(engine.Fault)
	OnLaunch func(LaunchReport)
	// Findings returns to a process what was found since its last query; nil: nothing is ever found. When it is called,
	// the sink has received all events so far, and no kernel runs.
	Findings func(Asked) []byte
	// Leaks makes a failure out of each allocation that a context never frees, unless a fault has lost the device
	// before.
	Leaks bool
	// OnSource receives a text from which code was compiled and that may be in no file; nil: it is dropped.
	OnSource func(name, text string)
	// Printf receives the output of kernels if the device is driven directly. Programs under test print it themselves.
	Printf io.Writer
	// Watch reports whether a kernel (linker name) is watched; the others run without events. Nil: all are watched.
	Watch func(kernel string) bool
	// Progress, if not nil, is called now and then while a kernel with the given number of blocks runs.
	Progress func(kernel string, blocks uint64, s engine.Stats)
}

// DefaultMemorySize is the default size of the arena: 16 GiB of device memory and as much visible to the host.
const DefaultMemorySize = 32 << 30

// Asked is a process's query for findings, with the device's own part of the answer.
type Asked struct {
	Process     uint64    // a number, as in LaunchReport
	Failures    []Failure // of all processes
	Unsupported []string  // as Device.Unsupported gives them
}

// LaunchReport is the result of one launch.
type LaunchReport struct {
	ID      uint32 // event.Launch.ID; 0 if it was refused before it ran
	Process uint64 // number of the process
	Kernel  string // linker name
	Grid    event.Dim3
	Block   event.Dim3
	Stats   engine.Stats
	// Err is nil if the grid ran to its end. Otherwise it is the reason: an error of the engine, an *Error for a launch
	// that the API refuses (for a program, Device.Failures has more), an *Unchecked for a kernel that cannot be
	// executed, or a *Lost.
	Err error
}
