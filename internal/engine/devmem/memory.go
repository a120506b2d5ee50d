// Package devmem is the global memory of a device: allocations with addresses, kinds and names, as the CUDA API and
// kernels use them. It knows nothing about kernels.
package devmem

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/pages"
)

// GlobalBase is the device address of the first byte of the arena. Device addresses equal host virtual addresses in the
// program under test, which maps the arena at this address.
const GlobalBase uint64 = isa.GlobalBase

const (
	MinAlign = 512 // alignment of every allocation; cudaMalloc guarantees 256
	// redZone is the smallest distance in bytes between two allocations, so that a shorter overrun does not reach the
	// neighbour.
	redZone = 512
	// keepFreed is the smallest number of freed allocations that are remembered; at most twice as many are.
	keepFreed = 1 << 15
	// dropPages is the size from which pages of a freed or cleared range are returned to the system.
	dropPages = 1 << 20
	// defaultHeap is CUDA's default of cudaLimitMallocHeapSize.
	defaultHeap = 8 << 20
)

// The errors of memory calls.
var (
	ErrOutOfMemory  = errors.New("out of memory")
	ErrNotAllocated = errors.New("not an allocation")
)

// AllocKind is the purpose of an allocation.
type AllocKind uint8

// The allocation kinds.
const (
	DeviceAlloc  AllocKind = iota // cudaMalloc and similar calls
	ManagedAlloc                  // cudaMallocManaged, __managed__
	PinnedAlloc                   // cudaHostAlloc, cudaMallocHost, registered host memory
	ModuleAlloc                   // __device__ and __constant__ variables
	HeapAlloc                     // device-side malloc
	ArrayAlloc                    // a CUDA array
	ObjectAlloc                   // the target of a texture or surface object
)

// Alloc is one allocation of global (or constant) memory.
type Alloc struct {
	Addr  uint64
	Size  uint64
	Kind  AllocKind
	Const bool // kernels must not write it
	// Device is the number of the GPU that the allocation belongs to. Kernels of all devices can access managed and
	// pinned memory.
	Device int
	// Pooled says that access is decided by Peers, a bit for each device, and not by peer access: peer access does not
	// apply to memory pools and to mapped memory.
	Pooled bool
	Peers  uint64
	Name   string // name of the variable, or of what made it: "cudaMalloc #3 (4096 bytes)"
	Freed  bool
}

// Block is an Alloc with its bytes.
type Block struct {
	Alloc
	Data []byte // the capacity includes the bytes after the block that belong to no other block
	lent bool   // Data is not in the arena, and belongs to another block when this one is freed
}

// Covers reports whether the byte at addr is in the block.
func (b *Block) Covers(addr uint64) bool { return addr-b.Addr < b.Size }

// Memory is the global memory of a device. It consists of an arena at GlobalBase, whose first half is device memory and
// whose second half is visible to the host, and of registered host memory at any address. Addresses depend only on the
// sequence of calls: they increase until a half is used up, and only then are the ranges freed longest ago reused.
//
// The methods may be called concurrently. The bytes themselves are not protected.
type Memory struct {
	arena []byte
	file  *os.File // of which arena is the beginning; nil: none
	owned bool
	epoch atomic.Uint64

	mu       sync.Mutex
	device   int             // of allocations to come
	hidden   uint64          // bits of the devices whose memory kernels do not reach
	shut     map[uint64]bool // addresses of allocations that kernels do not reach, whatever device they belong to
	blocks   []*Block        // live and freed, by address, disjoint
	freed    []*Block        // in the order of their Free
	mapped   []*Block        // registered host memory, by address
	halves   [2]half
	leases   []*Lease
	programs uint32
	heapUsed uint64
	heapSize uint64
	pinned   bool
}

// half is one half of the arena. Addresses below next have been allocated at least once.
type half struct{ begin, next, end uint64 }

// New makes a memory with size bytes of address space. Pages are allocated when they are first used.
func New(size uint64) (*Memory, error) {
	arena, err := pages.Reserve(size)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space for device memory: %w", size, err)
	}
	m := NewOver(arena, nil)
	m.owned = true
	return m, nil
}

