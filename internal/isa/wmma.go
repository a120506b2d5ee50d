package isa

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"fencepost.dev/fencepost/internal/event"
)

// wmmaRows is the instructions of the manual's "Warp Level Matrix" chapter on matrices whose distribution over the lanes the manual
// leaves open: wmma.load, wmma.mma and wmma.store; and stmatrix, which is ldmatrix the other way round. The distribution here is that
// of mma, see multiplyRows, of 8 columns of B and C after the other; the 8 registers of A and B of f16 hold it two or four times where
// fewer would do.
var wmmaRows = []*Row{
	{Op: "wmma", Doc: "Warp Level Matrix: wmma.load", Class: Tile, Whole: true, Event: event.Load, Bind: bindWmmaTile, Note: noteWmma,
		Forms: forms(wmmaTileForms(".load", "d*%s, [a]{, b:u32}", "abc")...)},
	{Op: "wmma", Doc: "Warp Level Matrix: wmma.store", Class: Tile, Whole: true, Event: event.Store, Bind: bindWmmaTile,
		Forms: forms(wmmaTileForms(".store", "[a], b*%s{, c:u32}", "d")...)},
	{Op: "wmma", Doc: "Warp Level Matrix Multiply: wmma.mma", Class: Warp, Whole: true, Bind: bindWmma, Forms: forms(wmmaForms()...),
		Note: "Like mma."},
	{Op: "stmatrix", Doc: "Warp Level Matrix: stmatrix", Class: Tile, Whole: true, Event: event.Store, Bind: bindStmatrix, Forms: forms(
		".sync.aligned.m8n8.num{.trans}{.space}.b16 [a], b*1:b32; num: x1"+matrixSpaces,
		".sync.aligned.m8n8.num{.trans}{.space}.b16 [a], b*2:b32; num: x2"+matrixSpaces,
		".sync.aligned.m8n8.num{.trans}{.space}.b16 [a], b*4:b32; num: x4"+matrixSpaces,
		".sync.aligned.m16n8.num.trans{.space}.b8 [a], b*1:b32; num: x1"+matrixSpaces,
		".sync.aligned.m16n8.num.trans{.space}.b8 [a], b*2:b32; num: x2"+matrixSpaces,
		".sync.aligned.m16n8.num.trans{.space}.b8 [a], b*4:b32; num: x4"+matrixSpaces)},
}

const (
	noteWmma = "A lane accesses up to 16 bytes of a row (with .col, of a column) at once. The required alignment is the same; the " +
		"manual requires up to 32."

	matrixSpaces = "; space: shared shared::cta"
)

// wmmaShapes are those of types of A and B.
var wmmaShapes = []struct{ types, shapes string }{
	{"f16 bf16 u8 s8", "m16n16k16 m8n32k16 m32n8k16"}, {"tf32", "m16n16k8"}, {"f64", "m8n8k4"},
}

// accumulators are the types of C and D, by that of A and B.
var accumulators = map[string]string{"f16": "f16 f32", "bf16": "f32", "u8": "s32", "s8": "s32", "tf32": "f32", "f64": "f64"}

// wmmaTileForms makes the forms of wmma.load and wmma.store of matrices, one for each shape and number of registers. Each stands for
// the types that share it.
func wmmaTileForms(what, operands, matrices string) []string {
	var list []string
	add := func(matrix byte, shape, types string) {
		t, _, _ := strings.Cut(types, " ")
		f := fragmentOf(matrix, shape, t)
		list = append(list, what+"."+string(matrix)+".sync.aligned.layout."+shape+"{.space}.type "+
			strings.Replace(operands, "%s", strconv.Itoa(f.registers)+":"+f.register(), 1)+
			"; layout: row col; space: global shared shared::cta; type: "+types)
	}
	for _, m := range []byte(matrices) {
		if m == 'a' || m == 'b' {
			for _, shape := range strings.Fields(wmmaShapes[0].shapes) {
				add(m, shape, "f16")
				add(m, shape, "bf16")
				add(m, shape, "u8 s8")
			}
			add(m, "m16n16k8", "tf32")
			add(m, "m8n8k4", "f64")
			continue
		}
		for _, shape := range strings.Fields(wmmaShapes[0].shapes) {
			add(m, shape, "f16")
			add(m, shape, "f32")
			add(m, shape, "s32")
		}
		add(m, "m16n16k8", "f32")
		add(m, "m8n8k4", "f64")
	}
	return list
}

// wmmaForms makes the forms of wmma.mma.
func wmmaForms() []string {
	var list []string
	for _, s := range wmmaShapes {
		for _, t := range strings.Fields(s.types) {
			for _, shape := range strings.Fields(s.shapes) {
				for _, d := range strings.Fields(accumulators[t]) {
					for _, c := range strings.Fields(accumulators[t]) {
						list = append(list, wmmaForm(shape, t, d, c))
					}
				}
			}
		}
	}
	return list
}

