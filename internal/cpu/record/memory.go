package record

import (
	"slices"

	"fencepost.dev/fencepost/internal/cpu"
)

// memory maps bytes to variables. A variable is the bytes within a word of 8 bytes that one access touched. If a later
// access touches only a part of them, the variable is split: both parts have the history of the whole.
type memory struct {
	to    *assembler
	pages map[uint64]*page
	cache [1024]struct {
		number uint64
		page   *page
	}
	parts     [][8]uint32 // of divided words: the variable of each byte, plus one; 0 for none
	spareRows []uint32
	count     uint32   // number of variables
	spare     []uint32 // numbers of variables whose memory has been reused
	forgotten []uint32 // likewise, but the receiver may still need their addresses for events it has not taken
	address   []uint64 // by variable: its start
}

const (
	pageBits = 12
	words    = 1 << (pageBits - 3)
	divided  = 1 << 31
)

// page holds the words of a page.
type page struct {
	word   [words]uint32 // of an undivided word: its variable, plus one; of a divided word: its number in parts, marked; 0 for none
	extent [words]uint8  // of an undivided word: first byte and number of bytes
}

// page returns a page, or nil if the page was not accessed and make is false.
func (m *memory) page(number uint64, make bool) *page {
	c := &m.cache[number%uint64(len(m.cache))]
	if c.page != nil && c.number == number {
		return c.page
	}
	p := m.pages[number]
	if p == nil {
		if !make {
			return nil
		}
		p = &page{}
		m.pages[number] = p
	}
	c.number, c.page = number, p
	return p
}

// access handles an access to size bytes.
func (m *memory) access(t *thread, address, size uint64, op cpu.Op, location uint32) {
	for size > 0 {
		off := address & 7
		n := min(8-off, size)
		p := m.page(address>>pageBits, true)
		w := address >> 3 % words
		extent := uint8(off<<4 | n)
		switch v := p.word[w]; {
		case v != 0 && v&divided == 0 && p.extent[w] == extent:
			m.to.emit(op, t, v-1, location)
		case v&divided != 0 && n == 1 && alone(&m.parts[v&^divided], off):
			m.to.emit(op, t, m.parts[v&^divided][off]-1, location)
		case v == 0:
			v = m.variable(address)
			p.word[w], p.extent[w] = v+1, extent
			m.to.emit(op, t, v, location)
		default:
			m.divide(t, p, w, address&^7, int(off), int(off+n), op, location)
		}
		address, size = address+n, size-n
	}
}

// whole returns the variable that consists of exactly these bytes, if there is one and its page is cached.
func (m *memory) whole(address, size uint64) (variable uint32, ok bool) {
	c := &m.cache[address>>pageBits%uint64(len(m.cache))]
	p, off := c.page, address&7
	if p == nil || c.number != address>>pageBits || off+size > 8 {
		return 0, false
	}
	w := address >> 3 % words
	v := p.word[w]
	if v&divided == 0 {
		return v - 1, v != 0 && p.extent[w] == uint8(off<<4|size)
	}
	row := &m.parts[v&^divided]
	return row[off] - 1, size == 1 && alone(row, off)
}

// alone reports whether a byte of a word is a variable by itself.
func alone(row *[8]uint32, off uint64) bool {
	v := row[off&7]
	return v != 0 && (off == 0 || row[(off-1)&7] != v) && (off == 7 || row[(off+1)&7] != v)
}

func (m *memory) variable(address uint64) uint32 {
	if n := len(m.spare); n > 0 {
		v := m.spare[n-1]
		m.spare = m.spare[:n-1]
		m.address[v] = address
		return v
	}
	m.count++
	if len(m.address) == cap(m.address) {
		m.address = slices.Grow(m.address, max(1<<16, len(m.address)))
	}
	m.address = append(m.address, address)
	return m.count - 1
}

