package warp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/vcode"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// TestWarp runs the tests of ref on engine warp, with the same events in the same order, faults, outcomes and
// schedules.
func TestWarp(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"StoreEvents", TestStoreEvents},
		{"Reconverge", TestReconverge},
		{"WgmmaRegisters", TestWgmmaRegisters}, {"TensorMapReplace", TestTensorMapReplace}, {"TensorMapFaults", TestTensorMapFaults},
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
		{"PassedBarrier", TestPassedBarrier},
		{"BarrierDeadlock", TestBarrierDeadlock},
		{"CountDeadlock", TestCountDeadlock},
		{"BadBarriers", TestBadBarriers},
		{"TextureFetch", TestTextureFetch}, {"TextureOthers", TestTextureOthers}, {"Surface", TestSurface}, {"TextureFaults", TestTextureFaults}, {"TextureEvents", TestTextureEvents},
		{"WarpSync", TestWarpSync},
		{"WarpSyncDeadlock", TestWarpSyncDeadlock},
		{"UndefinedShuffle", TestUndefinedShuffle}, {"SkippedByLanes", TestSkippedByLanes}, {"UndefinedShuffleWaits", TestUndefinedShuffleWaits}, {"WarpDivergence", TestWarpDivergence}, {"WarpDifferentMasks", TestWarpDifferentMasks}, {"WarpNoDivergence", TestWarpNoDivergence}, {"MaskWithoutSomeLanes", TestMaskWithoutSomeLanes}, {"WarpPlaces", TestWarpPlaces}, {"ReduxQualifiers", TestReduxQualifiers},
		{"LoadMatrix", TestLoadMatrix}, {"LoadMatrixEvents", TestLoadMatrixEvents}, {"LoadMatrixFaults", TestLoadMatrixFaults}, {"LoadMatrixMissingLanes", TestLoadMatrixMissingLanes},
		{"Copies", TestCopies}, {"CopiesBySeed", TestCopiesBySeed}, {"CopyEvents", TestCopyEvents}, {"CopyFaults", TestCopyFaults},
		{"CountedBarrierOfDivergedWarp", TestCountedBarrierOfDivergedWarp}, {"BarrierCounts", TestBarrierCounts}, {"FallingOffTheEnd", TestFallingOffTheEnd}, {"ClockGivesWay", TestClockGivesWay},
		{"MaskWithoutLane", TestMaskWithoutLane},
		{"ShuffleAcrossDivergence", TestShuffleAcrossDivergence},
		{"VoteWithExited", TestVoteWithExited},
		{"Determinism", TestDeterminism},
		{"Cancel", TestCancel},
		{"Spin", TestSpin},
		{"NoSpin", TestNoSpin},
		{"NoSpinHeap", TestNoSpinHeap},
		{"SpinActive", TestSpinActive},
		{"SpinGivingWay", TestSpinGivingWay},
		{"SpinLockstep", TestSpinLockstep},
		{"SpinHost", TestSpinHost}, {"SpinWhen", TestSpinWhen},
		{"PlainPolling", TestPlainPolling},
		{"Cooperative", TestCooperative},
		{"AccessFaults", TestAccessFaults}, {"SharedEnds", TestSharedEnds},
		{"FaultingLanes", TestFaultingLanes},
		{"UseAfterFree", TestUseAfterFree},
		{"VectorsAndBytes", TestVectorsAndBytes},
		{"WideAtomics", TestWideAtomics}, {"WideVectors", TestWideVectors}, {"IndexedArrays", TestIndexedArrays}, {"LocalFromItsEnd", TestLocalFromItsEnd}, {"PackedConversions", TestPackedConversions}, {"WideConversions", TestWideConversions}, {"HalfOf128Bits", TestHalfOf128Bits}, {"ShortSharedAddresses", TestShortSharedAddresses}, {"AddressOfHalfParameter", TestAddressOfHalfParameter}, {"Stack", TestStack}, {"Video", TestVideo}, {"NarrowAddresses", TestNarrowAddresses},
		{"Overwritten", TestOverwritten},
		{"Elements", TestElements}, {"ElementsOfLanes", TestElementsOfLanes}, {"ElementsOfCalls", TestElementsOfCalls}, {"WholeWords", TestWholeWords}, {"Qualified", TestQualified},
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

