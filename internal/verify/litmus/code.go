package litmus

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// opcode is an instruction of the code to which both styles of litmus file are compiled.
type opcode uint8

const (
	opMove   opcode = iota // a = b
	opBinary               // a = b fn c
	opJump                 // to imm
	opZero                 // to imm if b is 0
	opLoad                 // a = location; so for the other memory operations
	opStore                // b is stored
	opUpdate               // a = the old value; b is the operand, c the expected value of a compare-and-swap
	opFence
	opBarrier // imm is the number, or, if size is not 0, index
	opSignal
	opAssert // b is not 0
	opAssume // the thread waits forever if b is 0
	opEnter  // loop imm begins
	opHead   // an iteration of loop imm begins
	opEnd
)

// operand is a register, or, if negative, the constant ^operand.
type operand int32

// instr is one instruction.
type instr struct {
	op    opcode
	order model.Order
	scope model.Scope
	fn    uint8 // a binary operator, or an explore.Function
	a     int32
	b, c  operand
	imm   int32
	base  int32   // of a memory operation: the first location
	size  int32   // and the number of locations
	index operand // selects one of them
	loops bool    // it is inside a loop
	pos   pos
	// The following fields matter only to the model PTX.
	proxy     model.Proxy
	address   int32 // the virtual address by which base is named
	reduction bool
}

// barriers is the number of barriers of a CTA.
const barriers = 16

// The binary operators.
const (
	fnAdd uint8 = iota
	fnSub
	fnMul
	fnDiv
	fnMod
	fnAnd
	fnOr
	fnXor
	fnShl
	fnShr
	fnLt
	fnLe
	fnEq
	fnNe
)

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// binary computes; ok is false for a division by zero.
func binary(fn uint8, a, b int64) (v int64, ok bool) {
	switch fn {
	case fnAdd:
		return a + b, true
	case fnSub:
		return a - b, true
	case fnMul:
		return a * b, true
	case fnDiv, fnMod:
		if b == 0 {
			return 0, false
		}
		if fn == fnDiv {
			return a / b, true
		}
		return a % b, true
	case fnAnd:
		return a & b, true
	case fnOr:
		return a | b, true
	case fnXor:
		return a ^ b, true
	case fnShl:
		return a << (uint64(b) & 63), true
	case fnShr:
		return a >> (uint64(b) & 63), true
	case fnLt:
		return truth(a < b), true
	case fnLe:
		return truth(a <= b), true
	case fnEq:
		return truth(a == b), true
	}
	return truth(a != b), true
}

// loop is the target of a backward jump.
type loop struct {
	live []int32 // registers that are live there
	at   int     // index in the state: how often it was reached; effects, steps and reads at the last time; the live registers then
}

// code is the code of one thread.
type code struct {
	instrs []instr
	consts []int64
	regs   int
	loops  []loop
	words  int
	// depends is the index in the state of the dependencies on reads of the thread: those of control flow, the number
	// of reads, and those of each register. 0 means that dependencies are not tracked.
	depends int
}

// The layout of the state from code.depends on.
const (
	dependControl = iota
	dependReads
	dependRegs // the first register
)

// depend returns the reads on which an operand depends, as bits.
func (c *code) depend(s []int64, o operand) int64 {
	if o < 0 || c.depends == 0 {
		return 0
	}
	return s[c.depends+dependRegs+int(o)]
}

// derive records that a register depends on reads.
func (c *code) derive(s []int64, reg int32, reads int64) {
	if c.depends != 0 {
		s[c.depends+dependRegs+int(reg)] = reads
	}
}

// branch records that control flow depends on an operand.
func (c *code) branch(s []int64, o operand) {
	if c.depends != 0 {
		s[c.depends+dependControl] |= c.depend(s, o)
	}
}

// The state of a thread: these words, the registers, and the data of its loops.
const (
	statePC      = iota
	stateEffects // number of barriers, and of writes that changed a value
	stateSteps   // number of steps
	stateReads   // number of reads and barriers
	stateRegs    // the first register
)

func (c *code) get(s []int64, o operand) int64 {
	if o < 0 {
		return c.consts[^o]
	}
	return s[stateRegs+o]
}

