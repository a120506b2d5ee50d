package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// tlb caches the allocation that the accesses at a place used last.
type tlb struct {
	epoch uint64
	block [64]*devmem.Block
}

// access is what the lanes of a warp step accessed, for its events.
type access struct {
	Global, Shared uint32 // lanes, by space
	local          uint32 // used by Driven, which clears it
	Addr           [32]uint64
	Value          [32][4]uint64 // written values, when needed
	Old            [32][4]uint64 // previous values, when needed
	size           uint8         // size in bytes of the elements at addr that the lanes access; 0: all that the instruction accesses
}

// Load executes ld for the lanes of on. A faulting lane reads 0.
func (r *Run) Load(w *Warp, in *loader.Instr, on uint32, place uint32) uint64 {
	acc := &r.Access
	acc.Global, acc.Shared = 0, 0
	signed := in.Type.Signed()
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		data := r.reach(w, i, in, place, event.FlagRead)
		for _, d := range in.Results {
			v := uint64(0)
			if data != nil {
				v = devmem.Uint(data[uint64(d.At)*in.Piece:], in.Piece)
			}
			if signed {
				v = in.Type.Extend(v, in.Dst[d.At].Size)
			}
			r.Machine.Put(w, i, d, v)
		}
	}
	if in.Order != event.Weak {
		r.narrow(w, in, place)
	}
	r.Out.accesses(event.Load, event.FlagRead, w, in, place, acc)
	acc.size = 0
	if in.Order != event.Weak {
		w.Polls++
		return pollCost
	}
	return 1
}

// Store executes st for the lanes of on, lowest first. A faulting lane writes nothing.
func (r *Run) Store(w *Warp, in *loader.Instr, on uint32, place uint32) {
	acc := &r.Access
	acc.Global, acc.Shared = 0, 0
	values, olds := r.Out.Needs&event.NeedValues != 0, r.Out.Olds()
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		data := r.reach(w, i, in, place, event.FlagWrite)
		if data == nil {
			continue
		}
		if olds {
			r.noteOld(w, i, data)
		}
		for k := 0; uint64(k)*in.Piece < in.Width; k++ {
			devmem.PutUint(data[uint64(k)*in.Piece:][:in.Piece], r.Machine.Value(w, i, &in.Operands[1+k]))
		}
		if values {
			acc.Value[i] = wordsOf(data)
		}
	}
	if acc.Global|acc.Shared != 0 {
		w.Writes++
	}
	r.Out.accesses(event.Store, event.FlagWrite, w, in, place, acc)
}

// LaneOrder returns the lanes of on that execute an atomic operation first, and those that follow; 0: none. The lanes
// act lowest first, except that in schedule Contended some of the upper lanes go first: the order is not defined, and
// the last lane observes all others.
func (r *Run) LaneOrder(w *Warp, on, place uint32) (first, second uint32) {
	if r.Launch.Schedule != Contended || r.Launch.Seed != 0 || on&(on-1) == 0 {
		return on, 0
	}
	g := newRNG(uint64(w.Number)<<32 ^ uint64(place))
	first = on
	for range 1 + g.below(bits.OnesCount32(on)-1) {
		first &= first - 1
	}
	return first, on &^ first
}

