package cuda

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/event"
)

// newGPUs is newScript with several devices.
func newGPUs(t *testing.T, n int) (*script, *causality) {
	t.Helper()
	order := newCausality()
	d, err := NewDevice(Config{Engine: order, Sink: order, Needs: event.NeedHost, MemorySize: 1 << 26, Devices: n})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s := &script{T: t, c: d.NewContext()}
	m, err := s.c.LoadModule(Image{"k.ptx", emptyKernel})
	s.must(err)
	s.k, err = m.Kernel("k")
	s.must(err)
	return s, order
}

// TestOrderOfDevices follows which launches come before which: those of two devices are ordered by events, copies and the host alone.
func TestOrderOfDevices(t *testing.T) {
	between := func(s *script, async bool) {
		a, err := s.c.Malloc(64, devmem.DeviceAlloc)
		s.must(err)
		s.must(s.c.SetDevice(1, 0))
		b, err := s.c.Malloc(64, devmem.DeviceAlloc)
		s.must(err)
		s.must(s.c.SetDevice(0, 0))
		s.must(s.c.OrderCopy(Copy{Dst: b, Src: a, Width: 64, Height: 1, Depth: 1, Kind: Default, Async: async}, 0, 0))
	}
	for _, r := range []struct {
		name    string
		between func(s *script)
		ordered bool
	}{
		{"default streams", func(*script) {}, false},
		{"synchronize device 1", func(s *script) { s.must(s.c.SetDevice(1, 0)); s.must(s.c.Synchronize()) }, false},
		{"synchronize device 0", func(s *script) { s.must(s.c.Synchronize()) }, true},
		{"event", func(s *script) {
			ev, err := s.c.CreateEvent(0)
			s.must(err)
			s.must(s.c.RecordEvent(ev, 0, 0))
			s.must(s.c.SetDevice(1, 0))
			s.must(s.c.WaitEvent(0, 0, ev))
		}, true},
		{"copy between devices", func(s *script) { between(s, false) }, true},
		{"asynchronous copy between devices", func(s *script) { between(s, true) }, false},
	} {
		s, order := newGPUs(t, 2)
		s.launch(0)
		r.between(s)
		s.must(s.c.SetDevice(1, 0))
		s.launch(0)
		if order.before[2][1] != r.ordered {
			t.Errorf("%s: ordered is %v", r.name, !r.ordered)
		}
	}
}

// TestLaunchDevice checks that launches tell their device where there are several.
func TestLaunchDevice(t *testing.T) {
	alone, order := newGPUs(t, 1)
	if alone.launch(0); !slices.Equal(order.devices, []uint8{0}) {
		t.Errorf("one device: launches on %v", order.devices)
	}
	s, order := newGPUs(t, 2)
	for _, n := range []int{1, 0, 1} {
		s.must(s.c.SetDevice(n, 0))
		s.launch(0)
	}
	if !slices.Equal(order.devices, []uint8{2, 1, 2}) {
		t.Errorf("two devices: launches on %v", order.devices)
	}
}

// TestErrorsOfDevices checks what the API refuses where there are several devices.
func TestErrorsOfDevices(t *testing.T) {
	s, _ := newGPUs(t, 3)
	want := func(what string, err error, c Code) {
		t.Helper()
		if code(err) != c {
			t.Errorf("%s: %v, not %v", what, err, c)
		}
	}
	stream, err := s.c.CreateStream(0, 0)
	s.must(err)
	ev, err := s.c.CreateEvent(0)
	s.must(err)
	want("set device 3", s.c.SetDevice(3, 0), InvalidDevice)
	want("set device -1", s.c.SetDevice(-1, 0), InvalidDevice)
	want("peer of itself", s.c.PeerAccess(0, true), InvalidDevice)
	want("peer 3", s.c.PeerAccess(3, true), InvalidDevice)
	want("disable before", s.c.PeerAccess(1, false), PeerAccessNotEnabled)
	want("enable", s.c.PeerAccess(1, true), Success)
	want("enable again", s.c.PeerAccess(1, true), PeerAccessAlreadyEnabled)
	want("disable", s.c.PeerAccess(1, false), Success)
	if can, err := s.c.CanAccessPeer(1, 1); can || err != nil {
		t.Errorf("device 1 can access itself as a peer: %v, %v", can, err)
	}
	if can, err := s.c.CanAccessPeer(1, 2); !can || err != nil {
		t.Errorf("device 1 cannot access device 2: %v, %v", can, err)
	}
	s.must(s.c.SetDevice(1, 0))
	if a, b := s.c.CurrentDevice(0), s.c.CurrentDevice(7); a != 1 || b != 0 {
		t.Errorf("current devices of two threads: %d and %d", a, b)
	}
	launch := func(stream StreamID) error {
		return s.c.Launch(context.Background(), s.k, LaunchConfig{Grid: one, Block: one, Stream: stream}, nil)
	}
	want("launch in a stream of device 0", launch(stream), InvalidResourceHandle)
	want("record an event of device 0 in a stream of device 1", s.c.RecordEvent(ev, 0, 0), InvalidResourceHandle)
	want("record it in a stream of its own", s.c.RecordEvent(ev, stream, 0), Success)
	want("wait for it on device 1", s.c.WaitEvent(0, 0, ev), Success)
	want("launch on device 1", launch(0), Success)
}

