package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// This file implements stream memory operations: a stream writes a value, or waits for one. Work is executed when it is
// put into a stream. So a wait for a value that is not there yet is checked again at the next operation of its stream.

// ValueOp is such an operation on 4 or 8 bytes.
type ValueOp struct {
	Addr, Value uint64
	Size        int
	Wait        bool
	Condition   uint64 // for a wait: CUstreamWaitValue_flags
}

// awaited is a wait whose value was not there.
type awaited struct {
	op    ValueOp
	bytes []byte
	name  string
}

func (o ValueOp) name(s *stream) string {
	what := "Write"
	if o.Wait {
		what = "Wait"
	}
	return fmt.Sprintf("cuStream%sValue%d (%s)", what, 8*o.Size, s.name)
}

// met reports whether memory satisfies a wait.
func (o ValueOp) met(b []byte) bool {
	if o.Size == 4 {
		now, v := binary.LittleEndian.Uint32(b), uint32(o.Value)
		return [...]bool{int32(now-v) >= 0, now == v, now&v != 0, ^(now | v) != 0}[o.Condition]
	}
	now, v := binary.LittleEndian.Uint64(b), o.Value
	return [...]bool{int64(now-v) >= 0, now == v, now&v != 0, ^(now | v) != 0}[o.Condition]
}

// StreamValue is cuStreamWriteValue and cuStreamWaitValue.
func (c *Context) StreamValue(o ValueOp, id StreamID, thread uint32) error {
	return c.on(id, thread, func(s *stream) error {
		name := o.name(s)
		a, ok := c.dev.mem.Find(o.Addr)
		switch {
		case o.Size != 4 && o.Size != 8 || o.Condition > 3:
			return fail(InvalidValue, "%s of %d bytes, condition %d", name, o.Size, o.Condition)
		case o.Addr%uint64(o.Size) != 0:
			return fail(InvalidValue, "%s at %#x, which is not a multiple of %d", name, o.Addr, o.Size)
		case ok && a.Kind == devmem.ManagedAlloc:
			return fail(InvalidValue, "%s of managed memory", name)
		}
		b, err := c.bytes(o.Addr, uint64(o.Size))
		if err != nil {
			return misuse(InvalidPointer, InvalidValue, "%s at %s, where no memory is allocated", name, hostAddress(o.Addr))
		}
		c.begin(s, name)
		c.work(s)
		if o.Wait {
			s.awaits = &awaited{o, b, name}
			c.resume(s)
			return nil
		}
		if o.Size == 4 {
			binary.LittleEndian.PutUint32(b, uint32(o.Value))
		} else {
			binary.LittleEndian.PutUint64(b, o.Value)
		}
		if c.written == nil {
			c.written = map[uint64]writtenValue{}
		}
		token := c.id<<48 | 1<<46 | o.Addr
		c.written[o.Addr] = writtenValue{o, token}
		c.dev.tell(event.HostOp{Kind: event.HostSignal, Agent: s.agent, Token: token, Name: name})
		if a.Kind == devmem.PinnedAlloc { // the host may read it
			c.signals = true
			c.dev.tell(event.HostOp{Kind: event.HostSignal, Agent: s.agent, Token: uint64(s.agent), Name: name, Assumed: true})
			c.dev.tell(event.HostOp{Kind: event.HostWait, Agent: c.host, Token: uint64(s.agent), Name: name, Assumed: true})
		}
		return nil
	})
}

// writtenValue is the last value that a stream has written to an address. Token publishes the earlier work of the
// stream.
type writtenValue struct {
	op    ValueOp
	token uint64
}

// resume continues a stream if the value for which it waits has been written, and reports whether it continues. It then
// follows the stream that wrote the value. If none has, it follows all work so far, because a kernel may have written
// it.
func (c *Context) resume(s *stream) bool {
	w := s.awaits
	if w == nil {
		return true
	}
	if !w.op.met(w.bytes) {
		return false
	}
	s.awaits = nil
	if by, ok := c.written[w.op.Addr]; ok && by.op.Size == w.op.Size && w.op.met(binary.LittleEndian.AppendUint64(nil, by.op.Value)) {
		c.dev.tell(event.HostOp{Kind: event.HostWait, Agent: s.agent, Token: by.token, Name: w.name})
		return true
	}
	for _, o := range c.allStreams() {
		if o != s {
			c.order(s.agent, o.agent, w.name)
		}
	}
	return true
}

// blocked returns the error of an operation that would wait for a stream, or be work of it, while the stream waits for
// a value.
func (c *Context) blocked(s *stream) error {
	for _, o := range c.allStreams() {
		if o.awaits == nil || o != s && (s != s.gpu.legacy || o.nonBlocking) || c.resume(o) {
			continue
		}
		what := fmt.Sprintf("what comes behind %s, which waits for a value that nothing has written yet", o.awaits.name)
		c.dev.noteUnsupported(what)
		return &Unchecked{Err: errors.New(what)} // it is not a misuse by the program
	}
	return nil
}

func (p *process) streamValue(_ context.Context, r *request) ([]uint64, []byte, error) {
	o := ValueOp{Addr: r.args[1], Value: r.args[2], Size: int(min(r.args[3]&0xff, 8)), Wait: r.args[3]&calls.ValueWait != 0, Condition: r.args[4]}
	return nil, nil, p.ctx.StreamValue(o, StreamID(r.args[0]), r.thread)
}
