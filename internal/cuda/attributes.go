package cuda

import "fencepost.dev/fencepost/internal/cuda/calls"

// clockRate is the rate of the clock registers in kHz, approximately that of an emulated warp. Programs let kernels
// spin for milliseconds of this clock. At the rate of a real device the emulator would need minutes for that.
const clockRate = 1000

// attributes returns the device attributes by number (CUDA Runtime API, enum cudaDeviceAttr). Attributes not listed are
// 0.
func (c *Context) attributes() []int32 {
	lim := c.limits
	const most = calls.NumAttributes
	v := make([]int32, most)
	set := func(from int, values ...int) {
		for i, x := range values {
			v[from+i] = int32(x)
		}
	}
	set(1, lim.ThreadsPerBlock, int(lim.BlockDim.X), int(lim.BlockDim.Y), int(lim.BlockDim.Z))
	set(5, int(lim.GridDim.X), int(lim.GridDim.Y), int(lim.GridDim.Z))
	set(8, lim.SharedPerBlock, 64<<10, lim.WarpSize, 1<<31-1, 64<<10) // constant memory, warp, pitch, registers a block
	set(13, clockRate, 512, 1, lim.SMs, 0, 0, 1, 0)                   // clock kHz, texture alignment, overlap, SMs, timeout, integrated, maps host memory, compute mode
	textureAttributes(set)
	set(30, 512, 1, 0, 0, 0, 0, 1215000, 5120, 40<<20, lim.ThreadsPerSM, 3, 1) // surface alignment ... async engines, unified addressing
	set(50, 0, 32)                                                             // PCI domain, texture pitch alignment
	set(75, lim.Major, lim.Minor)
	set(78, 1, 1, 1, lim.SharedPerSM, 64<<10, 1, 0, 0, 0, 2, 0, 1, 1, 1) // priorities, L1 caches, shared and registers an SM, managed memory ... registered pointers
	set(95, 1, 0, lim.SharedOptin, 0, 1, 0, 0)                           // cooperative launch, opt-in shared memory, host registration
	v[102] = 1                                                           // virtual memory management
	set(92, 1, 1, 1)                                                     // stream memory operations: at all, of 64 bits, waits for bits that are not set; and 122, 123
	set(122, 1, 1)
	v[106] = int32(lim.BlocksPerSM)
	set(108, 30<<20, 134213632)        // of the L2 cache: what may persist, and the largest window of an access policy
	v[111] = int32(lim.SharedReserved) // shared memory a block that the system reserves
	v[115] = 1                         // memory pools
	v[125] = 1                         // events of other processes
	v[142], v[144] = 1, 1              // memory pools of the host
	if lim.Clusters() {
		v[120], v[127] = 1, 1 // launches of clusters, tensor maps
	}
	return v
}

// textureAttributes sets the limits of textures and surfaces.
func textureAttributes(set func(from int, values ...int)) {
	const wide, layers = 32768, 2048
	set(21, 131072, 131072, 65536, 16384, 16384, 16384, wide, wide, layers)
	set(42, wide, layers)
	set(45, wide, wide, 8192, 8192, 32768)
	set(52, wide, wide, 2046, wide, 131072, 65536, 16384, 16384, 16384, wide, layers, wide, wide, layers, wide, wide, 2046)
	set(69, 268435456, 131072, 65000, 2097120, wide, wide)
	set(77, wide)
}

// attributes returns the values for cudaFuncGetAttributes: shared, constant and local bytes, threads a block,
// registers, PTX and binary version, dynamic shared memory allowed, carveout. Registers are not allocated: their number
// is nominal.
func (k *Kernel) attributes() []uint64 {
	k.module.ctx.dev.mu.Lock()
	defer k.module.ctx.dev.mu.Unlock()
	if o, err := k.on(k.module.ctx.gpu); err == nil {
		k = o
	}
	return k.known()
}

// known is attributes for the kernel on its own device, which is locked.
func (k *Kernel) known() []uint64 {
	lim := k.module.ctx.limits
	const registers = 32
	version := uint64(lim.Major*10 + lim.Minor)
	return []uint64{uint64(k.shared.Static), 0, uint64(k.fn.LocalFrame), uint64(k.maxThreads(lim)), registers, version, version,
		uint64(k.maxDynamic), uint64(int64(k.carveout))}
}
