package engine

import (
	"fmt"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// DeviceOp is an operation that a thread puts into a stream of the device, such as a kernel launch (CUDA programming
// guide, "CUDA Dynamic Parallelism"). The caller of Run performs it when the launch has ended. Nothing is promised
// about when it begins, except that the launch is complete only after it.
type DeviceOp struct {
	Kind   DeviceOpKind
	Place  uint32 // of the call
	Number uint32 // number within the launch, from 1, as in event.DeviceOp
	Stream DeviceStream
	// For a kernel:
	Func   *isa.Func
	Grid   event.Dim3
	Block  event.Dim3
	Shared int
	Params []byte
	// For a copy and a set: both have Rows rows of Size bytes, which begin DstPitch and SrcPitch apart.
	Dst, Src, Size           uint64
	DstPitch, SrcPitch, Rows uint64
	Value                    byte
	Event                    uint64 // for a record and a wait
}

// DeviceQueue receives what threads put into streams of the device.
type DeviceQueue interface {
	// Put returns a cudaError_t and, if that is not 0, the reason in words. It keeps an operation for which it returns 0,
	// to be performed when the launch has ended.
	Put(op *DeviceOp) (code uint32, why string)
	// ErrorText returns the name and the description of a cudaError_t.
	ErrorText(code uint32) (name, text string)
	// Attribute returns a device attribute by number (cudaDeviceAttr), and a cudaError_t.
	Attribute(number uint32) (value int32, code uint32)
	// FuncAttributes returns the attributes for cudaFuncGetAttributes, and a cudaError_t.
	FuncAttributes(f *isa.Func) (FuncAttributes, uint32)
	// Occupancy returns the number of blocks of a kernel that a multiprocessor holds, and a cudaError_t.
	Occupancy(f *isa.Func, threads, shared uint64) (blocks int, code uint32)
}

// FuncAttributes are the attributes of a kernel. Sizes are in bytes.
type FuncAttributes struct {
	Shared, Const, Local                                              uint64
	Threads, Registers, PTXVersion, BinaryVersion, Dynamic, Preferred int32
}

// DeviceOpKind is the kind of a DeviceOp.
type DeviceOpKind uint8

// The operations of device streams.
const (
	DeviceLaunch DeviceOpKind = iota
	DeviceCopy
	DeviceSet
	DeviceRecord
	DeviceWait
)

// DeviceStream identifies a stream of the device within its launch. Operations of one stream are in order.
type DeviceStream struct {
	Kind DeviceStreamKind
	ID   uint64
}

// DeviceStreamKind is the kind of a stream of the device.
type DeviceStreamKind uint8

// The kinds of streams: the default stream of each block; that of each thread, in code for per-thread default streams;
// streams that threads create; cudaStreamFireAndForget, in which each operation has a stream of its own; and
// cudaStreamTailLaunch, whose operations begin when the launch and the operations of its other streams are complete.
const (
	BlockStream DeviceStreamKind = iota
	ThreadStream
	NamedStream
	FireAndForget
	TailLaunch
)

// The handles of streams in device code.
const (
	handlePerThread     = 2
	handleTailLaunch    = 3
	handleFireAndForget = 4
	firstHandle         = 1 << 16 // of streams and events that threads create
)

// The codes of cudaError_t that device code receives here.
const (
	cudaSuccess               = 0
	cudaErrorInvalidValue     = 1
	cudaErrorMemoryAllocation = 2
	cudaErrorInvalidFunction  = 98 // cudaErrorInvalidDeviceFunction
	cudaErrorInvalidHandle    = 400
	cudaErrorPendingCount     = 69
	cudaErrorNoDeviceStreams  = 801 // cudaErrorNotSupported
	maxDeviceOps              = 1 << 20
	DeviceParameters          = "parameters of a kernel that a thread launches"
	deviceEventDisableTiming  = 2
	deviceStreamNonBlocking   = 1
)

// device is what the threads of a launch have done with streams of the device.
type device struct {
	ops     uint32
	handles uint64
	pending map[uint64]*DeviceOp // launches whose parameters are being written, by the address of their parameters
	streams map[uint64]bool      // streams that threads have created
	events  map[uint64]bool
	errors  map[deviceThread]uint32 // the last error of each thread that has one
}

type deviceThread struct {
	warp uint32 // number within the grid
	lane int
}

func (r *Run) device() *device {
	if r.dev == nil {
		r.dev = &device{handles: firstHandle, pending: map[uint64]*DeviceOp{}, streams: map[uint64]bool{}, events: map[uint64]bool{}, errors: map[deviceThread]uint32{}}
	}
	return r.dev
}

// endDevice frees the parameters of launches: they have been copied or will never be used.
func (r *Run) endDevice() {
	if r.dev == nil {
		return
	}
	for addr := range r.dev.pending {
		_, _ = r.Memory.Free(addr) // the program cannot have freed it: that is a fault
	}
	r.dev.pending = nil
}

func (c *Invocation) thread() deviceThread { return deviceThread{c.W.Number, c.Lane} }

// status returns an error code to the caller, and keeps it for cudaGetLastError.
func (c *Invocation) status(code uint32) {
	if code != cudaSuccess {
		c.R.device().errors[c.thread()] = code
	}
	c.result(uint64(code))
}

func (c *Invocation) lastError() {
	d := c.R.device()
	code := d.errors[c.thread()]
	delete(d.errors, c.thread())
	c.result(uint64(code))
}

func (c *Invocation) peekError() { c.result(uint64(c.R.device().errors[c.thread()])) }

// errorText returns the address of the name (0) or the text (1) of the error that is argument 0.
func (c *Invocation) errorText(what int) {
	if c.R.Launch.Queue == nil {
		c.result(0)
		return
	}
	var text [2]string
	text[0], text[1] = c.R.Launch.Queue.ErrorText(uint32(c.arg(0)))
	c.result(c.R.p.ConstText(text[what]))
}

// dim returns argument k, a dim3.
func (c *Invocation) dim(k int) event.Dim3 {
	if k >= len(c.In.CallSig.Params) || c.In.CallSig.Params[k].Size != 12 {
		return event.Dim3{}
	}
	at := func(off uint64) uint32 { return uint32(c.R.Machine.Argument(c.W, c.Lane, c.In, k, off, 4)) }
	return event.Dim3{X: at(0), Y: at(4), Z: at(8)}
}

// poke stores v at a generic address. It returns false if that is not possible.
func (c *Invocation) poke(addr, v, size uint64) bool {
	to := c.peek(addr, size)
	if uint64(len(to)) < size {
		return false
	}
	devmem.PutUint(to, v)
	if space, off := SplitGeneric(addr); space == event.Local {
		c.R.Machine.Wrote(c.W, c.Lane, off, size)
	}
	return true
}

// parameterBuffer is cudaGetParameterBufferV2(function, grid, block, shared memory). It returns the address at which
// the caller stores the parameters; 0 if there is no such kernel, or no memory.
func (c *Invocation) parameterBuffer() {
	op := &DeviceOp{Kind: DeviceLaunch, Func: c.R.p.FuncAt(c.pointer(0)), Grid: c.dim(1), Block: c.dim(2), Shared: int(uint32(c.arg(3)))}
	switch {
	case op.Func == nil || !op.Func.Entry:
		c.R.Faults.At(c.R, BadCall, c.W, c.Lane, c.Place, "launches", "a launch by a thread of %#x, which is no kernel of the program", c.pointer(0))
		c.result(0)
		return
	case c.R.Launch.Queue == nil:
		c.R.Faults.At(c.R, BadCall, c.W, c.Lane, c.Place, "launches", "a launch of %s by a thread: kernels that launch kernels cannot be executed here", op.Func.Name)
		c.result(0)
		return
	}
	addr, err := c.R.Memory.Alloc(uint64(max(loader.ParamBytes(op.Func), 1)), devmem.MinAlign, devmem.DeviceAlloc, DeviceParameters)
	if err != nil {
		c.result(0)
		return
	}
	c.R.device().pending[addr] = op
	c.result(addr)
}

// launch is cudaLaunchDeviceV2(parameters, stream).
func (c *Invocation) launch(perThread bool) {
	d := c.R.device()
	addr := c.pointer(0)
	op := d.pending[addr]
	if op == nil {
		c.status(cudaErrorInvalidValue)
		return
	}
	delete(d.pending, addr)
	if data, err := c.R.Memory.Bytes(addr, uint64(loader.ParamBytes(op.Func))); err == nil {
		op.Params = append([]byte(nil), data...)
	}
	_, _ = c.R.Memory.Free(addr)
	if k, space := op.private(); k > 0 {
		why := fmt.Sprintf("the launch of %s by a thread is refused (parameter %d is an address of %s memory of the launching thread, which the kernel cannot access)", op.Func.Name, k, space)
		c.refused(false, why)
		c.status(cudaErrorInvalidValue)
		return
	}
	c.enqueue(op, 1, perThread)
}

// private returns the number, from 1, of a parameter that is an address in the launching thread's shared or local
// memory; 0: none.
func (op *DeviceOp) private() (k int, space event.Space) {
	for i, p := range op.Func.Sig.Params {
		if p.Size == 8 && p.Off >= 0 && p.Off+8 <= len(op.Params) {
			if space, _ := SplitGeneric(devmem.Uint(op.Params[p.Off:], 8)); space == event.Shared || space == event.Local {
				return i + 1, space
			}
		}
	}
	return 0, 0
}

// refused reports why a launch by the thread does not take place.
func (c *Invocation) refused(warning bool, why string) {
	if f, fresh := c.R.Faults.count(c.R, DeviceRefused, c.Place, warning); fresh {
		f.Message = why
		f.Stands = []Stand{{Place: c.Place, Block: c.W.CTA.id, Thread: c.W.tid(c.Lane), Threads: 1, Doing: "launches"}}
	}
}

// enqueue puts an operation into the stream that is argument k.
func (c *Invocation) enqueue(op *DeviceOp, k int, perThread bool) {
	d := c.R.device()
	var ok bool
	switch {
	case d.ops >= maxDeviceOps:
		c.status(cudaErrorPendingCount)
		return
	case c.R.Launch.Queue == nil:
		c.status(cudaErrorNoDeviceStreams)
		return
	}
	if op.Stream, ok = c.stream(c.arg(k), perThread); !ok {
		c.status(cudaErrorInvalidHandle)
		return
	}
	op.Place, op.Number = c.Place, d.ops+1
	if code, why := c.R.Launch.Queue.Put(op); code != cudaSuccess {
		if op.Kind != DeviceLaunch && code == cudaErrorInvalidValue { // a wrong address
			c.R.Faults.At(c.R, OutOfBounds, c.W, c.Lane, c.Place, "calls", "%s", why)
		} else {
			c.refused(true, why)
		}
		c.status(code)
		return
	}
	d.ops++
	c.R.Out.deviceOp(c.W, c.Lane, c.Place, op.Number)
	c.status(cudaSuccess)
}

// stream returns the stream of a handle.
func (c *Invocation) stream(handle uint64, perThread bool) (s DeviceStream, ok bool) {
	d := c.R.device()
	thread := uint64(c.W.Number)<<5 | uint64(c.Lane)
	switch {
	case handle == handlePerThread, handle == 0 && perThread:
		return DeviceStream{ThreadStream, thread}, true
	case handle < handlePerThread:
		return DeviceStream{BlockStream, uint64(c.W.CTA.index)}, true
	case handle == handleTailLaunch:
		return DeviceStream{Kind: TailLaunch}, true
	case handle == handleFireAndForget:
		return DeviceStream{FireAndForget, uint64(d.ops)}, true
	}
	return DeviceStream{NamedStream, handle}, d.streams[handle]
}

// create is cudaStreamCreateWithFlags or cudaEventCreateWithFlags(address for the handle, flags). Streams of the device
// must be created as non-blocking, and events without timing.
func (c *Invocation) create(all map[uint64]bool, needs uint32) {
	d := c.R.device()
	if uint32(c.arg(1))&needs == 0 || !c.poke(c.pointer(0), d.handles, 8) {
		c.status(cudaErrorInvalidValue)
		return
	}
	all[d.handles] = true
	d.handles++
	c.status(cudaSuccess)
}

// destroy is cudaStreamDestroy or cudaEventDestroy(handle). Pending operations of the stream are still performed.
func (c *Invocation) destroy(all map[uint64]bool) {
	if h := c.arg(0); all[h] {
		delete(all, h)
		c.status(cudaSuccess)
		return
	}
	c.status(cudaErrorInvalidHandle)
}

// eventOp is cudaEventRecord(event, stream) or cudaStreamWaitEvent(stream, event, flags).
func (c *Invocation) eventOp(kind DeviceOpKind, event, stream int, perThread bool) {
	op := &DeviceOp{Kind: kind, Event: c.arg(event)}
	if !c.R.device().events[op.Event] {
		c.status(cudaErrorInvalidHandle)
		return
	}
	c.enqueue(op, stream, perThread)
}

// allocate is cudaMalloc(address for the pointer, size).
func (c *Invocation) allocate() {
	name := fmt.Sprintf("cudaMalloc of %d bytes by thread %v of block %v", c.arg(1), c.W.tid(c.Lane), c.W.CTA.id)
	addr, err := c.R.Memory.AllocHeap(c.arg(1), name)
	switch {
	case err != nil:
		c.status(cudaErrorMemoryAllocation)
	case !c.poke(c.pointer(0), addr, 8):
		c.status(cudaErrorInvalidValue)
	default:
		c.W.Writes++
		c.status(cudaSuccess)
	}
}

// store stores a number at the address that is argument 0.
func (c *Invocation) store(v uint32) {
	if !c.poke(c.pointer(0), uint64(v), 4) {
		c.status(cudaErrorInvalidValue)
		return
	}
	c.status(cudaSuccess)
}

// ask calls a function of the queue that gives an int, and stores it at the address that is argument 0.
func (c *Invocation) ask(get func(q DeviceQueue) (int, uint32)) {
	if c.R.Launch.Queue == nil {
		c.status(cudaErrorNoDeviceStreams)
		return
	}
	v, code := get(c.R.Launch.Queue)
	if code != cudaSuccess {
		c.status(code)
		return
	}
	c.store(uint32(v))
}

// occupancy is cudaOccupancyMaxActiveBlocksPerMultiprocessor(address for the number, function, threads, shared memory).
func (c *Invocation) occupancy() {
	c.ask(func(q DeviceQueue) (int, uint32) {
		if f := c.R.p.FuncAt(c.pointer(1)); f != nil && f.Entry {
			return q.Occupancy(f, uint64(uint32(c.arg(2))), c.arg(3))
		}
		return 0, cudaErrorInvalidFunction
	})
}

// funcAttributes is cudaFuncGetAttributes(address for the attributes, function). They are a structure of three sizes
// followed by ints, the fifth of which is not used.
func (c *Invocation) funcAttributes() {
	f := c.R.p.FuncAt(c.pointer(1))
	if c.R.Launch.Queue == nil || f == nil || !f.Entry {
		c.status(cudaErrorInvalidFunction)
		return
	}
	a, code := c.R.Launch.Queue.FuncAttributes(f)
	if code != cudaSuccess {
		c.status(code)
		return
	}
	at, ok := c.pointer(0), true
	for i, v := range []uint64{a.Shared, a.Const, a.Local} {
		ok = ok && c.poke(at+8*uint64(i), v, 8)
	}
	for i, v := range []int32{a.Threads, a.Registers, a.PTXVersion, a.BinaryVersion, 0, a.Dynamic, a.Preferred} {
		ok = ok && c.poke(at+24+4*uint64(i), uint64(uint32(v)), 4)
	}
	if !ok {
		c.status(cudaErrorInvalidValue)
		return
	}
	c.status(cudaSuccess)
}

// deviceRuntime are the functions of CUDA's device runtime for kernels that launch kernels, by isa.DeviceRuntime.
var deviceRuntime = map[string]func(c *Invocation, perThread bool){
	"GetParameterBufferV2":  func(c *Invocation, _ bool) { c.parameterBuffer() },
	"LaunchDeviceV2":        (*Invocation).launch,
	"StreamCreateWithFlags": func(c *Invocation, _ bool) { c.create(c.R.device().streams, deviceStreamNonBlocking) },
	"StreamDestroy":         func(c *Invocation, _ bool) { c.destroy(c.R.device().streams) },
	"EventCreateWithFlags":  func(c *Invocation, _ bool) { c.create(c.R.device().events, deviceEventDisableTiming) },
	"EventDestroy":          func(c *Invocation, _ bool) { c.destroy(c.R.device().events) },
	"EventRecord":           func(c *Invocation, perThread bool) { c.eventOp(DeviceRecord, 0, 1, perThread) },
	"EventRecordWithFlags":  func(c *Invocation, perThread bool) { c.eventOp(DeviceRecord, 0, 1, perThread) },
	"StreamWaitEvent":       func(c *Invocation, perThread bool) { c.eventOp(DeviceWait, 1, 0, perThread) },
	"MemcpyAsync": func(c *Invocation, perThread bool) {
		c.enqueue(&DeviceOp{Kind: DeviceCopy, Dst: c.pointer(0), Src: c.pointer(1), Size: c.arg(2), Rows: 1}, 4, perThread)
	},
	"MemsetAsync": func(c *Invocation, perThread bool) {
		c.enqueue(&DeviceOp{Kind: DeviceSet, Dst: c.pointer(0), Value: byte(c.arg(1)), Size: c.arg(2), Rows: 1}, 3, perThread)
	},
	"Memcpy2DAsync": func(c *Invocation, perThread bool) {
		c.enqueue(&DeviceOp{Kind: DeviceCopy, Dst: c.pointer(0), DstPitch: c.arg(1), Src: c.pointer(2), SrcPitch: c.arg(3), Size: c.arg(4), Rows: c.arg(5)}, 7, perThread)
	},
	"Memset2DAsync": func(c *Invocation, perThread bool) {
		c.enqueue(&DeviceOp{Kind: DeviceSet, Dst: c.pointer(0), DstPitch: c.arg(1), Value: byte(c.arg(2)), Size: c.arg(3), Rows: c.arg(4)}, 5, perThread)
	},
	"GetLastError":    func(c *Invocation, _ bool) { c.lastError() },
	"PeekAtLastError": func(c *Invocation, _ bool) { c.peekError() },
	"GetErrorName":    func(c *Invocation, _ bool) { c.errorText(0) },
	"GetErrorString":  func(c *Invocation, _ bool) { c.errorText(1) },
	"GetDevice":       func(c *Invocation, _ bool) { c.store(0) },
	"GetDeviceCount":  func(c *Invocation, _ bool) { c.store(1) },
	"DeviceGetAttribute": func(c *Invocation, _ bool) {
		c.ask(func(q DeviceQueue) (int, uint32) {
			v, code := q.Attribute(uint32(c.arg(1)))
			return int(v), code
		})
	},
	"FuncGetAttributes":                                  func(c *Invocation, _ bool) { c.funcAttributes() },
	"OccupancyMaxActiveBlocksPerMultiprocessor":          func(c *Invocation, _ bool) { c.occupancy() },
	"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags": func(c *Invocation, _ bool) { c.occupancy() },
	"Malloc": func(c *Invocation, _ bool) { c.allocate() },
	"Free": func(c *Invocation, _ bool) {
		c.free()
		c.status(cudaSuccess)
	},
}
