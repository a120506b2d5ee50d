package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
)

const (
	// maxLocal is the largest local memory of a thread (CUDA programming guide, "Technical Specifications per Compute
	// Capability"). maxDepth bounds the depth of calls, whose return addresses take space on hardware too.
	maxLocal = 512 << 10
	maxDepth = 8192
)

// call executes call for the lanes of on. In an indirect call each lane has its own callee.
func (r *Run) call(w *Warp, in *loader.Instr, on uint32, place uint32) {
	if on != w.group || in.Callee == nil {
		w.Regroup = true
	}
	if in.Callee != nil {
		r.callOne(w, in, on, place, in.Callee)
		return
	}
	for on != 0 {
		first := bits.TrailingZeros32(on)
		addr := r.value(w, first, &in.Operands[0])
		same := uint32(0)
		for m := on; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); r.value(w, i, &in.Operands[0]) == addr {
				same |= 1 << i
			}
		}
		on &^= same
		fn := r.p.FuncAt(addr)
		if fn == nil || !w.lanes[first].code.Func.MayCall(in.Inst, fn) {
			r.BadTarget(w, same, place, addr)
			r.noResults(w, in, same)
			continue
		}
		r.callOne(w, in, same, place, fn)
	}
}

// BadTarget reports an indirect call by the lanes of on whose target is not a function. Every lane is counted, since
// the schedule decides which lanes act together.
func (r *Run) BadTarget(w *Warp, on, place uint32, addr uint64) {
	for ; on != 0; on &= on - 1 {
		r.Faults.At(r, BadCall, w, bits.TrailingZeros32(on), place, "calls", "an indirect call of %#x, which is no function of the signature called", addr)
	}
}

// callOne makes the lanes of on call fn.
func (r *Run) callOne(w *Warp, in *loader.Instr, on uint32, place uint32, fn *isa.Func) {
	if fn.Builtin != "" {
		for m := on; m != 0; m &= m - 1 {
			r.Builtin(&Invocation{r, w, bits.TrailingZeros32(m), in, fn, place})
		}
		return
	}
	if len(fn.Insts) == 0 || fn.Err != nil {
		r.NoBody(w, on, place, fn)
		r.noResults(w, in, on)
		return
	}
	c := r.Image.Code(fn)
	base, ok := r.calls[callKey{place, c}]
	if !ok {
		base = r.Places.Enter(place, fn)
		r.calls[callKey{place, c}] = base
	}
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if !r.enter(w, i, in, c, base) {
			r.Overflow(w, i, place, fn, w.lanes[i].depth, w.lanes[i].localAt)
		}
	}
}

// NoBody reports a call by the lanes of on of a function without a definition.
func (r *Run) NoBody(w *Warp, on, place uint32, fn *isa.Func) {
	for ; on != 0; on &= on - 1 {
		r.Faults.At(r, BadCall, w, bits.TrailingZeros32(on), place, "calls", "%s has no body that can be executed", fn.Name)
	}
}

// noResults gives the lanes of on zeros as the results of a faulting call.
func (r *Run) noResults(w *Warp, in *loader.Instr, on uint32) {
	for ; on != 0; on &= on - 1 {
		ln := &w.lanes[bits.TrailingZeros32(on)]
		for k := range in.RetOps {
			switch o := &in.RetOps[k]; o.Kind {
			case isa.ParamAddr:
				clear(ln.param[uint64(ln.paramAt)+o.Imm:][:in.CallSig.Rets[k].Size])
			case isa.Reg:
				ln.regs[o.Reg] = 0
			}
		}
	}
}

// Overflow reports that the stack of a lane has no space for a call, and ends the run.
func (r *Run) Overflow(w *Warp, lane int, place uint32, fn *isa.Func, depth, localAt int32) {
	r.Faults.At(r, StackOverflow, w, lane, place, "calls "+fn.Name, "the call stack of the thread is %d calls deep with %d bytes of local memory", depth, localAt)
	r.fail(ErrTrap)
}

// StackFits reports whether a thread at call depth depth has space for a frame of fn whose local memory begins at
// localAt.
func StackFits(depth, localAt int32, fn *isa.Func) bool {
	return depth < maxDepth && int(localAt)+fn.LocalFrame <= maxLocal
}

