package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// TestReadAndWrite copies bytes in and out, also where it must not.
func TestReadAndWrite(t *testing.T) {
	s := newScript(t)
	c := s.c
	p, err := c.Malloc(1000, devmem.DeviceAlloc)
	s.must(err)
	freed, err := c.Malloc(1000, devmem.DeviceAlloc)
	s.must(err)
	s.must(c.Free(freed))
	s.must(c.Write(p+10, []byte("text")))
	got := make([]byte, 6)
	s.must(c.Read(p+9, got))
	if string(got) != "\x00text\x00" {
		t.Errorf("read %q", got)
	}
	s.must(c.Write(p+996, []byte("last")))
	s.must(c.Read(p, make([]byte, 1000)))
	s.must(c.Write(12345, nil))
	s.must(c.Read(12345, nil))
	for name, r := range map[string]struct{ addr, n uint64 }{
		"past the end": {p + 997, 4}, "longer": {p, 1001}, "no allocation": {12345, 4}, "freed": {freed, 4}, "below": {p - 1, 4},
	} {
		if err := c.Write(r.addr, make([]byte, r.n)); code(err) != InvalidValue {
			t.Errorf("write, %s: %v", name, err)
		}
		copy(got, "before")
		if err := c.Read(r.addr, got[:min(r.n, 6)]); r.n < 7 && (code(err) != InvalidValue || string(got) != "before") {
			t.Errorf("read, %s: %v, %q", name, err, got)
		}
	}
	c.sticky = &Error{Code: IllegalAddress, Msg: "lost", lost: true}
	for _, err := range []error{c.Write(p, got), c.Read(p, got), c.Write(p, nil), c.Read(p, nil)} {
		if code(err) != IllegalAddress {
			t.Errorf("after a fault: %v", err)
		}
	}
	if err := c.FreeAsync(p, 0, 0); err != nil {
		t.Errorf("cudaFreeAsync after a fault: %v", err)
	}
}

