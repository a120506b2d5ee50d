package shadow

import (
	"math/bits"
	"unsafe"
)

// LineCells is the cells of a line: as many as a warp has lanes.
const LineCells = 32

// Cell is metadata of which a run can be told by its first. The zero value is that of memory nobody has accessed.
type Cell[T any] interface {
	*T
	// Turn makes of a cell what the lane n above that of it left n granules on, when both did the same: lanes are counted up,
	// modulo those of a warp, wherever the cell has one.
	Turn(n int)
}

// Line is the cells of LineCells consecutive granules, kept by runs: those whose cells follow from the first (Cell.Turn), as
// lanes of one warp that accessed memory in order leave them. While starts is 0, few and many are nil; otherwise exactly one of
// them is not, starts has bit 0, and one says nothing.
type Line[T any] struct {
	few    *[fewRuns]T   // of up to so many runs, the cells where they start, in order
	many   *[LineCells]T // of more, all cells, with these in their places
	starts uint32        // the cells where runs start, always the first one among them, or 0: all follow from the first, which is one
	one    T
}

const fewRuns = 4

// run gives the first cell of the run that a cell is in, and where that starts.
func (l *Line[T]) run(at int) (first *T, start int) {
	below := l.starts & uint32(uint64(2)<<at-1)
	if below == 0 {
		return &l.one, 0
	}
	start = 31 - bits.LeadingZeros32(below)
	if l.many != nil {
		return &l.many[start], start
	}
	return &l.few[bits.OnesCount32(below)-1], start
}

// Lines is shadow memory like Memory, of cells that are kept by lines. A line is as small as a cell and a pointer while one
// warp in lane order, or nobody, has accessed it.
type Lines[T comparable, P Cell[T]] struct {
	granule uint64
	global  *Memory[Line[T]]
	windows map[Window]*[]Line[T]
	window  Window // of lines
	lines   *[]Line[T]
	idle    []*[]Line[T] // windows that have ended, for the next
	few     []*[fewRuns]T
	many    []*[LineCells]T
	parted  uint64 // cells of runs of lines, those to spare (few and many) not among them
	scratch T
	shared  uint64 // lines of windows, idle ones not among them
	// Part and Drop, unless they are nil, are called for what cells refer to and do not share: Part for a cell that begins a run
	// of its own, a copy of what the run before it had, and Drop for the first cells of runs that are forgotten with a window.
	Part, Drop func(*T)
}

// NewLines makes Lines with a cell for every granule bytes, a power of two.
func NewLines[T comparable, P Cell[T]](granule int) *Lines[T, P] {
	return &Lines[T, P]{granule: uint64(granule), global: New[Line[T]](granule * LineCells), windows: map[Window]*[]Line[T]{}}
}

// Global gives the line of global memory that holds the byte at addr, and the number of its cell there. Lines stay valid until
// their memory is forgotten.
func (m *Lines[T, P]) Global(addr uint64) (*Line[T], int) {
	return m.global.Global(addr), int(addr / m.granule % LineCells)
}

// Shared is Global for a byte at offset of a shared window. The line is valid until the next call.
func (m *Lines[T, P]) Shared(w Window, offset uint64) (*Line[T], int) {
	if m.lines == nil || m.window != w {
		m.enter(w)
	}
	n := int(offset / m.granule)
	if n/LineCells >= len(*m.lines) {
		m.extend(n/LineCells + 1)
	}
	return &(*m.lines)[n/LineCells], n % LineCells
}

func (m *Lines[T, P]) enter(w Window) {
	m.window, m.lines = w, m.windows[w]
	if m.lines != nil {
		return
	}
	if n := len(m.idle); n > 0 {
		m.lines, m.idle = m.idle[n-1], m.idle[:n-1]
		m.shared += uint64(cap(*m.lines))
	} else {
		m.lines = new([]Line[T])
	}
	m.windows[w] = m.lines
}

func (m *Lines[T, P]) extend(n int) {
	room := cap(*m.lines)
	*m.lines = append(*m.lines, make([]Line[T], (n+7)&^7-len(*m.lines))...)
	m.shared += uint64(cap(*m.lines) - room)
}

// EndWindow forgets the cells of a shared window: its block has ended.
func (m *Lines[T, P]) EndWindow(w Window) {
	lines := m.windows[w]
	if lines == nil {
		return
	}
	for i := range *lines {
		l := &(*lines)[i]
		if m.Drop != nil {
			l.each(m.Drop)
		}
		m.give(l)
	}
	clear(*lines)
	m.shared -= uint64(cap(*lines))
	m.idle = append(m.idle, lines)
	delete(m.windows, w)
	if m.window == w {
		m.lines = nil
	}
}

// Clear forgets everything.
func (m *Lines[T, P]) Clear() {
	part, drop := m.Part, m.Drop
	*m = *NewLines[T, P](int(m.granule))
	m.Part, m.Drop = part, drop
}

// Bytes is the memory that cells take now, without what waits to be used again.
func (m *Lines[T, P]) Bytes() uint64 {
	var cell T
	return m.global.Bytes() + m.shared*uint64(unsafe.Sizeof(Line[T]{})) + m.parted*uint64(unsafe.Sizeof(cell))
}

// each calls f for the first cell of every run.
func (l *Line[T]) each(f func(*T)) {
	if l.starts == 0 {
		f(&l.one)
	}
	for s := l.starts; s != 0; s &= s - 1 {
		first, _ := l.run(bits.TrailingZeros32(s))
		f(first)
	}
}

