package engine

import (
	"encoding/binary"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// depends tracks which reads a thread depends on, for memory models in which a load and a later store may be exchanged
// unless the store depends on the load. A set of reads is a word: bit n is read n of the thread, and the last bit
// represents all further reads (see Threads.bit).
//
// It describes one thread at a time, the running lane. Its parts have the same layout as those of the lane.
type depends struct {
	regs    []uint64 // for lane.allRegs
	param   []uint64 // for each byte of lane.param
	local   []uint64 // for each byte of lane.local
	control uint64   // what every further step depends on
	reads   uint64   // number of reads so far
}

// lastRead is the number of the last bit of a set of reads.
const lastRead = 63

// fit makes room for the parts of the lane.
func (d *depends) fit(ln *lane) {
	grow := func(s *[]uint64, n int) {
		for len(*s) < n {
			*s = append(*s, 0)
		}
	}
	grow(&d.regs, len(ln.allRegs))
	grow(&d.param, len(ln.param))
	grow(&d.local, len(ln.local))
}

func union(sets []uint64) (all uint64) {
	for _, s := range sets {
		all |= s
	}
	return all
}

func fill(sets []uint64, s uint64) {
	for i := range sets {
		sets[i] = s
	}
}

// reg returns the set of a register in the lane's current frame.
func (d *depends) reg(ln *lane, r int32) *uint64 { return &d.regs[int(ln.regAt)+int(r)] }

// sources returns the sets of an instruction's operands: of all together, and of the first alone, which is an address
// or a target.
func (d *depends) sources(ln *lane, in *loader.Instr) (all, first uint64) {
	for i := range in.Src {
		if o := &in.Src[i]; o.Kind == isa.Reg {
			s := *d.reg(ln, o.Reg)
			all |= s
			if i == 0 {
				first = s
			}
		}
	}
	return all, first
}

// guard returns the set of an instruction's guard.
func (d *depends) guard(ln *lane, in *loader.Instr) uint64 {
	if in.Guard < 0 {
		return 0
	}
	return *d.reg(ln, int32(in.Guard))
}

// request returns the set of an instruction's memory request: address, value, guard, and what all further steps depend
// on.
func (d *depends) request(ln *lane, in *loader.Instr) uint64 {
	all, _ := d.sources(ln, in)
	return all | d.guard(ln, in) | d.control
}

// skip records that an instruction was not executed because of its guard.
func (d *depends) skip(ln *lane, in *loader.Instr) {
	g := d.guard(ln, in)
	switch in.Class {
	case isa.Branch, isa.Ret, isa.Exit, isa.Call, isa.Trap:
		d.control |= g
	}
	d.results(ln, in, func(i int32) { *d.reg(ln, i) |= g })
}

func (d *depends) results(ln *lane, in *loader.Instr, f func(reg int32)) {
	for i := range in.Dst {
		if in.Dst[i].Kind == isa.Reg {
			f(in.Dst[i].Reg)
		}
	}
}

// perform executes an instruction that affects only the lane, by calling run, and tracks what its results depend on.
func (t *Threads) perform(w *Warp, i int, in *loader.Instr, run func()) {
	d, ln := t.depends, &w.lanes[i]
	if d == nil {
		run()
		return
	}
	d.fit(ln)
	all, first := d.sources(ln, in)
	guard := d.guard(ln, in)
	all |= guard
	switch in.Class {
	case isa.Load:
		all |= union(t.bytes(w, i, in))
		run()
		d.results(ln, in, func(r int32) { *d.reg(ln, r) = all })
	case isa.Store:
		fill(t.bytes(w, i, in), all)
		run()
	case isa.Branch, isa.Exit, isa.Trap:
		d.control |= all
		run()
	case isa.Call:
		d.control |= guard | first
		t.call(w, i, in, run)
	case isa.Ret:
		d.control |= guard
		t.ret(w, i, run)
	default:
		run()
		d.results(ln, in, func(r int32) { *d.reg(ln, r) = all })
	}
}

// bytes returns the sets of the bytes of parameters or local memory that an instruction accesses; none for other
// memory.
func (t *Threads) bytes(w *Warp, i int, in *loader.Instr) []uint64 {
	d, ln := t.depends, &w.lanes[i]
	if in.Space == event.Param && in.Inst.Src[0].Kind == isa.ParamAddr {
		from := int(ln.paramAt) + int(in.Inst.Src[0].Imm) + int(in.Off)
		return d.param[from : from+int(in.Width)]
	}
	addr, space := t.r.value(w, i, &in.Operands[0])+in.Offset, in.Space
	if space == event.Generic {
		space, addr = SplitGeneric(addr)
	}
	switch {
	case space == event.Local && addr+in.Width <= uint64(len(d.local)) && addr+in.Width >= addr:
		return d.local[addr : addr+in.Width]
	case space == event.Param:
		return d.param
	}
	return nil
}

// call handles a call: parameters depend on arguments.
func (t *Threads) call(w *Warp, i int, in *loader.Instr, run func()) {
	d, ln := t.depends, &w.lanes[i]
	args := make([]uint64, len(in.ArgOps))
	all := uint64(0)
	for k := range in.ArgOps {
		switch o := &in.ArgOps[k]; o.Kind {
		case isa.Reg:
			args[k] = *d.reg(ln, o.Reg)
		case isa.ParamAddr:
			n := ln.code.Func.ParamFrame - int(o.Imm)
			if in.Callee != nil && k < len(in.Callee.Sig.Params) {
				n = in.Callee.Sig.Params[k].Size
			}
			args[k] = union(d.param[int(ln.paramAt)+int(o.Imm):][:n])
		}
		all |= args[k]
	}
	depth := ln.depth
	run()
	d.fit(ln)
	if ln.depth == depth { // a builtin function
		t.returned(ln, in, func(int) uint64 { return all })
		return
	}
	fn := ln.code.Func
	fill(d.regs[ln.regAt:], 0)
	fill(d.local[ln.localAt:], 0)
	for k := range fn.Sig.Params {
		if p := &fn.Sig.Params[k]; p.Off < 0 {
			*d.reg(ln, p.Reg) = args[k]
		} else {
			fill(d.param[int(ln.paramAt)+p.Off:][:p.Size], args[k])
		}
	}
	for _, s := range fn.Spills {
		copy(d.local[int(ln.localAt)+s.Local:][:s.Size], d.param[int(ln.paramAt)+s.Param:][:s.Size])
	}
}

// ret handles a return: the results of the call depend on those of the function.
func (t *Threads) ret(w *Warp, i int, run func()) {
	d, ln := t.depends, &w.lanes[i]
	fn := ln.code.Func
	sets := make([]uint64, len(fn.Sig.Rets))
	for k := range fn.Sig.Rets {
		if p := &fn.Sig.Rets[k]; p.Off < 0 {
			sets[k] = *d.reg(ln, p.Reg)
		} else {
			sets[k] = union(d.param[int(ln.paramAt)+p.Off:][:p.Size])
		}
	}
	run()
	t.returned(ln, &ln.code.Insts[ln.pc-1], func(k int) uint64 { return sets[k] })
}

// returned sets what the results of a call depend on.
func (t *Threads) returned(ln *lane, call *loader.Instr, set func(k int) uint64) {
	for k := range call.RetOps {
		switch o := &call.RetOps[k]; o.Kind {
		case isa.Reg:
			*t.depends.reg(ln, o.Reg) = set(k)
		case isa.ParamAddr:
			fill(t.depends.param[int(ln.paramAt)+int(o.Imm):][:call.CallSig.Rets[k].Size], set(k))
		}
	}
}

// encode appends the sets of what a lane may still read. frames selects registers and parameters as for the values.
func (d *depends) encode(b []byte, ln *lane, frames func(f func(f *frame, live []uint64))) []byte {
	word := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	entry := func(at int, s uint64) {
		if s != 0 {
			word(uint64(at))
			word(s)
		}
	}
	word(d.control)
	word(d.reads)
	frames(func(f *frame, live []uint64) {
		fn := f.code.Func
		for i := range fn.Regs {
			if live[i>>6]>>(i&63)&1 != 0 {
				entry(int(f.regAt)+i, d.regs[int(f.regAt)+i])
			}
		}
	})
	word(^uint64(0))
	frames(func(f *frame, live []uint64) {
		fn := f.code.Func
		for i := range fn.ParamFrame {
			if k := fn.Regs + i; live[k>>6]>>(k&63)&1 != 0 {
				entry(int(f.paramAt)+i, d.param[int(f.paramAt)+i])
			}
		}
	})
	word(^uint64(0))
	for i, s := range d.local[:int(ln.localAt)+ln.code.Func.LocalFrame] {
		entry(i, s)
	}
	word(^uint64(0))
	return b
}

// decode reads what encode has written.
func (d *depends) decode(ln *lane, b []byte) {
	d.fit(ln)
	clear(d.regs)
	clear(d.param)
	clear(d.local)
	word := func() uint64 {
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return v
	}
	d.control, d.reads = word(), word()
	for _, sets := range [][]uint64{d.regs, d.param, d.local} {
		for at := word(); at != ^uint64(0); at = word() {
			sets[at] = word()
		}
	}
}
