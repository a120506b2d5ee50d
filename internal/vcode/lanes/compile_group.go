//go:build amd64 || arm64

package lanes

import (
	"math"
	"math/bits"
	"slices"
)

// A group is consecutive operations that are executed together. The scalar operations come first, with all checks that
// may end the list. The other operations follow, for a few lanes at a time (a strip), whose values stay in registers
// between operations. So everything that may end the list is checked before a vector is written. If a check fails, the
// vector operations before it are executed and the list ends.
type group struct {
	first, n int
	strips   int        // number of strips; a strip has as many lanes as a register has of 32 bits, or of 64
	down     bool       // results are rounded down
	uses     []reg      // by operation: the register of its address or comparison
	offs     []int32    // by operation: the displacement of its address from that register
	ranges   []span     // by operation: the range checked with its address
	operands [][4]value // by operation
	strip    int        // the strip being written; anyStrip in a loop
	at       int        // the operation being written
	regs     [vectorRegs]content
	pinned   uint32
	straight bool // written without a loop
	spare    vec  // see takeFree
}

const anyStrip = -1

// content is the content of a vector register for a strip.
type content struct {
	value
	dirty bool // not yet written to its place in the register file
}

// value names a value that a register may hold: a vector, or a scalar or number in every lane.
type value struct {
	kind valueKind
	at   uint64 // the offset in the register file, or the number
}

type valueKind uint8

const (
	nothing  valueKind = iota
	vector32           // lanes of a vector register
	vector64
	spread32 // a scalar in every lane
	spread64
	shiftCount // a scalar as a shift count
	const32    // a number in every lane
	const64
	lanes32 // all bits of the lanes in which a predicate holds
	lanes64
	bits32Of // in each lane the bit of the lane
	bits64Of
)

// maxGroup bounds the operations of a group.
const maxGroup = 200

// unrolled is the greatest number of operations, summed over all strips, that are written without a loop.
const unrolled = 24

// lanesPerStrip returns the number of lanes in a strip for an operation.
func lanesPerStrip(c Code) int {
	if inDoubles[c] || widthOf(c) == 64 {
		return vectorBytes / 8
	}
	return vectorBytes / 4
}

// widthOf returns the width in bits of the operands of an operation that are not vectors.
func widthOf(c Code) int {
	for _, f := range operands[c] {
		if f == vectors64 {
			return 64
		}
	}
	return 32
}

// translates reports whether there is machine code for an operation.
func (t *translator) translates(o *Op) bool {
	return vectorCode[o.Code] != nil || t.isScalar(o.Code) || t.isLoad(o.Code) || t.isSingle(o.Code)
}

// together writes a group that begins with operation i and returns its number of operations. It returns 0 if the
// operation is in no group.
func (t *translator) together(i int) int {
	g := &t.group
	*g = group{first: i, uses: g.uses[:0], offs: g.offs[:0], ranges: g.ranges[:0], operands: g.operands}
	set := map[int32]int{}                              // by scalar: the last operation that writes it
	read, written := map[int32]bool{}, map[int32]bool{} // scalars that strips read, predicates that comparisons write
	free, vectors := groupRegs, 0
	for ; g.n < maxGroup && i+g.n < t.limit; g.n++ {
		if g.n > 0 && t.target[i+g.n] {
			break
		}
		o := &t.ops[i+g.n]
		var r reg
		off, part := int32(0), span{}
		switch {
		case t.isScalar(o.Code):
			if read[o.D] {
				return t.write(vectors)
			}
			set[o.D] = g.n
		case vectorCode[o.Code] != nil || t.isLoad(o.Code):
			strips := 32 / lanesPerStrip(o.Code)
			takes := t.isLoad(o.Code) || operands[o.Code][0] == preds
			down := o.Code >= OpFMAM32 && o.Code <= OpFMAM32SB
			lead := t.leader(o, set)
			takes = takes && lead < 0
			if g.strips != 0 && (g.strips != strips || g.down != down) || takes && len(free) == 0 || !o.joins(read, written) {
				return t.write(vectors)
			}
			switch {
			case takes:
				r, free = free[0], free[1:]
			case lead >= 0:
				r, off, part = g.uses[lead], t.follow(o, lead), span{follows: true}
			}
			g.strips, g.down = strips, down
			g.straight = g.straight || t.isLoad(o.Code) && accessOps[o.Code-OpLoad8ULine].unrolls()
			vectors++
		default:
			return t.write(vectors)
		}
		g.uses, g.offs, g.ranges = append(g.uses, r), append(g.offs, off), append(g.ranges, part)
	}
	return t.write(vectors)
}

