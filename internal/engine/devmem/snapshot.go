package devmem

// Snapshot is what a launch can change of a memory, for tests that execute a launch several times. Nothing may use the memory while it
// is taken or restored.
type Snapshot struct {
	blocks, freed []*Block
	halves        [2]half
	heap          uint64
	contents      []byte
}

// Snapshot copies the memory.
func (m *Memory) Snapshot() *Snapshot {
	s := &Snapshot{halves: m.halves, heap: m.heapUsed}
	s.blocks, s.freed = cloneBlocks(m.blocks, m.freed)
	s.contents = m.Contents()
	return s
}

// Restore makes the memory what it was.
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

// Contents are the bytes of the live allocations, by address.
func (m *Memory) Contents() []byte {
	var all []byte
	for _, b := range m.blocks {
		if !b.Freed {
			all = append(all, b.Data...)
		}
	}
	return all
}

// cloneBlocks copies blocks; freed are some of them.
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
