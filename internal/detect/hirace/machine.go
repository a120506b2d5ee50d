package hirace

// The labels of a transition (figure 4 and section III-B). Their numbers are those of the published table.

// action is what an access does.
type action uint8

const (
	read action = iota
	write
	blockAtomic  // an atomic operation whose scope is the block
	deviceAtomic // one of device or system scope
)

// synced is the widest barrier between the last access to a location and the current one, according to their clocks. It
// is meaningful only for threads that share a clock.
type synced uint8

const (
	unsynced synced = iota
	warpSynced
	blockSynced
)

// relation is the smallest group that contains the last accessor and the current one.
type relation uint8

const (
	self relation = iota
	sameWarp
	sameBlock
	sameGrid
)

// standing describes how the accesses of one kind in a history relate to the accesses that may come next: which threads
// are ordered after all of them without a further barrier. Standings are ordered: a thread ordered after accesses of
// one standing is ordered after accesses of every smaller standing, and remains so whatever follows. The greatest of
// several standings therefore represents all of them.
type standing uint8

const (
	none     standing = iota // there are no such accesses
	toBlock                  // ordered before every thread of the last accessor's block
	toWarp                   // ordered before every thread of its warp
	toSelf                   // ordered before the last accessor alone
	ofLanes                  // ordered before nobody: by several lanes of a warp, with no barrier between
	ofWarps                  // ordered before nobody: by several warps of a block
	ofBlocks                 // ordered before nobody, which no barrier can change: by several blocks
)

// after returns the standing for a thread with relation r to the last accessor, after barrier y since the last access.
func (s standing) after(y synced, r relation) standing {
	switch {
	case s == none:
		return none
	case r == sameGrid, s == ofBlocks:
		return ofBlocks
	case y == blockSynced, s == toBlock:
		return toBlock
	case r == sameBlock, s == ofWarps:
		return ofWarps
	case y == warpSynced, s == toWarp:
		return toWarp
	case r == sameWarp:
		return ofLanes
	}
	return s // the last accessor itself
}

// unordered reports whether some of the accesses are not ordered before the thread that the standing was computed for.
func (s standing) unordered() bool { return s >= ofLanes }

// history is what must be known of the accesses to a location. A state represents all race-free histories that it
// describes.
type history struct {
	writes, reads, atomics standing
	device                 bool // every atomic operation had device scope
	rewarped               bool // see state BWSYNC
	race                   bool
}

// then returns the history extended by one access.
func (h history) then(a action, y synced, r relation) history {
	if h.race {
		return h
	}
	h.writes, h.reads, h.atomics = h.writes.after(y, r), h.reads.after(y, r), h.atomics.after(y, r)
	h.rewarped = h.writes == toBlock && (y == warpSynced || y == unsynced && h.rewarped)
	if h.conflicts(a) {
		return history{race: true}
	}
	switch a {
	case write:
		h.writes = max(h.writes, toSelf)
	case read:
		h.reads = max(h.reads, toSelf)
	case blockAtomic, deviceAtomic:
		h.device = a == deviceAtomic && (h.device || h.atomics == none)
		h.atomics = max(h.atomics, toSelf)
	}
	return h.shortest()
}

// conflicts reports whether an access races with one that it is not ordered after.
func (h history) conflicts(a action) bool {
	switch a {
	case read:
		return h.writes.unordered() || h.atomics.unordered()
	case write:
		return h.writes.unordered() || h.reads.unordered() || h.atomics.unordered()
	}
	// Atomic operations do not race if the scope of each includes both threads.
	beyond := h.atomics == ofBlocks && (a == blockAtomic || !h.device)
	return h.writes.unordered() || h.reads.unordered() || beyond
}

// shortest returns the shortest description of a history with the same future.
//
// A write conflicts with everything, so nothing with a smaller standing matters beside it. A read and an atomic
// operation together conflict with everything: up to the smaller of their standings they are equivalent to a write.
// Once there is a write, atomic operations of another block race with it whatever their scope.
func (h history) shortest() history {
	h.writes = max(h.writes, min(h.reads, h.atomics))
	if h.reads <= h.writes {
		h.reads = none
	}
	if h.atomics <= h.writes {
		h.atomics = none
	}
	h.device = h.device && h.atomics != none && h.writes == none
	h.rewarped = h.rewarped && h.reads == toSelf && h.writes == toBlock
	return h
}

// state is a state number of the published table.
type state uint8

// The states that the code names.
const (
	singleRead       state = 1  // READ
	exclusive        state = 2  // WRITE
	blockAtomics     state = 12 // BATOM_B
	warpSyncedAtomic state = 13 // WSYNC_ATOM
	raced            state = 24 // RACE
	numStates              = 25
)

// meaning is the published name of a state, and the histories that it represents.
type meaning struct {
	name string
	history
}

