package warp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// sync executes barriers and warp instructions.
func (x *machine) sync(w *engine.Warp, i int32, mask uint32, place uint32) {
	e := &x.t.Effects[i]
	switch e.Class {
	case isa.Barrier:
		x.r.Barrier(w, &e.Instr, mask, place)
	case isa.WarpBarrier:
		v := regsOf(w)
		if !x.complete(w, x.scalars(v, v.groups[v.cur].slot), &e.Operands[0], mask) {
			x.r.WarpBarrier(w, &e.Instr, mask, place)
			return
		}
		x.r.Out.WarpSync(w, mask, place)
	case isa.Mbarrier:
		if x.r.Mbarriers(w, &e.Instr, mask, place) > 1 {
			w.Polled()
		}
	case isa.Warpgroup:
		x.r.WarpOp(w, &e.Instr, mask, place)
	case isa.Texture:
		x.r.Texture(w, &e.Instr, mask, place)
	case isa.Copy:
		x.r.Copies(w, &e.Instr, mask, place)
	case isa.Matrix:
		s := x.scalars(regsOf(w), regsOf(w).groups[regsOf(w).cur].slot)
		if mask != ^uint32(0) || !x.complete(w, s, &e.Operands[len(e.Operands)-1], mask) {
			x.r.WarpOp(w, &e.Instr, mask, place)
			return
		}
		x.matrix(w, s, i, mask, place)
	default:
		v := regsOf(w)
		s := x.scalars(v, v.groups[v.cur].slot)
		if e.Masked && (e.Row.Whole && mask != ^uint32(0) || !x.complete(w, s, &e.Operands[len(e.Operands)-1], mask)) {
			x.r.WarpOp(w, &e.Instr, mask, place)
			return
		}
		if !e.Masked {
			x.r.Sched.Spin.Active = true // as in warpOp
		}
		if !x.vote(v, s, e, mask) && !x.shuffle(w, s, e, mask, place) {
			x.exchange(w, s, e, mask, place)
		}
	}
}

// meet executes a barrier of all threads for all live lanes of a warp together, the usual case. It has the effect of
// run.barrier. It returns false if the barrier is not one of all threads. If the group must wait, its place is the
// barrier, pc; if the barrier completes, its place is after it.
func (x *machine) meet(w *engine.Warp, g *group, e *vcode.Effect, pc int32, place uint32) bool {
	c := w.CTA
	b := &c.Bars[e.Bar]
	if x.t.Lockstep && b.Told {
		return false // lanes count for others
	}
	if b.Expect != engine.AllThreads {
		if b.Expect != 0 {
			return false
		}
		b.Expect = engine.AllThreads
		c.Met |= 1 << e.Bar
	}
	on := g.mask
	b.Join(w, on)
	if len(b.Sites) == 1 && b.Sites[0].Place == place {
		b.Sites[0].Add(w, bits.OnesCount32(on))
	} else {
		b.Enter(&e.Instr, w, on, place)
	}
	if o := &x.r.Out; o.Sync() {
		flags := event.FlagWait
		if e.Aligned {
			flags |= event.FlagAligned
		}
		o.Arrive(w, on, place, uint8(e.Bar), flags, 0)
	}
	if b.Count < c.Live {
		b.Wait[w.Index] = on
		w.Whole, w.Ready = engine.Standing(engine.WaitBarrier, uint8(e.Bar), 0), 0
		g.pc = pc
		return true
	}
	if len(b.Sites) > 1 || c.Live < c.Threads {
		x.r.CheckSites(b, uint8(e.Bar), c)
	}
	x.r.Out.BarrierDone(w, on, place, uint8(e.Bar))
	c.CountBarrier()
	for i, v := range c.Warps {
		woken := b.Wait[i]
		if woken == 0 {
			continue
		}
		if h := &regsOf(v).groups[0]; v.Whole != 0 && h.mask == woken && !b.Reduced {
			h.pc++
			h.ran = v.Strain
			v.Ready, v.Whole = woken, 0
			continue
		}
		x.r.Wake(b, v, woken)
	}
	b.Reset()
	g.pc = pc + 1
	return true
}

// complete reports whether on is all live lanes of a member mask that is uniform.
func (x *machine) complete(w *engine.Warp, s []uint64, members *loader.Operand, on uint32) bool {
	if members.Kind != loader.OpUniform {
		return false
	}
	mask := uint32(s[members.Reg])
	return mask&w.Live == on && on&^mask == 0
}

// vote executes vote if all members take part. It returns false for other instructions.
func (x *machine) vote(v *registers, s []uint64, e *vcode.Effect, on uint32) bool {
	if e.Row.Op != "vote" || len(e.Results) != 1 {
		return false
	}
	o := &e.Operands[0]
	var ballot uint32
	switch o.Kind {
	case loader.OpPred:
		ballot = v.preds[o.Reg] & on
	case loader.OpUniform:
		ballot = -uint32(s[o.Reg]&1) & on
	default:
		return false
	}
	holds := false
	d := &e.Results[0]
	switch e.Op {
	case isa.OpAll:
		holds = ballot == on
	case isa.OpAny:
		holds = ballot != 0
	case isa.OpUni:
		holds = ballot == 0 || ballot == on
	default:
		if d.Kind != loader.OpV32 {
			return false
		}
		lanes.Set32(&v.v32[d.Reg], ballot, on)
		return true
	}
	if d.Kind != loader.OpPred {
		return false
	}
	v.preds[d.Reg] &^= on
	if holds {
		v.preds[d.Reg] |= on
	}
	return true
}