func wmmaForm(shape, t, d, c string) string {
	types := d + "." + t + "." + t + "." + c
	switch t {
	case "f16":
		types = d + "." + c
	case "u8", "s8":
		types += "{.satfinite}"
	case "f64":
		types = "{.rnd}." + types
	}
	operand := func(name string, matrix byte, t string) string {
		f := fragmentOf(matrix, shape, t)
		return name + "*" + strconv.Itoa(f.registers) + ":" + f.register()
	}
	types = strings.Replace("."+types, ".{", "{", 1)
	return ".mma.sync.aligned.alayout.blayout." + shape + types + " " + operand("d", 'd', d) + ", " + operand("a", 'a', t) + ", " +
		operand("b", 'b', t) + ", " + operand("c", 'c', c) + "; alayout: row col; blayout: row col"
}

// fragment is how the lanes of a warp hold a matrix.
type fragment struct {
	matrix     byte // a, b, c or d
	rows, cols int
	typ        string
	size, per  int // bytes of an element, elements of a register
	registers  int
}

// fragmentOf gives that of a matrix of a wmma shape.
func fragmentOf(matrix byte, shape, typ string) *fragment {
	m, n, k := shapeOf(shape)
	f := &fragment{matrix: matrix, rows: m, cols: n, typ: typ, size: 4, per: 1}
	switch typ {
	case "f16", "bf16":
		f.size, f.per = 2, 2
	case "u8", "s8":
		f.size, f.per = 1, 4
	case "f64":
		f.size = 8
	}
	switch matrix {
	case 'a':
		f.cols = k
	case 'b':
		f.rows = k
	}
	if f.registers = f.distinct(); typ == "f16" && (matrix == 'a' || matrix == 'b') {
		f.registers = 8
	}
	return f
}

// shapeOf reads the shape of matrices, as m16n8k16.
func shapeOf(shape string) (m, n, k int) {
	i, j := strings.IndexByte(shape, 'n'), strings.IndexByte(shape, 'k')
	return number(shape[1:i]), number(shape[i+1 : j]), number(shape[j+1:])
}

// isShape says that a modifier is a shape of matrices.
func isShape(mod string) bool { return mod[0] == 'm' && '0' <= mod[1] && mod[1] <= '9' }

// distinct is how many registers hold each element once.
func (f *fragment) distinct() int { return f.rows * f.cols / 32 / f.per }

// register is the type of a register.
func (f *fragment) register() string {
	switch f.typ {
	case "f32", "s32", "f64":
		return f.typ
	}
	return "b32"
}

// at says where an element is: in which lane, which register of it, and which element of that.
func (f *fragment) at(row, col int) (lane, reg, el int) {
	switch f.matrix {
	case 'a':
		return row%8*4 + col/f.per%4, col/(4*f.per)*(f.rows/8) + row/8, col % f.per
	case 'b':
		return col%8*4 + row/f.per%4, col/8*(f.rows/(4*f.per)) + row/(4*f.per), row % f.per
	}
	lane, reg = row%8*4+col%8/2, col/8*(f.rows/8)+row/8
	if f.per == 2 {
		return lane, reg, col % 2
	}
	return lane, 2*reg + col%2, 0
}

// Tiles describes what the lanes access for an instruction of the class Tile: pieces of the matrix in memory, of lines one after the
// other. Piece number q is that of lane q%32, in round q/32. Of stmatrix the address that lane q gives is that of piece q.
type Tiles struct {
	Store   bool
	Given   bool   // each lane gives the address of its piece; else the last source but the member mask is the stride, in elements
	Lines   uint64 // rows, or with .col columns
	Line    uint64 // bytes of one
	Piece   uint64 // bytes
	Element uint64 // bytes
}

// TileStride is the stride of a Tile that is not Given.
func (i *Inst) TileStride() *Operand { return &i.Src[len(i.Src)-2] }

// Rounds is how many times a lane accesses memory, at most.
func (t *Tiles) Rounds() int { return int((t.Lines*t.Line/t.Piece + 31) / 32) }

// Lanes are those that access memory in a round.
func (t *Tiles) Lanes(round int) uint32 {
	n := t.Lines*t.Line/t.Piece - uint64(32*round)
	return uint32(uint64(1)<<min(n, 32) - 1)
}

// At is where a lane's piece lies in a round, from the address of the matrix on, when lines lie stride elements apart.
func (t *Tiles) At(round, lane int, stride uint64) uint64 {
	at := uint64(32*round+lane) * t.Piece
	return at/t.Line*stride*t.Element + at%t.Line
}

