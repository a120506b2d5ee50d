// Package lanes computes over the 32 lanes of a warp at once.
//
// Every function takes a mask of lanes and writes only those lanes of d; the others keep their values. d may be one of
// the sources. Comparisons return the mask of the lanes (within mask) in which they hold. The functions whose names end
// in S take a scalar as the last source. Floating point follows PTX: results round to nearest even, and subnormals are
// kept. A NaN result is 0x7fffffff for f32. For f64 it is the first NaN operand made quiet, or 0xfff8000000000000 if no
// operand is a NaN.
//
// The functions are Go code. Run executes a list of operations with them. Under Linux, on amd64 with AVX2 and on arm64,
// Compile makes machine code of lists, which takes a twentieth of the time with AVX2; tests compare it with the
// functions. The functions are generated from one table: see gen. Vectors that begin at a multiple of 64 bytes are
// fastest.
package lanes

//go:generate go run ./gen

// V32 and V64 are vector registers: a value a lane.
type (
	V32 = [32]uint32
	V64 = [32]uint64
)
