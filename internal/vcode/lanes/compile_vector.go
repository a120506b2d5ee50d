//go:build amd64 || arm64

package lanes

// vectorCode writes the instructions of an operation on a strip. It is nil for operations that are left to Go code.
var vectorCode [codes]func(t *translator, o *Op)

// negated are the comparisons whose instructions yield the complementary lanes.
var negated [codes]bool

// inDoubles are the operations on 32 bits that compute in float64. A strip then has as many lanes as for 64 bits.
var inDoubles [codes]bool

// passesNaN are the operations on 32 bits whose result is the canonical NaN if a source is any NaN.
var passesNaN = [codes]bool{OpFAdd32: true, OpFAdd32S: true, OpFSub32: true, OpFSub32S: true, OpFRSub32S: true, OpFMul32: true, OpFMul32S: true,
	OpFDiv32: true, OpFDiv32S: true, OpFRDiv32S: true, OpFMA32: true, OpFMA32S: true, OpFMA32SB: true, OpFSqrt32: true, OpFRcp32: true}

// anyNaN reports whether the result of the current operation may be any NaN instead of the canonical one. That is so if
// all operations that read it, before the group overwrites it, canonicalise it themselves. In sums of products the
// canonicalisation saved is most of the time they take.
func (t *translator) anyNaN() bool {
	if !passesNaN[t.ops[t.first+t.at].Code] {
		return false
	}
	v := t.operands[t.at][0]
	for k := t.at + 1; k < t.n; k++ {
		o := &t.operands[k]
		if (o[1] == v || o[2] == v || o[3] == v) && !passesNaN[t.ops[t.first+k].Code] {
			return false
		}
		if o[0] == v {
			return true
		}
	}
	return false
}

// do registers code for operations.
func do(f func(t *translator, o *Op), cs ...Code) {
	for _, c := range cs {
		vectorCode[c] = f
	}
}

// throughDoubles registers code for operations that compute in float64.
func throughDoubles(f func(t *translator, o *Op), cs ...Code) {
	for _, c := range cs {
		inDoubles[c] = true
	}
	do(f, cs...)
}

// twoSources writes an instruction with two sources.
func twoSources(w int, op vop) func(t *translator, o *Op) {
	return func(t *translator, o *Op) {
		a, b := t.arg(0), t.arg(1)
		t.V3(op, t.all(w), t.out(o), a, b)
	}
}

// reversed is twoSources with the sources exchanged.
func reversed(w int, op vop) func(t *translator, o *Op) {
	return func(t *translator, o *Op) {
		a, b := t.arg(0), t.arg(1)
		t.V3(op, t.all(w), t.out(o), b, a)
	}
}

// oneSource writes an instruction with one source.
func oneSource(w int, op vop) func(t *translator, o *Op) {
	return func(t *translator, o *Op) {
		a := t.arg(0)
		t.V2(op, t.all(w), t.out(o), a)
	}
}

// compare registers code for comparisons. f computes the lanes in which a comparison holds, or, if not is set, those in
// which it does not.
func compare(w int, not bool, f func(t *translator, d, a, b vec), cs ...Code) {
	for _, c := range cs {
		negated[c] = not
		vectorCode[c] = func(t *translator, o *Op) {
			a, b := t.arg(0), t.arg(1)
			d := t.take()
			f(t, d, a, b)
			t.compared(w, d)
		}
	}
}

// lop3 writes a function of three bits: a selects one of two functions of b and c.
func (t *translator) lop3(o *Op) {
	a, b, c := t.arg(0), t.arg(1), t.arg(2)
	all := t.all(32)
	zero, one := byte(o.Imm)&15, byte(o.Imm)>>4&15
	d := t.out(o)
	switch {
	case zero == one:
		t.function(d, b, c, zero)
	case zero == ^one&15: // a inverts it
		t.function(d, b, c, zero)
		t.V3(bitsXor, all, d, d, a)
	default:
		x := t.take()
		t.function(d, b, c, zero)
		t.andNot(all, d, a, d)
		t.function(x, b, c, one)
		t.V3(bitsAnd, all, x, x, a)
		t.V3(bitsOr, all, d, d, x)
	}
}

// function sets d, which is neither b nor c, to the function of two bits whose table is lut: bit 2b+c of it.
func (t *translator) function(d, b, c vec, lut byte) {
	all := t.all(32)
	not := func(from vec) {
		ones := t.num(32, 1<<32-1)
		t.V3(bitsXor, all, d, from, ones)
	}
	switch lut {
	case 0b0000:
		t.V3(bitsXor, all, d, d, d)
	case 0b1111:
		t.V3(equal(32), all, d, d, d)
	case 0b1000:
		t.V3(bitsAnd, all, d, b, c)
	case 0b1110:
		t.V3(bitsOr, all, d, b, c)
	case 0b0110:
		t.V3(bitsXor, all, d, b, c)
	case 0b0010: // c without b
		t.andNot(all, d, b, c)
	case 0b0100: // b without c
		t.andNot(all, d, c, b)
	case 0b1010:
		t.copyVector(all, d, c)
	case 0b1100:
		t.copyVector(all, d, b)
	case 0b0101:
		not(c)
	case 0b0011:
		not(b)
	default:
		t.function(d, b, c, ^lut&15)
		not(d)
	}
}
