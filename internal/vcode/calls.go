package vcode

import (
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
)

// Call describes the call that an effect is, or the inlined call that it stands for.
type Call struct {
	Caller  *isa.Func // the function that the call is in
	Level   int32     // number of inlined calls around it
	LocalAt int32     // start of that function's local memory in the frame, counted as ref does
	Target  *Text     // of a direct call; nil if the callee has no body
	targets []Target  // of an indirect call
}

// Target is a possible target of an indirect call.
type Target struct {
	addr uint64
	Fn   *isa.Func
	Text *Text
}

// Compile makes the texts of a kernel and of the functions that it can call.
func Compile(funcs []*opt.Func, img *loader.Image) *Text {
	var units []*Text
	of := map[*isa.Func]*Text{}
	for _, f := range funcs {
		t := compile(f, img)
		units = append(units, t)
		of[f.Fn] = t
	}
	for _, t := range units {
		for i := range t.Effects {
			if e := &t.Effects[i]; e.Call != nil {
				e.link(img, of)
			}
		}
	}
	kernel := units[0]
	if len(units) > 1 || len(kernel.Effects) > 0 && hasCalls(kernel) {
		kernel.Units = units
	}
	return kernel
}

func hasCalls(t *Text) bool {
	for i := range t.Effects {
		if t.Effects[i].Call != nil {
			return true
		}
	}
	return false
}

// link finds the texts of the possible targets of a call.
func (e *Effect) link(img *loader.Image, of map[*isa.Func]*Text) {
	c := e.Call
	if e.Fn != nil {
		c.Target = of[e.Fn]
		return
	}
	list := e.Callees
	if list == nil {
		list = c.Caller.Calls
	}
	for _, fn := range list {
		if c.Caller.MayCall(e.Inst, fn) {
			c.targets = append(c.targets, Target{img.Program.FuncAddr(fn), fn, of[fn]})
		}
	}
}

// callEffect fills in the effect of a call, of a return, or of the depth check of an inlined call, which must not
// overflow the stack.
func (b *compiler) callEffect(e *Effect, in *opt.Instr) {
	switch in.Op {
	case opt.Return:
		b.values(e, in.Args)
		return
	case opt.Call:
		b.values(e, in.Args[1:])
		e.Actuals = e.Operands[1:]
		if in.Fn == nil {
			e.Addr = b.vec(in.Args[0])
		}
	}
	s := &b.f.Sites[in.Site]
	e.Call = &Call{Caller: s.Fn}
	var chain []*isa.Func // the callers of that function
	for at := s.Call; at >= 0; at = b.f.Sites[at].Call {
		chain = append(chain, b.f.Sites[at].Fn)
		e.Call.Level++
	}
	for i := len(chain) - 1; i >= 0; i-- {
		e.Call.LocalAt = loader.FrameAt(e.Call.LocalAt, chain[i])
	}
}

// Find returns the target at an address, and nil if the call cannot have that target.
func (c *Call) Find(addr uint64) *Target {
	for k := range c.targets {
		if c.targets[k].addr == addr {
			return &c.targets[k]
		}
	}
	return nil
}
