package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// allocAlign is the alignment of every allocation, as cudaMalloc promises.
const allocAlign = 256

var kindCalls = map[devmem.AllocKind]string{
	devmem.DeviceAlloc: "cudaMalloc", devmem.ManagedAlloc: "cudaMallocManaged", devmem.PinnedAlloc: "cudaHostAlloc",
	devmem.ArrayAlloc: "cudaMallocArray",
}

// Malloc allocates device, managed or pinned memory: cudaMalloc, cudaMallocManaged, cudaHostAlloc. For zero bytes it
// returns address 0.
func (c *Context) Malloc(size uint64, kind devmem.AllocKind) (uint64, error) {
	return c.malloc(size, kind, 0)
}

// malloc is Malloc with the flags of the call, which it keeps for hostFlags.
func (c *Context) malloc(size uint64, kind devmem.AllocKind, flags uint32) (uint64, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	addr, err := c.alloc(c.gpu, size, kind, c.host, nil, leased{})
	if a, ok := c.allocs[addr]; ok {
		a.flags = flags
		c.allocs[addr] = a
	}
	return addr, err
}

// hostFlags returns the flags with which pinned memory was allocated (cudaHostGetFlags).
func (c *Context) hostFlags(addr uint64) uint32 {
	leave, _ := c.enter()
	defer leave()
	return c.allocs[addr].flags
}

// leased is a place that the process has chosen in its lease.
type leased struct {
	addr  uint64 // 0: none
	bytes []byte // its bytes; nil: those at the address
}

// alloc allocates memory, from a pool if one is given, and at a place in the context's lease if one is given.
func (c *Context) alloc(g *gpu, size uint64, kind devmem.AllocKind, agent uint32, from *pool, at leased) (uint64, error) {
	if size == 0 {
		if kind == devmem.ManagedAlloc {
			return 0, fail(InvalidValue, "cudaMallocManaged of 0 bytes")
		}
		return 0, nil
	}
	call, ok := kindCalls[kind]
	if !ok {
		return 0, fail(InvalidValue, "memory kind %d", kind)
	}
	if from != nil {
		call = "cudaMallocAsync"
		if err := from.grow(size); err != nil {
			return 0, err
		}
	}
	c.mallocs++
	name := fmt.Sprintf("%s #%d (%s)", call, c.mallocs, byteCount(size))
	g.own(c.dev.mem)
	addr, err := at.addr, error(nil)
	if addr == 0 {
		addr, err = c.dev.mem.Alloc(size, c.alignment(kind), kind, name)
	} else if err = devmem.ErrOutOfMemory; c.leased != nil {
		err = c.dev.mem.AllocLeased(c.leased, addr, size, at.bytes, name)
	}
	if err != nil {
		if from != nil {
			from.used -= size
		}
		return 0, fail(MemoryAllocation, "%s of %d bytes: %v", call, size, err)
	}
	if from != nil && len(c.gpus) > 1 {
		c.dev.mem.SetPooled(addr, from.peers|1<<from.gpu.number)
	}
	c.allocs[addr] = allocation{size: size, kind: kind, pool: from}
	delete(c.freedAt, addr)
	c.dev.tell(event.HostOp{Kind: event.HostAlloc, Agent: agent, Addr: addr, Size: size, Name: call})
	return addr, nil
}

// Free is cudaFree: it waits for the device, then frees device or managed memory. Freeing address 0 has no effect.
func (c *Context) Free(addr uint64) error {
	return c.free("cudaFree", addr, "", devmem.DeviceAlloc, devmem.ManagedAlloc)
}

// FreeHost is cudaFreeHost: like Free, for pinned memory.
func (c *Context) FreeHost(addr uint64) error {
	return c.free("cudaFreeHost", addr, "", devmem.PinnedAlloc)
}

func (c *Context) free(call string, addr uint64, place string, kinds ...devmem.AllocKind) error {
	leave, err := c.enter()
	defer leave()
	if err != nil || addr == 0 {
		return err
	}
	a, ok := c.allocs[addr]
	if !ok || !slices.Contains(kinds, a.kind) {
		return c.badFree(call, addr)
	}
	if found, _ := c.dev.mem.Find(addr); a.kind == devmem.DeviceAlloc || a.kind == devmem.ArrayAlloc {
		c.waitGPU(c.gpus[found.Device], call)
	} else {
		c.waitAll(call)
	}
	c.freeAlloc(addr, c.host, call)
	c.freed(addr, call+place)
	return nil
}

