package simt

import "fencepost.dev/fencepost/internal/opt"

// vectorRow emits a function of package lanes for an instruction that has one; false where there is none.
func (b *compiler) vectorRow(in *opt.Instr) bool {
	return false
}
