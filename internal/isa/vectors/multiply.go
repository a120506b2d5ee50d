package main

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"

	"fencepost.dev/fencepost/internal/isa"
)

// matrices describes the shape of an mma and the elements in its registers.
type matrices struct {
	m, n, k        int
	a, b, c, d     string // types of the elements
	perA, perB     int    // number of elements in a register
	countA, countB int    // number of registers
	quads          bool   // mma.m8n8k4 of f16
	colA, colB     bool   // column-major, for quads
}

func matricesOf(j *job) matrices {
	at := slices.IndexFunc(j.Mods, func(m string) bool { return m[0] == 'm' && m[1] <= '9' })
	var x matrices
	fmt.Sscanf(j.Mods[at], "m%dn%dk%d", &x.m, &x.n, &x.k)
	var types []string
	for _, m := range j.Mods[at+1:] {
		if elementsOf(m) > 0 {
			types = append(types, m)
		}
	}
	x.d, x.c, x.a, x.b = types[0], types[len(types)-1], "f16", "f16"
	if len(types) == 4 {
		x.a, x.b = types[1], types[2]
	}
	x.perA, x.perB = elementsOf(x.a), elementsOf(x.b)
	x.countA, x.countB = x.m*x.k/32/x.perA, x.n*x.k/32/x.perB
	if x.quads = x.k == 4 && x.a == "f16"; x.quads {
		x.colA, x.colB = j.Mods[at+1] == "col", j.Mods[at+2] == "col"
		x.countA, x.countB = 2, 2
	}
	if j.op == "wmma" && x.a == "f16" {
		x.countA, x.countB = 8, 8
	}
	return x
}

// elementsOf returns the number of elements of a type in a register.
func elementsOf(t string) int {
	return map[string]int{"f16": 2, "bf16": 2, "tf32": 1, "e4m3": 4, "e5m2": 4, "e3m2": 4, "e2m3": 4, "e2m1": 4, "u8": 4, "s8": 4, "u4": 8, "s4": 8, "b1": 32, "f32": 1, "f64": 1, "s32": 1}[t]
}

// inA, inB and inC return the place of an element: its lane, its register, and its index in the register.
func (x *matrices) inA(row, k int) (lane, reg, at int) {
	if x.quads && x.colA {
		return k + row/4*16, row % 4 / 2, row % 2
	} else if x.quads {
		return row%4 + row/4*16, k / 2, k % 2
	}
	return row%8*4 + k/x.perA%4, k/(4*x.perA)*(x.m/8) + row/8, k % x.perA
}

func (x *matrices) inB(k, col int) (lane, reg, at int) {
	if x.quads && x.colB {
		return col%4 + col/4*16, k / 2, k % 2
	} else if x.quads {
		return k + col/4*16, col % 4 / 2, col % 2
	}
	return 4*(col%8) + k/x.perB%4, col/8*(x.k/(4*x.perB)) + k/(4*x.perB), k % x.perB
}

func (x *matrices) inC(row, col int, typ string) (lane, reg, at int) {
	if x.quads && typ == "f16" {
		return row%4 + row/4*16, col / 2, col % 2
	} else if x.quads {
		return row%2 + col/2%2*2 + row/4*16, row/2%2*2 + col/4*4 + col%2, 0
	}
	lane, reg = row%8*4+col%8/2, col/8*(x.m/8)+row/8
	if typ == "f16" {
		return lane, reg, col % 2
	}
	return lane, 2*reg + col%2, 0
}

// matrixProduct computes mma. Each sum begins with C and is rounded after each product, in the order of k.
func matrixProduct(j *job, c warpCase, out [][32]uint64) {
	x := matricesOf(j)
	products := 1
	if x.quads {
		products = 4
	}
	for i := range x.m * products {
		first, row := i/x.m*4, i%x.m
		for col := range x.n {
			l, r, at := x.inC(row, col, x.c)
			start := c.src[x.countA+x.countB+r][first+l] >> (16 * at)
			var result uint64
			get := func(k int) (uint64, uint64) {
				la, ra, ia := x.inA(row, k)
				lb, rb, ib := x.inB(k, col)
				return c.src[ra][first+la] >> (ia * 32 / x.perA), c.src[x.countA+rb][first+lb] >> (ib * 32 / x.perB)
			}
			if x.c == "s32" {
				result = x.integers(j, start, get)
			} else {
				result = x.floats(j, start, get)
			}
			l, r, at = x.inC(row, col, x.d)
			out[r][first+l] |= result << (16 * at)
		}
	}
}

