package simt

import (
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/lanes"
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

// TestLists makes sure that lists of operations do what they are meant for: rows, columns and single numbers of a tile by a
// block of two dimensions, and loops.
func TestLists(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 4 .b8 box[1024];
	mov.u32 %r1, %tid.y;
	mov.u32 %r2, box;
	mad.lo.u32 %r3, %r1, 64, %r2; // row y
	shl.b32 %r4, %tx, 2;
	add.u32 %r5, %r3, %r4;
	mad.lo.u32 %r6, %r1, 100, %tx;
	st.shared.u32 [%r5], %r6; // box[y][x] = 100*y + x
	bar.sync 0;
	ld.shared.u32 %r7, [%r3+8]; // box[y][2]
	add.u32 %r8, %r2, %r4;
	ld.shared.u32 %r9, [%r8+64]; // box[1][x]
	mul.lo.u32 %r10, %tx, 64;
	mad.lo.u32 %r11, %r1, 4, %r10;
	add.u32 %r11, %r11, %r2;
	ld.shared.u32 %r12, [%r11]; // box[x][y]
	mov.u32 %r13, 0;
	mov.u32 %r14, 0;
loop:
	add.u32 %r14, %r14, %r12;
	add.u32 %r13, %r13, 1;
	setp.lt.u32 %p1, %r13, %n;
	@%p1 bra loop;
	mad.lo.u32 %r14, %r7, 10000, %r14;
	add.u32 %r14, %r14, %r9;
	mad.lo.u32 %r15, %r1, 16, %tx;
	mul.wide.u32 %rd1, %r15, 4;
	add.u64 %rd1, %out, %rd1;
	st.global.u32 [%rd1], %r14;`))
	out := g.buffer(256)
	l := g.prepare(launch{out: out, n: 5})
	l.Block = event.Dim3{X: 16, Y: 16, Z: 1}
	if _, err := NewWarp().Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for i, w := range g.words(out, 256) {
		x, y := uint32(i%16), uint32(i/16)
		if want := (100*y+2)*10000 + 5*(100*x+y) + 100 + x; w != want {
			t.Fatalf("thread %d, %d: got %d, want %d", x, y, w, want)
		}
	}
	text, err := l.Program.text(l, false)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[lanes.Code]bool{}
	back := false
	for _, o := range text.ops {
		seen[o.Code] = true
		back = back || o.Code == lanes.OpGoto && o.B < 0
	}
	for name, c := range map[string]lanes.Code{"a row": lanes.OpLoad32Rows, "a number for each row": lanes.OpLoad32Spread, "a column": lanes.OpLoad32Pattern,
		"lanes side by side": lanes.OpStore32Line} {
		if !seen[c] {
			t.Errorf("no operation for %s", name)
		}
	}
	if !back {
		t.Error("no list goes round a loop")
	}
}