// NewOver makes a memory over a mapping by the caller of the beginning of a file (nil: no file). The mapping must
// contain zeros.
func NewOver(backing []byte, file *os.File) *Memory {
	size := uint64(len(backing)) &^ (2*MinAlign - 1)
	mid := GlobalBase + size/2
	return &Memory{
		arena:    backing,
		file:     file,
		halves:   [2]half{{GlobalBase, GlobalBase, mid}, {mid, mid, GlobalBase + size}},
		heapSize: defaultHeap,
	}
}

// File returns the file whose first size bytes are the arena, for processes that map it at GlobalBase; nil if there is
// none.
func (m *Memory) File() (file *os.File, size uint64) { return m.file, uint64(len(m.arena)) }

// Epoch increases with every change that may affect Lookup, for caches of its results.
func (m *Memory) Epoch() uint64 { return m.epoch.Load() }

// ForgetLookups invalidates all caches of Lookup's results.
func (m *Memory) ForgetLookups() { m.epoch.Add(1) }

// Spans reports whether an address is in the range from which Alloc allocates.
func (m *Memory) Spans(addr uint64) bool {
	return addr >= GlobalBase && addr < GlobalBase+uint64(len(m.arena))
}

// Pin keeps the pages of the memory in place, because a GPU uses them.
func (m *Memory) Pin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pinned = true
}

// Close frees the address space of a Memory made by New. The memory must not be used afterwards.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	arena := m.arena
	m.arena, m.blocks, m.freed, m.mapped = nil, nil, nil, nil
	m.epoch.Add(1)
	if !m.owned || arena == nil {
		return nil
	}
	return pages.Release(arena)
}

// SetHeapSize sets the limit for device-side malloc (cudaLimitMallocHeapSize).
func (m *Memory) SetHeapSize(size uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heapSize = size
}

// Alloc allocates size bytes, aligned to align (a power of two), but at least to 512. The bytes are zero. The error is
// ErrOutOfMemory.
func (m *Memory) Alloc(size, align uint64, kind AllocKind, name string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, err := m.alloc(size, align, kind, name)
	if err != nil {
		return 0, err
	}
	return b.Addr, nil
}

// AllocHeap is device-side malloc. The error is ErrOutOfMemory if the heap is exhausted.
func (m *Memory) AllocHeap(size uint64, name string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if size > m.heapSize || m.heapUsed > m.heapSize-size {
		return 0, ErrOutOfMemory
	}
	b, err := m.alloc(size, MinAlign, HeapAlloc, name)
	if err != nil {
		return 0, err
	}
	m.heapUsed += size
	return b.Addr, nil
}

// SetConst makes the allocation at addr read-only for kernels.
func (m *Memory) SetConst(addr uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.find(m.blocks, addr); b != nil {
		b.Const = true
		m.epoch.Add(1)
	}
}

func (m *Memory) alloc(size, align uint64, kind AllocKind, name string) (*Block, error) {
	if align < MinAlign {
		align = MinAlign
	}
	if align&(align-1) != 0 {
		return nil, fmt.Errorf("alignment %d is not a power of two", align)
	}
	h := &m.halves[0]
	if kind == ManagedAlloc || kind == PinnedAlloc {
		h = &m.halves[1]
	}
	if size > h.end-h.begin {
		return nil, ErrOutOfMemory
	}
	addr := RoundUp(h.next, align)
	fresh := addr+size+redZone <= h.end
	if fresh {
		h.next = addr + size + redZone
	} else {
		var ok bool
		if addr, ok = m.reuse(h, size, align); !ok {
			return nil, ErrOutOfMemory
		}
	}
	off := addr - GlobalBase
	data := m.arena[off : off+size : off+size+redZone]
	if m.owned {
		if err := pages.Commit(data[:cap(data)]); err != nil {
			return nil, ErrOutOfMemory
		}
	}
	if !fresh {
		m.zero(off, size)
	}
	b := &Block{Alloc: Alloc{Addr: addr, Size: size, Kind: kind, Name: name, Device: m.device}, Data: data}
	m.insert(b)
	m.epoch.Add(1)
	return b, nil
}

