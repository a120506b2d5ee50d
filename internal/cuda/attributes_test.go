package cuda

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// TestAttributes compares the attributes of the device, by their numbers in enum cudaDeviceAttr, with what a device of compute
// capability 8.0 with 108 multiprocessors reports; what is not listed is 0.
func TestAttributes(t *testing.T) {
	want := map[int]int32{
		1: 1024, 2: 1024, 3: 1024, 4: 64, // threads a block, extents of a block
		5: 2147483647, 6: 65535, 7: 65535, // extents of a grid
		8: 49152, 9: 65536, 10: 32, 11: 2147483647, 12: 65536, // shared, constant, warp, pitch, registers
		13: 1000, 14: 512, 15: 1, 16: 108, 19: 1, // clock, texture alignment, overlap, multiprocessors, maps host memory
		21: 131072, 22: 131072, 23: 65536, 24: 16384, 25: 16384, 26: 16384, // textures of 1, 2, 3 dimensions
		27: 32768, 28: 32768, 29: 2048, // layered
		30: 512, 31: 1, 36: 1215000, 37: 5120, 38: 41943040, 39: 2048, 40: 3, 41: 1,
		42: 32768, 43: 2048, 45: 32768, 46: 32768, 47: 8192, 48: 8192, 49: 32768, 51: 32,
		52: 32768, 53: 32768, 54: 2046, 55: 32768, 56: 131072, 57: 65536, 58: 16384, 59: 16384, 60: 16384,
		61: 32768, 62: 2048, 63: 32768, 64: 32768, 65: 2048, 66: 32768, 67: 32768, 68: 2046,
		69: 268435456, 70: 131072, 71: 65000, 72: 2097120, 73: 32768, 74: 32768,
		75: 8, 77: 32768, // compute capability 8.0
		78: 1, 79: 1, 80: 1, 81: 167936, 82: 65536, 83: 1, 87: 2, 89: 1, 90: 1, 91: 1, 92: 1, 93: 1, 94: 1,
		95: 1, 97: 166912, 99: 1, 102: 1, 106: 32, 108: 31457280, 109: 134213632, 111: 1024, 115: 1, 122: 1, 123: 1, 125: 1, 142: 1, 144: 1,
	}
	s := newScript(t)
	got := s.c.attributes()
	if len(got) != 161 {
		t.Errorf("%d attributes", len(got))
	}
	for i, v := range got {
		if v != want[i] {
			t.Errorf("attribute %d is %d, want %d", i, v, want[i])
		}
	}
}

// TestFuncAttributes checks the attributes of a kernel on a device with unusual limits.
func TestFuncAttributes(t *testing.T) {
	lim := engine.DefaultLimits()
	lim.Major, lim.Minor = 8, 6
	d, err := NewDevice(Config{Engine: engine.NewRef(), MemorySize: 1 << 24, Limits: lim})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := &script{T: t, c: d.NewContext()}
	m, err := s.c.LoadModule(Image{"k.ptx", `.version 8.0
.target sm_80
.address_size 64
.visible .entry k() .maxntid 96, 1, 1 { .shared .align 4 .b8 tile[1000]; .local .align 8 .b8 frame[32]; .reg .u64 %a; mov.u64 %a, tile; mov.u64 %a, frame; ret; }
.visible .entry big() .maxntid 4096, 1, 1 { ret; }
`})
	s.must(err)
	k, err := m.Kernel("k")
	s.must(err)
	s.must(k.SetAttribute(FuncCarveout, 50))
	if got, want := k.attributes(), []uint64{1000, 0, 32, 96, 32, 86, 86, 48152, 50}; !slices.Equal(got, want) {
		t.Errorf("attributes %v, want %v", got, want)
	}
	if n := k.StaticShared(); n != 1000 {
		t.Errorf("%d bytes of shared memory", n)
	}
	big, err := m.Kernel("big")
	s.must(err)
	if got, want := big.attributes(), []uint64{0, 0, 0, 1024, 32, 86, 86, 49152, 1<<64 - 1}; !slices.Equal(got, want) {
		t.Errorf("attributes %v, want %v", got, want)
	}
}

