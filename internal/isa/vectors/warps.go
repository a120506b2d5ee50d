package main

import (
	"cmp"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"slices"

	"fencepost.dev/fencepost/internal/isa"
)

// warpCase is one use of a warp instruction.
type warpCase struct {
	mask uint32
	src  [][32]uint64
}

var warpMasks = []uint32{0xffffffff, 0x0000ffff, 0x1, 0x80000001, 0x5a5a00ff, 0xfffffffe}

// warpCases selects the sources: distances and segments for shfl, and for other instructions values that agree in some
// lanes.
func warpCases(j *job) []warpCase {
	rnd := rand.New(rand.NewPCG(2, uint64(len(j.Text))))
	var out []warpCase
	for i, mask := range warpMasks {
		if (j.op == "mma" || j.op == "wmma" || j.op == "movmatrix") && i > 1 {
			break // two cases suffice, because each has many elements
		}
		c := warpCase{mask: mask, src: make([][32]uint64, len(j.Src))}
		for l := range 32 {
			for k, t := range j.Src {
				c.src[k][l] = warpSource(j, i, k, l, t, rnd)
			}
		}
		if n := len(j.Src); n > 0 && j.Has("sync") && !j.Row.Whole {
			for l := range 32 {
				c.src[n-1][l] = uint64(mask)
			}
		}
		out = append(out, c)
	}
	return out
}

func warpSource(j *job, i, k, l int, t isa.Type, rnd *rand.Rand) uint64 {
	switch {
	case j.op == "mma", j.op == "wmma":
		return factors(j, i, k, rnd)
	case t == isa.Pred:
		return [][]uint64{{1}, {0}, {1, 0}, {1, 1, 1, 0}, {0, 0, 1}, {1}}[i][l%[]int{1, 1, 2, 4, 3, 1}[i]]
	case j.op == "shfl" && k == 0:
		return uint64(l*0x01010101+0x100) & 0xffffffff
	case j.op == "shfl" && k == 1:
		return []uint64{1, 3, 0, 31, 16, uint64(31 - l)}[i]
	case j.op == "shfl" && k == 2:
		up := j.Has("up")
		segment := []uint64{0, 24 << 8, 0, 16 << 8, 28 << 8, 0}[i]
		if up {
			return segment | []uint64{0, 0, 5, 0, 2, 0}[i]
		}
		return segment | 31
	case j.op == "match":
		v := []uint64{7, uint64(l % 2), uint64(l), 7, uint64(l/8) << 32, uint64(l % 3)}[i]
		if t.Size() == 4 {
			v = v&0xffffffff | v>>32
		}
		return v
	}
	if t == isa.F32 { // numbers, zeros of both signs, and NaN: in no lane, in some, in all of a mask
		e := edges(t)
		switch {
		case i == 2:
			return e[14]
		case i%2 == 0:
			return e[l%14]
		}
		return e[(l*5+i)%len(e)]
	}
	if j.op == "ldmatrix" && i > 0 { // any; the first case is the elements numbered, by row address and column
		return rnd.Uint64()
	} else if j.op == "ldmatrix" {
		return uint64(l)*0x0100010001000100 + 0x0003000200010000 + uint64(k)*0x0004000400040004
	}
	if i == 0 {
		return uint64(l + 1)
	}
	return rnd.Uint64() >> 32
}

// warpOracle computes the results of the lanes in the mask from the definitions, lane by lane.
func warpOracle(j *job, c warpCase) [][32]uint64 {
	out := make([][32]uint64, len(j.Dst))
	var lanes []int
	for l := range 32 {
		if c.mask>>l&1 == 1 {
			lanes = append(lanes, l)
		}
	}
	if j.op == "ldmatrix" {
		spread(j, c, out)
		return out
	}
	if j.op == "mma" || j.op == "wmma" {
		matrixProduct(j, c, out)
		return out
	}
	if j.op == "movmatrix" {
		transposed(c, out)
		return out
	}
	for _, l := range lanes {
		switch j.op {
		case "shfl":
			from, ok := source(j, l, int(c.src[1][l]), int(c.src[2][l]))
			out[1][l] = flag(ok)
			if !ok || c.mask>>from&1 == 0 {
				from = l
			}
			out[0][l] = c.src[0][from]
		case "vote":
			out[0][l] = vote(j, c, lanes)
		case "match":
			match(j, c, lanes, l, out)
		case "activemask":
			out[0][l] = uint64(c.mask)
		case "elect":
			out[0][l], out[1][l] = uint64(lanes[0]), flag(l == lanes[0])
		case "redux":
			out[0][l] = reduce(j, c, lanes)
		default:
			panic("BUG: no oracle for " + j.Text)
		}
	}
	return out
}