// freedLimit bounds the number of freed allocations that are remembered.
const freedLimit = 1 << 16

// freed remembers what freed an allocation.
func (c *Context) freed(addr uint64, by string) {
	if len(c.freedAt) >= freedLimit {
		clear(c.freedAt)
	}
	c.freedAt[addr] = event.HostText(by)
}

// hostAddress names an address of the program. Most addresses differ from run to run, and reports must not.
func hostAddress(addr uint64) string {
	if addr < 1<<16 {
		return fmt.Sprintf("%#x", addr)
	}
	return "an address of the program's own"
}

// badFree describes the error of freeing an address.
func (c *Context) badFree(call string, addr uint64) error {
	a, known := c.dev.mem.Find(addr)
	own, live := c.allocs[addr]
	switch {
	case live:
		frees := map[devmem.AllocKind]string{devmem.PinnedAlloc: "cudaFreeHost", devmem.ArrayAlloc: "cudaFreeArray", devmem.ObjectAlloc: "cudaDestroyTextureObject"}
		return misuse(InvalidFree, InvalidValue, "%s of memory of %s, which %s frees", call, a.Name, cmp.Or(frees[own.kind], "cudaFree"))
	case a.Freed && addr == a.Addr && strings.HasPrefix(c.freedAt[addr], endOfContext):
		e := &Error{Code: InvalidValue, Kind: InvalidFree, minor: true}
		e.Msg = fmt.Sprintf("%s of %s, which cudaDeviceReset has freed", call, a.Name)
		return e
	case a.Freed && addr == a.Addr:
		return misuse(DoubleFree, InvalidValue, "%s of %s, which %s freed before", call, a.Name, cmp.Or(c.freedAt[addr], "another call"))
	case a.Freed:
		return misuse(InvalidFree, InvalidValue, "%s of an address %d bytes into %s, which was freed before", call, addr-a.Addr, a.Name)
	case known && addr != a.Addr:
		return misuse(InvalidFree, InvalidValue, "%s of an address %d bytes into %s: only the address that the allocation returned can be freed", call, addr-a.Addr, a.Name)
	case known:
		return misuse(InvalidFree, InvalidValue, "%s of %s, which no call allocated that it could free", call, a.Name)
	}
	return misuse(InvalidFree, InvalidValue, "%s of %s, which no call of the API has allocated", call, hostAddress(addr))
}

// freeAlloc ends an allocation of this context.
func (c *Context) freeAlloc(addr uint64, agent uint32, call string) {
	a := c.allocs[addr]
	delete(c.allocs, addr)
	if a.pool != nil {
		a.pool.used -= a.size
	}
	if _, err := c.dev.mem.Free(addr); err != nil {
		panic(fmt.Sprintf("BUG: allocation %#x is unknown to the memory: %v", addr, err))
	}
	for _, other := range c.dev.open {
		delete(other.shut, addr) // the address may be given out again
	}
	c.dev.tell(event.HostOp{Kind: event.HostFree, Agent: agent, Addr: addr, Size: a.size, Name: call})
}

// MallocAsync is cudaMallocAsync. The memory belongs to the stream until others wait for it, so the allocation is
// reported as a write in stream order. So is FreeAsync, which must come after all accesses by others.
func (c *Context) MallocAsync(size uint64, id StreamID, thread uint32) (addr uint64, err error) {
	return c.mallocAsync(size, id, thread, 0, leased{}, "")
}

// lease reserves addresses that the process allocates from by itself.
func (c *Context) lease(size uint64) (begin, end uint64, err error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, 0, err
	}
	l, err := c.dev.mem.Lease(size)
	if err != nil {
		return 0, 0, fail(MemoryAllocation, "a lease of %d bytes: %v", size, err)
	}
	c.endLease() // the process does not use the rest of the previous lease
	c.leased = l
	return l.Begin, l.End, nil
}

func (c *Context) endLease() {
	if c.leased != nil {
		c.dev.mem.EndLease(c.leased)
		c.leased = nil
	}
}

