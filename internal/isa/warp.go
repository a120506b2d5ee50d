package isa

import "math/bits"

// warpRows is the instructions that exchange values between the lanes of a warp.
var warpRows = []*Row{
	{Op: "shfl", Doc: "Data Movement: shfl.sync", Class: Warp, Bind: bindShfl, Forms: forms(
		".sync.op.b32 d{|p:pred}, a, b, c, e; op: up down bfly idx",
		".op.b32 d{|p:pred}, a, b, c; op: up down bfly idx"),
		Note: "Reading from a lane that does not take part gives the lane's own value. The predicate is the same as for a lane in range."},
	{Op: "vote", Doc: "Parallel Synchronization: vote.sync", Class: Warp, Bind: bindVote, Forms: forms(
		".sync.op.pred d, a, e:b32; op: all any uni",
		".sync.op.b32 d, a:pred, e:b32; op: ballot",
		".op.pred d, a; op: all any uni",
		".op.b32 d, a:pred; op: ballot")},
	{Op: "match", Doc: "Parallel Synchronization: match.sync", Class: Warp, Bind: bindMatch, Forms: forms(
		".op.sync.type d:b32, a, e:b32; op: any; type: b32 b64",
		".op.sync.type d:b32{|p:pred}, a, e:b32; op: all; type: b32 b64")},
	{Op: "activemask", Doc: "Parallel Synchronization: activemask", Class: Warp, Forms: forms(".b32 d"),
		Bind: bindLanes(func(_ *Inst, w *WarpArgs) { w.fill(uint64(w.Mask)) })},
	{Op: "redux", Doc: "Parallel Synchronization: redux.sync", Class: Warp, Bind: bindRedux, Forms: forms(
		".sync.op.type d, a, e:b32; op: add min max; type: u32 s32",
		".sync.op.b32 d, a, e; op: and or xor",
		".sync.op{.abs}{.NaN}.f32 d, a, e:b32; op: min max")},
	{Op: "elect", Doc: "Parallel Synchronization: elect.sync", Class: Warp, Forms: forms(".sync d:b32|p:pred, e:b32"),
		Note: "The lowest lane is elected.", Bind: bindLanes(func(_ *Inst, w *WarpArgs) {
			leader := bits.TrailingZeros32(w.Mask)
			w.fill(uint64(leader))
			w.D[1][leader&31] = 1
		})},
}

// bindLanes binds one implementation whatever the modifiers.
func bindLanes(f func(in *Inst, w *WarpArgs)) func(in *Inst) { return func(in *Inst) { in.Lanes = f } }

// fill gives every lane of the mask the same first result, and 0 as the second.
func (w *WarpArgs) fill(v uint64) {
	for m := w.Mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		w.D[0][l], w.D[1][l] = v, 0
	}
}

// bindShfl binds shfl. Source 0 is the value, 1 the lane or distance, 2 the clamp (bits 0 to 4) and segment mask
// (bits 8 to 12).
func bindShfl(in *Inst) {
	op := in.Op
	in.Lanes = func(_ *Inst, w *WarpArgs) {
		w.Astray = 0
		for m := w.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			from, ok := shuffleSource(op, lane, w.S[1][lane], w.S[2][lane])
			switch {
			case !ok:
				from = lane
			case w.Mask>>uint(from&31)&1 == 0:
				from = lane
				w.Astray |= 1 << uint(lane)
			}
			w.D[0][lane], w.D[1][lane] = w.S[0][from]&0xffffffff, bit(ok)
		}
	}
}

// ShuffleSource is the lane that a lane reads by a shfl whose sources 1 and 2 are b and c, and whether it is in range.
func (i *Inst) ShuffleSource(lane int, b, c uint64) (from int, ok bool) {
	return shuffleSource(i.Op, lane, b, c)
}