// run executes from the current instruction of the thread to its next step.
func (c *code) run(s []int64, bound int64, op *explore.Op) {
	for range maxLocal {
		in := &c.instrs[s[statePC]]
		switch in.op {
		case opMove:
			s[stateRegs+in.a] = c.get(s, in.b)
			c.derive(s, in.a, c.depend(s, in.b))
		case opBinary:
			v, ok := binary(in.fn, c.get(s, in.b), c.get(s, in.c))
			if !ok {
				*op = explore.Op{Kind: explore.Fail, Pos: int32(in.pos)}
				return
			}
			s[stateRegs+in.a] = v
			c.derive(s, in.a, c.depend(s, in.b)|c.depend(s, in.c))
		case opJump:
			s[statePC] = int64(in.imm)
			continue
		case opZero:
			c.branch(s, in.b)
			if c.get(s, in.b) == 0 {
				s[statePC] = int64(in.imm)
				continue
			}
		case opAssert:
			c.branch(s, in.b)
			if c.get(s, in.b) == 0 {
				*op = explore.Op{Kind: explore.Fail, Pos: int32(in.pos)}
				return
			}
		case opAssume:
			c.branch(s, in.b)
			if c.get(s, in.b) == 0 {
				*op = explore.Op{Kind: explore.Assumed, Pos: int32(in.pos)}
				return
			}
		case opEnter:
			l := &c.loops[in.imm]
			s[l.at], s[l.at+1] = 0, 0
		case opHead:
			if kind := c.head(s, &c.loops[in.imm], bound, op); kind != explore.End {
				op.Kind, op.Pos = kind, int32(in.pos)
				return
			}
		case opEnd:
			*op = explore.Op{Kind: explore.End, Pos: int32(in.pos)}
			return
		default:
			c.step(s, in, op)
			return
		}
		s[statePC]++
	}
	*op = explore.Op{Kind: explore.Bound, Pos: int32(c.instrs[s[statePC]].pos)}
}

// head is called at the beginning of each iteration. It returns Await if the previous iteration changed nothing, or
// read nothing and the next is like it, Bound if there were too many iterations, and else End.
func (c *code) head(s []int64, l *loop, bound int64, op *explore.Op) explore.OpKind {
	saved := s[l.at+4:]
	same := s[l.at+1] == s[stateEffects]+1 || s[l.at+1] > 0 && s[l.at+3] == s[stateReads]
	for i, r := range l.live {
		v := s[stateRegs+r]
		same = same && saved[i] == v
		saved[i] = v
	}
	if same {
		*op = explore.Op{Value: s[stateSteps] - s[l.at+2]}
		return explore.Await
	}
	if s[l.at]++; s[l.at] > bound+1 {
		*op = explore.Op{}
		return explore.Bound
	}
	s[l.at+1], s[l.at+2], s[l.at+3] = s[stateEffects]+1, s[stateSteps], s[stateReads]
	return explore.End
}

// step describes a memory operation, fence or barrier.
func (c *code) step(s []int64, in *instr, op *explore.Op) {
	*op = explore.Op{Order: in.order, Scope: in.scope, Loops: in.loops, Pos: int32(in.pos), Proxy: in.proxy, Address: in.address, Reduction: in.reduction}
	if c.depends != 0 {
		op.Control = uint64(s[c.depends+dependControl])
	}
	switch in.op {
	case opFence:
		op.Kind = explore.Fence
		return
	case opBarrier, opSignal:
		op.Kind, op.Loc = map[opcode]explore.OpKind{opBarrier: explore.Arrive, opSignal: explore.Signal}[in.op], in.imm
		if in.size != 0 {
			c.branch(s, in.index)
			if op.Loc = int32(c.get(s, in.index)); op.Loc < 0 || op.Loc >= barriers {
				*op = explore.Op{Kind: explore.Fail, Pos: int32(in.pos)}
			}
		}
		return
	}
	i := c.get(s, in.index)
	if i < 0 || i >= int64(in.size) {
		*op = explore.Op{Kind: explore.Fail, Pos: int32(in.pos)} // outside of the array
		return
	}
	op.Loc = in.base + int32(i)
	if c.depends != 0 {
		op.Deps = op.Control | uint64(c.depend(s, in.index))
		switch in.op {
		case opStore:
			op.Deps |= uint64(c.depend(s, in.b))
		case opUpdate:
			op.Deps |= uint64(c.depend(s, in.b) | c.depend(s, in.c))
		}
	}
	switch in.op {
	case opLoad:
		op.Kind = explore.Read
	case opStore:
		op.Kind, op.Value = explore.Write, c.get(s, in.b)
	case opUpdate:
		op.Kind, op.Function, op.Value, op.Expected = explore.Update, explore.Function(in.fn), c.get(s, in.b), c.get(s, in.c)
	}
}

