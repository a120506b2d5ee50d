package hb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// handed makes a launch whose threads access a word by few instructions, and hand what they know over to some others. Accesses
// are in order, then are not; words that are half written are judged at once, and not noted.
func handed(pick func(int) int) *event.Batch {
	s := &stream{}
	s.begin(3, 64)
	warp := func() uint32 { return uint32(pick(6)) }
	mask := func() uint32 { return []uint32{1, 1, 1, 2, 2, 3}[pick(6)] }
	size := []uint8{2, 2, 4}[pick(3)]
	sync := func(k event.Kind, o event.Order, scope event.Scope, warp, lanes uint32, flag int) {
		e := event.Event{Kind: k, Space: event.Global, Warp: warp, Place: uint32(10 + flag), Mask: lanes, Addr: heap + 4096 + uint64(flag)*128, Size: 4,
			Order: o, Scope: scope, Flags: event.FlagRead}
		if k == event.Store {
			e.Flags, e.Place = event.FlagWrite, e.Place+10
		}
		s.add(e)
	}
	from := warp()
	for range 3 + pick(14) {
		to, lanes, flag := warp(), mask(), pick(3)
		if pick(16) != 0 { // the last one to access hands over
			sync(event.Store, event.Release, event.ScopeGPU, from, lanes&-lanes, flag)
			sync(event.Load, event.Acquire, event.ScopeGPU, to, lanes, flag)
		}
		e := event.Event{Space: event.Global, Warp: to, Mask: lanes, Addr: heap, Size: size}
		switch pick(7) {
		case 0:
			e.Kind, e.Place, e.Mask = event.Store, 1, lanes&-lanes
			e.Addr += uint64(pick(2) * 2)
		case 1, 2, 3:
			e.Kind, e.Place = event.Load, 2
		default:
			e.Kind, e.Place = event.Atomic, 3
		}
		s.memory(e)
		from = to
	}
	s.end()
	return &s.Batch
}

// TestHandedOn compares hb with the brute-force oracle on words that threads hand on: where the last access of a word
// comes after all others, they need not be looked at, and some need not be kept; where it does not, they must be.
func TestHandedOn(t *testing.T) {
	n := 6000
	if !testsize.Long() {
		n = 600
	}
	clean := 0
	for seed := range n {
		if compareWithOracle(t, handed(rand.New(rand.NewPCG(uint64(seed), 18)).IntN), detect.ModelCUDA, fmt.Sprint("handed on ", seed)) == "" {
			clean++
		}
	}
	if clean < n/50 || clean > n*9/10 {
		t.Errorf("%d of %d programs without a race", clean, n)
	}
}
