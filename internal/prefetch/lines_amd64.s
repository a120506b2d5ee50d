#include "textflag.h"

// func lines(at *[Most]unsafe.Pointer, n int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), AX
	MOVQ n+8(FP), CX

next:
	MOVQ (AX), BX
	PREFETCHT0 (BX)
	ADDQ $8, AX
	DECQ CX
	JNZ  next
	RET
