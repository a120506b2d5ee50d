package simt

import (
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestWarp runs the tests of ref on engine warp: the same events in the same order, faults, outcomes and schedules.
func TestWarp(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"StoreEvents", TestStoreEvents},
		{"Reconverge", TestReconverge},
		{"SpinLock", TestSpinLock},
		{"ProducerConsumer", TestProducerConsumer},
		{"GridBarrier", TestGridBarrier},
		{"TicketLock", TestTicketLock},
		{"ChainOfBlocks", TestChainOfBlocks},
		{"NamedBarriers", TestNamedBarriers},
		{"PartialWarpBarrier", TestPartialWarpBarrier},
		{"BarrierReduce", TestBarrierReduce},
		{"BarrierEvents", TestBarrierEvents},
		{"EarlyReturn", TestEarlyReturn},
		{"DivergentBarrier", TestDivergentBarrier},
		{"BarrierDeadlock", TestBarrierDeadlock},
		{"CountDeadlock", TestCountDeadlock},
		{"BadBarriers", TestBadBarriers},
		{"WarpSync", TestWarpSync},
		{"WarpSyncDeadlock", TestWarpSyncDeadlock},
		{"MaskWithoutLane", TestMaskWithoutLane},
		{"ShuffleAcrossDivergence", TestShuffleAcrossDivergence},
		{"VoteWithExited", TestVoteWithExited},
		{"Determinism", TestDeterminism},
		{"Cancel", TestCancel},
		{"PlainPolling", TestPlainPolling},
		{"Cooperative", TestCooperative},
		{"AccessFaults", TestAccessFaults},
		{"FaultingLanes", TestFaultingLanes},
		{"UseAfterFree", TestUseAfterFree},
		{"VectorsAndBytes", TestVectorsAndBytes},
		{"Overwritten", TestOverwritten},
		{"Atomics", TestAtomics},
		{"FailedCompareAndSwap", TestFailedCompareAndSwap},
		{"ScatteredAndGeneric", TestScatteredAndGeneric},
		{"Needs", TestNeeds},
		{"Recursion", TestRecursion},
		{"IndirectCall", TestIndirectCall},
		{"StackOverflow", TestStackOverflow},
		{"Printf", TestPrintf},
		{"AssertAndTrap", TestAssertAndTrap},
		{"DeviceHeap", TestDeviceHeap},
		{"BranchIndexed", TestBranchIndexed},
		{"Symbols", TestSymbols},
		{"RandomControlFlow", TestRandomControlFlow},
	} {
		t.Run(c.name, c.test)
	}
}

// TestTexts launches one kernel with many grids: a few are compiled for, then one text does for all.
func TestTexts(t *testing.T) {
	g := newRig(t, kernel("\tmov.u32 %r1, %nctaid.x;\n\tadd.u32 %r1, %r1, %gid;\n\tst.global.u32 [%mine], %r1;"))
	for grid := 1; grid <= 10; grid++ {
		out := g.buffer(32 * grid)
		if _, err := NewWarp().Run(t.Context(), g.prepare(launch{grid: grid, out: out})); err != nil {
			t.Fatal(err)
		}
		for i, w := range g.words(out, 32*grid) {
			if w != uint32(grid+i) {
				t.Errorf("grid %d, thread %d: got %d", grid, i, w)
			}
		}
	}
	if n := len(g.prog.texts.list); n != maxGrids+1 {
		t.Errorf("%d texts, want %d", n, maxGrids+1)
	}
}

// TestNoAllocation makes sure that longer loops do not allocate more.
func TestNoAllocation(t *testing.T) {
	for name, body := range benchKernels {
		g := newRig(t, benchSource(body))
		out := g.buffer(256)
		count := func(n uint32) float64 {
			l := g.prepare(launch{block: 256, out: out, n: n})
			l.Sink, l.Needs = &discard{}, event.NeedGlobal|event.NeedShared|event.NeedSync|event.NeedValues|event.NeedOld
			return testing.AllocsPerRun(3, func() {
				if _, err := NewWarp().Run(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			})
		}
		if few, many := count(100), count(1000); many > few+20 {
			t.Errorf("%s: %v allocations in 100 rounds, %v in 1000", name, few, many)
		}
	}
}
