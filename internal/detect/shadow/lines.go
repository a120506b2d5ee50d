package shadow

import (
	"math/bits"
	"unsafe"
)

// LineCells is the cells of a line: as many as a warp has lanes.
const LineCells = 32

// Cell is metadata of which a run can be told by its first. The zero value is that of memory nobody has accessed.
type Cell[T any] interface {
	comparable
	// Lane is what the lane n above that of the receiver left n granules on, when both did the same: the receiver with lanes
	// counted up, modulo those of a warp, wherever it has one.
	Lane(n int) T
}

// Line is the cells of LineCells consecutive granules, kept by runs: those whose cells follow from the first, as lanes of one warp
// that accessed memory in order leave them.
type Line[T Cell[T]] struct {
	one    T             // the first cell, when all follow from it
	cells  *[LineCells]T // otherwise: those where runs start
	starts uint32        // where: 0 without cells
}

// Lines is shadow memory like Memory, of cells that are kept by lines. A line is as small as a cell and a pointer while one
// warp in lane order, or nobody, has accessed it.
type Lines[T Cell[T]] struct {
	granule uint64
	global  *Memory[Line[T]]
	windows map[Window]*[]Line[T]
	window  Window // of lines
	lines   *[]Line[T]
	idle    []*[]Line[T] // windows that have ended, for the next
	spare   []*[LineCells]T
	parted  uint64 // how many lines have cells, those to spare included
	shared  uint64 // lines of windows, idle ones included
}

// NewLines makes Lines with a cell for every granule bytes, a power of two.
func NewLines[T Cell[T]](granule int) *Lines[T] {
	return &Lines[T]{granule: uint64(granule), global: New[Line[T]](granule * LineCells), windows: map[Window]*[]Line[T]{}}
}

// Global gives the line of global memory that holds the byte at addr, and the number of its cell there. Lines stay valid until
// their memory is forgotten.
func (m *Lines[T]) Global(addr uint64) (*Line[T], int) {
	return m.global.Global(addr), int(addr / m.granule % LineCells)
}

// Shared is Global for a byte at offset of a shared window. The line is valid until the next call.
func (m *Lines[T]) Shared(w Window, offset uint64) (*Line[T], int) {
	if m.lines == nil || m.window != w {
		m.enter(w)
	}
	n := int(offset / m.granule)
	if n/LineCells >= len(*m.lines) {
		m.extend(n/LineCells + 1)
	}
	return &(*m.lines)[n/LineCells], n % LineCells
}

func (m *Lines[T]) enter(w Window) {
	m.window, m.lines = w, m.windows[w]
	if m.lines != nil {
		return
	}
	if n := len(m.idle); n > 0 {
		m.lines, m.idle = m.idle[n-1], m.idle[:n-1]
	} else {
		m.lines = new([]Line[T])
	}
	m.windows[w] = m.lines
}

func (m *Lines[T]) extend(n int) {
	room := cap(*m.lines)
	*m.lines = append(*m.lines, make([]Line[T], (n+7)&^7-len(*m.lines))...)
	m.shared += uint64(cap(*m.lines) - room)
}

// EndWindow forgets the cells of a shared window: its block has ended.
func (m *Lines[T]) EndWindow(w Window) {
	lines := m.windows[w]
	if lines == nil {
		return
	}
	for i := range *lines {
		if c := (*lines)[i].cells; c != nil {
			m.spare = append(m.spare, c)
		}
	}
	clear(*lines)
	m.idle = append(m.idle, lines)
	delete(m.windows, w)
	if m.window == w {
		m.lines = nil
	}
}

// Clear forgets everything.
func (m *Lines[T]) Clear() { *m = *NewLines[T](int(m.granule)) }

// Bytes is the memory that cells take now.
func (m *Lines[T]) Bytes() uint64 {
	return m.global.Bytes() + m.shared*uint64(unsafe.Sizeof(Line[T]{})) + m.parted*uint64(unsafe.Sizeof([LineCells]T{}))
}

// Run makes a run of cells start at from and one end at to, or before: it gives its first, to be changed, and how many there
// are. All of them change with the first. It is valid until the next call for the line.
func (m *Lines[T]) Run(l *Line[T], from, to int) (first *T, n int) {
	m.cut(l, from)
	end := from + 1 + bits.TrailingZeros32(l.starts>>from>>1)
	if end > to {
		if to < LineCells {
			m.cut(l, to)
		}
		end = to
	}
	if l.cells == nil {
		return &l.one, end - from
	}
	return &l.cells[from], end - from
}

// Cell makes a cell a run of its own, to be changed. It is valid until the next call for the line.
func (m *Lines[T]) Cell(l *Line[T], at int) *T {
	if l.starts>>at&1 == 0 || at < LineCells-1 && l.starts>>at&2 == 0 {
		first, _ := m.Run(l, at, at+1)
		return first
	}
	return &l.cells[at]
}

// cut makes a run start at a cell.
func (m *Lines[T]) cut(l *Line[T], at int) {
	if at == 0 || l.starts>>at&1 != 0 {
		return
	}
	if l.cells == nil {
		if n := len(m.spare); n > 0 {
			l.cells, m.spare = m.spare[n-1], m.spare[:n-1]
		} else {
			l.cells = new([LineCells]T)
			m.parted++
		}
		l.cells[0], l.starts = l.one, 1
	}
	start := l.before(at)
	l.cells[at] = l.cells[start].Lane(at - start)
	l.starts |= 1 << at
}

// before is where the run starts that the cell before a cell is in.
func (l *Line[T]) before(at int) int {
	return 31 - bits.LeadingZeros32(l.starts&(1<<at-1))
}

// Join makes runs of the cells between from and to, and of those beside them, one where they follow from each other.
func (m *Lines[T]) Join(l *Line[T], from, to int) {
	if l.cells == nil {
		return
	}
	from = max(from, 1)
	start := l.before(from)
	for s := l.starts >> from << from & (2<<to - 1); s != 0; s &= s - 1 {
		at := bits.TrailingZeros32(s)
		if l.cells[at] == l.cells[start].Lane(at-start) {
			l.starts &^= 1 << at
		} else {
			start = at
		}
	}
	if l.starts&^1 == 0 {
		l.one, l.starts = l.cells[0], 0
		m.spare = append(m.spare, l.cells)
		l.cells = nil
	}
}

// At gives the value of a cell.
func (l *Line[T]) At(i int) T {
	if l.cells == nil {
		return l.one.Lane(i)
	}
	start := l.before(i + 1)
	return l.cells[start].Lane(i - start)
}
