package isa

// missing is the opcodes of the PTX manual (ISA 9.x, "Instruction Set") that have no row. They are distinguished from
// misspelt opcodes.
var missing = map[string]bool{
	"fabric":   true,
	"istypep":  true,
	"multimem": true,
}

// partly is the opcodes for which rows cover only some instructions or shapes: a spelling that no row accepts is
// another instruction.
var partly = map[string]bool{"clusterlaunchcontrol": true, "cp": true, "mbarrier": true, "mma": true, "suld": true, "suq": true, "tcgen05": true, "tensormap": true, "sured": true, "sust": true, "tex": true,
	"tld4": true, "txq": true, "wgmma": true, "wmma": true}

// Unsupported reports whether an opcode is in the PTX manual and has no row.
func Unsupported(op string) bool { return missing[op] }
