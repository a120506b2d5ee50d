package lanes

import (
	"math"
	"math/bits"

	"fencepost.dev/fencepost/internal/approx"
)

// The operations on one lane that are more than a Go operator. Their results are bit for bit those of the rows of
// package isa.

const (
	nan32   = 0x7fffffff
	nan64   = 0xfff8000000000000
	quiet64 = 1 << 51
	one32   = 0x3f800000
	one64   = 0x3ff0000000000000
)

func f32(x uint32) float32 { return math.Float32frombits(x) }
func f64(x uint64) float64 { return math.Float64frombits(x) }

func bits64(x float64) uint64 { return math.Float64bits(x) }

// bits32 returns the bits of a result. There is only one NaN.
func bits32(x float32) uint32 {
	if x != x {
		return nan32
	}
	return math.Float32bits(x)
}

func pick32(c, a, b uint32) uint32 {
	if c&1 != 0 {
		return a
	}
	return b
}

func pick64(c uint32, a, b uint64) uint64 {
	if c&1 != 0 {
		return a
	}
	return b
}

func eq32(a, b uint32) uint32 { return uint32(one(a == b)) }
func eq64(a, b uint64) uint32 { return uint32(one(a == b)) }

func divU32(a, b uint32) uint32 {
	if b == 0 {
		return ^uint32(0)
	}
	return a / b
}

func remU32(a, b uint32) uint32 {
	if b == 0 {
		return ^uint32(0)
	}
	return a % b
}

func divS32(a, b uint32) uint32 {
	switch b {
	case 0:
		return ^uint32(0)
	case ^uint32(0):
		return -a
	}
	return uint32(int32(a) / int32(b))
}

func remS32(a, b uint32) uint32 {
	switch b {
	case 0:
		return ^uint32(0)
	case ^uint32(0):
		return 0
	}
	return uint32(int32(a) % int32(b))
}

// lop3 selects by c, then b, then a among the bits of the table.
func lop3(a, b, c, lut uint32) uint32 {
	bit := func(i uint) uint32 { return -(lut >> i & 1) }
	by := func(i uint) uint32 { return bit(i)&^c | bit(i+1)&c }
	return (by(0)&^b|by(2)&b)&^a | (by(4)&^b|by(6)&b)&a
}

func prmt(a, b, s uint32) uint32 {
	bytes := uint64(b)<<32 | uint64(a)
	var r uint32
	for i := uint(0); i < 32; i += 8 {
		n := uint32(bytes>>(8*(s&7))) & 0xff
		if s&8 != 0 { // replicate the sign
			n = 0xff * (n >> 7)
		}
		r |= n << i
		s >>= 4
	}
	return r
}

func fadd32(a, b uint32) uint32 { return bits32(f32(a) + f32(b)) }
func fsub32(a, b uint32) uint32 { return bits32(f32(a) - f32(b)) }
func fmul32(a, b uint32) uint32 { return bits32(f32(a) * f32(b)) }
func fdiv32(a, b uint32) uint32 { return bits32(f32(a) / f32(b)) }
func fsqrt32(a uint32) uint32   { return bits32(float32(math.Sqrt(float64(f32(a))))) } // 53 bits are enough for one rounding
func frsqrt32(a uint32) uint32  { return bits32(float32(1 / math.Sqrt(float64(f32(a))))) }

func fexp2(a uint32) uint32 { return bits32(float32(approx.Exp2(float64(f32(a))))) }
func flog2(a uint32) uint32 { return bits32(float32(approx.Log2(float64(f32(a))))) }

// fmaOdd32 is the exact a*b + c rounded to odd in float64: truncated, with the last bit set if anything was lost.
// Rounding it to float32, in any mode, is the same as rounding the exact value.
func fmaOdd32(p, z float64) float64 {
	s := float64(p + z)
	zz := float64(s - p)
	err := float64(p-float64(s-zz)) + float64(z-zz)
	if u := math.Float64bits(s); err != 0 && err == err && !math.IsInf(s, 0) && u&1 == 0 {
		if (err > 0) == (s > 0) {
			return math.Float64frombits(u + 1)
		}
		return math.Float64frombits(u - 1)
	}
	return s
}

func fma32(a, b, c uint32) uint32 {
	return bits32(float32(fmaOdd32(float64(f32(a))*float64(f32(b)), float64(f32(c)))))
}

// fma32Down rounds down; there a zero sum is -0 unless both terms are +0.
func fma32Down(a, b, c uint32) uint32 {
	p, z := float64(f32(a))*float64(f32(b)), float64(f32(c))
	s := fmaOdd32(p, z)
	if s == 0 && (math.Signbit(p) || math.Signbit(z)) {
		return 1 << 31
	}
	r := float32(s)
	if float64(r) > s {
		r = math.Nextafter32(r, float32(math.Inf(-1)))
	}
	return bits32(r)
}

func fround32(a uint32, f func(float64) float64) uint32 {
	x := float64(f32(a))
	return bits32(float32(math.Copysign(f(x), x)))
}

func fround64(a uint64, f func(float64) float64) uint64 {
	if isNaN64(a) {
		return a | quiet64
	}
	return math.Float64bits(math.Copysign(f(f64(a)), f64(a)))
}

