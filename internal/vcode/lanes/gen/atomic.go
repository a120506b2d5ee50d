package main

import (
	"bytes"
	"fmt"
	"strings"
)

// atomic is a read-modify-write of memory: what it leaves, of what was there and the operands b and c. U and I are the types of
// unsigned and signed numbers of the width.
type atomic struct{ name, expr string }

// atomics are the operations of lanes.RMW without NoRMW. The last ones are for 32 bits only.
var atomics = []atomic{
	{"Add", "old + b"},
	{"And", "old & b"},
	{"Or", "old | b"},
	{"Xor", "old ^ b"},
	{"Exch", "b"},
	{"Cas", "pickW(eqW(old, b), c[l], old)"},
	{"MinS", "U(min(I(old), I(b)))"},
	{"MinU", "min(old, b)"},
	{"MaxS", "U(max(I(old), I(b)))"},
	{"MaxU", "max(old, b)"},
	{"FAdd", "faddW(old, b)"},
	{"Inc", "inc(old, b)"},
	{"Dec", "dec(old, b)"},
}

// atomicLoops writes the loops over the lanes, one for each read-modify-write: a choice in the loop would take longer than the rest.
func atomicLoops() []byte {
	var b bytes.Buffer
	b.WriteString(header + "package lanes\n\nimport (\n\"encoding/binary\"\n\"unsafe\"\n)\n")
	for _, w := range []int{32, 64} {
		fmt.Fprintf(&b, "\nfunc (op RMW) do%d(d *V%d, mem unsafe.Pointer, off *V64, b, c *V%d, mask uint32) (changed bool) {\n\tvar differ uint%d\n\tswitch op {\n", w, w, w, w)
		types := strings.NewReplacer("U", fmt.Sprint("uint", w), "I", fmt.Sprint("int", w), "W", fmt.Sprint(w))
		for _, a := range atomics {
			if w == 64 && (a.name == "Inc" || a.name == "Dec") {
				continue
			}
			one := fmt.Sprintf("at := (*[%d]byte)(unsafe.Add(mem, off[l]))[:]\nold, b := binary.LittleEndian.Uint%d(at), b[l]\nnow := %s\n"+
				"binary.LittleEndian.PutUint%d(at, now)\nd[l] = old\ndiffer |= old ^ now\n}\n", w/8, w, types.Replace(a.expr), w)
			fmt.Fprintf(&b, "case RMW%s:\nif mask == 1<<32-1 {\nfor l := range 32 {\n%sbreak\n}\n", a.name, one)
			fmt.Fprintf(&b, "for m := mask; m != 0; m &= m - 1 {\nl := first(m)\n%s", one)
		}
		fmt.Fprintf(&b, "\tdefault:\n\t\tpanic(\"BUG: an unknown read-modify-write of %d bits\")\n\t}\n\treturn differ != 0\n}\n", w)
	}
	return b.Bytes()
}
