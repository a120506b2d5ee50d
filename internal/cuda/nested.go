package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"path"
	"slices"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// This file implements kernels that launch kernels (CUDA programming guide, "CUDA Dynamic Parallelism"). Operations
// that the threads of a launch put into streams of the device are performed when all its threads have ended, in the
// order of their calls. The guide promises nothing about when they begin, so a kernel that waits for its own launches
// waits forever. Each stream is an agent. An operation follows everything that its thread knew when it made the call.
// The work after the launch in its stream follows all these operations.

// invalidPitch is cudaErrorInvalidPitchValue.
const invalidPitch = 12

// maxNesting is the greatest nesting depth of launches (CUDA programming guide, "Technical Specifications per Compute
// Capability").
const maxNesting = 24

// nest is the operations that the threads of a launch have put into streams of the device.
type nest struct {
	c       *Context
	k       *Kernel
	parent  *engine.Launch
	depth   int
	ops     []nested
	streams map[engine.DeviceStream]uint32 // their agents
	agents  []uint32
	events  map[uint64]uint64 // by event of the device: the token of each record
}

// nested is an operation; for a kernel, with its launch.
type nested struct {
	*engine.DeviceOp
	kernel *Kernel
	launch *engine.Launch
}

// perform executes a launch at nesting depth depth, and the operations that its threads put into streams of the device.
// It returns the error of the device afterwards, 0 for none.
func (c *Context) perform(ctx context.Context, k *Kernel, l *engine.Launch, report LaunchReport, depth int) (ended LaunchReport, worst Code) {
	n := &nest{c: c, k: k, parent: l, depth: depth}
	l.Queue = n
	report.Stats, report.Err = c.dev.execute(ctx, l)
	c.dev.spare.ran += report.Stats.Warps
	c.gpu.own(c.dev.mem)
	c.clock += eventTime + report.Stats.Lanes*laneTime
	c.dev.report(report)
	if worst = faultCode(report.Stats.Fault); worst == 0 && report.Err != nil {
		worst = endCode(report.Err)
	}
	if worst == 0 && len(n.ops) > 0 {
		worst = n.perform(ctx)
	}
	return report, worst
}

// Put implements engine.DeviceQueue.
func (n *nest) Put(op *engine.DeviceOp) (code uint32, why string) {
	x := nested{DeviceOp: op}
	if op.Kind == engine.DeviceLaunch {
		if err := n.launch(&x); err != nil {
			refused := &Error{Code: InvalidDeviceFunction}
			errors.As(err, &refused)
			return uint32(refused.Code), fmt.Sprintf("the launch of %s by a thread is refused (%v)", op.Func.Name, err)
		}
	}
	if x.Rows > 1 && (x.Size > x.DstPitch || x.Kind == engine.DeviceCopy && x.Size > x.SrcPitch) {
		return invalidPitch, fmt.Sprintf("%s of rows of %d bytes, more than a pitch", x.call(), x.Size)
	}
	for _, a := range x.areas() {
		if _, err := n.c.dev.mem.Bytes(a.addr, a.size); err != nil {
			return uint32(InvalidValue), fmt.Sprintf("%s of %d bytes at %#x: %v", x.call(), a.size, a.addr, err)
		}
	}
	n.ops = append(n.ops, x)
	return uint32(Success), ""
}

// ErrorText implements engine.DeviceQueue.
func (n *nest) ErrorText(code uint32) (name, text string) {
	e := calls.ErrorOf(code)
	return e.Name, e.Text
}

// Attribute implements engine.DeviceQueue.
func (n *nest) Attribute(number uint32) (int32, uint32) {
	all := n.c.attributes()
	if number == 0 || int(number) >= len(all) {
		return 0, uint32(InvalidValue)
	}
	return all[number], 0
}

// FuncAttributes implements engine.DeviceQueue.
func (n *nest) FuncAttributes(f *isa.Func) (engine.FuncAttributes, uint32) {
	k, err := n.k.module.kernel(f.Name)
	if err != nil {
		return engine.FuncAttributes{}, uint32(InvalidDeviceFunction)
	}
	a := k.known()
	return engine.FuncAttributes{Shared: a[0], Const: a[1], Local: a[2], Threads: int32(a[3]), Registers: int32(a[4]), PTXVersion: int32(a[5]),
		BinaryVersion: int32(a[6]), Dynamic: int32(a[7]), Preferred: int32(a[8])}, 0
}

// Occupancy implements engine.DeviceQueue.
func (n *nest) Occupancy(f *isa.Func, threads, shared uint64) (int, uint32) {
	k, err := n.k.module.kernel(f.Name)
	if err != nil {
		return 0, uint32(InvalidDeviceFunction)
	}
	if threads == 0 {
		return 0, uint32(InvalidValue)
	}
	return k.blocksPerSM(threads, shared), 0
}

// launch prepares the launch of a kernel.
func (n *nest) launch(x *nested) error {
	if n.depth >= maxNesting {
		return fail(LaunchMaxDepthExceeded, "launches nested %d deep", n.depth)
	}
	k, err := n.k.module.kernel(x.Func.Name)
	if err != nil {
		return err
	}
	cfg := LaunchConfig{Grid: x.Grid, Block: x.Block, Shared: x.Shared}
	l := n.c.launch(k, cfg, x.Params, &stream{gpu: n.c.gpu})
	l.Parent, l.Caller = n.parent.ID, slices.Concat(n.callers(x.Place), n.parent.Caller)
	if k.err != nil {
		n.c.dev.report(LaunchReport{Process: n.c.id, Kernel: k.Name(), Grid: x.Grid, Block: x.Block, Err: k.err})
	}
	if err := n.c.admit(k, cfg, l); err != nil {
		return err
	}
	x.kernel, x.launch = k, l
	return nil
}