// Lease is a reserved range of device addresses. Its holder allocates from it in increasing order, each address once.
type Lease struct {
	Begin, End uint64
	next       uint64
}

// Lease reserves a range of device addresses for AllocLeased. The error is ErrOutOfMemory.
func (m *Memory) Lease(size uint64) (*Lease, error) { return m.Reserve(size, MinAlign) }

// Reserve reserves a range of device addresses for Populate, aligned to align, a power of two. The error is
// ErrOutOfMemory.
func (m *Memory) Reserve(size, align uint64) (*Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := &m.halves[0]
	size = RoundUp(min(size, h.end), MinAlign)
	if size == 0 || size > (h.end-h.begin)/2 || align > h.end {
		return nil, ErrOutOfMemory
	}
	addr := h.next
	if addr = RoundUp(addr, align); addr+size+redZone <= h.end {
		h.next = addr + size + redZone
	} else {
		var ok bool
		if addr, ok = m.reuse(h, size, align); !ok {
			return nil, ErrOutOfMemory
		}
	}
	l := &Lease{addr, addr + size, addr}
	m.leases = append(m.leases, l)
	return l, nil
}

// EndLease frees the part of a lease that was not allocated.
func (m *Memory) EndLease(l *Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leases = slices.DeleteFunc(m.leases, func(o *Lease) bool { return o == l })
}

// Reserved returns the size bytes at an address in a lease, whether or not anything is allocated there.
func (m *Memory) Reserved(l *Lease, addr, size uint64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if addr < l.Begin || addr > l.End || size > l.End-addr {
		panic(fmt.Sprintf("BUG: %d bytes at %#x are not of the lease from %#x to %#x", size, addr, l.Begin, l.End))
	}
	off := addr - GlobalBase
	return m.arena[off : off+size : off+size]
}

// Set sets the size bytes at an address in a lease to data, followed by zeros if data is shorter.
func (m *Memory) Set(l *Lease, addr, size uint64, data []byte) error {
	to := m.Reserved(l, addr, size)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owned {
		if err := pages.Commit(to); err != nil {
			return ErrOutOfMemory
		}
	}
	m.zero(addr-GlobalBase, size)
	copy(to, data)
	return nil
}

// Populate makes runs the only live allocations in a lease. They are sorted by address and disjoint. Their bytes are
// those at their addresses. An earlier allocation of which nothing is left becomes freed.
func (m *Memory) Populate(l *Lease, runs []Alloc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	replaced := func(b *Block) bool {
		return b.Addr >= l.Begin && b.Addr < l.End &&
			slices.ContainsFunc(runs, func(a Alloc) bool { return a.Addr < b.Addr+b.Size && b.Addr < a.Addr+a.Size })
	}
	m.blocks = slices.DeleteFunc(m.blocks, replaced)
	m.freed = slices.DeleteFunc(m.freed, replaced)
	for _, b := range m.blocks {
		if b.Addr >= l.Begin && b.Addr < l.End && !b.Freed {
			b.Freed = true
			m.dropPages(b)
			m.freed = append(m.freed, b)
		}
	}
	for _, a := range runs {
		off := a.Addr - GlobalBase
		m.insert(&Block{Alloc: a, Data: m.arena[off : off+a.Size : off+a.Size]})
	}
	m.epoch.Add(1)
}

// AllocLeased allocates device memory at an address in a lease. The address is a multiple of 512, at least 512 bytes
// after the previous allocation. data are its bytes, which the caller gets back when it is freed; nil: the bytes at the
// address.
func (m *Memory) AllocLeased(l *Lease, addr, size uint64, data []byte, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if addr < l.next || addr >= l.End || addr%MinAlign != 0 || size > l.End-addr || redZone > l.End-addr-size {
		return ErrOutOfMemory
	}
	l.next = RoundUp(addr+size+redZone, MinAlign)
	b := &Block{Alloc: Alloc{Addr: addr, Size: size, Kind: DeviceAlloc, Name: name, Device: m.device}, Data: data, lent: data != nil}
	if off := addr - GlobalBase; !b.lent {
		b.Data = m.arena[off : off+size : off+size]
	}
	m.insert(b)
	m.epoch.Add(1)
	return nil
}

