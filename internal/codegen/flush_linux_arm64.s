#include "textflag.h"

// func clean(from, to uintptr)
TEXT ·clean(SB), NOSPLIT, $0-16
	MOVD from+0(FP), R0
	MOVD to+8(FP), R1
	MRS  CTR_EL0, R2      // line size of each cache in bytes, as 4 << n
	MOVD $4, R3
	UBFX $16, R2, $4, R4
	LSL  R4, R3, R4
	AND  $15, R2, R5
	LSL  R5, R3, R5
	MOVD R0, R6

data:
	WORD $0xd50b7b26      // DC CVAU, R6: write the data line to the point where instructions are fetched
	ADD  R4, R6
	CMP  R1, R6
	BLO  data
	DSB  $11              // for all processors (ISH)

instructions:
	WORD $0xd50b7520      // IC IVAU, R0: invalidate the instruction line on all processors
	ADD  R5, R0
	CMP  R1, R0
	BLO  instructions
	DSB  $11
	ISB  $15
	RET
