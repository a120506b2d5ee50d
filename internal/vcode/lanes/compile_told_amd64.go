package lanes

import "fencepost.dev/fencepost/internal/codegen/amd64"

// The code logs accesses as Regs.tell does.

// noteHead logs the access at the place r (less Origin), if it is to be logged. The code jumps to full if the Log has
// no room. R12 points to the accesses. CX is lost.
func (t *translator) noteHead(o *Op, r amd64.Reg, full *amd64.Label) {
	if !t.told {
		return
	}
	var quiet amd64.Label
	t.MI(amd64.CMP, true, amd64.Mem{Base: amd64.R12, Disp: o.B + toldAt}, 0)
	t.JumpIf(amd64.Equal, &quiet)
	t.Load(8, false, amd64.R12, amd64.Mem{Base: amd64.R10, Disp: logAt})
	t.Load(8, false, amd64.CX, amd64.Mem{Base: amd64.R12})
	t.RI(amd64.CMP, true, amd64.CX, int32(len(Log{}.List)))
	t.JumpIf(amd64.Equal, full)
	t.MI(amd64.ADD, true, amd64.Mem{Base: amd64.R12}, 1)
	t.ShiftI(amd64.SHL, true, amd64.CX, 4) // headSize
	head := amd64.Mem{Base: amd64.R12, Index: amd64.CX, Scale: 1, Disp: headsAt}
	t.Store(true, head, r)
	head.Disp += headImm
	t.StoreI(true, head, int32(o.Imm))
	t.Load(8, false, amd64.R12, amd64.Mem{Base: amd64.R10, Disp: reachAt})
	t.Bind(&quiet)
}

// noteRest writes f, with CX at the Told of the last logged access, for the case that this access is logged. R12 points
// to the accesses.
func (t *translator) noteRest(o *Op, f func()) {
	if !t.told {
		return
	}
	var quiet amd64.Label
	t.MI(amd64.CMP, true, amd64.Mem{Base: amd64.R12, Disp: o.B + toldAt}, 0)
	t.JumpIf(amd64.Equal, &quiet)
	t.Load(8, false, amd64.AX, amd64.Mem{Base: amd64.R10, Disp: logAt})
	t.Set(amd64.CX, uint64(toldSize))
	t.RM(amd64.IMUL, true, amd64.CX, amd64.Mem{Base: amd64.AX})
	t.Lea(amd64.CX, amd64.Mem{Base: amd64.AX, Index: amd64.CX, Scale: 1, Disp: listAt - toldSize})
	f()
	t.Bind(&quiet)
}

// noteValues copies the stored values, the register at from, to the Told at CX, and returns the place for the old
// values.
func (t *translator) noteValues(a *accessOp, from amd64.Mem) (before amd64.Mem) {
	to, n := amd64.Mem{Base: amd64.CX, Disp: values32At}, int32(128)
	before = amd64.Mem{Base: amd64.CX, Disp: before32At}
	if a.size == 8 {
		to.Disp, before.Disp, n = valuesAt, beforeAt, 256
	}
	t.copyBytes(to, from, n)
	return before
}

// copyBytes copies n bytes, a multiple of 16, and returns the place after them.
func (t *translator) copyBytes(to, from amd64.Mem, n int32) amd64.Mem {
	for n > 0 {
		t.V2M(amd64.VMOVDQU, n >= 32, 0, from)
		t.VStore(n >= 32, to, 0)
		by := min(n, 32)
		to.Disp, from.Disp, n = to.Disp+by, from.Disp+by, n-by
	}
	return to
}

// noteOffsets writes to the Told at CX the offsets of lanes whose addresses, of size bytes, are in the register at
// from.
func (t *translator) noteOffsets(o *Op, from amd64.Mem, size int) {
	t.V2M(amd64.VPBROADCASTQ, true, 1, amd64.Mem{Base: amd64.R12, Disp: o.B + originAt})
	for l := int32(0); l < 32; l += 4 {
		op := amd64.VMOVDQU
		if size == 4 {
			op = amd64.VPMOVZXDQ
		}
		t.V2M(op, true, 0, from)
		t.V3(amd64.VPSUBQ, true, 0, 0, 1)
		t.VStore(true, amd64.Mem{Base: amd64.CX, Disp: offsetsAt + 8*l}, 0)
		from.Disp += 4 * int32(size)
	}
}
