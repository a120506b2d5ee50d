package simt

import (
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/simt/loader"
)

// vecCall is what an effect knows of the call that it is, or is inlined of.
type vecCall struct {
	caller  *isa.Func // the function that the call is in
	level   int32     // inlined calls around it
	localAt int32     // where that function's local memory begins in the frame, as ref counts
	target  *text     // of a call by name; nil where that has no body
	targets []target  // of a call through a pointer
}

// target is a function that a call through a pointer may mean.
type target struct {
	addr uint64
	fn   *isa.Func
	text *text
}

// compileAll makes the texts of a kernel and of what it can call.
func compileAll(funcs []*opt.Func, img *loader.Image) *text {
	var units []*text
	of := map[*isa.Func]*text{}
	for _, f := range funcs {
		t := compile(f, img)
		units = append(units, t)
		of[f.Fn] = t
	}
	for _, t := range units {
		for i := range t.effects {
			if e := &t.effects[i]; e.call != nil {
				e.link(img, of)
			}
		}
	}
	kernel := units[0]
	if len(units) > 1 || len(kernel.effects) > 0 && hasCalls(kernel) {
		kernel.units = units
	}
	return kernel
}

func hasCalls(t *text) bool {
	for i := range t.effects {
		if t.effects[i].call != nil {
			return true
		}
	}
	return false
}

// link finds the texts that a call means.
func (e *effect) link(img *loader.Image, of map[*isa.Func]*text) {
	c := e.call
	if e.fn != nil {
		c.target = of[e.fn]
		return
	}
	list := e.Callees
	if list == nil {
		list = c.caller.Calls
	}
	for _, fn := range list {
		if c.caller.MayCall(e.Inst, fn) {
			c.targets = append(c.targets, target{img.Program.FuncAddr(fn), fn, of[fn]})
		}
	}
}

// callEffect fills in the effect of a call, of a return, or of an inlined call that must not overflow the stack.
func (b *compiler) callEffect(e *effect, in *opt.Instr) {
	switch in.Op {
	case opt.Return:
		b.values(e, in.Args)
		return
	case opt.Call:
		b.values(e, in.Args[1:])
		e.Actuals = e.Operands[1:]
		if in.Fn == nil {
			e.addr = b.vec(in.Args[0])
		}
	}
	s := &b.f.Sites[in.Site]
	e.call = &vecCall{caller: s.Fn}
	var chain []*isa.Func // the callers above it
	for at := s.Call; at >= 0; at = b.f.Sites[at].Call {
		chain = append(chain, b.f.Sites[at].Fn)
		e.call.level++
	}
	for i := len(chain) - 1; i >= 0; i-- {
		e.call.localAt = loader.FrameAt(e.call.localAt, chain[i])
	}
}

func (c *vecCall) find(addr uint64) *target {
	for k := range c.targets {
		if c.targets[k].addr == addr {
			return &c.targets[k]
		}
	}
	return nil
}
