// Package curd is CURD (chapter 6 of "Efficient Precise Dynamic Data Race Detection for CPU and GPU", called 001 in this
// project): a detector for kernels that synchronise by barriers alone. It records which regions of memory the threads of a
// block read and write between two barriers, and intersects these sets. It behaves as published, blind spots included.
//
// # What it does
//
//   - A kernel in whose code, or that of the functions it may call, there is an atomic operation or a fence is judged by
//     package barracuda (section 6.1). The engine tells so in event.Launch.Synchronises, whether they are executed or not.
//   - Each thread has a read set and a write set for global and for shared memory, TRS and TWS. An access is merged with
//     those of the latest eight regions that it touches, and goes to the end (6.1.1; 6.2, "Caching Thread-Set Insertions").
//     The sets of a block's threads are interleaved (figure 6.3).
//   - At a barrier, and when a block ends, the thread sets are compressed (6.1.2, figure 6.5). If the compressed read and
//     write sets have nothing in common there is no read-write race; otherwise the threads' own sets are intersected.
//     Write sets are intersected with each other, each pair once.
//   - Then the sets of shared memory are discarded, and the compressed ones of global memory become part of the block's,
//     BRS and BWS. Mode lazy has one cumulative set with bounded search and intersects those of all blocks at the kernel's
//     end. Mode eager keeps a list of subsets, one a barrier, and makes the three intersections of figure 6.7 at each
//     barrier, leaving out the prefixes that were checked before; what blocks read before others wrote is checked last at
//     the kernel's end.
//   - Threads of one warp that race by two instructions rely on the warp being in step, whether __syncwarp is there or not:
//     a warning (6.3.4, "Warp-level synchronization"). Two writes of one place may be of one instruction, and are an error.
//   - A region knows the place of its latest access and whether that is the place of all its accesses (6.2); a message says
//     when it is not.
//
// Both modes report the same bytes for the same pairs of blocks. The places may differ, since lazy merges more.
//
// The sets of threads are held by warp: lanes that did the same share one line for what is a region of each (sets.go). TestSets
// holds that equal to sets of each thread.
//
// # Decisions where the text is silent or unclear
//
//   - The text has 2n sets of a block intersected pair by pair, by many threads. Here one sweep in the order of addresses
//     finds the same pairs: each pair of overlapping regions of different threads (or, lazily, blocks), one of them written,
//     and each pair of writes once, which is what the triangular check is for.
//   - Its alreadyChecked has a number for each pair of blocks, since blocks run at once. The checks of a stream happen one
//     after the other: a block needs only the time of its last check.
//   - How many regions a bounded search looks at is not said: eight, for threads and blocks. A cumulative set that has
//     doubled is put in order, and regions that touch and have the same source become one; the same is done to subsets.
//   - Loads and stores that acquire or release count as if a fence stood beside them, as they do in barracuda. Volatile and
//     relaxed ones are plain.
//   - The barrier is that of the whole block. One that a part of the block arrives at, or that somebody does not wait for,
//     ends no region. Threads that have exited count as if they had passed the barriers after it.
//   - Sets do not tell which access was first: in messages it is the write. The bytes told are the overlap of the regions.
//   - Sets grow as needed, where the published ones have a fixed size. They are of one kernel, as published.
//
// # Blind spots
//
// Barriers for a part of the block and __syncwarp order nothing: false alarms, which are warnings within a warp. So do, in
// kernels that are not barracuda's, warps in lockstep and the end of an instruction, which barracuda counts. Writes of the
// same value race. Nothing is known of other kernels and of the host. The places of regions that were merged are those of the
// latest access. A kernel that barracuda judges has barracuda's blind spots.
package curd
