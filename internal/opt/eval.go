package opt

// Eval computes a native operation (Add to Sel) on the values of one lane. args are in the order of Args, imm and aux
// are the instruction's, and w is the width of the result.
func Eval(op Op, imm uint64, aux uint8, w Width, args [3]uint64) uint64 {
	return evalNative(op, imm, aux, w.Bits(), args[0], args[1], args[2]) & w.Mask()
}
