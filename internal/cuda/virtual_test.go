package cuda

import (
	"context"
	"encoding/binary"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/event"
)

// TestUnmap checks that cuMemUnmap is a write of the host that has waited for nothing, and that what is mapped side by side is one
// allocation, which ends where no access is.
func TestUnmap(t *testing.T) {
	d, l := newTestDevice(t)
	s := &script{T: t, c: d.NewContext()}
	at, err := s.c.ReserveAddresses(4*granularity, 0)
	s.must(err)
	for i := range uint64(3) {
		h, err := s.c.CreateMemory(granularity, 0)
		s.must(err)
		s.must(s.c.MapMemory(at+i*granularity, granularity, h))
		s.must(s.c.ReleaseMemory(h))
	}
	s.must(s.c.SetAccess(at, 2*granularity, 0, AccessReadWrite))
	if a, ok := s.c.Find(at + granularity); !ok || a.Addr != at || a.Size != 2*granularity || a.Const {
		t.Errorf("two parts with access are %+v, %v", a, ok)
	}
	if a, ok := s.c.Find(at + 2*granularity); ok {
		t.Errorf("a part without access is in %+v", a)
	}
	if b, err := d.mem.Bytes(at+granularity-4, 8); err != nil || len(b) != 8 {
		t.Errorf("bytes over the edge: %v, %v", b, err)
	}
	l.hosts = nil
	s.must(s.c.UnmapMemory(at+granularity, 2*granularity, ""))
	var kinds []event.HostKind
	for _, h := range l.hosts {
		if kinds = append(kinds, h.Kind); h.Addr != at+granularity && h.Addr != at+2*granularity {
			t.Errorf("told %+v", h)
		}
	}
	if len(kinds) != 3 || kinds[0] != event.HostWrite || kinds[1] != event.HostFree || kinds[2] != event.HostFree {
		t.Errorf("told %v", kinds)
	}
	if free, total := s.c.MemInfo(); total-free != granularity || len(s.c.physical) != 1 {
		t.Errorf("%d bytes are in use, of %d allocations", total-free, len(s.c.physical))
	}
	s.must(s.c.Reset())
	if _, ok := s.c.Find(at); ok || s.c.reserved != nil {
		t.Error("a reset leaves mapped memory")
	}
}

// TestUnmapped checks that memory that was unmapped is a freed allocation until memory is mapped there again.
func TestUnmapped(t *testing.T) {
	d, _ := newTestDevice(t)
	s := &script{T: t, c: d.NewContext()}
	at, err := s.c.ReserveAddresses(4*granularity, 0)
	s.must(err)
	for range 3 {
		h, err := s.c.CreateMemory(granularity, 0)
		s.must(err)
		s.must(s.c.MapMemory(at, granularity, h))
		s.must(s.c.SetAccess(at, granularity, 0, AccessReadWrite))
		s.must(s.c.ReleaseMemory(h))
		if b, err := d.mem.Bytes(at, 1); err != nil || b[0] != 0 {
			t.Errorf("a new allocation begins with %v, %v", b, err)
		} else {
			b[0] = 1
		}
		s.must(s.c.UnmapMemory(at, granularity, ""))
		if a, ok := d.mem.Find(at); !ok || !a.Freed {
			t.Errorf("what was unmapped is %+v, %v", a, ok)
		}
	}
	if n := len(d.mem.Known()); n != 1 {
		t.Errorf("%d allocations are known of one place", n)
	}
	s.must(s.c.FreeAddresses(at, 4*granularity))
}

// TestMappedOnDevices checks that kernels reach mapped memory of their own device, or of another one, exactly where cuMemSetAccess allows it.
func TestMappedOnDevices(t *testing.T) {
	const ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry store(.param .u64 p) {\n" +
		".reg .u64 %p; ld.param.u64 %p, [p]; st.global.u32 [%p], 1; ret;\n}\n"
	for _, r := range []struct {
		of, on int // device of the memory, and of the kernel
		access Access
		want   Code
	}{{0, 0, AccessReadWrite, Success}, {0, 1, AccessNone, IllegalAddress}, {0, 1, AccessReadWrite, Success}, {1, 1, AccessReadWrite, Success},
		{1, 0, AccessNone, IllegalAddress}, {1, 1, AccessRead, IllegalAddress}, {0, 0, AccessNone, IllegalAddress}} {
		d, err := NewDevice(Config{Engine: warp.New(), MemorySize: 1 << 26, Devices: 2, OnFault: func(engine.Fault) {}})
		if err != nil {
			t.Fatal(err)
		}
		s := &script{T: t, c: d.NewContext()}
		at, err := s.c.ReserveAddresses(granularity, 0)
		s.must(err)
		h, err := s.c.CreateMemory(granularity, r.of)
		s.must(err)
		s.must(s.c.MapMemory(at, granularity, h))
		if r.access == AccessNone { // the other device has it
			s.must(s.c.SetAccess(at, granularity, 1-r.on, AccessReadWrite))
		} else {
			s.must(s.c.SetAccess(at, granularity, r.on, r.access))
		}
		if _, _, got, err := s.c.Mapped(at, false, r.on); got != r.access || err != nil {
			t.Errorf("%+v: access %d, %v", r, got, err)
		}
		if device, err := s.c.DeviceOf(h); device != r.of || err != nil {
			t.Errorf("%+v: memory of device %d, %v", r, device, err)
		}
		s.must(s.c.SetDevice(r.on, 0))
		m, err := s.c.LoadModule(Image{"k.ptx", ptx})
		s.must(err)
		k, err := m.Kernel("store")
		s.must(err)
		one := event.Dim3{X: 1, Y: 1, Z: 1}
		s.must(s.c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, binary.LittleEndian.AppendUint64(nil, at)))
		if err := s.c.Synchronize(); code(err) != r.want {
			t.Errorf("%+v: %v", r, err)
		}
		d.Close()
	}
}
