package engine

import (
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// coreProduct is a tcgen05.mma that a thread has issued.
type coreProduct struct {
	r     *Run
	w     *Warp
	in    *loader.Instr
	lane  int
	place uint32
	shape *isa.CoreShape
	ctas  []*CTA // one block, or the two that share the operation
	a, b  isa.Descriptor
	from  uint32 // address of A in tensor memory
	to    uint32 // address of D
	add   bool
	idle  [8]uint32 // lanes of D that are not changed
}

// coreMultiply executes tcgen05.mma for a lane.
func (r *Run) coreMultiply(w *Warp, in *loader.Instr, lane int, place uint32) {
	value := func(k int) uint64 { return r.Machine.Value(w, lane, &in.Operands[k]) }
	shape, text := isa.CoreShapeOf(in.Inst, uint32(value(3)))
	if text != "" {
		r.wrongTensor(w, in, lane, place, "the instruction descriptor %s", text)
		return
	}
	x := &coreProduct{r: r, w: w, in: in, lane: lane, place: place, shape: shape, ctas: []*CTA{w.CTA}, b: isa.DescriptorOf(value(2)),
		to: uint32(value(0) + uint64(in.Off)), add: value(len(in.Operands)-1)&1 != 0}
	if in.Core.Group == 2 {
		k := w.CTA.cluster.ctas
		if len(k)%2 != 0 {
			r.wrongTensor(w, in, lane, place, "it is an operation of two blocks, and the cluster has %d", len(k))
			return
		}
		x.ctas = k[w.CTA.rank&^1:][:2]
	}
	if in.Core.InMemory {
		x.from = uint32(value(1) + uint64(in.Off2))
	} else {
		x.a = isa.DescriptorOf(value(1))
	}
	for i := range in.Core.Disabled {
		x.idle[i] = uint32(value(in.Core.Disable + i))
	}
	if x.check() {
		r.flyCore(w, lane, x.tell(), x.perform)
	}
}

// rows returns the number of rows of A and D in a block.
func (x *coreProduct) rows() int { return x.shape.Rows / len(x.ctas) }

// cell returns the lane and the column in tensor memory, relative to the matrix address, of an element in the rows of a
// block.
func (x *coreProduct) cell(row, column int) (lane, word int) {
	switch half := x.shape.Columns / 2; {
	case x.rows() == 128:
		return row, column
	case len(x.ctas) == 1: // 16 lanes of each group of 32
		return row/16*32 + row%16, column
	case column < half:
		return row, column
	default:
		return row + 64, column - half
	}
}

// width returns the number of columns of tensor memory for D.
func (x *coreProduct) width() int {
	if x.rows() == 64 && len(x.ctas) == 2 {
		return x.shape.Columns / 2
	}
	return x.shape.Columns
}

// depth returns the number of columns of tensor memory for A.
func (x *coreProduct) depth() int { return x.shape.Depth * x.shape.A.Size / 4 }

// tensorExtents returns the extents of a matrix in the tensor memory of a block.
func (x *coreProduct) tensorExtents(at uint32, width int, whole bool) []extent {
	row, column := int(at>>16), int(at&0xffff)
	var list []extent
	step := 16
	if x.rows() == 64 && len(x.ctas) == 1 {
		step = 32
	}
	lanes := event.TensorLanes
	if x.rows() == 64 && len(x.ctas) == 2 && !whole {
		lanes = 64
	}
	for lane := 0; lane < lanes; lane += step {
		list = append(list, tensorExtent(row+lane, column, width))
	}
	return list
}

// check reports what is wrong with the operands.
func (x *coreProduct) check() bool {
	r, w, in := x.r, x.w, x.in
	if lane := x.to >> 16; lane != 0 && (lane != 16 || x.rows() != 64 || len(x.ctas) == 2) {
		r.wrongTensor(w, in, x.lane, x.place, "D begins in lane %d of tensor memory, where it cannot", lane)
		return false
	}
	for _, c := range x.ctas {
		if !r.columnsOf(w, c, in, x.lane, int(x.to&0xffff), x.width(), x.place) || in.Core.InMemory && !r.columnsOf(w, c, in, x.lane, int(x.from&0xffff), x.depth(), x.place) {
			return false
		}
	}
	return true
}

// tell emits the events for the operation's accesses, and gives its number.
func (x *coreProduct) tell() uint64 {
	number := x.w.CTA.number()
	s, out := x.shape, &x.r.Out
	add := func(c *CTA, flags event.Flags, list []extent) {
		for _, e := range joined(list) {
			n := e.end - e.from
			e.from = x.w.CTA.tell(c, e.from)
			out.core(x.w, 1<<x.lane, x.place, number, event.CoreCommits, flags, extent{e.from, e.from + n})
		}
	}
	for _, c := range x.ctas {
		if x.in.Core.InMemory {
			add(c, event.FlagRead, x.tensorExtents(x.from, x.depth(), false))
		} else {
			list, _ := x.matrix(c, &x.a, &s.A, make([][32]uint32, x.rows()), true)
			add(c, event.FlagRead, list)
		}
		list, _ := x.matrix(c, &x.b, &s.B, make([][32]uint32, s.Columns/len(x.ctas)), true)
		add(c, event.FlagRead, list)
		if x.add {
			add(c, event.FlagRead, x.tensorExtents(x.to, x.width(), true))
		}
		add(c, event.FlagWrite, x.tensorExtents(x.to, x.width(), true))
	}
	return number
}

// matrix reads a matrix in the shared memory of a block. Faults are reported at the issue.
func (x *coreProduct) matrix(c *CTA, d *isa.Descriptor, l *isa.Layout, rows [][32]uint32, issue bool) ([]extent, bool) {
	place := x.place
	var list []extent
	at := matrixAt{c: c, d: d, l: l, depth: x.shape.Depth}
	bad, ok := at.read(rows, &list)
	if !ok && issue {
		x.r.Faults.access(x.r, OutOfBounds, x.w, x.lane, place, touch{event.FlagRead, event.Shared, bad, chunk})
	}
	return list, ok
}

// perform computes D.
func (x *coreProduct) perform() {
	s := x.shape
	var b [][32]uint32
	for _, c := range x.ctas {
		part := make([][32]uint32, s.Columns/len(x.ctas))
		if _, ok := x.matrix(c, &x.b, &s.B, part, false); !ok {
			return
		}
		b = append(b, part...)
	}
	for i, c := range x.ctas {
		args := isa.CoreArgs{A: make([][32]uint32, x.rows()), B: b, D: make([][]uint32, x.rows())}
		if x.in.Core.InMemory {
			x.fromTensor(c, args.A)
		} else if _, ok := x.matrix(c, &x.a, &s.A, args.A, false); !ok {
			return
		}
		x.each(c, func(row, column, _ int, word *uint32) {
			if args.D[row] == nil {
				args.D[row] = make([]uint32, s.Columns)
			}
			args.D[row][column] = *word
		})
		s.Multiply(&args, x.add, x.in.Core.Scale)
		idle := x.idle[4*i:][:4]
		x.each(c, func(row, column, lane int, word *uint32) {
			if idle[lane/32]>>(lane%32)&1 == 0 {
				*word = args.D[row][column]
			}
		})
	}
	x.w.Writes++
}

// each calls f for each element of a block's part of D.
func (x *coreProduct) each(c *CTA, f func(row, column, lane int, word *uint32)) {
	if c.cores.words == nil {
		return // freed
	}
	first, column := int(x.to>>16), int(x.to&0xffff)
	for row := range x.rows() {
		for n := range x.shape.Columns {
			lane, word := x.cell(row, n)
			f(row, n, lane, c.cores.word(first+lane, column+word))
		}
	}
}

// fromTensor reads A from tensor memory, where the elements of each 32 bits are in one word.
func (x *coreProduct) fromTensor(c *CTA, rows [][32]uint32) {
	size := x.shape.A.Size
	per := 4 / size
	for row := range rows {
		lane, _ := x.cell(row, 0)
		for k := range x.shape.Depth {
			word := *c.cores.word(int(x.from>>16)+lane, int(x.from&0xffff)+k/per)
			rows[row][k] = uint32(uint64(word) >> (8 * size * (k % per)) & (1<<(8*size) - 1))
		}
	}
}

// coreCopy executes tcgen05.cp for a lane.
func (r *Run) coreCopy(w *Warp, in *loader.Instr, lane int, place uint32) {
	x := coreBlock{in: in, to: uint32(r.Machine.Value(w, lane, &in.Operands[0]) + uint64(in.Off)), d: isa.DescriptorOf(r.Machine.Value(w, lane, &in.Operands[1])), ctas: []*CTA{w.CTA}}
	x.rows, x.bytes = x.shape()
	if in.Core.Group == 2 && len(w.CTA.cluster.ctas)%2 == 0 {
		x.ctas = w.CTA.cluster.ctas[w.CTA.rank&^1:][:2]
	}
	number := w.CTA.number()
	for _, c := range x.ctas {
		if !r.columnsOf(w, c, in, lane, int(x.to&0xffff), x.bytes/4, place) {
			return
		}
		list, bad, ok := x.extents(c)
		if !ok {
			r.Faults.access(r, OutOfBounds, w, lane, place, touch{event.FlagRead, event.Shared, bad, chunk})
			return
		}
		add := func(flags event.Flags, list []extent) {
			for _, e := range joined(list) {
				from := w.CTA.tell(c, e.from)
				r.Out.core(w, 1<<lane, place, number, event.CoreCommits, flags, extent{from, from + e.end - e.from})
			}
		}
		add(event.FlagRead, list)
		list = nil
		for _, lanes := range x.targets() {
			for i := 0; i < max(len(lanes)/16, 1); i++ {
				list = append(list, tensorExtent(int(x.to>>16)+lanes[16*i], int(x.to&0xffff), x.bytes/4))
			}
		}
		add(event.FlagWrite, list)
	}
	r.flyCore(w, lane, number, x.perform)
}

// coreBlock is a tcgen05.cp.
type coreBlock struct {
	in    *loader.Instr
	to    uint32
	d     isa.Descriptor
	ctas  []*CTA
	rows  int
	bytes int // bytes in a row
}

func (x *coreBlock) shape() (rows, bytes int) {
	for shape, size := range map[string][2]int{"128x256b": {128, 32}, "4x256b": {4, 32}, "128x128b": {128, 16}, "64x128b": {64, 16}, "32x128b": {32, 16}} {
		if x.in.Has(shape) {
			return size[0], size[1]
		}
	}
	panic("BUG: a shape of tcgen05.cp without a size")
}

// targets returns the lanes that the rows are copied to, once or several times.
func (x *coreBlock) targets() [][]int {
	run := func(firsts ...int) []int {
		var lanes []int
		for _, f := range firsts {
			for i := range 32 {
				lanes = append(lanes, f+i)
			}
		}
		return lanes
	}
	switch {
	case x.in.Has("warpx4"):
		return [][]int{run(0), run(32), run(64), run(96)}
	case x.in.Has("warpx2::02_13"):
		return [][]int{run(0, 32), run(64, 96)}
	case x.in.Has("warpx2::01_23"):
		return [][]int{run(0, 64), run(32, 96)}
	case x.rows == 4:
		return [][]int{{0, 1, 2, 3}}
	}
	return [][]int{run(0, 32, 64, 96)}
}

// bytesLayout is the layout of rows of bytes.
var bytesLayout = isa.Layout{Size: 1}

func (x *coreBlock) extents(c *CTA) (list []extent, bad uint64, ok bool) {
	for row := range x.rows {
		for k := 0; k < x.bytes; k += chunk {
			at := x.d.Chunk(&bytesLayout, uint64(row), uint64(k))
			if at+chunk > uint64(len(c.Shared)) {
				return nil, at, false
			}
			list = append(list, extent{at, at + chunk})
		}
	}
	return list, 0, true
}

func (x *coreBlock) perform() {
	for _, c := range x.ctas {
		if c.cores.words == nil {
			continue
		}
		for row := range x.rows {
			for k := 0; k < x.bytes; k += 4 {
				at := x.d.Chunk(&bytesLayout, uint64(row), uint64(k/chunk*chunk)) + uint64(k%chunk)
				v := uint32(devmem.Uint(c.Shared[at:], 4))
				for _, lanes := range x.targets() {
					*c.cores.word(int(x.to>>16)+lanes[row], int(x.to&0xffff)+k/4) = v
				}
			}
		}
	}
}
