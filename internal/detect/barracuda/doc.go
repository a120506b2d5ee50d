// Package barracuda is two detectors: BARRACUDA (chapter 5 of "Efficient Precise Dynamic Data Race Detection for CPU and
// GPU", called 001 here), and Barracuda+, which the authors of "Predictive Data Race Detection for GPUs" (000, section 5.1)
// made of it. Both are happens-before detectors with vector clocks, FastTrack's metadata for each location, and acquires and
// releases that are inferred from fences. They behave as published, blind spots included.
//
// # Rules
//
// Those of figures 5.4 and 5.5 as they stand, READEXCL to RELGLOBAL; litmus_test.go has a stream for each. In short:
// a lane's accesses are ordered by program order; all active lanes of a warp by the end of each memory instruction
// (ENDINSN), the lanes of a path by its beginning and those of both paths by their meeting (IF, ELSEENDIF); a block's
// by its barriers (BAR). Accesses of one instruction, and of the two paths of a branch (branch ordering races), are
// concurrent. Atomic operations do not race with each other and order nothing. S_x holds a clock for each block:
// releases of block scope set that of their own block, global ones all; acquires join the one or all. A release
// replaces what S_x held.
//
// What a fence makes of the access beside it (section 5.4.1):
//
//	store            after a fence: release
//	load             before a fence: acquire
//	atom.cas         before a fence: acquire
//	atom.exch        after a fence: release
//	other atom, red  after or before a fence: both
//
// The scope is the fence's, system scope counting as global. Such an access is no read or write: it is not judged,
// and leaves R_x and W_x alone. Races are named as section 5.5.3 does: divergence, intra-block, inter-block.
//
// # Decisions where the text is silent or unclear
//
//   - "Immediately preceded or followed in static code" is decided for each lane by what it does next: any access to
//     global or shared memory, barrier or bar.warp.sync is between; branches, calls and local memory do not. Of a
//     poll, one instruction that a lane repeats at one address with nothing between, the last execution counts: it is
//     where the fence comes. An access waits until its lane's warp (barracuda) or the lane (barracuda+) acts again,
//     and is judged by the clocks of when it happened. An acquire takes effect at the fence.
//   - The text makes atomics between two fences both acquire and release, those with no fence standalone, and treats
//     cas and exch "specially" with a fence on one side. We read: other atomics need one fence to be both (the text's
//     own example, threadFenceReduction, has but one); cas and exch are only what the special treatment says.
//   - The figure has no rule for arGlb: it is acqGlb and relGlb in one, as arBlk is.
//   - Operations with an order of their own, which PTX had not then, count as if the fence stood beside them: release
//     before, acquire after. Relaxed loads and stores are plain, and so are volatile ones.
//   - An instruction for some of the active lanes is, by section 5.5.1, a branch around it. That gives the same order
//     as the instruction with ENDINSN for all of the active lanes, which is what is done (TestRandomPrograms compares
//     them).
//   - Exited threads are not waited for at barriers, and are ordered by them with nobody. Barrier divergence is that
//     live lanes of a warp are on another path when it reaches a barrier. A barrier for a part of the block orders
//     those that arrived before those that wait.
//   - The stack K_w has one entry for a split, the path that runs.
//   - After a race the access is entered as if there had been none. A race with several readers is told for each.
//   - Same-value writes: lanes of one instruction that write the same into a location do not race. 000 says nothing
//     of them; barracuda+ keeps the filter, and option same-value=report turns it off in either.
//   - Pruning (section 5.5.1) knows registers and basic blocks; prune.go says what stands in for them. Option
//     prune=off turns it off.
//   - option compress=off gives each thread a clock of its own with a number for each other, after whatever changes what it
//     knows of others: what the compression of section 5.5.3 is compared with. Findings are the same.
//
// # Barracuda+
//
//   - ENDINSN, IF and ELSEENDIF are left out: threads are scheduled independently, and every lane has a clock of its
//     own.
//   - bar.warp.sync joins the lanes of its mask as a barrier does those of a block.
//   - Two atomic operations race when both are of block scope and of different blocks, as the paper's last sentence
//     on it says. (The sentence before would make them race when one of them is, too.)
//   - A lock that is taken by an atomic operation of block scope is of block scope, whatever the fence's. The paper's
//     table 1 asks for it: all scoped locks of its programs are reported.
//
// # Clocks
//
// The four formats of figure 5.9 are fields of view: CONVERGED, DIVERGED and NESTEDDIVERGED as in the figure; what
// SPARSEVC adds is not a map but a clock.Grid, a tree over blocks, warps and lanes whose equal parts are stored once,
// and which compresses as 000, section 5.2, asks: by block, warp and lane, again after each join. Where threads join,
// all continue from the highest clock among them (section 5.5.3, "Barriers"; 000, "Forced compression"). TestClocks
// holds the formats equal to full vector clocks.
//
// # Metadata
//
// A cell of 28 bytes (32 in the paper) holds R_x and W_x as in figure 5.10, the places of the two accesses besides. A location is
// a byte as in the paper, but bytes of a word that were only accessed together share one cell (cell.go), and of cells that lanes of
// a warp left in lane order only the first is kept (shadow.Lines). Concurrent reads of one warp at one time are one entry of the
// vector clock R_x. None of this loses anything.
//
// # Blind spots
//
// Fences that are not next to the access that they are for; atomic operations of insufficient scope (barracuda) or of
// scopes that differ (barracuda+); atomics of different sizes; volatile and plain flags beside fences; an earlier
// atomic operation hidden by a later one of another thread; ticket locks and others without a fence on the side that
// the table wants; whatever lies between two kernels, since each launch starts anew; host accesses. Lockstep hides
// what independently scheduled threads may do within a warp (barracuda).
package barracuda