// mallocAsync allocates from a pool; 0 is the current one of the stream's device.
func (c *Context) mallocAsync(size uint64, id StreamID, thread uint32, pool uint64, at leased, place string) (addr uint64, err error) {
	err = c.on(id, thread, func(s *stream) error {
		from := c.ofPool(s.gpu, calls.PoolOfDevice, true)
		if pool != 0 {
			if from, err = c.poolByID(pool); err != nil {
				return err
			}
		}
		name := "cudaMallocAsync (" + s.name + ")" + place
		c.begin(s, name)
		c.work(s)
		if addr, err = c.alloc(from.gpu, size, poolMemory[from.kind], s.agent, from, at); addr != 0 {
			c.dev.tell(event.HostOp{Kind: event.HostWrite, Agent: s.agent, Addr: addr, Size: size, Name: name})
		}
		return err
	})
	return addr, err
}

// FreeAsync is cudaFreeAsync. It succeeds on a lost device, of which nothing can be used again. torch's allocator calls
// it when Python frees a tensor, and ends the process if it fails, so that the script could not report the error.
func (c *Context) FreeAsync(addr uint64, id StreamID, thread uint32) error {
	return c.freeAsync(addr, id, thread, "")
}

func (c *Context) freeAsync(addr uint64, id StreamID, thread uint32, place string) error {
	err := c.on(id, thread, func(s *stream) error {
		a, ok := c.allocs[addr]
		if !ok || a.kind != devmem.DeviceAlloc && a.pool == nil {
			return c.badFree("cudaFreeAsync", addr)
		}
		name := "cudaFreeAsync (" + s.name + ")" + place
		c.begin(s, name)
		c.work(s)
		c.dev.tell(event.HostOp{Kind: event.HostWrite, Agent: s.agent, Addr: addr, Size: a.size, Name: name})
		c.freeAlloc(addr, s.agent, name)
		c.freed(addr, name)
		return nil
	})
	var e *Error
	if errors.As(err, &e) && e.lost {
		return nil
	}
	return err
}

// Write copies bytes from pageable host memory to device, managed or pinned memory: cudaMemcpy.
func (c *Context) Write(addr uint64, data []byte) error {
	leave, err := c.enter()
	defer leave()
	if err != nil || len(data) == 0 {
		return err
	}
	dst, err := c.bytes(addr, uint64(len(data)))
	if err != nil {
		return err
	}
	k := Copy{Dst: addr, Width: uint64(len(data)), Height: 1, Depth: 1, Kind: HostToDevice}
	if err := c.orderCopy(&k, 0, 0); err != nil {
		return err
	}
	copy(dst, data)
	return nil
}

// Zeroed reports that the host relies on an allocation being zero, as a new one of this device is.
func (c *Context) Zeroed(addr, size uint64) {
	leave, _ := c.enter()
	defer leave()
	c.dev.tell(event.HostOp{Kind: event.HostWrite, Agent: c.host, Addr: addr, Size: size, Name: "zeros of a launch file"})
}

// Read copies bytes from device, managed or pinned memory to pageable host memory: cudaMemcpy.
func (c *Context) Read(addr uint64, data []byte) error {
	leave, err := c.enter()
	defer leave()
	if err != nil || len(data) == 0 {
		return err
	}
	src, err := c.bytes(addr, uint64(len(data)))
	if err != nil {
		return err
	}
	k := Copy{Src: addr, Width: uint64(len(data)), Height: 1, Depth: 1, Kind: DeviceToHost}
	if err := c.orderCopy(&k, 0, 0); err != nil {
		return err
	}
	copy(data, src)
	return nil
}

// bytes returns the memory of a range that must be in one live allocation.
func (c *Context) bytes(addr, n uint64) ([]byte, error) {
	b, err := c.dev.mem.Bytes(addr, n)
	if err != nil {
		return nil, fail(InvalidValue, "%d bytes at %#x: %v", n, addr, err)
	}
	return b, nil
}

// CopyKind is the direction of a copy (cudaMemcpyKind).
type CopyKind uint8

// The directions. Default derives the direction from the addresses.
const (
	HostToHost CopyKind = iota
	HostToDevice
	DeviceToHost
	DeviceToDevice
	Default
)

// SourceOrder says when a copy reads its source (cudaMemcpySrcAccessOrder).
type SourceOrder uint8

// The orders. A read out of stream order is not ordered after the earlier work of the stream.
const (
	InStream   SourceOrder = iota
	DuringCall             // before the call returns
	AnyTime                // between the call and the end of the copy
)

