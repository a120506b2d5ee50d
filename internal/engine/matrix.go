package engine

import (
	"fmt"
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// ReadRows reads the rows whose addresses lanes of on pass to ldmatrix, as arguments of Inst.Lanes. Each is an ordinary
// load of 16 bytes. A faulting lane reads 0.
func (r *Run) ReadRows(w *Warp, on uint32, in *loader.Instr, place uint32) {
	acc, x := &r.Access, &r.WarpArgs
	acc.Global, acc.Shared = 0, 0
	for m := on & in.Rows(); m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		x.S[0][i], x.S[1][i] = 0, 0
		if !r.inShared(w, i, in, place, r.Machine.Value(w, i, &in.Operands[0])+in.Offset) {
			continue
		}
		if row := r.reach(w, i, in, place, event.FlagRead); row != nil {
			x.S[0][i], x.S[1][i] = devmem.Uint(row, 8), devmem.Uint(row[8:], 8)
		}
	}
	r.Out.accesses(event.Load, event.FlagRead, w, in, place, acc)
}

// tileAddress returns the address of a lane's piece in a round. For lanes beyond the last piece it does not matter.
func (r *Run) tileAddress(w *Warp, in *loader.Instr, lane, round int) uint64 {
	addr := r.Machine.Value(w, lane, &in.Operands[0]) + uint64(in.Off)
	if in.Tiles.Given {
		return addr
	}
	return addr + in.Tiles.At(round, lane, r.Machine.Value(w, lane, &in.Operands[len(in.Operands)-2])&0xffff_ffff)
}

// ReadTile reads the pieces of a matrix for lanes of on, as arguments of Inst.Lanes. A faulting lane reads 0.
func (r *Run) ReadTile(w *Warp, on uint32, in *loader.Instr, place uint32) {
	acc, x, t := &r.Access, &r.WarpArgs, in.Tiles
	for round := range t.Rounds() {
		acc.Global, acc.Shared = 0, 0
		for m := on & t.Lanes(round); m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			data := r.reachAt(w, i, in, place, event.FlagRead, r.tileAddress(w, in, i, round))
			for k := range 2 {
				x.S[2*round+k][i] = 0
				if data != nil && uint64(8*k) < t.Piece {
					x.S[2*round+k][i] = devmem.Uint(data[8*k:], min(t.Piece, 8))
				}
			}
		}
		r.Out.accesses(event.Load, event.FlagRead, w, in, place, acc)
	}
}

// WriteTile writes the pieces of a matrix, results of Inst.Lanes, for lanes of on. A faulting lane writes nothing.
func (r *Run) WriteTile(w *Warp, on uint32, in *loader.Instr, place uint32) {
	acc, x, t := &r.Access, &r.WarpArgs, in.Tiles
	values, olds := r.Out.Needs&event.NeedValues != 0, r.Out.Olds()
	for round := range t.Rounds() {
		acc.Global, acc.Shared = 0, 0
		for m := on & t.Lanes(round); m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			if t.Given && !r.inShared(w, i, in, place, r.tileAddress(w, in, i, round)) {
				continue
			}
			data := r.reachAt(w, i, in, place, event.FlagWrite, r.tileAddress(w, in, i, round))
			if data == nil {
				continue
			}
			if olds {
				r.noteOld(w, i, data)
			}
			for k := 0; uint64(8*k) < t.Piece; k++ {
				devmem.PutUint(data[8*k:min(t.Piece, uint64(8*k+8))], x.D[2*round+k][i])
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
}

// inShared reports whether the address that a lane passes to a matrix instruction is in shared memory. A generic
// address elsewhere is a fault.
func (r *Run) inShared(w *Warp, lane int, in *loader.Instr, place uint32, addr uint64) bool {
	space := in.Space
	if space == event.Generic {
		space, _ = SplitGeneric(addr)
	}
	if space == event.Shared {
		return true
	}
	doing := "reads"
	switch in.Class {
	case isa.Tile:
		doing = "writes"
	case isa.Mbarrier:
		doing = "updates"
	}
	r.Faults.At(r, OutOfBounds, w, lane, place, doing, "lane %d gives address %#x to %s, which is not one of shared memory", lane, addr, in.Mnemonic())
	return false
}

// whole counts a matrix instruction that needs all 32 lanes but is executed by those of on, which are all live lanes.
// It sets the inputs of the others to zero.
func (r *Run) whole(w *Warp, on uint32, in *loader.Instr, place uint32) {
	x, lack := &r.WarpArgs, ^on
	if !in.Row.Whole || lack == 0 {
		return
	}
	for m := lack; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		for k := range max(len(in.Operands), 4) { // a Tile has four words
			x.S[k][i] = 0
		}
	}
	r.incomplete(w, in, on, place)
}

// incomplete counts an instruction that needs all 32 lanes of a warp but is executed by those of on, which are all live
// lanes.
func (r *Run) incomplete(w *Warp, in *loader.Instr, on, place uint32) {
	lack := ^on
	fault, fresh := r.Faults.count(r, WarpDivergence, place, false)
	if !fresh {
		return
	}
	stand := func(lane int, place uint32, doing string, threads int) {
		fault.Stands = append(fault.Stands, Stand{Place: place, Block: w.CTA.id, Thread: w.tid(lane), Threads: threads, Doing: doing})
	}
	stand(bits.TrailingZeros32(on), place, "executes "+in.Mnemonic(), bits.OnesCount32(on))
	threads := w.CTA.Threads - 32*w.Index
	why := fmt.Sprintf("the warp has %d threads", threads)
	if gone := lack & uint32(uint64(1)<<min(threads, 32)-1); gone != 0 {
		i := bits.TrailingZeros32(gone)
		why = fmt.Sprintf("lanes %#x have exited", gone)
		stand(i, r.Machine.Place(w, i), "exited", bits.OnesCount32(gone))
	}
	fault.Message = fmt.Sprintf("%s needs all 32 lanes of a warp, but %s: its result is undefined", in.Mnemonic(), why)
}
