// Package scord is ScoRD: a hardware detector of scoped races in global memory (Kamath, George, Basu: "ScoRD: A Scoped Race
// Detector for GPUs", sections III and IV), simulated on events.
//
// # What it keeps
//
// Per block a barrier ID of 8 bits, which every completed barrier counts up. Per warp the fence file, a block and a device
// fence ID of 6 bits, and a lock table of four entries, a circular buffer. Per 4 bytes of global memory a word of 8 bytes
// about the last access: its warp, the barrier ID of its block, the fence IDs of its warp, a Bloom filter of 16 bits of the
// locks it held, and the flags Modified, BlkShared, DevShared, IsAtom, Scope and Strong. Modified, BlkShared and DevShared
// together say that the next access is the first. Everything is of warps: lanes of one warp never race.
//
// That is the hardware. Here words that lanes of one warp left in the same order are held as one record until something tells
// them apart (package shadow, Lines), and MemoryBytes counts what is held.
//
// # What it judges
//
// An access is let pass when it is the first (table III, a), when its warp alone has accessed the location (b), or when the
// last access was by its block with a barrier in between and no other block has accessed it (c). Otherwise, unless it is a
// load of what is not Modified, in this order (table IV): an access after another block's atomic operation of block scope
// races, and one atomic operation after another does not otherwise (d); the access of another warp when the earlier warp has
// executed no fence since (a: same block, either scope; b: another block, device scope); any when locks are in play and the
// two have none in common (e, f); and that of another warp when one of the two, or any access since Strong was set, was
// neither volatile nor atomic (c).
//
// # When flags are reset
//
// By the tables and their text flags are set, and only re-initialisation resets them. Then the second of two loads after one
// barrier, or one fence, is a race with the first: the location is still Modified, and the first reader has no fence. Yet
// table VII has no false positive at 4 bytes. The simulator that the authors released (csl-iisc/ScoRD) resets flags, and so
// does this detector:
//
//   - an access after a barrier (III, c) begins all of them anew, as the first access does, and so does one that has raced;
//   - a load that passes and that no lock concerns resets the shared flags, and Modified too if another warp wrote. The
//     writer's own load resets Modified after a fence of its own, of either scope;
//   - a store that passes and that no lock concerns resets the shared flags, and so does an atomic operation after a load or
//     a store;
//   - an access in program order (III, b) sets Strong if it is strong, whatever was before;
//   - of BlkShared and DevShared one is set at a time, so that all three flags are never set but at first.
//
// Option reset=off keeps the letter. Then all three flags can come together (warps of two blocks access what one of them
// wrote), and the next access is taken for the first: a blind spot of table III, a.
//
// # Where the paper leaves a choice
//
//   - The figure of the word gives no widths for warp and block; here they share 17 bits, the warp's number in the grid, so
//     that warps 131072 apart are one.
//   - Condition (c) asks for another warp, as the text says of (a); (e) and (f) do not: the account in PreDataR's section 6.2 (an access
//     outside of the lock right after the same thread's critical section, which ScoRD finds in every order) needs that, and
//     that accesses under locks set BlkShared and DevShared whatever they are. The definition of these flags in section IV has
//     accesses of any kind set them, the list of updates in section IV-A loads alone.
//   - IsAtom and Scope are those of the last access, and so are the fence IDs.
//   - Locks are inferred by package lock: a compare-and-swap, whatever its outcome, then a fence of at least its scope; an
//     exchange gives the lock back. A lock enters the table when it has been acquired.
//   - The paper hashes the address of a lock and its scope. In the release a lock of block scope is another one in another
//     block, and so it is here; option block-lock=per-address keeps the letter.
//   - Each kernel begins with fresh metadata. Relaxed, acquire and release accesses are strong; the paper knows volatile
//     ones only. Acquire and release order nothing (section VI leaves them to future work).
//   - Lanes of one store that write the same bytes are nothing to ScoRD. Those who compared it with PreDataR let their
//     version tell of them (section 5.1 there): option same-instruction=report. It asks for overlapping bytes, whatever the
//     granularity, and not for the values.
//   - The cache of scord-cached has one entry for each 16 segments of device memory, which are a sixteenth of it apart;
//     how large that memory is decides what collides, so it is an option.
//
// # Known blind spots, as published
//
// Shared memory; lanes of one warp; all but the last access to a location; a fence by the earlier warp anywhere after its
// access orders it with everyone, also when nothing tells the later warp; what a block loads after a barrier, or after a fence
// of block scope, is then no longer Modified to other blocks that load it; a block-scope atomic after a device-scope one;
// counters that wrap around (64 fences or 256 barriers later, which also gives false alarms); locks that collide in the filter
// or were pushed out of the table; with the cache, what collides in it. Critical sections whose accesses are weak are reported
// (condition c), although fences order them in the PTX memory model; so are handovers by weak accesses.
package scord