// Run makes a run of cells start at from and one end at to, or before: it gives its first, to be changed, and how many there
// are. All of them change with the first. It is valid until the next call for the line.
func (m *Lines[T, P]) Run(l *Line[T], from, to int) (first *T, n int) {
	if l.starts == 0 && from == 0 && to == LineCells {
		return &l.one, to
	}
	m.cut(l, from)
	if to < LineCells {
		m.cut(l, to)
	}
	first, _ = l.run(from)
	return first, min(to, from+1+bits.TrailingZeros32(l.starts>>from>>1)) - from
}

// Cell makes a cell a run of its own, to be changed. It is valid until the next call for the line.
func (m *Lines[T, P]) Cell(l *Line[T], at int) *T {
	if l.starts == ^uint32(0) {
		return &l.many[at]
	}
	first, _ := m.Run(l, at, at+1)
	return first
}

// Cells makes every cell of a line a run of its own, to be changed. They are valid until the next call for the line.
func (m *Lines[T, P]) Cells(l *Line[T]) *[LineCells]T {
	if l.starts != ^uint32(0) {
		m.scatter(l)
	}
	return l.many
}

// cut makes a run start at a cell: there alone where runs are few, and otherwise at every cell, since lines that are accessed in
// no order mostly have all their cells accessed so.
func (m *Lines[T, P]) cut(l *Line[T], at int) {
	if at == 0 || l.starts>>at&1 != 0 {
		return
	}
	switch n := bits.OnesCount32(l.starts); {
	case l.many != nil:
		first, start := l.run(at)
		l.many[at] = *first
		P(&l.many[at]).Turn(at - start)
		l.starts |= 1 << at
		m.part(&l.many[at])
	case n == fewRuns:
		m.scatter(l)
	default:
		if n == 0 {
			l.few = take(m, &m.few, fewRuns)
			l.few[0], l.starts = l.one, 1
			n = 1
		}
		i := bits.OnesCount32(l.starts & (1<<at - 1))
		copy(l.few[i+1:n+1], l.few[i:n])
		_, start := l.run(at)
		l.few[i] = l.few[i-1]
		P(&l.few[i]).Turn(at - start)
		l.starts |= 1 << at
		m.part(&l.few[i])
	}
}

// scatter makes every cell a run of its own.
func (m *Lines[T, P]) scatter(l *Line[T]) {
	all := take(m, &m.many, LineCells)
	var zero T
	if l.starts != 0 || l.one != zero {
		for s := l.starts | 1; s != 0; s &= s - 1 {
			start := bits.TrailingZeros32(s)
			first, _ := l.run(start)
			all[start] = *first
			for at := start + 1; at < LineCells && s>>at&1 == 0; at++ {
				all[at] = *first
				P(&all[at]).Turn(at - start)
				m.part(&all[at])
			}
		}
	}
	m.give(l)
	l.many, l.starts = all, ^uint32(0)
}

// part calls Part.
func (m *Lines[T, P]) part(c *T) {
	if m.Part != nil {
		m.Part(c)
	}
}

// take gives room for n cells.
func take[T comparable, P Cell[T], A any](m *Lines[T, P], spare *[]*A, n int) *A {
	m.parted += uint64(n)
	if k := len(*spare); k > 0 {
		room := (*spare)[k-1]
		*spare = (*spare)[:k-1]
		return room
	}
	return new(A)
}

// give takes back what a line has for its runs.
func (m *Lines[T, P]) give(l *Line[T]) {
	if l.few != nil {
		m.few, m.parted = append(m.few, l.few), m.parted-fewRuns
	}
	if l.many != nil {
		clear(l.many[:]) // scatter counts on it
		m.many, m.parted = append(m.many, l.many), m.parted-LineCells
	}
	l.few, l.many, l.starts = nil, nil, 0
}

// Unite makes the cells from from on and before to one run: all follow from the first, whatever they were. One of the runs starts
// at from, and one at to.
func (m *Lines[T, P]) Unite(l *Line[T], from, to int) {
	for s := l.starts & uint32(uint64(1)<<to-uint64(2)<<from); s != 0; s &= s - 1 {
		m.merge(l, bits.TrailingZeros32(s))
	}
	m.settle(l)
}

// Join makes runs of the cells between from and to, and of those beside them, one where they follow from each other.
func (m *Lines[T, P]) Join(l *Line[T], from, to int) {
	if l.starts == 0 {
		return
	}
	from = max(from, 1)
	first, start := l.run(from - 1)
	for s := l.starts >> from << from & uint32(uint64(2)<<to-1); s != 0; s &= s - 1 {
		at := bits.TrailingZeros32(s)
		if next, _ := l.run(at); *next != *m.turned(first, at-start) {
			first, start = next, at
		} else {
			m.merge(l, at)
		}
	}
	m.settle(l)
}

// merge lets the cells of a run that starts at a cell follow from the one before.
func (m *Lines[T, P]) merge(l *Line[T], at int) {
	if l.many == nil {
		i := bits.OnesCount32(l.starts & (1<<at - 1))
		copy(l.few[i:], l.few[i+1:])
	}
	l.starts &^= 1 << at
}

// settle keeps the one run that a line may have.
func (m *Lines[T, P]) settle(l *Line[T]) {
	if l.starts == 1 {
		first, _ := l.run(0)
		l.one = *first
		m.give(l)
	}
}

// At gives the value of a cell.
func (m *Lines[T, P]) At(l *Line[T], at int) T {
	first, start := l.run(at)
	return *m.turned(first, at-start)
}

// turned gives a cell that is turned, valid until the next call.
func (m *Lines[T, P]) turned(c *T, n int) *T {
	m.scratch = *c
	P(&m.scratch).Turn(n)
	return &m.scratch
}
