package detect

import (
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestParticipants adds threads of two warps of a block, and of many blocks, and checks the counts.
func TestParticipants(t *testing.T) {
	l := event.Launch{ID: 1, Grid: event.Dim3{X: 1000, Y: 1, Z: 1}, Block: event.Dim3{X: 40, Y: 1, Z: 1}}
	var p Participants
	for i := range 40 {
		p.Add(&l, uint32(2*7+i/32), i%32, 1000+uint64(i)*8)
	}
	p.Add(&l, 2*7, 3, 5)
	p.Add(&l, 2*999, 0, 0)
	other := l
	other.Grid.X = 3
	p.Add(&other, 0, 0, 0) // of another shape
	if p.PerCell != 4 || len(p.Blocks) != 250 || p.Blocks[1] != 41 || p.Blocks[249] != 1 || p.Blocks[0] != 0 {
		t.Errorf("%d blocks to a cell, %v", p.PerCell, p.Blocks)
	}
	if len(p.Threads) != 40 || p.Threads[0] != 2 || p.Threads[3] != 2 || p.Threads[39] != 1 {
		t.Errorf("threads %v", p.Threads)
	}
	list, ofBlocks := p.Neighbours()
	if stride, ok := Stride(list, ofBlocks); len(list) != 40 || ofBlocks || stride != 8 || !ok {
		t.Errorf("%d neighbours, of blocks %v, stride %d %v", len(list), ofBlocks, stride, ok)
	}
	list[39].Address++
	if _, ok := Stride(list, ofBlocks); ok {
		t.Error("the last one stands out, and the stride is constant")
	}
}

// TestNeighbouringBlocks checks the stride over blocks with one thread each.
func TestNeighbouringBlocks(t *testing.T) {
	l := event.Launch{Grid: event.Dim3{X: 8, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}}
	var p Participants
	for _, b := range []uint32{6, 2, 4} {
		p.Add(&l, b, 0, 1000-uint64(b)*16)
	}
	list, ofBlocks := p.Neighbours()
	if stride, ok := Stride(list, ofBlocks); len(list) != 3 || !ofBlocks || stride != -16 || !ok {
		t.Errorf("%v, of blocks %v, stride %d %v", list, ofBlocks, stride, ok)
	}
	if _, ok := Stride(list[:1], true); ok {
		t.Error("one has a stride")
	}
}
