package detect

import (
	"cmp"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Participants are the threads on one side of the races of a finding. Only launches with the shape of the first one
// count.
type Participants struct {
	Launch  event.Launch // the first launch
	Blocks  []uint32     // for each PerCell consecutive blocks of the grid, the number of races with a thread in them
	PerCell uint32
	Threads []uint32 // for each thread number, the number of races, summed over all blocks
	Samples []Sample // the first few threads
}

// Sample is one access by a participant.
type Sample struct {
	Block, Thread uint32 // numbers within the grid and the block
	Address       uint64
}

const (
	blockCells = 256 // the most elements of Blocks
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

// Neighbours returns the samples of one block in the order of its threads, if there are several. Otherwise it gives the
// samples of one thread number in the order of the blocks, and ofBlocks is true.
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

// Number returns the number of the thread within its block, or of the block.
func (s Sample) Number(ofBlock bool) uint32 {
	if ofBlock {
		return s.Block
	}
	return s.Thread
}

// Stride returns the distance in bytes between the accesses of neighbours whose numbers differ by one. ok is false if
// the distance is not constant.
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
