package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// hostCall is the API call of a request, for a sentence that says where the host was; "" for requests that are not
// calls of the program.
func hostCall(op calls.Op) string {
	switch op {
	case calls.Hello, calls.Mapped, calls.Output, calls.Unsupported, calls.Attributes, calls.NotChecked, calls.Argument,
		calls.Posting, calls.Posted, calls.Lease, calls.HostAccess, calls.Thread:
		return ""
	case calls.LoadModule, calls.UnloadModule, calls.GetKernel, calls.GetSymbol, calls.FuncAttributes, calls.FuncSetAttribute, calls.Occupancy, calls.ClusterOccupancy:
		return "a look at a kernel or module"
	case calls.Launch:
		return "a kernel launch"
	case calls.Copy:
		return "a memory copy"
	case calls.Fill:
		return "a memory fill"
	case calls.MallocLeased:
		return "cudaMallocAsync"
	case calls.Operator:
		return "an operator computed on the host"
	case calls.TensorMap:
		return "cuTensorMapEncodeTiled"
	case calls.Texture:
		return "cudaCreateTextureObject"
	case calls.Pool:
		return "a call about a memory pool"
	case calls.Findings:
		return "a look at the findings"
	case calls.PeerAccess:
		return "cudaDeviceEnablePeerAccess"
	case calls.AddressReserve, calls.AddressFree, calls.MemCreate, calls.MemRelease, calls.MemMap, calls.MemUnmap, calls.MemSetAccess:
		return "cu" + strings.Replace(calls.Specs[op].Name, "Address", "MemAddress", 1)
	case calls.StreamValue:
		return "cuStreamWriteValue or cuStreamWaitValue"
	case calls.MemMapped:
		return "a look at memory"
	case calls.Condition:
		return "a conditional node of a graph"
	case calls.HostFunc:
		return "a host function in a stream"
	}
	return "cuda" + calls.Specs[op].Name
}

// handler executes one request. It returns results, a blob, and an error of the API.
type handler func(p *process, ctx context.Context, r *request) ([]uint64, []byte, error)

// handlers execute the requests. The session handles Hello and NotChecked.
var handlers = [calls.NumOps]handler{
	calls.Mapped:              (*process).mappedAlias,
	calls.LoadModule:          (*process).loadModule,
	calls.UnloadModule:        (*process).unloadModule,
	calls.GetKernel:           (*process).getKernel,
	calls.GetSymbol:           (*process).getSymbol,
	calls.Launch:              (*process).launch,
	calls.Malloc:              (*process).malloc,
	calls.Free:                (*process).free,
	calls.MallocAsync:         (*process).mallocAsync,
	calls.FreeAsync:           (*process).freeAsync,
	calls.HostRegister:        (*process).hostRegister,
	calls.HostUnregister:      (*process).hostUnregister,
	calls.Copy:                (*process).copy,
	calls.Fill:                (*process).fill,
	calls.Pointer:             (*process).pointer,
	calls.StreamCreate:        (*process).streamCreate,
	calls.StreamDestroy:       (*process).streamDestroy,
	calls.StreamSynchronize:   (*process).streamSynchronize,
	calls.StreamQuery:         (*process).streamQuery,
	calls.StreamWaitEvent:     (*process).streamWaitEvent,
	calls.StreamInfo:          (*process).streamInfo,
	calls.EventCreate:         (*process).eventCreate,
	calls.EventDestroy:        (*process).eventDestroy,
	calls.EventRecord:         (*process).eventRecord,
	calls.EventSynchronize:    (*process).eventSynchronize,
	calls.EventQuery:          (*process).eventQuery,
	calls.EventElapsed:        (*process).eventElapsed,
	calls.HostFunc:            (*process).hostFunc,
	calls.DeviceSynchronize:   (*process).deviceSynchronize,
	calls.DeviceReset:         (*process).deviceReset,
	calls.FuncSetAttribute:    (*process).funcSetAttribute,
	calls.FuncAttributes:      (*process).funcAttributes,
	calls.MemInfo:             (*process).memInfo,
	calls.Occupancy:           (*process).occupancy,
	calls.ClusterOccupancy:    (*process).clusterOccupancy,
	calls.Output:              (*process).output,
	calls.Unsupported:         (*process).unsupported,
	calls.Attributes:          (*process).attributes,
	calls.SetLimit:            (*process).setLimit,
	calls.Failed:              (*process).callFails,
	calls.Looked:              (*process).looked,
	calls.Operator:            (*process).operator,
	calls.Pool:                (*process).pool,
	calls.TensorMap:           (*process).tensorMap,
	calls.Texture:             (*process).texture,
	calls.Argument:            (*process).argument,
	calls.Findings:            (*process).findings,
	calls.Posting:             (*process).posting,
	calls.Posted:              func(*process, context.Context, *request) ([]uint64, []byte, error) { return nil, nil, nil },
	calls.Lease:               (*process).lease,
	calls.MallocLeased:        (*process).mallocLeased,
	calls.Source:              (*process).source,
	calls.HostAccess:          (*process).hostAccess,
	calls.Thread:              (*process).thread,
	calls.SetDevice:           (*process).setDevice,
	calls.GetDevice:           (*process).getDevice,
	calls.DeviceCanAccessPeer: (*process).canAccessPeer,
	calls.PeerAccess:          (*process).peerAccess,
	calls.AddressReserve:      (*process).addressReserve,
	calls.AddressFree:         (*process).addressFree,
	calls.MemCreate:           (*process).memCreate,
	calls.MemRelease:          (*process).memRelease,
	calls.MemMap:              (*process).memMap,
	calls.MemUnmap:            (*process).memUnmap,
	calls.MemSetAccess:        (*process).memSetAccess,
	calls.MemMapped:           (*process).memMapped,
	calls.StreamValue:         (*process).streamValue,
	calls.Ipc:                 (*process).ipc,
	calls.Condition:           (*process).condition,
}