// pastLeases returns the first address, not below addr, of size bytes outside all leases.
func (m *Memory) pastLeases(addr, size, align uint64) uint64 {
	for again := true; again; {
		again = false
		for _, l := range m.leases {
			if addr < l.End && l.next < addr+size+redZone {
				addr, again = RoundUp(l.End, align), true
			}
		}
	}
	return addr
}

// reuse finds space between the allocations of h. If there is none, it forgets freed allocations, oldest first, until
// there is some.
func (m *Memory) reuse(h *half, size, align uint64) (uint64, bool) {
	for {
		at := h.begin
		i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].Addr >= h.begin })
		for ; ; i++ {
			addr, end := m.pastLeases(RoundUp(at, align), size, align), h.end
			last := i >= len(m.blocks) || m.blocks[i].Addr >= h.end
			if !last {
				end = m.blocks[i].Addr
			}
			if addr+size+redZone <= end {
				return addr, true
			}
			if last {
				break
			}
			at = m.blocks[i].Addr + m.blocks[i].Size + redZone
		}
		if len(m.freed) == 0 {
			return 0, false
		}
		m.forget((len(m.freed) + 1) / 2)
	}
}

// forget drops the n freed allocations that were freed longest ago.
func (m *Memory) forget(n int) {
	drop := make(map[*Block]bool, n)
	for _, b := range m.freed[:n] {
		drop[b] = true
	}
	m.freed = append(m.freed[:0], m.freed[n:]...)
	kept := m.blocks[:0]
	for _, b := range m.blocks {
		if !drop[b] {
			kept = append(kept, b)
		}
	}
	clear(m.blocks[len(kept):])
	m.blocks = kept
	m.epoch.Add(1)
}

func (m *Memory) insert(b *Block) {
	i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].Addr > b.Addr })
	m.blocks = append(m.blocks, nil)
	copy(m.blocks[i+1:], m.blocks[i:])
	m.blocks[i] = b
}

// Free frees the allocation that begins at addr, and returns it. The range is remembered, so that later accesses are
// recognised as uses after free. The error is ErrNotAllocated.
func (m *Memory) Free(addr uint64) (Alloc, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.find(m.blocks, addr)
	if b == nil || b.Addr != addr || b.Freed {
		return Alloc{}, ErrNotAllocated
	}
	b.Freed = true
	if b.Kind == HeapAlloc {
		m.heapUsed -= b.Size
	}
	if b.lent {
		b.Data = nil
	} else {
		m.dropPages(b)
	}
	m.freed = append(m.freed, b)
	if len(m.freed) > 2*keepFreed {
		m.forget(keepFreed)
	}
	m.epoch.Add(1)
	return b.Alloc, nil
}

// dropPages returns the whole pages of a large freed block to the system.
func (m *Memory) dropPages(b *Block) {
	off := b.Addr - GlobalBase
	m.drop(off, off+b.Size)
}

// zero clears size bytes of the arena. The cost for a large range is that of the pages that were used.
func (m *Memory) zero(off, size uint64) {
	from, to := m.drop(off, off+size)
	clear(m.arena[off:from])
	clear(m.arena[to : off+size])
}

// drop returns the whole pages of a large range of the arena to the system, so that they read as zero. It returns the
// range of these pages: empty if the range is small, or if the mapping does not support it.
func (m *Memory) drop(off, end uint64) (from, to uint64) {
	from, to = RoundUp(off, pages.Size), end&^(pages.Size-1)
	if end-off < dropPages || from >= to || m.pinned {
		return end, end
	}
	if !pages.Drop(m.arena[from:to], !m.owned) {
		return end, end
	}
	return from, to
}

