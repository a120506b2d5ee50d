package engine

import (
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestResidentBlocks compares numbers with the occupancy calculator for compute capability 8.0, times its 108
// processors.
func TestResidentBlocks(t *testing.T) {
	if lim := DefaultLimits(); lim != (Limits{Major: 8, Minor: 0, WarpSize: 32, ThreadsPerBlock: 1024, BlockDim: event.Dim3{X: 1024, Y: 1024, Z: 64}, GridDim: event.Dim3{X: 2147483647, Y: 65535, Z: 65535},
		SharedPerBlock: 49152, SharedOptin: 166912, SharedPerSM: 167936, SharedReserved: 1024, SMs: 108, BlocksPerSM: 32, ThreadsPerSM: 2048, ParamBytes: 4096}) {
		t.Errorf("%+v", lim)
	}
	for _, c := range []struct{ threads, shared, each int }{
		{1, 0, 32}, {32, 0, 32}, {64, 0, 32}, {65, 0, 21}, {96, 0, 21}, {128, 0, 16}, {1024, 0, 2}, {1023, 0, 2}, {993, 0, 2}, {992, 0, 2}, {672, 0, 3},
		{32, 4 << 10, 32}, {32, 5 << 10, 27}, {32, 48 << 10, 3}, {32, 163 << 10, 1},
		{32, 32512, 5}, {32, 32513, 4}, // allocated in units of 128 bytes
	} {
		if n := DefaultLimits().ResidentBlocks(c.threads, c.shared); n != 108*c.each {
			t.Errorf("%d threads with %d bytes of shared memory: %d blocks, want %d", c.threads, c.shared, n, 108*c.each)
		}
	}
	bare := Limits{WarpSize: 32, BlocksPerSM: 32, ThreadsPerSM: 2048, SharedPerSM: 20 * 128, SMs: 1} // reserves no shared memory
	for shared, want := range []int{32, 20, 10} {
		if n := bare.ResidentBlocks(32, 128*shared); n != want {
			t.Errorf("nothing reserved, %d bytes: %d blocks, want %d", 128*shared, n, want)
		}
	}
}
