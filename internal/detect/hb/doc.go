// Package hb is the default detector: scoped happens-before, sound and complete for the observed execution. It reports
// every pair of places with a race once, and nothing else. Package oracle decides the same by brute force; tests
// compare the two on random programs.
//
// # What races
//
// Two accesses by different threads race if they overlap in bytes, at least one of them writes, neither happens before
// the other, and they are not morally strong. The event stream defines the execution: a read observes, byte by byte,
// the last write before it in the stream. The rules are those of the PTX ISA, chapter "Memory Consistency Model", with
// these decisions:
//
//   - The atomic accesses are atom, red, and loads and stores that are relaxed or stronger. Two atomic accesses are
//     morally strong if the scope of each includes the other thread and they have the same size and address (section
//     "Morally Strong Operations" requires complete overlap). If a scope is too narrow, the pair is a scope race. If
//     size or address differ, it is a mixed-size race. A mixed-size race of two read-modify-writes is a warning,
//     because the manual keeps their atomicity in any case. Each element of a vector access is an access of its own.
//   - The scope of an operation always includes the threads of its own block of the same launch. Scope gpu and wider
//     also includes all threads of the device, and scope sys all threads of all devices. The host performs no atomic
//     accesses.
//   - Scope cluster counts as cta in a launch without clusters of several blocks. In a launch with such clusters,
//     whether two blocks are in the same cluster is checked only for accesses. A fence of scope cluster counts there as
//     one of scope gpu, and so does a release operation that a later write of its thread follows.
//   - A volatile access is not atomic in the definition of a race. In release and acquire patterns it is strong, at
//     scope sys (detect.ModelCUDA). With detect.ModelPTX it is a relaxed.sys access. With detect.ModelHRF every strong
//     read is an acquire operation.
//   - A failed compare-and-swap is an atomic read.
//
// # What orders
//
//   - Program order. CTA barriers: all arrivals since the last completion happen before what the waiters do next
//     (bar.arrive only releases). bar.warp.sync: its lanes with each other. The earlier operations of an agent happen
//     before a kernel that it launches, and the kernel before its later operations. HostSignal happens before HostWait.
//     The exit of a thread orders nothing.
//
//   - An assumed signal and wait (event.HostOp) order nothing. If they would order a race, and the earlier launch or
//     host operation ended before the later one began, the race is a warning (detect.HostThreads).
//
//   - Cluster barriers: all arrivals at a phase happen before what the threads that wait for it do next. A relaxed
//     arrival publishes only what its thread had done at its last fence, and the initialisations by mbarrier.init that
//     precede its last fence.mbarrier_init. That fence releases these initialisations and nothing else (inits.go).
//
//   - An asynchronous copy happens after everything that happens before its issue, and before everything that follows
//     its thread's wait for the copy's group (copies.go).
//
//   - mbarriers: a thread that waits for a phase acquires what all arrivals at that phase have released. The thread
//     that completes the phase passes these releases on. It does not acquire them, and it releases nothing of its own
//     by that.
//
//   - A bulk copy is ordered in the same way, by its issue and by the wait for its group, or by the phase of its
//     mbarrier (bulk.go).
//
//   - An operation of the tensor cores on tensor memory or shared memory is ordered by its issue, and by the phase of
//     an mbarrier that its thread names in a later commit, or by the wait of its warp (core.go). The operations of one
//     thread are ordered with each other.
//
//   - Such a copy or operation is not part of what its thread does afterwards. A thread that knows of its issue, but
//     not of its completion, races with it (landed.go). This includes a cp.async that an mbarrier tracks. For global
//     memory the rule is narrower: it covers what a copy that an mbarrier tracks has read there, against writes by
//     threads of the copy's launch.
//
//   - A write to global memory through the generic proxy races with an access through the async proxy that happens
//     after it, by the same launch, unless a fence.proxy.async for global memory lies between them.
//
//   - In shared memory, two conflicting accesses, the first through the generic proxy and the second through the async
//     proxy, race even if the first happens before the second, unless a thread of the cluster executes a
//     fence.proxy.async between them in happens-before order (proxy.go). The write of a cp.async is an access through
//     the generic proxy at the time when the copy is complete. In the other direction no fence is needed: the
//     completion of an access through the async proxy orders it before later accesses through the generic proxy.
//
//   - A release pattern synchronises with an acquire pattern on the same location if the read observes the write,
//     directly or through a chain of read-modify-writes. Each link of the chain must be morally strong, and so must the
//     two ends. The release patterns are: a release operation; a release operation followed by a strong write to the
//     same location; a fence followed by a strong write. Acquire patterns mirror these. The read of red forms no
//     pattern.
//
//   - Observation (the second clause of causality order): a strong write W happens before an access Y if a strong
//     operation that observed W, directly or through such a chain, happens before Y. Only W is ordered, not what its
//     thread did before W. This is why the last of many blocks may reset the counter that all of them incremented. The
//     rule is applied to the current value of the location, and to the last observed value before it that a thread
//     overwrote: when a barrier resets its counter by a weak write, counts of two rounds are still needed. A thread
//     that observed an older value, overwritten twice since, usually races with an overwriting write anyway; the pair
//     with the older write is then reported as well.
//
//   - fence.sc beyond its patterns: let F and G be two fence.sc of a scope beyond the block. If F precedes a strong
//     write W in the order of its cluster, and G follows a strong read that observed W in the order of its own cluster,
//     then F synchronises with G. (The order of a cluster is program order, CTA barriers, bar.warp.sync, and cluster
//     barriers with arrivals that release.) The reason: the manual orders every two morally strong fence.sc
//     consistently with causality order, and if G came before F, the read would precede the write that it observed.
//     This rule makes "everyone stores and calls __threadfence(); __syncthreads(); one thread counts the block done"
//     correct, and its mirror image. Within a block every two fence.sc are morally strong, so there the rule holds for
//     fences of all scopes: "all lanes store and call __threadfence_block(); __syncwarp(); one lane sets the warp's
//     flag". This last form is not applied in launches with clusters of several blocks.
//
// In other respects fence.sc synchronises as fence.acq_rel does, through the accesses around it. The manual says that
// the order of two otherwise unrelated fence.sc is "determined at runtime". Taking the order of this run would order
// whatever two threads did around their __threadfence() (a fence.sc). That would hide nearly all races between blocks,
// although the fences may execute in the other order in the next run. A race that only the observed fence order
// excludes therefore is reported. It exists in another execution, unless a guarded read depends on the order of the
// fences without acquiring anything; no program in use is known to do that.
//
// # What is reported
//
// One finding for each pair of places. Its category is the gravest of all its races (detect.Category). The kind may be
// refined by the synchronisation seen around the first race of that category.
//
//   - Count is the number of accesses (one lane of one instruction, or one host operation) at one of the two places
//     that race with at least one earlier access at the other.
//   - Addresses is the number of bytes that race. The same byte of shared memory counts once for each block.
//   - Same value: two weak stores of one launch race in this category if they write the same value into the bytes of a
//     word that both write, and the earlier store's class of accesses (those by the same instruction) wrote no other
//     value there. For shared memory this is tracked since the last barrier of the whole block, for global memory since
//     the allocation. Lanes of one instruction are compared directly.
//   - Lockstep: two different executions by threads of one warp race in this category in three cases: both lanes took
//     part in one of the two executions; all lanes of the warp reconverged between them; or the two places do not lie
//     on different arms of a branch (detect.Parted).
//
// # How
//
// The detector has three parts.
//
// Package order implements happens-before. It performs synchronisation and assigns a view to each access: the epochs
// that its thread knows at that moment. Clocks are trees (package clock). Epochs are numbered by block. Each
// synchronisation takes the next number of its block, so threads that synchronise alike have equal epochs, and an epoch
// identifies the synchronisation that began it. The lanes of a warp share one view while they synchronise alike.
//
// Package history records what was done to each byte, and finds the recorded accesses that a new access races with. It
// has two implementations. Plain is the definition: a list of accesses for each byte. Fast is for whole programs. Tests
// compare both with the oracle and with each other. Fast defers loads of memory that the launch only loads, and relaxed
// atomic operations on memory that it only accesses by those. Most deferred accesses never have to be judged.
//
// Package explain turns races into findings: their kind, the nearest synchronisation of both sides, and what would
// order them.
//
// Package hb itself is the loop over the events, which it passes to the three parts. It also defers weak accesses to
// shared memory until all threads of the block meet at a barrier. If each warp then did what warps did between two such
// barriers before, and nothing raced then, nothing races now (interval.go).
package hb
