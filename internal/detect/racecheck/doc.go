// Package racecheck finds what the racecheck tool of NVIDIA's Compute Sanitizer can find according to its public
// documentation (Compute Sanitizer manual, "Racecheck Tool"): hazards between threads of one block in shared memory,
// with no barrier between. The implementation of the tool is not public; this package implements its contract.
//
// # What it judges
//
// A hazard is two accesses to the same bytes by different threads of a block, not both reads and not both atomic
// operations, that no barrier orders. The classes are those of the manual: read after write (RAW), write after read
// (WAR), write after write (WAW). An atomic operation counts as a write. Accesses are ordered by:
//
//   - the program order of a thread;
//   - a barrier of the block: all arrivals before all threads that waited (a named barrier orders its participants;
//     bar.arrive orders only what came before it);
//   - __syncwarp: the lanes of its mask.
//
// Severity follows the manual's levels. Info is for hazards without impact on the execution: here, two writes of the
// same value. Warnings are for hazards that a programmer may have intended, as in warp-level programming: here, those
// that lockstep warps exclude. All others are errors.
//
// # Decisions where the manual is silent
//
//   - An access is compared with the last plain write of each byte, and with the last read and the last atomic
//     operation of each thread since. Every byte with a hazard leads to a finding, but not every pair of accesses is
//     reported.
//   - Lockstep excludes a hazard of two lanes of one warp when both took part in one of the two instructions. Lanes of
//     one store that write different values to the same bytes are an error.
//   - Only atom and red are atomic: the tool works on machine code, where relaxed loads and stores of shared memory,
//     and volatile ones, are plain.
//   - A barrier orders nothing with threads that exited before it.
//
// # Known blind spots
//
// Global memory, other kernels and the host are not checked. Fences, flags and locks order nothing, so correct
// synchronisation through a flag or a lock in shared memory is reported. The tool also supports cuda::barrier,
// asynchronous copies and the shared memory of clusters; this package does not.
package racecheck
