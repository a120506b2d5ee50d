// Package shadow is shadow memory for detectors that keep one cell of metadata for each granule of memory, as most
// published ones do. Detector hb has its own shadow memory, organised by the accesses of warps.
package shadow

import "unsafe"

const (
	pageCells = 256
	dirPages  = 1 << 12
)

type page[T any] [pageCells]T

// Window identifies a shared-memory window: that of one block of one launch.
type Window struct{ Launch, Block uint32 }

// Memory maps granules of global memory, and of the shared-memory windows of blocks, to cells. Cells are zero at first.
// Pointers to cells stay valid until their memory is dropped.
type Memory[T any] struct {
	shift   uint
	dirs    map[uint64]*[dirPages]*page[T]
	key     uint64 // of dir
	dir     *[dirPages]*page[T]
	windows map[Window][]*page[T]
	window  Window // of pages
	pages   []*page[T]
	spare   []*page[T]
	bytes   uint64
}

// New makes a Memory with a cell for every granule bytes; granule is a power of two.
func New[T any](granule int) *Memory[T] {
	m := &Memory[T]{dirs: map[uint64]*[dirPages]*page[T]{}, windows: map[Window][]*page[T]{}}
	for 1<<m.shift < granule {
		m.shift++
	}
	return m
}

// Global returns the cell of the granule that contains the byte of global memory at addr.
func (m *Memory[T]) Global(addr uint64) *T {
	n := addr >> m.shift
	if key := n / (pageCells * dirPages); m.dir == nil || m.key != key {
		m.key, m.dir = key, m.dirs[key]
		if m.dir == nil {
			m.dir = new([dirPages]*page[T])
			m.dirs[key] = m.dir
			m.bytes += uint64(unsafe.Sizeof(*m.dir))
		}
	}
	p := &m.dir[n/pageCells%dirPages]
	if *p == nil {
		*p = m.page()
	}
	return &(*p)[n%pageCells]
}

// Shared returns the cell of the granule that contains the byte at offset in a shared-memory window.
func (m *Memory[T]) Shared(w Window, offset uint64) *T {
	if m.pages == nil || m.window != w {
		m.window, m.pages = w, m.windows[w]
	}
	n := offset >> m.shift
	if i := int(n / pageCells); i >= len(m.pages) {
		for i >= len(m.pages) {
			m.pages = append(m.pages, m.page())
		}
		m.windows[w] = m.pages
	}
	return &m.pages[n/pageCells][n%pageCells]
}

// EndWindow drops the cells of a shared-memory window: its block has ended.
func (m *Memory[T]) EndWindow(w Window) {
	for _, p := range m.windows[w] {
		m.drop(p)
	}
	delete(m.windows, w)
	if m.window == w {
		m.pages = nil
	}
}

// Clear drops everything. It is for designs that know only one kernel: each launch begins with zero cells.
func (m *Memory[T]) Clear() {
	*m = Memory[T]{shift: m.shift, dirs: map[uint64]*[dirPages]*page[T]{}, windows: map[Window][]*page[T]{}}
}

// Each calls f, in no particular order, for every cell of the pages that were accessed.
func (m *Memory[T]) Each(f func(*T)) {
	all := func(p *page[T]) {
		for i := range p {
			f(&p[i])
		}
	}
	for _, dir := range m.dirs {
		for _, p := range dir {
			if p != nil {
				all(p)
			}
		}
	}
	for _, pages := range m.windows {
		for _, p := range pages {
			all(p)
		}
	}
}

// Bytes returns the memory that cells take now.
func (m *Memory[T]) Bytes() uint64 { return m.bytes }

func (m *Memory[T]) page() *page[T] {
	m.bytes += uint64(unsafe.Sizeof(page[T]{}))
	if n := len(m.spare); n > 0 {
		p := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return p
	}
	return new(page[T])
}

func (m *Memory[T]) drop(p *page[T]) {
	m.bytes -= uint64(unsafe.Sizeof(*p))
	if len(m.spare) < 64 {
		*p = page[T]{}
		m.spare = append(m.spare, p)
	}
}
