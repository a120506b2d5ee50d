package devmem

// Snapshot is the state of a memory that a launch can change, for tests that execute a launch several times. The memory
// must not be used while a snapshot is taken or restored.
type Snapshot struct {
	blocks, freed []*Block
	halves        [2]half
	heap          uint64
	contents      []byte
}

// Snapshot copies the state.
func (m *Memory) Snapshot() *Snapshot {
	s := &Snapshot{halves: m.halves, heap: m.heapUsed}
	s.blocks, s.freed = cloneBlocks(m.blocks, m.freed)
	s.contents = m.Contents()
	return s
}

// Restore restores the state.
func (m *Memory) Restore(s *Snapshot) {
	for _, b := range m.blocks {
		clear(b.Data)
	}
	m.blocks, m.freed = cloneBlocks(s.blocks, s.freed)
	m.halves, m.heapUsed = s.halves, s.heap
	m.epoch.Add(1)
	rest := s.contents
	for _, b := range m.blocks {
		if !b.Freed {
			rest = rest[copy(b.Data, rest):]
		}
	}
}

// Contents returns the bytes of the live allocations, in order of address.
func (m *Memory) Contents() []byte {
	var all []byte
	for _, b := range m.blocks {
		if !b.Freed {
			all = append(all, b.Data...)
		}
	}
	return all
}

// cloneBlocks copies blocks. freed is a subset of them.
func cloneBlocks(blocks, freed []*Block) (all, some []*Block) {
	clone := map[*Block]*Block{}
	for _, b := range blocks {
		c := *b
		clone[b] = &c
		all = append(all, &c)
	}
	for _, b := range freed {
		some = append(some, clone[b])
	}
	return all, some
}
