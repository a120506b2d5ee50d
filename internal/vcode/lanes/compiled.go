package lanes

import (
	"runtime"

	"fencepost.dev/fencepost/internal/codegen"
)

// Compiled is lists of operations as machine code. It does what Run does with them, in less time: operations are done one after the
// other for as many lanes at a time as a vector register has, and what one leaves in a register the next finds there. The few operations
// for which there is no code it leaves to Go code.
type Compiled struct {
	ops  []Op
	code *codegen.Code
	// By operation: where code that begins with it begins, for all lanes and for some. 0 where none does.
	full, part []int32
	left       []left
}

// left is operations that code leaves to Go code, a list, and where it is entered after them.
type left struct {
	ops  []Op
	next int32
}

// Near is what is known of an Access before it is made: those of one Piece, which is not 0, have one Base, and what they may reach is the same
// memory, or nothing. An access is of Size bytes, of which the first lies At bytes from the scalar, beside what is the same for all.
type Near struct {
	Piece int32
	At    int64
	Size  uint64
	Row   uint64 // as in the Access
}

// Compile makes code of lists that Run could do; each of starts, in ascending order, is where one may begin. Near is by number of the
// Access; nil where nothing is known. If told is set, accesses may be noted in the Log; otherwise none may be. It gives nil where lists cannot be compiled (see Tier), or are so long that a jump does
// not reach.
func Compile(ops []Op, starts []int32, near []Near, told bool) *Compiled {
	if Best() < Compiling {
		return nil
	}
	c := &Compiled{ops: ops, full: make([]int32, len(ops)), part: make([]int32, len(ops))}
	text := c.translate(starts, near, told)
	if text == nil {
		return nil
	}
	var err error
	if c.code, err = codegen.New(text); err != nil {
		current.CompareAndSwap(uint32(Compiling), uint32(Interpreted)) // for other lists as well
		return nil
	}
	return c
}

// Size is the number of bytes of the code.
func (c *Compiled) Size() int { return c.code.Size() }

// Run does the list that begins with operation at, one of the starts; see Run, the function.
func (c *Compiled) Run(at int32, x *Regs, mask uint32) uint64 {
	next := c.full[at]
	if mask != ^uint32(0) {
		next = c.part[at]
		x.setLanes(mask)
	}
	return c.run(next, x, mask)
}

// run does what is left of a list from a place in the code on.
func (c *Compiled) run(next int32, x *Regs, mask uint32) uint64 {
	for {
		end, n := enter(c.code.At(int(next)), x, mask)
		if n == 0 {
			runtime.KeepAlive(c)
			return end
		}
		l := &c.left[n-1]
		runGo(l.ops, x, mask)
		next = l.next
	}
}

// RunAll does a list as Run does, in all lanes, with one of files after the other, as long as it ends at want. What they count begins at
// 0 and marks, and Limit is set. It gives how many ended there, and where the next one, if there is one, ended.
func (c *Compiled) RunAll(at int32, files []*Regs, limit int64, marks, want uint64) (n int, end uint64) {
	code := c.code.At(int(c.full[at]))
	for n < len(files) {
		done, end, left := enterAll(code, &files[n], uint64(len(files)-n), limit, marks, want)
		if n += int(done); n == len(files) {
			break
		}
		if left != 0 {
			l := &c.left[left-1]
			runGo(l.ops, files[n], ^uint32(0))
			end = c.run(l.next, files[n], ^uint32(0))
		}
		if end != want {
			runtime.KeepAlive(c)
			return n, end
		}
		n++
	}
	runtime.KeepAlive(c)
	return n, want
}

// setLanes makes lanes32 and lanes64 of a mask.
func (x *Regs) setLanes(mask uint32) {
	if x.lanesOf == mask {
		return
	}
	x.lanesOf = mask
	for i := range x.lanes32 {
		bits := &fourLanes[mask>>(4*i)&15]
		x.lanes64[i] = *bits
		x.lanes32[i] = [4]uint32{uint32(bits[0]), uint32(bits[1]), uint32(bits[2]), uint32(bits[3])}
	}
}

// fourLanes has, for four bits of a mask, all bits of the lanes that are in it.
var fourLanes = func() (all [16][4]uint64) {
	for m := range all {
		for l := range 4 {
			all[m][l] = -uint64(m >> l & 1)
		}
	}
	return all
}()
