package cuda

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

const addKernel = `.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 step = 3;
.visible .entry add(.param .u64 p)
{
	.reg .u64 %a;
	.reg .u32 %x, %s;
	ld.param.u64 %a, [p];
	ld.global.u32 %x, [%a];
	ld.global.u32 %s, [step];
	add.u32 %x, %x, %s;
	st.global.u32 [%a], %x;
	ret;
}
.visible .entry odd(.param .u64 p)
{
	frobnicate.u32 %x, %y;
	ret;
}
`

var one = event.Dim3{X: 1, Y: 1, Z: 1}

func le64(v uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return b
}

func code(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Success
}

// TestDirect drives a device the way `fencepost check` does.
func TestDirect(t *testing.T) {
	d, l := newTestDevice(t)
	c := d.NewContext()
	m, err := c.LoadModule(Image{"add.ptx", addKernel})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m.Kernels(), " "); got != "add odd" {
		t.Errorf("kernels %q", got)
	}
	k, err := m.Kernel("add")
	if err != nil {
		t.Fatal(err)
	}
	if k.ParamSize() != 8 || len(k.Params()) != 1 || k.Err() != nil {
		t.Errorf("parameters %+v of %d bytes, error %v", k.Params(), k.ParamSize(), k.Err())
	}
	p, err := c.Malloc(16, devmem.DeviceAlloc)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(p, []byte{39, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if err := c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, le64(p)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if err := c.Read(p, got); err != nil || got[0] != 42 {
		t.Errorf("read %v, %v", got, err)
	}
	if addr, size, err := m.Symbol("step"); err != nil || size != 4 || addr < devmem.GlobalBase {
		t.Errorf("symbol %#x %d %v", addr, size, err)
	}
	if len(l.launches) != 1 || l.launches[0].ID != 1 || l.launches[0].Stats.Blocks != 1 {
		t.Errorf("launches %+v", l.launches)
	}
	if err := m.Unload(); err != nil {
		t.Error(err)
	}
	if err := c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, le64(p)); code(err) != InvalidResourceHandle {
		t.Errorf("launch of an unloaded kernel: %v", err)
	}
	c.Close()
	if _, err := c.Malloc(16, devmem.DeviceAlloc); code(err) != InitializationError {
		t.Errorf("allocation in a closed context: %v", err)
	}
}

// TestUncheckable checks that what cannot be executed is reported with its place, and never runs.
func TestUncheckable(t *testing.T) {
	d, l := newTestDevice(t)
	c := d.NewContext()
	m, err := c.LoadModule(Image{"add.ptx", addKernel})
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("odd")
	if err != nil {
		t.Fatal(err)
	}
	err = c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, le64(0))
	var u *Unchecked
	var list ptx.ErrorList
	if !errors.As(err, &u) || !errors.As(err, &list) || !strings.Contains(err.Error(), "add.ptx:18:") {
		t.Errorf("launch of a kernel with an unknown instruction: %v", err)
	}
	if len(l.launches) != 1 || l.launches[0].ID != 0 || l.launches[0].Err != err {
		t.Errorf("launches %+v", l.launches)
	}
	if _, err := m.Kernel("none"); code(err) != InvalidDeviceFunction {
		t.Errorf("a kernel that does not exist: %v", err)
	}
	for _, text := range []string{"", "nonsense", ".version 8.0\n.target sm_80\n.visible .entry k( {"} {
		if _, err := c.LoadModule(Image{"bad.ptx", text}); text != "" && code(err) != InvalidPtx {
			t.Errorf("module %q: %v", text, err)
		}
	}
	for _, data := range [][]byte{nil, []byte("nonsense"), make([]byte, 1000)} {
		if _, err := c.LoadFatbins(data); code(err) != InvalidKernelImage && code(err) != NoKernelImageForDevice {
			t.Errorf("fat binary %q: %v", data, err)
		}
	}
}

// TestStickyError checks that after a fault every call fails, in this context and no other.
func TestStickyError(t *testing.T) {
	d, l := newTestDevice(t)
	c, other := d.NewContext(), d.NewContext()
	m, err := c.LoadModule(Image{"add.ptx", addKernel})
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("add")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, le64(devmem.GlobalBase+12345678)); err != nil {
		t.Errorf("the launch itself fails: %v", err)
	}
	if len(l.faults) == 0 || l.faults[0].Kind != engine.OutOfBounds {
		t.Errorf("faults %+v", l.faults)
	}
	if err := c.Synchronize(); code(err) != IllegalAddress {
		t.Errorf("synchronise: %v", err)
	}
	if _, err := c.Malloc(16, devmem.DeviceAlloc); code(err) != IllegalAddress {
		t.Errorf("malloc: %v", err)
	}
	if err := other.Synchronize(); err != nil {
		t.Errorf("another context: %v", err)
	}
}

// eventCounter counts device events.
type eventCounter struct{ events int }

func (e *eventCounter) Events(b *event.Batch) { e.events += len(b.Events) }

// TestWatch checks that a kernel that is not watched makes no events.
func TestWatch(t *testing.T) {
	for _, watch := range []bool{true, false} {
		count := &eventCounter{}
		d, err := NewDevice(Config{Engine: engine.NewRef(), Sink: count, Needs: event.NeedGlobal | event.NeedLaunch, MemorySize: 1 << 24,
			Watch: func(name string) bool { return watch && name == "add" }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		c := d.NewContext()
		m, err := c.LoadModule(Image{"add.ptx", addKernel})
		if err != nil {
			t.Fatal(err)
		}
		k, err := m.Kernel("add")
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Malloc(16, devmem.DeviceAlloc)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, le64(p)); err != nil {
			t.Fatal(err)
		}
		if (count.events > 0) != watch {
			t.Errorf("watched %v, %d events", watch, count.events)
		}
	}
}

func TestSpans(t *testing.T) {
	var s spans
	s.add(100, 50)
	a, _ := s.take(20)
	b, _ := s.take(30)
	if _, ok := s.take(1); ok || a != 100 || b != 120 {
		t.Errorf("taken at %d and %d, and more: %v", a, b, ok)
	}
	s.add(b, 30)
	s.add(a, 20)
	s.add(200, 10)
	if len(s.free) != 2 || s.free[0] != (span{100, 50}) || s.free[1] != (span{200, 10}) {
		t.Errorf("free %v", s.free)
	}
}
