package isa

import (
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// tensorRows is the copies of the manual's "Data Movement" chapter ("Tensor copy") between shared memory and a box of a tensor in
// global memory, which a tensor map describes.
var tensorRows = []*Row{
	{Op: "cp", Doc: "Data Movement: cp.async.bulk.tensor", Class: Copy, Event: event.Bulk, Bind: bindOp(OpTensor), Note: noteTensor, Forms: forms(
		".async.bulk.tensor.dim.to.global{.mode}.mbarrier::complete_tx::bytes{.multicast::cluster}{.group}{.L2::cache_hint} [d], [map, {c}], [bar]{, {offsets}}{, mask}{, e}'"+tensorDims+
			"; mode: tile im2col tile::gather4; to: shared::cluster shared::cta"+coreGroups,
		".async.bulk.tensor.dim.global.shared::cta{.mode}.bulk_group{.L2::cache_hint} [map, {c}], [a]{, e}'"+tensorDims+"; mode: tile im2col_no_offs tile::scatter4")},
	{Op: "cp", Doc: "Data Movement: cp.reduce.async.bulk.tensor", Class: Copy, Event: event.Bulk, Bind: bindReduction(OpTensor), Note: noteReduce, Forms: forms(
		".reduce.async.bulk.tensor.dim.global.shared::cta.op{.mode}.bulk_group{.L2::cache_hint} [map, {c}], [a]{, e}'" + tensorDims +
			"; mode: tile im2col_no_offs tile::scatter4; op: add min max inc dec and or xor")},
	{Op: "tensormap", Doc: "Data Movement: tensormap.replace", Class: Copy, Event: event.Store, Bind: bindOp(OpReplace), Forms: forms(
		".replace.tile.global_address{.space}.b1024.b64 [a], b:b64"+mapSpaces,
		".replace.tile.field{.space}.b1024.b32 [a], b:b32"+mapSpaces+"; field: rank elemtype interleave_layout swizzle_mode "+
			"swizzle_atomicity fill_mode",
		".replace.tile.field{.space}.b1024.b32 [a], n:u32, b:b32"+mapSpaces+"; field: box_dim global_dim element_stride",
		".replace.tile.global_stride{.space}.b1024.b64 [a], n:u32, b:b64"+mapSpaces),
		Note: "Strides are in bytes. Detectors see a store of the 128 bytes of the map. swizzle_atomicity has no effect."},
	{Op: "tensormap", Doc: "Data Movement: tensormap.cp_fenceproxy", Class: Copy, Event: event.Store, Bind: bindOp(OpMapCopy), Forms: forms(
		".cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [d], [a], size'"),
		Note: "Detectors see a load and a store by one lane. They do not require the release to the tensormap proxy, but require the " +
			"acquiring fence."},
	{Op: "cp", Doc: "Data Movement: cp.async.bulk.prefetch.tensor", Class: Hint, Forms: forms(
		".async.bulk.prefetch.tensor.dim.L2.global{.mode}{.L2::cache_hint} [map, {c}]{, {offsets}}{, e}'" + tensorDims + "; mode: tile im2col tile::gather4")},
}

const (
	mapSpaces  = "; space: global shared::cta"
	tensorDims = "; dim: 1d 2d 3d 4d 5d"
	noteTensor = "Interleaved maps are not supported. Elements outside the tensor are filled, and their bytes count for the mbarrier. " +
		"Performed like cp.async.bulk. A map in global memory is read through the tensormap proxy; detectors see that read."
)

// bindReduction binds cp.reduce.async.bulk, of whose operation Reduce tells.
func bindReduction(op Op) func(in *Inst) { return func(in *Inst) { in.Op, in.Reduce = op, in.Op } }

// Reduction gives the operation of cp.reduce.async.bulk on an element of a type: the new value from the old one and the source. It
// is nil where the operation is not one on the type.
func Reduction(op Op, t Type) func(old, b uint64) uint64 {
	float := t.Float()
	switch op {
	case OpAnd, OpOr, OpXor:
		if float {
			return nil
		}
	case OpInc, OpDec:
		if t != U32 {
			return nil
		}
	case OpMin, OpMax:
		if float && t != F16 && t != BF16 {
			return nil
		}
	case OpAdd:
		if t.Size() < 4 && !float {
			return nil
		}
	default:
		return nil
	}
	in := &Inst{Op: op, Type: t}
	f := atomicOp(in)
	return func(old, b uint64) uint64 { return f(in, old, b, 0) }
}

// tensorOperands decodes the operands of a tensor copy: Src is the address in shared memory, to which Off is added, the generic
// address of the tensor map, to which Off2 is, the address of the mbarrier, to which Off3 is, or a Sink, and the coordinates.
func (b *body) tensorOperands(in *Inst) {
	ops := in.Source.Operands
	group := in.Has("bulk_group")
	want := tensorCount(in)
	if len(ops) != want {
		b.errorf(in.Source.Pos, "%s%s takes %d, not %d operands", in.Source.Op, in.Source.Mods, want, len(ops))
		return
	}
	tensor, shared := &ops[1], &ops[0]
	if group {
		tensor, shared = shared, tensor
	}
	in.Space = event.Shared
	b.address(in, shared)
	off := in.Off
	rank := tensorRank(in)
	n := rank
	if in.Has("tile::gather4") || in.Has("tile::scatter4") { // a column, and four rows
		n = 5
	}
	if tensor.Kind != ptx.OperandAddr || len(tensor.Args) != 2 || tensor.Args[1].Kind != ptx.OperandVector || len(tensor.Args[1].Args) != n {
		b.errorf(tensor.Pos, "%s%s takes [map, {coordinates}] here, with %d coordinates", in.Source.Op, in.Source.Mods, n)
		return
	}
	base := *tensor
	base.Args = base.Args[:1]
	in.Space = event.Generic
	b.mapAddress(in, &base)
	in.Off2 = in.Off
	in.Off3 = 0
	if group {
		in.Src = append(in.Src, Operand{})
	} else {
		in.Space = event.Shared
		b.address(in, &ops[2])
		in.Off3 = in.Off
	}
	for i := range tensor.Args[1].Args {
		b.source(in, &opSpec{name: "c", typ: S32}, &tensor.Args[1].Args[i])
	}
	in.Coordinates = n
	next := 3
	if in.Has("im2col") {
		if !b.im2colOffsets(in, &ops[next], rank) {
			return
		}
		next++
	}
	if in.Has("multicast::cluster") {
		b.multicast(in, &ops[next])
	}
	if in.Has("L2::cache_hint") {
		n := len(in.Src)
		b.source(in, &opSpec{name: "e", typ: B64}, &ops[want-1])
		in.Src = in.Src[:n]
	}
	in.Space, in.Off = event.Shared, off
}

// tensorCount is how many operands a tensor copy has.
func tensorCount(in *Inst) int {
	n := 2
	if !in.Has("bulk_group") {
		n++
	}
	for _, more := range []string{"L2::cache_hint", "im2col", "multicast::cluster"} {
		if in.Has(more) {
			n++
		}
	}
	return n
}

// tensorRank is the number of dimensions that an instruction names.
func tensorRank(in *Inst) int {
	for d := range 5 {
		if in.Has(string(rune('1'+d)) + "d") {
			return d + 1
		}
	}
	return 0
}

// im2colOffsets reads the offsets of the mode im2col, and reports whether they are right.
func (b *body) im2colOffsets(in *Inst, o *ptx.Operand, rank int) bool {
	if in.Offsets = rank - 2; rank < 3 || o.Kind != ptx.OperandVector || len(o.Args) != in.Offsets {
		b.errorf(o.Pos, "%s%s takes %d offsets in braces here, of a tensor of 3 to 5 dimensions", in.Source.Op, in.Source.Mods, max(rank-2, 1))
		return false
	}
	for i := range o.Args {
		b.source(in, &opSpec{name: "offset", typ: B16}, &o.Args[i])
	}
	return true
}

// mapAddress decodes the address of a tensor map: a generic one, or that of a kernel parameter or of a variable.
func (b *body) mapAddress(in *Inst, o *ptx.Operand) {
	n := len(in.Src)
	b.address(in, o)
	if len(in.Src) == n {
		return
	}
	switch a := &in.Src[n]; {
	case a.Kind == Reg || a.Kind == Imm || a.Kind == GlobalAddr:
	case a.Kind == ParamAddr && b.f.Entry:
		a.Kind, a.Imm = Imm, ParamWindow+a.Imm
	default:
		b.errorf(o.Pos, "%s%s: a tensor map is in global or constant memory, or a parameter of the kernel", in.Source.Op, in.Source.Mods)
	}
}

// mapCopyOperands decodes the operands of tensormap.cp_fenceproxy: Src is the address in global memory, to which Off is added, and
// that in shared memory, to which Off2 is.
func (b *body) mapCopyOperands(in *Inst) {
	ops := in.Source.Operands
	if len(ops) != 3 || ops[2].Kind != ptx.OperandImm || ops[2].Name != "128" && ops[2].Name != "0x80" {
		b.errorf(in.Source.Pos, "%s%s takes two addresses and the size, which is 128", in.Source.Op, in.Source.Mods)
		return
	}
	in.Space = event.Global
	b.address(in, &ops[0])
	off := in.Off
	in.Space = event.Shared
	b.address(in, &ops[1])
	in.Space, in.Off, in.Off2 = event.Global, off, in.Off
}
