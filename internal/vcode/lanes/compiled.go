package lanes

import (
	"runtime"

	"fencepost.dev/fencepost/internal/codegen"
)

// Compiled is lists of operations as machine code. It has the effect of Run in less time. It executes several
// operations for as many lanes at a time as a vector register has, and passes values between them in registers. It
// leaves the few operations without machine code to Go code.
type Compiled struct {
	ops  []Op
	code *codegen.Code
	// By operation: the start of the code that begins with it, for all lanes and for some; 0 if there is none.
	full, part []int32
	left       []left
}

// left is a list of operations that the machine code leaves to Go code, and the place at which the machine code is
// entered after them.
type left struct {
	ops  []Op
	next int32
}

// Near is what is known of an Access before it is made. Accesses with one Piece that is not 0 have one Base, and touch
// either the same memory or none. An access has Size bytes. Its first byte is At bytes from the scalar plus an offset
// that is equal for all accesses of the Piece.
type Near struct {
	Piece int32
	At    int64
	Size  uint64
	Row   uint64 // as in the Access
}

// Compile makes machine code of lists for Run. Each of starts, in ascending order, is the start of a list. Near is
// indexed by the number of the Access; it is nil if nothing is known. If told is set, accesses may be logged in the
// Log; otherwise none may be. It returns nil if lists cannot be compiled (see Tier), or are so long that a jump is out
// of range.
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

// Run executes the list that begins with operation at, one of the starts. See the function Run.
func (c *Compiled) Run(at int32, x *Regs, mask uint32) uint64 {
	next := c.full[at]
	if mask != ^uint32(0) {
		next = c.part[at]
		x.setLanes(mask)
	}
	return c.run(next, x, mask)
}

// run executes the rest of a list from a place in the code on.
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

// RunAll executes a list as Run does, in all lanes, with one of files after the other, until the list ends at another
// place than want. For each of files, Steps begins at 0, Marks at marks, and Limit is limit. It returns how many ended
// at want, and where the next one ended, if there is one.
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

// setLanes derives lanes32 and lanes64 from a mask.
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

// fourLanes has, for each four bits of a mask, all bits of the lanes that are in it.
var fourLanes = func() (all [16][4]uint64) {
	for m := range all {
		for l := range 4 {
			all[m][l] = -uint64(m >> l & 1)
		}
	}
	return all
}()
