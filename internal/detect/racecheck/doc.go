// Package racecheck is what the racecheck tool of NVIDIA's Compute Sanitizer can see, by its public documentation (Compute
// Sanitizer manual, "Racecheck Tool"): hazards between threads of one block in shared memory, with no barrier between. How
// the tool works inside is not public; this is its contract and not its code.
//
// # What it judges
//
// Two accesses of the same bytes by different threads of a block, not both reads and not both atomic operations, that no
// barrier orders. The class is that of the manual: read after write (RAW), write after read (WAR), write after write (WAW);
// an atomic operation counts as a write. What orders:
//
//   - the program order of a thread;
//   - a barrier of the block: all that arrived at it before all that waited (a named barrier orders those who took part;
//     bar.arrive orders what came before it only);
//   - __syncwarp: the lanes of its mask.
//
// Severity follows the manual's levels. Info is for hazards without impact on the execution: here, two writes of the same
// value. Warnings are for those that a programmer may mean, as in warp-level programming: here, those that warps in lockstep
// exclude. All others are errors.
//
// # Decisions where the manual is silent
//
//   - An access is compared with the last plain write of each byte, and with the last read and the last atomic operation of
//     each thread since. No byte with a hazard goes without a finding, but not every pair of accesses is named.
//   - Lockstep excludes a hazard of two lanes of one warp when both took part in one of the two instructions. Lanes of one
//     store that write different values to the same bytes are an error.
//   - Only atom and red are atomic: the tool works on machine code, where relaxed loads and stores of shared memory, and
//     volatile ones, are plain.
//   - A barrier orders nothing with threads that exited before it.
//
// # Known blind spots
//
// Global memory; other kernels and the host. Fences, flags and locks order nothing, so that correct handovers through a flag
// or a lock in shared memory are reported. The tool also knows cuda::barrier, asynchronous copies and the shared memory of
// clusters; programs with these are not run here.
package racecheck