// handle executes one request. The shape of r was checked when it was read.
func (p *process) handle(ctx context.Context, r *request) reply {
	h := handlers[r.op]
	if h == nil {
		return reply{bad: fmt.Errorf("request %s out of place", calls.Specs[r.op].Name)}
	}
	p.handling.Lock() // several libraries of a process may make requests at once
	defer p.handling.Unlock()
	if r.op != calls.Thread {
		p.ctx.speak(r.thread)
	}
	results, blob, err := h(p, ctx, r)
	if r.op != calls.Failed && r.op != calls.Output {
		p.failed(r, err)
	}
	rep := reply{results: results, blob: blob, waiting: p.waiting(), unawaited: p.ctx.unawaited(), err: err}
	if err != nil {
		rep.code = codeOf(err)
	}
	return rep
}

// codeOf is the error code that a program receives for an error.
func codeOf(err error) Code {
	var e *Error
	var u *Unchecked
	switch {
	case errors.As(err, &u):
		return NotSupported
	case errors.As(err, &e):
		return e.Code
	}
	return LaunchTimeout
}

func (p *process) newHandle() uint64 {
	p.next += 16
	return p.next
}

func (p *process) mappedAlias(_ context.Context, r *request) ([]uint64, []byte, error) {
	p.once.Do(func() {
		p.alias = r.args[0]
		close(p.mapped)
	})
	return nil, nil, nil
}

func (p *process) loadModule(_ context.Context, r *request) ([]uint64, []byte, error) {
	var m *Module
	var err error
	if r.args[0] == 0 {
		m, err = p.ctx.LoadFatbins(r.blob)
	} else {
		name := fmt.Sprintf("module %d", len(p.modules)+1)
		texts := strings.Split(strings.TrimRight(string(r.blob), "\x00"), "\x00")
		images := make([]Image, len(texts))
		for i, text := range texts {
			if images[i] = (Image{Name: name, Text: text}); i > 0 {
				images[i].Name = fmt.Sprintf("%s, part %d", name, i+1)
			}
		}
		m, err = p.ctx.LoadModule(images...)
	}
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	h := p.newHandle()
	if err != nil {
		p.broken[h] = err
		var errs ptx.ErrorList
		if r.args[0] != 0 && errors.As(err, &errs) {
			// Few programs print the reason. For kernels that the runtime registers, each one is reported when it is
			// launched.
			p.ctx.dev.report(LaunchReport{Err: &Unchecked{Err: err}})
		}
	} else {
		p.modules[h] = m
	}
	return []uint64{h}, nil, err
}

// brokenKernel reports that a kernel whose module could not be loaded was not checked.
func (p *process) brokenKernel(module uint64, name string) error {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	err := p.broken[module]
	if err != nil {
		name = printable(name)
		p.ctx.dev.report(LaunchReport{Kernel: name, Err: &Unchecked{Kernel: name, Err: err}})
	}
	return err
}

// module finds a module by its handle.
func (p *process) module(h uint64) (*Module, error) {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	if m := p.modules[h]; m != nil {
		return m, nil
	}
	return nil, fail(InvalidResourceHandle, "no module %#x", h)
}