func shuffleSource(op Op, lane int, b, c uint64) (from int, ok bool) {
	by, clamp, seg := int(b&31), int(c&31), int(c>>8&31)
	maxLane := lane&seg | clamp&^seg
	switch op {
	case OpUp:
		from = lane - by
		return from, from >= maxLane
	case OpDown:
		from = lane + by
	case OpBfly:
		from = lane ^ by
	default:
		from = lane&seg | by&^seg
	}
	return from, from <= maxLane
}

func bindVote(in *Inst) {
	op := in.Op
	in.Lanes = func(_ *Inst, w *WarpArgs) {
		var ballot uint32
		for m := w.Mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			ballot |= uint32(w.S[0][l]&1) << uint(l)
		}
		var r uint64
		switch op {
		case OpAll:
			r = bit(ballot == w.Mask)
		case OpAny:
			r = bit(ballot != 0)
		case OpUni:
			r = bit(ballot == 0 || ballot == w.Mask)
		default:
			r = uint64(ballot)
		}
		w.fill(r)
	}
}

func bindMatch(in *Inst) {
	all, mask := in.Op == OpAll, widthMask(in.Type)
	in.Lanes = func(_ *Inst, w *WarpArgs) {
		same := true
		for m := w.Mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			var equal uint32
			for n := w.Mask; n != 0; n &= n - 1 {
				k := bits.TrailingZeros32(n)
				if (w.S[0][l]^w.S[0][k])&mask == 0 {
					equal |= 1 << uint(k)
				}
			}
			w.D[0][l] = uint64(equal)
			same = same && equal == w.Mask
		}
		if !all {
			return
		}
		for m := w.Mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			w.D[0][l], w.D[1][l] = 0, 0
			if same {
				w.D[0][l], w.D[1][l] = uint64(w.Mask), 1
			}
		}
	}
}

func bindRedux(in *Inst) { bindReduce(in, reduction(in)) }

// A reducer folds values, each prepared before it counts.
type reducer struct {
	prepare func(x uint32) uint32
	step    func(x, y uint32) uint32
}

// reduction gives the reducer of an operation on the type of an instruction.
func reduction(in *Inst) reducer {
	op, t := in.Op, in.Type
	if t == F32 {
		return floatReduction(in)
	}
	step := func(x, y uint32) uint32 {
		switch {
		case op == OpAnd:
			return x & y
		case op == OpOr:
			return x | y
		case op == OpXor:
			return x ^ y
		case op == OpAdd:
			return x + y
		case t == S32 && op == OpMin:
			return uint32(min(int32(x), int32(y)))
		case t == S32:
			return uint32(max(int32(x), int32(y)))
		case op == OpMin:
			return min(x, y)
		}
		return max(x, y)
	}
	return reducer{func(x uint32) uint32 { return x }, step}
}

// floatReduction is that of f32: min or max of the values, of their magnitudes with .abs. Without .NaN those that
// are NaN count only where all are.
func floatReduction(in *Inst) reducer {
	isMin, nan, abs := in.Op == OpMin, in.Has("NaN"), in.Has("abs")
	prepare := func(x uint32) uint32 {
		switch {
		case fmtF32.isNaN(uint64(x)):
			return uint32(fmtF32.nan)
		case abs:
			return x &^ (1 << 31)
		}
		return x
	}
	return reducer{prepare, func(x, y uint32) uint32 { return uint32(fmtF32.minMax(uint64(x), uint64(y), isMin, nan)) }}
}

// Of folds values.
func (x *reducer) Of(values ...uint32) uint32 {
	r := x.prepare(values[0])
	for _, v := range values[1:] {
		r = x.step(r, x.prepare(v))
	}
	return r
}

// bindReduce binds a reduction over the lanes of the mask.
func bindReduce(in *Inst, x reducer) {
	in.Lanes = func(_ *Inst, w *WarpArgs) {
		first := bits.TrailingZeros32(w.Mask)
		r := x.prepare(uint32(w.S[0][first&31]))
		for m := w.Mask & (w.Mask - 1); m != 0; m &= m - 1 {
			r = x.step(r, x.prepare(uint32(w.S[0][bits.TrailingZeros32(m)])))
		}
		w.fill(uint64(r))
	}
}
