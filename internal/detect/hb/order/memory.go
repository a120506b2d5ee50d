package order

// Memory holds the sync variables of global memory, or of the shared memory of a block: in pieces of memory, of which those that
// have any variable are found by hashing.
type Memory struct {
	pieces    []*piece // open addressing; the length is a power of two
	n         int      // pieces, those included that have no variable any more
	last      *piece   // that was found
	low, high uint64   // the numbers of all pieces are in [low, high)
}

// piece is the variables of some bytes of memory.
type piece struct {
	number uint64 // address / pieceBytes
	live   int    // variables
	mixed  bool   // not all are aligned words of four bytes, which do not overlap
	others *other
	slots  [pieceBytes / slotBytes]variable // by address; size 0: none
}

// other is a variable that has no slot: its address is odd, or another of the same address, which it overlaps, came first.
type other struct {
	variable
	address uint64
	next    *other
}

const (
	granule    = 16 // the largest size of a scalar, in bytes; two scalars that overlap are of one granule
	slotBytes  = 4
	pieceBytes = 32
)

// find gives the variable of a location, nil when its last write was not strong.
func (m *Memory) find(address uint64, size uint8) *variable {
	p := m.piece(address / pieceBytes)
	if p == nil {
		return nil
	}
	if v := &p.slots[address%pieceBytes/slotBytes]; v.size == size && address%slotBytes == 0 {
		return v
	}
	for x := p.others; x != nil; x = x.next {
		if x.address == address && x.size == size {
			return &x.variable
		}
	}
	return nil
}

// make adds the variable of a location, which find has not found.
func (m *Memory) make(address uint64, size uint8) *variable {
	p := m.piece(address / pieceBytes)
	if p == nil {
		p = m.add(address / pieceBytes)
	}
	p.live++
	v := &p.slots[address%pieceBytes/slotBytes]
	if v.size != 0 || address%slotBytes != 0 {
		p.others = &other{address: address, next: p.others}
		v = &p.others.variable
	}
	v.size = size
	p.mixed = p.mixed || size != slotBytes || address%slotBytes != 0
	return v
}

// piece gives a piece, nil when there is none.
func (m *Memory) piece(number uint64) *piece {
	if m.last != nil && m.last.number == number || m.n == 0 {
		return m.last
	}
	p := m.pieces[m.place(number)]
	if p != nil {
		m.last = p
	}
	return p
}

// place gives where a piece is, or would be.
func (m *Memory) place(number uint64) int {
	mask := len(m.pieces) - 1
	i := int(number*0x9E3779B97F4A7C15>>32) & mask
	for m.pieces[i] != nil && m.pieces[i].number != number {
		i = (i + 1) & mask
	}
	return i
}

// add adds a piece.
func (m *Memory) add(number uint64) *piece {
	if 2*m.n >= len(m.pieces) {
		m.rehash()
	}
	p := &piece{number: number}
	if m.n == 0 {
		m.low, m.high = number, number+1
	}
	m.low, m.high = min(m.low, number), max(m.high, number+1)
	m.pieces[m.place(number)], m.last = p, p
	m.n++
	return p
}

// rehash drops the pieces without variables and makes room for as many again as are left.
func (m *Memory) rehash() {
	old := m.pieces
	m.n, m.last = 0, nil
	for _, p := range old {
		if p != nil && p.live > 0 {
			m.n++
		}
	}
	size := 16
	for size < 4*m.n {
		size *= 2
	}
	m.pieces = make([]*piece, size)
	for _, p := range old {
		if p != nil && p.live > 0 {
			m.pieces[m.place(p.number)] = p
		}
	}
}

// reset drops all variables.
func (m *Memory) reset() {
	clear(m.pieces)
	m.n, m.last = 0, nil
}

// overwrite ends the values of variables, but for one, where all their bytes are overwritten.
func (m *Memory) overwrite(from, end uint64, but *variable) {
	if from >= end || m.n == 0 {
		return
	}
	first, last := max(from/pieceBytes, m.low), min((end-1)/pieceBytes, m.high-1)
	if first > last {
		return
	}
	if last-first >= uint64(len(m.pieces)) {
		for _, p := range m.pieces {
			if p != nil && first <= p.number && p.number <= last {
				p.overwrite(from, end, but)
			}
		}
		return
	}
	for n := first; n <= last; n++ {
		if p := m.piece(n); p != nil && p.live > 0 {
			p.overwrite(from, end, but)
		}
	}
}

func (p *piece) overwrite(from, end uint64, but *variable) {
	base := p.number * pieceBytes
	first := max(from&^(granule-1), base)
	last := min((end-1)|(granule-1), base+pieceBytes-1)
	for at := first; at <= last; at += slotBytes {
		if v := &p.slots[at%pieceBytes/slotBytes]; v.size != 0 && v != but && !v.outlasts(at, from, end) {
			*v = variable{}
			p.live--
		}
	}
	for at := &p.others; *at != nil; {
		x := *at
		if first <= x.address && x.address <= last && &x.variable != but && !x.outlasts(x.address, from, end) {
			*at = x.next
			p.live--
		} else {
			at = &x.next
		}
	}
}

// outlasts ends the bytes [from, end) of a variable, of an address, and says that others are left.
func (v *variable) outlasts(address, from, end uint64) bool {
	from, end = max(from, address)-address, max(end, address)-address
	v.valid &^= 1<<min(end, granule) - 1<<min(from, granule)
	return v.valid != 0
}
