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

// func enterAll(code uintptr, files **Regs, n uint64, limit int64, marks, want uint64) (done, end, left uint64)
//
// The frame has the results where code that is called from it writes them.
TEXT ·enterAll(SB), NOSPLIT, $56-72
	MOVQ files+8(FP), SI
	MOVQ $0, 40(SP)

next:
	MOVQ SI, 48(SP)
	MOVQ 0(SI), R10
	MOVQ $0, 48(R10)
	MOVQ limit+24(FP), AX
	MOVQ AX, 56(R10)
	MOVQ marks+32(FP), AX
	MOVQ AX, 64(R10)
	MOVL $-1, DX
	MOVQ 0(R10), DI
	MOVQ 8(R10), R11
	MOVQ 16(R10), R14
	MOVQ 24(R10), R13
	MOVQ code+0(FP), AX
	CALL AX
	MOVQ 24(SP), AX
	MOVQ 32(SP), CX
	TESTQ CX, CX
	JNE  out
	CMPQ AX, want+40(FP)
	JNE  out
	MOVQ 48(SP), SI
	ADDQ $8, SI
	MOVQ 40(SP), DX
	INCQ DX
	MOVQ DX, 40(SP)
	CMPQ DX, n+16(FP)
	JNE  next

out:
	MOVQ 40(SP), DX
	MOVQ DX, done+48(FP)
	MOVQ AX, end+56(FP)
	MOVQ CX, left+64(FP)
	RET
