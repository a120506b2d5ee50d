package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// The condition of a conditional node of a graph is device memory, and its handle is the address. A kernel sets it with
// a plain store: racing calls of cudaGraphSetConditional are undefined (cuda_device_runtime_api.h), and so is a call
// that nothing orders with the node. The node reads it as an operation of its stream.

// conditionBytes is the size of a condition.
const conditionBytes = 4

// setConditional is the function that kernels call to set a condition. NVIDIA's device runtime contains it as machine
// code.
var setConditional = Image{Name: "cudaGraphSetConditional.ptx", Text: `.version 7.0
.target sm_80
.address_size 64
.visible .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value) {
.reg .b64 %c; .reg .b32 %v;
ld.param.u64 %c, [condition]; ld.param.u32 %v, [value];
st.global.u32 [%c], %v;
ret;
}
`}

// withConditions adds setConditional to images that call it.
func withConditions(images []Image) []Image {
	for _, im := range images {
		if strings.Contains(im.Text, ".extern .func cudaGraphSetConditional") {
			return append(images[:len(images):len(images)], setConditional)
		}
	}
	return images
}

// NewCondition is cudaGraphConditionalHandleCreate.
func (c *Context) NewCondition() (handle uint64, err error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	c.gpu.own(c.dev.mem)
	if handle, err = c.dev.mem.Alloc(conditionBytes, allocAlign, devmem.DeviceAlloc, "the condition of a graph"); err != nil {
		return 0, fail(MemoryAllocation, "a condition: %v", err)
	}
	c.allocs[handle] = allocation{size: conditionBytes, kind: devmem.DeviceAlloc}
	c.dev.tell(event.HostOp{Kind: event.HostAlloc, Agent: c.host, Addr: handle, Size: conditionBytes, Name: "cudaGraphConditionalHandleCreate"})
	return handle, nil
}

// Condition reads a condition for a conditional node that is executed in a stream, or sets it to its initial value for
// a launch. place is where the program made the node, as event.HostPlace gives it.
func (c *Context) Condition(handle uint64, set *uint32, id StreamID, thread uint32, place string) (value uint32, err error) {
	err = c.on(id, thread, func(s *stream) error {
		b, err := c.bytes(handle, conditionBytes)
		if err != nil {
			return err
		}
		op := event.HostOp{Kind: event.HostRead, Agent: s.agent, Addr: handle, Size: conditionBytes, Name: fmt.Sprintf("conditional node (%s)%s", s.name, place)}
		if set != nil {
			op.Kind, op.Name = event.HostWrite, fmt.Sprintf("cudaGraphLaunch (%s)%s", s.name, place)
		}
		c.begin(s, op.Name)
		c.work(s)
		c.dev.tell(op)
		if set != nil {
			binary.LittleEndian.PutUint32(b, *set)
		}
		value = binary.LittleEndian.Uint32(b)
		return nil
	})
	return value, err
}

func (p *process) condition(_ context.Context, r *request) ([]uint64, []byte, error) {
	if r.args[1] == 0 {
		handle, err := p.ctx.NewCondition()
		return []uint64{handle}, nil, err
	}
	var set *uint32
	if v := uint32(r.args[3]); r.args[2] != 0 {
		set = &v
	}
	value, err := p.ctx.Condition(r.args[1], set, StreamID(r.args[0]), r.thread, p.place(r))
	return []uint64{uint64(value)}, nil, err
}
