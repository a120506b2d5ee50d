package shadow

import (
	"math/bits"
	"unsafe"
)

// LineCells is the number of cells in a line: the number of lanes in a warp.
const LineCells = 32

// Cell is metadata that can be compressed: a run of cells is described by its first. The zero value is the metadata of
// memory that nobody has accessed.
type Cell[T any] interface {
	*T
	// Turn changes a cell into the one that the n-th next lane leaves n granules further on when both lanes do the
	// same: it adds n to lane numbers in the cell, modulo the number of lanes in a warp.
	Turn(n int)
}

// Line is the cells of LineCells consecutive granules, stored by runs. In a run all cells follow from the first
// (Cell.Turn), as when lanes of a warp access memory in order. If starts is 0, there is one run, few and many are nil,
// and one is its first cell. Otherwise starts has bit 0, exactly one of few and many is not nil, and one is not used.
type Line[T any] struct { // with at most fewRuns runs: their first cells, in order
	few    *[fewRuns]T   // with more: an array of all cells, with the first cells of runs in their places
	many   *[LineCells]T // of more, all cells, with these in their places
	starts uint32        // a bit for each cell where a run starts; 0: a single run
	one    T
}

const fewRuns = 4

// run returns the first cell of the run that contains a cell, and the index of the first cell.
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

// Lines is shadow memory like Memory, with cells stored by lines. A line takes no more than a cell and two pointers
// while nobody, or one warp in lane order, has accessed it.
type Lines[T comparable, P Cell[T]] struct {
	granule uint64
	global  *Memory[Line[T]]
	windows map[Window]*[]Line[T]
	window  Window // of the field lines
	lines   *[]Line[T]
	idle    []*[]Line[T] // windows that have ended, for reuse
	few     []*[fewRuns]T
	many    []*[LineCells]T
	parted  uint64 // number of cells in few and many of lines, without the spare ones
	scratch T
	shared  uint64 // number of lines in windows, without idle ones
	// Part and Drop serve cells that refer to memory of their own; they may be nil. Part is called for a cell that
	// begins a new run, after it was copied from the run that contained it. Drop is called for the first cell of each
	// run that is dropped with a window.
	Part, Drop func(*T)
}

// NewLines makes Lines with a cell for every granule bytes, a power of two.
func NewLines[T comparable, P Cell[T]](granule int) *Lines[T, P] {
	return &Lines[T, P]{granule: uint64(granule), global: New[Line[T]](granule * LineCells), windows: map[Window]*[]Line[T]{}}
}

// Global returns the line of global memory that contains the byte at addr, and the index of its cell in the line. A
// line stays valid until its memory is dropped.
func (m *Lines[T, P]) Global(addr uint64) (*Line[T], int) {
	return m.global.Global(addr), int(addr / m.granule % LineCells)
}

// Shared is Global for the byte at offset in a shared-memory window. The line is valid until the next call.
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

// EndWindow drops the cells of a shared-memory window: its block has ended.
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

// Clear drops everything.
func (m *Lines[T, P]) Clear() {
	part, drop := m.Part, m.Drop
	*m = *NewLines[T, P](int(m.granule))
	m.Part, m.Drop = part, drop
}

// Bytes returns the memory that cells take now, without spare memory.
func (m *Lines[T, P]) Bytes() uint64 {
	var cell T
	return m.global.Bytes() + m.shared*uint64(unsafe.Sizeof(Line[T]{})) + m.parted*uint64(unsafe.Sizeof(cell))
}

// each calls f for the first cell of each run.
func (l *Line[T]) each(f func(*T)) {
	if l.starts == 0 {
		f(&l.one)
	}
	for s := l.starts; s != 0; s &= s - 1 {
		first, _ := l.run(bits.TrailingZeros32(s))
		f(first)
	}
}

// Run makes runs begin at the cell from and end at or before the cell to. It returns the first cell of the run at from,
// to be modified, and the length of the run; modifying the first cell modifies the whole run. The result is valid until
// the next call for the line.
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

// Cell makes a cell a run of its own, to be modified. The result is valid until the next call for the line.
func (m *Lines[T, P]) Cell(l *Line[T], at int) *T {
	if l.starts == ^uint32(0) {
		return &l.many[at]
	}
	first, _ := m.Run(l, at, at+1)
	return first
}

// Cells makes every cell of a line a run of its own, to be modified. The result is valid until the next call for the
// line.
func (m *Lines[T, P]) Cells(l *Line[T]) *[LineCells]T {
	if l.starts != ^uint32(0) {
		m.scatter(l)
	}
	return l.many
}

// cut makes a run start at a cell. If there are many runs, it makes one start at every cell: a line that is accessed
// irregularly usually ends up that way.
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

// take allocates an array of n cells.
func take[T comparable, P Cell[T], A any](m *Lines[T, P], spare *[]*A, n int) *A {
	m.parted += uint64(n)
	if k := len(*spare); k > 0 {
		room := (*spare)[k-1]
		*spare = (*spare)[:k-1]
		return room
	}
	return new(A)
}

// give frees the arrays of a line.
func (m *Lines[T, P]) give(l *Line[T]) {
	if l.few != nil {
		m.few, m.parted = append(m.few, l.few), m.parted-fewRuns
	}
	if l.many != nil {
		clear(l.many[:]) // scatter relies on zero cells
		m.many, m.parted = append(m.many, l.many), m.parted-LineCells
	}
	l.few, l.many, l.starts = nil, nil, 0
}

// Unite makes one run of the cells [from, to), whatever they were: all follow from the first. A run must start at from,
// and one at to.
func (m *Lines[T, P]) Unite(l *Line[T], from, to int) {
	for s := l.starts & uint32(uint64(1)<<to-uint64(2)<<from); s != 0; s &= s - 1 {
		m.merge(l, bits.TrailingZeros32(s))
	}
	m.settle(l)
}

// Join merges runs of the cells [from, to) and their neighbours where a run follows from the one before.
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

// merge makes the run that starts at a cell part of the one before.
func (m *Lines[T, P]) merge(l *Line[T], at int) {
	if l.many == nil {
		i := bits.OnesCount32(l.starts & (1<<at - 1))
		copy(l.few[i:], l.few[i+1:])
	}
	l.starts &^= 1 << at
}

// settle restores the compact form of a line with a single run.
func (m *Lines[T, P]) settle(l *Line[T]) {
	if l.starts == 1 {
		first, _ := l.run(0)
		l.one = *first
		m.give(l)
	}
}

// At returns the value of a cell.
func (m *Lines[T, P]) At(l *Line[T], at int) T {
	first, start := l.run(at)
	return *m.turned(first, at-start)
}

// turned returns a copy of a cell turned by n, valid until the next call.
func (m *Lines[T, P]) turned(c *T, n int) *T {
	m.scratch = *c
	P(&m.scratch).Turn(n)
	return &m.scratch
}
