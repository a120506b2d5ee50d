package isa

// missing is the opcodes of the PTX manual (ISA 9.x, "Instruction Set") that have no row: they are told from misspelt ones.
var missing = map[string]bool{
	"clusterlaunchcontrol": true, "cp": true, "getctarank": true, "istypep": true, "ldmatrix": true, "mapa": true,
	"mbarrier": true, "mma": true, "movmatrix": true, "multimem": true, "stmatrix": true, "suld": true,
	"suq": true, "sured": true, "sust": true, "tcgen05": true, "tensormap": true, "tex": true, "tld4": true, "txq": true,
	"vabsdiff": true, "vabsdiff2": true, "vadd": true, "vadd2": true, "vadd4": true, "vavrg2": true, "vavrg4": true,
	"vmad": true, "vmax": true, "vmax2": true, "vmax4": true, "vmin": true, "vmin2": true, "vmin4": true, "vset": true,
	"vset2": true, "vset4": true, "vshl": true, "vshr": true, "vsub": true, "vsub2": true, "vsub4": true, "wgmma": true,
	"wmma": true,
}

// Unsupported says that an opcode is of the PTX manual and has no row here.
func Unsupported(op string) bool { return missing[op] }
