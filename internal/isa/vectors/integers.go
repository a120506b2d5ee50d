package main

import (
	"math/big"

	"fencepost.dev/fencepost/internal/isa"
)

func add(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
func sub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
func mul(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }

// elements applies f to the elements of packed values.
func elements(n, bits int, in []uint64, f func(in []uint64) uint64) uint64 {
	var r uint64
	for i := range n {
		part := make([]uint64, len(in))
		for k, x := range in {
			part[k] = x >> (i * bits) & (1<<bits - 1)
		}
		r |= f(part) << (i * bits)
	}
	return r
}

// integerElem is the element type of a packed integer type.
var integerElem = map[isa.Type]isa.Type{isa.U16x2: isa.U16, isa.S16x2: isa.S16, isa.U8x4: isa.U8, isa.S8x4: isa.S8}

// integer computes the rows of integer arithmetic.
func integer(j *job, in []uint64) []uint64 {
	if t := integerElem[j.typ]; t != isa.NoType {
		return []uint64{elements(4/t.Size(), 8*t.Size(), in, func(p []uint64) uint64 { return integer1(j, p, t) })}
	}
	switch j.op {
	case "addc", "subc", "madc":
		return carrying(j, in)
	case "add", "sub", "mad":
		if j.Has("cc") {
			return carrying(j, in)
		}
	}
	return []uint64{integer1(j, in, j.typ)}
}

// carrying computes the rows with a condition code. The code is 1 after a sum with a carry and after a difference
// without a borrow: NVIDIA's assembler compiles sub.cc to IADD3 with the complement, and keeps the carry of that (sm_75
// to sm_100).
func carrying(j *job, in []uint64) []uint64 {
	bits := 8 * j.typ.Size()
	n := len(in)
	c := new(big.Int)
	if j.op == "addc" || j.op == "subc" || j.op == "madc" {
		n--
		c.SetUint64(in[n])
	}
	var total *big.Int
	switch j.op {
	case "add", "addc":
		total = add(add(unsignedInt(in[0], bits), unsignedInt(in[1], bits)), c)
	case "sub", "subc":
		total = sub(unsignedInt(in[0], bits), unsignedInt(in[1], bits))
		if j.op == "subc" && c.Sign() == 0 {
			total = sub(total, big.NewInt(1))
		}
		out := []uint64{wrap(total, bits)}
		if j.Has("cc") {
			out = append(out, flag(total.Sign() >= 0))
		}
		return out
	default:
		p := mul(intOf(in[0], j.typ), intOf(in[1], j.typ))
		if j.Has("hi") {
			p = new(big.Int).Rsh(p, uint(bits)) // an arithmetic shift rounds down
		}
		half := new(big.Int).SetUint64(wrap(p, bits))
		total = add(add(half, unsignedInt(in[2], bits)), c)
	}
	out := []uint64{wrap(total, bits)}
	if j.Has("cc") {
		out = append(out, uint64(new(big.Int).Rsh(total, uint(bits)).Bit(0)))
	}
	return out
}

// integer1 computes one result of elements of type t.
func integer1(j *job, in []uint64, t isa.Type) uint64 {
	bits := 8 * t.Size()
	val := func(i int) *big.Int { return intOf(in[i], t) }
	switch j.op {
	case "add", "sub":
		r := add(val(0), val(1))
		if j.op == "sub" {
			r = sub(val(0), val(1))
		}
		if j.Has("sat") {
			r = clamp(r, t)
		}
		return wrap(r, bits)
	case "mul", "mad":
		return multiply(j, in, t, mul(val(0), val(1)), bits, 8*t.Size())
	case "mul24", "mad24":
		a, b := unsignedInt(in[0], 24), unsignedInt(in[1], 24)
		if t == isa.S32 {
			a, b = signedInt(in[0], 24), signedInt(in[1], 24)
		}
		return multiply(j, in, t, mul(a, b), 32, 16)
	case "sad":
		return wrap(add(new(big.Int).Abs(sub(val(0), val(1))), val(2)), bits)
	case "div", "rem":
		if val(1).Sign() == 0 {
			return wrap(big.NewInt(-1), bits)
		}
		if j.op == "div" {
			return wrap(new(big.Int).Quo(val(0), val(1)), bits)
		}
		return wrap(new(big.Int).Rem(val(0), val(1)), bits)
	case "abs":
		return wrap(new(big.Int).Abs(val(0)), bits)
	case "neg":
		return wrap(new(big.Int).Neg(val(0)), bits)
	case "min", "max":
		r := val(0)
		if (val(1).Cmp(r) < 0) == (j.op == "min") {
			r = val(1)
		}
		if j.Has("relu") && r.Sign() < 0 {
			r = new(big.Int)
		}
		return wrap(r, bits)
	}
	return bitwise(j, in, t)
}

// multiply returns the selected part of a product, plus the third operand if there is one.
func multiply(j *job, in []uint64, t isa.Type, p *big.Int, bits, hiShift int) uint64 {
	if j.Has("wide") {
		bits *= 2
	}
	if j.Has("hi") {
		p = new(big.Int).Rsh(p, uint(hiShift))
	}
	if len(in) < 3 {
		return wrap(p, bits)
	}
	c := signedInt(in[2], bits)
	if !t.Signed() {
		c = unsignedInt(in[2], bits)
	}
	if j.Has("sat") {
		part := new(big.Int).SetUint64(wrap(p, bits))
		return wrap(clamp(add(signedInt(part.Uint64(), bits), c), t), bits)
	}
	return wrap(add(p, c), bits)
}

// digits returns the bits of x, lowest first.
func digits(x uint64, n int) []int {
	d := make([]int, n)
	for i := range d {
		d[i] = int(x >> i & 1)
	}
	return d
}

func number(d []int) uint64 {
	var x uint64
	for i, b := range d {
		x |= uint64(b) << i
	}
	return x
}

// bitwise computes the rows that work on single bits, bit by bit.
func bitwise(j *job, in []uint64, t isa.Type) uint64 {
	n := 8 * t.Size()
	d := digits(in[0], n)
	switch j.op {
	case "popc":
		c := uint64(0)
		for _, b := range d {
			c += uint64(b)
		}
		return c
	case "clz":
		c := uint64(0)
		for i := n - 1; i >= 0 && d[i] == 0; i-- {
			c++
		}
		return c
	case "bfind":
		look := 1
		if t.Signed() && d[n-1] == 1 {
			look = 0
		}
		for i := n - 1; i >= 0; i-- {
			if d[i] == look {
				if j.Has("shiftamt") {
					return uint64(n - 1 - i)
				}
				return uint64(i)
			}
		}
		return 0xffffffff
	case "brev":
		r := make([]int, n)
		for i := range d {
			r[n-1-i] = d[i]
		}
		return number(r)
	}
	return fields(j, in, t)
}

// fields computes the rows that work on fields of bits.
func fields(j *job, in []uint64, t isa.Type) uint64 {
	n := 8 * t.Size()
	d := digits(in[0], n)
	switch j.op {
	case "bfe":
		pos, length := int(in[1]&0xff), int(in[2]&0xff)
		fill := 0
		if t.Signed() && length > 0 {
			fill = d[min(pos+length-1, n-1)]
		}
		r := make([]int, n)
		for i := range r {
			r[i] = fill
			if i < length && pos+i < n {
				r[i] = d[pos+i]
			}
		}
		return number(r)
	case "bfi":
		pos, length := int(in[2]&0xff), int(in[3]&0xff)
		r := digits(in[1], n)
		for i := 0; i < length && pos+i < n; i++ {
			b := 0
			if i < n {
				b = d[i]
			}
			r[pos+i] = b
		}
		return number(r)
	}
	return bitwise2(j, in, t)
}

// inRange limits a width or a shift of 32-bit operands to its range.
func inRange(j *job, x uint64) int {
	if j.Has("wrap") {
		return int(x % 32)
	}
	return int(min(x, 32))
}

func bitwise2(j *job, in []uint64, t isa.Type) uint64 {
	switch j.op {
	case "fns":
		return findNth(in)
	case "clmad":
		return carryless(j, in)
	case "szext":
		n := inRange(j, in[1])
		if n == 0 {
			return 0
		}
		v := unsignedInt(in[0], n)
		if t == isa.S32 {
			v = signedInt(in[0], n)
		}
		return wrap(v, 32)
	case "bmsk":
		at, n := inRange(j, in[0]), inRange(j, in[1])
		r := make([]int, 32)
		for i := range r {
			if i >= at && i < at+n {
				r[i] = 1
			}
		}
		return number(r)
	case "dp4a", "dp2a":
		return dot(j, in)
	}
	panic("BUG: no oracle for " + j.Text)
}

// carryless computes clmad. The bits of the factors are polynomials.
func carryless(j *job, in []uint64) uint64 {
	var product [128]uint
	for i, x := range digits(in[0], 64) {
		for k, y := range digits(in[1], 64) {
			product[i+k] += uint(x * y)
		}
	}
	var half []int
	for i := range 64 {
		if j.Has("hi") {
			i += 64
		}
		half = append(half, int(product[i]%2))
	}
	return number(half) ^ in[2]
}

// findNth computes fns as the manual describes it.
func findNth(in []uint64) uint64 {
	d, base, offset := digits(in[0], 32), int(in[1]), int(int32(in[2]))
	if base > 31 {
		return 0xffffffff
	}
	if offset == 0 {
		if d[base] == 1 {
			return uint64(base)
		}
		return 0xffffffff
	}
	pos, count, inc := base, offset-1, 1
	if offset < 0 {
		count, inc = -offset-1, -1
	}
	for pos >= 0 && pos < 32 {
		if d[pos] == 1 {
			if count == 0 {
				return uint64(pos)
			}
			count--
		}
		pos += inc
	}
	return 0xffffffff
}

// dot computes dp4a and dp2a: products of 8-bit elements, or of 16-bit elements of a with two bytes of b.
func dot(j *job, in []uint64) uint64 {
	ta, tb := j.Inst().Type, j.Inst().Type2
	read := func(x uint64, bits int, t isa.Type) *big.Int {
		if t == isa.S32 {
			return signedInt(x, bits)
		}
		return unsignedInt(x, bits)
	}
	sum := signedInt(in[2], 32)
	if j.op == "dp4a" {
		for i := range 4 {
			sum = add(sum, mul(read(in[0]>>(8*i), 8, ta), read(in[1]>>(8*i), 8, tb)))
		}
		return wrap(sum, 32)
	}
	first := 0
	if j.Has("hi") {
		first = 16
	}
	for i := range 2 {
		sum = add(sum, mul(read(in[0]>>(16*i), 16, ta), read(in[1]>>(first+8*i), 8, tb)))
	}
	return wrap(sum, 32)
}

// logic computes logic and shifts.
func logic(j *job, in []uint64) []uint64 {
	n := 8 * j.typ.Size()
	if j.typ == isa.Pred {
		n = 1
	}
	d := digits(in[0], n)
	r := make([]int, n)
	each := func(f func(i int) int) []uint64 {
		for i := range r {
			r[i] = f(i)
		}
		return []uint64{number(r)}
	}
	switch j.op {
	case "and", "or", "xor":
		e := digits(in[1], n)
		return each(func(i int) int {
			return map[string][4]int{"and": {0, 0, 0, 1}, "or": {0, 1, 1, 1}, "xor": {0, 1, 1, 0}}[j.op][2*d[i]+e[i]]
		})
	case "not":
		return each(func(i int) int { return 1 - d[i] })
	case "cnot":
		if number(d) == 0 {
			return []uint64{1}
		}
		return []uint64{0}
	case "shl":
		return []uint64{wrap(new(big.Int).Lsh(unsignedInt(in[0], n), uint(min(in[1], 1000))), n)}
	case "shr":
		return []uint64{wrap(new(big.Int).Rsh(intOf(in[0], j.typ), uint(min(in[1], 1000))), n)}
	case "shf":
		both := add(new(big.Int).Lsh(unsignedInt(in[1], 32), 32), unsignedInt(in[0], 32))
		k := uint(inRange(j, in[2]))
		if j.Has("l") {
			return []uint64{wrap(new(big.Int).Rsh(new(big.Int).Lsh(both, k), 32), 32)}
		}
		return []uint64{wrap(new(big.Int).Rsh(both, k), 32)}
	case "lop3":
		e, f := digits(in[1], n), digits(in[2], n)
		out := each(func(i int) int { return int(in[3] >> (4*d[i] + 2*e[i] + f[i]) & 1) })
		if j.Has("or") {
			out = append(out, max(min(out[0], 1), in[4]))
		} else if j.Has("and") {
			out = append(out, min(out[0], in[4]))
		}
		return out
	}
	panic("BUG: no oracle for " + j.Text)
}