// TestLockstep compares the engines on warps in lockstep: where lanes diverge and reconverge. A kernel that ref must
// run is marked.
func TestLockstep(t *testing.T) {
	store := func(n int) string { return fmt.Sprintf("st.global.u32 [%%mine], %d;\n", n) }
	odd := "and.b32 %r1, %tx, 1; setp.ne.u32 %p1, %r1, 0;\n"
	for _, c := range []struct {
		name, body string
		ref        bool
	}{
		{"if", odd + "@%p1 bra L;\n" + store(1) + "L:\n" + store(2), false},
		{"empty if", odd + "@%p1 bra L;\nL2: bra L;\nL:\n" + store(2), false},
		{"if else", odd + "@!%p1 bra L;\n" + store(1) + "bra M;\nL:\n" + store(2) + "M:\n" + store(3), false},
		{"loop", "mov.u32 %r2, %tx;\nH: setp.eq.u32 %p1, %r2, 0;\n@%p1 bra E;\n" + store(1) + "sub.u32 %r2, %r2, 1;\nbra H;\nE:\n" + store(2), false},
		{"continue", "mov.u32 %r2, 0;\n" + odd + "H: add.u32 %r2, %r2, 1; setp.gt.u32 %p2, %r2, 3;\n@%p2 bra E;\n@%p1 bra H;\n" + store(1) + "bra H;\nE:\n" + store(2), false},
		{"break", "mov.u32 %r2, 0;\nH: add.u32 %r2, %r2, 1; setp.gt.u32 %p2, %r2, %tx;\n@%p2 bra E;\n" + store(1) + "setp.lt.u32 %p3, %r2, 5;\n@%p3 bra H;\n" + store(3) + "E:\n" + store(2), false},
		{"exit", odd + "@%p1 bra L;\n" + store(1) + "exit;\nL:\n" + store(2), false},
		{"either", "setp.lt.u32 %p1, %tx, 4; setp.gt.u32 %p2, %tx, 20;\n@%p1 bra X;\n" + store(1) + "@%p2 bra X;\n" + store(2) + "bra Z;\nX:\n" + store(3) + "Z:\n" + store(4), false},
		{"index", "and.b32 %r1, %tx, 3;\nT: .branchtargets A, B, C, B;\nbrx.idx %r1, T;\nA:\n" + store(1) + "bra E;\nB:\n" + store(2) + "bra E;\nC:\nE:\n" + store(3), false},
		{"wraps", "add.u32 %r1, %tx, -4; mul.wide.u32 %rd1, %r1, 4; and.b64 %rd1, %rd1, 60; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], 1;", false},
		{"wraps unknown", "add.u32 %r1, %tx, %n; mul.wide.u32 %rd1, %r1, 4; and.b64 %rd1, %rd1, 60; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], 1;", false},
		{"own memory", ".local .align 4 .b8 box[64];\nmov.u64 %rd1, box; st.local.u32 [%rd1], %tx; cvta.local.u64 %rd2, %rd1; setp.ne.u32 %p1, %n, 7; selp.b64 %rd2, %rd2, %out, %p1;\n" +
			"ld.u32 %r1, [%rd2]; st.global.u32 [%mine], %r1;", false},
		{"barrier in a branch", odd + "@%p1 bra L;\nbar.sync 0;\nL:\n" + store(2), false},
		{"guarded exit", odd + "@%p1 exit;\n" + store(1), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(c.body))
			for _, block := range []int{32, 45, 1} {
				for seed := range uint64(4) {
					l := g.prepare(launch{grid: 2, block: block, out: g.buffer(4 * 45 * 2), n: ^uint32(3)})
					l.Schedule, l.Seed = engine.Lockstep, seed
					d := &diff{t: t, exact: true}
					if _, err := d.Run(t.Context(), l); err != nil && !errors.Is(err, engine.ErrDeadlock) {
						t.Error(err)
					}
					if d.strict == 0 {
						t.Error("the outcome on ref depends on the schedule")
					}
					if _, err := textOf(l, false); (err != nil) != c.ref {
						t.Errorf("ref runs it: %v, want %v", err, c.ref)
					}
				}
			}
		})
	}
}

