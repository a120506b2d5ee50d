package cuda

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// TestFailureTexts checks what is said of calls that are wrong, and what they return.
func TestFailureTexts(t *testing.T) {
	s := newScript(t)
	c := s.c
	alloc := func(kind devmem.AllocKind) uint64 {
		p, err := c.Malloc(1000, kind)
		s.must(err)
		return p
	}
	free := func(p uint64) error {
		return c.free("cudaFree", p, "\nx/prog.cu:7 main", devmem.DeviceAlloc, devmem.ManagedAlloc)
	}
	device, managed, pinned, freed, freedAsync := alloc(devmem.DeviceAlloc), alloc(devmem.ManagedAlloc), alloc(devmem.PinnedAlloc), alloc(devmem.DeviceAlloc), alloc(devmem.DeviceAlloc)
	s.must(free(freed))
	s.must(c.freeAsync(freedAsync, 0, 0, ""))
	st, ev := s.stream(0), s.event()
	s.must(c.DestroyStream(st))
	s.must(c.DestroyEvent(ev))
	copyOf := func(k Copy) error {
		k.Width, k.Height, k.Depth = max(k.Width, 16), 1, 1
		return c.OrderCopy(k, 0, 0)
	}
	check := func(err error, want string) {
		t.Helper()
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("no error, want %s", want)
		} else if got := fmt.Sprintf("%d %s %v: %s", e.Code, e.Kind, e.minor, e.Msg); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	check(free(freed), "1 double-free false: cudaFree of cudaMalloc #4 (1000 bytes), which cudaFree at prog.cu:7 freed before")
	check(free(freedAsync), "1 double-free false: cudaFree of cudaMalloc #5 (1000 bytes), which cudaFreeAsync (default stream) freed before")
	check(c.FreeHost(freed), "1 double-free false: cudaFreeHost of cudaMalloc #4 (1000 bytes), which cudaFree at prog.cu:7 freed before")
	check(free(freed+16), "1 invalid-free false: cudaFree of an address 16 bytes into cudaMalloc #4 (1000 bytes), which was freed before")
	check(free(pinned), "1 invalid-free false: cudaFree of memory of cudaHostAlloc #3 (1000 bytes), which cudaFreeHost frees")
	check(c.FreeHost(managed), "1 invalid-free false: cudaFreeHost of memory of cudaMallocManaged #2 (1000 bytes), which cudaFree frees")
	check(c.FreeAsync(managed, 0, 0), "1 invalid-free false: cudaFreeAsync of memory of cudaMallocManaged #2 (1000 bytes), which cudaFree frees")
	check(free(device+1), "1 invalid-free false: cudaFree of an address 1 bytes into cudaMalloc #1 (1000 bytes): only the address that the allocation returned can be freed")
	check(free(77), "1 invalid-free false: cudaFree of 0x4d, which no call of the API has allocated")
	check(free(1<<40), "1 invalid-free false: cudaFree of an address of the program's own, which no call of the API has allocated")
	check(copyOf(Copy{Dst: freed + 5, Src: device}), "1 freed-memory false: the destination is in cudaMalloc #4 (1000 bytes), which cudaFree at prog.cu:7 freed before")
	check(copyOf(Copy{Dst: device, Src: freed}), "1 freed-memory false: the source is in cudaMalloc #4 (1000 bytes), which cudaFree at prog.cu:7 freed before")
	check(copyOf(Copy{Dst: device + 990, Src: managed}), "1 call-out-of-bounds false: the destination, 16 bytes from byte 990 on, leaves cudaMalloc #1 (1000 bytes)")
	check(copyOf(Copy{Dst: device, Width: 1 << 60}), "1 call-out-of-bounds false: the size of the destination, 1152921504606846976 bytes, is beyond all memory")
	check(copyOf(Copy{Dst: devmem.GlobalBase + 1<<22, Src: device}), "1 invalid-pointer false: the destination, 16 bytes at 0x200000400000, is in no allocation")
	check(copyOf(Copy{Dst: 4096, Src: device, Kind: Default, NoDst: true}), "1 invalid-pointer false: the destination is 0x1000, where neither the device nor the program has memory")
	check(copyOf(Copy{Dst: device, Src: 1 << 40, Kind: Default, NoSrc: true}), "1 invalid-pointer false: the source is an address of the program's own, where neither the device nor the program has memory")
	check(copyOf(Copy{Dst: 4096, Src: device, Kind: HostToDevice}), "1 wrong-direction false: the direction is cudaMemcpyHostToDevice, and the destination is host memory")
	check(copyOf(Copy{Dst: device, Src: 4096, Kind: DeviceToDevice}), "1 wrong-direction false: the direction is cudaMemcpyDeviceToDevice, and the source is host memory")
	check(copyOf(Copy{Dst: device, Src: 4096, Kind: HostToHost}), "1 wrong-direction false: the direction is cudaMemcpyHostToHost, and the destination is device memory")
	check(copyOf(Copy{Dst: 4096, Src: device, Kind: 9}), "21 wrong-direction false: copy direction 9")
	check(c.OrderCopy(Copy{Dst: device, Src: managed, Width: 1 << 60, Height: 1, Depth: 2, Kind: Default}, 0, 0),
		"12  false: pitch 0, slice pitch 0 for rows of 1152921504606846976 bytes, 1 rows")
	check(c.OrderCopy(Copy{Dst: device, Src: managed, DstPitch: 15, SrcPitch: 16, Width: 16, Height: 2, Depth: 1, Kind: Default}, 0, 0),
		"12  false: pitch 15, slice pitch 0 for rows of 16 bytes, 2 rows")
	check(c.OrderFill(Copy{Dst: 4096, Width: 1, Height: 1, Depth: 1}, 0, 0), "1 invalid-pointer false: the destination is 0x1000, which is not in device memory")
	check(c.SynchronizeStream(st, 0), "400 invalid-handle false: the stream was destroyed before")
	check(c.SynchronizeStream(1<<40, 0), "400 invalid-handle false: no call has made the stream")
	check(c.SynchronizeStream(st+1, 0), "400 invalid-handle false: no call has made the stream")
	check(c.DestroyStream(0), "400  false: the stream is 0")
	check(c.SynchronizeEvent(ev), "400 invalid-handle false: the event was destroyed before")
	s.must(c.Reset())
	check(free(device), "1 invalid-free true: cudaFree of cudaMalloc #1 (1000 bytes), which cudaDeviceReset has freed")
}

