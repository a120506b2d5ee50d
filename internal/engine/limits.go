package engine

import (
	"fmt"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
)

// Limits are the limits of a device for one launch. Sizes are in bytes.
type Limits struct {
	Major, Minor    int // compute capability
	WarpSize        int
	ThreadsPerBlock int
	BlockDim        event.Dim3 // the largest extents of a block
	GridDim         event.Dim3
	SharedPerBlock  int // static, and dynamic without opt-in
	SharedOptin     int // static plus dynamic with opt-in (cudaFuncAttributeMaxDynamicSharedMemorySize)
	SharedPerSM     int
	SharedReserved  int // taken from SharedPerSM by every resident block
	SMs             int
	BlocksPerSM     int
	ThreadsPerSM    int
	ParamBytes      int
}

// capability describes the devices of a compute capability: limits for each multiprocessor (CUDA programming guide,
// "Technical Specifications per Compute Capability"), and the number of multiprocessors of a typical device.
type capability struct {
	number  int // times ten
	threads int
	blocks  int
	shared  int // KB
	sms     int
}

var capabilities = []capability{
	{80, 2048, 32, 164, 108},  // A100
	{86, 1536, 16, 100, 84},   // A40
	{87, 1536, 16, 164, 16},   // Orin
	{89, 1536, 24, 100, 142},  // L40S
	{90, 2048, 32, 228, 132},  // H100
	{100, 2048, 32, 228, 148}, // B200
	{103, 2048, 32, 228, 148}, // B300
	{110, 1536, 24, 228, 20},  // Thor
	{120, 1536, 24, 100, 188}, // RTX PRO 6000
	{121, 1536, 24, 100, 48},  // GB10
}

// Capabilities returns the compute capabilities, times ten, that a device can have.
func Capabilities() []int {
	var out []int
	for _, c := range capabilities {
		out = append(out, c.number)
	}
	return out
}

// DefaultLimits returns the limits of a device of compute capability 8.0.
func DefaultLimits() Limits { return LimitsOf(80) }

// LimitsOf returns the limits of a device of a compute capability, times ten: of the last one in Capabilities that is
// not greater, or the first.
func LimitsOf(number int) Limits {
	c := capabilities[0]
	for _, x := range capabilities {
		if x.number <= number {
			c = x
		}
	}
	const reserved = 1 << 10
	return Limits{
		Major: c.number / 10, Minor: c.number % 10,
		WarpSize:        32,
		ThreadsPerBlock: 1024,
		BlockDim:        event.Dim3{X: 1024, Y: 1024, Z: 64},
		GridDim:         event.Dim3{X: 1<<31 - 1, Y: 65535, Z: 65535},
		SharedPerBlock:  48 << 10,
		SharedOptin:     c.shared<<10 - reserved,
		SharedPerSM:     c.shared << 10,
		SharedReserved:  reserved,
		SMs:             c.sms,
		BlocksPerSM:     c.blocks,
		ThreadsPerSM:    c.threads,
		ParamBytes:      4 << 10,
	}
}

// Capability returns the compute capability, times ten.
func (lim Limits) Capability() int { return lim.Major*10 + lim.Minor }

// Clusters reports whether the device has thread block clusters.
func (lim Limits) Clusters() bool { return lim.Major >= 9 }

// gpcSMs is the number of multiprocessors in a GPC, which contains the blocks of a cluster: the smallest number in an
// H100.
const gpcSMs = 16

// ResidentClusters returns the number of clusters of size blocks that a device holds at once.
func (lim Limits) ResidentClusters(size, threads, shared int) int {
	if !lim.Clusters() || size < 1 {
		return 0
	}
	return lim.SMs / gpcSMs * (gpcSMs * lim.ResidentBlocks(threads, shared) / lim.SMs / size)
}

// LimitError reports a launch that the device cannot run. API is the error name of the CUDA runtime.
type LimitError struct {
	API string // "cudaErrorInvalidConfiguration"
	Msg string
}