// complete takes the value of the current step of the thread.
func (c *code) complete(s []int64, value int64) {
	in := &c.instrs[s[statePC]]
	s[stateSteps]++
	if in.op != opStore && in.op != opFence {
		s[stateReads]++
	}
	if c.depends != 0 && (in.op == opLoad || in.op == opUpdate) {
		reads := &s[c.depends+dependReads]
		c.derive(s, in.a, 1<<min(*reads, 63))
		*reads++
	}
	switch in.op {
	case opLoad:
		s[stateRegs+in.a] = value
	case opUpdate:
		op := explore.Op{Function: explore.Function(in.fn), Value: c.get(s, in.b), Expected: c.get(s, in.c)}
		if v, writes := op.Apply(value); writes && v != value {
			s[stateEffects]++
		}
		s[stateRegs+in.a] = value
	case opStore, opBarrier, opSignal:
		s[stateEffects]++
	}
	s[statePC]++
}

// uses returns the registers that an instruction reads, and the one that it writes, or -1.
func (in *instr) uses() (reads [3]operand, writes int32) {
	reads, writes = [3]operand{-1, -1, -1}, -1
	switch in.op {
	case opMove:
		reads[0], writes = in.b, in.a
	case opBinary:
		reads[0], reads[1], writes = in.b, in.c, in.a
	case opZero, opAssert, opAssume:
		reads[0] = in.b
	case opBarrier, opSignal:
		if in.size != 0 {
			reads[0] = in.index
		}
	case opLoad:
		reads[0], writes = in.index, in.a
	case opStore:
		reads[0], reads[1] = in.index, in.b
	case opUpdate:
		reads, writes = [3]operand{in.index, in.b, in.c}, in.a
	}
	return reads, writes
}

// pure reports whether an instruction only writes its register.
func (in *instr) pure() bool {
	return in.op == opMove || in.op == opBinary && in.fn != fnDiv && in.fn != fnMod
}

// finish computes the live registers at the heads of loops, and lays out the state. keep are the registers that are
// live at the end. dependencies says that the state tracks dependencies.
func (c *code) finish(keep []int32, dependencies bool) {
	words := (c.regs + 63) / 64
	live := make([]uint64, (len(c.instrs)+1)*words)
	row := func(i int) []uint64 { return live[i*words : (i+1)*words] }
	for changed := true; changed; {
		changed = false
		for i := len(c.instrs) - 1; i >= 0; i-- {
			in := &c.instrs[i]
			out := make([]uint64, words)
			if in.op != opJump && in.op != opEnd {
				copy(out, row(i+1))
			}
			if in.op == opJump || in.op == opZero {
				for k, w := range row(int(in.imm)) {
					out[k] |= w
				}
			}
			reads, writes := in.uses()
			if writes >= 0 {
				if in.pure() && out[writes>>6]>>(writes&63)&1 == 0 {
					reads = [3]operand{-1, -1, -1} // for example a counter that is incremented but never used
				}
				out[writes>>6] &^= 1 << (writes & 63)
			}
			for _, r := range reads {
				if r >= 0 {
					out[r>>6] |= 1 << (r & 63)
				}
			}
			if in.op == opEnd {
				for _, r := range keep {
					out[r>>6] |= 1 << (r & 63)
				}
			}
			for k, w := range out {
				changed = changed || row(i)[k] != w
				row(i)[k] = w
			}
		}
	}
	for i := range c.instrs {
		if in := &c.instrs[i]; (in.op == opJump || in.op == opZero) && int(in.imm) <= i {
			for k := int(in.imm); k < i; k++ {
				c.instrs[k].loops = true
			}
		}
	}
	c.words = stateRegs + c.regs
	for i := range c.instrs {
		in := &c.instrs[i]
		if in.op != opHead {
			continue
		}
		l := &c.loops[in.imm]
		l.at = c.words
		for k, w := range row(i) {
			for ; w != 0; w &= w - 1 {
				l.live = append(l.live, int32(k*64+bits.TrailingZeros64(w)))
			}
		}
		c.words += 4 + len(l.live)
	}
	if dependencies {
		c.depends = c.words
		c.words += dependRegs + c.regs
	}
}
