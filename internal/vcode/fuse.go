package vcode

import (
	"unsafe"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// maxRun bounds the operations of one lanes.Run, which cannot be interrupted.
const maxRun = 1000

// Instructions that only compute become lists of operations of package lanes (OpRun). Plain loads and stores, and
// checked widening, are part of the lists, so that straight-line code is one list. Each of these is also an instruction
// of its own, which handles every case. A list ends at an operation that is not the common case (lanes.Access). The
// machine then continues with the instruction of that operation, and the OpRun after it is the rest of the list. So a
// list also ends at an access to memory that is not known yet, and at an access whose event cannot be made out of the
// log (lanes.Log). At a branch that all lanes take the same way, a list goes on into the next block until the turn of
// the warp is over.

// Reaching describes the memory that an access of a list touches, as far as the text determines it. The lowest byte
// that the lanes touch is Low bytes above the scalar that is the address. Size is the number of bytes from there to the
// end of the highest byte. If each lane has an address of its own, both are relative to that address.
type Reaching struct {
	Effect    int32
	Low, Size uint64
	Row       uint64 // distance of lanes 16 to 31 from lanes 0 to 15
	offsets   int32  // the register with the offsets of the lanes from the lowest, if the operation takes one; 0 otherwise
	Store     bool
	Before    bool // what a store overwrites is told
	Atomic    bool // it adds to what is there
	Strong    bool // a store that is not weak: a turn may end before it
	Apart     bool // no two lanes of a store write one place, for all that its text tells
	Each      bool // lanes have addresses of their own; otherwise the address is line
	Line      Line
}

// Align returns the alignment that a piece of memory needs so that lists can access it by offsets from its start. Old
// values of stores are logged in whole words.
func (n *Reaching) Align(e *Effect) uint64 {
	if n.Store {
		return max(e.Width, 4)
	}
	return e.Width
}

// fused is the form of an instruction in a list: op, which may end the list, with the operations before and after it.
type fused struct {
	before []lanes.Op
	op     lanes.Op
	after  []lanes.Op
	store  bool
}

// add emits an instruction.
func (b *compiler) add(i Instr) {
	if i.Op > OpSpecial && i.Op != OpSWiden {
		b.pending = append(b.pending, b.opsOf(&i)...)
		if b.counted++; len(b.pending)+len(b.region) > maxRun {
			b.flush()
		}
		return
	}
	b.flush()
	b.append(i, 1)
}

// fuse emits an instruction that is also in the list.
func (b *compiler) fuse(i Instr, f *fused) {
	b.segment()
	f.op.Imm = uint64(len(b.t.Code))
	b.append(i, 1)
	b.region = append(append(append(b.region, f.before...), f.op), f.after...)
	b.stores = b.stores || f.store
}

// jump is an OpGoto whose target has no place yet.
type jump struct {
	op int32 // index in Text.Ops
	to int   // block
	pc int32 // of the instruction that jumps
}

// fuseJump emits a jump that is also in the list: the list goes on with that of the next block.
func (b *compiler) fuseJump(bl *opt.Block) {
	e := b.edge(bl, 0)
	b.segment()
	b.goTo(bl.Succs[0], int32(len(b.t.Code)))
	b.append(Instr{Op: OpJump, A: e}, 1)
}

// goTo appends a jump to the list.
func (b *compiler) goTo(to *opt.Block, pc int32) {
	b.jumps = append(b.jumps, jump{int32(len(b.region)), to.ID, pc})
	b.region = append(b.region, lanes.Op{Code: lanes.OpGoto})
}

// fuseBranch emits a branch that is also in the list, for the case that all lanes go one way.
func (b *compiler) fuseBranch(bl *opt.Block) {
	e := [2]int32{b.edge(bl, 0), b.edge(bl, 1)}
	i, code := Instr{Op: OpBranch, A: e[0], B: e[1]}, lanes.OpIfPred
	c := bl.Term().Args[0]
	if b.file[c] == scalars {
		i.Op, code = OpBranchS, lanes.OpIfScalar
	} else if t := bl.Term(); b.t.Lockstep {
		i.D, i.Fn = int32(len(b.t.Effects)), uint16(t.Aux)
		b.t.Effects = append(b.t.Effects, Effect{Instr: loader.Instr{Inst: &isa.Inst{}}, Site: t.Site, Bar: -1, Meet: int32(t.Imm)})
	}
	i.C = b.reg[c]
	b.segment()
	pc := int32(len(b.t.Code))
	b.append(i, 1)
	yes, no := b.movesOf(e[0]), b.movesOf(e[1])
	const size = int32(unsafe.Sizeof(lanes.Op{}))
	b.region = append(append(b.region, lanes.Make(code, uint64(pc), 0, i.C, size, int32(len(yes)+2)*size)), yes...)
	b.goTo(bl.Succs[0], pc)
	b.region = append(b.region, no...)
	b.goTo(bl.Succs[1], pc)
}

// movesOf returns the operations of an edge.
func (b *compiler) movesOf(edge int32) []lanes.Op {
	at := b.t.Edges[edge].Moves
	if at < 0 {
		return nil
	}
	n := at
	for b.t.Ops[n].Code != lanes.OpEnd {
		n++
	}
	return b.t.Ops[at:n]
}

// link sets the targets of the jumps of lists: the list with which a block begins. If a block begins with an
// instruction that is in no list, the list ends there.
func (b *compiler) link() {
	t := b.t
	for _, j := range b.jumps {
		o, to := &t.Ops[j.op], b.starts[j.to]
		o.Imm, o.A, o.C = uint64(to), t.Counts[to], t.Counts[j.pc+1]-t.Counts[to]
		if in := &t.Code[to]; in.Op == OpRun {
			o.B, o.D = (in.A-j.op)*int32(unsafe.Sizeof(lanes.Op{})), int32(in.Fn)
		}
	}
}

// segment makes an OpRun out of the pending operations. The OpRun executes the list from there to its end. A list
// begins with an OpRun even if there are no pending operations.
func (b *compiler) segment() {
	if len(b.pending) == 0 && len(b.region) > 0 {
		return
	}
	b.runs = append(b.runs, int32(len(b.t.Code)))
	b.append(Instr{Op: OpRun, A: int32(len(b.region))}, b.counted)
	b.region = append(b.region, b.pending...)
	b.pending, b.counted = b.pending[:0], 0
}

// flush ends the list.
func (b *compiler) flush() {
	if len(b.pending) > 0 {
		b.segment()
	}
	if len(b.region) == 0 {
		return
	}
	at := int32(len(b.t.Ops))
	b.t.Ops = append(append(b.t.Ops, b.region...), lanes.Op{Code: lanes.OpEnd, Imm: uint64(len(b.t.Code))})
	for i := b.placed; i < len(b.jumps); i++ {
		b.jumps[i].op += at
	}
	b.placed = len(b.jumps)
	for _, k := range b.runs {
		in := &b.t.Code[k]
		in.A += at
		if b.stores {
			in.Fn = 1
		}
	}
	b.region, b.runs, b.stores = b.region[:0], b.runs[:0], false
}

// fastLoads, signedLoads and fastStores are the operations for adjacent lanes, by access size. uniformLoads and
// signedSame are those for loads whose result is a scalar.
var (
	fastLoads    = map[uint64]lanes.Code{1: lanes.OpLoad8ULine, 2: lanes.OpLoad16ULine, 4: lanes.OpLoad32Line, 8: lanes.OpLoad64Line}
	signedLoads  = map[uint64]lanes.Code{1: lanes.OpLoad8SLine, 2: lanes.OpLoad16SLine, 4: lanes.OpLoad32Line, 8: lanes.OpLoad64Line}
	uniformLoads = map[uint64]lanes.Code{1: lanes.OpLoad8USame, 2: lanes.OpLoad16USame, 4: lanes.OpLoad32Same, 8: lanes.OpLoad64Same}
	signedSame   = map[uint64]lanes.Code{1: lanes.OpLoad8SSame, 2: lanes.OpLoad16SSame, 4: lanes.OpLoad32Same, 8: lanes.OpLoad64Same}
	fastStores   = map[uint64]lanes.Code{1: lanes.OpStore8Line, 2: lanes.OpStore16Line, 4: lanes.OpStore32Line, 8: lanes.OpStore64Line}
)

// fastAccess returns the form of a load or store in a list, for the common case, and records the memory that it
// touches. It returns nil if no operation fits.
func (b *compiler) fastAccess(e *Effect, store bool) *fused {
	switch e.Space {
	case event.Global, event.Const, event.Generic, event.Shared:
	default:
		return nil
	}
	if e.Guarded || e.Width != e.Piece || !store && (e.Order != event.Weak || len(e.Results) != 1) {
		return nil
	}
	f := &fused{store: store}
	data := int32(0)
	switch {
	case !store:
		d := &e.Results[0]
		data = d.Reg
		if e.Type.Signed() && uint64(e.Dst[d.At].Size) != max(e.Piece, 4) {
			return nil
		}
	case e.Wide[0] != (e.Piece == 8):
		return nil
	case e.Piece == 8:
		data = b.spread64(&f.before, e.Vals[0], 1)
	default:
		data = b.spread32(&f.before, e.Vals[0], 1)
	}
	code, at, r := b.accessCode(e, store)
	if code == lanes.OpEnd {
		return nil
	}
	e.Reach = int32(len(b.t.Reaches))
	r.Effect, r.Store, r.Each, r.Strong = int32(len(b.t.Effects)), store, e.Addr >= 0, e.Order != event.Weak
	r.Before = store && (e.Piece >= 4 || !r.Each)
	if !r.Each {
		r.Line = b.t.Lines[^e.Addr]
	}
	b.t.Reaches = append(b.t.Reaches, r)
	if r.offsets != 0 {
		f.op = lanes.Make(code, 0, data, at, e.Reach, r.offsets)
	} else {
		f.op = lanes.Make(code, 0, data, at, e.Reach)
	}
	return f
}

// fastAtomic returns the form of a read-modify-write in a list, and nil if it has none. It has one only for the
// addition of a nonzero constant: memory then changes for certain, which the machine must know.
func (b *compiler) fastAtomic(e *Effect, in *opt.Instr) *fused {
	if c, ok := b.f.ConstOf(in.Args[1]); !ok || c == 0 || e.LaneRMW != lanes.RMWAdd || !e.Unread || e.Element != 0 || e.Guarded || e.Addr < 0 || e.Space == event.Local {
		return nil
	}
	f := &fused{store: true}
	data := int32(0)
	if e.Piece == 8 {
		data = b.spread64(&f.before, e.Vals[0], 1)
	} else {
		data = b.spread32(&f.before, e.Vals[0], 1)
	}
	e.Reach = int32(len(b.t.Reaches))
	b.t.Reaches = append(b.t.Reaches, Reaching{Effect: int32(len(b.t.Effects)), Size: e.Width, Store: true, Atomic: true, Each: true})
	f.op = lanes.Make(increases[eachAccess{size: e.Piece, narrow: e.Narrow}], 0, data, e.Addr, e.Reach)
	return f
}

var increases = map[eachAccess]lanes.Code{{size: 4}: lanes.OpIncrease32Each, {size: 4, narrow: true}: lanes.OpIncrease32EachLow,
	{size: 8}: lanes.OpIncrease64Each, {size: 8, narrow: true}: lanes.OpIncrease64EachLow}

// eachAccess is a kind of access for lanes with addresses of their own, of 32 bits (narrow) or 64.
type eachAccess struct {
	size          uint64
	signed        bool
	narrow, store bool
}

// eachCodes are the operations for them.
var eachCodes = map[eachAccess]lanes.Code{
	{1, false, false, false}: lanes.OpLoad8UEach, {1, true, false, false}: lanes.OpLoad8SEach, {1, false, false, true}: lanes.OpStore8Each,
	{1, false, true, false}: lanes.OpLoad8UEachLow, {1, true, true, false}: lanes.OpLoad8SEachLow, {1, false, true, true}: lanes.OpStore8EachLow,
	{2, false, false, false}: lanes.OpLoad16UEach, {2, true, false, false}: lanes.OpLoad16SEach, {2, false, false, true}: lanes.OpStore16Each,
	{2, false, true, false}: lanes.OpLoad16UEachLow, {2, true, true, false}: lanes.OpLoad16SEachLow, {2, false, true, true}: lanes.OpStore16EachLow,
	{4, false, false, false}: lanes.OpLoad32Each, {4, false, false, true}: lanes.OpStore32Each,
	{8, false, false, false}: lanes.OpLoad64Each, {8, false, false, true}: lanes.OpStore64Each,
	{4, false, true, false}: lanes.OpLoad32EachLow, {4, false, true, true}: lanes.OpStore32EachLow,
	{8, false, true, false}: lanes.OpLoad64EachLow, {8, false, true, true}: lanes.OpStore64EachLow,
}

// accessCode returns the operation of an access, its address operand, and the memory that it touches. The operation is
// OpEnd if none fits.
func (b *compiler) accessCode(e *Effect, store bool) (code lanes.Code, at int32, r Reaching) {
	r.Size = e.Width
	long, vector := e.Piece == 8, loader.OpV32
	if long {
		vector = loader.OpV64
	}
	fits := store || e.Results[0].Kind == vector
	if e.Addr >= 0 {
		if !fits {
			return lanes.OpEnd, 0, r
		}
		return eachCodes[eachAccess{e.Piece, !store && e.Piece < 4 && e.Type.Signed(), e.Narrow, store}], e.Addr, r
	}
	l := b.t.Lines[^e.Addr]
	even := l.Pattern < 0
	switch {
	case e.Narrow && e.Space != event.Shared:
		return lanes.OpEnd, 0, r // the ends of the memory touched might be more than 32 bits apart
	case even && l.Stride == 0 && !store && e.Results[0].Kind == loader.OpUniform:
		if e.Type.Signed() {
			return signedSame[e.Piece], l.Reg, r
		}
		return uniformLoads[e.Piece], l.Reg, r
	case !fits:
		return lanes.OpEnd, 0, r
	case !even || l.Stride != e.Piece:
		return b.rowsCode(e, store, l)
	}
	r.Size = 32 * e.Piece
	switch {
	case store:
		r.Apart = true
		return fastStores[e.Piece], l.Reg, r
	case e.Type.Signed():
		return signedLoads[e.Piece], l.Reg, r
	}
	return fastLoads[e.Piece], l.Reg, r
}

// rowsCode is accessCode for lanes that are not adjacent.
func (b *compiler) rowsCode(e *Effect, store bool, l Line) (code lanes.Code, at int32, r Reaching) {
	if l.Pattern < 0 && l.Stride == 0 && !store || e.Piece < 4 {
		return lanes.OpEnd, 0, r
	}
	p := l.Pattern
	if p < 0 {
		p = b.pattern(Slope{l.Stride, l.Stride * uint64(b.f.Env.RowLanes())})
	}
	n := &b.t.Patterns[p]
	for _, off := range n.All {
		if off%e.Piece != 0 {
			return lanes.OpEnd, 0, r
		}
	}
	if n.least < -1<<30 || n.most > 1<<30 {
		return lanes.OpEnd, 0, r
	}
	r.Low, r.Size = uint64(n.least), uint64(n.most-n.least)+e.Piece
	if b.f.Env.RowLanes() == 16 && e.Piece == 4 && n.least == 0 {
		r.Row = n.Slope.Row
		switch {
		case n.Slope.Lane == 4 && store:
			r.Apart = r.Row >= 64
			return lanes.OpStore32Rows, l.Reg, r
		case n.Slope.Lane == 4:
			return lanes.OpLoad32Rows, l.Reg, r
		case n.Slope.Lane == 0 && !store:
			return lanes.OpLoad32Spread, l.Reg, r
		}
	}
	r.offsets = b.offsets(p)
	r.Apart = n.apart()
	switch {
	case e.Piece == 4 && store:
		code = lanes.OpStore32Pattern
	case e.Piece == 4:
		code = lanes.OpLoad32Pattern
	case store:
		code = lanes.OpStore64Pattern
	default:
		code = lanes.OpLoad64Pattern
	}
	return code, l.Reg, r
}

// fastWiden returns the form of an OpSWiden in a list, for the case that nothing wraps, and nil if the strides are
// large.
func (b *compiler) fastWiden(i *Instr) *fused {
	least, most := b.ends(b.t.Lines[i.B])
	if least < -1<<30 || most > 1<<30 {
		return nil
	}
	code := lanes.OpSteadyU
	if i.Fn == WidenS {
		code = lanes.OpSteadyS
	}
	f := &fused{op: lanes.Make(code, 0, i.D, i.A, int32(least), int32(most-least))}
	if i.Imm != 1 {
		f.after = []lanes.Op{lanes.Make(lanes.OpScalarMulBy, i.Imm, i.D, i.D)}
	}
	return f
}

// ends returns the least and the greatest offset of a lane from the scalar.
func (b *compiler) ends(l Line) (least, most int64) {
	if l.Pattern >= 0 {
		p := &b.t.Patterns[l.Pattern]
		return p.least, p.most
	}
	end := 31 * int64(l.Stride)
	return min(end, 0), max(end, 0)
}
