package simt

import "errors"

// GlobalBase is the device address of the first byte of the arena. Device addresses equal host virtual addresses in
// the program under test, which maps the same arena here.
const GlobalBase uint64 = 0x2000_0000_0000

// What memory calls can answer.
var (
	ErrOutOfMemory  = errors.New("out of memory")
	ErrNotAllocated = errors.New("not an allocation")
)

// AllocKind says what an allocation is for.
type AllocKind uint8

// The allocation kinds.
const (
	DeviceAlloc  AllocKind = iota // cudaMalloc and its kin
	ManagedAlloc                  // cudaMallocManaged, __managed__
	PinnedAlloc                   // cudaHostAlloc, cudaMallocHost, registered host memory
	ModuleAlloc                   // __device__ and __constant__ variables
	HeapAlloc                     // device-side malloc
)

// Alloc is one allocation of global (or constant) memory.
type Alloc struct {
	Addr  uint64
	Size  uint64
	Kind  AllocKind
	Const bool   // kernels must not write it
	Name  string // variable name, or what made it: "cudaMalloc #3 (4096 bytes)"
	Freed bool
}

// Memory is the global memory of a device.
type Memory struct{}

// NewMemory makes a memory of its own: size bytes of address space, no pages until touched.
func NewMemory(size uint64) (*Memory, error) { return &Memory{}, nil }

// NewMemoryOver makes a memory of the caller's mapping, which must hold zeros.
func NewMemoryOver(backing []byte) *Memory { return &Memory{} }

// Alloc places size bytes.
func (m *Memory) Alloc(size, align uint64, kind AllocKind, name string) (uint64, error) {
	return 0, ErrOutOfMemory
}

// Free ends the allocation that begins at addr.
func (m *Memory) Free(addr uint64) (Alloc, error) { return Alloc{}, ErrNotAllocated }

// Map makes host memory reachable by kernels.
func (m *Memory) Map(addr uint64, backing []byte, name string) error { return nil }

// Unmap undoes Map.
func (m *Memory) Unmap(addr uint64) error { return ErrNotAllocated }

// Find gives the allocation that covers addr.
func (m *Memory) Find(addr uint64) (Alloc, bool) { return Alloc{}, false }

// Bytes gives the n bytes at addr.
func (m *Memory) Bytes(addr, n uint64) ([]byte, error) { return nil, ErrNotAllocated }