// callers returns the call stack of a thread at a place, without the functions of the device runtime's header.
func (n *nest) callers(place uint32) []event.Frame {
	frames := n.c.dev.cfg.Places.Frames(place)
	return slices.DeleteFunc(frames, func(f event.Frame) bool { return path.Base(f.File) == "cuda_device_runtime_api.h" })
}

// agent returns the agent of a stream.
func (n *nest) agent(s engine.DeviceStream) uint32 {
	a, ok := n.streams[s]
	if !ok {
		a = n.c.dev.newAgent()
		n.streams[s] = a
		n.agents = append(n.agents, a)
	}
	return a
}

// perform performs the operations. Those in cudaStreamTailLaunch come after all others, as operations of the parent's
// own stream.
func (n *nest) perform(ctx context.Context) (worst Code) {
	n.streams, n.events = map[engine.DeviceStream]uint32{}, map[uint64]uint64{}
	name := fmt.Sprintf("end of launch %d (%s)", n.parent.ID, n.k.Name())
	for _, tail := range []bool{false, true} {
		for i := range n.ops {
			x := &n.ops[i]
			if (x.Stream.Kind == engine.TailLaunch) != tail {
				continue
			}
			if worst != 0 || ctx.Err() != nil {
				return worst
			}
			agent := n.parent.Agent
			if !tail {
				agent = n.agent(x.Stream)
			}
			worst = n.do(ctx, x, agent)
		}
		if !tail {
			for _, a := range n.agents {
				n.c.order(n.parent.Agent, a, name)
			}
		}
	}
	return worst
}

// area is the memory from the first to the last byte that a copy or a set accesses at one end, including the gaps
// between rows.
type area struct{ addr, pitch, size uint64 }

// areas returns the area read, if there is one, and the area written.
func (x *nested) areas() (all []area) {
	if x.Kind != engine.DeviceCopy && x.Kind != engine.DeviceSet || x.Size == 0 || x.Rows == 0 {
		return nil
	}
	of := func(addr, pitch uint64) area {
		hi, gaps := bits.Mul64(pitch, x.Rows-1)
		if size := gaps + x.Size; hi == 0 && size >= gaps {
			return area{addr, pitch, size}
		}
		return area{addr, pitch, math.MaxUint64} // beyond all memory
	}
	if x.Kind == engine.DeviceCopy {
		all = append(all, of(x.Src, x.SrcPitch))
	}
	return append(all, of(x.Dst, x.DstPitch))
}

// call is the name of the function that the thread called.
func (x *nested) call() string {
	if x.Rows > 1 {
		return [...]string{engine.DeviceCopy: "cudaMemcpy2DAsync", engine.DeviceSet: "cudaMemset2DAsync"}[x.Kind]
	}
	return [...]string{engine.DeviceLaunch: "launch", engine.DeviceCopy: "cudaMemcpyAsync", engine.DeviceSet: "cudaMemsetAsync", engine.DeviceRecord: "cudaEventRecord",
		engine.DeviceWait: "cudaStreamWaitEvent"}[x.Kind]
}

// recordBit is set in the token of a record, in addition to the token of its operation.
const recordBit = 1 << 62

// do performs an operation as an agent.
func (n *nest) do(ctx context.Context, x *nested, agent uint32) (worst Code) {
	d := n.c.dev
	op := event.HostOp{Kind: event.HostWait, Agent: agent, Token: event.DeviceToken(n.parent.ID, x.Number),
		Name: fmt.Sprintf("%s by a thread of launch %d (%s)", x.call(), n.parent.ID, n.k.Name())}
	d.tell(op)
	switch x.Kind {
	case engine.DeviceLaunch:
		d.launches++
		l := x.launch
		l.ID, l.Agent = d.launches, agent
		n.c.signalling(x.kernel)
		d.flush()
		_, worst = n.c.perform(ctx, x.kernel, l, LaunchReport{ID: l.ID, Process: n.c.id, Kernel: x.kernel.Name(), Grid: l.Grid, Block: l.Block}, n.depth+1)
	case engine.DeviceCopy, engine.DeviceSet:
		return n.move(x, op)
	case engine.DeviceRecord:
		op.Kind, op.Token = event.HostSignal, op.Token|recordBit
		n.events[x.Event] = op.Token
		d.tell(op)
	case engine.DeviceWait:
		if token, ok := n.events[x.Event]; ok {
			op.Token = token
			d.tell(op)
		}
	}
	return worst
}

// move copies or sets memory.
func (n *nest) move(x *nested, op event.HostOp) Code {
	d := n.c.dev
	op.Size, op.Token = x.Size, 0
	var ends [][]byte
	areas := x.areas()
	for _, a := range areas {
		b, err := d.mem.Bytes(a.addr, a.size)
		if err != nil { // a kernel has freed it since
			return IllegalAddress
		}
		ends = append(ends, b)
	}
	row := func(end int, i uint64) []byte { return ends[end][i*areas[end].pitch:][:x.Size] }
	if len(areas) > 1 {
		op.Kind = event.HostRead
		for i := range x.Rows {
			op.Addr = x.Src + i*x.SrcPitch
			copy(row(1, i), row(0, i))
			d.tell(op)
		}
	}
	if len(areas) == 0 {
		return 0
	}
	op.Kind = event.HostWrite
	for i := range x.Rows {
		if op.Addr = x.Dst + i*x.DstPitch; x.Kind == engine.DeviceSet {
			for k, b := 0, row(0, i); k < len(b); k++ {
				b[k] = x.Value
			}
		}
		d.tell(op)
	}
	return 0
}
