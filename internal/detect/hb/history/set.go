package history

// member is the accesses with one stamp in the set of a word.
type member struct {
	stamp  uint32
	values values // values of stores; never saved
}

// join is a memo entry of joinOf: the effect of an access by a lane on a word without a list.
type join struct {
	from   uint32 // word.stamp before
	now    member
	to     uint32 // word.stamp after; only if clear
	known  bool   // the entry is in use
	clear  bool   // the access races with nothing, if thread allows
	thread bool   // clear holds only if the word's lanes are just the access's own lane: accesses by its warp are among the members
	stored bool   // a weak store is among the members
}

// joinOf returns the effect of an access on a word.
func (h *Fast) joinOf(from uint32, now member) *join {
	j := &h.joins[(from*0x9e3779b1^now.stamp*0x85ebca6b)>>22]
	if j.known && j.from == from && j.now == now {
		return j
	}
	*j = join{from: from, now: now, known: true, clear: true}
	n := &h.stamps[now.stamp]
	var kept []member
	for _, m := range h.members(from) {
		s := &h.stamps[m.stamp]
		same := s.site == n.site
		switch {
		case s.launch == n.launch:
			j.clear = j.clear && s.warp == n.warp
			j.thread = true
			j.stored = j.stored || s.site.WeakStore()
			if same && s.exec == n.exec {
				continue
			}
			if same {
				m.values = now.values
			}
		case !n.launch.Follows(s.launch):
			j.clear = false
		case same:
			continue
		case !whole(s.launch):
			j.thread = true
		}
		kept = append(kept, m)
	}
	kept = append(kept, now)
	if len(kept) > mostMembers {
		j.clear = false
	}
	if j.clear {
		j.to = h.sets.of(kept)
	}
	return j
}

// members returns the members of a word without a list.
func (h *Fast) members(stamp uint32) []member {
	if stamp&setFlag != 0 {
		return h.sets.members(stamp &^ setFlag)
	}
	h.single[0] = member{stamp: stamp}
	return h.single[:]
}

// sets stores the sets of words one after another. Each set is preceded by a member whose stamp is the number of its
// members.
type sets struct {
	blocks []*[setsBlock]member
	n      uint32 // the number of members in use
}

const (
	setsBlock   = 1 << 12
	mostMembers = 64 // of a set
)

func (x *sets) members(at uint32) []member {
	b := x.blocks[at/setsBlock][at%setsBlock:]
	return b[1:][:b[0].stamp]
}

// of returns the word.stamp for a set of members.
func (x *sets) of(members []member) uint32 {
	if len(members) == 1 && members[0].values == inMemory {
		return members[0].stamp
	}
	if x.n%setsBlock+uint32(len(members)) >= setsBlock || x.n == uint32(len(x.blocks))*setsBlock {
		x.n = uint32(len(x.blocks)) * setsBlock
		x.blocks = append(x.blocks, new([setsBlock]member))
	}
	at := x.n
	b := x.blocks[at/setsBlock][at%setsBlock:]
	b[0].stamp = uint32(len(members))
	x.n += uint32(copy(b[1:], members)) + 1
	return at | setFlag
}
