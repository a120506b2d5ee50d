package isa

// missing is the opcodes of the PTX manual (ISA 9.x, "Instruction Set") that have no row: they are told from misspelt ones.
var missing = map[string]bool{
	"clusterlaunchcontrol": true, "cp": true, "getctarank": true, "istypep": true, "mapa": true,
	"mbarrier": true, "mma": true, "movmatrix": true, "multimem": true, "stmatrix": true, "suld": true,
	"suq": true, "sured": true, "sust": true, "tcgen05": true, "tensormap": true, "tex": true, "tld4": true, "txq": true,
	"wgmma": true, "wmma": true,
}

// Unsupported says that an opcode is of the PTX manual and has no row here.
func Unsupported(op string) bool { return missing[op] }