// meanings returns the states in the published order. BWSYNC represents the same histories as BSYNC, except for a warp
// barrier since the block barrier; the two have the same future.
func meanings() [numStates]meaning {
	return [numStates]meaning{
		{"INIT", history{}},
		{"READ", history{reads: toSelf}},
		{"WRITE", history{writes: toSelf}},
		{"WREAD", history{reads: ofLanes}},
		{"BREAD", history{reads: ofWarps}},
		{"GREAD", history{reads: ofBlocks}},
		{"WSYNC", history{writes: toWarp, reads: toSelf}},
		{"BSYNC", history{writes: toBlock, reads: toSelf}},
		{"MR_WSYNC", history{writes: toWarp, reads: ofLanes}},
		{"BWSYNC", history{writes: toBlock, reads: toSelf, rewarped: true}},
		{"B_MR_BSYNC", history{writes: toBlock, reads: ofWarps}},
		{"W_MR_BWSYNC", history{writes: toBlock, reads: ofLanes}},
		{"BATOM_B", history{atomics: ofWarps}},
		{"WSYNC_ATOM", history{writes: toWarp, atomics: toSelf}},
		{"BATOM_W", history{atomics: ofLanes}},
		{"WSYNC_ATOM_M", history{writes: toWarp, atomics: ofLanes}},
		{"GATOM_G", history{atomics: ofBlocks, device: true}},
		{"BSYNC_ATOM", history{writes: toBlock, atomics: toSelf}},
		{"BATOM", history{atomics: toSelf}},
		{"GATOM_B", history{atomics: ofWarps, device: true}},
		{"BSYNC_ATOM_B", history{writes: toBlock, atomics: ofWarps}},
		{"GATOM", history{atomics: toSelf, device: true}},
		{"GATOM_W", history{atomics: ofLanes, device: true}},
		{"BSYNC_ATOM_W", history{writes: toBlock, atomics: ofLanes}},
		{"RACE", history{race: true}},
	}
}

// label is what a transition depends on besides the state, packed.
type label uint8

func labelOf(a action, y synced, r relation) label { return label(a)<<4 | label(y)<<2 | label(r) }

// transition is the next state, with flags for what must be kept to name both accesses of a later race.
type transition uint8

const (
	stateMask  transition = 1<<5 - 1
	noteOther  transition = 1 << 5 // the last access becomes one of several that are not ordered with each other
	noteBefore transition = 1 << 6 // the last access becomes what the write standing of the new state represents
	noteMerged transition = 1 << 7 // the new state represents accesses of different kinds by its last accessor
)

func (t transition) state() state { return state(t & stateMask) }

// machine maps state<<6 | label to a transition.
type machine [numStates << 6]transition

// derive makes the machine from the histories that its states represent.
func derive() *machine {
	m, all := new(machine), meanings()
	number := map[history]state{}
	for s, x := range all {
		number[x.history] = state(s)
	}
	for s, x := range all {
		for a := read; a <= deviceAtomic; a++ {
			for y := unsynced; y <= blockSynced; y++ {
				for r := self; r <= sameGrid; r++ {
					next := x.then(a, y, r)
					n, ok := number[next]
					if !ok {
						panic("BUG: no state stands for what follows " + x.name)
					}
					m.set(state(s), labelOf(a, y, r), transition(n)|notes(x.history, next, a, r))
				}
			}
		}
	}
	return m
}

func (m *machine) set(s state, l label, t transition) { m[uint16(s)<<6|uint16(l)] = t }
func (m *machine) at(s state, l label) transition     { return m[uint16(s)<<6|uint16(l)] }

// notes returns the flags of a transition.
func notes(old, next history, a action, r relation) (t transition) {
	if next.race || old == (history{}) {
		return 0
	}
	if top := max(next.reads, next.atomics); top.unordered() && top == ofLanes+standing(r-sameWarp) {
		t |= noteOther
	}
	if w := next.writes; (w == toWarp || w == toBlock) && (old.writes == none || w > old.writes || old.writes == toSelf) {
		t |= noteBefore
	}
	if next.writes == toSelf && a != write || next.atomics != none && next.writes == none && !next.device && a == deviceAtomic {
		t |= noteMerged
	}
	return t
}

// asPublished changes the machine to the published table where the table differs from what the states represent (see
// the package's documentation).
func (m *machine) asPublished() {
	to := func(s state, a action, y synced, upTo relation, next state) {
		for r := self; r <= upTo; r++ {
			l := labelOf(a, y, r)
			m.set(s, l, m.at(s, l)&^stateMask|transition(next))
		}
	}
	for a := blockAtomic; a <= deviceAtomic; a++ {
		to(singleRead, a, warpSynced, sameWarp, exclusive)
		to(singleRead, a, blockSynced, sameBlock, exclusive)
		to(blockAtomics, a, blockSynced, sameWarp, blockAtomics)
	}
	l := labelOf(deviceAtomic, unsynced, sameWarp)
	m.set(warpSyncedAtomic, l, transition(warpSyncedAtomic))
}
