package cuda

import (
	"encoding/binary"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/simt"
)

// Device is one emulated GPU: its memory, and the contexts of the processes that use it. All its methods and those of
// its contexts may be called from several goroutines; they take turns.
type Device struct {
	cfg     Config
	mem     *simt.Memory
	file    *os.File // the arena, then registered host memory; shared with programs
	backing []byte   // all of file
	arena   uint64   // bytes of the arena

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
	contexts    uint64 // numbers contexts, for their tokens
	registered  spans  // free room behind the arena, for registered host memory
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
		cfg.Places = simt.NewPlaceTable()
	}
	file, backing, err := sharedMemory(cfg.MemorySize + registeredRoom + statusSize)
	if err != nil {
		return nil, err
	}
	d := &Device{cfg: cfg, file: file, backing: backing, arena: cfg.MemorySize, unsupported: map[string]bool{}}
	d.mem = simt.NewMemoryOver(backing[:cfg.MemorySize:cfg.MemorySize])
	d.registered.add(cfg.MemorySize, registeredRoom)
	return d, nil
}

// memoryName names the memory in /proc/PID/maps of the processes that have it.
const memoryName = "fencepost-device-memory"

// statusSize is the page behind registered host memory in which programs count the calls that did not reach the server.
const statusSize = 4096

// statusAt is the offset of the status page in the file.
func (d *Device) statusAt() uint64 { return uint64(len(d.backing)) - statusSize }

// undelivered is how many calls of programs did not reach the server.
func (d *Device) undelivered() uint32 {
	return binary.LittleEndian.Uint32(d.backing[d.statusAt():])
}

// sharedMemory maps a new anonymous file of size bytes, without pages until they are touched. It is sealed: a program that
// made it shorter would take the memory from under the kernels.
func sharedMemory(size uint64) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate(memoryName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("device memory: memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), memoryName)
	if err := grow(fd, size); err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("device memory of %d bytes: %w", size, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("device memory: sealing its size: %w", err)
	}
	backing, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("device memory of %d bytes (address space, most of it never used): mmap: %w", size, err)
	}
	return file, backing, nil
}

// grow gives the file its size. A limit on the size of files (ulimit -f) holds for it too, though it takes no disk.
func grow(fd int, size uint64) error {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil || old.Cur >= size {
		return unix.Ftruncate(fd, int64(size))
	}
	if old.Max < size {
		return fmt.Errorf("files are limited to %d bytes (ulimit -f)", old.Max)
	}
	raised := unix.Rlimit{Cur: old.Max, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &raised); err != nil {
		return err
	}
	err := unix.Ftruncate(fd, int64(size))
	if e := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err == nil {
		err = e
	}
	return err
}

// Close gives the memory back. The device and its contexts must not be used afterwards.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := unix.Munmap(d.backing)
	if e := d.file.Close(); err == nil {
		err = e
	}
	d.backing = nil
	return err
}

// Memory is the device's global memory.
func (d *Device) Memory() *simt.Memory { return d.mem }

// Places resolves the places of the device's events and faults.
func (d *Device) Places() *simt.PlaceTable { return d.cfg.Places }

// limits are the limits of a device for those of whom it is not known what they were built for.
func (d *Device) limits() simt.Limits {
	if d.cfg.Limits != (simt.Limits{}) {
		return d.cfg.Limits
	}
	return simt.DefaultLimits()
}

// Unsupported lists the API calls that programs made and that are not supported, sorted.
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

// Operators is the number of operators that the host has computed in the device's place.
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

// tell queues a host operation for the sink. The device is locked; flush sends what was queued.
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

// unsupportedLimit bounds the names kept; programs call a few.
const unsupportedLimit = 1000

// notSupported notes a call that is not supported.
func (d *Device) notSupported(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unsupported) < unsupportedLimit {
		d.unsupported[printable(name)] = true
	}
}

// printable makes a name that came from a program fit to be printed.
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