func isNaN64(a uint64) bool { return a<<1 > 0x7ff<<53 }

// result64 returns the bits of r. A NaN of operands that are not NaNs is the default NaN.
func result64(r float64) uint64 {
	if r != r {
		return nan64
	}
	return math.Float64bits(r)
}

func fadd64(a, b uint64) uint64 {
	switch {
	case isNaN64(a):
		return a | quiet64
	case isNaN64(b):
		return b | quiet64
	}
	return result64(f64(a) + f64(b))
}

func fsub64(a, b uint64) uint64 {
	switch {
	case isNaN64(a):
		return a | quiet64
	case isNaN64(b):
		return b | quiet64
	}
	return result64(f64(a) - f64(b))
}

func fmul64(a, b uint64) uint64 {
	switch {
	case isNaN64(a):
		return a | quiet64
	case isNaN64(b):
		return b | quiet64
	}
	return result64(f64(a) * f64(b))
}

func fdiv64(a, b uint64) uint64 {
	switch {
	case isNaN64(a):
		return a | quiet64
	case isNaN64(b):
		return b | quiet64
	}
	return result64(f64(a) / f64(b))
}

func fsqrt64(a uint64) uint64 {
	if isNaN64(a) {
		return a | quiet64
	}
	return result64(math.Sqrt(f64(a)))
}

func fma64(a, b, c uint64) uint64 {
	switch {
	case isNaN64(a):
		return a | quiet64
	case isNaN64(b):
		return b | quiet64
	case isNaN64(c):
		return c | quiet64
	}
	return result64(math.FMA(f64(a), f64(b), f64(c)))
}

// order32 and order64 map numbers to integers of the same order, with -0 below +0.
func order32(a uint32) int32 { return int32(a ^ uint32(int32(a)>>31)>>1) }
func order64(a uint64) int64 { return int64(a ^ uint64(int64(a)>>63)>>1) }

func fmin32(a, b uint32) uint32 {
	switch an, bn := f32(a) != f32(a), f32(b) != f32(b); {
	case an && bn:
		return nan32
	case an || !bn && order32(b) < order32(a):
		return b
	}
	return a
}

func fmax32(a, b uint32) uint32 {
	switch an, bn := f32(a) != f32(a), f32(b) != f32(b); {
	case an && bn:
		return nan32
	case an || !bn && order32(b) > order32(a):
		return b
	}
	return a
}

func fmin64(a, b uint64) uint64 {
	switch an, bn := isNaN64(a), isNaN64(b); {
	case an && bn:
		return a | quiet64
	case an || !bn && order64(b) < order64(a):
		return b
	}
	return a
}

func fmax64(a, b uint64) uint64 {
	switch an, bn := isNaN64(a), isNaN64(b); {
	case an && bn:
		return a | quiet64
	case an || !bn && order64(b) > order64(a):
		return b
	}
	return a
}

func fftz32(a uint32) uint32 {
	if a&0x7f800000 == 0 {
		return a & (1 << 31)
	}
	return a
}

func fsat32(a uint32) uint32 {
	switch x := f32(a); {
	case x > 1:
		return one32
	case x > 0:
		return a
	}
	return 0
}

func f32toF64(a uint32) uint64 {
	if x := f32(a); x == x {
		return math.Float64bits(float64(x))
	}
	return uint64(a)>>31<<63 | 0x7ff<<52 | quiet64 | uint64(a&(1<<23-1))<<29
}

func f64toF32(a uint64) uint32 {
	if isNaN64(a) {
		return nan32
	}
	return math.Float32bits(float32(f64(a)))
}

func f32toS32(a uint32) uint32 {
	switch x := f32(a); {
	case x != x:
		return 0
	case x >= 1<<31:
		return 1<<31 - 1
	case x <= -1<<31:
		return 1 << 31
	default:
		return uint32(int32(x))
	}
}

func f32toU32(a uint32) uint32 {
	switch x := f32(a); {
	case !(x > 0):
		return 0
	case x >= 1<<32:
		return 1<<32 - 1
	default:
		return uint32(int64(x))
	}
}

func f64toS32(x float64) uint32 {
	switch {
	case x != x, x <= -1<<31:
		return 1 << 31
	case x >= 1<<31-1:
		return 1<<31 - 1
	}
	return uint32(int32(x))
}

func f64toU32(x float64) uint32 {
	switch {
	case x != x:
		return 1 << 31
	case x <= 0:
		return 0
	case x >= 1<<32-1:
		return 1<<32 - 1
	}
	return uint32(int64(x))
}

func f64toS64(x float64) uint64 {
	switch {
	case x != x, x <= -1<<63:
		return 1 << 63
	case x >= 1<<63:
		return 1<<63 - 1
	}
	return uint64(int64(x))
}

func f64toU64(x float64) uint64 {
	switch {
	case x != x:
		return 1 << 63
	case x <= 0:
		return 0
	case x >= 1<<64:
		return 1<<64 - 1
	case x >= 1<<63:
		return uint64(int64(x-1<<63)) | 1<<63
	}
	return uint64(int64(x))
}

// first is the lowest lane of a mask that has one.
func first(mask uint32) int { return bits.TrailingZeros32(mask) & 31 }
