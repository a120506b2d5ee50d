//go:build amd64 || arm64

package lanes

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// translator makes machine code of lists, once for all lanes and once for some. The files for a processor select its
// instructions. They also define its types (asm, label, mem, reg, vec) and the number and size of its vector registers.
type translator struct {
	asm
	ops    []Op
	masked bool // for some lanes only
	near   []Near
	told   bool   // accesses may be logged
	target []bool // an operation that is jumped to, or begins a list
	limit  int    // the operation at which the current group ends at the latest
	labels []label
	ends   []end
	cold   []func() // code that rarely runs, written after the rest
	later  []*record
	data   label
	pool   []byte // constants, at data
	known  map[string]int32
	group
}

// end is an exit from a list.
type end struct {
	at  *label
	imm uint64
}

// record is operations that Go code executes before the machine code continues at a label.
type record struct {
	ops  []Op
	next label
}

// The offsets of Regs and Access; a test compares them.
const (
	reachAt   = 32
	logAt     = 40
	stepsAt   = 48
	limitAt   = 56
	marksAt   = 64
	lanes32At = 72
	lanes64At = lanes32At + 128

	originAt = 0
	roomAt   = 8
	baseAt   = 16
	rowAt    = 24
	toldAt   = 32
	lastAt   = 40
)

// The results of enter in the code.
const (
	endAt  = 32
	leftAt = 40
)

const opSize = int32(unsafe.Sizeof(Op{}))

func (c *Compiled) translate(starts []int32, near []Near, told bool) []byte {
	c.full, c.part = make([]int32, len(c.ops)), make([]int32, len(c.ops))
	t := &translator{ops: c.ops, near: near, told: told, known: map[string]int32{}, limit: len(c.ops)}
	t.findTargets(starts)
	t.begin()
	for _, masked := range []bool{false, true} {
		entries := c.full
		if t.masked = masked; masked {
			entries = c.part
		}
		t.labels = make([]label, len(c.ops))
		t.lists(starts)
		for _, s := range starts {
			entries[s] = int32(t.labels[s].At())
		}
	}
	t.writeData()
	for _, r := range t.later {
		c.left = append(c.left, left{r.ops, int32(r.next.At())})
	}
	if t.tooLong() {
		return nil
	}
	return t.Code
}

// findTargets marks the operations that jumps or list starts refer to.
func (t *translator) findTargets(starts []int32) {
	t.target = make([]bool, len(t.ops)+1)
	for i := range t.ops {
		switch o := &t.ops[i]; o.Code {
		case OpGoto:
			if o.B != 0 {
				t.target[int32(i)+o.B/opSize] = true
			}
		case OpIfScalar, OpIfPred:
			t.target[int32(i)+o.B/opSize], t.target[int32(i)+o.C/opSize] = true, true
		}
	}
	for _, s := range starts {
		if s == 0 || endsList(t.ops[s-1].Code) {
			t.target[s] = true
		}
	}
}

// endsList reports whether only jumps reach the code after the operation in the list.
func endsList(c Code) bool { return c == OpEnd || c == OpGoto || c == OpIfScalar || c == OpIfPred }

// lists writes the code of all operations. A start of starts that lies inside a group has code of its own, which
// continues from one such start to the next: a list begins there only after it ended at the operation before.
func (t *translator) lists(starts []int32) {
	begin := len(t.Code)
	for i := 0; i < len(t.ops); {
		if len(t.Code)-begin > farthest {
			var on label
			t.Jump(&on)
			t.writeOutOfLine()
			t.Bind(&on)
			begin = len(t.Code)
		}
		t.Bind(&t.labels[i])
		n := t.some(i)
		for len(starts) > 0 && int(starts[0]) <= i {
			starts = starts[1:]
		}
		var within []int32
		for len(starts) > 0 && int(starts[0]) < i+n {
			within, starts = append(within, starts[0]), starts[1:]
		}
		i += n
		if end := i; len(within) > 0 {
			t.cold = append(t.cold, func() { t.parts(within, end) })
		}
	}
	t.writeOutOfLine()
}

// writeOutOfLine writes the cold code and the exits, which the code before jumps to.
func (t *translator) writeOutOfLine() {
	for ; len(t.cold) > 0; t.cold = t.cold[1:] {
		t.cold[0]()
	}
	for _, e := range t.ends {
		t.Bind(e.at)
		t.leave(e.imm)
	}
	t.ends = t.ends[:0]
}

// parts writes the code of the operations up to end, with an entry at each of starts.
func (t *translator) parts(starts []int32, end int) {
	for k, s := range starts {
		t.Bind(&t.labels[s])
		t.limit = end
		if k+1 < len(starts) {
			t.limit = int(starts[k+1])
		}
		for i := int(s); i < t.limit; {
			i += t.some(i)
		}
	}
	t.limit = len(t.ops)
	t.Jump(t.after(end))
}

// after returns the label of operation i.
func (t *translator) after(i int) *label { return &t.labels[i] }

// some writes the code of some operations from i on and returns their number.
func (t *translator) some(i int) int {
	o := &t.ops[i]
	switch o.Code {
	case OpEnd:
		t.leave(o.Imm)
		return 1
	case OpGoto:
		var to *label
		if o.B != 0 {
			to = t.after(i + int(o.B/opSize))
		}
		t.jumpOn(o, to)
		return 1
	case OpIfScalar:
		t.ifScalar(o, t.after(i+int(o.B/opSize)), t.after(i+int(o.C/opSize)))
		return 1
	case OpIfPred:
		t.ifPred(o, t.after(i+int(o.B/opSize)), t.after(i+int(o.C/opSize)))
		return 1
	}
	if n := t.together(i); n > 0 {
		return n
	}
	if t.single(i) {
		return 1
	}
	n := 1
	for ; i+n < t.limit && !t.target[i+n] && !endsList(t.ops[i+n].Code) && !t.translates(&t.ops[i+n]); n++ {
	}
	t.leaveToGo(t.ops[i : i+n])
	return n
}

// stop returns a label that exits from the list.
func (t *translator) stop(imm uint64) *label {
	l := new(label)
	t.ends = append(t.ends, end{l, imm})
	return l
}

// leaveToGo lets Go code execute operations and return to the machine code.
func (t *translator) leaveToGo(ops []Op) {
	r := &record{ops: append(slices.Clone(ops), Op{})}
	t.later = append(t.later, r)
	t.back(int32(len(t.later)))
	t.Bind(&r.next)
}

// writeData writes the constants that the code refers to.
func (t *translator) writeData() {
	for len(t.Code)%vectorBytes != 0 {
		t.Return()
	}
	t.Bind(&t.data)
	t.Code = append(t.Code, t.pool...)
}

// constant returns the place of bytes among the constants.
func (t *translator) constant(b []byte) int32 {
	at, ok := t.known[string(b)]
	if !ok {
		at = int32(len(t.pool))
		t.known[string(b)] = at
		t.pool = append(t.pool, b...)
	}
	return at
}

// table is constant for a number of 32 or 64 bits in each lane.
func (t *translator) table(w int, f func(lane uint64) uint64) int32 {
	var b []byte
	for l := range uint64(32) {
		if w == 32 {
			b = binary.LittleEndian.AppendUint32(b, uint32(f(l)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, f(l))
		}
	}
	return t.constant(b)
}
