package cuda

import (
	"context"
	"fmt"
	"slices"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// This file implements virtual memory management: addresses are reserved, and physical allocations are mapped there.
// For kernels and copies, adjacent mappings with one kind of access are one allocation. Other addresses belong to no
// allocation.

// granularity is the unit of sizes and addresses of virtual memory management.
const granularity = 2 << 20

// reservation is a range of addresses.
type reservation struct {
	lease *devmem.Lease
	name  string
	maps  []part // by address
}

// part is a physical allocation at addresses of a reservation.
type part struct {
	addr           uint64
	of             *physical
	writers, reads uint64 // bits of the devices that may read and write, and of those that may only read
}

func (m *part) accessOf(device int) Access {
	switch {
	case m.writers>>device&1 != 0:
		return AccessReadWrite
	case m.reads>>device&1 != 0:
		return AccessRead
	}
	return AccessNone
}

// physical is an allocation of cuMemCreate. Its bytes are those at the address where it is mapped, or the field saved
// if it is not mapped.
type physical struct {
	id, size uint64
	gpu      *gpu
	refs     int // number of handles
	mapped   bool
	saved    []byte
}

// Access is the access of a device to a part (CUmemAccess_flags).
type Access uint64

// The accesses.
const (
	AccessNone      Access = 0
	AccessRead      Access = 1
	AccessReadWrite Access = 3
)

// virtual calls f with the device locked.
func (c *Context) virtual(f func() error) error {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return err
	}
	return f()
}

// ReserveAddresses is cuMemAddressReserve.
func (c *Context) ReserveAddresses(size, align uint64) (addr uint64, err error) {
	err = c.virtual(func() error {
		if size == 0 || size%granularity != 0 || align&(align-1) != 0 {
			return fail(InvalidValue, "cuMemAddressReserve of %d bytes at a multiple of %d", size, align)
		}
		l, err := c.dev.mem.Reserve(size, max(align, granularity))
		if err != nil {
			return fail(MemoryAllocation, "cuMemAddressReserve of %d bytes: %v", size, err)
		}
		c.mallocs++
		c.reserved = append(c.reserved, &reservation{lease: l, name: fmt.Sprintf("cuMemAddressReserve #%d (%s)", c.mallocs, byteCount(size))})
		addr = l.Begin
		return nil
	})
	return addr, err
}

// reservation returns the reservation that contains a range.
func (c *Context) reservation(call string, addr, size uint64) (*reservation, error) {
	for _, r := range c.reserved {
		if addr >= r.lease.Begin && addr < r.lease.End && size <= r.lease.End-addr {
			return r, nil
		}
	}
	return nil, misuse(InvalidPointer, InvalidValue, "%s of %s at %#x, which cuMemAddressReserve has not reserved", call, byteCount(size), addr)
}

// FreeAddresses is cuMemAddressFree.
func (c *Context) FreeAddresses(addr, size uint64) error {
	return c.virtual(func() error {
		r, err := c.reservation("cuMemAddressFree", addr, size)
		switch {
		case err != nil:
			return err
		case addr != r.lease.Begin || size != r.lease.End-addr:
			return misuse(InvalidFree, InvalidValue, "cuMemAddressFree of %s at byte %d of %s: a reservation is freed as a whole", byteCount(size), addr-r.lease.Begin, r.name)
		case len(r.maps) > 0:
			return misuse(InvalidFree, InvalidValue, "cuMemAddressFree of %s, where memory is mapped: cuMemUnmap comes before", r.name)
		}
		c.dev.mem.EndLease(r.lease)
		c.reserved = slices.DeleteFunc(c.reserved, func(o *reservation) bool { return o == r })
		return nil
	})
}

// CreateMemory is cuMemCreate on a device. It returns the handle.
func (c *Context) CreateMemory(size uint64, device int) (handle uint64, err error) {
	err = c.virtual(func() error {
		g, err := c.gpuOf(device)
		if err != nil {
			return err
		}
		if size == 0 || size%granularity != 0 {
			return fail(InvalidValue, "cuMemCreate of %d bytes, which is no multiple of %d", size, granularity)
		}
		if free, _ := c.dev.mem.Room(); size > free || c.physicalBytes() > free-size {
			return fail(MemoryAllocation, "cuMemCreate of %d bytes", size)
		}
		p := &physical{id: c.newID(), size: size, gpu: g, refs: 1}
		if c.physical == nil {
			c.physical = map[uint64]*physical{}
		}
		c.physical[p.id] = p
		handle = p.id
		return nil
	})
	return handle, err
}

// physicalBytes is the size of the physical allocations that are not mapped.
func (c *Context) physicalBytes() (n uint64) {
	for _, p := range c.physical {
		if !p.mapped {
			n += p.size
		}
	}
	return n
}

func (c *Context) physicalOf(call string, handle uint64) (*physical, error) {
	if p := c.physical[handle]; p != nil && p.refs > 0 {
		return p, nil
	}
	return nil, misuse(InvalidHandle, InvalidValue, "the allocation of %s was released before, or no call has made it", call)
}

// ReleaseMemory is cuMemRelease: the memory stays while it is mapped.
func (c *Context) ReleaseMemory(handle uint64) error {
	return c.virtual(func() error {
		p, err := c.physicalOf("cuMemRelease", handle)
		if err != nil {
			return err
		}
		p.refs--
		c.forgetPhysical(p)
		return nil
	})
}

func (c *Context) forgetPhysical(p *physical) {
	if p.refs == 0 && !p.mapped {
		delete(c.physical, p.id)
	}
}

// MapMemory is cuMemMap. Kernels can access the memory after SetAccess.
func (c *Context) MapMemory(addr, size, handle uint64) error {
	return c.virtual(func() error {
		p, err := c.physicalOf("cuMemMap", handle)
		if err != nil {
			return err
		}
		r, err := c.reservation("cuMemMap", addr, size)
		if err != nil {
			return err
		}
		i, _ := slices.BinarySearchFunc(r.maps, addr, func(m part, a uint64) int { return int(int64(m.addr - a)) })
		switch {
		case addr%granularity != 0 || size != p.size:
			return fail(InvalidValue, "cuMemMap of %s at %#x: the allocation has %s, and addresses are multiples of %d", byteCount(size), addr, byteCount(p.size), granularity)
		case i > 0 && r.maps[i-1].addr+r.maps[i-1].of.size > addr, i < len(r.maps) && r.maps[i].addr < addr+size:
			return fail(InvalidValue, "cuMemMap at %#x, where memory is mapped", addr)
		case p.mapped:
			// Detectors identify memory by its address: two addresses of one byte would hide races.
			const what = "cuMemMap of one allocation at two addresses"
			c.dev.noteUnsupported(what)
			return fail(NotSupported, what)
		}
		if err := c.dev.mem.Set(r.lease, addr, size, p.saved); err != nil {
			return fail(MemoryAllocation, "cuMemMap of %s: %v", byteCount(size), err)
		}
		p.mapped, p.saved = true, nil
		r.maps = slices.Insert(r.maps, i, part{addr: addr, of: p})
		c.dev.tell(event.HostOp{Kind: event.HostAlloc, Agent: c.host, Addr: addr, Size: size, Name: "cuMemMap"})
		return nil
	})
}

// whole returns the mappings that make up a range, which must be complete and without gaps.
func (r *reservation) whole(addr, size uint64) (from, to int, ok bool) {
	from = slices.IndexFunc(r.maps, func(m part) bool { return m.addr == addr })
	if from < 0 || size == 0 {
		return 0, 0, false
	}
	at := addr
	for to = from; to < len(r.maps) && r.maps[to].addr == at && at < addr+size; to++ {
		at += r.maps[to].of.size
	}
	return from, to, at == addr+size
}

// UnmapMemory is cuMemUnmap. It waits for nothing. It counts as a write of the host to the memory, whose bytes are
// lost.
func (c *Context) UnmapMemory(addr, size uint64, place string) error {
	return c.virtual(func() error {
		r, err := c.reservation("cuMemUnmap", addr, size)
		if err != nil {
			return err
		}
		from, to, ok := r.whole(addr, size)
		if !ok {
			return misuse(InvalidPointer, InvalidValue, "cuMemUnmap of %s at byte %d of %s: only what cuMemMap has mapped can be unmapped, as a whole", byteCount(size), addr-r.lease.Begin, r.name)
		}
		c.dev.tell(event.HostOp{Kind: event.HostWrite, Agent: c.host, Addr: addr, Size: size, Name: "cuMemUnmap" + place})
		for _, m := range r.maps[from:to] {
			m.of.mapped = false
			if m.of.refs > 0 {
				m.of.saved = slices.Clone(c.dev.mem.Reserved(r.lease, m.addr, m.of.size))
			}
			c.forgetPhysical(m.of)
			c.dev.tell(event.HostOp{Kind: event.HostFree, Agent: c.host, Addr: m.addr, Size: m.of.size, Name: "cuMemUnmap"})
		}
		r.maps = slices.Delete(r.maps, from, to)
		c.populate(r)
		return nil
	})
}