// Copy is a copy of Width bytes, Height rows and Depth slices. Pitches and slice pitches are in bytes. It describes
// cudaMemcpy and its 2D, 3D and asynchronous variants. Addresses outside the device's memory are pageable host memory.
type Copy struct {
	Dst, DstPitch, DstSlice uint64
	Src, SrcPitch, SrcSlice uint64
	Width, Height, Depth    uint64
	Kind                    CopyKind
	Async                   bool
	NoDst, NoSrc            bool // the program has no memory at that end
	Source                  SourceOrder
	Place                   string // of the call in the program, see event.HostPlace; "" if it is not known
}

// OrderCopy checks a copy and reports its order to the sink. The caller moves the bytes.
func (c *Context) OrderCopy(k Copy, id StreamID, thread uint32) error {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return err
	}
	return c.orderCopy(&k, id, thread)
}

// side is one end of a copy.
type side struct {
	addr, pitch, slice uint64
	known              bool // device, managed, pinned or registered memory
	kind               devmem.AllocKind
	gpu                int // to which it belongs
}

func (c *Context) orderCopy(k *Copy, id StreamID, thread uint32) error {
	if k.Width == 0 || k.Height == 0 || k.Depth == 0 {
		return nil
	}
	s, err := c.stream(id, thread)
	if err != nil {
		return err
	}
	if k.Kind > Default {
		return misuse(WrongDirection, InvalidMemcpyDirection, "copy direction %d", k.Kind)
	}
	dst, err := c.side("destination", k.Dst, k.DstPitch, k.DstSlice, k)
	if err != nil {
		return err
	}
	src, err := c.side("source", k.Src, k.SrcPitch, k.SrcSlice, k)
	if err != nil {
		return err
	}
	if err := checkSides(k, dst, src); err != nil {
		return err
	}
	call := copyName(k)
	name := fmt.Sprintf("%s (%s)%s", call, s.name, k.Place)
	reader := s.agent
	switch k.Source {
	case DuringCall:
		reader = c.host
	case AnyTime:
		reader = c.dev.newAgent()
		c.order(reader, c.host, name)
	}
	if reader != s.agent {
		c.touch(event.HostOp{Kind: event.HostRead, Agent: reader, Name: name}, src, k)
	}
	c.begin(s, name)
	if k.Source == AnyTime {
		c.order(s.agent, reader, name)
	}
	after := func() {}
	if !k.Async && s == s.gpu.legacy {
		after = c.between(s, name, dst.deviceOf(), src.deviceOf())
	}
	staged := !k.Async && dst.device() && !src.known
	if staged {
		// The call waits for the stream before it stages the source, but not for the copy that follows.
		c.order(c.host, s.agent, name)
		name = fmt.Sprintf("%s (%s), which may return before the device has the bytes%s", call, s.name, k.Place)
	}
	c.work(s)
	if reader == s.agent {
		c.touch(event.HostOp{Kind: event.HostRead, Agent: reader, Name: name}, src, k)
	}
	c.touch(event.HostOp{Kind: event.HostWrite, Agent: s.agent, Name: name, Staged: staged}, dst, k)
	after()
	if copyWaits(k.Async, dst, src) {
		c.order(c.host, s.agent, name)
	}
	return nil
}

func copyName(k *Copy) string {
	name := "cudaMemcpy"
	switch {
	case k.Depth > 1:
		name += "3D"
	case k.Height > 1:
		name += "2D"
	}
	if k.Async {
		name += "Async"
	}
	return name
}

// device reports whether an end counts as device memory in the rules of a copy. Managed memory does.
func (e side) device() bool {
	return e.known && e.kind != devmem.PinnedAlloc
}

// copyWaits reports whether the host waits for the copy (CUDA Runtime API, "API synchronization behavior"). Synchronous
// copies: from pageable host memory to the device the call may return once the source was staged; from pinned memory,
// to the host, and between host memories it waits; within the device it does not. Asynchronous copies: to pageable
// memory and between host memories the call waits, otherwise it does not.
func copyWaits(async bool, dst, src side) bool {
	switch {
	case !dst.device() && !src.device():
		return true
	case dst.device() && src.device():
		return false
	case dst.device():
		return !async && src.known
	default:
		return !async || !dst.known
	}
}

