// Package hirace is HiRace, which condenses all accesses to a location into the state of a finite machine ("HiRace",
// sections III and IV): no race is missed because an earlier access was forgotten.
//
// # What it keeps
//
// A shadow word of 8 bytes for each location (figure 2): the state, and the thread, block clock and warp clock of the
// last access. A thread's clocks advance at barriers of its block and of its warp. An access looks up its transition
// and replaces the word (algorithm 1, method machine.update, lock-free). The transition depends on the state, the
// action (read, write, atomic of block or of wider scope), the barriers since the last access according to the clocks,
// and the smallest group that contains both threads. A race is reported when a location reaches state RACE, once for
// each location.
//
// # The machine
//
// The paper prints part of the machine in figure 4 and says that the whole machine has 25 states and 1200 transitions.
// Its authors have published these as a table. Here each state is described by the histories that it represents
// (meanings, in machine.go): how the writes, reads and atomic operations so far relate to the accesses that come next.
// The transitions follow from that. Tests compare the machine with happens-before over program order and barriers, with
// scoped atomics, on every history of eight threads in two blocks of two warps, of any length. They are equal. Tests
// also show that the machine equals the published table except for 15 entries. In all of these the table is wrong;
// option machine=published uses them.
//
//   - READ, atomic of either scope, after a barrier of the warp (self, warp) or the block (self, warp, block): WRITE in
//     the table, WSYNC_ATOM and BSYNC_ATOM here, as in the table itself after WREAD and BREAD. The table gives a false
//     alarm if a thread reads, waits at a barrier and then adds concurrently with others: the read is ordered before
//     all the additions. 10 entries.
//   - BATOM_B, atomic of either scope, after a barrier of the block (self, warp): BATOM_B in the table, BATOM here, as
//     in the table for a thread of another warp and from GATOM_B. The table gives a false alarm if the thread then
//     reads. 4 entries.
//   - WSYNC_ATOM, device atomic by another lane with no barrier: WSYNC_ATOM in the table, WSYNC_ATOM_M here, as the
//     table has it for block atomics. The table misses the race if that lane then reads or writes, and gives false
//     alarms for others. 1 entry.
//
// Four states are equivalent to another one, since no future distinguishes them: BWSYNC to BSYNC, and BSYNC_ATOM,
// BSYNC_ATOM_W and BSYNC_ATOM_B to BATOM, BATOM_W and BATOM_B. They are kept as published.
//
// # Where the paper leaves a choice
//
//   - The widths of the word's parts: 26 bits of thread, 16 for each clock. When a clock overflows, checking stops with
//     a note (footnote 3). Here it resumes with the next kernel.
//   - The paper has a shadow word for each array element. Here a word has one shadow word until an access of fewer
//     bytes; from then on each of its bytes has one.
//   - The paper handles __syncthreads and __syncwarp of all threads. A barrier of some threads (named, or with a mask)
//     gives the threads that wait a clock greater than that of any that arrived. This never causes a false alarm, but
//     may hide a race with a thread that took no part and whose clock differs. Barriers of a grid are not recognised,
//     and shuffles are not treated as barriers.
//   - Loads and stores that are relaxed or stronger are atomics; volatile ones are plain. The paper's wrappers only
//     handle CUDA's atomic functions. Atomics of cluster scope are block atomics. A failed compare-and-swap is an
//     atomic.
//   - Each kernel begins with fresh words.
//   - Users of the paper's tool can configure it to save memory. Here option groups tracks only the first blocks of a
//     grid, which represent the others. Option words bounds the number of words of global memory with metadata: the
//     words first accessed in a launch have it. Notes say what was not checked.
//
// What is kept of earlier accesses besides the word is for messages. The words that lanes of one warp have accessed in
// lane order are stored as one (package shadow, Lines). MemoryBytes counts what is stored.
//
// # Known blind spots, as published
//
// Fences, flags and locks order nothing: accesses that they order are reported, unless these are all atomic (in the
// corpus: message, lock, queue, lookback, last_block and similar programs of norace). The same holds for a grid
// barrier, which is made of them. An atomic load and a plain load race. Only the first race of a location is reported,
// and other pairs of places there are missed (race/histogram_shared, lock_forgotten). A thread that arrives at a
// barrier without waiting keeps its clock, which differs from the clocks of those that waited: what it does next counts
// as ordered with them (race/ring). The same holds for threads that took part only in another barrier
// (race/named_barrier). Races between kernels, and races with the host, are not found (race/streams).
package hirace
