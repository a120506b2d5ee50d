package cuda

import (
	"context"
	"encoding/binary"
	"math"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// The engine and the libraries agree on the size of an object's description.
var _ [calls.TextureBytes]byte = [descriptor.TextureSize]byte{}

// texture makes a texture or surface object.
func (p *process) texture(_ context.Context, r *request) ([]uint64, []byte, error) {
	const words = 31
	if len(r.blob) != 8*words {
		return nil, nil, fail(InvalidValue, "a texture of %d bytes", len(r.blob))
	}
	at := 0
	next := func() uint64 {
		at++
		return binary.LittleEndian.Uint64(r.blob[8*(at-1):])
	}
	small := func() uint8 { return uint8(min(next(), math.MaxUint8)) }
	size := func() uint32 { return uint32(min(next(), math.MaxUint32)) }
	t := descriptor.Texture{Surface: r.args[0] != 0}
	t.Data, t.Pitch, t.Slice = next(), next(), next()
	t.Width, t.Height, t.Depth = size(), size(), size()
	t.Dims, t.Layered, t.Cube, t.Linear = small(), next() != 0, next() != 0, next() != 0
	t.Format = descriptor.ChannelFormat(small())
	for i := range t.Bits {
		t.Bits[i] = small()
	}
	for i := range t.Address {
		t.Address[i] = descriptor.AddressMode(small())
	}
	t.Filter, t.Normalized, t.AsFloat, t.SRGB = next() != 0, next() != 0, next() != 0, next() != 0
	for i := range t.Border {
		t.Border[i] = math.Float32frombits(uint32(next()))
	}
	t.Levels, t.Blend = small(), next() != 0
	for _, f := range []*float32{&t.Bias, &t.Least, &t.Most} {
		*f = math.Float32frombits(uint32(next()))
	}
	object, err := p.ctx.CreateTexture(&t)
	return []uint64{object}, nil, err
}

// CreateTexture is cudaCreateTextureObject and cudaCreateSurfaceObject: the object is the address of its description.
func (c *Context) CreateTexture(t *descriptor.Texture) (uint64, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	if t.Cube { // coordinates are directions
		t.Normalized = true
		t.Address = [3]descriptor.AddressMode{descriptor.AddressClamp, descriptor.AddressClamp, descriptor.AddressClamp}
	}
	if t.Width == 0 || t.Height == 0 || t.Depth == 0 || t.Dims < 1 || t.Dims > 3 {
		return 0, fail(InvalidValue, "a texture of %d x %d x %d elements and %d dimensions", t.Width, t.Height, t.Depth, t.Dims)
	}
	if err := t.Check(); err != nil {
		return 0, fail(InvalidValue, "%v", err)
	}
	if t.Levels > 1 && !t.Normalized {
		return 0, fail(InvalidValue, "a texture of a mipmapped array without normalized coordinates")
	}
	k := &Copy{Width: uint64(t.Width) * uint64(t.Texel()), Height: uint64(t.Height), Depth: uint64(t.Depth)}
	memory, err := c.side("memory of the texture", t.Data, t.Pitch, t.Slice, k)
	switch {
	case err != nil:
		return 0, err
	case !memory.known:
		return 0, fail(InvalidValue, "the memory of the texture is none of the device")
	}
	if t.Levels > 1 {
		if _, err := c.bytes(t.Data, t.End()-t.Data); err != nil {
			return 0, err
		}
	}
	c.gpu.own(c.dev.mem)
	addr, err := c.dev.mem.Alloc(calls.ObjectBytes, allocAlign, devmem.ObjectAlloc, "a texture or surface object")
	if err != nil {
		return 0, fail(MemoryAllocation, "a texture object: %v", err)
	}
	data, err := c.bytes(addr, descriptor.TextureSize)
	if err != nil {
		panic("BUG: a fresh allocation is none: " + err.Error())
	}
	copy(data, t.Encode())
	c.allocs[addr] = allocation{size: calls.ObjectBytes, kind: devmem.ObjectAlloc}
	c.dev.tell(event.HostOp{Kind: event.HostAlloc, Agent: c.host, Addr: addr, Size: calls.ObjectBytes, Name: "cudaCreateTextureObject"})
	return addr, nil
}

// destroyTexture is cudaDestroyTextureObject and cudaDestroySurfaceObject. Unlike cudaFree it does not wait for the device.
func (c *Context) destroyTexture(object uint64) error {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return err
	}
	if a, ok := c.allocs[object]; !ok || a.kind != devmem.ObjectAlloc {
		return fail(InvalidValue, "%#x is no texture or surface object", object)
	}
	c.freeAlloc(object, c.host, "cudaDestroyTextureObject")
	return nil
}
