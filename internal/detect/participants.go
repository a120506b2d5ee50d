package detect

import "fencepost.dev/fencepost/internal/event"

// Participants are the threads that were on one side of the races of a finding, in launches of the shape of the first one.
type Participants struct {
	Launch  event.Launch // the first one
	Blocks  []uint32     // how many races each block of the grid had a thread in; a number stands for PerCell blocks
	PerCell uint32
	Threads []uint32 // the same of each thread of a block, over all blocks
	Samples []Sample // the first few threads
}

// Sample is one access by a participant.
type Sample struct {
	Block, Thread uint32 // their numbers
	Address       uint64
}

const (
	blockCells = 256 // that Blocks has at most
	maxSamples = 64
)

// Add adds a thread.
func (p *Participants) Add(l *event.Launch, warp uint32, lane int, address uint64) {
	if p.Blocks == nil {
		p.Launch = *l
		blocks := l.Grid.Count()
		p.PerCell = uint32(max(1, (blocks+blockCells-1)/blockCells))
		p.Blocks = make([]uint32, (blocks+uint64(p.PerCell)-1)/uint64(p.PerCell))
		p.Threads = make([]uint32, l.Block.Count())
	}
	if l.Grid != p.Launch.Grid || l.Block != p.Launch.Block {
		return
	}
	per := max(l.WarpsPerBlock(), 1)
	s := Sample{warp / per, warp%per*32 + uint32(lane), address}
	if i := s.Block / p.PerCell; i < uint32(len(p.Blocks)) && p.Blocks[i] != ^uint32(0) {
		p.Blocks[i]++
	}
	if i := s.Thread; i < uint32(len(p.Threads)) && p.Threads[i] != ^uint32(0) {
		p.Threads[i]++
	}
	if len(p.Samples) == maxSamples {
		return
	}
	for _, t := range p.Samples {
		if t.Block == s.Block && t.Thread == s.Thread {
			return
		}
	}
	p.Samples = append(p.Samples, s)
}

// Stride is the distance in bytes between the accesses of neighbours: of threads whose numbers differ by one, where the samples have
// several threads of one block, otherwise of blocks. It is false where they are not all equal.
func (p *Participants) Stride() (bytes int64, ofBlocks, ok bool) {
	if len(p.Samples) < 2 {
		return 0, false, false
	}
	first := p.Samples[0]
	same := p.Samples[:0:0]
	for _, s := range p.Samples {
		if s.Block == first.Block {
			same = append(same, s)
		}
	}
	number := func(s Sample) int64 { return int64(s.Thread) }
	if len(same) < 2 {
		same, ofBlocks = same[:0], true
		for _, s := range p.Samples {
			if s.Thread == first.Thread {
				same = append(same, s)
			}
		}
		number = func(s Sample) int64 { return int64(s.Block) }
	}
	if len(same) < 2 {
		return 0, false, false
	}
	over := number(same[1]) - number(first)
	by := int64(same[1].Address - first.Address)
	if over == 0 || by%over != 0 {
		return 0, false, false
	}
	bytes = by / over
	for _, s := range same {
		if int64(s.Address-first.Address) != bytes*(number(s)-number(first)) {
			return 0, false, false
		}
	}
	return bytes, ofBlocks, true
}
