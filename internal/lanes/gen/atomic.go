package main

import (
	"fmt"
	"strings"
)

// atomic is a read-modify-write of memory: what makes the new value in R11, where b is, of the old one in R10. W
// stands for the width in instructions; c is at (DI), R12 is free, R15 holds 0.
type atomic struct {
	name string
	asm  string
}

// atomics are in the order of the constants of lanes.RMW, after NoRMW. The last ones are of 32 bits only.
var atomics = []atomic{
	{"Add", "ADDW R10, R11"},
	{"And", "ANDW R10, R11"},
	{"Or", "ORW R10, R11"},
	{"Xor", "XORW R10, R11"},
	{"Exch", ""},
	{"Cas", "MOVW (DI)(R8*S), R12; CMPW R10, R11; MOVW R10, R11; CMOVWEQ R12, R11"},
	{"MinS", "CMPW R10, R11; CMOVWLT R10, R11"},
	{"MinU", "CMPW R10, R11; CMOVWCS R10, R11"},
	{"MaxS", "CMPW R10, R11; CMOVWGT R10, R11"},
	{"MaxU", "CMPW R10, R11; CMOVWHI R10, R11"},
	{"FAdd", ""}, // addFloat
	{"Inc", "LEAL 1(R10), R12; CMPL R10, R11; MOVL R12, R11; CMOVLCC R15, R11"},
	{"Dec", "LEAL -1(R10), R12; CMPL R12, R11; CMOVLCS R12, R11"},
}

// addFloat adds b, the old value first: the first NaN of f64 stays. All of this runs with AVX2.
func addFloat(w int) string {
	if w == 64 {
		return "VMOVQ R10, X0; VMOVQ R11, X1; VADDSD X1, X0, X0; VMOVQ X0, R11"
	}
	return "VMOVD R10, X0; VMOVD R11, X1; VADDSS X1, X0, X0; VMOVD X0, R11; VUCOMISS X0, X0; JPC 2(PC); MOVL $0x7fffffff, R11"
}

// atomicFunctions writes the functions that do read-modify-writes of 32 and of 64 bits: a jump to the loop of the operation. The
// result tells whether a lane changed what it found.
func atomicFunctions() []byte {
	g := &asm{}
	for _, w := range []int{32, 64} {
		table := fmt.Sprint("atomic", w)
		fmt.Fprintf(g, `
// func asmAtomic%d(d *V%d, op uint32, mem *byte, off *V64, b, c *V%d, mask uint32) uint32
TEXT ·asmAtomic%d(SB), NOSPLIT, $0-60
	MOVQ d+0(FP), AX
	MOVL op+8(FP), R9
	MOVQ mem+16(FP), BX
	MOVQ off+24(FP), CX
	MOVQ b+32(FP), SI
	MOVQ c+40(FP), DI
	MOVL mask+48(FP), DX
	XORL R13, R13
	XORL R15, R15
	LEAQ %s<>(SB), R8
	MOVQ (R8)(R9*8), R8
	JMP R8
`, w, w, w, w, table)
		for i, a := range atomics {
			if w == 64 && (a.name == "Inc" || a.name == "Dec") {
				continue
			}
			name := fmt.Sprint(table, a.name)
			g.loop(name, w, a, 56+8) // behind the return address
			fmt.Fprintf(g, "\nDATA %s<>+%d(SB)/8, $%s<>(SB)\n", table, 8*(i+1), name)
		}
		fmt.Fprintf(g, "GLOBL %s<>(SB), RODATA, $%d\n", table, 8*(len(atomics)+1))
	}
	return g.Bytes()
}

// loop writes the loop of one operation over the lanes of the mask.
func (g *asm) loop(name string, w int, a atomic, ret int) {
	body := a.asm
	if a.name == "FAdd" {
		body = addFloat(w)
	}
	letter := map[int]string{32: "L", 64: "Q"}[w]
	text := "TZCNTL DX, R8; MOVQ (CX)(R8*8), R9; MOVW (BX)(R9*1), R10; MOVW (SI)(R8*S), R11; " + body +
		"; MOVW R11, (BX)(R9*1); MOVW R10, (AX)(R8*S); XORW R10, R11; ORW R11, R13; BLSRL DX, DX; JNE loop"
	fmt.Fprintf(g, "\nTEXT %s<>(SB), NOSPLIT|NOFRAME, $0-0\nloop:\n", name)
	for _, ins := range strings.Split(text, ";") {
		op, operands, _ := strings.Cut(strings.TrimSpace(ins), " ")
		if op == "" {
			continue
		}
		for _, whole := range []string{"MOV", "ADD", "AND", "OR", "XOR", "CMP"} {
			if op == whole+"W" {
				op = whole + letter
			}
		}
		op = strings.Replace(op, "CMOVW", "CMOV"+letter, 1)
		fmt.Fprintf(g, "\t%s %s\n", op, strings.ReplaceAll(operands, "*S)", fmt.Sprintf("*%d)", w/8)))
	}
	if w == 64 { // both halves
		g.WriteString("\tMOVQ R13, R12\n\tSHRQ $32, R12\n\tORL R12, R13\n")
	}
	fmt.Fprintf(g, "\tMOVL R13, %d(SP)\n\tRET\n", ret)
}
