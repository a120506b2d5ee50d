// Package lanes computes over the 32 lanes of a warp at once.
//
// Every function takes a mask of lanes and writes those lanes of d only; the others keep what they hold. d may be one of
// the sources. Comparisons return the mask of lanes (within mask) where they hold. The functions whose name ends in S
// take a scalar as the last source. Floating point follows PTX: results round to nearest even, subnormals are kept, a
// NaN result is 0x7fffffff for f32; for f64 it is the first NaN operand made quiet, and 0xfff8000000000000 where none is.
//
// The functions are Go code. Run does a list of operations by them. Under Linux, on amd64 with AVX2 and on arm64, Compile makes machine
// code of lists, which takes a twentieth of the time with AVX2; tests compare it with the functions. Those are made from one table: see
// gen. Vectors that begin at a multiple of 64 bytes are fastest.
package lanes

//go:generate go run ./gen

// V32 and V64 are vector registers: a value a lane.
type (
	V32 = [32]uint32
	V64 = [32]uint64
)