// Map makes the host memory at addr, with the bytes backing, accessible to kernels at the same address. It fails if the
// range overlaps the arena or an earlier mapping.
func (m *Memory) Map(addr uint64, backing []byte, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := uint64(len(backing))
	if addr+size < addr || addr < GlobalBase+uint64(len(m.arena)) && GlobalBase < addr+size {
		return fmt.Errorf("map %#x: the range overlaps device memory", addr)
	}
	i := sort.Search(len(m.mapped), func(i int) bool { return m.mapped[i].Addr+m.mapped[i].Size > addr })
	if i < len(m.mapped) && m.mapped[i].Addr < addr+size {
		return fmt.Errorf("map %#x: the range is registered already (%s)", addr, m.mapped[i].Name)
	}
	m.mapped = append(m.mapped, nil)
	copy(m.mapped[i+1:], m.mapped[i:])
	m.mapped[i] = &Block{Alloc: Alloc{Addr: addr, Size: size, Kind: PinnedAlloc, Name: name}, Data: backing}
	m.epoch.Add(1)
	return nil
}

// apart is the first address of memory for tools: above all addresses of the host, and so far from the arena that wrong
// accesses of a program do not reach it.
const apart = 1 << 48

// AllocApart allocates memory for a tool without affecting the program: the program's addresses are the same as without
// it, and its wrong accesses remain wrong. The bytes are zero. free ends the allocation. The error is ErrOutOfMemory.
func (m *Memory) AllocApart(size uint64, name string) (addr uint64, free func(), err error) {
	data, err := pages.Reserve(size)
	if err != nil {
		return 0, nil, ErrOutOfMemory
	}
	if pages.Commit(data) != nil {
		_ = pages.Release(data)
		return 0, nil, ErrOutOfMemory
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	addr = apart
	if n := len(m.mapped); n > 0 {
		last := m.mapped[n-1]
		addr = max(addr, RoundUp(last.Addr+last.Size+redZone, MinAlign))
	}
	m.mapped = append(m.mapped, &Block{Alloc: Alloc{Addr: addr, Size: size, Kind: DeviceAlloc, Name: name, Device: m.device}, Data: data})
	m.epoch.Add(1)
	return addr, func() {
		_ = m.Unmap(addr)
		_ = pages.Release(data)
	}, nil
}

// Unmap undoes Map for addr. The error is ErrNotAllocated.
func (m *Memory) Unmap(addr uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, b := range m.mapped {
		if b.Addr == addr {
			m.mapped = append(m.mapped[:i], m.mapped[i+1:]...)
			m.epoch.Add(1)
			return nil
		}
	}
	return ErrNotAllocated
}

// find returns the block that covers addr in a list sorted by address. A block of size 0 covers its own address.
func (m *Memory) find(in []*Block, addr uint64) *Block {
	i := sort.Search(len(in), func(i int) bool { return in[i].Addr > addr }) - 1
	if i >= 0 && (in[i].Covers(addr) || in[i].Addr == addr) {
		return in[i]
	}
	return nil
}

// Lookup returns the block that covers addr as kernels see it: live, freed, or registered host memory. It returns nil
// if there is none, or if it belongs to a device whose memory kernels cannot access.
func (m *Memory) Lookup(addr uint64) *Block {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.known(addr)
	if b != nil && !m.reaches(b) {
		return nil
	}
	return b
}

// known returns the block that covers addr, whether or not kernels can access it. The memory must be locked.
func (m *Memory) known(addr uint64) *Block {
	if b := m.find(m.blocks, addr); b != nil {
		return b
	}
	return m.find(m.mapped, addr)
}

func (m *Memory) reaches(b *Block) bool {
	if m.shut[b.Addr] {
		return false
	}
	if b.Pooled {
		return b.Peers>>m.device&1 != 0
	}
	return m.hidden>>b.Device&1 == 0 || b.Kind == ManagedAlloc || b.Kind == PinnedAlloc
}

// SetPooled marks the allocation at addr as part of a memory pool. peers are the devices that can access it.
func (m *Memory) SetPooled(addr, peers uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.known(addr); b != nil {
		b.Pooled, b.Peers = true, peers
		m.epoch.Add(1)
	}
}

// On sets the device of later allocations, and the devices (a bit each, in hidden) whose memory kernels cannot access,
// except managed and pinned memory. A new Memory has only device 0.
func (m *Memory) On(device int, hidden uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.device = device
	if m.hidden != hidden {
		m.hidden = hidden
		m.epoch.Add(1)
	}
}

// Shut says which allocations, by address, the kernels that follow do not reach: their process has closed them, and others have not.
func (m *Memory) Shut(addrs map[uint64]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.Equal(m.shut, addrs) {
		m.shut = maps.Clone(addrs)
		m.epoch.Add(1)
	}
}

// IsShut says whether Shut has named the allocation that covers addr.
func (m *Memory) IsShut(addr uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.known(addr)
	return b != nil && m.shut[b.Addr]
}

// Hidden returns the allocation that covers addr if kernels cannot access it, because of its device or because it is shut.
func (m *Memory) Hidden(addr uint64) (Alloc, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.known(addr); b != nil && !m.reaches(b) {
		return b.Alloc, true
	}
	return Alloc{}, false
}

// Find returns the allocation that covers addr: the live one, or the one freed last.
func (m *Memory) Find(addr uint64) (Alloc, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.known(addr); b != nil {
		return b.Alloc, true
	}
	return Alloc{}, false
}

// Neighbours returns the allocations that end before addr and begin after it, for messages.
func (m *Memory) Neighbours(addr uint64) (before, after *Alloc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, table := range [][]*Block{m.blocks, m.mapped} {
		i := sort.Search(len(table), func(i int) bool { return table[i].Addr > addr })
		if i > 0 && (before == nil || table[i-1].Addr > before.Addr) {
			a := table[i-1].Alloc
			before = &a
		}
		if i < len(table) && (after == nil || table[i].Addr < after.Addr) {
			a := table[i].Alloc
			after = &a
		}
	}
	return before, after
}

// Bytes returns the n bytes at addr, for copies by the host. They must be in one live allocation; otherwise the error
// wraps ErrNotAllocated.
func (m *Memory) Bytes(addr, n uint64) ([]byte, error) {
	m.mu.Lock()
	b := m.known(addr)
	m.mu.Unlock()
	if b == nil || b.Freed {
		return nil, fmt.Errorf("%#x: %w", addr, ErrNotAllocated)
	}
	off := addr - b.Addr
	if n > b.Size-off {
		return nil, fmt.Errorf("%d bytes at %#x pass the end of %s by %d: %w", n, addr, b.Name, n-(b.Size-off), ErrNotAllocated)
	}
	return b.Data[off : off+n : off+n], nil
}

// Allocs returns the live allocations, sorted by address.
func (m *Memory) Allocs() []Alloc {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Alloc
	for _, b := range m.blocks {
		if !b.Freed {
			all = append(all, b.Alloc)
		}
	}
	return all
}

// Known returns what Find can return: live allocations, freed ones whose addresses have not been reused, and registered
// host memory, each sorted by address.
func (m *Memory) Known() []Alloc {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Alloc
	for _, table := range [][]*Block{m.blocks, m.mapped} {
		for _, b := range table {
			all = append(all, b.Alloc)
		}
	}
	return all
}

// Room returns the size of the device half, and the number of bytes in it that are not allocated (cudaMemGetInfo).
func (m *Memory) Room() (free, total uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.halves[0]
	total = h.end - h.begin
	free = total
	for _, b := range m.blocks {
		if !b.Freed && b.Addr < h.end {
			free -= b.Size
		}
	}
	return free, total
}

// NextProgram numbers the programs loaded into the memory, from 0.
func (m *Memory) NextProgram() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.programs++
	return m.programs - 1
}

// RoundUp returns the smallest multiple of align, a power of two, that is not less than n.
func RoundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }
