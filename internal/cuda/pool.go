package cuda

import (
	"context"
	"math"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
)

// pool is the source of stream-ordered allocations. Their memory is allocated like any other. A pool counts it, bounds
// it, and determines which devices may access it.
type pool struct {
	id       uint64
	gpu      *gpu
	kind     uint64 // calls.PoolOfDevice...
	used     uint64
	peak     [2]uint64 // of the reserved and of the used bytes, since the last reset of each
	most     uint64    // greatest size in bytes
	settings [firstCount]uint64
	peers    uint64 // bits of the other devices that may access its memory
}

// The attributes of a pool (cudaMemPoolAttr): settings, which are only kept to be read back, and counts.
const (
	reuseFirst       = 1
	reuseLast        = 3
	releaseThreshold = 4
	firstCount       = 5 // bytes reserved, their peak, bytes in use, their peak
	lastCount        = 8
)

// firstPool is the handle of the first pool, distinct from those of streams and events. The others follow in steps of
// poolStep.
const (
	firstPool = 1 << 32
	poolStep  = 16
)

// newPool makes a pool of at most `most` bytes.
func (c *Context) newPool(g *gpu, kind, most uint64) *pool {
	p := &pool{id: firstPool + c.poolsMade*poolStep, gpu: g, kind: kind, most: most}
	c.poolsMade++
	for i := reuseFirst; i <= reuseLast; i++ {
		p.settings[i] = 1
	}
	if c.pools == nil {
		c.pools = map[uint64]*pool{}
	}
	c.pools[p.id] = p
	return p
}

// ofPool returns the default pool of a device for a kind of memory, or, with current, the one that cudaMallocAsync uses
// there.
func (c *Context) ofPool(g *gpu, kind uint64, current bool) *pool {
	p := &g.pools[kind]
	if p.first == nil {
		p.first = c.newPool(g, kind, math.MaxUint64)
		p.current = p.first
	}
	if current {
		return p.current
	}
	return p.first
}

var poolNames = [calls.PoolKinds]string{"memory of a device", "memory of the host", "managed memory"}

// poolMemory is the memory that a kind of pool gives.
var poolMemory = [calls.PoolKinds]devmem.AllocKind{calls.PoolOfDevice: devmem.DeviceAlloc, calls.PoolOfHost: devmem.PinnedAlloc, calls.PoolOfManaged: devmem.ManagedAlloc}

func (c *Context) poolByID(id uint64) (*pool, error) {
	if p := c.pools[id]; p != nil {
		return p, nil
	}
	if id >= firstPool && id < firstPool+c.poolsMade*poolStep && id%poolStep == 0 {
		return nil, misuse(InvalidHandle, InvalidValue, "the memory pool was destroyed before")
	}
	return nil, fail(InvalidValue, "no call has made the memory pool")
}

// grow counts an allocation, unless the pool has no room for it.
func (p *pool) grow(size uint64) error {
	if size > p.most-p.used {
		return fail(MemoryAllocation, "%s of a memory pool of at most %s, of which %s are in use", byteCount(size), byteCount(p.most), byteCount(p.used))
	}
	p.used += size
	for i := range p.peak {
		p.peak[i] = max(p.peak[i], p.used)
	}
	return nil
}

// destroyPool is cudaMemPoolDestroy: memory of the pool stays until it is freed.
func (c *Context) destroyPool(p *pool) error {
	own := &p.gpu.pools[p.kind]
	if p == own.first {
		return fail(InvalidValue, "cudaMemPoolDestroy of the default memory pool of a device")
	}
	delete(c.pools, p.id)
	if own.current == p {
		own.current = own.first
	}
	return nil
}

// attribute reads an attribute. setAttribute sets it, or resets a peak.
func (p *pool) attribute(n uint64) (uint64, error) {
	switch {
	case n >= reuseFirst && n < firstCount:
		return p.settings[n], nil
	case n > lastCount || n == 0:
		return 0, fail(InvalidValue, "attribute %d of a memory pool", n)
	case (n-firstCount)%2 == 1:
		return p.peak[(n-firstCount)/2], nil
	}
	return p.used, nil
}

func (p *pool) setAttribute(n, value uint64) error {
	switch {
	case n >= reuseFirst && n < firstCount:
		p.settings[n] = value
	case n > firstCount && n <= lastCount && (n-firstCount)%2 == 1 && value == 0:
		p.peak[(n-firstCount)/2] = p.used
	default:
		return fail(InvalidValue, "attribute %d of a memory pool is set to %d", n, value)
	}
	return nil
}

// grant is cudaMemPoolSetAccess for one device: it applies to all present and future memory of the pool.
func (c *Context) grant(p *pool, g *gpu, access Access) error {
	switch {
	case access != AccessNone && access != AccessRead && access != AccessReadWrite, g == p.gpu && access != AccessReadWrite:
		return fail(InvalidValue, "access %d of device %d to a memory pool of device %d", access, g.number, p.gpu.number)
	case access == AccessRead:
		const what = "memory pools that another device may only read"
		c.dev.noteUnsupported(what)
		return fail(NotSupported, what)
	case g == p.gpu || p.kind != calls.PoolOfDevice:
		return nil
	}
	p.peers &^= 1 << g.number
	if access == AccessReadWrite {
		p.peers |= 1 << g.number
	}
	for addr, a := range c.allocs {
		if a.pool == p {
			c.dev.mem.SetPooled(addr, p.peers|1<<p.gpu.number)
		}
	}
	return nil
}

func (p *pool) accessOf(g *gpu) Access {
	if g == p.gpu || p.kind != calls.PoolOfDevice || p.peers>>g.number&1 != 0 {
		return AccessReadWrite
	}
	return AccessNone
}

// Pool implements the calls on memory pools. which is a pool, or a device; see calls.PoolDefault and following.
func (c *Context) Pool(what, which, number, value uint64) (uint64, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	device := which
	if what >= calls.PoolAccess {
		device = number
	}
	var g *gpu
	if what <= calls.PoolCreate || what >= calls.PoolAccess {
		if g, err = c.gpuOf(int(int32(device))); err != nil {
			return 0, err
		}
	}
	kind := number
	if what == calls.PoolChoose || what == calls.PoolCreate {
		kind = value
	}
	if what <= calls.PoolCreate && kind >= calls.PoolKinds {
		return 0, fail(InvalidValue, "a memory pool of kind %d", kind)
	}
	switch what {
	case calls.PoolDefault, calls.PoolCurrent:
		return c.ofPool(g, kind, what == calls.PoolCurrent).id, nil
	case calls.PoolCreate:
		if number == 0 {
			number = math.MaxUint64
		}
		return c.newPool(g, kind, number).id, nil
	case calls.PoolChoose:
		p, err := c.poolByID(number)
		if err == nil && p.gpu != g {
			err = fail(InvalidValue, "a memory pool of device %d for device %d", p.gpu.number, g.number)
		}
		if err == nil && p.kind != kind {
			err = fail(InvalidValue, "the memory pool gives %s, and one for %s is chosen", poolNames[p.kind], poolNames[kind])
		}
		if err == nil {
			c.ofPool(g, kind, true)
			g.pools[kind].current = p
		}
		return 0, err
	}
	p, err := c.poolByID(which)
	if err != nil {
		return 0, err
	}
	switch what {
	case calls.PoolDestroy:
		return 0, c.destroyPool(p)
	case calls.PoolGet:
		return p.attribute(number)
	case calls.PoolSet:
		return 0, p.setAttribute(number, value)
	case calls.PoolAccess:
		return uint64(p.accessOf(g)), nil
	case calls.PoolGrant:
		return 0, c.grant(p, g, Access(value))
	case calls.PoolTrim:
		return 0, nil // unused memory is not kept
	}
	return 0, fail(InvalidValue, "operation %d on a memory pool", what)
}

func (p *process) pool(_ context.Context, r *request) ([]uint64, []byte, error) {
	value, err := p.ctx.Pool(r.args[0], r.args[1], r.args[2], r.args[3])
	return []uint64{value}, nil, err
}
