package hb

// notebook holds deeds and notes.
type notebook struct {
	deeds  deeds
	recent *recentDeeds // nil before the first
	chunks [maxNotesWeak + 1]noteSlab[note]
	lists  [maxOnes + 1]noteSlab[noteCell]
	lines  arena[noteLine]
	// Of lines of shared memory with tallies; numbers of these have tallyBit.
	tallies arena[tally]
	rows    arena[tallyRow]
	dropped uint64      // tallies
	rolls   arena[roll] // of lines of global memory with rolls; numbers have rollBit
	ones    uint32      // maxOneDeed, or less to test what else is done
}

// noteSlab is an arena of chunks of 1<<log T, numbered from 1.
type noteSlab[T any] struct {
	blocks [][]T
	free   []uint32
	used   uint32
}

// chunksPerBlock is how many chunks a block has, of those that are longer than 1<<longChunk one.
const (
	chunksPerBlock = 256
	longChunk      = 6
)

func (s *noteSlab[T]) at(id uint32, log uint) []T {
	if log > longChunk {
		return s.blocks[id]
	}
	at := id % chunksPerBlock << log
	return s.blocks[id/chunksPerBlock][at : at+1<<log : at+1<<log]
}

func (s *noteSlab[T]) add(log uint) uint32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		clear(s.at(id, log))
		return id
	}
	s.used++
	n := uint32(chunksPerBlock)
	if log > longChunk {
		n = 1
	}
	for int(s.used/n) >= len(s.blocks) {
		s.blocks = append(s.blocks, make([]T, n<<log))
	}
	return s.used
}

// chunk gives the notes of a word with many, free ones included.
func (t *notebook) chunk(c noteCell) []note {
	log := uint(c >> 28 & 7)
	return t.chunks[log].at(uint32(c&chunkID), log)
}

// of gives the notes of a word, not to be changed; ones in room.
func (t *notebook) of(c noteCell, room *[1 << maxOnes]note) []note {
	switch {
	case c == 0:
		return nil
	case c&manyNotes == 0:
		room[0] = c.one()
		return room[:1]
	case c&onesList != 0:
		n := 0
		for _, x := range t.list(c) {
			if x == 0 {
				break
			}
			room[n] = x.one()
			n++
		}
		return room[:n]
	}
	notes := t.chunk(c)
	for i := range notes {
		if notes[i].deed == 0 {
			return notes[:i]
		}
	}
	return notes
}

// open gives the notes of a word that has some, to be changed, and those of its chunk that are free.
func (t *notebook) open(c *noteCell) []note {
	if c.ones() {
		t.openOnes(c)
	}
	return t.chunk(*c)
}

// enter gives a word a chunk of 1<<log free notes.
func (t *notebook) enter(c *noteCell, log uint) {
	*c = manyNotes | noteCell(log)<<28 | noteCell(t.chunks[log].add(log))
}

// room gives a free note of a word, nil when it has as many as it may have, 1<<most.
func (t *notebook) room(c *noteCell, most uint) *note {
	if *c == 0 {
		t.enter(c, 0)
		return &t.chunk(*c)[0]
	}
	old := t.open(c)
	for i := range old {
		if old[i].deed == 0 {
			return &old[i]
		}
	}
	log := uint(*c>>28&7) + 1
	switch {
	case log > most:
		return nil
	case most == maxNotesShared && log > 1:
		log = max(log, 3) // a note for each warp of a block of usual size
	}
	was := *c
	t.enter(c, log)
	fresh := t.chunk(*c)
	copy(fresh, old)
	t.free(&was)
	return &fresh[len(old)]
}

// free gives back the chunk of a word.
func (t *notebook) free(c *noteCell) {
	switch log, id := *c>>28&7, uint32(*c&chunkID); {
	case *c&manyNotes == 0:
		return
	case *c&onesList != 0:
		t.lists[log].free = append(t.lists[log].free, id)
	default:
		t.chunks[log].free = append(t.chunks[log].free, id)
	}
	*c = 0
}

// arena holds T, numbered from 1.
type arena[T any] struct {
	blocks [][]T // not pointers to arrays, which would be read, to see whether they are nil, to find a T
	free   []uint32
	used   uint32
}

const arenaBlock = 16

func (s *arena[T]) at(id uint32) *T { return &s.blocks[id/arenaBlock][id%arenaBlock] }

// add gives the number of a zero T.
func (s *arena[T]) add() uint32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		var zero T
		*s.at(id) = zero
		return id
	}
	s.used++
	if int(s.used/arenaBlock) >= len(s.blocks) {
		s.blocks = append(s.blocks, make([]T, arenaBlock))
	}
	return s.used
}

func (s *arena[T]) drop(id uint32) { s.free = append(s.free, id) }

// drop forgets the notes of line i of a page.
func (t *notebook) drop(p *page, i uint64) {
	switch {
	case p.notes[i]&tallyBit != 0:
		t.dropTally(p, i)
		return
	case p.notes[i]&rollBit != 0:
		t.dropRoll(p, i)
		return
	}
	n := t.lines.at(p.notes[i])
	for j := range n {
		t.free(&n[j])
	}
	t.lines.drop(p.notes[i])
	p.notes[i] = 0
}

// deed gives the number of a deed of launch l, mostly the same each time.
func (t *notebook) deed(l *launch, x deed) uint32 {
	h := (uint64(x.class)<<32 | uint64(x.warp)) * 0x9e3779b97f4a7c15
	h ^= (uint64(x.clock)<<32 | uint64(x.exec)) * 0xff51afd7ed558ccd
	h *= 0xd6e8feb86659fd93
	if t.recent == nil {
		t.recent = new(recentDeeds)
	}
	r := t.recent
	at, tag := h>>(64-12), uint8(h>>32)
	if id := r.ids[at]; id != 0 && r.tags[at] == tag && t.deeds.at(id) == x {
		return id
	}
	other := at ^ 1
	r.ids[at], r.ids[other] = r.ids[other], r.ids[at]
	r.tags[at], r.tags[other] = r.tags[other], r.tags[at]
	if id := r.ids[at]; id != 0 && r.tags[at] == tag && t.deeds.at(id) == x {
		return id
	}
	r.ids[at], r.tags[at] = t.deeds.add(l, x), tag
	return r.ids[at]
}

// recentDeeds are deeds by hash, of which tags are another part, those of neighbouring places the later one first.
type recentDeeds struct {
	ids  [1 << 12]uint32
	tags [1 << 12]uint8
}
