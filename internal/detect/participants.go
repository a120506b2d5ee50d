package detect

import (
	"cmp"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Participants are the threads that were on one side of the races of a finding, in launches of the shape of the first one.
type Participants struct {
	Launch  event.Launch // the first one
	Blocks  []uint32     // how many races each block of the grid had a thread in; one number counts PerCell blocks
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

// Neighbours are the samples of one block, in the order of its threads, if there are several; otherwise those of one thread of each
// block, in the order of the blocks.
func (p *Participants) Neighbours() (list []Sample, ofBlocks bool) {
	if len(p.Samples) == 0 {
		return nil, false
	}
	of := func(same func(s Sample) bool) (out []Sample) {
		for _, s := range p.Samples {
			if same(s) {
				out = append(out, s)
			}
		}
		slices.SortFunc(out, func(s, t Sample) int { return cmp.Or(cmp.Compare(s.Block, t.Block), cmp.Compare(s.Thread, t.Thread)) })
		return out
	}
	first := p.Samples[0]
	if list = of(func(s Sample) bool { return s.Block == first.Block }); len(list) > 1 {
		return list, false
	}
	list = of(func(s Sample) bool { return s.Thread == first.Thread })
	return list, len(list) > 1
}

// Number is that of the thread in its block, or of the block.
func (s Sample) Number(ofBlock bool) uint32 {
	if ofBlock {
		return s.Block
	}
	return s.Thread
}

// Stride is the distance in bytes between the accesses of neighbours whose numbers differ by one; not ok where it is not the same
// for all.
func Stride(neighbours []Sample, ofBlocks bool) (bytes int64, ok bool) {
	if len(neighbours) < 2 {
		return 0, false
	}
	first := neighbours[0]
	number := func(s Sample) int64 { return int64(s.Number(ofBlocks)) - int64(first.Number(ofBlocks)) }
	distance := func(s Sample) int64 { return int64(s.Address - first.Address) }
	second := neighbours[1]
	if distance(second)%number(second) != 0 {
		return 0, false
	}
	bytes = distance(second) / number(second)
	for _, s := range neighbours {
		if distance(s) != bytes*number(s) {
			return 0, false
		}
	}
	return bytes, true
}
