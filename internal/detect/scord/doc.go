// Package scord is ScoRD: a hardware detector of scoped races in global memory (Kamath, George, Basu: "ScoRD: A Scoped
// Race Detector for GPUs", sections III and IV), simulated on events.
//
// # What it keeps
//
// For each block: a barrier ID of 8 bits, which every completed barrier increments. For each warp: the fence file, with
// a block fence ID and a device fence ID of 6 bits each, and a lock table of four entries, a circular buffer. For each
// 4 bytes of global memory: a word of 8 bytes that describes the last access: its warp, the barrier ID of its block,
// the fence IDs of its warp, a Bloom filter of 16 bits for the locks that it held, and the flags Modified, BlkShared,
// DevShared, IsAtom, Scope and Strong. If Modified, BlkShared and DevShared are all set, the next access counts as the
// first. The unit is the warp: lanes of one warp never race.
//
// That is the hardware. Here the words that lanes of one warp have accessed in lane order are stored as one record
// until they differ (package shadow, Lines). MemoryBytes counts what is stored.
//
// # What it judges
//
// An access passes if it is the first (table III, a), if only its own warp has accessed the location (b), or if the
// last access was by its block, a barrier lies between, and no other block has accessed the location (c). A load of a
// location that is not Modified passes too. Otherwise these conditions are checked in order (table IV). An access races
// if it follows another block's atomic operation of block scope; in all other cases one atomic operation after another
// does not race (d). An access by another warp races if the earlier warp has executed no fence since (a: same block,
// either scope; b: another block, device scope). Any access races if locks are held and the two accesses have none in
// common (e, f). An access by another warp races if one of the two, or any access since Strong was set, was neither
// volatile nor atomic (c).
//
// # When flags are reset
//
// According to the tables and their text, flags are set, and only re-initialisation resets them. Then the second of two
// loads after one barrier, or one fence, races with the first: the location is still Modified, and the first reader has
// executed no fence. But table VII has no false positive at 4 bytes. The simulator that the authors released
// (csl-iisc/ScoRD) resets flags, and so does this detector:
//
//   - an access after a barrier (III, c) initialises all flags, like the first access, and so does an access that has
//     raced;
//   - a load that passes, with no locks held, resets the shared flags, and also Modified if another warp wrote. The
//     writer's own load resets Modified after a fence of its own, of either scope;
//   - a store that passes, with no locks held, resets the shared flags, and so does an atomic operation after a load or
//     a store;
//   - an access in program order (III, b) sets Strong if it is strong, whatever was before;
//   - only one of BlkShared and DevShared is set at a time, so all three flags are set only initially.
//
// Option reset=off follows the letter of the paper. Then all three flags can be set (warps of two blocks access what
// one of them wrote), and the next access counts as the first: a blind spot of table III, a.
//
// # Where the paper leaves a choice
//
//   - The figure of the word gives no widths for warp and block; here they share 17 bits, the warp's number in the
//     grid, so warps whose numbers differ by 131072 are not distinguished.
//   - Condition (c) requires another warp, as the text says of (a); (e) and (f) do not. PreDataR's section 6.2
//     describes an access outside of the lock right after the same thread's critical section, which ScoRD finds in
//     every order. That is possible only with this choice, and if all kinds of accesses under locks set BlkShared and
//     DevShared. According to the definition of these flags in section IV, accesses of any kind set them; according to
//     the list of updates in section IV-A, only loads do.
//   - IsAtom and Scope are those of the last access, and so are the fence IDs.
//   - Locks are inferred by package lock: a compare-and-swap, whatever its outcome, then a fence of at least its scope;
//     an exchange releases the lock. A lock enters the table when it has been acquired.
//   - The paper hashes the address of a lock and its scope. In the authors' release, a lock of block scope at one
//     address is a different lock in each block, and so it is here. Option block-lock=per-address follows the paper.
//   - Each kernel begins with fresh metadata. Relaxed, acquire and release accesses are strong; the paper has only
//     volatile ones. Acquire and release order nothing (section VI leaves them to future work).
//   - ScoRD ignores lanes of one store that write the same bytes. The authors of PreDataR reported them in their
//     version for comparison (section 5.1 there): option same-instruction=report. It compares bytes, whatever the
//     granularity, and ignores values.
//   - In the cache of scord-cached, 16 segments of device memory share one entry. Their distance is a sixteenth of the
//     memory's size, so the size determines which addresses collide, and is an option.
//
// # Known blind spots, as published
//
// Not checked are shared memory, lanes of one warp, and all but the last access to a location. A fence by the earlier
// warp anywhere after its access orders it with everyone, even if nothing signals the later warp. What a block loads
// after a barrier, or after a fence of block scope, is no longer Modified for other blocks that load it. Further blind
// spots: a block-scope atomic after a device-scope one; counters that wrap around (after 64 fences or 256 barriers,
// which also gives false alarms); locks that collide in the filter or were evicted from the table; with the cache,
// addresses that collide in it. Critical sections whose accesses are weak are reported (condition c), although fences
// order them in the PTX memory model; so are handovers by weak accesses.
package scord
