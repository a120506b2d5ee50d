package vcode

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/opt"
)

// liveness computes the live values at the start and end of each block. A value that a phi takes is live at the end of
// the block that it comes from, and a phi is live from the start of its block. Copies at the head of a block count as
// phis that take one value from every predecessor: a group carries the value out of a loop before it joins others.
func (b *compiler) liveness() {
	f := b.f
	words := (len(f.Values) + 63) / 64
	b.liveIn, b.liveOut = make([]bitset, len(f.Blocks)), make([]bitset, len(f.Blocks))
	gen, kill := make([]bitset, len(f.Blocks)), make([]bitset, len(f.Blocks))
	b.used = make(bitset, words)
	for i, bl := range f.Blocks {
		for _, in := range bl.Instrs {
			b.uses(in, b.used.add)
		}
		b.liveIn[i], b.liveOut[i] = make(bitset, words), make(bitset, words)
		gen[i], kill[i] = make(bitset, words), make(bitset, words)
		for k, in := range bl.Instrs {
			if !b.onEdge(bl, k) {
				b.uses(in, func(v opt.Value) {
					if !kill[i].has(v) {
						gen[i].add(v)
					}
				})
			}
			for _, v := range in.Dst {
				if v != opt.NoValue {
					kill[i].add(v)
				}
			}
		}
	}
	for again := true; again; {
		again = false
		for i := len(f.Blocks) - 1; i >= 0; i-- {
			out := b.liveOut[i]
			for k, s := range f.Blocks[i].Succs {
				out.union(b.liveIn[s.ID])
				b.edgeSources(f.Blocks[i], k, func(_, src opt.Value) { out.add(src) })
			}
			for w := range out {
				now := gen[i][w] | out[w]&^kill[i][w]
				if now != b.liveIn[i][w] {
					b.liveIn[i][w], again = now, true
				}
			}
		}
	}
}

// onEdge reports whether the edges into a block execute its instruction k.
func (b *compiler) onEdge(bl *opt.Block, k int) bool { return k < b.heads[bl.ID] }

// edgeSources calls f for each value that edge k out of a block defines, with the value assigned to it.
func (b *compiler) edgeSources(from *opt.Block, k int, f func(dst, src opt.Value)) {
	to := from.Succs[k]
	// Among parallel edges between two blocks, the n-th outgoing one is the n-th incoming one.
	nth := 0
	for _, s := range from.Succs[:k] {
		if s == to {
			nth++
		}
	}
	at := 0
	for i, p := range to.Preds {
		if p == from {
			if nth == 0 {
				at = i
				break
			}
			nth--
		}
	}
	for _, in := range to.Instrs[:b.heads[to.ID]] {
		switch {
		case in.Op == opt.Phi:
			f(in.Result(), in.Args[at])
		default: // a copy; if it copies a phi of the same block, the value that the phi takes
			src := in.Args[0]
			if d := b.f.Def(src); d != nil && d.Op == opt.Phi && d.Block == to {
				src = d.Args[at]
			}
			f(in.Result(), src)
		}
	}
}

func (b *compiler) uses(in *opt.Instr, f func(v opt.Value)) {
	for _, a := range in.Args {
		if a != opt.NoValue {
			f(a)
		}
	}
	if in.Guard != opt.NoValue {
		f(in.Guard)
	}
}

type bitset []uint64

func (s bitset) has(v opt.Value) bool { return s[v>>6]>>(uint(v)&63)&1 != 0 }
func (s bitset) add(v opt.Value)      { s[v>>6] |= 1 << (uint(v) & 63) }
func (s bitset) union(t bitset) {
	for i, x := range t {
		s[i] |= x
	}
}

func (s bitset) each(f func(v opt.Value)) {
	for i, x := range s {
		for ; x != 0; x &= x - 1 {
			f(opt.Value(i*64 + bits.TrailingZeros64(x)))
		}
	}
}

// interval is the live range of a value. The instructions are numbered in the order of the blocks; an instruction reads
// at twice its number and writes one later.
type interval struct {
	v          opt.Value
	start, end int
}

