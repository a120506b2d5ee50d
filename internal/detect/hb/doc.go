// Package hb is the default detector: scoped happens-before, sound and complete for the observed execution. Every pair
// of places with a race is reported once, and nothing else is. Package oracle decides the same by brute force; the two
// are compared on random programs.
//
// # What races
//
// Two accesses by different threads race when they overlap in bytes, one of them writes, neither happens before the
// other, and they are not morally strong. The event stream is the execution: a read observes, byte by byte, the last
// write before it. Rules are those of the PTX ISA, chapter "Memory Consistency Model", with the decisions below.
//
//   - Atomic are atom, red, and loads and stores that are relaxed or stronger. Two atomic accesses are morally strong when
//     the scope of each includes the other thread and they are of the same size at the same address (section "Morally
//     Strong Operations" asks for complete overlap). Otherwise: a scope race, or a race of mixed size, which is a warning
//     between two read-modify-writes, for those the manual keeps atomic in any case. The elements of a vector access are
//     accesses of their own. Scope cluster counts as cta where blocks are no clusters. Of fences, and of release
//     operations that a later write of their thread follows, it counts as gpu where they are: that two blocks are of one cluster is asked
//     of accesses alone. Gpu includes all threads of the device, sys those of all devices; the host side performs no atomic accesses.
//   - A volatile access is not atomic for racing, yet strong, at scope sys, for building patterns (detect.ModelCUDA). With
//     detect.ModelPTX it is relaxed.sys. With detect.ModelHRF every strong read acquires by itself.
//   - The scope of an operation includes a thread of the same block of the same launch, or, from gpu on, any of the device, or, with sys, any.
//   - A failed compare-and-swap is an atomic read.
//
// # What orders
//
//   - Program order; all arrivals at a CTA barrier since its last completion before all its waiters (bar.arrive only
//     releases); the lanes of bar.warp.sync with each other; the agent's earlier operations before a kernel and the kernel
//     before its later ones; HostSignal before HostWait. A thread that exits orders nothing.
//
//   - A signal and a wait that are assumed (event.HostOp) order nothing. A race that they would order, if the launch or the host operation
//     that is earlier ended before the later one began, is a warning (detect.HostThreads).
//
//   - All arrivals at a barrier of a cluster before those who wait for the phase. A relaxed arrival publishes what its thread had
//     done at its last fence, and what it had stored by mbarrier.init at its last fence.mbarrier_init, which releases that alone (inits.go).
//
//   - What happens before its issue happens before an asynchronous copy, and the copy happens before what follows the wait of its thread
//     that covers its group (copies.go).
//
//   - The phase of an mbarrier: who waits for it acquires what all have released that arrived. Who completes it hands that on, and
//     neither learns nor releases anything by that.
//
//   - A bulk copy by its issue and by the wait for its group in the same way, or by the phase of its mbarrier (bulk.go).
//
//   - An operation of the tensor cores on tensor memory, or on shared memory, by its issue and by the phase of an mbarrier that its thread has
//     named in a later commit, or by the wait of its warp (core.go). Those of a thread are in order.
//
//   - Such a copy or operation is no part of what its thread does afterwards: who knows of the issue, and not that it is complete, races with it
//     (landed.go). So does cp.async that an mbarrier tracks. Of global memory this holds for what a bulk copy that an mbarrier tracks
//     has read there, against writes by threads of its launch, and for nothing else.
//
//   - Writes of global memory through the generic proxy, and accesses through the async proxy by the same launch that come after them, race in the same
//     way where no fence.proxy.async of global memory lies between.
//
//   - Accesses to shared memory through the generic proxy and through the async proxy, of which the first happens before the second, race
//     all the same where they conflict and no fence.proxy.async by a thread of the cluster lies between, in the order of what happens before
//     what (proxy.go). What cp.async writes is an access through the generic proxy at the time when it is complete. That an access through the async proxy is complete orders it before those through the generic one.
//
//   - A release pattern and an acquire pattern on one location, where the read observes the write directly or through a
//     chain of read-modify-writes, each hop of which is morally strong, and so are the two ends. Release patterns: a
//     release operation; a release operation followed by a strong write to the same location; a fence followed by a
//     strong write. Acquire patterns mirror them; the read of red forms none.
//
//   - Observation (the second clause of causality order): a strong write W happens before an access Y when a strong
//     operation that observed W, directly or through such a chain, happens before Y. It orders W alone and none of what
//     its thread did before. This lets the last of many blocks reset the counter that all have incremented. We apply it to the
//     value of the location that is current, and to the last one before it that was observed and that a thread overwrote: the
//     barrier that resets its counter weakly has counts of two turns. Who observed an older value, which has been overwritten
//     twice since, mostly races with an overwriting write anyway; the pair with the older write is then reported too.
//
//   - Fence.sc beyond its patterns: of two fence.sc of a scope beyond the block, F before a strong write W by the order of
//     its cluster (program order, CTA barriers, bar.warp.sync, and the barrier of the cluster by arrivals that release), and
//     G after a strong read that observed W by the order of its own, F synchronises with G. The manual orders every two morally strong fence.sc, in accordance with causality:
//     were G before F, the read would come before the write that it observed. This is what makes "everyone stores and
//     calls __threadfence(); __syncthreads(); one thread counts the block done" right, and its mirror image.
//     Within a block, every two fence.sc are morally strong, so the same holds for all scopes: "all lanes store and call
//     __threadfence_block(); __syncwarp(); one lane sets the flag of the warp". That is left out where blocks are parts of clusters.
//
// In other respects fence.sc synchronises as fence.acq_rel does, through the accesses around it. The manual's order of two
// fence.sc that nothing else relates is "determined at runtime". To take the order of the run for it would order whatever two
// threads did around their __threadfence() (a fence.sc), and hide nearly all races between blocks, though in the next
// run the fences may come the other way round. A race reported here that only that order excludes exists in another execution, unless
// a guarded read depends on the order of the fences without acquiring anything; no program in use is known to.
//
// # What is reported
//
// One finding for each pair of places. Its category is the gravest of all its races, see detect.Category; the kind may
// be refined by what was seen around the first race of that category.
//
//   - Count is the number of accesses (one lane of one instruction, or one host operation) at one of the two places that race
//     with at least one earlier access at the other.
//   - Addresses is the number of bytes concerned, shared memory counted by block.
//   - Same value: two weak stores of one launch, which write the same into the bytes that they share of a word, race
//     as that as long as the earlier one's class of accesses (same instruction) wrote nothing else there: since the block last met as a whole
//     for shared memory, since the allocation for global memory. Lanes of one instruction are compared directly.
//   - Lockstep: threads of one warp, different executions. Both lanes took part in one of the two, or all lanes of the warp
//     have reconverged between them, or the places do not lie on two arms of a branch (detect.Parted).
//
// # How
//
// The detector has three parts. Package order says who happens before whom: it performs synchronisation, and gives each access a view,
// which is what its thread knows then. Clocks are trees (package clock). Epochs are numbered by block: each synchronisation takes
// the block's next number, so that threads that synchronise alike have equal epochs, and an epoch names the synchronisation that
// began it. A warp has one view while its lanes synchronise alike.
//
// Package history keeps what was done to each byte, and finds with which of that an access races. It has two forms: Plain is the
// definition, a list of accesses for each byte; Fast is for whole programs. Tests hold both to the oracle and to each other. Fast puts
// off loads of memory that the launch accesses in no other way, and relaxed atomic operations in the same way: most of them are never
// performed.
//
// Package explain makes findings of races: their kind, the nearest synchronisation of both sides, and what would order them.
//
// This package is the loop over the events: it tells the parts of each. It puts weak accesses of shared memory off until the
// block's threads all meet at a barrier: where each warp did what warps did between two such barriers before, and nothing raced
// then, nothing does now (interval.go).
package hb
