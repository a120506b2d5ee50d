package isa

import "fencepost.dev/fencepost/internal/event"

// matrixRows is the instructions of the manual's "Warp Level Matrix" chapter: those by which a warp moves 8x8 matrices of 16-bit
// elements together. A lane's fragment of a matrix is a 32-bit register, of two neighbouring elements of a row: lane i
// has those of row i/4 that begin at column 2*(i%4). Of 8x16 elements of a byte it is the four of row i/4 from column 4*(i%4) on; of 16x16 ones,
// which are transposed, two registers: those of rows 4*(i%4) and the next three, of column i/4, and of column i/4+8.
//
// The engine moves rows and Inst.Lanes elements: a row of 16 bytes belongs to the lane that gives its address, as two
// values of 64 bits, the lower half first.
var matrixRows = []*Row{
	{Op: "ldmatrix", Doc: "Warp Level Matrix: ldmatrix", Class: Matrix, Whole: true, Event: event.Load, Bind: bindLdmatrix, Forms: forms(
		".sync.aligned.m8n8.num{.trans}{.space}.b16 d:b32, [a]; num: x1 x2 x4; space: shared shared::cta",
		".sync.aligned.m16n16.num.trans{.space}.b8 d*2:b32, [a]; num: x1"+matrixSpaces,
		".sync.aligned.m16n16.num.trans{.space}.b8 d*4:b32, [a]; num: x2"+matrixSpaces,
		".sync.aligned.m16n16.num.trans{.space}.b8x16.src d*2:b32, [a]; num: x1"+matrixSpaces+packedRows,
		".sync.aligned.m16n16.num.trans{.space}.b8x16.src d*4:b32, [a]; num: x2"+matrixSpaces+packedRows,
		".sync.aligned.m8n16.num{.space}.b8x16.src d*1:b32, [a]; num: x1"+matrixSpaces+packedRows,
		".sync.aligned.m8n16.num{.space}.b8x16.src d*2:b32, [a]; num: x2"+matrixSpaces+packedRows,
		".sync.aligned.m8n16.num{.space}.b8x16.src d*4:b32, [a]; num: x4"+matrixSpaces+packedRows),
		Note: "All 32 lanes of a warp take part, and none may have exited. A generic address must be in shared memory. A row is 16 " +
			"bytes, including its padding."},
}

// packedRows are rows of 16 elements of 6 or 4 bits, one after the other from the lowest bit on, and padding.
const packedRows = "; src: b6x16_p32 b4x16_p64"

// allLanes is the member mask of an instruction that the whole warp executes.
const allLanes = 1<<32 - 1

// rowLanes is how many lanes give the addresses of a matrix, one for each of its rows.
const rowLanes = 8

// Rows are the lanes that give an address to a Matrix instruction: the first eight for its first matrix, and so on.
func (i *Inst) Rows() uint32 {
	n := rowLanes * i.Vec
	if i.Has("m16n16") {
		n *= 2
	}
	return uint32(uint64(1)<<n - 1)
}

// bindLdmatrix binds what a lane gets of the rows: sources 0 and 1 are the halves of the row that a lane has read.
func bindLdmatrix(in *Inst) {
	if !in.Has("m8n8") {
		bindLdmatrixBytes(in)
		return
	}
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

// bindLdmatrixBytes binds ldmatrix of elements of a byte, or of less, which become the low bits of one.
func bindLdmatrixBytes(in *Inst) {
	matrices, square, width := int(in.Vec), in.Has("m16n16"), 8
	switch {
	case in.Has("b6x16_p32"):
		width = 6
	case in.Has("b4x16_p64"):
		width = 4
	}
	in.Lanes = func(_ *Inst, w *WarpArgs) {
		element := func(row, col int) uint64 {
			at := width * col
			v := w.S[at/64][row] >> (at % 64)
			if at%64+width > 64 {
				v |= w.S[1][row] << (64 - at%64)
			}
			return v & (1<<width - 1)
		}
		for k := range matrices {
			for l := range 32 {
				if !square {
					w.D[k][l] = 0
					for j := range 4 {
						w.D[k][l] |= element(rowLanes*k+l/4, 4*(l%4)+j) << (8 * j)
					}
					continue
				}
				for r := range 2 {
					w.D[2*k+r][l] = 0
					for j := range 4 {
						w.D[2*k+r][l] |= element(2*rowLanes*k+4*(l%4)+j, l/4+8*r) << (8 * j)
					}
				}
			}
		}
	}
}
