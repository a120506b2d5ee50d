package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
)

// storePiece is the greatest number of bytes of st.bulk in one event. The address and the total size are multiples of
// storeUnit.
const (
	storePiece = 32
	storeUnit  = 8
)

// storeBulk executes st.bulk for the lanes of on: each writes zeros to bytes of shared memory.
func (r *Run) storeBulk(w *Warp, in *loader.Instr, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at, n, space := r.Machine.Value(w, i, &in.Operands[0])+uint64(in.Off), r.Machine.Value(w, i, &in.Operands[1]), in.Space
		if space != event.Shared {
			space, at = SplitGeneric(at)
		}
		t := touch{event.FlagWrite, space, at, n}
		all := uint64(len(w.CTA.Shared))
		switch {
		case n%storeUnit != 0 || at%storeUnit != 0:
			r.Faults.At(r, Misaligned, w, i, place, "writes", "%s is told to write %d bytes at address %#x: both must be multiples of %d", in.Mnemonic(), n, at, storeUnit)
			continue
		case space != event.Shared:
			r.Faults.At(r, OutOfBounds, w, i, place, "writes", "st.bulk writes shared memory alone, and is given address %#x of %s memory", at, space)
			continue
		case at > all || n > all-at:
			r.Faults.access(r, OutOfBounds, w, i, place, t)
			continue
		}
		r.tellZeros(w, i, in, at, w.CTA.Shared[at:][:n], place)
		clear(w.CTA.Shared[at:][:n])
	}
	w.Writes++
}

// tellZeros emits the events of zeros that a lane writes to bytes of shared memory.
func (r *Run) tellZeros(w *Warp, lane int, in *loader.Instr, at uint64, before []byte, place uint32) {
	if r.Out.Needs&event.NeedShared == 0 {
		return
	}
	acc := &r.Access
	var zeros [storePiece]byte
	for len(before) > 0 {
		n := uint64(storePiece)
		for n > uint64(len(before)) || at%n != 0 {
			n /= 2
		}
		as := loader.Instr{Inst: in.Inst, Width: n}
		acc.Addr[lane], acc.Value[lane], acc.Old[lane] = at, wordsOf(zeros[:n]), wordsOf(before[:n])
		r.Out.access(event.Store, event.FlagWrite, w, &as, place, event.Shared, 1<<lane, acc)
		at, before = at+n, before[n:]
	}
}
