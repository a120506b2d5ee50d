package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/event"
)

// TestIPC checks the order of the work of two processes that share memory, and which handles are refused.
func TestIPC(t *testing.T) {
	s := newScript(t)
	other := s.c.dev.NewContext()
	m, err := other.LoadModule(Image{"k.ptx", emptyKernel})
	s.must(err)
	k, err := m.Kernel("k")
	s.must(err)
	launch := func(c *Context, k *Kernel, id StreamID) {
		c.speak(1)
		s.must(c.Launch(context.Background(), k, LaunchConfig{Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}, Stream: id}, nil))
	}
	handle := func(what, of uint64) [3]uint64 {
		w, err := s.c.IPC(what, of, [3]uint64{})
		s.must(err)
		return [3]uint64(w)
	}
	refused := func(want Code, c *Context, what, value uint64, h [3]uint64) {
		t.Helper()
		var e *Error
		if _, err := c.IPC(what, value, h); !errors.As(err, &e) || e.Code != want {
			t.Errorf("operation %d of %#x and %#x gives %v, want %v", what, value, h, err, want)
		}
	}
	p, err := s.c.Malloc(64, devmem.DeviceAlloc)
	s.must(err)
	pinned, err := s.c.Malloc(64, devmem.PinnedAlloc)
	s.must(err)
	ev, err := s.c.CreateEvent(eventInterprocess | EventDisableTiming)
	s.must(err)
	plain, err := s.c.CreateEvent(0)
	s.must(err)
	memory, record := handle(calls.IpcGetMemory, p+8), handle(calls.IpcGetEvent, uint64(ev))
	refused(InvalidValue, s.c, calls.IpcGetMemory, pinned, [3]uint64{})
	refused(InvalidValue, other, calls.IpcGetMemory, p, [3]uint64{})
	refused(InvalidValue, s.c, calls.IpcGetEvent, uint64(plain), [3]uint64{})
	refused(InvalidResourceHandle, s.c, calls.IpcGetEvent, 16*999, [3]uint64{})
	refused(DeviceUninitialized, s.c, calls.IpcOpenMemory, 0, memory)
	refused(InvalidResourceHandle, other, calls.IpcOpenEvent, 0, memory)
	refused(InvalidResourceHandle, other, calls.IpcOpenMemory, 0, [3]uint64{})
	refused(InvalidValue, other, calls.IpcCloseMemory, p, [3]uint64{})

	own, theirs := s.stream(0), s.stream(0)
	a, err := other.CreateStream(0, 0)
	s.must(err)
	launch(s.c, s.k, own) // 1
	s.must(s.c.RecordEvent(ev, own, 1))
	launch(other, k, a) // 2: before anything is opened, processes have nothing to do with each other
	opened, err := other.IPC(calls.IpcOpenMemory, 0, memory)
	s.must(err)
	if opened[0] != p {
		t.Errorf("memory at %#x is opened at %#x", p, opened[0])
	}
	launch(other, k, a) // 3: nobody waits for 1
	w, err := other.IPC(calls.IpcOpenEvent, 0, record)
	s.must(err)
	s.must(other.WaitEvent(a, 1, EventID(w[0])))
	launch(other, k, a) // 4: after the event
	b, err := other.CreateStream(0, 0)
	s.must(err)
	s.c.speak(1)
	s.must(s.c.SynchronizeStream(own, 1))
	launch(other, k, b)      // 5: after the call of the owner that has waited for 1
	launch(s.c, s.k, theirs) // 6: nobody waits for 3 to 5
	other.Close()
	launch(s.c, s.k, s.stream(0)) // 7: after the process that has waited for all when it ended
	for _, c := range []struct {
		before, after uint32
		want          bool
	}{{1, 2, false}, {1, 3, false}, {1, 4, true}, {1, 5, true}, {4, 6, false}, {4, 7, true}, {5, 7, true}} {
		if got := s.log.before[c.after][c.before]; got != c.want {
			t.Errorf("launch %d before launch %d: %v, want %v", c.before, c.after, got, c.want)
		}
	}
	third := s.c.dev.NewContext()
	s.must(s.c.Free(p))
	refused(InvalidValue, third, calls.IpcOpenMemory, 0, memory)
	s.c.Close()
	refused(InvalidResourceHandle, third, calls.IpcOpenEvent, 0, record)
}

