package cuda

import (
	"context"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// hostAccesses counts the reported accesses of host code.
type hostAccesses struct{ reads, writes int }

func (h *hostAccesses) Events(b *event.Batch) {
	for _, o := range b.Hosts {
		if o.Name == "host code" && o.Kind == event.HostRead {
			h.reads++
		} else if o.Name == "host code" {
			h.writes++
		}
	}
}

// TestUnawaited checks that accesses of host code are reported while work is pending, except if a pending kernel may
// synchronise with the host.
func TestUnawaited(t *testing.T) {
	for _, c := range []struct {
		body  string
		tells bool
	}{
		{"st.global.u32 [%rd1], 1;", true},
		{"atom.global.add.u32 %r1, [%rd1], 1;", true},
		{"st.volatile.global.u32 [%rd1], 1;", false},
		{"atom.global.sys.add.u32 %r1, [%rd1], 1;", false},
		{"fence.acq_rel.sys; st.global.u32 [%rd1], 1;", false},
		{"fence.acq_rel.gpu; st.volatile.shared.u32 [box], 1;", true},
	} {
		var told hostAccesses
		d, err := NewDevice(Config{Engine: engine.NewRef(), Sink: &told, Needs: event.NeedHost, MemorySize: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		ctx := d.NewContext()
		m, err := ctx.LoadModule(Image{Name: "k.ptx", Text: ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n" +
			".reg .b32 %r<3>; .reg .b64 %rd<3>; .shared .u32 box; ld.param.u64 %rd1, [p];\n" + c.body + "\nret;\n}\n"})
		if err != nil {
			t.Fatal(err)
		}
		k, err := m.Kernel("k")
		if err != nil {
			t.Fatal(err)
		}
		p, err := ctx.Malloc(4096, devmem.ManagedAlloc)
		if err != nil {
			t.Fatal(err)
		}
		access := func(name string, want bool) {
			t.Helper()
			if got := ctx.unawaited(); got != want {
				t.Errorf("%s: %s: unawaited is %v", c.body, name, got)
			}
			before := told.writes
			ctx.HostAccess(p, 4, true, "", "")
			if name != "at first" && (told.writes > before) != want && name != "when all is awaited" {
				t.Errorf("%s: %s: told is %v", c.body, name, told.writes > before)
			}
		}
		access("at first", false)
		if err := ctx.Launch(context.Background(), k, LaunchConfig{Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 1, Y: 1, Z: 1}}, appendUint64(p)); err != nil {
			t.Fatal(err)
		}
		access("after the launch", c.tells)
		if err := ctx.Synchronize(); err != nil {
			t.Fatal(err)
		}
		access("when all is awaited", false)
		ctx.HostAccess(1<<40, 4, true, "", "") // no memory of the device
		ctx.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func appendUint64(v uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return b
}