func (p *process) kernel(h uint64) (*Kernel, error) {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	if k := p.kernels[h]; k != nil {
		return k, nil
	}
	return nil, fail(InvalidDeviceFunction, "no kernel %#x", h)
}

func (p *process) unloadModule(_ context.Context, r *request) ([]uint64, []byte, error) {
	m, err := p.module(r.args[0])
	if err != nil {
		return nil, nil, err
	}
	err = m.Unload()
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	delete(p.modules, r.args[0])
	return nil, nil, err
}

func (p *process) getKernel(_ context.Context, r *request) ([]uint64, []byte, error) {
	if err := p.brokenKernel(r.args[0], string(r.blob)); err != nil {
		return nil, nil, err
	}
	m, err := p.module(r.args[0])
	if err != nil {
		return nil, nil, err
	}
	k, err := m.Kernel(string(r.blob))
	if err != nil {
		return nil, nil, err
	}
	var layout []byte
	for _, q := range k.Params() {
		layout = binary.LittleEndian.AppendUint32(layout, uint32(q.Off))
		layout = binary.LittleEndian.AppendUint32(layout, uint32(q.Size))
	}
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	h := p.newHandle()
	p.kernels[h] = k
	return []uint64{h}, layout, nil
}

func (p *process) getSymbol(_ context.Context, r *request) ([]uint64, []byte, error) {
	m, err := p.module(r.args[0])
	if err != nil {
		return nil, nil, err
	}
	addr, size, err := m.Symbol(string(r.blob))
	if a, ok := p.ctx.Find(addr); ok && err == nil {
		p.ctx.touchable(a.Kind)
	}
	return []uint64{addr, size}, nil, err
}

func (p *process) launch(ctx context.Context, r *request) ([]uint64, []byte, error) {
	a := r.args
	k, err := p.kernel(a[0])
	if err != nil {
		return nil, nil, err
	}
	if len(r.blob) != k.ParamSize() {
		return nil, nil, fail(InvalidValue, "%d bytes of parameters for %s, which takes %d", len(r.blob), k.Name(), k.ParamSize())
	}
	for _, v := range a[2:8] {
		if v > 1<<32-1 {
			return nil, nil, fail(InvalidConfiguration, "launch of %s with a dimension of %d", k.Name(), v)
		}
	}
	cfg := LaunchConfig{
		Stream: StreamID(a[1]), Thread: r.thread, Shared: int(min(a[8], math.MaxInt)), Cooperative: a[9]&calls.LaunchCooperative != 0, Programmatic: a[9]&calls.LaunchProgrammatic != 0, Caller: p.caller(r),
		Arguments: p.takeArguments(r.thread),
		Grid:      event.Dim3{X: uint32(a[2]), Y: uint32(a[3]), Z: uint32(a[4])},
		Block:     event.Dim3{X: uint32(a[5]), Y: uint32(a[6]), Z: uint32(a[7])},
		Cluster:   clusterOf(a[9]),
	}
	err = p.ctx.Launch(ctx, k, cfg, r.blob)
	var e *Error
	if errors.As(err, &e) && e.Launch != nil {
		e.configured = a[9]&calls.LaunchConfigured != 0
	}
	return nil, nil, err
}

func (p *process) malloc(_ context.Context, r *request) ([]uint64, []byte, error) {
	kinds := map[uint64]devmem.AllocKind{calls.KindDevice: devmem.DeviceAlloc, calls.KindManaged: devmem.ManagedAlloc, calls.KindPinned: devmem.PinnedAlloc,
		calls.KindArray: devmem.ArrayAlloc}
	kind, ok := kinds[r.args[1]&0xff]
	if !ok {
		return nil, nil, fail(InvalidValue, "memory kind %d", r.args[1])
	}
	addr, err := p.ctx.malloc(r.args[0], kind, uint32(r.args[1]>>8))
	if r.args[1]&calls.OfGraph == 0 {
		p.allocatedBy(addr, r)
	}
	return []uint64{addr}, nil, err
}

func (p *process) free(_ context.Context, r *request) ([]uint64, []byte, error) {
	place := p.place(r)
	switch r.args[1] {
	case calls.KindPinned:
		return nil, nil, p.ctx.free("cudaFreeHost", r.args[0], place, devmem.PinnedAlloc)
	case calls.KindArray:
		return nil, nil, p.ctx.free("cudaFreeArray", r.args[0], place, devmem.ArrayAlloc)
	case calls.KindObject:
		return nil, nil, p.ctx.destroyTexture(r.args[0])
	}
	return nil, nil, p.ctx.free("cudaFree", r.args[0], place, devmem.DeviceAlloc, devmem.ManagedAlloc)
}

