// Package gwcp is the predictive detector PreDataR ("Predictive Data Race Detection for GPUs", called 000 here). It
// orders events by GWCP, a relation weaker than happens-before. It therefore finds the races of the observed order, and
// also races that show only in other orders of the critical sections of the observed execution. The latter are marked
// predicted.
//
// # Rules
//
// The relation is that of definition 1, as algorithms 1 and 2 track it. Each thread has the clocks P (GWCP) and H
// (happens-before) and the local time N. C is P with the thread's own N.
//
//   - Rule (i), algorithm 2: an access in a critical section that conflicts with an access in an earlier section of a
//     lock with overlapping scope comes after the release of that section, and so after all that happens before the
//     release.
//   - Rule (ii), algorithm 1, lines 25-29: a release comes after the release of an earlier section whose acquire is
//     ordered before it by GWCP. The acquire is represented by its epoch.
//   - Rule (iii), procedure SYNC: a barrier (CTA barrier, bar.warp.sync) joins C, not P alone, and H.
//   - Rule (iv): the order of (i) and (ii) is composed with happens-before on both sides. The order of a barrier is
//     composed with program order before it and happens-before after it, as in line 4 of algorithm 1. Definition 1 to
//     the letter would compose it with happens-before on both sides, and find fewer races.
//   - Locks are inferred by package lock, with its zero Rules: a compare-and-swap and then a fence; a fence and then an
//     exchange or a store. The scope of a lock operation is the narrower of the two scopes. Two sections overlap in
//     scope if one of them has device scope or both are of one block (section 4, "Scoped locks"). The scopes compared
//     are that of the release of the earlier section and that of the acquire of the later one. Accesses to the lock
//     variable itself are not accesses of the section.
//   - Two atomic accesses do not race if their scopes overlap in the same sense (section 4, "Scoped atomics"; 5.1).
//   - The shared memory of a block is accessed only by that block (section 4).
//   - W is the last write of each byte, an epoch. R is the last read of each thread since then (section 4.1,
//     FastTrack).
//   - Threads that have exited leave no clocks. All threads share one copy of the queues, and each searches it for what
//     concerns it (section 5, "Thread exit", "Inactive threads"). A reader skips its own sections.
//   - One kernel is judged at a time. Races between kernels, and races with the host, are not reported (section 2.1).
//   - Lockstep orders nothing (section 4). Lanes of one instruction that write the same bytes race (5.1).
//
// # Where the paper is silent
//
//   - Synchronisation without a lock (flags, counters, release and acquire operations) is a hard edge: like a barrier
//     it is joined into C, but in one direction. The paper treats it as acquire and release of a lock with no accesses
//     inside, which would predict races in correct message passing. Release and acquire patterns are those of the PTX
//     manual, with three extensions: chains of read-modify-writes continue whatever their scopes; a plain store does
//     not end them; and a barrier passes what its threads have fenced and observed to all of them.
//   - A variable becomes a lock with its first inferred release. It permanently ceases to be one if two threads hold it
//     at the same time, or if a thread that does not hold it writes it otherwise: for example, swaps on the head of a
//     list look like acquires but are not. While it is not a lock, it is synchronisation as above.
//   - The value of a free lock is 0. A release that leaves another value publishes a state (mailboxes, turns). A thread
//     that waits for that state comes after the release in every order, so the variable is not a lock. If values are
//     not recorded, all releases are treated as releases of locks.
//   - If the owner of a section meets other threads at a barrier (a leader that takes the lock for its block or warp),
//     the section belongs to all of them. At the barrier it comes after the earlier sections of the lock by hard edges,
//     and the later sections come after it in the same way. The paper has only critical sections of single threads, and
//     would predict races that the leader's lock excludes.
//   - A lock with a section that accesses more than 1024 granules is treated as no lock. Most such sections take
//     something that is never given back.
//   - A strong write comes before what follows a strong read that observed it, as in the manual's causality order.
//   - The completion of an asynchronous operation is a hard edge from what precedes its issue to a thread that acquires
//     the phase of its mbarrier or waits for its group (async.go). Accesses by asynchronous operations other than
//     cp.async are not judged.
//   - Each element of a strong vector access is an access of its own: a thread that reads one element observes it. An
//     exchange reads even if its result is not used.
//   - A queue keeps 256 sections for each lock. Older neighbouring sections are merged, which orders more. Queues are
//     searched from the newest section on. Algorithm 1 stops at the first section that is not ordered; definition 1
//     requires all.
//   - The scopes of the acquire and the release of one section may differ.
//   - Definition 1 does not consider values. Two weak stores that write the same value race, with the severity that
//     detector hb gives them (a warning). The value that the earlier one wrote is the one found in memory when the
//     later one writes.
//
// # Blind spots
//
// The blind spots are those of GWCP: it composes with happens-before, and early conflicts of sections hide what follows
// (section 6.2). One write is kept for each byte: an atomic operation hides an earlier plain write from later atomic
// operations. The scopes of two locks or atomics overlap as soon as one of them has device scope. Locks that are not
// made of a compare-and-swap (ticket locks, for example), and locks whose free value is not 0, order like other
// synchronisation, so nothing is predicted through them. If a lock holder lets other threads work under its lock by
// flags rather than barriers, that is not recognised, and predicted races may be false. Atomics of different sizes
// never race.
//
// # How
//
// Clocks are the trees of package clock: blocks, warps and lanes, each stored once while its parts are equal, which is
// checked again after each join. That is the compression of section 5.2. Epochs are numbered by block, so all threads
// that meet at a barrier continue with the same number: that is its forced compression. Lanes that synchronised alike
// share one state. As long as no lock has been taken, P and H are equal and stored once.
//
// Option compress=off keeps a number for each pair of threads instead, for comparison. The findings are the same.
// Option report=predicted leaves out what detector hb finds in the observed order.
//
// Shadow memory has a line for each 128 bytes. An access of a warp in lane order takes one span of it, whatever the
// number of lanes.
package gwcp