// joins records what the operation reads and writes in strips. It returns false if the operation reads a predicate that
// an earlier comparison writes.
func (o *Op) joins(read, written map[int32]bool) bool {
	isAccess := o.Code >= OpLoad8ULine
	for k, off := range []int32{o.A, o.B, o.C} {
		switch operands[o.Code][1+k] {
		case preds:
			if written[off] {
				return false
			}
		case scalars:
			if !isAccess {
				read[off] = true
			}
		}
	}
	if operands[o.Code][0] == preds {
		written[o.D] = true
	}
	return true
}

// write writes the group.
func (t *translator) write(vectors int) int {
	g := &t.group
	if g.n == 0 {
		return 0
	}
	reach, before := false, false
	var stops []stop
	for k := range g.n {
		o := &t.ops[g.first+k]
		if isAccess := t.isLoad(o.Code) || t.isScalarLoad(o.Code); isAccess && !reach {
			t.loadReach()
			reach = true
		}
		odd := func() *label {
			if !before {
				return t.stop(o.Imm)
			}
			stops = append(stops, stop{new(label), k})
			return stops[len(stops)-1].at
		}
		switch {
		case g.ranges[k].follows:
			before = true
		case g.ranges[k].hi != 0:
			t.reachAll(o, g.uses[k], g.ranges[k], odd())
			before = true
		case t.isLoad(o.Code):
			t.reach(o, g.uses[k], odd())
			before = true
		case t.isScalar(o.Code):
			t.scalar(o, odd)
		default:
			before = true
		}
	}
	if vectors > 0 {
		t.writeStrips(vectors)
	}
	if len(stops) > 0 {
		whole := *g
		whole.uses, whole.offs = slices.Clone(g.uses), slices.Clone(g.offs)
		t.cold = append(t.cold, func() { t.writeStops(whole, stops) })
	}
	return g.n
}

// stop is the exit of a group if the list ends at its operation k.
type stop struct {
	at *label
	k  int
}

// writeStops writes the vector operations of a group that precede the operation at which the list ends, for each of
// stops. A register says which stop it is. The scalar operations and the checks of the loads are done by then.
func (t *translator) writeStops(whole group, stops []stop) {
	var begin label
	for i, s := range stops {
		t.Bind(s.at)
		if len(stops) > 1 {
			t.Set(stopReg, uint64(i))
			t.Jump(&begin)
		}
	}
	t.Bind(&begin)
	from := 0
	for i, s := range stops {
		g := &t.group
		*g = group{first: whole.first + from, n: s.k - from, strips: whole.strips, down: whole.down, uses: whole.uses[from:s.k], offs: whole.offs[from:s.k], operands: g.operands}
		vectors := 0
		for k := range g.n {
			if c := t.ops[g.first+k].Code; !t.isScalar(c) {
				vectors++
				g.straight = g.straight || t.isLoad(c) && accessOps[c-OpLoad8ULine].unrolls()
			}
		}
		if vectors > 0 {
			t.writeStrips(vectors)
		}
		from = s.k
		imm := t.ops[whole.first+s.k].Imm
		if i+1 == len(stops) {
			t.leave(imm)
			return
		}
		t.ifStop(i, t.stop(imm))
	}
}

// writeStrips writes the part of a group that is executed strip by strip.
func (t *translator) writeStrips(vectors int) {
	g := &t.group
	t.beginStrips()
	if g.straight = g.straight || vectors*g.strips <= unrolled; g.straight {
		for g.strip = range g.strips {
			t.writeStrip()
		}
	} else {
		g.strip = anyStrip
		t.loop(t.writeStrip)
	}
	for k := range g.n {
		if t.compares(k) {
			t.setCompared(&t.ops[g.first+k], g.uses[k])
		}
	}
	if g.down {
		t.round(false)
	}
}

// compares reports whether operation k of the group is a comparison of vectors.
func (t *translator) compares(k int) bool {
	c := t.ops[t.first+k].Code
	return vectorCode[c] != nil && operands[c][0] == preds
}

func (t *translator) writeStrip() {
	g := &t.group
	g.regs = [vectorRegs]content{}
	g.operands = g.operands[:0]
	for k := range g.n {
		o := &t.ops[g.first+k]
		f, w := &operands[o.Code], widthOf(o.Code)
		g.operands = append(g.operands, [4]value{operandValue(f[0], o.D, w), operandValue(f[1], o.A, w), operandValue(f[2], o.B, w), operandValue(f[3], o.C, w)})
	}
	for g.at = range g.n {
		o := &t.ops[g.first+g.at]
		g.pinned = 0
		switch {
		case t.isLoad(o.Code):
			t.loadLanes(o, g.uses[g.at], g.offs[g.at], t.out(o))
		case vectorCode[o.Code] != nil:
			vectorCode[o.Code](t, o)
		}
	}
	g.at = g.n
	for r := range g.regs {
		t.keep(vec(r))
	}
}

