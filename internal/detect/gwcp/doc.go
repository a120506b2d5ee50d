// Package gwcp is the predictive detector PreDataR ("Predictive Data Race Detection for GPUs", called 000 here): it orders
// events by GWCP, a relation weaker than happens-before, and so finds races that show in other orders of the critical
// sections of the observed execution, and those of the observed order as well. The former are marked predicted.
//
// # Rules
//
// Definition 1, as algorithms 1 and 2 track it. For each thread the clocks P (GWCP), H (happens-before) and the local time N;
// C is P with the own N.
//
//   - Rule (i), algorithm 2: in a critical section, an access that conflicts with one in an earlier section of a lock
//     whose scope overlaps comes after the release of that section, and so after all that happens before it.
//   - Rule (ii), algorithm 1, lines 25-29: a release comes after the release of an earlier section whose acquire comes
//     before it by GWCP. For the acquire its epoch stands.
//   - Rule (iii), procedure SYNC: a barrier (CTA barrier, bar.warp.sync) joins C, not P alone, and H.
//   - Rule (iv): what (i) and (ii) order is composed with happens-before on both sides; what a barrier orders, as line 4 of
//     algorithm 1 has it, with program order before and happens-before after. Definition 1 to the letter would compose it
//     with happens-before before, too, and find fewer races.
//   - Locks are inferred by package lock, with its zero Rules: compare-and-swap, fence; fence, exchange or store. The scope
//     of a lock is the narrower of the two. Two sections overlap in scope when one is of the device, or both are of one
//     block (section 4, "Scoped locks"): that of the release of the earlier and that of the acquire of the later section.
//     The lock variable's own accesses are not accesses of the section.
//   - Two atomic accesses do not race when their scopes overlap in the same sense (section 4, "Scoped atomics"; 5.1).
//   - Shared memory is its block's (section 4).
//   - W is the last write of each byte, an epoch; R the last read of each thread since (section 4.1, FastTrack).
//   - Threads that have exited leave no clocks. All threads share one copy of the queues, and look for
//     what concerns them (section 5, "Thread exit", "Inactive threads"). A reader's own sections are skipped.
//   - One kernel at a time: races between kernels and with the host are not looked for (section 2.1).
//   - Lockstep orders nothing (section 4). Lanes of one instruction that write the same bytes race (5.1).
//
// # Where the paper is silent
//
//   - Synchronisation that is no lock (flags, counters, release and acquire operations) is a hard edge: it is joined
//     into C as a barrier is, in one direction. The paper has it as acquire and release of a lock with no accesses inside, which
//     would predict races of correct message passing. Patterns are those of the PTX manual, a little generous: chains
//     of read-modify-writes go on whatever their scope; a plain store does not end them; what threads fenced, and what they have
//     observed, a barrier hands to all that meet there.
//   - A variable is a lock from its first inferred release on, and never again once two threads have had it at a time, or
//     a thread that does not have it wrote it otherwise: swaps on the head of a list look like acquires and are none.
//     Before and after that, it is synchronisation as above.
//   - A free lock is 0. A release that leaves another value hands over a state (mailboxes, turns): who waits for that state comes after it
//     in every order, so that the variable is no lock either. Where values are not recorded, all releases are taken as such.
//   - A section whose owner meets others at a barrier (a leader that takes the lock for its block or warp) is one of them all: at that
//     barrier it comes after the earlier sections of the lock by hard edges, and so do the later ones after it. The paper has critical sections
//     of single threads, and would predict races that the leader's lock excludes.
//   - A lock whose section accesses more than 1024 granules is taken for none: most such are claims that nobody gives back.
//   - A strong write comes before what follows a strong read that observed it, as the manual's causality order has it.
//   - That an asynchronous operation is complete is a hard edge from what comes before its issue to who acquires the phase of its mbarrier or
//     waits for its group (async.go). What operations other than cp.async access is not judged.
//   - The elements of a strong vector access are accesses of their own: who reads one of them observes it. An exchange whose value
//     nobody wants reads all the same.
//   - Queues keep 256 sections a lock; older neighbours become one, which orders more than they did. They are searched from the newest
//     on, where algorithm 1 stops at the first that is not ordered: definition 1 asks for all.
//   - The scopes of acquire and release of one section may differ.
//   - Definition 1 knows no values. A race of two weak stores that write the same is a race, of the severity that detector hb
//     gives it (a warning): what is there when the later one writes tells what the earlier one wrote.
//
// # Blind spots
//
// Those of GWCP: it composes with happens-before, and sections that conflict early hide what follows (section 6.2). One
// write a byte is kept: an atomic operation hides the plain write before it from other atomic operations. The
// scopes of two locks or atomics overlap already when one is of the device. Ticket locks and other locks that are no
// compare-and-swap, or whose free value is not 0, order as synchronisation does, so that nothing is predicted through them. A holder that lets
// others work under its lock by flags, not barriers, is not seen: races predicted there may be false. Atomics of different size never race.
//
// # How
//
// Clocks are the trees of package clock: blocks, warps, lanes, each stored once while its parts are equal, and tried anew after each
// join; that is the compression of section 5.2. Epochs are numbered by block, so that all that meet at a barrier go on with one
// number: its forced compression. Lanes that synchronised alike share one state. While no lock was taken, P and H are
// one.
//
// Option compress=off keeps a number for each pair of threads instead, for comparison: findings are the same. Option
// report=predicted leaves out what detector hb finds in the observed order.
//
// Shadow memory has a line for 128 bytes. What a warp accesses in lane order takes one span of it, whatever the number of lanes.
package gwcp