// Atomic executes atom and red for the lanes of on, lowest first, and gives the cost: an operation that changes nothing
// may be a poll.
func (r *Run) Atomic(w *Warp, in *loader.Instr, on uint32, place uint32) uint64 {
	acc := &r.Access
	acc.Global, acc.Shared = 0, 0
	values, before := r.Out.Needs&event.NeedValues != 0, r.Out.Olds()
	changed, failed := false, uint32(0)
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		data := r.reach(w, i, in, place, event.FlagRead|event.FlagWrite)
		if data == nil {
			for _, d := range in.Results {
				r.Machine.Put(w, i, d, 0)
			}
			continue
		}
		if before {
			r.noteOld(w, i, data)
		}
		var olds [8]uint64
		pieces := int(in.Width / in.Piece)
		for k := range pieces {
			olds[k] = devmem.Uint(data[uint64(k)*in.Piece:], in.Piece)
			if in.Op == isa.OpCas && LowBytes(r.Machine.Value(w, i, &in.Operands[1+k]), in.Piece) != olds[k] {
				failed |= 1 << i
			}
		}
		for k := range pieces {
			if failed>>i&1 != 0 {
				break // all pieces of a comparison or none
			}
			b, c := r.Machine.Value(w, i, &in.Operands[1+k]), uint64(0)
			if in.Op == isa.OpCas {
				c = r.Machine.Value(w, i, &in.Operands[1+pieces+k])
			}
			at := data[uint64(k)*in.Piece:][:in.Piece]
			devmem.PutUint(at, in.RMW(in.Inst, olds[k], b, c))
			changed = changed || devmem.Uint(at, in.Piece) != olds[k]
		}
		for _, d := range in.Results {
			r.Machine.Put(w, i, d, in.Type.Extend(olds[d.At], in.Dst[d.At].Size))
		}
		if values {
			acc.Value[i] = wordsOf(data)
		}
	}
	r.narrow(w, in, place)
	r.Out.Atomics(w, in, place, acc, failed)
	acc.size = 0
	if changed {
		w.Writes++
	} else if len(in.Dst) > 0 {
		w.Polls++
		return pollCost
	}
	return 1
}

// noteOld records the bytes that lane i, which has just been resolved, will overwrite.
func (r *Run) noteOld(w *Warp, i int, data []byte) {
	if len(data) >= 4 {
		r.Access.Old[i] = wordsOf(data)
		return
	}
	addr := r.Access.Addr[i]
	if r.Access.Shared>>i&1 != 0 {
		of, _, _ := w.CTA.owner(addr)
		r.Access.Old[i] = [4]uint64{Around(of.Shared, addr&(1<<event.PeerShift-1), 0)}
	} else if r.Access.Global>>i&1 != 0 {
		b := r.Memory.Lookup(addr)
		r.Access.Old[i] = [4]uint64{Around(b.Data, addr-b.Addr, b.Addr)}
	}
}

// Around returns the four bytes around data[at], aligned by address. data begins at address origin; bytes outside of it
// are zero.
func Around(data []byte, at, origin uint64) (v uint64) {
	first := (origin+at)&^3 - origin // may be before the beginning
	for i := range uint64(4) {
		if first+i < uint64(len(data)) {
			v |= uint64(data[first+i]) << (8 * i)
		}
	}
	return v
}

// wordsOf converts up to 32 bytes to words.
func wordsOf(data []byte) (v [4]uint64) {
	for k := 0; k < len(data); k += 8 {
		v[k/8] = devmem.Uint(data[k:], uint64(min(8, len(data)-k)))
	}
	return v
}

// reach returns the bytes that in accesses for a lane, and records the address for events. It returns nil after a
// fault.
func (r *Run) reach(w *Warp, lane int, in *loader.Instr, place uint32, flags event.Flags) []byte {
	return r.reachAt(w, lane, in, place, flags, r.Machine.Value(w, lane, &in.Operands[0])+in.Offset)
}

// reachAt is reach for an address of the instruction's space.
func (r *Run) reachAt(w *Warp, lane int, in *loader.Instr, place uint32, flags event.Flags, addr uint64) []byte {
	space := in.Space
	if space == event.Generic {
		space, addr = SplitGeneric(addr)
	}
	var data []byte
	var kind FaultKind
	switch space {
	case event.Global, event.Const:
		if data, kind = r.global(addr, in, flags, place); kind == "" {
			r.Access.Addr[lane] = addr
			if space == event.Global {
				r.Access.Global |= 1 << lane
			}
			return data
		}
	case event.Shared:
		var of *CTA
		if of, addr, kind = w.CTA.owner(addr); kind == "" {
			data, kind = sharedWindow(of, in, addr&(1<<event.PeerShift-1))
		}
		if kind == "" {
			r.reaches(w, of, lane, place)
			if at := addr & (1<<event.PeerShift - 1); in.VarEnd != 0 && (at < in.VarBegin || at+in.Width > in.VarEnd) {
				r.Faults.beside(r, w, lane, place, touch{flags, space, at, in.Width}, in.Object)
			}
			r.Access.Addr[lane] = addr
			r.Access.Shared |= 1 << lane
			return data
		}
	case event.Local:
		if data, kind = window(r.Machine.Local(w, lane), addr, in.Width); kind == "" {
			r.Access.Addr[lane] = addr
			r.Access.local |= 1 << lane
			return data
		}
	case event.Param:
		if data = r.Machine.ParamBytes(w, lane, in, addr); data != nil {
			return data
		}
		kind = OutOfBounds
	default: // a generic address in no window
		kind = OutOfBounds
	}
	r.Faults.access(r, kind, w, lane, place, touch{flags, space, addr, in.Width})
	return nil
}

