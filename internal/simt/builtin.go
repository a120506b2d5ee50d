package simt

import (
	"bytes"
	"errors"
	"fmt"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/simt/devmem"
	"fencepost.dev/fencepost/internal/simt/loader"
	"fencepost.dev/fencepost/internal/simt/printf"
)

// invocation is a call of a builtin function by one lane.
type invocation struct {
	r     *run
	w     *warp
	lane  int
	in    *loader.Instr
	fn    *isa.Func
	place uint32
}

// builtins are the functions that CUDA's device runtime supplies (PTX Interoperability, "System Calls").
var builtins = map[string]func(c *invocation){
	"vprintf":      (*invocation).vprintf,
	"__assertfail": (*invocation).assertfail,
	"malloc":       (*invocation).malloc,
	"free":         (*invocation).free,
}

func (r *run) builtin(c *invocation) {
	if f := builtins[c.fn.Builtin]; f != nil {
		f(c)
		return
	}
	name, perThread := isa.DeviceRuntime(c.fn.Builtin)
	if f := deviceRuntime[name]; f != nil {
		f(c, perThread)
		return
	}
	r.faults.at(r, BadCall, c.w, c.lane, c.place, "calls", "%s is not supplied", c.fn.Builtin)
}

// arg is argument k, at most 8 bytes.
func (c *invocation) arg(k int) uint64 {
	if k >= len(c.in.CallSig.Params) {
		return 0
	}
	return c.r.m.argument(c.w, c.lane, c.in, k, 0, uint64(min(c.in.CallSig.Params[k].Size, 8)))
}

// pointer is argument k as a generic address.
func (c *invocation) pointer(k int) uint64 {
	a := c.arg(k)
	if a != 0 && k < len(c.fn.Sig.Params) && c.fn.Sig.Params[k].Size == 4 {
		return isa.Widen(uint32(a))
	}
	return a
}

// result hands v to the caller.
func (c *invocation) result(v uint64) {
	if len(c.in.RetOps) == 0 || len(c.fn.Sig.Rets) == 0 {
		return
	}
	c.r.m.result(c.w, c.lane, c.in, c.fn, v)
}

// peek gives up to n bytes at a generic address, nil when there are none.
func (c *invocation) peek(addr, n uint64) []byte {
	space, off := splitGeneric(addr)
	var data []byte
	switch space {
	case event.Global:
		b := c.r.mem.Lookup(addr)
		if b == nil || b.Freed {
			return nil
		}
		data, off = b.Data, addr-b.Addr
	case event.Shared:
		data = c.w.cta.shared
	case event.Local:
		data = c.r.m.local(c.w, c.lane)
	case event.Param:
		data = c.r.params
	}
	if off >= uint64(len(data)) {
		return nil
	}
	return data[off:min(off+n, uint64(len(data)))]
}

// text is the zero-terminated string at a generic address.
func (c *invocation) text(addr uint64) (string, bool) {
	data := c.peek(addr, printf.MaxString)
	if data == nil {
		return "", false
	}
	if n := bytes.IndexByte(data, 0); n >= 0 {
		data = data[:n]
	}
	return string(data), true
}

// vprintf is printf: the format, and a buffer with the arguments, each at a multiple of its size. Its result is the
// number of arguments, -1 without a format (CUDA programming guide, "Formatted Output").
func (c *invocation) vprintf() {
	formatText, ok := c.text(c.pointer(0))
	if !ok {
		c.result(0xffff_ffff)
		return
	}
	f := printf.Formatter{Format: formatText, Args: printf.Args{Peek: c.peek, Addr: c.pointer(1)}, Text: c.text}
	out := f.Run()
	if c.r.l.Printf != nil {
		c.r.l.Printf(out)
	}
	c.result(uint64(uint32(f.Args.Taken)))
}

// assertfail is __assertfail(message, file, line, function, size of a character): it ends the launch.
func (c *invocation) assertfail() {
	str := func(k int) string {
		s, ok := c.text(c.pointer(k))
		if !ok {
			return "?"
		}
		return s
	}
	message, file, line, function := str(0), str(1), uint32(c.arg(2)), str(3)
	b, t := c.w.cta.id, c.w.tid(c.lane)
	if c.r.l.Printf != nil {
		c.r.l.Printf(fmt.Appendf(nil, "%s:%d: %s: block: [%d,%d,%d], thread: [%d,%d,%d] Assertion `%s` failed.\n",
			file, line, function, b.X, b.Y, b.Z, t.X, t.Y, t.Z, message))
	}
	c.r.faults.at(c.r, Assertion, c.w, c.lane, c.place, "asserts", "assertion `%s` failed in %s (%s:%d)", message, function, file, line)
	c.r.fail(ErrAssert)
}

// malloc is device-side malloc: 0 when the heap is used up.
func (c *invocation) malloc() {
	size := c.arg(0)
	name := fmt.Sprintf("malloc of %d bytes by thread %v of block %v", size, c.w.tid(c.lane), c.w.cta.id)
	addr, err := c.r.mem.AllocHeap(size, name)
	if err != nil {
		addr = 0
	} else {
		c.w.writes++ // the heap is memory that others find changed
	}
	c.result(addr)
}

// free is device-side free.
func (c *invocation) free() {
	addr := c.pointer(0)
	if addr == 0 {
		return
	}
	a, ok := c.r.mem.Find(addr)
	fault := func(format string, args ...any) {
		c.r.faults.at(c.r, DeviceHeap, c.w, c.lane, c.place, "frees", format, args...)
	}
	switch {
	case !ok:
		fault("free of %#x, which malloc never gave", addr)
	case a.Kind != devmem.HeapAlloc:
		fault("free of %#x, which is no memory of malloc (%s)", addr, a.Name)
	case a.Freed:
		fault("free of %#x (%s), which has been freed already", addr, a.Name)
	case a.Addr != addr:
		fault("free of %#x, which lies %d bytes inside %s", addr, addr-a.Addr, a.Name)
	default:
		if _, err := c.r.mem.Free(addr); errors.Is(err, devmem.ErrNotAllocated) {
			panic("BUG: an allocation found cannot be freed")
		}
		c.w.writes++
	}
}