// TestRefusedLaunch checks that a launch that is refused tells its kernel and its kind.
func TestRefusedLaunch(t *testing.T) {
	s := newScript(t)
	dead := s.stream(0)
	s.must(s.c.DestroyStream(dead))
	for _, r := range []struct {
		cfg  LaunchConfig
		kind Misuse
		code Code
	}{
		{LaunchConfig{Block: event.Dim3{X: 2048, Y: 1, Z: 1}}, LaunchRefused, InvalidConfiguration},
		{LaunchConfig{Block: event.Dim3{X: 0, Y: 1, Z: 1}}, LaunchRefused, InvalidConfiguration},
		{LaunchConfig{Block: event.Dim3{X: 1, Y: 1, Z: 1}, Shared: 1 << 20}, LaunchRefused, InvalidValue},
		{LaunchConfig{Block: event.Dim3{X: 1, Y: 1, Z: 1}, Shared: -1}, LaunchRefused, InvalidValue},
		{LaunchConfig{Block: event.Dim3{X: 1, Y: 1, Z: 1}, Stream: dead}, InvalidHandle, InvalidResourceHandle},
	} {
		r.cfg.Grid = event.Dim3{X: 1, Y: 1, Z: 1}
		var e *Error
		err := s.c.Launch(context.Background(), s.k, r.cfg, nil)
		if !errors.As(err, &e) || e.Kind != r.kind || e.Code != r.code || e.Launch == nil || e.Launch.Kernel != "k" || e.Launch.Block != r.cfg.Block {
			t.Errorf("%+v: %+v", r.cfg, err)
		}
	}
}

// TestReturned has errors in the names of the API that returned them.
func TestReturned(t *testing.T) {
	for _, c := range []struct {
		call string
		code Code
		want string
	}{
		{"cudaMemcpy2D", InvalidPitchValue, "cudaErrorInvalidPitchValue"},
		{"cuMemcpy2D", InvalidPitchValue, "CUDA_ERROR_INVALID_VALUE"},
		{"cuLaunchKernel", InvalidConfiguration, "CUDA_ERROR_INVALID_VALUE"},
		{"cuModuleGetGlobal", InvalidSymbol, "CUDA_ERROR_NOT_FOUND"},
		{"cuMemFree", MemoryAllocation, "CUDA_ERROR_OUT_OF_MEMORY"},
		{"the launch", InvalidConfiguration, "cudaErrorInvalidConfiguration"},
		{"cu", InvalidValue, "cudaErrorInvalidValue"},
	} {
		if got := (&Failure{Call: c.call, Code: c.code}).Returned(); got != c.want {
			t.Errorf("%s, %d: %s, want %s", c.call, c.code, got, c.want)
		}
	}
}

// TestFailuresOfPlaces checks that failures of one place are one, that many places are bounded, and that those the program
// asked for are not told where they are nothing but errors.
func TestFailuresOfPlaces(t *testing.T) {
	d := &Device{}
	at := func(line int) []event.Frame { return []event.Frame{{File: "a.cu", Line: line}} }
	for range 3 {
		d.fail(&Failure{Kind: DoubleFree, Call: "cudaFree", Code: 1, Frames: at(1), Unseen: 1})
		d.fail(&Failure{Kind: DoubleFree, Call: "cudaFree", Code: 1, Frames: at(2)})
		d.fail(&Failure{Kind: ErrorIgnored, Call: "cudaMemcpy2D", Code: 12, Frames: at(3), Unseen: 1})
		d.fail(&Failure{Kind: ErrorIgnored, Call: "cudaMemcpy2D", Code: 12, Frames: at(4)})                   // asked for
		d.fail(&Failure{Kind: ErrorIgnored, Call: "cudaHostUnregister", Code: 713, Frames: at(5), Unseen: 1}) // a probe
		d.fail(&Failure{Kind: ErrorIgnored, Call: "cudaMalloc", Code: MemoryAllocation, Frames: at(6), Unseen: 1})
		d.fail(&Failure{Kind: ErrorIgnored, Call: "cuMemFree", Code: 1, Frames: at(7), Unseen: 1})
	}
	got := ""
	for _, f := range d.Failures() {
		got += fmt.Sprintf("%d: %d of %d; ", f.Frames[0].Line, f.Unseen, f.Count)
	}
	if want := "1: 3 of 3; 2: 0 of 3; 3: 3 of 3; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := range 20_000 {
		d.fail(&Failure{Kind: DoubleFree, Frames: at(100 + i)})
	}
	if n := len(d.failures); n != 10_000 {
		t.Errorf("%d places are kept", n)
	}
}
