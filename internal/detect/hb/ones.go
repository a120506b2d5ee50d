package hb

// A word that several threads access one by one, as neighbours do that read a vertex of a graph or try to claim it, has its
// notes in a list of four bytes each, until there are too many or one is of several lanes or of a store.

const (
	// onesList beside manyNotes tells that the chunk is one of cells, each with one note: of weak loads, or of atomics.
	onesList noteCell = 1 << 27
	chunkID  noteCell = onesList - 1
	oneSeen  noteCell = 1 << 5
	// Logs of the shortest and the longest list.
	minOnes = 2
	maxOnes = 4
)

// ones says that a cell has one note or a list of such.
func (c noteCell) ones() bool { return c != 0 && (c&manyNotes == 0 || c&onesList != 0) }

// kind is what kind of access the only note of a cell is.
func (c noteCell) kind() uint32 { return uint32(c>>6) & noteKind }

// deed is the number of the deed of the only note of a cell.
func (c noteCell) deed() uint32 { return uint32(c &^ manyNotes >> 8) }

// list gives the list of a word, free places included.
func (t *notebook) list(c noteCell) []noteCell {
	log := uint(c >> 28 & 7)
	return t.lists[log].at(uint32(c&chunkID), log)
}

// place adds a free place to the one note of a word, or to its full list. It gives the list and the place, nil when it would
// be too long.
func (t *notebook) place(c *noteCell) (list []noteCell, at int) {
	var room [1]noteCell
	old, log := room[:], uint(minOnes)
	if *c&manyNotes == 0 {
		old[0] = *c
	} else {
		old, log = t.list(*c), uint(*c>>28&7)+1
	}
	if log > maxOnes {
		return nil, 0
	}
	was := *c
	*c = manyNotes | onesList | noteCell(log)<<28 | noteCell(t.lists[log].add(log))
	list = t.list(*c)
	at = copy(list, old)
	t.free(&was)
	return list, at
}

// openOnes gives a word a chunk of notes, those of one deed together, in place of one or a list.
func (t *notebook) openOnes(c *noteCell) {
	var room [1 << maxOnes]note
	n := 0
	for _, x := range t.of(*c, &room) {
		i := 0
		for i < n && room[i].deed != x.deed {
			i++
		}
		if i == n {
			room[n] = note{deed: x.deed}
			n++
		}
		room[i].lanes |= x.lanes
		room[i].seen |= x.seen
	}
	t.free(c)
	log := uint(1)
	for 1<<log < n {
		log++
	}
	t.enter(c, log)
	copy(t.chunk(*c), room[:n])
}

// listLoad notes a load x of one lane, which is one, where a word has ones. It says false, having done nothing, if it is more
// than they can say.
func (d *Detector) listLoad(p *page, c *noteCell, one noteCell, x *note) bool {
	t := &d.mem.notebook
	at := 0
	if *c&manyNotes != 0 {
		list := t.list(*c)
		for ; at < len(list) && list[at] != 0; at++ {
			if list[at].kind() != 0 {
				return false
			}
			if list[at] == one || (list[at]^one)&31 == 0 && d.repeats(list[at], x) {
				list[at] = one
				return true
			}
		}
		if at == len(list) && p.stale && at != 1<<minOnes {
			at = d.thin(list, one)
		}
		if at < len(list) {
			list[at] = one
			return true
		}
	} else if c.kind() != 0 {
		return false
	} else if p.stale && d.thin([]noteCell{*c}, one) == 0 {
		*c = one
		return true
	}
	list, at := t.place(c)
	if list == nil {
		return false
	}
	list[at] = one
	return true
}

// listAtomic is noteAtomic where a word has ones and the access is one.
func (d *Detector) listAtomic(p *page, c *noteCell, addr uint64, one noteCell, met *handing) bool {
	a := &d.act
	t := &d.mem.notebook
	list := []noteCell{*c}
	if *c&manyNotes != 0 {
		list = t.list(*c)
	}
	if list[0].kind()&noteAtomics == 0 {
		return false
	}
	n, mine, seen := 0, -1, noteCell(0)
	var by noteCell // the last write of the launch
	for ; n < len(list) && list[n] != 0; n++ {
		x := list[n]
		if x&^oneSeen == one {
			mine = n
		}
		if x&oneSeen != 0 {
			seen = oneSeen
			if x.kind()&noteWrite != 0 && t.deeds.launch(x.deed()) == p.noter {
				by = x
			}
		}
	}
	if seen == 0 && p.stale { // the value may be one that memory had before the notes
		return false
	}
	if mine < 0 && n == len(list) && !a.class.side.Write {
		mine = d.repeated(list, one)
	}
	if mine < 0 {
		if mine = n; n == len(list) {
			if n != 1<<minOnes && p.stale && p.locs == nil {
				n = d.thin(list, one)
				mine = n
			}
			if n == len(list) {
				if list, mine = t.place(c); list == nil {
					return false
				}
			}
		}
	}
	if !a.class.discards {
		var last *note
		if by != 0 {
			o := by.one()
			last = &o
		}
		d.meetLast(p, addr, last, met)
	}
	if a.class.side.Write {
		for i := range list[:n] {
			list[i] &^= oneSeen
		}
		seen = oneSeen
	}
	list[mine] = one | seen
	if *c&manyNotes == 0 {
		*c = list[0]
	}
	return true
}

// repeated gives the place of the read that one makes another of, see again; -1 when there is none.
func (d *Detector) repeated(list []noteCell, one noteCell) int {
	for i, c := range list {
		if (c^one)&31 != 0 {
			continue
		}
		o := c.one()
		if x := (note{one.one().deed, o.lanes, o.seen}); d.again(&o, &x) {
			return i
		}
	}
	return -1
}
