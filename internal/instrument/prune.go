package instrument

import (
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// codeAddress is the address of an access, as far as the code determines it.
type codeAddress struct {
	base  isa.Operand
	off   int64
	space event.Space
}

// accessed describes the accesses of a basic block at an address: how many bytes from the address on were read or
// written, and how many were written.
type accessed struct{ bytes, written int }

// redundant returns the weak accesses that need no record because an earlier access of the same basic block covers them
// (BARRACUDA, section 5.5.3). The earlier access has the same address, contains their bytes, and writes if they write,
// and no instruction between them orders threads. An access that races with a redundant access also races with the
// earlier one. So the same defects are found, but reported with fewer of their places. If values is set, stores are not
// redundant.
func redundant(f *isa.Func, values bool) map[int32]bool {
	out := map[int32]bool{}
	starts := map[int32]bool{}
	for i := range f.Insts {
		for _, t := range f.Insts[i].Targets {
			starts[t] = true
		}
	}
	seen := map[codeAddress]accessed{}
	for i := range f.Insts {
		in := &f.Insts[i]
		if starts[int32(i)] {
			clear(seen)
		}
		switch {
		case (in.Class == isa.Load || in.Class == isa.Store) && !strong(in):
			if k, ok := kindOf(f, in); !ok || k != Access || in.NonCoherent() {
				break
			}
			base := in.Src[0]
			base.Size = 0
			a := codeAddress{base, in.Off, spaceOf(in)}
			was, size := seen[a], in.Type.Size()*int(max(in.Vec, 1))
			if in.Class == isa.Store && was.written >= size && !values || in.Class == isa.Load && was.bytes >= size {
				out[int32(i)] = true
			} else if in.Guard < 0 {
				was.bytes = max(was.bytes, size)
				if in.Class == isa.Store {
					was.written = size
				}
				seen[a] = was
			}
		case in.Class == isa.Pure, in.Class == isa.Special, in.Class == isa.Hint:
		default:
			clear(seen)
		}
		for _, d := range in.Dst {
			for a := range seen {
				if d.Kind == isa.Reg && a.base.Kind == isa.Reg && a.base.Reg == d.Reg {
					delete(seen, a)
				}
			}
		}
	}
	return out
}
