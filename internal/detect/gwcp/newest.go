package gwcp

// newest maps some warps to numbers: a hash table with open addressing, at most half full.
type newest struct {
	slots []slot // the length is a power of two, or 0
	used  int
}

type slot struct {
	warp uint32 // warp number plus one; 0: empty
	at   uint32
}

// firstSlots is the length of the smallest table.
const firstSlots = 128

// find returns the slot of a warp, or the empty slot where it belongs.
func (t *newest) find(warp uint32) *slot {
	last := uint32(len(t.slots) - 1)
	for i := warp * 0x9e3779b1 >> 7; ; i++ { // multiplication spreads neighbouring warps
		if s := &t.slots[i&last]; s.warp == warp+1 || s.warp == 0 {
			return s
		}
	}
}

// of returns the number of a warp, if it has one.
func (t *newest) of(warp uint32) (at int, ok bool) {
	s := t.find(warp)
	return int(s.at), s.warp != 0
}

// set gives a warp a number.
func (t *newest) set(warp uint32, at int) {
	if 2*t.used >= len(t.slots) {
		old := t.slots
		*t = newest{slots: make([]slot, max(firstSlots, 2*len(old)))}
		for _, s := range old {
			if s.warp != 0 {
				t.set(s.warp-1, int(s.at))
			}
		}
	}
	s := t.find(warp)
	if s.warp == 0 {
		t.used++
	}
	*s = slot{warp + 1, uint32(at)}
}

// clear removes all warps.
func (t *newest) clear() {
	clear(t.slots)
	t.used = 0
}