// TestTexts launches one kernel with many grids. A few grids are compiled for, and then one code serves all.
func TestTexts(t *testing.T) {
	g := newRig(t, kernel("\tmov.u32 %r1, %nctaid.x;\n\tadd.u32 %r1, %r1, %gid;\n\tst.global.u32 [%mine], %r1;"))
	for grid := 1; grid <= 10; grid++ {
		out := g.buffer(32 * grid)
		if _, err := New().Run(t.Context(), g.prepare(launch{grid: grid, out: out})); err != nil {
			t.Fatal(err)
		}
		for i, w := range g.words(out, 32*grid) {
			if w != uint32(grid+i) {
				t.Errorf("grid %d, thread %d: got %d", grid, i, w)
			}
		}
	}
	if n := len(textsOf(g.prog).list); n != maxGrids+1 {
		t.Errorf("%d texts, want %d", n, maxGrids+1)
	}
}

// TestKeptTexts checks that the most recently used codes are kept, one for each kernel, block and mode, and that the
// least recently used one is dropped.
func TestKeptTexts(t *testing.T) {
	g := newRig(t, kernel("st.global.u32 [%mine], %gid;")+entry("other", ""))
	var used []textKey // in the expected order of the list
	of := map[textKey]*vcode.Text{}
	use := func(kernel string, block, grid int, raw bool, s engine.Schedule) {
		t.Helper()
		l := g.prepare(launch{kernel: kernel, block: block, grid: grid})
		l.Schedule = s
		key := textKey{l.Func, l.Block, l.Grid, raw, s == engine.Lockstep, false}
		got, err := textOf(l, raw)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.Index(used, key); i >= 0 {
			used = slices.Delete(used, i, i+1)
			if of[key] != got.Text {
				t.Errorf("%+v: compiled again", key)
			}
		} else if of[key] == got.Text {
			t.Errorf("%+v: not compiled again", key)
		}
		used = append(used, key)
		of[key] = got.Text
		used = used[max(0, len(used)-maxTexts):]
		var list []textKey
		for _, e := range textsOf(g.prog).list {
			if list = append(list, e.key); e.Text != of[e.key] {
				t.Errorf("%+v: not its text", e.key)
			}
		}
		if !slices.Equal(list, used) {
			t.Fatalf("after %s, block %d, grid %d, raw %v, %v: %d texts, want %d, or they stand in another order", kernel, block, grid, raw, s, len(list), len(used))
		}
	}
	for _, name := range []string{"k", "other", "k"} {
		use(name, 32, 1, false, engine.Fair)
		use(name, 32, 2, false, engine.Fair)
		use(name, 32, 3, false, engine.Fair)
		use(name, 64, 1, false, engine.Fair)
		use(name, 32, 1, true, engine.Fair)
		use(name, 32, 1, false, engine.Lockstep)
		use(name, 32, 2, false, engine.PCT) // like the fair schedule
	}
	use("k", 32, 1, false, engine.Fair)
	for block := 100; block <= 100+maxTexts; block++ {
		use("k", block, 5, false, engine.Fair)
		use("other", 64, 1, false, engine.Fair)
	}
	use("k", 64, 1, false, engine.Fair)
}