// row returns the variables of the bytes of a word. It divides the word if necessary.
func (m *memory) row(p *page, w uint64) *[8]uint32 {
	v := p.word[w]
	if v&divided != 0 {
		return &m.parts[v&^divided]
	}
	var at uint32
	if n := len(m.spareRows); n > 0 {
		at = m.spareRows[n-1]
		m.spareRows = m.spareRows[:n-1]
	} else {
		at = uint32(len(m.parts))
		if len(m.parts) == cap(m.parts) {
			m.parts = slices.Grow(m.parts, max(1<<12, len(m.parts)))
		}
		m.parts = append(m.parts, [8]uint32{})
	}
	row := &m.parts[at]
	*row = [8]uint32{}
	if v != 0 {
		for i := range p.extent[w] & 15 {
			row[p.extent[w]>>4+i] = v
		}
	}
	p.word[w] = divided | at
	return row
}

// divide handles an access to bytes from..to of a word if they are not exactly one variable.
func (m *memory) divide(t *thread, p *page, w, address uint64, from, to int, op cpu.Op, location uint32) {
	row := m.row(p, w)
	if to-from == 1 && row[from] == 0 {
		v := m.variable(address + uint64(from))
		row[from] = v + 1
		m.to.emit(op, t, v, location)
		return
	}
	if v := row[from]; v != 0 && row[to-1] == v && (from == 0 || row[from-1] != v) && (to == 8 || row[to] != v) {
		m.to.emit(op, t, v-1, location) // the bytes are exactly one variable
		return
	}
	for i := from; i < to; {
		v, end := row[i], i
		for end < to && row[end] == v {
			end++
		}
		if v == 0 {
			v = m.variable(address+uint64(i)) + 1
			for k := i; k < end; k++ {
				row[k] = v
			}
		} else {
			m.cut(t, row, address, v, 0, i)
			m.cut(t, row, address, v, end, 8)
		}
		m.to.emit(op, t, v-1, location)
		i = end
	}
}

// cut makes a variable of the bytes from..to of variable v.
func (m *memory) cut(t *thread, row *[8]uint32, address uint64, v uint32, from, to int) {
	part := uint32(0)
	for k := from; k < to; k++ {
		if row[k] != v {
			continue
		}
		if part == 0 {
			part = m.variable(address+uint64(k)) + 1
			m.to.emit(cpu.Part, t, part-1, v-1)
		}
		row[k] = part
	}
}

// words calls each for every accessed word of a range of memory.
func (m *memory) words(address, size uint64, each func(p *page, w uint64)) {
	end := address + size
	for at := (address + 7) &^ 7; at+8 <= end; {
		p := m.page(at>>pageBits, false)
		next := min(end, (at>>pageBits+1)<<pageBits)
		if p != nil {
			for ; at+8 <= next; at += 8 {
				if w := at >> 3 % words; p.word[w] != 0 {
					each(p, w)
				}
			}
		}
		at = next
	}
}

// variables calls each for every variable of a word.
func (m *memory) variables(p *page, w uint64, each func(v uint32)) {
	if v := p.word[w]; v&divided == 0 {
		each(v - 1)
		return
	}
	last := uint32(0)
	for _, v := range m.parts[p.word[w]&^divided] {
		if v != 0 && v != last {
			each(v - 1)
		}
		last = v
	}
}

// overwrite records writes of all variables in a range.
func (m *memory) overwrite(t *thread, address, size uint64, location uint32) {
	m.words(address, size, func(p *page, w uint64) {
		m.variables(p, w, func(v uint32) { m.to.emit(cpu.Write, t, v, location) })
	})
}

// forget ends the history of a range of memory that is reused.
func (m *memory) forget(t *thread, address, size uint64) {
	m.words(address, size, func(p *page, w uint64) {
		m.variables(p, w, func(v uint32) {
			m.to.emit(cpu.Forget, t, v, 0)
			m.forgotten = append(m.forgotten, v)
		})
		if v := p.word[w]; v&divided != 0 {
			m.spareRows = append(m.spareRows, v&^divided)
		}
		p.word[w] = 0
	})
}