// enter pushes a frame of c on a lane's stack and passes the arguments. It returns false if the stack is full.
func (r *Run) enter(w *Warp, lane int, in *loader.Instr, c *loader.Code, base uint32) bool {
	ln := &w.lanes[lane]
	from := ln.frame
	caller, fn := from.code.Func, c.Func
	localAt := loader.FrameAt(from.localAt, caller)
	if !StackFits(ln.depth, localAt, fn) {
		return false
	}
	fromRegs := ln.regs
	ln.up = append(ln.up, from)
	ln.depth++
	ln.frame = frame{
		code:    c,
		base:    base,
		regAt:   from.regAt + int32(caller.Regs),
		paramAt: from.paramAt + int32(caller.ParamFrame),
		localAt: localAt,
	}
	ln.fit()
	clear(ln.regs)
	local := ln.local[ln.localAt:][:fn.LocalFrame]
	clear(local)
	for k := range fn.Sig.Params {
		p := &fn.Sig.Params[k]
		size := uint64(p.Size)
		switch {
		case p.Off < 0:
			ln.regs[p.Reg] = r.argument(ln, fromRegs, &from, in, k, 0, size)
		case in.ArgOps[k].Kind == isa.ParamAddr:
			to := ln.param[int(ln.paramAt)+p.Off:][:p.Size]
			copy(to, ln.param[uint64(from.paramAt)+in.ArgOps[k].Imm:][:p.Size])
		default:
			devmem.PutUint(ln.param[int(ln.paramAt)+p.Off:][:p.Size], r.argument(ln, fromRegs, &from, in, k, 0, size))
		}
	}
	for _, s := range fn.Spills {
		copy(local[s.Local:][:s.Size], ln.param[int(ln.paramAt)+s.Param:][:s.Size])
	}
	return true
}

// argument returns bytes of actual parameter k in the caller's frame, like Machine.Argument.
func (r *Run) argument(ln *lane, regs []uint64, from *frame, in *loader.Instr, k int, off, size uint64) uint64 {
	if o := &in.ArgOps[k]; o.Kind == isa.ParamAddr {
		return devmem.Uint(ln.param[uint64(from.paramAt)+o.Imm+off:], min(size, 8))
	}
	switch o := &in.Actuals[k]; o.Kind {
	case loader.OpReg:
		return regs[o.Reg]
	case loader.OpNotReg:
		return regs[o.Reg]&1 ^ 1
	case loader.OpLocal:
		return o.Val + uint64(from.localAt)
	default:
		return o.Val
	}
}

// ret returns the lanes of on from their functions. Returning from the kernel is an exit.
func (r *Run) ret(w *Warp, on uint32, place uint32) {
	w.Regroup = true
	out := uint32(0)
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		ln := &w.lanes[i]
		if ln.depth == 0 {
			out |= 1 << i
			continue
		}
		ln.leave()
	}
	if out != 0 {
		r.Machine.Hold(w, out, place) // reports say where they exited
		r.Exit(w, out, place)
	}
}

// leave pops the lane's frame and passes the results.
func (ln *lane) leave() {
	fn, regs, paramAt := ln.code.Func, ln.regs, int(ln.paramAt)
	n := len(ln.up) - 1
	ln.frame, ln.up = ln.up[n], ln.up[:n]
	ln.depth--
	ln.regs = ln.allRegs[ln.regAt : int(ln.regAt)+ln.code.Func.Regs]
	in := &ln.code.Insts[ln.pc-1] // the call: the caller's pc is after it
	for k := range fn.Sig.Rets {
		p := &fn.Sig.Rets[k]
		switch o := &in.RetOps[k]; {
		case o.Kind == isa.ParamAddr && p.Off >= 0:
			copy(ln.param[uint64(ln.paramAt)+o.Imm:][:p.Size], ln.param[paramAt+p.Off:][:p.Size])
		case o.Kind == isa.ParamAddr:
			devmem.PutUint(ln.param[uint64(ln.paramAt)+o.Imm:][:p.Size], regs[p.Reg])
		case o.Kind == isa.Reg && p.Off >= 0:
			ln.regs[o.Reg] = devmem.Uint(ln.param[paramAt+p.Off:], uint64(min(p.Size, 8)))
		case o.Kind == isa.Reg:
			ln.regs[o.Reg] = regs[p.Reg]
		}
	}
}
