// Package curd is CURD (chapter 6 of "Efficient Precise Dynamic Data Race Detection for CPU and GPU", called 001 in
// this project): a detector for kernels that synchronise only by barriers. It records which regions of memory the
// threads of a block read and write between two barriers, and intersects these sets. It behaves as published, including
// its blind spots.
//
// # What it does
//
//   - Package barracuda judges a kernel if its code, or that of the functions it may call, contains an atomic operation
//     or a fence, whether executed or not (section 6.1). event.Launch.Synchronises says so.
//   - Each thread has a read set and a write set for global and for shared memory, TRS and TWS. An access is merged
//     with those of the latest eight regions that it touches, and goes to the end (6.1.1; 6.2, "Caching Thread-Set
//     Insertions"). The sets of a block's threads are interleaved (figure 6.3).
//   - At a barrier, and when a block ends, the thread sets are compressed (6.1.2, figure 6.5). If the compressed read
//     and write sets are disjoint, there is no read-write race. Otherwise the threads' own sets are intersected. Write
//     sets are intersected with each other, each pair once.
//   - Then the sets of shared memory are discarded, and the compressed ones of global memory become part of the
//     block's, BRS and BWS. Mode lazy has one cumulative set with bounded search and intersects those of all blocks at
//     the kernel's end. Mode eager keeps a list of subsets, one for each barrier, and makes the three intersections of
//     figure 6.7 at each barrier, without the prefixes that were checked before. What blocks read before others wrote
//     is checked at the end of the kernel.
//   - A race of two threads of one warp by two instructions is a warning: the code relies on the warp being in
//     lockstep, whether or not there is a __syncwarp (6.3.4, "Warp-level synchronization"). Two writes at one place may
//     be one instruction, and are an error.
//   - A region has the place of its latest access, and records whether that is the place of all its accesses (6.2). If
//     not, the message says so.
//
// Both modes report the same bytes for the same pairs of blocks. The places may differ, since lazy merges more.
//
// The sets of threads are stored by warp: lanes that did the same share one line, which represents a region of each
// (sets.go). TestSets compares this with a set for each thread.
//
// # Decisions where the text is silent or unclear
//
//   - In the text, many threads intersect the 2n sets of a block pair by pair. Here one sweep in the order of addresses
//     finds the same pairs: each pair of overlapping regions of different threads (or, in mode lazy, blocks) of which
//     one is written. It finds each pair of writes once, which is the purpose of the triangular check.
//   - The text's alreadyChecked has a number for each pair of blocks, since blocks run concurrently. Here the checks
//     happen one after the other, so a block needs only the time of its last check.
//   - The text does not give the number of regions that a bounded search looks at: here eight, for threads and blocks.
//     A cumulative set that has doubled is sorted, and touching regions with the same source are merged. The same is
//     done to subsets.
//   - Loads and stores that acquire or release count as if a fence were next to them, as in barracuda. Volatile and
//     relaxed ones are plain.
//   - Only a barrier of the whole block ends a region. A barrier at which only part of the block arrives, or at which
//     some thread does not wait, does not. Threads that have exited count as if they had passed all later barriers.
//   - Sets do not say which access was first: messages say that it was the write. The reported bytes are the overlap of
//     the regions.
//   - Sets grow as needed; the published ones have a fixed size. They are dropped at the end of the kernel, as
//     published.
//
// # Blind spots
//
// Barriers for part of a block and __syncwarp order nothing, which gives false alarms (warnings within a warp). In
// kernels that are not passed to barracuda, neither lockstep nor the end of an instruction orders anything; in
// barracuda both do. Writes of the same value race. Races with other kernels and with the host are not found. The place
// of a merged region is that of its latest access. A kernel that barracuda judges has barracuda's blind spots.
package curd
