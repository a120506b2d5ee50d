package main

import (
	"math/big"
	"math/rand/v2"
	"strings"

	"fencepost.dev/fencepost/internal/isa"
)

// selects returns values and selectors for video instructions. The selecting sources follow the sources from which they
// select.
func selects(j *job, types []isa.Type, rnd *rand.Rand) [][]uint64 {
	choices := [][]uint64{1: {0, 1, 2, 3, 4, 5, 6}, 3: {0, 0, 5, 6, 1, 4, 3, 2}, 5: {1, 2, 3, 4, 5, 6}}
	switch j.op[len(j.op)-1] {
	case '2':
		choices = [][]uint64{1: {0x10, 0x32, 0x00, 0x21, 0x13}, 3: {0x32, 0x32, 0x01, 0x33}, 5: {3, 3, 1, 2}}
	case '4':
		choices = [][]uint64{1: {0x3210, 0x3210, 0x7654, 0x0000, 0x1726}, 3: {0x7654, 0x7654, 0x0123, 0x5555}, 5: {15, 15, 1, 8, 6, 13}}
	}
	if j.op == "vmad" && !j.Has("po") {
		choices[1] = []uint64{0, 0x10, 0x11, 2, 5, 6, 0x16, 0}
		choices[5] = []uint64{0, 0, 0, 0}
	}
	edge := edges(isa.U32)
	var out [][]uint64
	for i := range 24 {
		v := make([]uint64, len(types))
		for k := range v {
			switch {
			case k%2 == 1:
				v[k] = choices[k][(i+i/5*k)%len(choices[k])]
			case i%3 == 0:
				v[k] = edge[(i*(k+1)+k)%len(edge)]
			default:
				v[k] = rnd.Uint64() >> 32
				if j.op == "vshl" || j.op == "vshr" {
					v[k] >>= rnd.Uint64N(32)
				}
			}
		}
		if j.op == "vmad" && !j.Has("po") && v[1] < 16 && i%4 == 1 {
			v[5] = 0x10
		}
		out = append(out, v)
	}
	return out
}

// video computes the video instructions.
func video(j *job, in []uint64) uint64 {
	switch j.op[len(j.op)-1] {
	case '2':
		return videoParts(j, in, 2)
	case '4':
		return videoParts(j, in, 4)
	}
	if j.op == "vmad" {
		return multiplyAdd(j, in)
	}
	d, a, b := signs(j)
	t := primary(j, pick(in[0], in[1], a), pick(in[2], in[3], b))
	if len(in) == 4 {
		return wrap(limit(j, t, 32, d), 32)
	}
	c := pick(in[4], 0, d)
	if len(in) == 6 {
		at, bits := place(in[5])
		r := digits(in[4], 32)
		copy(r[at:at+bits], digits(wrap(limit(j, t, bits, d), bits), bits))
		return number(r)
	}
	t = limit(j, t, 32, d)
	switch {
	case j.Has("add"):
		t = add(t, c)
	case j.Has("min") && c.Cmp(t) < 0, j.Has("max") && c.Cmp(t) > 0:
		t = c
	}
	return wrap(t, 32)
}

// signs reports which types are signed: those of the result, of a and of b.
func signs(j *job) (d, a, b bool) {
	t := []bool{}
	for _, m := range j.Mods {
		if m == "u32" || m == "s32" {
			t = append(t, m == "s32")
		}
	}
	if len(t) == 2 {
		return false, t[0], t[1]
	}
	return t[0], t[1], t[2]
}

// place returns where a selected part begins, and its number of bits.
func place(sel uint64) (at, bits int) {
	switch sel % 16 {
	case 0:
		return 0, 32
	case 5, 6:
		return 16 * (int(sel%16) - 5), 16
	}
	return 8 * (int(sel%16) - 1), 8
}

func pick(x, sel uint64, signed bool) *big.Int {
	at, bits := place(sel)
	if signed {
		return signedInt(x>>at, bits)
	}
	return unsignedInt(x>>at, bits)
}

// limit saturates the value if the instruction does.
func limit(j *job, t *big.Int, bits int, signed bool) *big.Int {
	if !j.Has("sat") {
		return t
	}
	types := map[int][2]isa.Type{8: {isa.U8, isa.S8}, 16: {isa.U16, isa.S16}, 32: {isa.U32, isa.S32}}[bits]
	return clamp(new(big.Int).Set(t), types[flag(signed)])
}

func primary(j *job, a, b *big.Int) *big.Int {
	n := b
	if j.Has("wrap") {
		n = new(big.Int).And(b, big.NewInt(31))
	} else if b.Cmp(big.NewInt(32)) > 0 {
		n = big.NewInt(32)
	}
	switch strings.TrimRight(j.op, "24") {
	case "vadd":
		return add(a, b)
	case "vsub":
		return sub(a, b)
	case "vabsdiff":
		return new(big.Int).Abs(sub(a, b))
	case "vavrg":
		s := add(a, b)
		if s.Sign() >= 0 {
			s = add(s, big.NewInt(1))
		}
		return new(big.Int).Rsh(s, 1)
	case "vmin", "vmax":
		if (a.Cmp(b) < 0) == strings.HasPrefix(j.op, "vmin") {
			return a
		}
		return b
	case "vshl":
		return new(big.Int).Lsh(a, uint(n.Uint64()))
	case "vshr":
		return new(big.Int).Rsh(a, uint(n.Uint64()))
	}
	c := a.Cmp(b)
	for _, m := range j.Mods {
		if yes, ok := map[string]bool{"eq": c == 0, "ne": c != 0, "lt": c < 0, "le": c <= 0, "gt": c > 0, "ge": c >= 0}[m]; ok {
			return new(big.Int).SetUint64(flag(yes))
		}
	}
	panic("BUG: no oracle for " + j.Text)
}

// videoParts computes the instructions on two or four parts.
func videoParts(j *job, in []uint64, n int) uint64 {
	d, a, b := signs(j)
	bits := 32 / n
	part := func(sel uint64, i int, signed bool) *big.Int {
		k := int(sel >> (4 * i) & 15)
		x := in[0]
		if k >= n {
			x, k = in[2], k-n
		}
		if signed {
			return signedInt(x>>(bits*k), bits)
		}
		return unsignedInt(x>>(bits*k), bits)
	}
	sum, r := unsignedInt(in[4], 32), digits(in[4], 32)
	for i := range n {
		if in[5]>>i&1 == 0 {
			continue
		}
		t := limit(j, primary(j, part(in[1], i, a), part(in[3], i, b)), bits, d)
		sum = add(sum, t)
		copy(r[bits*i:bits*(i+1)], digits(wrap(t, bits), bits))
	}
	if j.Has("add") {
		return wrap(sum, 32)
	}
	return number(r)
}

// multiplyAdd computes vmad.
func multiplyAdd(j *job, in []uint64) uint64 {
	_, a, b := signs(j)
	p := mul(pick(in[0], in[1], a), pick(in[2], in[3], b))
	signed := a || b
	if (in[1]^in[3])>>4&1 == 1 {
		p, signed = new(big.Int).Neg(p), true
	}
	minusC := len(in) == 6 && in[5] == 0x10
	signed = signed || minusC
	c := pick(in[4], 0, signed)
	if minusC {
		c = new(big.Int).Neg(c)
	}
	p = add(p, c)
	if j.Has("po") {
		p = add(p, big.NewInt(1))
	}
	if j.Has("shr7") {
		p = new(big.Int).Rsh(p, 7)
	} else if j.Has("shr15") {
		p = new(big.Int).Rsh(p, 15)
	}
	return wrap(limit(j, p, 32, signed), 32)
}
