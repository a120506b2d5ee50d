#include "textflag.h"

// func enter(code uintptr, x *Regs, mask uint32) (end, left uint64)
//
// The code returns in place of this function, and writes its results: see translator.
TEXT ·enter(SB), NOSPLIT, $0-40
	MOVD  code+0(FP), R9
	MOVD  x+8(FP), R0
	MOVWU mask+16(FP), R7
	MOVD  0(R0), R1
	MOVD  8(R0), R2
	MOVD  16(R0), R3
	MOVD  24(R0), R4
	MOVD  32(R0), R5
	MOVD  40(R0), R6
	JMP   (R9)
