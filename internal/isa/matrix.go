package isa

import "fencepost.dev/fencepost/internal/event"

// matrixRows is the instructions of the manual's "Warp Level Matrix" chapter: those by which a warp moves 8x8 matrices of 16-bit
// elements together. A lane's fragment of a matrix is a 32-bit register, of two neighbouring elements of a row: lane i
// has those of row i/4 that begin at column 2*(i%4).
//
// The engine moves rows and Inst.Lanes elements: a row of 16 bytes belongs to the lane that gives its address, as two
// values of 64 bits, the lower half first.
var matrixRows = []*Row{
	{Op: "ldmatrix", Doc: "Warp Level Matrix: ldmatrix", Class: Matrix, Whole: true, Event: event.Load, Bind: bindLdmatrix, Forms: forms(
		".sync.aligned.m8n8.num{.trans}{.space}.b16 d:b32, [a]; num: x1 x2 x4; space: shared shared::cta"),
		Note: "All 32 lanes of a warp take part, none may have exited; a generic address must lie in shared memory."},
}

// allLanes is the member mask of an instruction that the whole warp executes.
const allLanes = 1<<32 - 1

// rowLanes is how many lanes give the addresses of a matrix, one for each of its rows.
const rowLanes = 8

// Rows are the lanes that give an address to a Matrix instruction: the first eight for its first matrix, and so on.
func (i *Inst) Rows() uint32 { return uint32(uint64(1)<<(rowLanes*i.Vec) - 1) }

// bindLdmatrix binds what a lane gets of the rows: sources 0 and 1 are the halves of the row that a lane has read.
func bindLdmatrix(in *Inst) {
	matrices, trans := int(in.Vec), in.Has("trans")
	in.Lanes = func(_ *Inst, w *WarpArgs) {
		for k := range matrices {
			element := func(row, col int) uint64 { return w.S[col/4][rowLanes*k+row] >> (16 * (col % 4)) & 0xffff }
			for l := range 32 {
				row, col := l/4, 2*(l%4)
				if trans {
					w.D[k][l] = element(col, row) | element(col+1, row)<<16
				} else {
					w.D[k][l] = element(row, col) | element(row, col+1)<<16
				}
			}
		}
	}
}
