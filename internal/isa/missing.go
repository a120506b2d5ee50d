package isa

// missing is the opcodes of the PTX manual (ISA 9.x, "Instruction Set") that have no row: they are told from misspelt ones.
var missing = map[string]bool{
	"fabric":   true,
	"istypep":  true,
	"multimem": true,
}

// partly is the opcodes of which rows give some instructions of several, or some shapes: what no row takes is another one.
var partly = map[string]bool{"clusterlaunchcontrol": true, "cp": true, "mbarrier": true, "mma": true, "suld": true, "suq": true, "tcgen05": true, "tensormap": true, "sured": true, "sust": true, "tex": true,
	"tld4": true, "txq": true, "wgmma": true, "wmma": true}

// Unsupported says that an opcode is of the PTX manual and has no row here.
func Unsupported(op string) bool { return missing[op] }