func (x *matrices) integers(j *job, start uint64, get func(k int) (uint64, uint64)) uint64 {
	value := func(v uint64, t string) *big.Int {
		n := 32 / elementsOf(t)
		if t[0] == 's' {
			return signedInt(v, n)
		}
		return unsignedInt(v, n)
	}
	sum := signedInt(start, 32)
	for k := range x.k {
		a, b := get(k)
		if x.a == "b1" && j.Has("xor") {
			sum = add(sum, unsignedInt(a^b, 1))
			continue
		}
		sum = add(sum, new(big.Int).Mul(value(a, x.a), value(b, x.b)))
	}
	if j.Has("satfinite") {
		sum = clamp(sum, isa.S32)
	}
	return wrap(sum, 32)
}

func (x *matrices) floats(j *job, start uint64, get func(k int) (uint64, uint64)) uint64 {
	f, sum, round := f32, start, "rn"
	switch x.c {
	case "f64":
		f = f64
		for _, r := range []string{"rz", "rm", "rp"} {
			if j.Has(r) {
				round = r
			}
		}
	case "f16":
		sum = f32.finish(f16.decode(start&0xffff), "rn")
	}
	for k := range x.k {
		a, b := get(k)
		p := product(elementValue(x.a, a), elementValue(x.b, b))
		if x.c != "f64" {
			p = f32.decode(f32.finish(p, "rn"))
		}
		sum = f.sum(f.decode(sum), p, round)
	}
	if x.d == "f16" {
		return f16.finish(f32.decode(sum), "rn")
	}
	return sum
}

// elementValue returns the value of an element.
func elementValue(t string, v uint64) num {
	switch t {
	case "f16":
		return f16.decode(v & 0xffff)
	case "bf16":
		return bf16.decode(v & 0xffff)
	case "tf32":
		return tf32.decode(v & 0xffffffff >> 13)
	case "e4m3", "e5m2":
		c, _ := codeOf(map[string]isa.Type{"e4m3": isa.E4M3x2, "e5m2": isa.E5M2x2}[t])
		return c.decode(v & 0xff)
	case "e3m2", "e2m3": // in the low bits of a byte
		c, _ := codeOf(map[string]isa.Type{"e3m2": isa.E3M2x2, "e2m3": isa.E2M3x2}[t])
		return c.decode(v & 0x3f)
	case "e2m1": // in the middle of a byte
		c, _ := codeOf(isa.E2M1x2)
		return c.decode(v >> 2 & 0xf)
	}
	return f64.decode(v)
}

// factors returns a register of A, B or C. The numbers have moderate size, and in the second case some are arbitrary.
func factors(j *job, i, k int, rnd *rand.Rand) uint64 {
	x := matricesOf(j)
	t := x.c
	switch {
	case k < x.countA:
		t = x.a
	case k < x.countA+x.countB:
		t = x.b
	}
	f, ok := map[string]form{"f16": f16, "bf16": bf16, "tf32": tf32, "f32": f32, "f64": f64}[t]
	if !ok || t == "f64" && i == 1 {
		v := rnd.Uint64()
		if t == "f64" {
			return v &^ (1 << 62) // no NaN
		}
		return v & 0xffffffff & ^uint64(1<<30*i) // fp8 would have NaN everywhere
	}
	var v uint64
	n := elementsOf(t)
	if t == "tf32" {
		n = 1
	}
	for range n {
		e := f.one() + rnd.Uint64N(6<<f.mant) - 3<<f.mant | rnd.Uint64()&f.sign()
		if i == 1 && rnd.IntN(40) == 0 {
			e = rnd.Uint64() & (f.sign()<<1 - 1)
		}
		bits := f.bits()
		if t == "tf32" {
			e, bits = e<<13|rnd.Uint64()&0x1fff, 32
		}
		v = v<<(bits%64) | e
	}
	return v
}

// transposed computes movmatrix, element by element.
func transposed(c warpCase, out [][32]uint64) {
	for row := range 8 {
		for col := range 8 {
			v := c.src[0][4*row+col/2] >> (16 * (col % 2)) & 0xffff
			out[0][4*col+row/2] += v << (16 * (row % 2))
		}
	}
}