// TestSetAttribute sets function attributes at and beyond their bounds.
func TestSetAttribute(t *testing.T) {
	s := newScript(t)
	for _, c := range []struct {
		attribute uint32
		value     int32
		want      Code
	}{
		{8, 0, 0}, {8, -1, 1}, {8, 166912, 0}, {8, 166913, 1}, {8, 1000, 0},
		{9, -2, 1}, {9, -1, 0}, {9, 0, 0}, {9, 100, 0}, {9, 101, 1}, {9, 99, 0},
		{7, 1, 1}, {10, 1, 801}, {11, 2, 0}, {12, 0, 1}, {13, 1, 0}, {14, 1, 0}, {15, 1, 0}, {16, 1, 1},
	} {
		if got := code(s.k.SetAttribute(c.attribute, c.value)); got != c.want {
			t.Errorf("attribute %d = %d: %v, want %v", c.attribute, c.value, got, c.want)
		}
	}
	if shape := s.k.clusterShape(); shape != (event.Dim3{X: 2, Y: 1, Z: 1}) || !s.k.nonPortable {
		t.Errorf("clusters of %v, %v", shape, s.k.nonPortable)
	}
	if s.k.maxDynamic != 1000 || s.k.carveout != 99 {
		t.Errorf("%d bytes of dynamic shared memory, carveout %d", s.k.maxDynamic, s.k.carveout)
	}
}

// TestOccupancy counts the resident blocks of a multiprocessor with 2048 threads, 32 blocks and 164 KiB of shared memory, of which
// each block takes 1 KiB more than it asks for.
func TestOccupancy(t *testing.T) {
	s := newScript(t)
	m, err := s.c.LoadModule(Image{"k.ptx", `.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { .shared .align 4 .b8 tile[3072]; .reg .u64 %a; mov.u64 %a, tile; ret; }
`})
	s.must(err)
	static, err := m.Kernel("k")
	s.must(err)
	for _, c := range []struct {
		k              *Kernel
		threads, bytes uint64
		want           int
	}{
		{s.k, 32, 0, 32}, {s.k, 64, 0, 32}, {s.k, 65, 0, 21}, {s.k, 1024, 0, 2}, {s.k, 1025, 0, 0}, {s.k, 1 << 63, 0, 0},
		{s.k, 32, 40 << 10, 4}, {s.k, 32, 40<<10 + 1, 3}, {s.k, 32, 48 << 10, 3}, {s.k, 32, 48<<10 + 1, 0}, {s.k, 32, 1 << 63, 0},
		{s.k, 32, 32512, 5}, {s.k, 32, 32513, 4}, // in pieces of 128 bytes
		{static, 1, 0, 32}, {static, 1, 37 << 10, 4}, {static, 1, 37<<10 + 1, 3}, {static, 1, 45 << 10, 3}, {static, 1, 45<<10 + 1, 0},
	} {
		if n, err := c.k.BlocksPerSM(c.threads, c.bytes); n != c.want || err != nil {
			t.Errorf("%d threads, %d bytes: %d blocks, %v, want %d", c.threads, c.bytes, n, err, c.want)
		}
	}
	if n, err := s.k.BlocksPerSM(0, 0); code(err) != InvalidValue || n != 0 {
		t.Errorf("blocks of no threads: %d, %v", n, err)
	}
	s.c.sticky = fail(IllegalAddress, "lost")
	if n, err := s.k.BlocksPerSM(32, 0); code(err) != IllegalAddress || n != 0 {
		t.Errorf("after a fault: %d, %v", n, err)
	}
}