// TestPeerAccess runs kernels on memory of another device: they fault unless the device has peer access.
func TestPeerAccess(t *testing.T) {
	for _, access := range []string{"st.global.u32 [%a], %r;", "ld.global.u32 %r, [%a];", "ld.volatile.u32 %r, [%a];", "ld.global.nc.u32 %r, [%a];",
		"ld.global.u8 %r, [%a+3];", "atom.global.add.u32 %r, [%a], 1;", "red.sys.global.or.b32 [%a], 1;", "atom.cas.b32 %r, [%a], 0, 1;",
		"cp.async.ca.shared.global [s], [%a], 4; cp.async.wait_all;"} {
		t.Run(access, func(t *testing.T) { testPeerAccess(t, access) })
	}
}

func testPeerAccess(t *testing.T, access string) {
	store := `.version 8.0
.target sm_80
.address_size 64
.global .u32 v = 5;
.visible .entry store(.param .u64 to) {
	.reg .u64 %a; .reg .u32 %r;
	.shared .align 4 .b8 s[4];
	ld.param.u64 %a, [to];
	ld.global.u32 %r, [v];
	` + access + `
	ret;
}
`
	for _, r := range []struct {
		kind           devmem.AllocKind
		peer, async    bool
		before, behind bool // access to the pool is given
		want           Code
	}{{kind: devmem.DeviceAlloc, want: IllegalAddress}, {kind: devmem.DeviceAlloc, peer: true}, {kind: devmem.ManagedAlloc},
		{kind: devmem.PinnedAlloc}, {kind: devmem.DeviceAlloc, peer: true, async: true, want: IllegalAddress},
		{kind: devmem.DeviceAlloc, async: true, before: true}, {kind: devmem.DeviceAlloc, async: true, behind: true}} {
		for _, emulator := range []engine.Engine{engine.NewRef(), warp.New()} {
			var faults []engine.Fault
			d, err := NewDevice(Config{Engine: emulator, MemorySize: 1 << 26, Devices: 2, OnFault: func(f engine.Fault) { faults = append(faults, f) }})
			if err != nil {
				t.Fatal(err)
			}
			s := &script{T: t, c: d.NewContext()}
			m, err := s.c.LoadModule(Image{"k.ptx", store})
			s.must(err)
			k, err := m.Kernel("store")
			s.must(err)
			var addr uint64
			pool, err := s.c.Pool(calls.PoolDefault, 0, 0, 0)
			s.must(err)
			grant := func() {
				_, err := s.c.Pool(calls.PoolGrant, pool, 1, uint64(AccessReadWrite))
				s.must(err)
			}
			if r.before {
				grant()
			}
			if r.async {
				addr, err = s.c.MallocAsync(4, 0, 0)
			} else {
				addr, err = s.c.Malloc(4, r.kind)
			}
			s.must(err)
			if r.behind {
				grant()
			}
			first, _, err := m.Symbol("v")
			s.must(err)
			s.must(s.c.SetDevice(1, 0))
			second, _, err := m.Symbol("v")
			s.must(err)
			if first == second {
				t.Error("two devices have one variable")
			}
			if r.peer {
				s.must(s.c.PeerAccess(0, true))
			}
			s.must(s.c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, binary.LittleEndian.AppendUint64(nil, addr)))
			if err := s.c.Synchronize(); code(err) != r.want {
				t.Errorf("%+v: %v", r, err)
			}
			if r.want != Success && (len(faults) != 1 || !strings.Contains(faults[0].Message, "memory of device 0")) {
				t.Errorf("%+v: faults %+v", r, faults)
			}
			d.Close()
		}
	}
}