func (e *LimitError) Error() string { return e.API + ": " + e.Msg }

// sharedGranularity is the unit, in bytes, of a block's shared memory on devices of compute capability 8.0 and later.
const sharedGranularity = 128

// ResidentBlocks returns the number of blocks of one shape that a device holds at once: the limit for a cooperative
// launch.
func (lim Limits) ResidentBlocks(threads, shared int) int {
	warps := (threads + lim.WarpSize - 1) / lim.WarpSize
	n := lim.BlocksPerSM
	if warps > 0 {
		n = min(n, lim.ThreadsPerSM/(warps*lim.WarpSize))
	}
	if use := shared + lim.SharedReserved; use > 0 {
		n = min(n, lim.SharedPerSM/((use+sharedGranularity-1)/sharedGranularity*sharedGranularity))
	}
	return n * lim.SMs
}

// Check says why a device with limits lim cannot run l: nil, or a *LimitError; another error if a device can run it and
// the emulator cannot. The kernel's own bounds (.maxntid, .reqntid) are checked too. Dynamic shared memory is compared
// with SharedOptin; checking whether the program opted in is left to the API.
func Check(l *Launch, lim Limits) error {
	bad := func(api, format string, args ...any) error {
		return &LimitError{api, fmt.Sprintf(format, args...)}
	}
	const config = "cudaErrorInvalidConfiguration"
	grid, block := l.Grid, l.Block
	if grid.Count() == 0 || block.Count() == 0 {
		return bad(config, "grid %v and block %v must not have an extent of 0", grid, block)
	}
	if block.X > lim.BlockDim.X || block.Y > lim.BlockDim.Y || block.Z > lim.BlockDim.Z {
		return bad(config, "block %v is larger than %v", block, lim.BlockDim)
	}
	threads := int(block.Count())
	if threads > lim.ThreadsPerBlock {
		return bad(config, "block %v has %d threads, the device allows %d", block, threads, lim.ThreadsPerBlock)
	}
	if grid.X > lim.GridDim.X || grid.Y > lim.GridDim.Y || grid.Z > lim.GridDim.Z {
		return bad(config, "grid %v is larger than %v", grid, lim.GridDim)
	}
	if warps := grid.Count() * uint64((threads+31)/32); warps > 1<<32-1 {
		return fmt.Errorf("grid %v has %d warps, more than can be numbered here", grid, warps)
	}
	f := l.Func
	if f.MaxThreads != 0 && threads > f.MaxThreads {
		return bad("cudaErrorLaunchOutOfResources", "the kernel is compiled for at most %d threads a block (.maxntid), the launch has %d", f.MaxThreads, threads)
	}
	if r := f.ReqThreads; r != (event.Dim3{}) && r != block {
		return bad(config, "the kernel requires blocks of %v (.reqntid), the launch has %v", r, block)
	}
	if err := checkCluster(l, bad); err != nil {
		return err
	}
	static := int(l.Program.Image(f).Layout.Static)
	if static > lim.SharedPerBlock {
		return bad("cudaErrorInvalidKernelImage", "the kernel has %d bytes of static shared memory, the device allows %d", static, lim.SharedPerBlock)
	}
	if static+l.DynamicShared > lim.SharedOptin || l.DynamicShared < 0 {
		return bad("cudaErrorInvalidValue", "%d bytes of static and %d of dynamic shared memory, the device allows %d", static, l.DynamicShared, lim.SharedOptin)
	}
	if n := loader.ParamBytes(f); n > len(l.Params) {
		return bad("cudaErrorInvalidValue", "the kernel takes %d bytes of parameters, the launch gives %d", n, len(l.Params))
	}
	if max := lim.ResidentBlocks(threads, static+l.DynamicShared); l.Cooperative && grid.Count() > uint64(max) {
		return bad("cudaErrorCooperativeLaunchTooLarge", "%d blocks, %d can be resident at once", grid.Count(), max)
	}
	return nil
}
