package instrument

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// matrixRow is the number of bytes that a lane reads for ldmatrix.
const matrixRow = 16

// pieceBytes returns the number of bytes that a lane accesses at a time. For an asynchronous copy it is the number that
// the lane writes.
func pieceBytes(in *isa.Inst) uint64 {
	switch in.Class {
	case isa.Matrix:
		return matrixRow
	case isa.Tile:
		return in.Tiles.Piece
	}
	return uint64(in.Type.Size()) * uint64(max(in.Vec, 1))
}

// copied is what a lane has logged about an asynchronous copy before it issues the copy.
type copied struct {
	partly   bool   // it reads size bytes, which are fewer than it writes
	size, to uint64 // to is an address in shared memory
}

// copy makes the events of asynchronous copies that lanes issue. The reads are in pieces whose sizes are powers of two,
// the largest first. The writes follow. A copy with invalid addresses makes no events.
func (e *Events) copy(r *Record, in *isa.Inst, w *warpState, lanes, place uint32) {
	size := uint64(in.Type.Size())
	v := event.Event{Warp: r.Warp, Place: place, Order: in.Order, Scope: in.Scope, Kind: event.Load, Flags: event.FlagRead | event.FlagAsync, Space: event.Global}
	to := &Record{Warp: r.Warp}
	from := &Record{Warp: r.Warp, Values: r.Values}
	var sizes [5]uint32 // by size, as powers of two from 1 on: the lanes that read a piece of that size
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		x := w.copies[l]
		w.copies[l] = copied{}
		n := size
		if x.partly && x.size < size {
			n = x.size
		}
		to.Values[l] = x.to
		wrong := !e.l.Shared(in, x.to, size) || n > 0 && !(r.Values[l]&(size-1) == 0 && e.l.Global(in, r.Values[l], 1) && e.l.Global(in, r.Values[l]+n-1, 1))
		if wrong || e.unchecked(in, w, l, event.Shared, x.to, size) {
			lanes &^= 1 << l
			continue
		}
		for k := range sizes {
			if n>>k&1 != 0 {
				sizes[k] |= 1 << l
			}
		}
	}
	for k := len(sizes) - 1; k >= 0 && e.l.Needs&event.NeedGlobal != 0; k-- {
		v.Size = 1 << k
		e.lanes(from, v, sizes[k])
		for m := sizes[k]; m != 0; m &= m - 1 {
			from.Values[bits.TrailingZeros32(m)] += 1 << k
		}
	}
	if e.l.Needs&event.NeedShared != 0 {
		v.Kind, v.Flags, v.Space, v.Size = event.Store, event.FlagWrite|event.FlagAsync, event.Shared, uint8(size)
		e.lanes(to, v, lanes)
	}
}

// tile makes the events of a matrix that lanes load or store together, piece by piece. The PTX manual does not define
// which lane accesses which piece. The events assign the pieces as the emulator does.
func (e *Events) tile(r *Record, in *isa.Inst, w *warpState, lanes uint32, v event.Event) {
	t := in.Tiles
	v.Kind, v.Flags, v.Size = event.Load, event.FlagRead, uint8(t.Piece)
	if t.Store {
		v.Kind, v.Flags = event.Store, event.FlagWrite
	}
	if t.Piece != t.Element {
		v.Flags, v.Aux = v.Flags|event.FlagVector, uint32(t.Element)
	}
	for round := range t.Rounds() {
		x := &Record{Warp: r.Warp, Values: r.Values}
		for m := lanes; m != 0 && !t.Given; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			stride := w.stride[l]
			if s := in.TileStride(); s.Kind != isa.Reg {
				stride = s.Imm
			}
			x.Values[l] += t.At(round, l, stride)
		}
		e.lanes(x, v, e.told(&v, in, w, &x.Values, lanes&t.Lanes(round)))
	}
}

// copyWait makes the events of waits for groups of copies: one event for all lanes with the same number of groups.
func (e *Events) copyWait(r *Record, in *isa.Inst, w *warpState, lanes, place uint32) {
	if in.Op == isa.OpWaitAll {
		e.sync(event.Event{Kind: event.CopyCommit, Warp: w.number, Mask: lanes, Place: place})
	}
	for lanes != 0 {
		n, same := r.Values[bits.TrailingZeros32(lanes)], uint32(0)
		for m := lanes; m != 0; m &= m - 1 {
			if l := bits.TrailingZeros32(m); r.Values[l] == n {
				same |= 1 << l
			}
		}
		lanes &^= same
		e.sync(event.Event{Kind: event.CopyWait, Warp: w.number, Mask: same, Place: place, Aux: uint32(n)})
	}
}
