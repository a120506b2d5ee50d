package simt

import "testing"

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