// TestKeptRegisters checks that a code keeps the register files of a launch for the next one, up to a number of bytes,
// and none of their memory.
func TestKeptRegisters(t *testing.T) {
	const files = "bar.sync 0; st.global.u32 [%mine], %tx;"
	own := func(bytes int) string {
		return fmt.Sprintf(".local .align 16 .b8 box[%d]; mov.u64 %%rd1, box; mul.wide.u32 %%rd2, %%ln, 4; add.u64 %%rd1, %%rd1, %%rd2; st.local.u32 [%%rd1], 1; ld.local.u32 %%r1, [%%rd1+64]; st.global.u32 [%%mine], %%r1;", bytes) + files
	}
	for _, c := range []struct {
		name, body string
		block      int
		want       int // number of files: a warp has one while the warps wait for each other
	}{
		{"one", files, 32, 1},
		{"eight", files, 256, 8},
		{"some of eight", own(7000), 256, 4},
		{"none", own(40000), 256, 0},
	} {
		g := newRig(t, kernel(c.body))
		l := g.prepare(launch{block: c.block, out: g.buffer(256)})
		text, err := textOf(l, false)
		if err != nil {
			t.Fatal(err)
		}
		var before []*registers
		for range 3 {
			if _, err := New().Run(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if len(text.files) != c.want {
				t.Errorf("%s: %d files are kept, want %d", c.name, len(text.files), c.want)
			}
			for i, v := range text.files {
				if before != nil && 32*c.want == c.block && !slices.Contains(before, v) {
					t.Errorf("%s: a file was not used again", c.name)
				}
				if v.files != (lanes.Regs{}) || slices.Index(text.files, v) != i {
					t.Errorf("%s: file %d is kept with its memory, or twice", c.name, i)
				}
			}
			before = slices.Clone(text.files)
		}
	}
}

// TestNoAllocation checks that longer loops do not allocate more.
func TestNoAllocation(t *testing.T) {
	for name, body := range benchKernels {
		g := newRig(t, benchSource(body))
		out := g.buffer(256)
		count := func(n uint32) float64 {
			l := g.prepare(launch{block: 256, out: out, n: n})
			l.Sink, l.Needs = &discard{}, event.NeedGlobal|event.NeedShared|event.NeedSync|event.NeedValues|event.NeedOld|event.NeedAgain
			return testing.AllocsPerRun(3, func() {
				if _, err := New().Run(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			})
		}
		if few, many := count(100), count(1000); many > few+20 {
			t.Errorf("%s: %v allocations in 100 rounds, %v in 1000", name, few, many)
		}
	}
}

// TestLists checks that lists of operations have the intended operations for rows, columns and single elements of a
// tile that a two-dimensional block accesses, and for loops.
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
	if _, err := New().Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for i, w := range g.words(out, 256) {
		x, y := uint32(i%16), uint32(i/16)
		if want := (100*y+2)*10000 + 5*(100*x+y) + 100 + x; w != want {
			t.Fatalf("thread %d, %d: got %d, want %d", x, y, w, want)
		}
	}
	text, err := textOf(l, false)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[lanes.Code]bool{}
	back := false
	for _, o := range text.Ops {
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

// TestListedStores compares the overwritten values of stores in lists, also if several lanes write one address.
func TestListedStores(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 8 .b8 box[1024];
	mov.u32 %r1, %tid.y;
	mov.u32 %r2, box;
	mad.lo.u32 %r3, %r1, 16, %tx;
	mov.u32 %r13, 0;
loop:
	mad.lo.u32 %r4, %tx, 4, %r2;
	st.shared.u32 [%r4], %r3; // both rows write one
	cvt.u64.u32 %rd1, %r3;
	add.u64 %rd1, %rd1, 77;
	mad.lo.u32 %r5, %tx, 8, %r2;
	st.shared.u64 [%r5+128], %rd1;
	mul.lo.u32 %r6, %r3, %r3;
	add.u32 %r6, %r6, %r13;
	and.b32 %r6, %r6, 15;
	mad.lo.u32 %r7, %r6, 4, %r2;
	st.shared.u32 [%r7+512], %r3; // wherever
	mad.lo.u32 %r8, %r6, 8, %r2;
	st.shared.u64 [%r8+640], %rd1;
	mul.wide.u32 %rd2, %r6, 8;
	add.u64 %rd2, %rd2, %out;
	st.global.u64 [%rd2], %rd1;
	mul.wide.u32 %rd3, %r6, 4;
	add.u64 %rd3, %rd3, %out;
	st.global.u32 [%rd3+128], %r3;
	mul.lo.u32 %r9, %r3, 12; // each its own
	add.u32 %r9, %r9, %r2;
	st.shared.u32 [%r9+512], %r6;
	add.u32 %r13, %r13, 1;
	setp.lt.u32 %p1, %r13, %n;
	@%p1 bra loop;`))
	l := g.prepare(launch{out: g.buffer(64), n: 5})
	l.Block = event.Dim3{X: 16, Y: 2, Z: 1}
	if _, err := NewDiff(t, false).Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	text, err := textOf(l, false)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[lanes.Code]bool{}
	for _, o := range text.Ops {
		seen[o.Code] = true
	}
	for name, c := range map[string]lanes.Code{"rows": lanes.OpStore32Rows, "a pattern": lanes.OpStore64Pattern, "addresses": lanes.OpStore32Each,
		"long ones": lanes.OpStore64Each, "short addresses": lanes.OpStore32EachLow, "long ones at short": lanes.OpStore64EachLow} {
		if !seen[c] {
			t.Errorf("no operation for %s", name)
		}
	}
}

// TestListedBytes compares the events of stores of bytes and halves to adjacent addresses, by all or some lanes, in
// whole words and not, to aligned variables and not. The events must have the words that each lane overwrites.
func TestListedBytes(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 1 .b8 odd[65];
	.shared .align 4 .b8 box[256];
	mov.u32 %r1, odd;
	mov.u32 %r2, box;
	add.u32 %r3, %r1, %tx;
	add.u32 %r4, %r2, %tx;
	mad.lo.u32 %r5, %tx, 2, %r2;
	cvt.u64.u32 %rd1, %tx;
	add.u64 %rd1, %rd1, %out;
	mad.wide.u32 %rd2, %tx, 2, %out;
	mov.u32 %r13, 0;
loop:
	mad.lo.u32 %r6, %r13, 77, %tx;
	cvt.u16.u32 %rs1, %r6;
	st.shared.u8 [%r3], %r6;
	st.shared.u8 [%r4], %r6;
	st.shared.u8 [%r4+66], %r6;
	st.shared.u16 [%r5+128], %rs1;
	st.global.u8 [%rd1], %r6;
	st.global.u8 [%rd1+65], %r6;
	st.global.u16 [%rd2+192], %rs1;
	st.global.u16 [%rd2+322], %rs1;
	setp.lt.u32 %p2, %tx, 50;
	@!%p2 bra behind;
	st.shared.u8 [%r4+64], %r6;
	st.global.u8 [%rd1+128], %r6;
	st.global.u16 [%rd2+452], %rs1;
behind:
	add.u32 %r13, %r13, 1;
	setp.lt.u32 %p1, %r13, %n;
	@%p1 bra loop;`))
	l := g.prepare(launch{out: g.buffer(150), n: 6})
	l.Block = event.Dim3{X: 63, Y: 1, Z: 1}
	if _, err := NewDiff(t, false).Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	text, err := textOf(l, false)
	if err != nil {
		t.Fatal(err)
	}
	n := map[lanes.Code]int{}
	for _, o := range text.Ops {
		n[o.Code]++
	}
	if n[lanes.OpStore8Line] != 7 || n[lanes.OpStore16Line] != 4 {
		t.Errorf("%d and %d operations", n[lanes.OpStore8Line], n[lanes.OpStore16Line])
	}
}

// TestMoves checks that the variables of a loop keep their registers, so that nothing is moved at its end, and that the
// counter is copied before the loop.
func TestMoves(t *testing.T) {
	for _, name := range []string{"arithmetic", "saxpy", "shared", "shuffles", "atomics"} {
		g := newRig(t, benchSource(benchKernels[name]))
		text, err := textOf(g.prepare(launch{block: 256, out: g.buffer(256), n: 10}), false)
		if err != nil {
			t.Fatal(err)
		}
		copies := 0
		for _, o := range text.Ops {
			if o.Code == lanes.OpCopy32 || o.Code == lanes.OpCopy64 || o.Code == lanes.OpScalarCopy || o.Code == lanes.OpPredCopy {
				copies++
			}
		}
		if moves := slices.ContainsFunc(text.Edges, func(e vcode.Edge) bool { return e.Moves >= 0 }); moves || copies > 1 {
			t.Errorf("%s: %d copies, edges move: %v", name, copies, moves)
		}
	}
}

// TestExits checks the places where lanes exited, together or not.
func TestExits(t *testing.T) {
	var e exits
	if e.note(0xff, 0xff, 7); e.several || e.of(3) != 7 {
		t.Errorf("all together: %+v", e)
	}
	e = exits{}
	e.note(0x0f, 0xff, 5)
	if e.note(0xf0, 0xf0, 9); e.of(3) != 5 || e.of(4) != 9 || e.of(7) != 9 {
		t.Errorf("half and half: %d, %d", e.of(3), e.of(4))
	}
	each := e.each
	e.several = false // of the next block
	e.note(1, 3, 2)
	if e.note(2, 2, 3); e.of(0) != 2 || e.of(1) != 3 || e.each != each {
		t.Errorf("again: %d, %d", e.of(0), e.of(1))
	}
}

// TestListedAccesses checks that lists make accesses, each by the operation for the addresses of its lanes. An access
// outside lists takes several times as long.
func TestListedAccesses(t *testing.T) {
	const line, rows = 1, 2 // blocks of 32 x 1, of 16 x 2
	for _, c := range []struct {
		shape        int
		address, ptx string // the address is in %rd1 and %r1
		want         lanes.Code
	}{
		{line, "1*x", "ld.global.u8 %r9, [%rd1];", lanes.OpLoad8ULine}, {line, "1*x", "ld.shared.s8 %r9, [%r1];", lanes.OpLoad8SLine},
		{line, "2*x", "ld.global.u16 %r9, [%rd1];", lanes.OpLoad16ULine}, {line, "2*x", "ld.global.s16 %r9, [%rd1];", lanes.OpLoad16SLine},
		{line, "4*x", "ld.global.u32 %r9, [%rd1];", lanes.OpLoad32Line}, {line, "4*x", "ld.shared.s32 %r9, [%r1];", lanes.OpLoad32Line},
		{line, "8*x", "ld.global.u64 %rd9, [%rd1];", lanes.OpLoad64Line}, {line, "8*x", "ld.s64 %rd9, [%rd1];", lanes.OpLoad64Line},
		{line, "0*x", "ld.global.u8 %r9, [%rd1];", lanes.OpLoad8USame}, {line, "0*x", "ld.shared.s8 %r9, [%r1];", lanes.OpLoad8SSame},
		{line, "0*x", "ld.global.u16 %r9, [%rd1];", lanes.OpLoad16USame}, {line, "0*x", "ld.global.s16 %r9, [%rd1];", lanes.OpLoad16SSame},
		{line, "0*x", "ld.global.u32 %r9, [%rd1];", lanes.OpLoad32Same}, {line, "0*x", "ld.global.s32 %r9, [%rd1];", lanes.OpLoad32Same},
		{line, "0*x", "ld.global.u64 %rd9, [%rd1];", lanes.OpLoad64Same}, {line, "0*x", "ld.shared.s64 %rd9, [%r1];", lanes.OpLoad64Same},
		{line, "1*x", "st.global.u8 [%rd1], %tx;", lanes.OpStore8Line}, {line, "2*x", "st.shared.u16 [%r1], %ln;", lanes.OpStore16Line},
		{line, "4*x", "st.global.u32 [%rd1], %tx;", lanes.OpStore32Line}, {line, "8*x", "st.u64 [%rd1], %rd1;", lanes.OpStore64Line},
		{line, "8*x", "ld.global.u32 %r9, [%rd1];", lanes.OpLoad32Pattern}, {line, "16*x", "ld.shared.u64 %rd9, [%r1];", lanes.OpLoad64Pattern},
		{line, "-4*x", "st.global.u32 [%rd1], %tx;", lanes.OpStore32Pattern}, {line, "16*x", "st.global.u64 [%rd1], %rd1;", lanes.OpStore64Pattern},
		{line, "0*x", "st.global.u32 [%rd1], %tx;", lanes.OpStore32Pattern}, {line, "0*x", "st.shared.u64 [%r1], %rd1;", lanes.OpStore64Pattern},
		{rows, "64*y+4*x", "ld.shared.u32 %r9, [%r1];", lanes.OpLoad32Line}, {rows, "128*y+4*x", "ld.shared.u32 %r9, [%r1];", lanes.OpLoad32Rows},
		{rows, "128*y+4*x", "st.global.u32 [%rd1], %tx;", lanes.OpStore32Rows}, {rows, "4*x", "st.global.u32 [%rd1], %tx;", lanes.OpStore32Rows},
		{rows, "64*y", "ld.global.u32 %r9, [%rd1];", lanes.OpLoad32Spread}, {rows, "64*y", "st.global.u32 [%rd1], %tx;", lanes.OpStore32Pattern},
		{rows, "8*x", "ld.global.u64 %rd9, [%rd1];", lanes.OpLoad64Pattern}, {rows, "64*x+4*y", "ld.shared.u32 %r9, [%r1];", lanes.OpLoad32Pattern},
		{rows, "-128*y+4*x", "ld.global.u32 %r9, [%rd1];", lanes.OpLoad32Pattern},
		{line, "x*x*4", "ld.global.u32 %r9, [%rd1];", lanes.OpLoad32Each}, {line, "x*x*8", "ld.global.u64 %rd9, [%rd1];", lanes.OpLoad64Each},
		{line, "x*x*4", "st.global.u32 [%rd1], %tx;", lanes.OpStore32Each}, {line, "x*x*8", "st.u64 [%rd1], %rd1;", lanes.OpStore64Each},
		{line, "x*x*4", "ld.shared.u32 %r9, [%r1];", lanes.OpLoad32EachLow}, {line, "x*x*8", "ld.shared.u64 %rd9, [%r1];", lanes.OpLoad64EachLow},
		{line, "x*x*4", "st.shared.u32 [%r1], %tx;", lanes.OpStore32EachLow}, {line, "x*x*8", "st.shared.u64 [%r1], %rd1;", lanes.OpStore64EachLow},
		{line, "x*x*4", "ld.global.u8 %r9, [%rd1];", lanes.OpLoad8UEach}, {line, "x*x*4", "ld.global.s8 %r9, [%rd1];", lanes.OpLoad8SEach},
		{line, "x*x*2", "ld.global.u16 %r9, [%rd1];", lanes.OpLoad16UEach}, {line, "x*x*2", "ld.global.s16 %r9, [%rd1];", lanes.OpLoad16SEach},
		{line, "x*x*4", "ld.shared.u8 %r9, [%r1];", lanes.OpLoad8UEachLow}, {line, "x*x*4", "ld.shared.s8 %r9, [%r1];", lanes.OpLoad8SEachLow},
		{line, "x*x*2", "ld.shared.u16 %r9, [%r1];", lanes.OpLoad16UEachLow}, {line, "x*x*2", "ld.shared.s16 %r9, [%r1];", lanes.OpLoad16SEachLow},
		{line, "x*x*4", "st.global.u8 [%rd1], %tx;", lanes.OpStore8Each}, {line, "x*x*2", "st.global.u16 [%rd1], %ln;", lanes.OpStore16Each},
		{line, "x*x*4", "st.shared.u8 [%r1], %tx;", lanes.OpStore8EachLow}, {line, "x*x*2", "st.shared.u16 [%r1], %ln;", lanes.OpStore16EachLow},
		// Accesses by separate instructions:
		{line, "2*x", "ld.global.u8 %r9, [%rd1];", lanes.OpEnd}, {line, "0*x", "st.global.u8 [%rd1], %tx;", lanes.OpEnd},
		{line, "4*x", "ld.relaxed.gpu.global.u32 %r9, [%rd1];", lanes.OpEnd}, {line, "8*x", "ld.global.v2.u32 {%r9, %r10}, [%rd1];", lanes.OpEnd},
		{line, "4*x", "@%p1 ld.global.u32 %r9, [%rd1];", lanes.OpEnd}, {line, "4*x", "@%p1 st.global.u8 [%rd1], %tx;", lanes.OpEnd},
		{line, "3*x", "ld.global.u32 %r9, [%rd1];", lanes.OpEnd}, {line, "4*x", "ld.global.s32 %rd9, [%rd1];", lanes.OpEnd},
		{line, "4*x", "ld.local.u32 %r9, [%r1];", lanes.OpEnd},
	} {
		var at string
		x, y, column := strings.Cut(c.address, "*x+")
		switch m, n, ok := strings.Cut(c.address, "*y"); {
		case column:
			at = "mov.u32 %r2, %tid.y; mul.lo.s32 %r0, %r2, " + strings.TrimSuffix(y, "*y") + "; mad.lo.s32 %r0, %tx, " + x + ", %r0;"
		case strings.HasPrefix(c.address, "x*x"):
			at = "mul.lo.u32 %r0, %tx, %tx; mul.lo.u32 %r0, %r0, " + c.address[4:] + ";"
		case ok && n != "":
			at = "mov.u32 %r2, %tid.y; mul.lo.s32 %r0, %r2, " + m + "; mad.lo.s32 %r0, %tx, " + strings.TrimSuffix(n[1:], "*x") + ", %r0;"
		case ok:
			at = "mov.u32 %r2, %tid.y; mul.lo.s32 %r0, %r2, " + m + ";"
		default:
			at = "mul.lo.s32 %r0, %tx, " + strings.TrimSuffix(c.address, "*x") + ";"
		}
		g := newRig(t, kernel(".shared .align 8 .b8 box[4096]; .local .align 8 .b8 own[256]; setp.lt.u32 %p1, %tx, %n; setp.lt.u32 %p2, %n, 5;\n"+at+
			"cvt.s64.s32 %rd1, %r0; add.u64 %rd1, %rd1, %out; mov.u32 %r1, box; add.u32 %r1, %r1, %r0;\n"+c.ptx))
		l := g.prepare(launch{out: g.buffer(1)})
		if c.shape == rows {
			l.Block = event.Dim3{X: 16, Y: 2, Z: 1}
		}
		text, err := textOf(l, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []lanes.Code
		for _, o := range text.Ops {
			if o.Code >= lanes.OpLoad8ULine && o.Code < lanes.OpSteadyS {
				got = append(got, o.Code)
			}
		}
		if c.want == lanes.OpEnd && len(got) > 0 || c.want != lanes.OpEnd && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%s at %s: operations %d, want %d", c.ptx, c.address, got, c.want)
		}
	}
}

// TestListsBegin checks that a list begins with a vcode.OpRun even if nothing is computed before its first access.
func TestListsBegin(t *testing.T) {
	g := newRig(t, kernel(".shared .align 4 .b8 box[512]; mov.u32 %r1, box; mad.lo.u32 %r1, %tx, 4, %r1;\nbar.sync 0;\nld.shared.u32 %r2, [%r1];\nbar.sync 0;\nst.shared.u32 [%r1+128], %r2;\nbar.sync 0;\nst.global.u32 [%mine], %r2;"))
	text, err := textOf(g.prepare(launch{out: g.buffer(32)}), false)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, in := range text.Code {
		if in.Op == vcode.OpLoad || in.Op == vcode.OpStore {
			if n++; text.Effects[in.A].Reach < 0 || text.Code[i-1].Op != vcode.OpRun {
				t.Errorf("instruction %d is in no list: before it is %+v", i, text.Code[i-1])
			}
		}
	}
	if n != 3 {
		t.Errorf("%d accesses", n)
	}
}

// TestFastShuffles checks that shuffles with the same clamp in all lanes are executed for 32 lanes at a time.
func TestFastShuffles(t *testing.T) {
	for code, want := range map[string]bool{"shfl.sync.down.b32 %r2, %ln, 1, 31, -1;": true, "shfl.sync.idx.b32 %r2, %ln, %tx, 31, -1;": true, "shfl.sync.up.b32 %r2, %ln, 1, %tx, -1;": false} {
		g := newRig(t, kernel(code+" st.global.u32 [%mine], %r2;"))
		text, err := textOf(g.prepare(launch{out: g.buffer(32)}), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(text.Effects, func(e vcode.Effect) bool { return e.Shuffles }); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
}
