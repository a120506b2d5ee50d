package lanes

import (
	"runtime"

	"fencepost.dev/fencepost/internal/codegen"
)

// Compiled is lists of operations as machine code. It does what Run does with them, in less time: operations are done one after the
// other for 8 lanes at a time (4 where there are 64 bits), and what one leaves in a processor's register the next finds there. An
// operation for which there is no code, and all that a list does where it cannot go on as usual, is left to the assembly of Run, which
// code goes to and comes back from within a list.
type Compiled struct {
	ops  []Op
	code *codegen.Code
	// By operation: where code that begins with it begins, for all lanes and for some. 0 where none does.
	full, part []int32
}

// Compile makes code of lists that Run could do; each of starts is where one may begin. If told is set, accesses may be noted in the
// Log; otherwise none may be. It gives nil where lists cannot be compiled: see Tier.
func Compile(ops []Op, starts []int32, told bool) *Compiled {
	if Best() < Compiling {
		return nil
	}
	c := &Compiled{ops: ops}
	text := c.translate(starts, told)
	var err error
	if c.code, err = codegen.New(text); err != nil {
		current.CompareAndSwap(uint32(Compiling), uint32(Assembled)) // for other lists as well
		return nil
	}
	return c
}

// Size is the number of bytes of the code.
func (c *Compiled) Size() int { return c.code.Size() }

// Run does the list that begins with operation at, one of the starts; see Run, the function.
func (c *Compiled) Run(at int32, x *Regs, mask uint32) uint64 {
	entry := c.full
	if mask != ^uint32(0) {
		entry = c.part
	}
	end := run(&c.ops[at], c.code.At(int(entry[at])), x, mask)
	runtime.KeepAlive(c)
	return end
}
