package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// refElement is an opt.Element as engine ref finds it.
type refElement struct {
	base int // index in lane.elements
	size uint8
}

// placeElements prepares engine ref for the elements of its kernel. The element of an access lies where the instruction that
// aligned its address, when the lane executed it last, took it from.
func (r *Run) placeElements() {
	of := r.Image.ElementsOf(r.Launch.Func)
	if len(of.List) == 0 || r.Launch.Sink == nil {
		return
	}
	var base func(call int32, fn *isa.Func) uint32
	base = func(call int32, fn *isa.Func) uint32 {
		if call < 0 {
			return r.Root
		}
		s := &of.Sites[call]
		return r.Places.Enter(base(s.Call, s.Fn)+uint32(s.At), fn)
	}
	place := func(site int32) uint32 {
		s := &of.Sites[site]
		return base(s.Call, s.Fn) + uint32(s.At)
	}
	r.elements, r.bases = map[uint32]refElement{}, map[uint32]int{}
	for _, e := range of.List {
		at := place(e.Base)
		if _, ok := r.bases[at]; !ok {
			r.bases[at] = len(r.bases)
		}
		r.elements[place(e.Access)] = refElement{r.bases[at], e.Size}
	}
}

// noteBase keeps the addresses that the lanes of on align, where accesses to elements need them.
func (r *Run) noteBase(w *Warp, in *loader.Instr, on uint32, place uint32) {
	k, ok := r.bases[place]
	if !ok {
		return
	}
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		ln := &w.lanes[i]
		if ln.elements == nil {
			ln.elements = make([]uint64, len(r.bases))
		}
		ln.elements[k] = r.value(w, i, &in.Operands[0])
	}
}

func (m refMachine) Element(w *Warp, lane int, _ *loader.Instr, place uint32) (addr uint64, size uint8) {
	e, ok := m.r.elements[place]
	ln := &w.lanes[lane]
	if !ok || ln.elements == nil {
		return 0, 0
	}
	return ln.elements[e.base], e.size
}

// narrow makes what the lanes accessed the elements that they mean. An element that is not aligned leaves all as it
// is.
func (r *Run) narrow(w *Warp, in *loader.Instr, place uint32) {
	acc := &r.Access
	all := acc.Global | acc.Shared
	if all == 0 {
		return
	}
	var at [32]uint64 // in the word
	var size uint8
	for m := all; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		addr, n := r.Machine.Element(w, i, in, place)
		at[i] = addr & (in.Width - 1)
		if n == 0 || at[i]%uint64(n) != 0 || at[i]+uint64(n) > in.Width {
			return
		}
		size = n
	}
	acc.size = size
	values := r.Out.Needs&event.NeedValues != 0
	for m := all; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		acc.Addr[i] += at[i]
		if values { // the old ones stay the four bytes around: see event.Batch.OldOf
			acc.Value[i] = [4]uint64{LowBytes(acc.Value[i][0]>>(8*at[i]), uint64(size))}
		}
	}
}
