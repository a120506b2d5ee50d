package engine

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// placeElements prepares engine ref for the elements of its kernel. The element of an access is at the address that the
// lane's last execution of the aligning instruction started from.
func (r *Run) placeElements() {
	r.elements = r.Image.ElementsOf(r.Launch.Func).At(r.Places.Site)
}

// aligned is an address that a lane aligned by an instruction (opt.Placed), in a call of a depth.
type aligned struct {
	number, depth int32
	addr          uint64
}

// aligned returns what the lane has noted of an instruction in the call that is level above its own; nil if there is
// nothing.
func (ln *lane) aligned(number, level int) *aligned {
	i := slices.IndexFunc(ln.elements, func(x aligned) bool { return int(x.number) == number && int(ln.depth-x.depth) == level })
	if i < 0 {
		return nil
	}
	return &ln.elements[i]
}

// noteBase records the addresses that the lanes of on align, for accesses to elements.
func (r *Run) noteBase(w *Warp, in *loader.Instr, on uint32, place uint32) {
	k, level, ok := r.elements.Base(place)
	if !ok {
		return
	}
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		ln, addr := &w.lanes[i], r.value(w, i, &in.Operands[0])
		if x := ln.aligned(k, level); x != nil {
			x.addr = addr
		} else {
			ln.elements = append(ln.elements, aligned{int32(k), ln.depth - int32(level), addr})
		}
	}
}

func (m refMachine) Element(w *Warp, lane int, _ *loader.Instr, place uint32) (addr uint64, size uint8) {
	if m.r.elements == nil {
		return 0, 0
	}
	e, level, ok := m.r.elements.Access(place)
	x := w.lanes[lane].aligned(e.Base, level)
	if !ok || x == nil {
		return 0, 0
	}
	return x.addr, e.Size
}

// partOf returns the offset and the size of the element within the word that a lane accesses; size 0 if it accesses the
// whole word, or if the element is not aligned.
func (r *Run) partOf(w *Warp, lane int, in *loader.Instr, place uint32) (at uint64, size uint8) {
	addr, size := r.Machine.Element(w, lane, in, place)
	if at = addr & (in.Width - 1); size == 0 || at%uint64(size) != 0 || at+uint64(size) > in.Width {
		return 0, 0
	}
	return at, size
}

// narrow reduces a request for a word to the element that the lane accesses. Bytes are locations. What others do to the
// surrounding bytes can make a swap fail and be repeated, but has no other effect.
func (q *Request) narrow(r *Run, w *Warp, lane int, in *loader.Instr, place uint32) {
	if at, n := r.partOf(w, lane, in, place); n != 0 {
		q.Addr, q.Size = q.Addr+at, n
		q.Value, q.Swap = LowBytes(q.Value>>(8*at), uint64(n)), LowBytes(q.Swap>>(8*at), uint64(n))
	}
}

// around returns the word with a new value of the element that a lane accesses. The surrounding bytes, which the access
// writes back unchanged, are those that the swap compares with.
func (r *Run) around(w *Warp, i int, in *loader.Instr, place uint32, value uint64) uint64 {
	at, n := r.partOf(w, i, in, place)
	if n == 0 {
		return value
	}
	rest := uint64(0)
	if in.Class == isa.Atomic {
		rest = LowBytes(r.value(w, i, &in.Operands[1]), in.Width) &^ (LowBytes(^uint64(0), uint64(n)) << (8 * at))
	}
	return value<<(8*at) | rest
}

// narrow reduces what the lanes accessed to the elements, if all lanes access one.
func (r *Run) narrow(w *Warp, in *loader.Instr, place uint32) {
	acc := &r.Access
	all := acc.Global | acc.Shared
	if all == 0 {
		return
	}
	var at [32]uint64 // offset in the word
	var size uint8
	for m := all; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if at[i], size = r.partOf(w, i, in, place); size == 0 {
			return
		}
	}
	acc.size = size
	values := r.Out.Needs&event.NeedValues != 0
	for m := all; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		acc.Addr[i] += at[i]
		if values { // the old values remain the four bytes around: see event.Batch.OldOf
			acc.Value[i] = [4]uint64{LowBytes(acc.Value[i][0]>>(8*at[i]), uint64(size))}
		}
	}
}
