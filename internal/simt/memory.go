package simt

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
