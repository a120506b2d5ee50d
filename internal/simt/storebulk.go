package simt

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/simt/loader"
)

// storePiece is the most bytes of st.bulk that one event tells of; the address and the number of all are multiples of storeUnit.
const (
	storePiece = 32
	storeUnit  = 8
)

// storeBulk executes st.bulk for the lanes of on: each writes zeros to bytes of shared memory.
func (r *run) storeBulk(w *warp, in *loader.Instr, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at, n, space := r.m.value(w, i, &in.Operands[0])+uint64(in.Off), r.m.value(w, i, &in.Operands[1]), in.Space
		if space != event.Shared {
			space, at = splitGeneric(at)
		}
		t := touch{event.FlagWrite, space, at, n}
		all := uint64(len(w.cta.shared))
		switch {
		case n%storeUnit != 0 || at%storeUnit != 0:
			r.faults.at(r, Misaligned, w, i, place, "writes", "%s is told to write %d bytes at address %#x: both must be multiples of %d", in.Mnemonic(), n, at, storeUnit)
			continue
		case space != event.Shared:
			r.faults.at(r, OutOfBounds, w, i, place, "writes", "st.bulk writes shared memory alone, and is given address %#x of %s memory", at, space)
			continue
		case at > all || n > all-at:
			r.faults.access(r, OutOfBounds, w, i, place, t)
			continue
		}
		r.tellZeros(w, i, in, at, w.cta.shared[at:][:n], place)
		clear(w.cta.shared[at:][:n])
	}
	w.writes++
}

// tellZeros makes the events of zeros that a lane writes over bytes of shared memory.
func (r *run) tellZeros(w *warp, lane int, in *loader.Instr, at uint64, before []byte, place uint32) {
	if r.out.needs&event.NeedShared == 0 {
		return
	}
	acc := &r.acc
	var zeros [storePiece]byte
	for len(before) > 0 {
		n := uint64(storePiece)
		for n > uint64(len(before)) || at%n != 0 {
			n /= 2
		}
		as := loader.Instr{Inst: in.Inst, Width: n}
		acc.addr[lane], acc.value[lane], acc.old[lane] = at, wordsOf(zeros[:n]), wordsOf(before[:n])
		r.out.access(event.Store, event.FlagWrite, w, &as, place, event.Shared, 1<<lane, acc)
		at, before = at+n, before[n:]
	}
}