// SplitGeneric returns the space of a generic address, and the address in it.
func SplitGeneric(addr uint64) (event.Space, uint64) {
	switch addr >> loader.WindowShift {
	case 0:
		return event.Global, addr
	case loader.SharedWindow >> loader.WindowShift:
		return event.Shared, addr &^ (0xff << loader.WindowShift)
	case loader.LocalWindow >> loader.WindowShift:
		return event.Local, addr &^ (0xff << loader.WindowShift)
	case loader.ParamWindow >> loader.WindowShift:
		return event.Param, addr &^ (0xff << loader.WindowShift)
	}
	return event.Generic, addr
}

// window returns n bytes at offset off of a shared or local window.
func window(bytes []byte, off, n uint64) ([]byte, FaultKind) {
	if off > uint64(len(bytes)) || n > uint64(len(bytes))-off {
		return nil, OutOfBounds
	}
	if off&(n-1) != 0 {
		return nil, Misaligned
	}
	return bytes[off : off+n : off+n], ""
}

// sharedWindow returns the bytes of a block's shared memory that in accesses at offset off.
func sharedWindow(of *CTA, in *loader.Instr, off uint64) ([]byte, FaultKind) {
	bytes := of.Shared
	if size := uint64(len(bytes)); in.Word && off < size && size-off < in.Width {
		bytes = bytes[:(size+3)&^3] // newCTA reserved these bytes
	}
	return window(bytes, off, in.Width)
}

// global returns the bytes of global memory that in accesses at addr.
func (r *Run) global(addr uint64, in *loader.Instr, flags event.Flags, place uint32) ([]byte, FaultKind) {
	data, kind := r.globalBytes(addr, in.Width, in, flags, place)
	if kind == "" && addr&(in.Width-1) != 0 {
		return nil, Misaligned
	}
	return data, kind
}

// globalBytes returns n bytes of global memory at addr, checking the address.
func (r *Run) globalBytes(addr, n uint64, in *loader.Instr, flags event.Flags, place uint32) ([]byte, FaultKind) {
	if e := r.Memory.Epoch(); e != r.tlb.epoch {
		r.tlb = tlb{epoch: e}
	}
	b := r.tlb.block[place%64]
	if b == nil || !b.Covers(addr) {
		if b = r.Memory.Lookup(addr); b == nil {
			if r.Memory.IsShut(addr) {
				return nil, UseAfterFree
			}
			if _, hidden := r.Memory.Hidden(addr); hidden {
				return nil, NoPeerAccess
			}
			return nil, OutOfBounds
		}
		r.tlb.block[place%64] = b
	}
	r.Meets(b, in)
	off := addr - b.Addr
	switch {
	case b.Freed:
		return nil, UseAfterFree
	case in.Word && off < b.Size && addr&(n-1) == 0 && off+n <= uint64(cap(b.Data)): // allocations are more than a word apart
	case off > b.Size || n > b.Size-off:
		return nil, OutOfBounds
	case b.Const && flags&event.FlagWrite != 0:
		return nil, ReadOnly
	}
	return b.Data[off : off+n : off+n], ""
}

// LowBytes returns the low n bytes of v.
func LowBytes(v, n uint64) uint64 {
	if n >= 8 {
		return v
	}
	return v & (1<<(8*n) - 1)
}
