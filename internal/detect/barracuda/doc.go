// Package barracuda is two detectors: BARRACUDA (chapter 5 of "Efficient Precise Dynamic Data Race Detection for CPU
// and GPU", called 001 here), and Barracuda+, which the authors of "Predictive Data Race Detection for GPUs" (000,
// section 5.1) made of it. Both are happens-before detectors with vector clocks, FastTrack's metadata for each
// location, and acquires and releases that are inferred from fences. They behave as published, including their blind
// spots.
//
// # Rules
//
// The rules are those of figures 5.4 and 5.5, READEXCL to RELGLOBAL; litmus_test.go has a stream for each. In short:
// program order orders the accesses of a lane. The end of each memory instruction orders all active lanes of a warp
// (ENDINSN). The beginning of a path orders its lanes, and the end of a split orders the lanes of both paths (IF,
// ELSEENDIF). A barrier orders the threads of its block (BAR). Accesses of one instruction, and of the two paths of a
// branch (branch ordering races), are concurrent. Atomic operations do not race with each other and order nothing. S_x
// holds a clock for each block. A release of block scope sets the clock of its own block, and a global release sets all
// of them. A release replaces what S_x held. An acquire of block scope joins the clock of its own block, and a global
// acquire joins all of them.
//
// A fence gives the access next to it a role (section 5.4.1):
//
//	store            after a fence: release
//	load             before a fence: acquire
//	atom.cas         before a fence: acquire
//	atom.exch        after a fence: release
//	other atom, red  after or before a fence: both
//
// The scope is that of the fence; system scope counts as global. An access with such a role is not a read or write: it
// is not judged, and does not change R_x and W_x. Races are named as in section 5.5.3: divergence, intra-block,
// inter-block.
//
// # Decisions where the text is silent or unclear
//
//   - "Immediately preceded or followed in static code" is decided for each lane by its next operation. Any access to
//     global or shared memory, barrier or bar.warp.sync separates an access from a fence; branches, calls and accesses
//     to local memory do not. In a poll, where a lane repeats one instruction at one address with nothing between, only
//     the last execution can have a fence after it. The judgement of an access is deferred until its lane's warp
//     (barracuda) or the lane (barracuda+) acts again; it uses the clocks at the time of the access. An acquire takes
//     effect at the fence.
//   - The text makes atomics between two fences both acquire and release, those with no fence standalone, and treats
//     cas and exch "specially" with a fence on one side. Our interpretation: for other atomics one fence is enough to
//     be both (the text's own example, threadFenceReduction, has only one); cas and exch are only what the special
//     treatment says.
//   - The figure has no rule for arGlb. It combines acqGlb and relGlb, as arBlk combines the block forms.
//   - PTX operations with a memory order of their own are newer than the paper. They count as if the fence were next to
//     them: a release as a fence before, an acquire as a fence after. Relaxed and volatile loads and stores are plain.
//   - An instruction for some of the active lanes is, by section 5.5.1, a branch around it. The order is the same as
//     that of the instruction followed by ENDINSN for all active lanes, which is what this package does
//     (TestRandomPrograms compares them).
//   - Barriers do not wait for exited threads, and order them with nobody. Barrier divergence means that live lanes of
//     a warp are on another path when the warp reaches a barrier. A barrier for part of a block orders all arrivals
//     before the threads that wait.
//   - The stack K_w has one entry for a split, the path that runs.
//   - After a race the access is recorded as if there had been none. A race with several readers is reported for each.
//   - Same-value writes: lanes of one instruction that write the same value to a location do not race. 000 does not
//     mention this filter. Barracuda+ keeps it, and option same-value=report turns it off in both detectors.
//   - Pruning (section 5.5.1) uses registers and basic blocks; prune.go describes the substitute. Option prune=off
//     turns it off.
//   - Option compress=off gives each thread a clock of its own with a number for each other thread, for comparison with
//     the compression of section 5.5.3. The findings are the same.
//
// # Barracuda+
//
//   - ENDINSN, IF and ELSEENDIF are left out: threads are scheduled independently, and every lane has a clock of its
//     own.
//   - bar.warp.sync joins the lanes of its mask as a barrier joins the threads of a block.
//   - Two atomic operations race when both are of block scope and of different blocks, as the paper's last sentence
//     about this says. (According to the sentence before, one of block scope would be enough.)
//   - A lock that is acquired by an atomic operation of block scope has block scope, whatever the scope of the fence.
//     The paper's table 1 requires this: all scoped locks of its programs are reported.
//
// # Clocks
//
// The four formats of figure 5.9 are fields of view: CONVERGED, DIVERGED and NESTEDDIVERGED as in the figure; The part
// that SPARSEVC adds is not a map but a clock.Grid: a tree of blocks, warps and lanes that stores equal parts once. It
// compresses as 000, section 5.2, requires: by block, warp and lane, again after each join. Threads that join all
// continue from the highest clock among them (section 5.5.3, "Barriers"; 000, "Forced compression"). TestClocks
// compares the formats with full vector clocks.
//
// # Metadata
//
// A cell of 28 bytes (32 in the paper) holds R_x and W_x as in figure 5.10, and the places of the two accesses. A
// location is a byte as in the paper, but bytes of a word that were only accessed together share one cell (cell.go),
// and of cells that lanes of a warp left in lane order only the first is stored (shadow.Lines). Concurrent reads by one
// warp at one time are one entry of the vector clock R_x. None of this loses information.
//
// # Blind spots
//
// Missed or misjudged are: fences that are not next to the access that they belong to; atomic operations of
// insufficient scope (barracuda) or of scopes that differ (barracuda+); atomics of different sizes; volatile and plain
// flags beside fences; an earlier atomic operation hidden by a later one of another thread; ticket locks and other
// locks without a fence on the side that the table requires; races between kernels, since each launch starts afresh;
// host accesses. Lockstep hides races that independently scheduled threads may have within a warp (barracuda).
package barracuda