// side looks up one end. A range that begins in an allocation must lie within it.
func (c *Context) side(end string, addr, pitch, slice uint64, k *Copy) (side, error) {
	e := side{addr: addr, pitch: pitch, slice: slice}
	n, ok := extent(pitch, slice, k.Width, k.Height, k.Depth)
	if !ok && k.Height == 1 && k.Depth == 1 {
		return side{}, misuse(CallBounds, InvalidValue, "the size of the %s, %s, is beyond all memory", end, byteCount(k.Width))
	}
	if !ok {
		return side{}, fail(InvalidPitchValue, "pitch %d, slice pitch %d for rows of %d bytes, %d rows", pitch, slice, k.Width, k.Height)
	}
	a, found := c.dev.mem.Find(addr)
	switch {
	case found && a.Freed && c.freedAt[a.Addr] != "":
		return side{}, misuse(FreedMemory, InvalidValue, "the %s is in %s, which %s freed before", end, a.Name, c.freedAt[a.Addr])
	case found && a.Freed:
		return side{}, misuse(FreedMemory, InvalidValue, "the %s is in %s, which was freed before", end, a.Name)
	case found && c.shut[a.Addr]:
		return side{}, misuse(FreedMemory, InvalidValue, "the %s is in %s, memory of another process, which this one has closed (cudaIpcCloseMemHandle)", end, a.Name)
	case !found && c.inArena(addr, n):
		return side{}, misuse(InvalidPointer, InvalidValue, "the %s, %s at %#x, is in no allocation", end, byteCount(n), addr)
	case !found:
		return e, nil
	case n > a.Size || addr-a.Addr > a.Size-n:
		return side{}, misuse(CallBounds, InvalidValue, "the %s, %s from byte %d on, leaves %s", end, byteCount(n), addr-a.Addr, a.Name)
	}
	e.known, e.kind, e.gpu = true, a.Kind, a.Device
	return e, nil
}

// extent is the number of bytes from the first to the last byte of a pitched box. It returns 0, false if rows or slices
// would overlap or the numbers overflow.
func extent(pitch, slice, w, h, d uint64) (uint64, bool) {
	const limit = 1 << 47
	n := w
	for _, r := range [2]struct{ count, step uint64 }{{h, pitch}, {d, slice}} {
		if r.count > 1 {
			high, more := bits.Mul64(r.count-1, r.step)
			sum, carry := bits.Add64(n, more, 0)
			if r.step < n || high|carry != 0 {
				return 0, false
			}
			n = sum
		}
	}
	if n > limit {
		return 0, false
	}
	return n, true
}

// inArena reports whether a range overlaps the arena's addresses.
func (c *Context) inArena(addr, n uint64) bool {
	return addr < devmem.GlobalBase+c.dev.arena && addr+n > devmem.GlobalBase
}

// checkSides checks that the ends of a copy agree with its direction. With unified addressing the driver uses the
// addresses that it knows. An unknown address where the direction requires device memory is refused.
func checkSides(k *Copy, dst, src side) error {
	for _, x := range []struct {
		end    string
		e      side
		device bool // according to the direction
		absent bool
	}{
		{"destination", dst, k.Kind == HostToDevice || k.Kind == DeviceToDevice, k.NoDst},
		{"source", src, k.Kind == DeviceToHost || k.Kind == DeviceToDevice, k.NoSrc},
	} {
		switch {
		case !x.e.known && x.absent:
			return misuse(InvalidPointer, InvalidValue, "the %s is %s, where neither the device nor the program has memory", x.end, hostAddress(x.e.addr))
		case k.Kind == Default:
		case x.device && !x.e.known:
			return misuse(WrongDirection, InvalidValue, "the direction is %s, and the %s is host memory", k.Kind, x.end)
		case !x.device && x.e.known && x.e.kind == devmem.DeviceAlloc:
			return misuse(WrongDirection, InvalidValue, "the direction is %s, and the %s is device memory", k.Kind, x.end)
		}
	}
	return nil
}

// String returns the name of the direction in the runtime API.
func (k CopyKind) String() string {
	names := [...]string{"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice", "cudaMemcpyDefault"}
	if int(k) >= len(names) {
		return fmt.Sprintf("copy direction %d", uint8(k))
	}
	return names[k]
}

// touch reports to the sink the rows that op reads or writes, merging adjacent rows.
func (c *Context) touch(op event.HostOp, e side, k *Copy) {
	if !e.known {
		return
	}
	w, h, d := k.Width, k.Height, k.Depth
	if h > 1 && e.pitch == w {
		w, h = w*h, 1
		if d > 1 && e.slice == w {
			w, d = w*d, 1
		}
	}
	for z := range d {
		for y := range h {
			op.Addr, op.Size = e.addr+z*e.slice+y*e.pitch, w
			c.dev.tell(op)
		}
	}
}