// move moves an element between a register of a lane and the pieces, of which each is two words.
type move struct {
	reg, lane, shift    uint8
	word, owner, offset uint8
}

// movesOf gives the moves of a matrix, byRow or by columns.
func movesOf(f *fragment, t *Tiles, byRow bool) []move {
	var list []move
	for row := range f.rows {
		for col := range f.cols {
			line, at := row, col
			if !byRow {
				line, at = col, row
			}
			from := uint64(line)*t.Line + uint64(at*f.size)
			q := from / t.Piece
			lane, reg, el := f.at(row, col)
			list = append(list, move{uint8(reg), uint8(lane), uint8(8 * f.size * el),
				uint8(2*(q/32) + from%t.Piece/8), uint8(q % 32), uint8(8 * (from % t.Piece % 8))})
		}
	}
	return list
}

// bindWmmaTile binds wmma.load and wmma.store.
func bindWmmaTile(in *Inst) {
	at := slices.IndexFunc(in.Mods, isShape)
	f := fragmentOf(in.Mods[1][0], in.Mods[at], in.Mods[len(in.Mods)-1])
	byRow := in.Has("row")
	t := &Tiles{Store: in.Has("store"), Lines: uint64(f.rows), Line: uint64(f.cols * f.size), Element: uint64(f.size)}
	if !byRow {
		t.Lines, t.Line = uint64(f.cols), uint64(f.rows*f.size)
	}
	t.Piece = min(t.Line, uint64(f.rows*f.cols*f.size/32), 16)
	moves := sync.OnceValue(func() []move { return movesOf(f, t, byRow) })
	in.Tiles = t
	if t.Store {
		in.Lanes = func(_ *Inst, w *WarpArgs) { storeMoves(moves(), f.size, t.Rounds(), w) }
		return
	}
	in.Lanes = func(_ *Inst, w *WarpArgs) {
		for r := range f.registers {
			w.D[r] = [32]uint64{}
		}
		mask := ^uint64(0) >> (64 - 8*f.size)
		for _, m := range moves() {
			w.D[m.reg][m.lane] |= w.S[m.word][m.owner] >> m.offset & mask << m.shift
		}
		for r := f.distinct(); r < f.registers; r++ {
			w.D[r] = w.D[r-f.distinct()]
		}
	}
}

// storeMoves puts elements of size bytes into the pieces of some rounds: the registers are the sources from the second on.
func storeMoves(moves []move, size, rounds int, w *WarpArgs) {
	for k := range 2 * rounds {
		w.D[k] = [32]uint64{}
	}
	mask := ^uint64(0) >> (64 - 8*size)
	for _, m := range moves {
		w.D[m.word][m.owner] |= w.S[1+m.reg][m.lane] >> m.shift & mask << m.offset
	}
}

// bindStmatrix binds stmatrix: a lane gives the address of a row, and two elements of each matrix.
func bindStmatrix(in *Inst) {
	t := &Tiles{Store: true, Given: true, Lines: rowLanes * uint64(in.Vec), Line: 16, Piece: 16, Element: 2}
	in.Tiles = t
	var moves []move
	if in.Has("m16n8") { // transposed: the rows in memory are the 8 columns
		t.Element = 1
		for k := range int(in.Vec) {
			for l := range 32 {
				for j := range 4 {
					row, col := 2*(l%4)+j%2, l/4+8*(j/2)
					moves = append(moves, move{uint8(k), uint8(l), uint8(8 * j), uint8(col / 8), uint8(rowLanes*k + row), uint8(8 * (col % 8))})
				}
			}
		}
		in.Lanes = func(_ *Inst, w *WarpArgs) { storeMoves(moves, 1, 1, w) }
		return
	}
	for k := range int(in.Vec) {
		for row := range 8 {
			for col := range 8 {
				l, at := 4*row+col/2, col%2
				if in.Has("trans") {
					l, at = 4*col+row/2, row%2
				}
				moves = append(moves, move{uint8(k), uint8(l), uint8(16 * at), uint8(col / 4), uint8(rowLanes*k + row), uint8(16 * (col % 4))})
			}
		}
	}
	in.Lanes = func(_ *Inst, w *WarpArgs) { storeMoves(moves, 2, 1, w) }
}

// bindWmma binds wmma.mma.
func bindWmma(in *Inst) {
	at := slices.IndexFunc(in.Mods, isShape)
	shape, types := in.Mods[at], matrixTypes(in.Mods[at+1:])
	if len(types) == 2 {
		types = []string{types[0], "f16", "f16", types[1]}
	}
	p := multiplyOf(shape, types, in)
	p.countA, p.countB = fragmentOf('a', shape, types[1]).registers, fragmentOf('b', shape, types[2]).registers
	in.Lanes = p.function()
}
