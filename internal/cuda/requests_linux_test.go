package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// caller makes the requests of a process, from host thread 3.
type caller struct {
	*testing.T
	p *process
	e *player
	l *log
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	c := &caller{T: t, e: &player{}, l: &log{}}
	d, err := NewDevice(Config{Engine: c.e, Sink: c.l, Needs: event.NeedHost, MemorySize: 1 << 24,
		OnLaunch: func(r LaunchReport) { c.l.launches = append(c.l.launches, r) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	c.p = newProcess(context.Background(), 1)
	c.p.open(d)
	return c
}

// request makes a request. One that is refused has no results; a module that is broken has a handle all the same.
func (c *caller) request(op calls.Op, blob string, args ...uint64) reply {
	c.Helper()
	r := c.p.handle(context.Background(), &request{op: op, thread: 3, args: args, blob: []byte(blob)})
	if r.code != 0 && op != calls.LoadModule && slices.ContainsFunc(r.results, func(v uint64) bool { return v != 0 }) {
		c.Errorf("%s%v gives %v and %d", calls.Specs[op].Name, args, r.code, r.results)
	}
	return r
}

// want makes a request and compares the error and the results.
func (c *caller) want(code Code, results []uint64, op calls.Op, blob string, args ...uint64) {
	c.Helper()
	r := c.request(op, blob, args...)
	if r.bad != nil || r.code != code || code == 0 && !slices.Equal(r.results, results) {
		c.Errorf("%s%v gives %v, %d, %v; want %v, %d", calls.Specs[op].Name, args, r.code, r.results, r.bad, code, results)
	}
}

// TestModuleRequests loads modules, and asks for what they hold.
func TestModuleRequests(t *testing.T) {
	c := newCaller(t)
	c.want(0, []uint64{16}, calls.LoadModule, emptyKernel+"\x00\x00", 1)
	c.want(InvalidPtx, nil, calls.LoadModule, "nonsense", 1)
	c.want(InvalidKernelImage, nil, calls.LoadModule, "nonsense", 0)
	c.want(0, []uint64{64}, calls.LoadModule, addKernel, 1)
	if r := c.request(calls.GetKernel, "half", 16); r.code != 0 || !slices.Equal(r.results, []uint64{80}) ||
		!bytes.Equal(r.blob, []byte{0, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0}) {
		t.Errorf("kernel half: %+v", r)
	}
	c.want(InvalidDeviceFunction, nil, calls.GetKernel, "none", 16)
	c.want(InvalidResourceHandle, nil, calls.GetKernel, "half", 17)
	c.want(InvalidPtx, nil, calls.GetKernel, "lost\x01", 32)
	if n := len(c.l.launches); n != 2 || c.l.launches[0].Kernel != "" || c.l.launches[1].Kernel != "lost?" {
		t.Fatalf("launches %+v", c.l.launches)
	}
	var u *Unchecked
	if err := c.l.launches[0].Err; !errors.As(err, &u) || u.Kernel != "" || !strings.Contains(err.Error(), "module 2:1") {
		t.Errorf("a broken module: %v", err)
	}
	if err := c.l.launches[1].Err; !errors.As(err, &u) || u.Kernel != "lost?" || !strings.Contains(err.Error(), "module 2:1") {
		t.Errorf("a kernel of a broken module: %v", err)
	}
	r := c.request(calls.GetSymbol, "step", 64)
	if r.code != 0 || len(r.results) != 2 || r.results[1] != 4 {
		t.Errorf("symbol: %+v", r)
	} else if b, err := c.p.ctx.bytes(r.results[0], 4); err != nil || b[0] != 3 {
		t.Errorf("the variable holds %v, %v", b, err)
	}
	c.want(InvalidSymbol, nil, calls.GetSymbol, "none", 64)
	c.want(InvalidResourceHandle, nil, calls.GetSymbol, "step", 65)
	c.want(0, nil, calls.FuncSetAttribute, "", 80, FuncMaxDynamicShared, 1000)
	c.want(InvalidValue, nil, calls.FuncSetAttribute, "", 80, FuncCarveout, 101)
	c.want(InvalidDeviceFunction, nil, calls.FuncSetAttribute, "", 81, FuncCarveout, 1)
	c.want(0, []uint64{0, 0, 0, 1024, 32, 80, 80, 1000, 1<<64 - 1}, calls.FuncAttributes, "", 80)
	c.want(InvalidDeviceFunction, nil, calls.FuncAttributes, "", 64)
	c.want(0, []uint64{21}, calls.Occupancy, "", 80, 96, 0)
	c.want(0, []uint64{0}, calls.Occupancy, "", 80, 96, 1001)
	c.want(InvalidValue, nil, calls.Occupancy, "", 80, 0, 0)
	c.want(InvalidDeviceFunction, nil, calls.Occupancy, "", 64, 96, 0)
	c.want(0, nil, calls.UnloadModule, "", 16)
	c.want(InvalidResourceHandle, nil, calls.UnloadModule, "", 16)
	c.want(InvalidResourceHandle, nil, calls.Launch, strings.Repeat("x", 16), 80, 0, 1, 1, 1, 1, 1, 1, 0, 0)
	c.want(0, nil, calls.DeviceReset, "")
	c.want(InvalidResourceHandle, nil, calls.GetSymbol, "step", 64)
	c.want(InvalidDeviceFunction, nil, calls.FuncAttributes, "", 80)
	if r := c.request(calls.Hello, "", calls.Version, 0); r.bad == nil || r.bad.Error() != "request Hello out of place" {
		t.Errorf("a second greeting: %+v", r)
	}
}

// TestLaunchRequests launches with arguments that all differ, and with wrong ones.
func TestLaunchRequests(t *testing.T) {
	c := newCaller(t)
	c.want(0, []uint64{16}, calls.LoadModule, emptyKernel, 1)
	c.want(0, []uint64{32}, calls.GetKernel, "half", 16)
	params := strings.Repeat("x", 16)
	c.want(0, []uint64{16}, calls.StreamCreate, "", 1, 0)
	c.want(0, nil, calls.Launch, params, 32, 16, 2, 3, 4, 5, 6, 7, 89, 1)
	l := c.e.last
	if l.Grid != (event.Dim3{X: 2, Y: 3, Z: 4}) || l.Block != (event.Dim3{X: 5, Y: 6, Z: 7}) || l.DynamicShared != 89 || !l.Cooperative ||
		l.Agent != c.p.ctx.streams[16].agent || string(l.Params) != params {
		t.Errorf("the engine gets %+v", l)
	}
	c.want(0, nil, calls.Launch, params, 32, uint64(StreamPerThread), 1, 1, 1, 1, 1, 1, 0, 2)
	if l = c.e.last; l.Cooperative || l.Agent != c.p.ctx.gpu.perThread[3].agent {
		t.Errorf("the engine gets %+v", l)
	}
	c.want(InvalidDeviceFunction, nil, calls.Launch, params, 16, 0, 1, 1, 1, 1, 1, 1, 0, 0)
	c.want(InvalidValue, nil, calls.Launch, params[1:], 32, 0, 1, 1, 1, 1, 1, 1, 0, 0)
	c.want(InvalidValue, nil, calls.Launch, params+"x", 32, 0, 1, 1, 1, 1, 1, 1, 0, 0)
	c.want(InvalidValue, nil, calls.Launch, params, 32, 0, 1, 1, 1, 1, 1, 1, 1<<64-1, 0)
	c.want(InvalidResourceHandle, nil, calls.Launch, params, 32, 5, 1, 1, 1, 1, 1, 1, 0, 0)
	for i := 2; i < 8; i++ {
		args := []uint64{32, 0, 1, 1, 1, 1, 1, 1, 0, 0}
		args[i] += 1 << 32
		c.want(InvalidConfiguration, nil, calls.Launch, params, args...)
	}
	for _, configured := range []uint64{0, 2} {
		c.want(InvalidConfiguration, nil, calls.Launch, params, 32, 0, 1, 1, 1, 1025, 1, 1, 0, configured)
		if e := c.p.failing[3]; e == nil || e.configured != (configured != 0) || e.Launch == nil || e.Launch.Block.X != 1025 {
			t.Errorf("flags %d: the launch fails with %+v", configured, e)
		}
	}
}

// TestMemoryRequests allocates and frees memory of each kind.
func TestMemoryRequests(t *testing.T) {
	c := newCaller(t)
	malloc := func(size, kind uint64) uint64 {
		t.Helper()
		r := c.request(calls.Malloc, "", size, kind)
		if r.code != 0 || len(r.results) != 1 {
			t.Fatalf("malloc: %+v", r)
		}
		return r.results[0]
	}
	free := func() uint64 { return c.request(calls.MemInfo, "").results[0] }
	c.want(0, []uint64{8 << 20, 8 << 20}, calls.MemInfo, "")
	device, managed, pinned := malloc(1000, 0), malloc(2000, 1|1<<8), malloc(3000, 2|0x123405<<8)
	if n := free(); n > 8<<20-1000 || n < 8<<20-2000 {
		t.Errorf("%d bytes are free", n)
	}
	c.want(0, []uint64{2, device, 1000, 0, 0}, calls.Pointer, "", device+999)
	c.want(0, []uint64{3, managed, 2000, 1, 0}, calls.Pointer, "", managed)
	c.want(0, []uint64{1, pinned, 3000, 0x123405, 0}, calls.Pointer, "", pinned+5)
	c.want(0, []uint64{0, 0, 0, 0, 0}, calls.Pointer, "", 12345)
	c.want(InvalidValue, nil, calls.Malloc, "", 1000, 3)
	c.want(InvalidValue, nil, calls.Malloc, "", 0, 1)
	c.want(0, []uint64{0}, calls.Malloc, "", 0, 0)
	c.want(MemoryAllocation, nil, calls.Malloc, "", 1<<40, 0)
	c.want(InvalidValue, nil, calls.Free, "", device, calls.KindPinned)
	c.want(InvalidValue, nil, calls.Free, "", pinned, calls.KindAny)
	c.want(0, nil, calls.Free, "", device, calls.KindAny)
	c.want(0, nil, calls.Free, "", managed, calls.KindAny)
	c.want(0, nil, calls.Free, "", pinned, calls.KindPinned)
	c.want(0, []uint64{0, 0, 0, 0, 0}, calls.Pointer, "", device)
	if n := free(); n != 8<<20 {
		t.Errorf("%d bytes are free", n)
	}
	c.want(InvalidResourceHandle, nil, calls.MallocAsync, "", 1000, 16, 0)
	async := c.request(calls.MallocAsync, "", 1000, 2, 0).results[0]
	if last := c.l.hosts[len(c.l.hosts)-1]; last.Agent != c.p.ctx.gpu.perThread[3].agent || last.Size != 1000 || last.Addr != async {
		t.Errorf("cudaMallocAsync is told as %+v", last)
	}
	c.want(InvalidResourceHandle, nil, calls.FreeAsync, "", async, 16)
	c.want(0, nil, calls.FreeAsync, "", async, 2)
	if last := c.l.hosts[len(c.l.hosts)-1]; last.Agent != c.p.ctx.gpu.perThread[3].agent || last.Kind != event.HostFree {
		t.Errorf("cudaFreeAsync is told as %+v", last)
	}
	c.want(0, []uint64{1 << 24}, calls.HostRegister, "", 1<<30, 8192)
	c.want(0, []uint64{1<<24 + 8192}, calls.HostRegister, "", 1<<30+8192, 4096)
	c.want(0, []uint64{1, 1 << 30, 8192, 0, 0}, calls.Pointer, "", 1<<30+8191)
	c.want(HostMemoryAlreadyRegistered, nil, calls.HostRegister, "", 1<<30+4096, 4096)
	c.want(0, []uint64{1 << 30, 8192}, calls.HostUnregister, "", 1<<30+8191)
	c.want(HostMemoryNotRegistered, nil, calls.HostUnregister, "", 1<<30)
}

// TestCopyRequests copies and fills boxes whose numbers all differ, and compares the reported rows.
func TestCopyRequests(t *testing.T) {
	c := newCaller(t)
	dst, src := c.request(calls.Malloc, "", 1<<16, 0).results[0], c.request(calls.Malloc, "", 1<<16, 1).results[0]
	rows := func(kind event.HostKind) (list []string) {
		for _, o := range c.l.hosts {
			if o.Kind == kind && o.Agent == c.p.ctx.gpu.perThread[3].agent {
				at := o.Addr - dst
				if kind == event.HostRead {
					at = o.Addr - src
				}
				list = append(list, fmt.Sprintf("%d+%d %s", at, o.Size, o.Name))
			}
		}
		c.l.hosts = nil
		return list
	}
	check := func(kind event.HostKind, want ...string) {
		t.Helper()
		hosts := c.l.hosts
		if got := rows(kind); !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		c.l.hosts = hosts
	}
	const stream = " (per-thread default stream 1)"
	c.want(0, nil, calls.Copy, "", dst+1, 20, 100, src+2, 30, 200, 10, 2, 2, calls3D, 2)
	check(event.HostWrite, "1+10 cudaMemcpy3D"+stream, "21+10 cudaMemcpy3D"+stream, "101+10 cudaMemcpy3D"+stream, "121+10 cudaMemcpy3D"+stream)
	check(event.HostRead, "2+10 cudaMemcpy3D"+stream, "32+10 cudaMemcpy3D"+stream, "202+10 cudaMemcpy3D"+stream, "232+10 cudaMemcpy3D"+stream)
	c.l.hosts = nil
	c.want(0, nil, calls.Copy, "", dst, 10, 20, src, 10, 30, 10, 2, 3, calls3D|0x100, 2)
	check(event.HostWrite, "0+60 cudaMemcpy3DAsync"+stream)
	check(event.HostRead, "0+20 cudaMemcpy3DAsync"+stream, "30+20 cudaMemcpy3DAsync"+stream, "60+20 cudaMemcpy3DAsync"+stream)
	c.l.hosts = nil
	c.want(0, nil, calls.Fill, "", dst+3, 40, 300, 10, 2, 2, 0, 2)
	check(event.HostWrite, "3+10 cudaMemset"+stream, "43+10 cudaMemset"+stream, "303+10 cudaMemset"+stream, "343+10 cudaMemset"+stream)
	c.l.hosts = nil
	c.want(0, nil, calls.Fill, "", dst, 0, 7, 7, 1, 3, 1, 2)
	check(event.HostWrite, "0+7 cudaMemsetAsync"+stream, "7+7 cudaMemsetAsync"+stream, "14+7 cudaMemsetAsync"+stream)
	c.l.hosts = nil
	for _, zero := range []int{6, 7, 8} { // nothing to do, whatever the rest
		args := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		args[zero] = 0
		c.want(0, nil, calls.Copy, "", args...)
	}
	for _, zero := range []int{3, 4, 5} {
		args := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
		args[zero] = 0
		c.want(0, nil, calls.Fill, "", args...)
	}
	if len(c.l.hosts) != 0 {
		t.Errorf("nothing is told as %+v", c.l.hosts)
	}
	one := func(kind uint64) []uint64 { return []uint64{dst, 0, 0, 1 << 40, 0, 0, 4, 1, 1, kind, 0} }
	c.want(0, nil, calls.Copy, "", one(4)...)
	c.want(InvalidValue, nil, calls.Copy, "", one(4|0x400)...)
	c.want(0, nil, calls.Copy, "", one(4|0x200)...)
	c.want(InvalidMemcpyDirection, nil, calls.Copy, "", one(5)...)
	c.want(InvalidValue, nil, calls.Copy, "", one(3)...)
	c.want(InvalidResourceHandle, nil, calls.Copy, "", dst, 0, 0, src, 0, 0, 4, 1, 1, 4, 16)
	c.want(InvalidResourceHandle, nil, calls.Fill, "", dst, 0, 0, 4, 1, 1, 0, 16)
	c.want(InvalidValue, nil, calls.Copy, "", 1<<40, 0, 0, src, 0, 0, 4, 1, 1, 4|0x200, 0)
}

// calls3D is the direction of a copy within the device.
const calls3D = uint64(DeviceToDevice)

// TestStreamRequests makes streams and events, and what there is to do with them.
func TestStreamRequests(t *testing.T) {
	c := newCaller(t)
	c.want(InvalidValue, nil, calls.StreamCreate, "", 2, 0)
	c.want(InvalidValue, nil, calls.StreamCreate, "", 1<<33, 0)
	c.want(0, []uint64{16}, calls.StreamCreate, "", 1, 1<<64-3)
	c.want(0, []uint64{32}, calls.StreamCreate, "", 0, 0)
	number := func(id StreamID) uint64 { return uint64(c.p.ctx.streams[id].agent) }
	c.want(0, []uint64{1, 1<<64 - 3, number(16), 0}, calls.StreamInfo, "", 16)
	c.want(0, []uint64{0, 0, number(32), 0}, calls.StreamInfo, "", 32)
	if number(16) == number(32) {
		t.Error("two streams have one number")
	}
	for flags, want := range map[uint64]Code{0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 0, 7: 0, 8: 1, 10: 1, 16: 1, 1 << 31: 1, 1 << 32: 1, 1<<32 | 2: 1} {
		if r := c.request(calls.EventCreate, "", flags); r.code != want {
			t.Errorf("event flags %#x: %v", flags, r.code)
		}
	}
	event := func(flags uint64) uint64 { return c.request(calls.EventCreate, "", flags).results[0] }
	a, b, quick := event(0), event(1), event(2)
	c.want(InvalidResourceHandle, nil, calls.EventElapsed, "", a, b)
	c.want(0, nil, calls.EventRecord, "", a, 16, 0)
	c.want(InvalidResourceHandle, nil, calls.EventElapsed, "", a, b)
	c.want(InvalidResourceHandle, nil, calls.EventElapsed, "", b, a)
	c.want(0, nil, calls.EventRecord, "", b, 2, 0)
	c.want(0, nil, calls.EventRecord, "", quick, 2, 0)
	c.want(0, []uint64{1000}, calls.EventElapsed, "", a, b)
	c.want(0, []uint64{1<<64 - 1000}, calls.EventElapsed, "", b, a)
	c.want(InvalidResourceHandle, nil, calls.EventElapsed, "", a, quick)
	c.want(InvalidResourceHandle, nil, calls.EventElapsed, "", quick, a)
	c.want(InvalidResourceHandle, nil, calls.EventElapsed, "", a, 16)
	c.want(InvalidResourceHandle, nil, calls.EventElapsed, "", 16, a)
	c.e.stats = engine.Stats{Lanes: 500}
	c.want(0, []uint64{16}, calls.LoadModule, emptyKernel, 1)
	c.want(0, []uint64{32}, calls.GetKernel, "k", 16)
	c.want(0, nil, calls.Launch, "", 32, 0, 1, 1, 1, 1, 1, 1, 0, 0)
	c.want(0, nil, calls.EventRecord, "", b, 2, 0)
	c.want(0, []uint64{1000 + 1000 + 1000 + 500 + 1000}, calls.EventElapsed, "", a, b) // b, quick, the launch, its lanes, b
	for _, op := range []calls.Op{calls.StreamSynchronize, calls.StreamQuery, calls.StreamInfo} {
		c.want(InvalidResourceHandle, nil, op, "", 5)
	}
	c.want(InvalidResourceHandle, []uint64{0}, calls.HostFunc, "", 5, calls.FunctionPut)
	c.want(InvalidValue, nil, calls.HostFunc, "", 1000, calls.FunctionBegins)
	for _, op := range []calls.Op{calls.EventSynchronize, calls.EventQuery, calls.EventDestroy} {
		c.want(InvalidResourceHandle, nil, op, "", 5)
	}
	c.want(0, nil, calls.StreamSynchronize, "", 16)
	c.want(NotReady, nil, calls.StreamQuery, "", 2)
	c.want(0, nil, calls.StreamQuery, "", 2)
	c.want(0, []uint64{7}, calls.HostFunc, "", 2, calls.FunctionPut)
	c.want(0, nil, calls.HostFunc, "", 7, calls.FunctionBegins)
	c.want(0, nil, calls.HostFunc, "", 7, calls.FunctionEnds)
	if len(c.p.ctx.gpu.perThread) != 1 || c.p.ctx.gpu.perThread[3] == nil {
		t.Errorf("streams of threads: %v", c.p.ctx.gpu.perThread)
	}
	c.want(0, nil, calls.EventQuery, "", a)
	c.want(InvalidResourceHandle, nil, calls.EventRecord, "", 5, 16, 0)
	c.want(InvalidResourceHandle, nil, calls.EventRecord, "", a, 5, 0)
	c.want(0, nil, calls.StreamWaitEvent, "", 32, a)
	c.want(InvalidResourceHandle, nil, calls.StreamWaitEvent, "", 5, a)
	c.want(InvalidResourceHandle, nil, calls.StreamWaitEvent, "", 32, 5)
	c.want(0, nil, calls.EventDestroy, "", a)
	c.want(InvalidResourceHandle, nil, calls.EventSynchronize, "", a)
	c.want(0, nil, calls.StreamDestroy, "", 16)
	c.want(InvalidResourceHandle, nil, calls.StreamDestroy, "", 16)
	c.want(0, nil, calls.DeviceSynchronize, "")
	c.e.stats.Fault = engine.TrapHit
	c.want(0, nil, calls.Launch, "", 32, 0, 1, 1, 1, 1, 1, 1, 0, 0)
	for _, r := range []struct {
		op   calls.Op
		args []uint64
	}{
		{calls.DeviceSynchronize, nil}, {calls.StreamSynchronize, []uint64{0}}, {calls.StreamCreate, []uint64{0, 0}}, {calls.EventCreate, []uint64{0}},
		{calls.EventQuery, []uint64{b}}, {calls.EventElapsed, []uint64{b, b}}, {calls.EventDestroy, []uint64{b}}, {calls.EventDestroy, []uint64{b}},
		{calls.StreamDestroy, []uint64{32}}, {calls.StreamDestroy, []uint64{32}}, {calls.Malloc, []uint64{16, 0}}, {calls.MallocAsync, []uint64{16, 0, 0}},
		{calls.Free, []uint64{0, 0}}, {calls.HostRegister, []uint64{1 << 30, 4096}}, {calls.HostUnregister, []uint64{1 << 30}}, {calls.DeviceReset, nil},
		{calls.Copy, make([]uint64, 11)}, {calls.Fill, make([]uint64, 8)},
	} {
		c.want(LaunchFailure, nil, r.op, "", r.args...)
	}
}

// TestOtherRequests makes the requests that tell of the device and of the program.
func TestOtherRequests(t *testing.T) {
	c := newCaller(t)
	r := c.request(calls.Attributes, "", 0)
	if len(r.results) != 161 || r.results[1] != 1024 || r.results[5] != 1<<31-1 || r.results[160] != 0 {
		t.Errorf("attributes %v", r.results)
	}
	c.request(calls.Unsupported, "cudaB\n")
	c.request(calls.Unsupported, "cudaA")
	c.request(calls.Unsupported, "cudaA")
	if got := c.p.ctx.dev.Unsupported(); !slices.Equal(got, []string{"cudaA", "cudaB?"}) {
		t.Errorf("unsupported %q", got)
	}
	if at := c.p.mappedAt(); at != 0 {
		t.Errorf("mapped at %#x", at)
	}
	c.want(0, nil, calls.Mapped, "", 4096)
	c.want(0, nil, calls.Mapped, "", 8192)
	if at := c.p.mappedAt(); at != 4096 {
		t.Errorf("mapped at %#x", at)
	}
	c.p.ctx.printf.Write([]byte("text"))
	if r := c.request(calls.DeviceSynchronize, ""); r.waiting != 4 {
		t.Errorf("%d bytes wait", r.waiting)
	}
	if r := c.request(calls.Output, ""); string(r.blob) != "text" || r.waiting != 0 {
		t.Errorf("output %+v", r)
	}
}

// TestFailedCalls reports failed calls, and programs that query the errors.
func TestFailedCalls(t *testing.T) {
	c := newCaller(t)
	list := func() string {
		text := ""
		for _, f := range c.p.ctx.dev.Failures() {
			text += fmt.Sprintf("%s %s %d %q %d/%d %v %v; ", f.Kind, f.Call, f.Code, f.Msg, f.Unseen, f.Count, f.Configured, f.Launch != nil)
		}
		return text
	}
	check := func(want string) {
		t.Helper()
		if got := list(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		c.p.ctx.dev.failures, c.p.ctx.dev.failureAt = nil, nil
	}
	c.want(0, []uint64{1}, calls.Failed, "cudaMemcpy2D", 12)
	check(`error-ignored cudaMemcpy2D 12 "" 1/1 false false; `)
	c.want(0, []uint64{0}, calls.Looked, "", 12)
	c.want(InvalidValue, nil, calls.Free, "", 77, 0)
	c.want(0, []uint64{1}, calls.Failed, "cudaFree_v2_ptds", 1)
	check(`invalid-free cudaFree 1 "cudaFree of 0x4d, which no call of the API has allocated" 1/1 false false; `)
	c.want(0, []uint64{2}, calls.Failed, "cudaFree", 1) // its request is forgotten
	check(`error-ignored cudaFree 1 "" 1/1 false false; `)
	c.want(InvalidValue, nil, calls.Free, "", 77, 0)
	c.want(0, []uint64{3}, calls.Failed, "__cudaFree_v3_ptsz", 2) // of another error
	check("")
	c.want(0, []uint64{1}, calls.Looked, "", 1)
	c.want(0, []uint64{0}, calls.Looked, "", 0)
	c.want(0, []uint64{1}, calls.Failed, "cudaMemcpy\x00the source has 4 bytes\x01", 1)
	check(`call-out-of-bounds cudaMemcpy 1 "the source has 4 bytes?" 1/1 false false; `)
	c.want(0, []uint64{2}, calls.Failed, "cudaLaunchKernel", 98)
	check(`launch-refused cudaLaunchKernel 98 "the program has no kernel of that address" 1/1 false false; `)
	c.want(0, []uint64{3}, calls.Failed, "cudaLaunchCooperativeKernel", 9)
	check(`launch-refused cudaLaunchCooperativeKernel 9 "" 1/1 false false; `)
	c.want(0, []uint64{4}, calls.Failed, "cudaLaunchHostFunc", 9)
	c.want(0, []uint64{5}, calls.Failed, "cudaFuncSetKernel", 98)
	check(`error-ignored cudaLaunchHostFunc 9 "" 1/1 false false; error-ignored cudaFuncSetKernel 98 "" 1/1 false false; `)
	other := c.p.handle(context.Background(), &request{op: calls.Looked, thread: 4, args: []uint64{0}})
	if other.results[0] != 5 {
		t.Errorf("another thread has seen %d", 5-other.results[0])
	}
	c.want(0, []uint64{3}, calls.Looked, "", 9)
	c.want(0, []uint64{0}, calls.Looked, "", 0)
	for range 3 {
		c.want(0, []uint64{1}, calls.Failed, "cudaMemcpy2D", 12)
		c.want(0, []uint64{0}, calls.Looked, "", 0)
	}
	c.want(0, []uint64{1}, calls.Failed, "cudaMemcpy2D", 12)
	c.want(0, []uint64{2}, calls.Failed, "cudaMemcpy2D", 12)
	check(`error-ignored cudaMemcpy2D 12 "" 2/5 false false; `)

	c.want(0, []uint64{16}, calls.LoadModule, emptyKernel, 1)
	c.want(0, []uint64{32}, calls.GetKernel, "k", 16)
	refused := []uint64{32, 0, 1, 1, 1, 1025, 1, 1, 0, 2}
	const text = `"block (1025,1,1) is larger than (1024,1024,64)"`
	c.want(InvalidConfiguration, nil, calls.Launch, "", refused...)
	check("")
	c.want(0, nil, calls.DeviceSynchronize, "") // no call returned the error
	check(`launch-refused the launch 9 ` + text + ` 1/1 true true; `)
	c.want(InvalidConfiguration, nil, calls.Launch, "", refused...)
	c.want(0, []uint64{3}, calls.Failed, "cudaLaunchKernel", 9)
	c.want(0, nil, calls.DeviceSynchronize, "")
	check(`launch-refused cudaLaunchKernel 9 ` + text + ` 1/1 true true; `)
	c.want(InvalidConfiguration, nil, calls.Launch, "", refused...)
	c.want(InvalidConfiguration, nil, calls.Launch, "", refused...)
	c.want(0, nil, calls.Output, "")
	c.want(0, nil, calls.DeviceSynchronize, "")
	check(`launch-refused the launch 9 ` + text + ` 2/2 true true; `)
	c.p.ctx.sticky = fail(IllegalAddress, "lost")
	c.want(IllegalAddress, nil, calls.DeviceSynchronize, "")
	c.want(0, []uint64{4}, calls.Failed, "cudaMemcpy2D", 700)
	check(`error-ignored cudaMemcpy2D 700 "" 1/1 false false; `)
	c.p.ctx.sticky = nil
	c.want(InvalidDeviceFunction, nil, calls.Launch, "", 33, 0, 1, 1, 1, 1, 1, 1, 0, 0)
	c.want(0, []uint64{5}, calls.Failed, "cudaLaunchKernel", 98)
	check(`launch-refused cudaLaunchKernel 98 "no kernel 0x21" 1/1 false false; `)
}

// TestHostCalls checks what the host is said to have been in.
func TestHostCalls(t *testing.T) {
	want := map[calls.Op]string{
		calls.Launch: "a kernel launch", calls.Copy: "a memory copy", calls.Fill: "a memory fill", calls.HostFunc: "a host function in a stream",
		calls.Malloc: "cudaMalloc", calls.Free: "cudaFree", calls.DeviceSynchronize: "cudaDeviceSynchronize", calls.StreamWaitEvent: "cudaStreamWaitEvent",
	}
	for _, op := range []calls.Op{calls.LoadModule, calls.UnloadModule, calls.GetKernel, calls.GetSymbol, calls.FuncAttributes, calls.FuncSetAttribute, calls.Occupancy} {
		want[op] = "a look at a kernel or module"
	}
	for _, op := range []calls.Op{calls.Hello, calls.Mapped, calls.Output, calls.Unsupported, calls.Attributes, calls.NotChecked} {
		want[op] = ""
	}
	for op, text := range want {
		if got := hostCall(op); got != text {
			t.Errorf("%s: %q, want %q", calls.Specs[op].Name, got, text)
		}
	}
	for err, want := range map[error]Code{fail(Assert, ""): Assert, &Unchecked{Err: fail(Assert, "")}: NotSupported, context.Canceled: LaunchTimeout} {
		if got := codeOf(err); got != want {
			t.Errorf("%v is %v for a program, want %v", err, got, want)
		}
	}
}

// TestRequestBytes reads requests and writes replies, byte by byte.
func TestRequestBytes(t *testing.T) {
	le := binary.LittleEndian
	frames := encode(calls.Free, nil, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	le.PutUint32(frames[8:], 0x04030201)
	r, err := readRequest(bytes.NewReader(frames))
	if err != nil || r.op != calls.Free || r.thread != 0x04030201 || !slices.Equal(r.args, []uint64{1, 2}) || !slices.Equal(r.frames, []uint64{3, 4, 5, 6, 7, 8, 9, 10}) || r.blob != nil {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = readRequest(bytes.NewReader(encode(calls.GetSymbol, []byte("name"), 1<<63|5)))
	if err != nil || r.op != calls.GetSymbol || !slices.Equal(r.args, []uint64{1<<63 | 5}) || len(r.frames) != 0 || string(r.blob) != "name" {
		t.Errorf("%+v, %v", r, err)
	}
	many := encode(calls.Malloc, nil, 1, 2)
	le.PutUint32(many[4:], 1<<31)
	blob := encode(calls.GetSymbol, []byte("name"), 1)
	long := slices.Clone(blob)
	le.PutUint32(long[12:], 1<<30+1)
	last := encode(calls.NumOps, nil)
	for want, data := range map[string][]byte{
		fmt.Sprintf("unknown request %d", calls.NumOps):                      last,
		fmt.Sprintf("request Free with %d arguments, not 2", calls.Frames+3): encode(calls.Free, nil, make([]uint64, calls.Frames+3)...),
		"request Free with 1 arguments, not 2":                               encode(calls.Free, nil, 1),
		"request HostRegister with 3 arguments, not 2":                       encode(calls.HostRegister, nil, 1, 2, 3),
		"request Malloc with 2147483648 arguments, not 2":                    many,
		"request Malloc with 1 bytes of data":                                encode(calls.Malloc, []byte("x"), 1, 2),
		"request GetSymbol with 1073741825 bytes of data":                    long,
		"EOF":            nil,
		"unexpected EOF": frames[:40],
	} {
		if _, err := readRequest(bytes.NewReader(data)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := readRequest(bytes.NewReader(blob[:len(blob)-1])); gone(err) != nil || err == nil {
		t.Errorf("a blob that is cut short: %v", err)
	}
}

// TestRequestTexts checks what is said of requests that are refused.
func TestRequestTexts(t *testing.T) {
	c := newCaller(t)
	c.want(0, []uint64{16}, calls.LoadModule, emptyKernel, 1)
	c.want(0, []uint64{32}, calls.GetKernel, "half", 16)
	device, pinned := c.request(calls.Malloc, "", 1000, 0).results[0], c.request(calls.Malloc, "", 1000, 2).results[0]
	c.want(0, []uint64{16}, calls.StreamCreate, "", 0, 0)
	c.want(0, []uint64{32}, calls.EventCreate, "", 0)
	c.want(0, nil, calls.EventDestroy, "", 32)
	c.want(0, []uint64{1 << 24}, calls.HostRegister, "", 1<<30, 4096)
	sixteen := strings.Repeat("x", 16)
	from := func(kind uint64) []uint64 { return []uint64{device, 0, 0, 4096, 0, 0, 4, 1, 1, kind, 0} }
	to := func(kind uint64) []uint64 { return []uint64{4096, 0, 0, device, 0, 0, 4, 1, 1, kind, 0} }
	for _, r := range []struct {
		want string // kind and text; "" when it is done
		op   calls.Op
		blob string
		args []uint64
	}{
		{": memory kind 259", calls.Malloc, "", []uint64{1000, 3 | 1<<8}},
		{": cudaMallocManaged of 0 bytes", calls.Malloc, "", []uint64{0, 1}},
		{": no module 0x18", calls.UnloadModule, "", []uint64{24}},
		{": no kernel 0x18", calls.FuncAttributes, "", []uint64{24}},
		{": 15 bytes of parameters for half, which takes 16", calls.Launch, sixteen[1:], []uint64{32, 0, 1, 1, 1, 1, 1, 1, 0, 0}},
		{": launch of half with a dimension of 4294967296", calls.Launch, sixteen, []uint64{32, 0, 1, 1, 1, 1, 1 << 32, 1, 0, 0}},
		{"launch-refused: block (1,1,4294967295) is larger than (1024,1024,64)", calls.Launch, sixteen, []uint64{32, 0, 1, 1, 1, 1, 1, 1<<32 - 1, 0, 0}},
		{"invalid-handle: no call has made the stream", calls.Launch, sixteen, []uint64{32, 24, 1, 1, 1, 1, 1, 1, 0, 0}},
		{"launch-refused: 1000000 bytes of dynamic shared memory, and the kernel may have 49152 (cudaFuncSetAttribute raises that to at most 166912)",
			calls.Launch, sixteen, []uint64{32, 0, 1, 1, 1, 1, 1, 1, 1000000, 0}},
		{": 166913 bytes of dynamic shared memory for half; the device has 166912 beside its static 0", calls.FuncSetAttribute, "", []uint64{32, 8, 166913}},
		{": carveout -2", calls.FuncSetAttribute, "", []uint64{32, 9, 1<<64 - 2}},
		{": cluster attribute 10 of half, which is only read", calls.FuncSetAttribute, "", []uint64{32, 10, 1}},
		{": function attribute 7", calls.FuncSetAttribute, "", []uint64{32, 7, 1}},
		{": occupancy of blocks of no threads", calls.Occupancy, "", []uint64{32, 0, 1}},
		{": stream flags 0x200000001", calls.StreamCreate, "", []uint64{1<<33 | 1, 0}},
		{": event flags 0x9", calls.EventCreate, "", []uint64{9}},
		{": the stream is 0", calls.StreamDestroy, "", []uint64{0}},
		{"invalid-handle: no call has made the event", calls.EventElapsed, "", []uint64{24, 32}},
		{"invalid-handle: the event was destroyed before", calls.EventElapsed, "", []uint64{32, 24}},
		{": the event is 0", calls.EventElapsed, "", []uint64{0, 24}},
		{"invalid-handle: no call has made the event", calls.EventRecord, "", []uint64{48, 16, 0}},
		{"invalid-handle: the event was destroyed before", calls.StreamWaitEvent, "", []uint64{16, 32}},
		{": cudaHostRegister of 4096 bytes at 0x40000001", calls.HostRegister, "", []uint64{1<<30 + 1, 4096}},
		{": cudaHostRegister (8192 bytes): map 0x3ffff000: the range is registered already (cudaHostRegister (4096 bytes))", calls.HostRegister, "", []uint64{1<<30 - 4096, 8192}},
		{": no room to register 17179869184 bytes", calls.HostRegister, "", []uint64{1 << 31, 16 << 30}},
		{": 0x3fffffff is not registered", calls.HostUnregister, "", []uint64{1<<30 - 1}},
		{"invalid-free: cudaFree of memory of cudaHostAlloc #2 (1000 bytes), which cudaFreeHost frees", calls.Free, "", []uint64{pinned, 0}},
		{"", calls.Copy, "", from(1)},
		{"wrong-direction: the direction is cudaMemcpyDeviceToHost, and the destination is device memory", calls.Copy, "", from(2)},
		{"wrong-direction: the direction is cudaMemcpyDeviceToDevice, and the source is host memory", calls.Copy, "", from(3)},
		{"", calls.Copy, "", from(4 | 0x200)},
		{"invalid-pointer: the source is 0x1000, where neither the device nor the program has memory", calls.Copy, "", from(1 | 0x400)},
		{"wrong-direction: the direction is cudaMemcpyHostToDevice, and the destination is host memory", calls.Copy, "", to(1)},
		{"", calls.Copy, "", to(2)},
		{"", calls.Copy, "", to(4)},
		{"", calls.Copy, "", to(4 | 0x400)},
		{"invalid-pointer: the destination is 0x1000, where neither the device nor the program has memory", calls.Copy, "", to(2 | 0x200)},
		{"wrong-direction: copy direction 5", calls.Copy, "", to(5)},
		{": pitch 3, slice pitch 0 for rows of 4 bytes, 2 rows", calls.Copy, "", []uint64{device, 4, 0, device, 3, 0, 4, 2, 1, 3, 0}},
		{"call-out-of-bounds: the source, 7 bytes from byte 994 on, leaves cudaMalloc #1 (1000 bytes)", calls.Copy, "", []uint64{device, 0, 0, device + 994, 0, 0, 7, 1, 1, 3, 0}},
		{"call-out-of-bounds: the destination, 1001 bytes from byte 0 on, leaves cudaMalloc #1 (1000 bytes)", calls.Fill, "", []uint64{device, 0, 0, 1001, 1, 1, 0, 0}},
		{"invalid-pointer: the destination is 0x1000, which is not in device memory", calls.Fill, "", []uint64{4096, 0, 0, 1, 1, 1, 0, 0}},
	} {
		rep := c.request(r.op, r.blob, r.args...)
		got := ""
		if e := c.p.failing[3]; e != nil {
			got = fmt.Sprintf("%s: %s", e.Kind, e.Msg)
		}
		if got != r.want || (rep.code == 0) != (r.want == "") {
			t.Errorf("%s%v gives %v, %q; want %q", calls.Specs[r.op].Name, r.args, rep.code, got, r.want)
		}
	}
}