// SetAccess is cuMemSetAccess for one device.
func (c *Context) SetAccess(addr, size uint64, device int, access Access) error {
	return c.virtual(func() error {
		r, err := c.reservation("cuMemSetAccess", addr, size)
		if err != nil {
			return err
		}
		if _, err := c.gpuOf(device); err != nil {
			return err
		}
		from, to, ok := r.whole(addr, size)
		if !ok || access != AccessNone && access != AccessRead && access != AccessReadWrite {
			return fail(InvalidValue, "cuMemSetAccess of %s at byte %d of %s, access %d", byteCount(size), addr-r.lease.Begin, r.name, access)
		}
		bit := uint64(1) << device
		for i := from; i < to; i++ {
			m := &r.maps[i]
			m.writers, m.reads = m.writers&^bit, m.reads&^bit
			switch access {
			case AccessRead:
				m.reads |= bit
			case AccessReadWrite:
				m.writers |= bit
			}
			if m.writers != 0 && m.reads != 0 {
				const what = "mapped memory that one device writes and another one may only read"
				c.dev.noteUnsupported(what)
				return fail(NotSupported, what)
			}
		}
		c.populate(r)
		return nil
	})
}

// populate updates the accessible memory of a reservation.
func (c *Context) populate(r *reservation) {
	var runs []devmem.Alloc
	for _, m := range r.maps {
		a := devmem.Alloc{Addr: m.addr, Size: m.of.size, Kind: devmem.DeviceAlloc, Const: m.writers == 0, Device: m.of.gpu.number, Pooled: len(c.gpus) > 1,
			Peers: m.writers | m.reads, Name: "memory of " + r.name}
		if a.Peers == 0 {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].Addr+runs[n-1].Size == a.Addr && runs[n-1].Const == a.Const && runs[n-1].Peers == a.Peers && runs[n-1].Device == a.Device {
			runs[n-1].Size += a.Size
			continue
		}
		runs = append(runs, a)
	}
	c.dev.mem.Populate(r.lease, runs)
}

// Mapped returns the physical allocation at an address, and the access of a device. retain makes another handle of it.
func (c *Context) Mapped(addr uint64, retain bool, device int) (handle, size uint64, access Access, err error) {
	err = c.virtual(func() error {
		r, err := c.reservation("a look at memory", addr, 1)
		if err != nil {
			return err
		}
		for _, m := range r.maps {
			if addr-m.addr < m.of.size {
				handle, size, access = m.of.id, m.of.size, m.accessOf(device)
				if retain {
					m.of.refs++
				}
				return nil
			}
		}
		return fail(InvalidValue, "nothing is mapped at %#x", addr)
	})
	return handle, size, access, err
}

// DeviceOf returns the device of a physical allocation.
func (c *Context) DeviceOf(handle uint64) (device int, err error) {
	err = c.virtual(func() error {
		p, err := c.physicalOf("a look at memory", handle)
		if err == nil {
			device = p.gpu.number
		}
		return err
	})
	return device, err
}

// endVirtual ends all reservations and mappings.
func (c *Context) endVirtual() {
	for _, r := range c.reserved {
		for _, m := range r.maps {
			c.dev.tell(event.HostOp{Kind: event.HostFree, Agent: c.host, Addr: m.addr, Size: m.of.size, Name: endOfContext})
		}
		c.dev.mem.Populate(r.lease, nil)
		c.dev.mem.EndLease(r.lease)
	}
	c.reserved, c.physical = nil, nil
}

func (p *process) addressReserve(_ context.Context, r *request) ([]uint64, []byte, error) {
	addr, err := p.ctx.ReserveAddresses(r.args[0], r.args[1])
	return []uint64{addr}, nil, err
}

func (p *process) addressFree(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.FreeAddresses(r.args[0], r.args[1])
}

func (p *process) memCreate(_ context.Context, r *request) ([]uint64, []byte, error) {
	handle, err := p.ctx.CreateMemory(r.args[0], int(int32(r.args[1])))
	return []uint64{handle}, nil, err
}

func (p *process) memRelease(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.ReleaseMemory(r.args[0])
}

func (p *process) memMap(_ context.Context, r *request) ([]uint64, []byte, error) {
	err := p.ctx.MapMemory(r.args[0], r.args[1], r.args[2])
	return nil, nil, err
}

func (p *process) memUnmap(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.UnmapMemory(r.args[0], r.args[1], p.place(r))
}

func (p *process) memSetAccess(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.SetAccess(r.args[0], r.args[1], int(int32(r.args[2])), Access(r.args[3]))
}

func (p *process) memMapped(_ context.Context, r *request) ([]uint64, []byte, error) {
	if r.args[0] == 0 {
		device, err := p.ctx.DeviceOf(r.args[2])
		return []uint64{uint64(device)}, nil, err
	}
	handle, size, access, err := p.ctx.Mapped(r.args[0], r.args[1] != 0, int(int32(r.args[2])))
	return []uint64{handle, size, uint64(access)}, nil, err
}
