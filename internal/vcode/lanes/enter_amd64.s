#include "textflag.h"

// func enter(code uintptr, x *Regs, mask uint32) (end, left uint64)
//
// The code returns in place of this function, and writes its results: see translator.
TEXT ·enter(SB), NOSPLIT, $0-40
	MOVQ code+0(FP), AX
	MOVQ x+8(FP), R10
	MOVL mask+16(FP), DX
	MOVQ 0(R10), DI
	MOVQ 8(R10), R11
	MOVQ 16(R10), R14
	MOVQ 24(R10), R13
	JMP  AX