func (p *process) mallocAsync(_ context.Context, r *request) ([]uint64, []byte, error) {
	addr, err := p.ctx.mallocAsync(r.args[0], StreamID(r.args[1]), r.thread, r.args[2], leased{}, p.place(r))
	p.allocatedBy(addr, r)
	return []uint64{addr}, nil, err
}

func (p *process) lease(_ context.Context, r *request) ([]uint64, []byte, error) {
	begin, end, err := p.ctx.lease(r.args[0])
	return []uint64{begin, end}, nil, err
}

func (p *process) mallocLeased(_ context.Context, r *request) ([]uint64, []byte, error) {
	at := leased{addr: r.args[2]}
	if at.addr == 0 {
		return nil, nil, fail(InvalidValue, "an allocation at address 0")
	}
	if offset := r.args[3]; offset != ^uint64(0) {
		if at.bytes = p.mail.pool(offset, r.args[0]); at.bytes == nil {
			return nil, nil, fail(InvalidValue, "%d bytes at %#x in no pool", r.args[0], offset)
		}
	}
	addr, err := p.ctx.mallocAsync(r.args[0], StreamID(r.args[1]), r.thread, 0, at, p.place(r))
	p.allocatedBy(addr, r)
	return nil, nil, err
}

func (p *process) freeAsync(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.freeAsync(r.args[0], StreamID(r.args[1]), r.thread, p.place(r))
}

func (p *process) hostRegister(_ context.Context, r *request) ([]uint64, []byte, error) {
	offset, err := p.ctx.Register(r.args[0], r.args[1])
	return []uint64{offset}, nil, err
}

func (p *process) hostUnregister(_ context.Context, r *request) ([]uint64, []byte, error) {
	addr, size, err := p.ctx.Unregister(r.args[0])
	return []uint64{addr, size}, nil, err
}

func (p *process) copy(_ context.Context, r *request) ([]uint64, []byte, error) {
	a := r.args
	k := Copy{Dst: a[0], DstPitch: a[1], DstSlice: a[2], Src: a[3], SrcPitch: a[4], SrcSlice: a[5],
		Width: a[6], Height: a[7], Depth: a[8], Kind: CopyKind(a[9]), Async: a[9]&0x100 != 0,
		NoDst: a[9]&0x200 != 0, NoSrc: a[9]&0x400 != 0, Place: p.place(r)}
	switch a[9] >> 8 & (calls.CopyDuringCall | calls.CopyAnyTime) {
	case calls.CopyDuringCall:
		k.Source = DuringCall
	case calls.CopyAnyTime:
		k.Source = AnyTime
	}
	return nil, nil, p.ctx.OrderCopy(k, StreamID(a[10]), r.thread)
}

func (p *process) fill(_ context.Context, r *request) ([]uint64, []byte, error) {
	a := r.args
	k := Copy{Dst: a[0], DstPitch: a[1], DstSlice: a[2], Width: a[3], Height: a[4], Depth: a[5], Async: a[6] != 0, Place: p.place(r)}
	return nil, nil, p.ctx.OrderFill(k, StreamID(a[7]), r.thread)
}

func (p *process) pointer(_ context.Context, r *request) ([]uint64, []byte, error) {
	a, ok := p.ctx.Find(r.args[0])
	if !ok {
		return []uint64{0, 0, 0, 0, 0}, nil, nil
	}
	types := map[devmem.AllocKind]uint64{devmem.PinnedAlloc: 1, devmem.ManagedAlloc: 3}
	t, host := types[a.Kind]
	if !host {
		t = 2
	}
	return []uint64{t, a.Addr, a.Size, uint64(p.ctx.hostFlags(a.Addr)), uint64(a.Device)}, nil, nil
}

func (p *process) streamCreate(_ context.Context, r *request) ([]uint64, []byte, error) {
	id, err := p.ctx.CreateStream(r.args[0], int32(r.args[1]))
	return []uint64{uint64(id)}, nil, err
}

func (p *process) streamDestroy(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.DestroyStream(StreamID(r.args[0]))
}

func (p *process) streamSynchronize(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.SynchronizeStream(StreamID(r.args[0]), r.thread)
}

func (p *process) streamQuery(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.QueryStream(StreamID(r.args[0]), r.thread)
}

func (p *process) streamWaitEvent(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.WaitEvent(StreamID(r.args[0]), r.thread, EventID(r.args[1]))
}