// TestIPCOfDevices: cudaIpcMemLazyEnablePeerAccess gives the current device access to the device of the memory, and nothing else does. An event
// is one of the device that is current when it is opened.
func TestIPCOfDevices(t *testing.T) {
	s, _ := newGPUs(t, 3)
	other := s.c.dev.NewContext()
	s.must(s.c.SetDevice(2, 0))
	p, err := s.c.Malloc(64, devmem.DeviceAlloc)
	s.must(err)
	w, err := s.c.IPC(calls.IpcGetMemory, p, [3]uint64{})
	s.must(err)
	open := func(device int, flags uint64) {
		s.must(other.SetDevice(device, 0))
		_, err := other.IPC(calls.IpcOpenMemory, flags, [3]uint64(w))
		s.must(err)
	}
	open(1, 0)
	open(2, ipcLazyPeerAccess) // the memory's own device
	open(0, ipcLazyPeerAccess)
	for _, c := range []struct {
		device, peer int
		want         Code
	}{{1, 2, PeerAccessNotEnabled}, {0, 1, PeerAccessNotEnabled}, {0, 2, Success}} {
		s.must(other.SetDevice(c.device, 0))
		if err := other.PeerAccess(c.peer, false); code(err) != c.want {
			t.Errorf("device %d ends its access to device %d: %v, want %v", c.device, c.peer, err, c.want)
		}
	}

	ev, err := s.c.CreateEvent(eventInterprocess | EventDisableTiming) // of device 2
	s.must(err)
	w, err = s.c.IPC(calls.IpcGetEvent, uint64(ev), [3]uint64{})
	s.must(err)
	s.must(other.SetDevice(1, 0))
	opened, err := other.IPC(calls.IpcOpenEvent, 0, [3]uint64(w))
	s.must(err)
	for device, want := range []Code{InvalidResourceHandle, Success, InvalidResourceHandle} {
		s.must(other.SetDevice(device, 0))
		if err := other.RecordEvent(EventID(opened[0]), 0, 0); code(err) != want {
			t.Errorf("opened on device 1, recorded on device %d: %v, want %v", device, err, want)
		}
	}
	s.must(s.c.RecordEvent(ev, 0, 0))
}

// TestIPCClose: memory that a process has closed is no longer its own to use, by kernels and by calls, until it opens it again or its owner
// frees it and the address is given out again.
func TestIPCClose(t *testing.T) {
	const load = `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .u64 %a; .reg .u32 %r;
	ld.param.u64 %a, [p];
	ld.global.u32 %r, [%a];
	st.global.u32 [%a], %r;
	ret;
}
`
	for _, emulator := range []engine.Engine{engine.NewRef(), warp.New()} {
		var faults []engine.Fault
		d, err := NewDevice(Config{Engine: emulator, MemorySize: 1 << 26, OnFault: func(f engine.Fault) { faults = append(faults, f) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		owner := &script{T: t, c: d.NewContext()}
		p, err := owner.c.Malloc(64, devmem.DeviceAlloc)
		owner.must(err)
		h, err := owner.c.IPC(calls.IpcGetMemory, p, [3]uint64{})
		owner.must(err)
		launch := func(c *Context) Code {
			m, err := c.LoadModule(Image{"k.ptx", load})
			owner.must(err)
			k, err := m.Kernel("k")
			owner.must(err)
			one := event.Dim3{X: 1, Y: 1, Z: 1}
			owner.must(c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, binary.LittleEndian.AppendUint64(nil, p)))
			return code(c.Synchronize())
		}
		fill := func(c *Context) Code { return code(c.OrderFill(Copy{Dst: p, Width: 64, Height: 1, Depth: 1}, 0, 0)) }
		want := func(what string, got, want Code) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		open := func(c *Context) {
			_, err := c.IPC(calls.IpcOpenMemory, 0, [3]uint64(h))
			owner.must(err)
		}
		shut := func(c *Context) {
			_, err := c.IPC(calls.IpcCloseMemory, p, [3]uint64{})
			owner.must(err)
		}
		user := d.NewContext()
		open(user)
		open(user)
		shut(user)
		want("opened twice, closed once", launch(user), Success)
		shut(user)
		want("fill of closed memory", fill(user), InvalidValue)
		want("the owner", launch(owner.c), Success)
		open(user)
		want("opened again", launch(user), Success)
		want("fill of what is opened again", fill(user), Success)
		shut(user)
		if len(faults) != 0 {
			t.Errorf("faults %+v", faults)
		}
		want("closed", launch(user), IllegalAddress)
		if len(faults) == 0 || faults[0].Kind != engine.UseAfterFree || !strings.Contains(faults[0].Message, "cudaIpcCloseMemHandle") {
			t.Errorf("closed: faults %+v", faults)
		}
		if owner.must(owner.c.Free(p)); user.shut[p] {
			t.Error("what takes the place of memory that was freed is closed")
		}
	}
}