// all reports whether lanes of w bits of a strip fill a whole register.
func (t *translator) all(w int) bool { return t.strips == 128/vectorBytes || w == 64 }

func vectorWidth(k valueKind) int {
	if k == vector64 || k == spread64 || k == const64 || k == lanes64 || k == bits64Of {
		return 64
	}
	return 32
}

// keep writes a register to its place, if it is dirty.
func (t *translator) keep(r vec) {
	c := &t.regs[r]
	if !c.dirty {
		return
	}
	c.dirty = false
	t.writeBack(c.value, r)
}

// takeFree returns one of two registers that hold nothing between instructions. They are reserved for keep.
func (t *translator) takeFree() vec {
	t.spare ^= 1
	return allocated - 2 + t.spare
}

// take allocates a register until the end of the current operation. It takes one that holds nothing, or else the one
// whose value is read last.
func (t *translator) take() vec {
	n := allocated
	if t.masked {
		n -= 2
	}
	best := -1
	for r := range n {
		if t.pinned>>r&1 == 0 && t.regs[r].kind == nothing {
			best = r
			break
		}
	}
	if best < 0 {
		uses, far := t.nextUses(n), -1
		for r, next := range uses[:n] {
			if next = 2 * next; !t.regs[r].dirty {
				next++
			}
			if t.pinned>>r&1 == 0 && next > far {
				best, far = r, next
			}
		}
		if uses[best] != overwritten {
			t.keep(vec(best))
		}
	}
	t.regs[best] = content{}
	t.pinned |= 1 << best
	return vec(best)
}

// The results of nextUses for a value that is not read soon, and for one that is not read any more.
const (
	farAway     = math.MaxInt32 - 1
	overwritten = math.MaxInt32
)

// nextUses returns for each of the first n registers, all of which hold something, the next operation of the group,
// from the current one on, that reads it.
func (t *translator) nextUses(n int) (uses [vectorRegs]int) {
	open := uint(1)<<n - 1
	for r := range n {
		uses[r] = farAway
	}
	for k := t.at; k < min(t.n, t.at+40) && open != 0; k++ {
		o := &t.operands[k]
		for rest := open; rest != 0; rest &= rest - 1 {
			r := bits.TrailingZeros(rest)
			switch v := t.regs[r].value; v {
			case o[1], o[2], o[3]:
				uses[r] = k
			case o[0]:
				uses[r] = overwritten
			default:
				continue
			}
			open &^= 1 << r
		}
	}
	return uses
}

// operandValue returns the value of an operand, and none for a literal.
func operandValue(f file, off int32, w int) value {
	v := value{at: uint64(uint32(off))}
	switch f {
	case vectors32:
		v.kind = vector32
	case vectors64:
		v.kind = vector64
	case scalars:
		if v.kind = spread32; w == 64 {
			v.kind = spread64
		}
	case preds:
		if v.kind = lanes32; w == 64 {
			v.kind = lanes64
		}
	default:
		return value{}
	}
	return v
}

// have returns a register that holds a value.
func (t *translator) have(v value) vec {
	for r := range t.regs {
		if t.regs[r].value == v {
			t.pinned |= 1 << r
			return vec(r)
		}
	}
	r := t.take()
	t.fetch(v, r)
	t.regs[r].value = v
	return r
}

// arg returns source i of the current operation.
func (t *translator) arg(i int) vec {
	return t.have(t.operands[t.at][1+i])
}

// out returns the register for the result of an operation. It may be written only after the sources are read.
func (t *translator) out(o *Op) vec {
	v := t.operands[t.at][0]
	r := t.take()
	for i := range t.regs {
		if t.regs[i].value == v {
			t.regs[i] = content{}
		}
	}
	t.regs[r] = content{v, true}
	return r
}

// num returns a register with a number in every lane.
func (t *translator) num(w int, v uint64) vec {
	if w == 64 {
		return t.have(value{const64, v})
	}
	return t.have(value{const32, v})
}

// float is num for a floating-point number.
func (t *translator) float(w int, v float64) vec {
	if w == 64 {
		return t.num(64, math.Float64bits(v))
	}
	return t.num(32, uint64(math.Float32bits(float32(v))))
}

// whole returns the place of a number in every lane of a register.
func (t *translator) whole(w int, v uint64) mem {
	b := make([]byte, vectorBytes)
	for i := range b {
		b[i] = byte(v >> (i * 8 % w))
	}
	return mem{Base: dataReg, Disp: t.constant(b)}
}

// vectorAt returns the place of a vector's lanes.
func (t *translator) vectorAt(v value) mem {
	if v.kind == vector64 {
		return t.lanesAt(longsReg, int32(v.at), 64)
	}
	return t.lanesAt(wordsReg, int32(v.at), 32)
}
