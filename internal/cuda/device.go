package cuda

import (
	"os"
	"sort"
	"strings"
	"sync"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
)

// Device is one emulated GPU: its memory, and the contexts of the processes that use it. All its methods and those of
// its contexts may be called concurrently; a lock serialises them.
type Device struct {
	cfg     Config
	mem     *devmem.Memory
	file    *os.File // the arena, then registered host memory; shared with programs. nil if there are none
	backing []byte   // all of file
	arena   uint64   // size of the arena in bytes

	mu          sync.Mutex
	launches    uint32
	agents      uint32
	batch       event.Batch
	unsupported map[string]bool
	lostOutput  uint64 // lines
	operators   int
	failures    []*Failure
	failureAt   map[string]*Failure
	sources     sources
	contexts    uint64 // the number of contexts so far, for their tokens
	spare       spare
	registered  spans // free space after the arena, for registered host memory

	open    map[uint64]*Context // by number
	calling *Context            // the context, of a process, of the last call
	sharing bool                // a process has opened a handle of another one
}

// registeredRoom is the address space for host memory that programs register (cudaHostRegister).
const registeredRoom = 16 << 30

// NewDevice makes a device with its memory. Close it after use.
func NewDevice(cfg Config) (*Device, error) {
	if cfg.Engine == nil {
		panic("BUG: cuda.NewDevice without an engine")
	}
	if cfg.MemorySize == 0 {
		cfg.MemorySize = DefaultMemorySize
	}
	if cfg.Places == nil {
		cfg.Places = places.New()
	}
	mem, file, backing, err := newMemory(cfg.MemorySize)
	if err != nil {
		return nil, err
	}
	d := &Device{cfg: cfg, mem: mem, file: file, backing: backing, arena: cfg.MemorySize, unsupported: map[string]bool{}, open: map[uint64]*Context{}}
	d.registered.add(cfg.MemorySize, registeredRoom)
	if cfg.Pinned {
		mem.Pin()
	}
	return d, nil
}

// Close frees the memory. The device and its contexts must not be used afterwards.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.mem.Close()
	if e := d.closeShared(); err == nil {
		err = e
	}
	return err
}

// Memory is the device's global memory.
func (d *Device) Memory() *devmem.Memory { return d.mem }

// Places resolves the places of the device's events and faults.
func (d *Device) Places() *places.Table { return d.cfg.Places }

// limits are the limits of a device for processes of which it is not known for what they were built.
func (d *Device) limits() engine.Limits {
	if d.cfg.Limits != (engine.Limits{}) {
		return d.cfg.Limits
	}
	return engine.DefaultLimits()
}

// Unsupported lists the unsupported API calls that programs made, sorted.
func (d *Device) Unsupported() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unsupportedCalls()
}

func (d *Device) unsupportedCalls() []string {
	names := make([]string, 0, len(d.unsupported))
	for n := range d.unsupported {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Operators is the number of operators that the host has computed instead of the device.
func (d *Device) Operators() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.operators
}

// newAgent numbers a host thread or stream. The device is locked.
func (d *Device) newAgent() uint32 {
	d.agents++
	return d.agents
}

// tell queues a host operation for the sink. The device is locked; flush sends the queue.
func (d *Device) tell(op event.HostOp) {
	if d.cfg.Sink == nil || d.cfg.Needs&event.NeedHost == 0 {
		return
	}
	d.batch.Events = append(d.batch.Events, event.Event{Kind: event.Host, Side: uint32(len(d.batch.Hosts))})
	d.batch.Hosts = append(d.batch.Hosts, op)
}

func (d *Device) flush() {
	if len(d.batch.Events) > 0 {
		event.Hand(d.cfg.Sink, &d.batch)
	}
}

// unsupportedLimit bounds the number of names kept; programs call a few.
const unsupportedLimit = 1000

// notSupported records an unsupported call.
func (d *Device) notSupported(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noteUnsupported(name)
}

func (d *Device) noteUnsupported(name string) {
	if len(d.unsupported) < unsupportedLimit {
		d.unsupported[printable(name)] = true
	}
}

// printable makes a name from a program printable.
func printable(name string) string {
	const longest = 200
	name = name[:min(len(name), longest)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
}
