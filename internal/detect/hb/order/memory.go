package order

import "unsafe"

// Memory holds the sync variables of global memory, or of the shared memory of a block, by address. It consists of
// regions, regions of pieces, and pieces of variables.
type Memory struct {
	regions   map[uint64]*region
	recent    [16]*region // a cache, indexed by the low bits of region.number
	live      int         // the number of variables
	mixed     bool        // a piece is or was mixed
	former    map[scalar]*former
	low, high uint64 // since the last reset, the numbers of all pieces with variables are in [low, high)
}

// region is regionBytes of memory in which variables have existed.
type region struct {
	number uint64   // address / regionBytes
	pieces []*piece // indexed by address, up to the last one used
}

// piece holds the variables of pieceBytes of memory.
type piece struct {
	live   int  // the number of variables
	mixed  bool // it has had a variable that is not an aligned word of four bytes
	others *other
	slots  [pieceBytes / slotBytes]variable // indexed by address; size 0: no variable
}

// other is a variable without a slot: its address is not aligned, or the slot is taken by a variable of the same
// address and another size.
type other struct {
	variable
	address uint64
	next    *other
}

const (
	granule     = 16 // the largest size of a scalar, in bytes; scalars that overlap lie in one granule
	slotBytes   = 4
	pieceBytes  = 128
	regionBytes = 256 << 10
	perRegion   = regionBytes / pieceBytes
)

// find returns the variable of a location; nil if its last write was not strong.
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

// slot returns a pointer to the place where the variable of an aligned word is or would be; nil if its piece does not
// exist.
func (m *Memory) slot(address uint64) unsafe.Pointer {
	p := m.piece(address / pieceBytes)
	if p == nil {
		return nil
	}
	return unsafe.Pointer(&p.slots[address%pieceBytes/slotBytes])
}

// make adds the variable of a location for which find returned nil.
func (m *Memory) make(address uint64, size uint8) *variable {
	p := m.pieceFor(address / pieceBytes)
	m.live++
	p.live++
	v := &p.slots[address%pieceBytes/slotBytes]
	if v.size != 0 || address%slotBytes != 0 {
		p.others = &other{address: address, next: p.others}
		v = &p.others.variable
	}
	v.size = size
	if size != slotBytes || address%slotBytes != 0 {
		p.mixed, m.mixed = true, true
	}
	return v
}

// region returns the region of a number; nil if it does not exist.
func (m *Memory) region(number uint64) *region {
	at := &m.recent[number%uint64(len(m.recent))]
	if r := *at; r != nil && r.number == number {
		return r
	}
	r := m.regions[number]
	if r != nil {
		*at = r
	}
	return r
}

// piece returns the piece of a number; nil if it does not exist.
func (m *Memory) piece(number uint64) *piece {
	if m.live == 0 {
		return nil
	}
	if r := m.region(number / perRegion); r != nil && number%perRegion < uint64(len(r.pieces)) {
		return r.pieces[number%perRegion]
	}
	return nil
}

// pieceFor returns the piece of a number, creating it if necessary.
func (m *Memory) pieceFor(number uint64) *piece {
	if m.low == m.high {
		m.low, m.high = number, number+1
	}
	m.low, m.high = min(m.low, number), max(m.high, number+1)
	r := m.region(number / perRegion)
	if r == nil {
		if m.regions == nil {
			m.regions = map[uint64]*region{}
		}
		r = &region{number: number / perRegion}
		m.regions[r.number] = r
	}
	i := int(number % perRegion)
	if n := i + 1 - len(r.pieces); n > 0 {
		r.pieces = append(r.pieces, make([]*piece, n)...)
	}
	if r.pieces[i] == nil {
		r.pieces[i] = &piece{}
	}
	return r.pieces[i]
}

// each calls f for the pieces with variables whose numbers are in [first, last].
func (m *Memory) each(first, last uint64, f func(number uint64, at **piece)) {
	visit := func(r *region) {
		base := r.number * perRegion
		for i := max(first, base) - base; i < uint64(len(r.pieces)) && base+i <= last; i++ {
			if p := r.pieces[i]; p != nil && p.live > 0 {
				f(base+i, &r.pieces[i])
			}
		}
	}
	if last/perRegion-first/perRegion >= uint64(len(m.regions)) {
		for _, r := range m.regions {
			if base := r.number * perRegion; base <= last && base+perRegion > first {
				visit(r)
			}
		}
		return
	}
	for n := first / perRegion; n <= last/perRegion; n++ {
		if r := m.region(n); r != nil {
			visit(r)
		}
	}
}

// reset drops all variables.
func (m *Memory) reset() {
	if m.live > 0 {
		m.each(m.low, m.high-1, func(_ uint64, at **piece) { **at = piece{} })
	}
	m.live, m.low, m.high, m.former = 0, 0, 0, nil
}

// overwrite ends the values of variables, except the variable but, when all of their bytes have been overwritten. by is
// the order of the thread that overwrites them; nil: the host. Pieces that a large overwrite leaves empty are dropped;
// former values are kept.
func (m *Memory) overwrite(from, end uint64, but *variable, by *Order) {
	if from >= end || m.live == 0 {
		return
	}
	first, last := max(from/pieceBytes, m.low), min((end-1)/pieceBytes, m.high-1)
	if first > last {
		return
	}
	m.each(first, last, func(number uint64, at **piece) {
		p, was := *at, (*at).live
		m.overwritePiece(p, number*pieceBytes, from, end, but, by)
		if m.live += p.live - was; p.live == 0 && end-from >= 2*pieceBytes {
			*at = nil
		}
	})
}

func (m *Memory) overwritePiece(p *piece, base, from, end uint64, but *variable, by *Order) {
	first := max(from&^(granule-1), base)
	last := min((end-1)|(granule-1), base+pieceBytes-1)
	for at := first; at <= last; at += slotBytes {
		if v := &p.slots[at%pieceBytes/slotBytes]; v.size != 0 && v != but && !v.outlasts(at, from, end) {
			if by != nil {
				by.retire(m, v, scalar{at, v.size})
			}
			*v = variable{}
			p.live--
		}
	}
	for at := &p.others; *at != nil; {
		x := *at
		if first <= x.address && x.address <= last && &x.variable != but && !x.outlasts(x.address, from, end) {
			if by != nil {
				by.retire(m, &x.variable, scalar{x.address, x.size})
			}
			*at = x.next
			p.live--
		} else {
			at = &x.next
		}
	}
}

// outlasts removes the bytes [from, end) from those of a variable at an address, and says whether any are left.
func (v *variable) outlasts(address, from, end uint64) bool {
	from, end = max(from, address)-address, max(end, address)-address
	v.valid &^= 1<<min(end, granule) - 1<<min(from, granule)
	return v.valid != 0
}