// OrderFill checks a cudaMemset or a variant of it and reports its order to the sink. The caller sets the bytes. Copy's
// destination half describes the range.
func (c *Context) OrderFill(k Copy, id StreamID, thread uint32) error {
	leave, err := c.enter()
	defer leave()
	if err != nil || k.Width == 0 || k.Height == 0 || k.Depth == 0 {
		return err
	}
	s, err := c.stream(id, thread)
	if err != nil {
		return err
	}
	dst, err := c.side("destination", k.Dst, k.DstPitch, k.DstSlice, &k)
	if err != nil {
		return err
	}
	if !dst.known {
		return misuse(InvalidPointer, InvalidValue, "the destination is %s, which is not in device memory", hostAddress(k.Dst))
	}
	name := "cudaMemset"
	if k.Async {
		name += "Async"
	}
	name = fmt.Sprintf("%s (%s)%s", name, s.name, k.Place)
	c.begin(s, name)
	c.work(s)
	c.touch(event.HostOp{Kind: event.HostWrite, Agent: s.agent, Name: name}, dst, &k)
	// cudaMemset is asynchronous to the host, except on pinned and managed memory.
	if !k.Async && dst.kind != devmem.DeviceAlloc && dst.kind != devmem.ModuleAlloc {
		c.order(c.host, s.agent, name)
	}
	return nil
}

// Register is cudaHostRegister for page-aligned memory of the program. It returns the offset in the shared file that
// the program maps there instead.
func (c *Context) Register(addr, size uint64) (offset uint64, err error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	const page = 4096
	if addr == 0 || size == 0 || addr%page != 0 || size%page != 0 || addr >= 1<<47 || size > registeredRoom || c.inArena(addr, size) {
		return 0, fail(InvalidValue, "cudaHostRegister of %d bytes at %#x", size, addr)
	}
	offset, ok := c.dev.registered.take(size)
	if !ok {
		return 0, fail(MemoryAllocation, "no room to register %d bytes", size)
	}
	name := fmt.Sprintf("cudaHostRegister (%s)", byteCount(size))
	if err := c.dev.mem.Map(addr, c.dev.backing[offset:offset+size:offset+size], name); err != nil {
		c.dev.registered.add(offset, size)
		return 0, fail(HostMemoryAlreadyRegistered, "%s: %v", name, err)
	}
	c.pinned[addr] = registration{size, offset}
	c.dev.tell(event.HostOp{Kind: event.HostAlloc, Agent: c.host, Addr: addr, Size: size, Name: "cudaHostRegister"})
	return offset, nil
}

// Unregister is cudaHostUnregister of memory that contains addr. It returns the range. The program copies its bytes
// back before it makes another call.
func (c *Context) Unregister(addr uint64) (at, size uint64, err error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, 0, err
	}
	for at, r := range c.pinned {
		if addr-at < r.size { // below at the difference wraps around
			c.waitAll("cudaHostUnregister")
			c.unregister(at)
			return at, r.size, nil
		}
	}
	return 0, 0, fail(HostMemoryNotRegistered, "%#x is not registered", addr)
}

func (c *Context) unregister(at uint64) {
	r := c.pinned[at]
	delete(c.pinned, at)
	if err := c.dev.mem.Unmap(at); err != nil && !errors.Is(err, devmem.ErrNotAllocated) {
		panic(fmt.Sprintf("BUG: registered memory %#x cannot be unmapped: %v", at, err))
	}
	c.dev.registered.add(r.offset, r.size)
	c.dev.tell(event.HostOp{Kind: event.HostFree, Agent: c.host, Addr: at, Size: r.size, Name: "cudaHostUnregister"})
}

// Find returns the live allocation that contains addr.
func (c *Context) Find(addr uint64) (devmem.Alloc, bool) {
	leave, _ := c.enter()
	defer leave()
	a, ok := c.dev.mem.Find(addr)
	return a, ok && !a.Freed
}

// MemInfo returns the free and total bytes of device memory, as cudaMemGetInfo does.
func (c *Context) MemInfo() (free, total uint64) {
	leave, _ := c.enter()
	defer leave()
	return c.dev.mem.Room()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// byteCount is a human-readable size.
func byteCount(n uint64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
