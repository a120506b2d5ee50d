package engine

import (
	"bytes"
	"errors"
	"fmt"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/engine/printf"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// Invocation is a call of a builtin function by one lane.
type Invocation struct {
	R     *Run
	W     *Warp
	Lane  int
	In    *loader.Instr
	Fn    *isa.Func
	Place uint32
}

// builtins are the functions that CUDA's device runtime supplies (PTX Interoperability, "System Calls").
var builtins = map[string]func(c *Invocation){
	"vprintf":      (*Invocation).vprintf,
	"__assertfail": (*Invocation).assertfail,
	"malloc":       (*Invocation).malloc,
	"free":         (*Invocation).free,
}

// Builtin executes the call of a function that CUDA supplies.
func (r *Run) Builtin(c *Invocation) {
	if f := builtins[c.Fn.Builtin]; f != nil {
		f(c)
		return
	}
	name, perThread := isa.DeviceRuntime(c.Fn.Builtin)
	if f := deviceRuntime[name]; f != nil {
		f(c, perThread)
		return
	}
	r.Faults.At(r, BadCall, c.W, c.Lane, c.Place, "calls", "%s is not supplied", c.Fn.Builtin)
}

// arg returns argument k, at most 8 bytes.
func (c *Invocation) arg(k int) uint64 {
	if k >= len(c.In.CallSig.Params) {
		return 0
	}
	return c.R.Machine.Argument(c.W, c.Lane, c.In, k, 0, uint64(min(c.In.CallSig.Params[k].Size, 8)))
}

// pointer returns argument k as a generic address.
func (c *Invocation) pointer(k int) uint64 {
	a := c.arg(k)
	if a != 0 && k < len(c.Fn.Sig.Params) && c.Fn.Sig.Params[k].Size == 4 {
		return isa.Widen(uint32(a))
	}
	return a
}

// result returns v to the caller.
func (c *Invocation) result(v uint64) {
	if len(c.In.RetOps) == 0 || len(c.Fn.Sig.Rets) == 0 {
		return
	}
	c.R.Machine.Result(c.W, c.Lane, c.In, c.Fn, v)
}

// peek returns up to n bytes at a generic address; nil if there are none.
func (c *Invocation) peek(addr, n uint64) []byte {
	space, off := SplitGeneric(addr)
	var data []byte
	switch space {
	case event.Global:
		b := c.R.Memory.Lookup(addr)
		if b == nil || b.Freed {
			return nil
		}
		data, off = b.Data, addr-b.Addr
	case event.Shared:
		data = c.W.CTA.Shared
	case event.Local:
		data = c.R.Machine.Local(c.W, c.Lane)
	case event.Param:
		data = c.R.Params
	}
	if off >= uint64(len(data)) {
		return nil
	}
	return data[off:min(off+n, uint64(len(data)))]
}

// text returns the zero-terminated string at a generic address.
func (c *Invocation) text(addr uint64) (string, bool) {
	data := c.peek(addr, printf.MaxString)
	if data == nil {
		return "", false
	}
	if n := bytes.IndexByte(data, 0); n >= 0 {
		data = data[:n]
	}
	return string(data), true
}

// vprintf is printf. The arguments are the format, and a buffer with the arguments, each aligned to its size. The
// result is the number of arguments, or -1 without a format (CUDA programming guide, "Formatted Output").
func (c *Invocation) vprintf() {
	formatText, ok := c.text(c.pointer(0))
	if !ok {
		c.result(0xffff_ffff)
		return
	}
	f := printf.Formatter{Format: formatText, Args: printf.Args{Peek: c.peek, Addr: c.pointer(1)}, Text: c.text}
	out := f.Run()
	if c.R.Launch.Printf != nil {
		c.R.Launch.Printf(out)
	}
	c.result(uint64(uint32(f.Args.Taken)))
}

// assertfail is __assertfail(message, file, line, function, size of a character). It ends the launch.
func (c *Invocation) assertfail() {
	str := func(k int) string {
		s, ok := c.text(c.pointer(k))
		if !ok {
			return "?"
		}
		return s
	}
	message, file, line, function := str(0), str(1), uint32(c.arg(2)), str(3)
	b, t := c.W.CTA.id, c.W.tid(c.Lane)
	if c.R.Launch.Printf != nil {
		c.R.Launch.Printf(fmt.Appendf(nil, "%s:%d: %s: block: [%d,%d,%d], thread: [%d,%d,%d] Assertion `%s` failed.\n",
			file, line, function, b.X, b.Y, b.Z, t.X, t.Y, t.Z, message))
	}
	c.R.Faults.At(c.R, Assertion, c.W, c.Lane, c.Place, "asserts", "assertion `%s` failed in %s (%s:%d)", message, function, file, line)
	c.R.fail(ErrAssert)
}

// malloc is device-side malloc. It returns 0 if the heap is exhausted.
func (c *Invocation) malloc() {
	size := c.arg(0)
	name := fmt.Sprintf("malloc of %d bytes by thread %v of block %v", size, c.W.tid(c.Lane), c.W.CTA.id)
	addr, err := c.R.Memory.AllocHeap(size, name)
	if err != nil {
		addr = 0
	} else {
		c.W.Writes++ // the heap is memory whose changes others can see
	}
	c.result(addr)
}

// free is device-side free.
func (c *Invocation) free() {
	addr := c.pointer(0)
	if addr == 0 {
		return
	}
	a, ok := c.R.Memory.Find(addr)
	fault := func(format string, args ...any) {
		c.R.Faults.At(c.R, DeviceHeap, c.W, c.Lane, c.Place, "frees", format, args...)
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
		if _, err := c.R.Memory.Free(addr); errors.Is(err, devmem.ErrNotAllocated) {
			panic("BUG: an allocation found cannot be freed")
		}
		c.W.Writes++
	}
}
