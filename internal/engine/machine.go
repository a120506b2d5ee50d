package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// Machine is the part that differs between engines: storing lanes and making them step. Memory, barriers, schedules,
// faults, events and builtin functions are shared.
type Machine interface {
	// Start puts the lanes of mask at the kernel's first instruction, in their initial state.
	Start(w *Warp, mask uint32)
	// Run runs w until its time is end, or it cannot step, or the run ends.
	Run(w *Warp, end uint64)
	// Turns gives a turn of n steps each to the first of some warps of a block, as many as it can handle by a fast
	// path; warps that cannot step are skipped. It returns the number of warps it has handled, and whether one of them
	// could step. A turn does not end before a strong access (Yields). When all warps have had a turn, it may give them
	// more, in as many passes as p allows.
	Turns(warps []*Warp, n uint64, p *Passes) (done int, ran bool)
	// Woken says that lanes of w can step again.
	Woken(w *Warp, mask uint32)
	// Place returns the place of a lane, and At the instruction there, which makes lanes wait.
	Place(w *Warp, lane int) uint32
	At(w *Warp, lane int) *loader.Instr
	// Hold keeps lanes at the instruction at place, which they are executing. Pass moves lanes that are at an
	// instruction to the next one.
	Hold(w *Warp, mask uint32, place uint32)
	Pass(w *Warp, mask uint32)
	// Value returns the value of an operand of the current instruction for a lane. Put sets a result for a lane.
	Value(w *Warp, lane int, o *loader.Operand) uint64
	Put(w *Warp, lane int, d loader.Slot, v uint64)
	// Argument returns size bytes (at most 8) of argument k of a call, from off on, a multiple of 4. Result sets the
	// result of the call for a lane.
	Argument(w *Warp, lane int, in *loader.Instr, k int, off, size uint64) uint64
	Result(w *Warp, lane int, in *loader.Instr, fn *isa.Func, v uint64)
	// Image returns a copy of the state of a warp, nil if states cannot be compared. alone reports whether all lanes
	// that can step run together. Still reports whether the warp has that state again.
	Image(w *Warp) (image any, alone bool)
	Still(w *Warp, image any) bool
	// Element returns the address and the size of the element that a lane accesses at place; size 0: none.
	Element(w *Warp, lane int, in *loader.Instr, place uint32) (addr uint64, size uint8)
	// Running returns the lanes of w that ran last.
	Running(w *Warp) uint32
	// Local returns a lane's local memory.
	Local(w *Warp, lane int) []byte
	// Wrote is called when a function supplied by the engine has written n bytes of local memory.
	Wrote(w *Warp, lane int, at, n uint64)
	// Met returns the lanes of mask that are where those of a split reconverge. Beside returns those that are at the
	// same place as a lane. Fallen returns those that are just after the instruction at which the warp diverged last.
	// They are for lockstep only.
	Met(w *Warp, s *Split, mask uint32) uint32
	Beside(w *Warp, mask uint32, lane int) uint32
	Fallen(w *Warp, mask uint32) uint32
	// ParamBytes returns the bytes of a parameter; nil if there is none.
	ParamBytes(w *Warp, lane int, in *loader.Instr, off uint64) []byte
}

// refMachine is the Machine of engine ref.
type refMachine struct{ r *Run }

func (m refMachine) Start(w *Warp, mask uint32) {
	if w.lanes == nil {
		w.lanes = make([]lane, 32)
	}
	for l := mask; l != 0; l &= l - 1 {
		i := bits.TrailingZeros32(l)
		w.lanes[i].start(m.r, w.tid(i))
		w.lanes[i].ran = 0
	}
}

func (m refMachine) Run(w *Warp, end uint64) {
	r := m.r
	for w.Time < end && w.Runnable() && r.Stop == nil {
		if w.Regroup {
			if w.choose(r); !w.Runnable() {
				break
			}
		}
		if ln := &w.lanes[w.lead]; ln.code.Insts[ln.pc].Strong() && r.GivesWay(w, end, &ln.code.Insts[ln.pc]) {
			break
		}
		r.step(w)
	}
}

func (m refMachine) Turns([]*Warp, uint64, *Passes) (done int, ran bool) { return 0, false }

func (m refMachine) Running(w *Warp) uint32 { return w.group }

func (m refMachine) Woken(w *Warp, mask uint32) {
	for l := mask; l != 0; l &= l - 1 {
		w.lanes[bits.TrailingZeros32(l)].ran = w.Strain
	}
}

func (m refMachine) Place(w *Warp, lane int) uint32 { return w.lanes[lane].place() }

func (m refMachine) At(w *Warp, lane int) *loader.Instr {
	ln := &w.lanes[lane]
	return &ln.code.Insts[ln.pc]
}

func (m refMachine) Hold(w *Warp, mask uint32, place uint32) {
	for l := mask; l != 0; l &= l - 1 {
		ln := &w.lanes[bits.TrailingZeros32(l)]
		ln.pc = int32(place - ln.base)
	}
}

func (m refMachine) Pass(w *Warp, mask uint32) {
	for l := mask; l != 0; l &= l - 1 {
		w.lanes[bits.TrailingZeros32(l)].pc++
	}
}

func (m refMachine) Value(w *Warp, lane int, o *loader.Operand) uint64 { return m.r.value(w, lane, o) }

func (m refMachine) Put(w *Warp, lane int, d loader.Slot, v uint64) { w.lanes[lane].regs[d.Reg] = v }

func (m refMachine) Argument(w *Warp, lane int, in *loader.Instr, k int, off, size uint64) uint64 {
	ln := &w.lanes[lane]
	return m.r.argument(ln, ln.regs, &ln.frame, in, k, off, size)
}

func (m refMachine) Result(w *Warp, lane int, in *loader.Instr, fn *isa.Func, v uint64) {
	ln := &w.lanes[lane]
	switch o := &in.RetOps[0]; o.Kind {
	case isa.ParamAddr:
		devmem.PutUint(ln.param[uint64(ln.paramAt)+o.Imm:][:fn.Sig.Rets[0].Size], v)
	case isa.Reg:
		ln.regs[o.Reg] = v
	}
}

func (m refMachine) Local(w *Warp, lane int) []byte {
	ln := &w.lanes[lane]
	return ln.local[:int(ln.localAt)+ln.code.Func.LocalFrame]
}

func (m refMachine) Wrote(*Warp, int, uint64, uint64) {}

// ParamBytes returns the bytes of a parameter of the kernel, or in the lane's parameter frame; nil if they are in
// neither.
func (m refMachine) ParamBytes(w *Warp, lane int, in *loader.Instr, off uint64) []byte {
	ln := &w.lanes[lane]
	params := m.r.Params
	if in.Space == event.Param && off >= uint64(ln.code.Params) {
		params = ln.param[ln.paramAt : int(ln.paramAt)+ln.code.Func.ParamFrame]
	}
	if off > uint64(len(params)) || in.Width > uint64(len(params))-off {
		return nil
	}
	return params[off : off+in.Width : off+in.Width]
}