func (p *process) streamInfo(_ context.Context, r *request) ([]uint64, []byte, error) {
	flags, priority, id, device, err := p.ctx.StreamInfo(StreamID(r.args[0]), r.thread)
	return []uint64{uint64(flags), uint64(int64(priority)), id, uint64(device)}, nil, err
}

func (p *process) eventCreate(_ context.Context, r *request) ([]uint64, []byte, error) {
	id, err := p.ctx.CreateEvent(r.args[0])
	return []uint64{uint64(id)}, nil, err
}

func (p *process) eventDestroy(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.DestroyEvent(EventID(r.args[0]))
}

func (p *process) eventRecord(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.recordEvent(EventID(r.args[0]), StreamID(r.args[1]), r.thread, r.args[2])
}

func (p *process) eventSynchronize(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.SynchronizeEvent(EventID(r.args[0]))
}

func (p *process) eventQuery(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.QueryEvent(EventID(r.args[0]))
}

func (p *process) eventElapsed(_ context.Context, r *request) ([]uint64, []byte, error) {
	ns, err := p.ctx.Elapsed(EventID(r.args[0]), EventID(r.args[1]))
	return []uint64{ns}, nil, err
}

func (p *process) hostFunc(_ context.Context, r *request) ([]uint64, []byte, error) {
	if r.args[1] != calls.FunctionPut {
		return nil, nil, p.ctx.RunsHostFunction(uint32(r.args[0]), r.args[1] == calls.FunctionEnds)
	}
	agent, err := p.ctx.HostFunction(StreamID(r.args[0]), r.thread)
	return []uint64{uint64(agent)}, nil, err
}

func (p *process) deviceSynchronize(context.Context, *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.Synchronize()
}

func (p *process) deviceReset(context.Context, *request) ([]uint64, []byte, error) {
	err := p.ctx.Reset()
	if p.ctx.Devices() > 1 {
		return nil, nil, err
	}
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	clear(p.modules)
	clear(p.kernels)
	return nil, nil, err
}

func (p *process) funcSetAttribute(_ context.Context, r *request) ([]uint64, []byte, error) {
	k, err := p.kernel(r.args[0])
	if err != nil {
		return nil, nil, err
	}
	return nil, nil, k.SetAttribute(uint32(r.args[1]), int32(r.args[2]))
}

func (p *process) funcAttributes(_ context.Context, r *request) ([]uint64, []byte, error) {
	k, err := p.kernel(r.args[0])
	if err != nil {
		return nil, nil, err
	}
	return k.attributes(), nil, nil
}

func (p *process) memInfo(context.Context, *request) ([]uint64, []byte, error) {
	free, total := p.ctx.MemInfo()
	return []uint64{free, total}, nil, nil
}

func (p *process) occupancy(_ context.Context, r *request) ([]uint64, []byte, error) {
	k, err := p.kernel(r.args[0])
	if err != nil {
		return nil, nil, err
	}
	n, err := k.BlocksPerSM(r.args[1], r.args[2])
	return []uint64{uint64(n)}, nil, err
}

// clusterOf is the cluster shape in the flags of a launch.
func clusterOf(flags uint64) event.Dim3 {
	at := func(i int) uint32 { return uint32(flags >> (calls.LaunchCluster + 8*i) & 0xff) }
	return event.Dim3{X: at(0), Y: at(1), Z: at(2)}
}

func (p *process) clusterOccupancy(_ context.Context, r *request) ([]uint64, []byte, error) {
	k, err := p.kernel(r.args[0])
	if err != nil {
		return nil, nil, err
	}
	n, most, err := k.Clusters(r.args[1], r.args[2], clusterOf(r.args[3]))
	return []uint64{uint64(n), uint64(most)}, nil, err
}

func (p *process) unsupported(_ context.Context, r *request) ([]uint64, []byte, error) {
	p.ctx.dev.notSupported(string(r.blob))
	return nil, nil, nil
}

func (p *process) callFails(_ context.Context, r *request) ([]uint64, []byte, error) {
	return []uint64{p.callFailed(r)}, nil, nil
}

func (p *process) looked(_ context.Context, r *request) ([]uint64, []byte, error) {
	return []uint64{p.lookedAt(Code(r.args[0]), r.thread)}, nil, nil
}

func (p *process) attributes(_ context.Context, r *request) ([]uint64, []byte, error) {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	p.ctx.builtFor(int(min(r.args[0], 1<<16)))
	values := p.ctx.attributes()
	results := make([]uint64, len(values))
	for i, v := range values {
		results[i] = uint64(int64(v))
	}
	return results, nil, nil
}