// intervals returns the interval of each value. Its start is -1 for a value that does not occur.
func (b *compiler) intervals() []interval {
	f := b.f
	ivs := make([]interval, len(f.Values))
	for v := range ivs {
		ivs[v] = interval{opt.Value(v), -1, -1}
	}
	touch := func(v opt.Value, at int) {
		iv := &ivs[v]
		if iv.start < 0 || at < iv.start {
			iv.start = at
		}
		iv.end = max(iv.end, at)
	}
	n := 0
	for i, bl := range f.Blocks {
		first := 2 * n
		for k, in := range bl.Instrs {
			if b.onEdge(bl, k) {
				touch(in.Result(), first)
			} else {
				b.uses(in, func(v opt.Value) { touch(v, 2*n) })
				for _, v := range in.Dst {
					if v != opt.NoValue {
						touch(v, 2*n+1)
					}
				}
			}
			n++
		}
		b.liveIn[i].each(func(v opt.Value) { touch(v, first) })
		b.liveOut[i].each(func(v opt.Value) { touch(v, 2*n-1) })
	}
	return ivs
}

// allocate assigns a register to every value of a file. It is linear scan (Poletto, Sarkar 1999) without holes and
// without spilling, since the number of registers is not limited. A value prefers the register of a phi that it goes to
// or comes from.
func (b *compiler) allocate() {
	ivs := b.intervals()
	order := ivs[:0:0]
	for _, iv := range ivs {
		if iv.start >= 0 && b.file[iv.v] != noFile && !b.fixed[iv.v] {
			order = append(order, iv)
		}
	}
	slices.SortStableFunc(order, func(x, y interval) int { return x.start - y.start })
	hints := b.hints()
	var until [predicates + 1][]int // by file and register: the end of the interval that has it
	for r := 0; r < b.t.Scalars; r++ {
		until[scalars] = append(until[scalars], 1<<62) // the fixed ones
	}
	for _, iv := range order {
		free := &until[b.file[iv.v]]
		reg := -1
		for _, h := range hints[iv.v] {
			if r := b.reg[h]; r >= 0 && (*free)[r] < iv.start {
				reg = int(r)
				break
			}
		}
		for r := 0; reg < 0 && r < len(*free); r++ {
			if (*free)[r] < iv.start {
				reg = r
			}
		}
		if reg < 0 {
			reg = len(*free)
			*free = append(*free, 0)
		}
		(*free)[reg] = iv.end
		b.reg[iv.v] = int32(reg)
	}
	b.t.Scalars, b.t.V32 = len(until[scalars])+spares, len(until[vectors32])+spares
	b.t.V64, b.t.Preds = len(until[vectors64])+spares, len(until[predicates])+spares
}

// hints pairs values of which an edge copies one to the other.
func (b *compiler) hints() map[opt.Value][]opt.Value {
	hints := map[opt.Value][]opt.Value{}
	for _, bl := range b.f.Blocks {
		for k := range bl.Succs {
			b.edgeSources(bl, k, func(dst, src opt.Value) {
				if b.file[dst] == b.file[src] && !b.fixed[src] && b.file[dst] != noFile {
					hints[dst] = append(hints[dst], src)
					hints[src] = append(hints[src], dst)
				}
			})
		}
	}
	return hints
}

// sequence orders the parallel copies of an edge so that no copy overwrites a value that a later one reads.
func (b *compiler) sequence(moves []move) []move {
	var out []move
	reads := func(m move, f file, reg int32) bool {
		switch {
		case m.src >= 0:
			return m.file == f && m.src == reg
		case f != scalars:
			return false
		case m.file == predicates:
			return ^m.src == reg
		}
		return b.t.Lines[^m.src].Reg == reg
	}
	for len(moves) > 0 {
		progress := false
		for i := 0; i < len(moves); i++ {
			blocked := false
			for j, o := range moves {
				blocked = blocked || i != j && reads(o, moves[i].file, moves[i].dst)
			}
			if !blocked {
				out = append(out, moves[i])
				moves = append(moves[:i:i], moves[i+1:]...)
				i--
				progress = true
			}
		}
		if progress || len(moves) == 0 {
			continue
		}
		// A cycle: keep the value that the first copy overwrites in the spare register and read it there.
		m := moves[0]
		spare := int32(map[file]int{scalars: b.t.Scalars, vectors32: b.t.V32, vectors64: b.t.V64, predicates: b.t.Preds}[m.file] - spares)
		out = append(out, move{m.file, spare, m.dst})
		moves = slices.Clone(moves)
		for i := range moves {
			if o := &moves[i]; reads(*o, m.file, m.dst) {
				switch {
				case o.src >= 0:
					o.src = spare
				case o.file == predicates:
					o.src = ^spare
				default:
					l := b.t.Lines[^o.src]
					l.Reg = spare
					o.src = b.lineAt(l)
				}
			}
		}
	}
	return out
}