// shuffled is the source lanes of a shuffle, cached for the next shuffle over the same distance.
type shuffled struct {
	op     isa.Op
	b, c   uint64
	on     uint32
	inside uint32 // lanes whose source is in range
	astray uint32 // lanes whose source takes no part
	from   v32
}

// shuffles is the number of shuffles that are cached.
const shuffles = 64

// shuffle executes shfl over a distance, or from a lane, that is uniform, and from lanes that differ if all lanes take
// part. It returns false for other instructions.
func (x *machine) shuffle(w *engine.Warp, s []uint64, e *vcode.Effect, on uint32, place uint32) bool {
	if !e.Shuffles {
		return false
	}
	v, c := regsOf(w), s[e.Operands[2].Reg]
	var from *v32
	inside := on
	switch b := &e.Operands[1]; {
	case b.Kind == loader.OpUniform:
		k := x.sources(e, s[b.Reg], c, on)
		from, inside = &k.from, k.inside
		if k.astray != 0 && e.Masked {
			x.r.Astray(w, &e.Instr, k.astray, place)
		}
	case e.Op == isa.OpIdx && c&0x1f1f == 31 && on == ^uint32(0):
		from = x.vec32(v, s, e.Vals[1], 1)
	default:
		return false
	}
	val := x.vec32(v, s, e.Vals[0], 0)
	for _, d := range e.Results {
		if d.At == 0 {
			lanes.Perm32(&v.v32[d.Reg], val, from, on)
		} else {
			v.preds[d.Reg] = v.preds[d.Reg]&^on | inside&on
		}
	}
	return true
}

// sources returns the sources of a shuffle: it applies the instruction to the lane numbers.
func (x *machine) sources(e *vcode.Effect, b, c uint64, on uint32) *shuffled {
	if x.shuffled == nil {
		x.shuffled = make([]shuffled, shuffles)
	}
	k := &x.shuffled[(b^uint64(e.Op)<<3)%shuffles]
	if k.op == e.Op && k.b == b && k.c == c && k.on == on {
		return k
	}
	a := &x.r.WarpArgs
	a.Mask = on
	for l := range uint64(32) {
		a.S[0][l], a.S[1][l], a.S[2][l] = l, b, c
	}
	e.Lanes(e.Inst, a)
	*k = shuffled{op: e.Op, b: b, c: c, on: on, inside: lanes.Odd64(&a.D[1], on), astray: a.Astray}
	lanes.Low32(&k.from, &a.D[0], on)
	return k
}

// exchange executes a warp instruction whose members all take part.
func (x *machine) exchange(w *engine.Warp, s []uint64, e *vcode.Effect, on uint32, place uint32) {
	v, a := regsOf(w), &x.r.WarpArgs
	a.Mask, a.Astray = on, 0
	for k := range e.Operands {
		to := &a.S[k]
		switch o := &e.Operands[k]; o.Kind {
		case loader.OpV32:
			from := &v.v32[o.Reg]
			for i := range from {
				to[i] = uint64(from[i])
			}
		case loader.OpV64:
			*to = v.v64[o.Reg]
		case loader.OpUniform:
			lanes.Set64(to, s[o.Reg], on)
		default:
			for m := on; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m)
				to[i] = x.Value(w, i, o)
			}
		}
	}
	if e.Class == isa.Tile && !e.Tiles.Store {
		x.r.ReadTile(w, on, &e.Instr, place)
	}
	e.Lanes(e.Inst, a)
	if e.Masked && a.Astray != 0 {
		x.r.Astray(w, &e.Instr, a.Astray, place)
	}
	if e.Class == isa.Tile && e.Tiles.Store {
		x.r.WriteTile(w, on, &e.Instr, place)
		return
	}
	x.received(v, e, on)
}

// received writes the results of a warp instruction for the lanes of on.
func (x *machine) received(v *registers, e *vcode.Effect, on uint32) {
	a := &x.r.WarpArgs
	for k := range e.Results {
		d := &e.Results[k]
		from := &a.D[d.At]
		switch d.Kind {
		case loader.OpV32:
			lanes.Low32(&v.v32[d.Reg], from, on)
		case loader.OpV64:
			lanes.Copy64(&v.v64[d.Reg], from, on)
		case loader.OpPred:
			v.preds[d.Reg] = v.preds[d.Reg]&^on | lanes.Odd64(from, on)&on
		default:
			panic("BUG: a warp instruction with a scalar result")
		}
	}
}

// matrix executes ldmatrix for all lanes of a warp.
func (x *machine) matrix(w *engine.Warp, s []uint64, i int32, on uint32, place uint32) {
	e, a, sp := &x.t.Effects[i], &x.r.WarpArgs, &x.span
	rows := e.Rows()
	if x.reach(w, s, i, rows, false) && sp.space == event.Shared {
		off := x.each(rows)
		lanes.Gather64(&a.S[0], sp.data, off, rows)
		lanes.Gather64(&a.S[1], sp.data[8:], off, rows)
		x.tell(w, s, event.Load, event.FlagRead, e, place, sp, rows)
	} else {
		x.r.ReadRows(w, on, &e.Instr, place)
	}
	a.Mask = on
	e.Lanes(e.Inst, a)
	x.received(regsOf(w), e, on)
}
