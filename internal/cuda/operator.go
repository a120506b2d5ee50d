package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// Box is bytes that an operator accesses: Depth slices of Height rows of Width bytes.
type Box struct {
	Write                bool
	Addr, Pitch, Slice   uint64
	Width, Height, Depth uint64
}

// boxWords is the size of a Box in a request, in u64.
const boxWords = 7

// Operator checks and orders a computation by the host in place of a kernel that exists as machine code only: an
// operation of a stream that reads and writes boxes of memory. place is the place of the call in the program, as
// event.HostPlace gives it. The caller moves the bytes.
func (c *Context) Operator(name string, boxes []Box, id StreamID, thread uint32, place string) error {
	return c.on(id, thread, func(s *stream) error {
		sides := make([]side, len(boxes))
		for i, b := range boxes {
			end := "source"
			if b.Write {
				end = "destination"
			}
			var err error
			if sides[i], err = c.side(end, b.Addr, b.Pitch, b.Slice, b.copy()); err != nil {
				return err
			}
		}
		c.dev.operators++
		name := name + " (" + s.name + ")" + place
		c.begin(s, name)
		c.work(s)
		for i, b := range boxes {
			kind := event.HostRead
			if b.Write {
				kind = event.HostWrite
			}
			c.touch(event.HostOp{Kind: kind, Agent: s.agent, Name: name}, sides[i], b.copy())
		}
		return nil
	})
}

func (b *Box) copy() *Copy { return &Copy{Width: b.Width, Height: b.Height, Depth: b.Depth} }

func (p *process) operator(_ context.Context, r *request) ([]uint64, []byte, error) {
	name, raw, _ := bytes.Cut(r.blob, []byte{0})
	if len(raw)%(8*boxWords) != 0 {
		return nil, nil, fail(InvalidValue, "an operator with %d bytes of boxes", len(raw))
	}
	boxes := make([]Box, 0, len(raw)/(8*boxWords))
	for ; len(raw) > 0; raw = raw[8*boxWords:] {
		var w [boxWords]uint64
		for i := range w {
			w[i] = binary.LittleEndian.Uint64(raw[8*i:])
		}
		if b := (Box{w[0] != 0, w[1], w[2], w[3], w[4], w[5], w[6]}); b.Width > 0 && b.Height > 0 && b.Depth > 0 {
			boxes = append(boxes, b)
		}
	}
	return nil, nil, p.ctx.Operator(printable(string(name)), boxes, StreamID(r.args[0]), r.thread, p.place(r))
}

// argument keeps a name for the next launch of a thread. A launch has few. Names without a launch are dropped.
func (p *process) argument(_ context.Context, r *request) ([]uint64, []byte, error) {
	const most = 1024
	name, kind, _ := strings.Cut(string(r.blob), "\n")
	a := engine.Argument{Name: printable(name), Type: printable(kind), Addr: r.args[0], Size: r.args[1], Elem: int(min(r.args[2], 1<<20))}
	if a.Addr+a.Size < a.Addr {
		return nil, nil, fail(InvalidValue, "an argument of %d bytes at %#x", a.Size, a.Addr)
	}
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	if p.arguments == nil {
		p.arguments = map[uint32][]engine.Argument{}
	}
	if len(p.arguments[r.thread]) < most {
		p.arguments[r.thread] = append(p.arguments[r.thread], a)
	}
	return nil, nil, nil
}

// takeArguments returns the names for a launch of a thread.
func (p *process) takeArguments(thread uint32) []engine.Argument {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	list := p.arguments[thread]
	delete(p.arguments, thread)
	return list
}