// TestCodes compares the codes with their names in the runtime API.
func TestCodes(t *testing.T) {
	for name, c := range map[string]Code{
		"cudaSuccess": Success, "cudaErrorInvalidValue": InvalidValue, "cudaErrorMemoryAllocation": MemoryAllocation,
		"cudaErrorInitializationError": InitializationError, "cudaErrorInvalidConfiguration": InvalidConfiguration,
		"cudaErrorInvalidPitchValue": InvalidPitchValue, "cudaErrorInvalidSymbol": InvalidSymbol,
		"cudaErrorInvalidMemcpyDirection": InvalidMemcpyDirection, "cudaErrorInvalidDeviceFunction": InvalidDeviceFunction,
		"cudaErrorNoDevice": NoDevice, "cudaErrorInvalidDevice": InvalidDevice, "cudaErrorInvalidKernelImage": InvalidKernelImage,
		"cudaErrorNoKernelImageForDevice": NoKernelImageForDevice, "cudaErrorInvalidPtx": InvalidPtx,
		"cudaErrorInvalidResourceHandle": InvalidResourceHandle, "cudaErrorSymbolNotFound": SymbolNotFound,
		"cudaErrorIllegalAddress": IllegalAddress, "cudaErrorLaunchOutOfResources": LaunchOutOfResources,
		"cudaErrorLaunchTimeout": LaunchTimeout, "cudaErrorAssert": Assert,
		"cudaErrorHostMemoryAlreadyRegistered": HostMemoryAlreadyRegistered, "cudaErrorHostMemoryNotRegistered": HostMemoryNotRegistered,
		"cudaErrorMisalignedAddress": MisalignedAddress, "cudaErrorLaunchFailure": LaunchFailure,
		"cudaErrorCooperativeLaunchTooLarge": CooperativeLaunchTooLarge, "cudaErrorNotSupported": NotSupported, "cudaErrorUnknown": Unknown,
	} {
		if c.String() != name || codeNamed(name) != c {
			t.Errorf("%s is %d, which is called %v", name, c, c)
		}
	}
	cause := fail(InvalidValue, "the %s", "cause")
	for err, want := range map[error]string{
		cause:                               "cudaErrorInvalidValue: the cause",
		&Lost{Err: cause}:                   "the device is lost: cudaErrorInvalidValue: the cause",
		&Unchecked{Kernel: "k", Err: cause}: "k cannot be executed: cudaErrorInvalidValue: the cause",
		&Error{Code: InvalidPtx, Msg: "text", Err: cause}: "cudaErrorInvalidPtx: text",
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	for _, err := range []error{&Lost{Err: cause}, &Unchecked{Err: cause}} {
		if code(err) != InvalidValue {
			t.Errorf("the code behind %v is %v", err, code(err))
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown code has a number")
		}
	}()
	codeNamed("cudaErrorNone")
}

// TestBuiltFor raises the capability of the device to that of a program, where it is not fixed.
func TestBuiltFor(t *testing.T) {
	s := newScript(t)
	for _, c := range []struct{ arch, major, minor, multiprocessors, shared int }{
		{0, 8, 0, 108, 163}, {75, 8, 0, 108, 163}, {89, 8, 0, 108, 163}, {90, 9, 0, 132, 227}, {80, 9, 0, 132, 227}, {103, 10, 3, 148, 227}, {120, 12, 0, 188, 99}, {100, 12, 0, 188, 99},
	} {
		s.c.builtFor(c.arch)
		a := s.c.attributes()
		if int(a[75]) != c.major || int(a[76]) != c.minor || int(a[16]) != c.multiprocessors || int(a[97]) != c.shared<<10 || (a[120] == 1) != (c.major >= 9) {
			t.Errorf("built for %d: capability %d.%d, %d multiprocessors, %d bytes, clusters %d", c.arch, a[75], a[76], a[16], a[97], a[120])
		}
	}
	fixed, err := NewDevice(Config{Engine: engine.NewRef(), MemorySize: 1 << 24, Limits: engine.LimitsOf(80)})
	if err != nil {
		t.Fatal(err)
	}
	defer fixed.Close()
	k := fixed.NewContext()
	_, err = k.LoadModule(Image{"k.ptx", ".version 8.0\n.target sm_90a\n.address_size 64\n"})
	s.must(err)
	if k.limits.Major != 8 {
		t.Errorf("a device that is to be of 8.0 becomes one of %d.%d", k.limits.Major, k.limits.Minor)
	}
	_, err = newScript(t).c.LoadModule(Image{"k.ptx", ".version 8.0\n.target sm_90a\n.address_size 64\n"})
	s.must(err)
}

// TestClusterOccupancy counts clusters: 8 GPCs of 16 multiprocessors.
func TestClusterOccupancy(t *testing.T) {
	s := newScript(t)
	one := event.Dim3{X: 1, Y: 1, Z: 1}
	if _, _, err := s.k.Clusters(32, 0, one); code(err) != InvalidClusterSize {
		t.Errorf("clusters on a device of capability 8.0: %v", err)
	}
	s.c.builtFor(90)
	for _, c := range []struct {
		threads, shared uint64
		shape           event.Dim3
		n, most         int
		want            Code
	}{
		{256, 0, event.Dim3{}, 8 * 128, 8, 0},
		{256, 0, one, 8 * 128, 8, 0},
		{1024, 0, event.Dim3{X: 3, Y: 1, Z: 1}, 8 * 10, 8, 0},
		{1024, 0, event.Dim3{X: 2, Y: 2, Z: 2}, 8 * 4, 8, 0},
		{1024, 0, event.Dim3{X: 9, Y: 1, Z: 1}, 0, 0, InvalidClusterSize},
		{0, 0, one, 0, 0, InvalidValue},
		{1025, 0, one, 0, 0, 0},
		{32, 1 << 20, one, 0, 0, 0},
	} {
		if n, most, err := s.k.Clusters(c.threads, c.shared, c.shape); n != c.n || most != c.most || code(err) != c.want {
			t.Errorf("%d threads, %d bytes, %v: %d clusters, largest %d, %v; want %d, %d", c.threads, c.shared, c.shape, n, most, err, c.n, c.most)
		}
	}
}
