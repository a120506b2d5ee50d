package simt

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/simt/devmem"
	"fencepost.dev/fencepost/internal/simt/loader"
)

// machine is what an engine does its own way: keeping lanes and making them step. Memory, barriers, schedules, faults,
// events and builtin functions are common to the engines.
type machine interface {
	// start makes the lanes of mask stand at the kernel's first instruction, as new.
	start(w *warp, mask uint32)
	// run runs w until its time is end, it cannot step, or the run ends.
	run(w *warp, end uint64)
	// woken tells that lanes of w can step again.
	woken(w *warp, mask uint32)
	// place tells where a lane is, and at the instruction, which is one that makes lanes wait.
	place(w *warp, lane int) uint32
	at(w *warp, lane int) *loader.Instr
	// hold keeps lanes at the instruction at place, which they are executing; pass lets lanes that are at an instruction go
	// on to the next.
	hold(w *warp, mask uint32, place uint32)
	pass(w *warp, mask uint32)
	// value is what an operand of the instruction at hand is for a lane, put gives a lane a result of it.
	value(w *warp, lane int, o *loader.Operand) uint64
	put(w *warp, lane int, d loader.Slot, v uint64)
	// argument is bytes of argument k of a call, size of them, at most 8, from off on, a multiple of 4; result gives the lane the
	// call's result.
	argument(w *warp, lane int, in *loader.Instr, k int, off, size uint64) uint64
	result(w *warp, lane int, in *loader.Instr, fn *isa.Func, v uint64)
	// image copies what a warp holds, nil when that cannot be compared, and tells whether all lanes that can step run together;
	// still reports whether the warp holds that again.
	image(w *warp) (image any, alone bool)
	still(w *warp, image any) bool
	// element gives the address and size of the element that a lane's access, at place, means; size 0 for none.
	element(w *warp, lane int, in *loader.Instr, place uint32) (addr uint64, size uint8)
	// running gives the lanes of w that ran last.
	running(w *warp) uint32
	// local is a lane's local memory.
	local(w *warp, lane int) []byte
	// met gives the lanes of mask that are where those of a split meet again, beside those that are where one does, and
	// fallen those that are right behind the instruction at which the warp parted last. Lockstep only.
	met(w *warp, s *split, mask uint32) uint32
	beside(w *warp, mask uint32, lane int) uint32
	fallen(w *warp, mask uint32) uint32
	// paramBytes gives the bytes of a parameter, nil when it is none.
	paramBytes(w *warp, lane int, in *loader.Instr, off uint64) []byte
}

// refMachine is the machine of engine ref.
type refMachine struct{ r *run }

func (m refMachine) start(w *warp, mask uint32) {
	if w.lanes == nil {
		w.lanes = make([]lane, 32)
	}
	for l := mask; l != 0; l &= l - 1 {
		i := bits.TrailingZeros32(l)
		w.lanes[i].start(m.r, w.tid(i))
		w.lanes[i].ran = 0
	}
}

func (m refMachine) run(w *warp, end uint64) {
	r := m.r
	for w.time < end && w.runnable() && r.stop == nil {
		if w.regroup {
			if w.choose(r); !w.runnable() {
				break
			}
		}
		if ln := &w.lanes[w.lead]; ln.code.Insts[ln.pc].Strong() && r.givesWay(w, end) {
			break
		}
		r.step(w)
	}
}

func (m refMachine) running(w *warp) uint32 { return w.group }

func (m refMachine) woken(w *warp, mask uint32) {
	for l := mask; l != 0; l &= l - 1 {
		w.lanes[bits.TrailingZeros32(l)].ran = w.strain
	}
}

func (m refMachine) place(w *warp, lane int) uint32 { return w.lanes[lane].place() }

func (m refMachine) at(w *warp, lane int) *loader.Instr {
	ln := &w.lanes[lane]
	return &ln.code.Insts[ln.pc]
}

func (m refMachine) hold(w *warp, mask uint32, place uint32) {
	for l := mask; l != 0; l &= l - 1 {
		ln := &w.lanes[bits.TrailingZeros32(l)]
		ln.pc = int32(place - ln.base)
	}
}

func (m refMachine) pass(w *warp, mask uint32) {
	for l := mask; l != 0; l &= l - 1 {
		w.lanes[bits.TrailingZeros32(l)].pc++
	}
}

func (m refMachine) value(w *warp, lane int, o *loader.Operand) uint64 { return m.r.value(w, lane, o) }

func (m refMachine) put(w *warp, lane int, d loader.Slot, v uint64) { w.lanes[lane].regs[d.Reg] = v }

func (m refMachine) argument(w *warp, lane int, in *loader.Instr, k int, off, size uint64) uint64 {
	ln := &w.lanes[lane]
	return m.r.argument(ln, ln.regs, &ln.frame, in, k, off, size)
}

func (m refMachine) result(w *warp, lane int, in *loader.Instr, fn *isa.Func, v uint64) {
	ln := &w.lanes[lane]
	switch o := &in.RetOps[0]; o.Kind {
	case isa.ParamAddr:
		devmem.PutUint(ln.param[uint64(ln.paramAt)+o.Imm:][:fn.Sig.Rets[0].Size], v)
	case isa.Reg:
		ln.regs[o.Reg] = v
	}
}

func (m refMachine) local(w *warp, lane int) []byte {
	ln := &w.lanes[lane]
	return ln.local[:int(ln.localAt)+ln.code.Func.LocalFrame]
}

// paramBytes gives the bytes of a parameter: of the kernel, or of the lane's parameter frame. Nil when they lie in
// neither.
func (m refMachine) paramBytes(w *warp, lane int, in *loader.Instr, off uint64) []byte {
	ln := &w.lanes[lane]
	params := m.r.params
	if in.Space == event.Param && off >= uint64(ln.code.Params) {
		params = ln.param[ln.paramAt : int(ln.paramAt)+ln.code.Func.ParamFrame]
	}
	if off > uint64(len(params)) || in.Width > uint64(len(params))-off {
		return nil
	}
	return params[off : off+in.Width : off+in.Width]
}