// spread distributes the elements of matrices to lanes: the elements of a row, or with .trans of a column, in pairs to
// four lanes.
func spread(j *job, c warpCase, out [][32]uint64) {
	if !j.Has("m8n8") {
		spreadBytes(j, c, out)
		return
	}
	for k := range out {
		for row := range 8 {
			address := 8*k + row
			line := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, c.src[0][address]), c.src[1][address])
			for col := range 8 {
				x := uint64(binary.LittleEndian.Uint16(line[2*col:]))
				major, minor := row, col
				if j.Has("trans") {
					major, minor = col, row
				}
				out[k][4*major+minor/2] += x << (16 * (minor % 2))
			}
		}
	}
}

// spreadBytes computes ldmatrix of bytes. The elements of a row are adjacent. Those of 6 or 4 bits have no gaps.
func spreadBytes(j *job, c warpCase, out [][32]uint64) {
	bits, rows := 8, 8
	if j.Has("b6x16_p32") {
		bits = 6
	} else if j.Has("b4x16_p64") {
		bits = 4
	}
	square := j.Has("m16n16")
	if square {
		rows = 16
	}
	for address := range min(32, rows*len(out)) {
		if square && address >= 8*len(out) {
			break
		}
		matrix, row := address/rows, address%rows
		line := new(big.Int).SetUint64(c.src[1][address])
		line.Lsh(line, 64).Or(line, new(big.Int).SetUint64(c.src[0][address]))
		for col := range 16 {
			x := new(big.Int).Rsh(line, uint(bits*col)).Uint64() & (1<<bits - 1)
			if square { // columns become rows, four of them in a register
				out[2*matrix+col/8][4*(col%8)+row/4] += x << (8 * (row % 4))
			} else {
				out[matrix][4*row+col/4] += x << (8 * (col % 4))
			}
		}
	}
}

// source returns the lane that shfl reads, and whether it is in range. A segment consists of the lanes that agree in
// the bits of its mask. The mode up reads down to the clamp, and the other modes read up to it.
func source(j *job, l, b, c int) (int, bool) {
	clamp, segment := c%32, c/256%32
	first := l & segment
	last := first | clamp&(31-segment)
	switch {
	case j.Has("up"):
		return l - b, l-b >= last
	case j.Has("down"):
		return l + b, l+b <= last
	case j.Has("bfly"):
		return l ^ b, l^b <= last
	}
	from := first | b&(31-segment)
	return from, from <= last
}

func vote(j *job, c warpCase, lanes []int) uint64 {
	yes := 0
	var ballot uint64
	for _, l := range lanes {
		if c.src[0][l] == 1 {
			yes++
			ballot += 1 << l
		}
	}
	switch {
	case j.Has("all"):
		return flag(yes == len(lanes))
	case j.Has("any"):
		return flag(yes > 0)
	case j.Has("uni"):
		return flag(yes == 0 || yes == len(lanes))
	}
	return ballot
}

func match(j *job, c warpCase, lanes []int, l int, out [][32]uint64) {
	var same uint64
	for _, k := range lanes {
		if c.src[0][k] == c.src[0][l] {
			same += 1 << k
		}
	}
	if j.Has("any") {
		out[0][l] = same
		return
	}
	if same == uint64(c.mask) {
		out[0][l], out[1][l] = same, 1
	}
}

// reduceFloats computes redux.sync of f32: the first or the last of the sorted numbers.
func reduceFloats(j *job, c warpCase, lanes []int) uint64 {
	var list []uint64
	for _, l := range lanes {
		x := c.src[0][l]
		switch {
		case !f32.decode(x).nan && j.Has("abs"):
			list = append(list, x&^f32.sign())
		case !f32.decode(x).nan:
			list = append(list, x)
		case j.Has("NaN"):
			return f32.nan
		}
	}
	if len(list) == 0 {
		return f32.nan
	}
	slices.SortFunc(list, func(x, y uint64) int {
		if o := order(f32.decode(x), f32.decode(y)); o != 0 {
			return o
		}
		return cmp.Compare(y&f32.sign(), x&f32.sign()) // -0 before +0
	})
	if j.Has("min") {
		return list[0]
	}
	return list[len(list)-1]
}

func reduce(j *job, c warpCase, lanes []int) uint64 {
	if j.typ == isa.F32 {
		return reduceFloats(j, c, lanes)
	}
	var acc *big.Int
	for _, l := range lanes {
		v := intOf(c.src[0][l], j.typ)
		switch {
		case acc == nil:
			acc = v
		case j.Has("add"):
			acc = add(acc, v)
		case j.Has("and"):
			acc = new(big.Int).And(acc, v)
		case j.Has("or"):
			acc = new(big.Int).Or(acc, v)
		case j.Has("xor"):
			acc = new(big.Int).Xor(acc, v)
		case (v.Cmp(acc) < 0) == j.Has("min"):
			acc = v
		}
	}
	return wrap(acc, 32)
}
