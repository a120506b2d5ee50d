#include "textflag.h"

// func Widen(d *V64, a *V32)
TEXT ·Widen(SB), NOSPLIT, $0-16
	MOVQ d+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ $8, CX
	PXOR X0, X0

four:
	MOVOU     (SI), X1
	MOVO      X1, X2
	PUNPCKLLQ X0, X1
	PUNPCKHLQ X0, X2
	MOVOU     X1, (DI)
	MOVOU     X2, 16(DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       four
	RET
