// Package hirace is HiRace, which condenses all accesses to a location into the state of a finite machine ("HiRace", sections
// III and IV): a race is not missed because an earlier access was forgotten.
//
// # What it keeps
//
// A shadow word of 8 bytes for each location (figure 2): the state, and the thread, block clock and warp clock of the last
// access. A thread's clocks advance at barriers of its block and of its warp. An access looks its transition up by state,
// action (read, write, atomic of block or of wider scope), the barriers since the last access as the clocks tell, and the
// smallest group that holds both threads, and replaces the word (algorithm 1, method machine.update, lock-free). State RACE
// is reported when it is reached, once for a location.
//
// # The machine
//
// The paper prints the machine of figure 4 and says that the whole one has 25 states and 1200 transitions; its authors publish
// those as a table. Here each state is described by the histories that it represents (meanings, in machine.go): how writes,
// reads and atomic operations so far relate to the accesses that come next. Transitions follow from that. Tests find the machine
// equal to happens-before over program order and barriers, with scoped atomics, on every history of eight threads in two blocks of
// two warps, of any length; and equal to the published table but for 15 entries. In all of them the table is wrong; option
// machine=published has them.
//
//   - READ, atomic of either scope, after a barrier of the warp (self, warp) or the block (self, warp, block): WRITE in the table,
//     WSYNC_ATOM and BSYNC_ATOM here, as the table itself has it after WREAD and BREAD. Who reads, waits and adds with others
//     is a false alarm of the table: the read is ordered before all of their additions. 10 entries.
//   - BATOM_B, atomic of either scope, after a barrier of the block (self, warp): BATOM_B in the table, BATOM here, as the table has
//     it for another warp's thread and from GATOM_B. A false alarm of the table when the thread then reads. 4 entries.
//   - WSYNC_ATOM, device atomic by another lane with no barrier: WSYNC_ATOM in the table, WSYNC_ATOM_M here, as the table has it
//     for block atomics. The table misses the race when that lane then reads or writes, and calls others false. 1 entry.
//
// Four states can be told from another by no future: BWSYNC from BSYNC, and BSYNC_ATOM, BSYNC_ATOM_W and BSYNC_ATOM_B from
// BATOM, BATOM_W and BATOM_B. They are kept as published.
//
// # Where the paper leaves a choice
//
//   - The widths of the word's parts: 26 bits of thread, 16 for each clock. When a clock overflows checking stops with a note
//     (footnote 3); here it starts again with the next kernel.
//   - The paper shadows the elements of arrays. Here a word is shadowed as one until an access of fewer bytes, then by byte.
//   - The paper knows __syncthreads and __syncwarp, of all threads. A barrier of some (named, or with a mask) gives those who
//     wait a clock greater than that of anyone who arrived: it never makes a false alarm, and may hide a race with a thread
//     that took no part but whose clock differs. Barriers of a grid are not known, nor are shuffles taken as barriers.
//   - Loads and stores of order relaxed or stronger are atomics; volatile ones are plain. The paper's wrappers know functions of
//     CUDA's atomics only. Atomics of cluster scope are block atomics. A failed compare-and-swap is an atomic.
//   - Each kernel begins with fresh words.
//   - What its users configure to save memory: option groups tracks the first blocks of a grid, which represent the others; option
//     words bounds the words of global memory with metadata, those first accessed in a launch. Notes say what was left out.
//
// What besides the word is kept of earlier accesses is for messages. Words that lanes of one warp left in their order are kept as one
// (package shadow, Lines). MemoryBytes counts what is held.
//
// # Known blind spots, as published
//
// Fences, flags and locks order nothing: what they hand over is reported, unless by atomics alone (in the corpus: message, lock,
// queue, lookback, last_block and the like of norace); so is what a barrier of the grid, made of them, orders. An atomic load
// and a plain load race. Only the first race of a location is reported, and other pairs of places there are missed (race/
// histogram_shared, lock_forgotten). Who arrives at a barrier and does not wait keeps its clock, which differs from that of those
// who waited: what it does then counts as ordered with them (race/ring), as does what those do who took part in another
// barrier only (race/named_barrier). Different kernels, and the host (race/streams).
package hirace
