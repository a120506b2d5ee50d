package warp

import (
	"cmp"
	"errors"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// TestLimits launches kernels just within and just beyond the limits of a device.
func TestLimits(t *testing.T) {
	small := engine.Limits{Major: 8, WarpSize: 32, ThreadsPerBlock: 200, BlockDim: event.Dim3{X: 100, Y: 50, Z: 20}, GridDim: event.Dim3{X: 90, Y: 80, Z: 70},
		SharedPerBlock: 1 << 10, SharedOptin: 2 << 10, SharedPerSM: 4 << 10, SharedReserved: 512, SMs: 3, BlocksPerSM: 4, ThreadsPerSM: 256, ParamBytes: 4096}
	g := newRig(t, kernel("")+`
.visible .entry big() { .shared .align 4 .b8 box[1024]; .reg .b32 %r<2>; mov.u32 %r1, box; ret; }
.visible .entry bigger() { .shared .align 4 .b8 box[1028]; .reg .b32 %r<2>; mov.u32 %r1, box; ret; }
.visible .entry most() .maxntid 40, 1, 1 { ret; }
.visible .entry just() .reqntid 16, 2, 1 { ret; }`)
	const config, value = "cudaErrorInvalidConfiguration", "cudaErrorInvalidValue"
	for _, c := range []struct {
		kernel      string
		grid, block event.Dim3
		dynamic     int
		cooperative bool
		params      int
		want        string
	}{
		{block: event.Dim3{X: 100, Y: 2, Z: 1}},
		{block: event.Dim3{X: 101, Y: 1, Z: 1}, want: config},
		{block: event.Dim3{X: 1, Y: 50, Z: 1}},
		{block: event.Dim3{X: 1, Y: 51, Z: 1}, want: config},
		{block: event.Dim3{X: 1, Y: 1, Z: 20}},
		{block: event.Dim3{X: 1, Y: 1, Z: 21}, want: config},
		{block: event.Dim3{X: 20, Y: 10, Z: 1}},
		{block: event.Dim3{X: 67, Y: 3, Z: 1}, want: config},
		{block: event.Dim3{X: 1, Y: 0, Z: 1}, want: config},
		{grid: event.Dim3{X: 1, Y: 0, Z: 1}, want: config},
		{grid: event.Dim3{X: 90, Y: 80, Z: 70}},
		{grid: event.Dim3{X: 91, Y: 1, Z: 1}, want: config},
		{grid: event.Dim3{X: 1, Y: 81, Z: 1}, want: config},
		{grid: event.Dim3{X: 1, Y: 1, Z: 71}, want: config},
		{kernel: "big"},
		{kernel: "big", dynamic: 1024},
		{kernel: "big", dynamic: 1025, want: value},
		{kernel: "bigger", want: "cudaErrorInvalidKernelImage"},
		{dynamic: 2048},
		{dynamic: 2049, want: value},
		{dynamic: -1, want: value},
		{kernel: "most", block: event.Dim3{X: 20, Y: 2, Z: 1}},
		{kernel: "most", block: event.Dim3{X: 41, Y: 1, Z: 1}, want: "cudaErrorLaunchOutOfResources"},
		{kernel: "just", block: event.Dim3{X: 16, Y: 2, Z: 1}},
		{kernel: "just", block: event.Dim3{X: 32, Y: 1, Z: 1}, want: config},
		{params: 12},
		{params: 11, want: value},
		{cooperative: true, grid: event.Dim3{X: 12, Y: 1, Z: 1}},
		{cooperative: true, grid: event.Dim3{X: 13, Y: 1, Z: 1}, want: "cudaErrorCooperativeLaunchTooLarge"},
		{grid: event.Dim3{X: 13, Y: 1, Z: 1}},
		{cooperative: true, grid: event.Dim3{X: 6, Y: 1, Z: 1}, dynamic: 1024},
		{cooperative: true, grid: event.Dim3{X: 7, Y: 1, Z: 1}, dynamic: 1024, want: "cudaErrorCooperativeLaunchTooLarge"},
	} {
		l := g.prepare(launch{kernel: cmp.Or(c.kernel, "k"), dynamic: c.dynamic})
		one := event.Dim3{X: 1, Y: 1, Z: 1}
		if c.grid == (event.Dim3{}) {
			c.grid = one
		}
		if c.block == (event.Dim3{}) {
			c.block = one
		}
		l.Grid, l.Block, l.Cooperative = c.grid, c.block, c.cooperative
		if c.params != 0 {
			l.Params = make([]byte, c.params)
		}
		var e *engine.LimitError
		if err := engine.Check(l, small); errors.As(err, &e) != (c.want != "") || e != nil && e.API != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	l := g.prepare(launch{})
	wide := engine.DefaultLimits()
	wide.GridDim = event.Dim3{X: 1<<32 - 1, Y: 1 << 16, Z: 1}
	if l.Grid = (event.Dim3{X: 1<<32 - 1, Y: 1, Z: 1}); engine.Check(l, wide) != nil {
		t.Error(engine.Check(l, wide))
	}
	if l.Grid = (event.Dim3{X: 1 << 31, Y: 2, Z: 1}); engine.Check(l, wide) == nil || errors.As(engine.Check(l, wide), new(*engine.LimitError)) {
		t.Error("2^32 warps are no limit of the device", engine.Check(l, wide))
	}
	if l.Grid, l.Block = (event.Dim3{X: 1 << 31, Y: 1, Z: 1}), (event.Dim3{X: 33, Y: 1, Z: 1}); engine.Check(l, wide) == nil || errors.As(engine.Check(l, wide), new(*engine.LimitError)) {
		t.Error("2^32 warps of large blocks are no limit of the device", engine.Check(l, wide))
	}
}