// TestReadAndWriteOrder checks that a copy by the caller is reported as a copy of its bytes in the default stream.
func TestReadAndWriteOrder(t *testing.T) {
	d, l := newTestDevice(t)
	c := d.NewContext()
	p, err := c.Malloc(1000, devmem.DeviceAlloc)
	if err != nil {
		t.Fatal(err)
	}
	l.hosts = nil
	if err := c.Write(p+8, make([]byte, 40)); err != nil {
		t.Fatal(err)
	}
	if err := c.Read(p+16, make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	var got []event.HostOp
	for _, o := range l.hosts {
		if o.Kind >= event.HostRead {
			got = append(got, o)
		}
	}
	const name = "cudaMemcpy (default stream)"
	want := []event.HostOp{
		{Kind: event.HostWrite, Agent: c.gpu.legacy.agent, Addr: p + 8, Size: 40, Name: name + ", which may return before the device has the bytes", Staged: true},
		{Kind: event.HostRead, Agent: c.gpu.legacy.agent, Addr: p + 16, Size: 50, Name: name},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestRegister registers host memory at the bounds of what can be registered.
func TestRegister(t *testing.T) {
	const page, room = 4096, 16 << 30
	arena := uint64(1 << 24)
	for _, r := range []struct {
		addr, size uint64
		want       Code
	}{
		{page, page, 0}, {0, page, 1}, {page, 0, 1}, {page + 1, page, 1}, {page, page + 1, 1}, {page, page - 1, 1}, {page / 2, page, 1}, {page, page / 2, 1},
		{1<<47 - page, page, 0}, {1 << 47, page, 1}, {page, room, 0}, {page, room + page, 1},
		{devmem.GlobalBase - page, page, 0}, {devmem.GlobalBase - page, 2 * page, 1}, {devmem.GlobalBase, page, 1},
		{devmem.GlobalBase + arena, page, 0}, {devmem.GlobalBase + arena - page, page, 1}, {devmem.GlobalBase - page, arena + 2*page, 1},
	} {
		c := newScript(t).c
		at, err := c.Register(r.addr, r.size)
		if code(err) != r.want || err == nil && at != arena || err != nil && at != 0 {
			t.Errorf("%d bytes at %#x: offset %#x, %v, want %v", r.size, r.addr, at, err, r.want)
		}
		if r.want != 0 {
			continue
		}
		if a, ok := c.Find(r.addr + r.size - 1); !ok || a.Addr != r.addr || a.Size != r.size || a.Kind != devmem.PinnedAlloc || a.Name != fmt.Sprintf("cudaHostRegister (%d bytes)", r.size) {
			t.Errorf("found %+v, %v", a, ok)
		}
	}
}

// TestRegistrations keeps several registrations apart.
func TestRegistrations(t *testing.T) {
	const page, arena = 4096, 1 << 24
	d, err := NewDevice(Config{Engine: &player{}, Sink: &log{}, Needs: event.NeedHost, MemorySize: arena})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l := &log{}
	d.cfg.Sink = l
	c, other := d.NewContext(), d.NewContext()
	register := func(c *Context, addr, size, offset uint64, want Code) {
		t.Helper()
		if at, err := c.Register(addr, size); code(err) != want || err == nil && at != offset {
			t.Errorf("%d bytes at %#x: offset %#x, %v; want %#x, %v", size, addr, at, err, offset, want)
		}
	}
	const a, b = 1 << 30, 1<<30 + 2*page
	register(c, a, 2*page, arena, 0)
	register(c, b, page, arena+2*page, 0)
	register(c, a+page, 2*page, 0, HostMemoryAlreadyRegistered)
	register(c, a-page, 2*page, 0, HostMemoryAlreadyRegistered)
	register(other, b, page, 0, HostMemoryAlreadyRegistered)
	register(c, 1<<31, 16<<30-3*page, arena+3*page, 0) // what is refused takes no room
	register(c, 1<<40, page, 0, MemoryAllocation)
	for addr, want := range map[uint64][2]uint64{a - 1: {}, b + page: {}, 0: {}, b + page - 1: {b, page}, a + 2*page - 1: {a, 2 * page}} {
		at, size, err := c.Unregister(addr)
		if (err == nil) != (want != [2]uint64{}) || at != want[0] || size != want[1] || err != nil && code(err) != HostMemoryNotRegistered {
			t.Errorf("end of %#x: %#x, %d, %v", addr, at, size, err)
		}
	}
	if _, _, err := other.Unregister(1 << 31); code(err) != HostMemoryNotRegistered {
		t.Errorf("end of another context's: %v", err)
	}
	register(other, a, 3*page, arena, 0)
	l.hosts = nil
	c.Close()
	if n := len(c.pinned); n != 0 || len(l.hosts) == 0 {
		t.Errorf("%d registrations are left", n)
	}
	if got, want := l.hosts[len(l.hosts)-1], (event.HostOp{Kind: event.HostFree, Agent: c.host, Addr: 1 << 31, Size: 16<<30 - 3*page, Name: "cudaHostUnregister"}); got != want {
		t.Errorf("told %+v, want %+v", got, want)
	}
	if _, ok := other.Find(a); !ok {
		t.Error("a registration of another context is gone")
	}
}

// TestAllocationNames checks what allocations are called, and that a context that ends frees its own.
func TestAllocationNames(t *testing.T) {
	d, l := newTestDevice(t)
	c, other := d.NewContext(), d.NewContext()
	kept, err := other.Malloc(1, devmem.DeviceAlloc)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []uint64
	for i, r := range []struct {
		kind devmem.AllocKind
		want string
	}{
		{devmem.DeviceAlloc, "cudaMalloc #1 (1 byte)"}, {devmem.ManagedAlloc, "cudaMallocManaged #2 (2 bytes)"}, {devmem.PinnedAlloc, "cudaHostAlloc #3 (3 bytes)"},
	} {
		p, err := c.Malloc(uint64(i+1), r.kind)
		a, ok := c.Find(p)
		if err != nil || !ok || a.Name != r.want || p%256 != 0 {
			t.Errorf("%#x is %+v, %v, want %s", p, a, err, r.want)
		}
		addrs = append(addrs, p)
	}
	p, err := c.MallocAsync(4, 0, 0)
	if a, ok := c.Find(p); err != nil || !ok || a.Name != "cudaMallocAsync #4 (4 bytes)" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := c.Malloc(16, devmem.ModuleAlloc); code(err) != InvalidValue {
		t.Errorf("memory of a module: %v", err)
	}
	if _, err := c.Malloc(1<<40, devmem.DeviceAlloc); code(err) != MemoryAllocation || !strings.HasPrefix(err.Error(), "cudaErrorMemoryAllocation: cudaMalloc of 1099511627776 bytes: ") {
		t.Errorf("too much memory: %v", err)
	}
	l.hosts = nil
	c.Close()
	c.Close()
	var freed []uint64
	for _, o := range l.hosts {
		if o.Kind == event.HostFree && o.Name == endOfContext && o.Agent == c.host {
			freed = append(freed, o.Addr)
		}
	}
	addrs = append(addrs, p)
	slices.Sort(addrs)
	if !slices.Equal(freed, addrs) {
		t.Errorf("freed %#x, want %#x", freed, addrs)
	}
	if _, ok := other.Find(kept); !ok {
		t.Error("the allocation of another context is gone")
	}
	if free, total := other.MemInfo(); free != total-1 || total != 1<<29 {
		t.Errorf("%d of %d bytes are free", free, total)
	}
}

// TestFreedBounded checks that what freed the last allocations is remembered, and not without bound.
func TestFreedBounded(t *testing.T) {
	s := newScript(t)
	for i := range uint64(freedLimit) {
		s.c.freed(i<<8, "cudaFree")
	}
	if n := len(s.c.freedAt); n != 65536 {
		t.Errorf("%d are remembered", n)
	}
	s.c.freed(1, "cudaFree\nx/prog.cu:7 main")
	if n := len(s.c.freedAt); n != 1 || s.c.freedAt[1] != "cudaFree at prog.cu:7" {
		t.Errorf("%d are remembered, %q", n, s.c.freedAt[1])
	}
}

// TestFreeTexts checks what is said of frees that the texts of TestFailureTexts leave out.
func TestFreeTexts(t *testing.T) {
	s := newScript(t)
	m, err := s.c.LoadModule(Image{"add.ptx", addKernel})
	s.must(err)
	variable, _, err := m.Symbol("step")
	s.must(err)
	p, err := s.c.Malloc(1000, devmem.DeviceAlloc)
	s.must(err)
	other, err := s.c.dev.NewContext().Malloc(1000, devmem.DeviceAlloc)
	s.must(err)
	s.must(s.c.Free(p))
	clear(s.c.freedAt)
	for _, r := range []struct {
		addr uint64
		want string
	}{
		{p, "cudaFree of cudaMalloc #1 (1000 bytes), which another call freed before"},
		{other, "cudaFree of cudaMalloc #1 (1000 bytes), which no call allocated that it could free"},
		{other + 999, "cudaFree of an address 999 bytes into cudaMalloc #1 (1000 bytes): only the address that the allocation returned can be freed"},
		{variable, "which no call allocated that it could free"},
		{0xffff, "cudaFree of 0xffff, which no call of the API has allocated"},
		{0x10000, "cudaFree of an address of the program's own, which no call of the API has allocated"},
	} {
		if err := s.c.Free(r.addr); err == nil || !strings.HasSuffix(err.Error(), r.want) {
			t.Errorf("%#x: %v, want %s", r.addr, err, r.want)
		}
	}
	err = s.c.OrderCopy(Copy{Dst: p, Src: variable, Width: 4, Height: 1, Depth: 1, Kind: Default}, 0, 0)
	if err == nil || !strings.HasSuffix(err.Error(), "the destination is in cudaMalloc #1 (1000 bytes), which was freed before") {
		t.Errorf("a copy to freed memory: %v", err)
	}
	again, err := s.c.Malloc(1000, devmem.DeviceAlloc)
	s.must(err)
	s.must(s.c.OrderCopy(Copy{Dst: again + 996, Src: variable, Width: 4, Height: 1, Depth: 1, Kind: Default}, 0, 0))
}

// TestDirections checks the directions of copies against where their ends are.
func TestDirections(t *testing.T) {
	s := newScript(t)
	at := s.memories()
	for kind := HostToHost; kind <= Default; kind++ {
		for dst := range at {
			for src := range at {
				to, from := kind == HostToDevice || kind == DeviceToDevice, kind == DeviceToHost || kind == DeviceToDevice
				wrong := func(device bool, name string) bool {
					return device && name == "pageable" || !device && name == "device" // the driver goes by addresses it knows
				}
				want := Success
				if kind != Default && (wrong(to, dst) || wrong(from, src)) {
					want = InvalidValue
				}
				err := s.c.OrderCopy(Copy{Dst: at[dst], Src: at[src] + 64, Width: 4, Height: 1, Depth: 1, Kind: kind}, 0, 0)
				if code(err) != want {
					t.Errorf("%v to %s from %s: %v, want %v", kind, dst, src, err, want)
				}
			}
		}
	}
	for k, want := range map[CopyKind]string{HostToHost: "cudaMemcpyHostToHost", HostToDevice: "cudaMemcpyHostToDevice", DeviceToHost: "cudaMemcpyDeviceToHost",
		DeviceToDevice: "cudaMemcpyDeviceToDevice", Default: "cudaMemcpyDefault", 5: "copy direction 5", 200: "copy direction 200"} {
		if k.String() != want {
			t.Errorf("direction %d is %s", uint8(k), k)
		}
	}
}

// TestStaged checks which copies may return before the device has the bytes: synchronous ones from pageable to device memory.
func TestStaged(t *testing.T) {
	d, l := newTestDevice(t)
	s := &script{T: t, c: d.NewContext()}
	at := s.memories()
	for dst := range at {
		for src := range at {
			for _, async := range []bool{false, true} {
				l.hosts = nil
				s.must(s.c.OrderCopy(Copy{Dst: at[dst], Src: at[src] + 64, Width: 4, Height: 1, Depth: 1, Kind: Default, Async: async, Place: "\na.cu:7 main"}, 0, 0))
				want := !async && src == "pageable" && (dst == "device" || dst == "managed")
				for _, o := range l.hosts {
					call, frames := event.CutHostPlace(o.Name)
					if o.Kind == event.HostWrite && (o.Staged != want || strings.HasSuffix(call, ", which may return before the device has the bytes") != want ||
						len(frames) != 1 || frames[0] != event.Frame{File: "a.cu", Line: 7, Function: "main"}) {
						t.Errorf("from %s to %s, async %v: %+v", src, dst, async, o)
					}
				}
			}
		}
	}
}

// TestArenaEdges checks what counts as an address of device memory.
func TestArenaEdges(t *testing.T) {
	c := newScript(t).c
	const base, end = devmem.GlobalBase, devmem.GlobalBase + 1<<24
	for r, want := range map[[2]uint64]bool{{base - 10, 10}: false, {base - 10, 11}: true, {base, 1}: true, {end - 1, 1}: true, {end, 1}: false, {end + 5, 5}: false,
		{base - 1, 1<<24 + 2}: true, {0, base}: false, {0, base + 1}: true} {
		if c.inArena(r[0], r[1]) != want {
			t.Errorf("%d bytes at %#x: %v", r[1], r[0], !want)
		}
	}
}
