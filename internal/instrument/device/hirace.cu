// Device code of HiRace, which detects races when the accesses are made ("HiRace", sections III and IV). Instrumented
// programs call it before each access and around each barrier.
//
// A location is a word of 4 bytes, or a byte of a split word. An access to a part of a word splits the word, unless the
// host forbids it. The shadow word of a location holds the state of the machine, and the thread and clocks of the last
// access (figure 2; internal/detect/hirace/word.go has the same layout). An access replaces the shadow word by
// compare-and-swap (algorithm 1). If the host provides memory, a location also has a history, so that messages can name
// both places. A thread then first locks the shadow word by the state TAKEN, and unlocks it by writing the new state.
//
// Races are counted by pair of places in a table. The host reads the table when the kernel has ended.
//
// internal/instrument/hirace.go reads and writes this layout.

#include "device.h"

// A trace is an access: 1 plus its place, its action, and the number of the instruction execution by its warp. 0 is
// none.
enum { placeBits = 30, actionShift = 30, sequenceShift = 32 };

// The history of a location, for messages: the last access, an access that is not ordered with it, and an access that
// is ordered before it but not before the accesses of all threads.
struct History {
	u64 last, other, before;
	u32 otherThread, beforeThread;
};

// Memory with a shadow. For shared memory, from is an offset in the shared memory of a block, and the shadow is that of
// the block that has part 0.
struct Range {
	u64 from, bytes;
	u64 *word;        // by word of the range; null if there was no room
	History *history; // likewise; null if none are kept
};

// Memory whose races are reported, with byte precision. The memory in the same 32 bytes has a shadow too.
struct Selected {
	u64 from, bytes; // for shared memory, IN_SHARED is added to from
};

// The races of a pair of places. The fields describe the first race.
struct Pair {
	u64 key; // 0 if the entry is free
	u64 count, bytes;
	u64 word; // the shadow word before the race
	History history;
	u64 trace, thread; // of the current access; the thread with its clocks, as in a shadow word
	u64 address, at;   // of the access, and of the location
	u64 what;          // size of the location, plus 256 if it is in shared memory
	u64 whole;         // 1 when all fields have been written
	u64 unused;
};

// A call, identified by the node of the calling function and the site of the call.
struct Node {
	u64 key; // 0 if the entry is free
};

// The threads that have arrived at a barrier in this phase and in the previous one.
struct Barrier {
	u64 latest[2]; // by parity: 1 plus the phase, and the maximum clocks of the threads that arrived
	u32 phase, unused;
};

struct Block {
	u32 exited; // number of threads
	u32 shadow; // 1 plus the block's part of State.sharedWord; 0 if it has none yet
};

struct State {
	u64 ranges;
	Range *range; // of global memory, by address
	u64 sharedRanges;
	Range *sharedRange; // of the shared memory of a block, by address
	u64 sharedWords, sharedParts;
	u64 *sharedWord; // sharedParts times sharedWords
	History *sharedHistory;
	u32 *owner; // by part: 1 plus the block
	u64 bytes, taken;
	u64 *byteWord; // 4 for each split word
	History *byteHistory;
	u64 pairs, dropped; // number of pairs, a power of two; number of races without room for their pair
	Pair *pair;
	u64 nodes; // a power of two
	Node *node;
	u64 barriers; // of a block
	Barrier *barrier;
	Block *block;
	u32 *clock;    // by thread: the clock of the warp in the low half, that of the block in the high half
	u32 *sequence; // by warp
	u32 *caller;   // by thread: 1 plus the node of the current call, or 0 in the kernel; with the flags below
	const u8 *machine; // by state and label: the next state
	u64 groups;          // number of blocks that are tracked
	u64 untracked;       // number of accesses to memory without a shadow
	u64 selections;      // 0 if races are reported on all memory
	Selected *selection; // by address
	u64 coarse;          // 1 if words are not split
	u32 lastTick;
	u32 stopped; // a clock has overflowed
};

enum { stateBits = 31, raced = 24, initial = 0, split = 32, threadShift = 6, threadMask = (1 << 26) - 1, clockShift = 32 };
enum { TAKEN = 31, UNCHECKED = 30 }; // not states: a thread is replacing the word; the kernel has switched the location off

// Flags in State.caller: the thread has switched the checking of its accesses off; the host does not want them checked.
enum : u32 { off = 1u << 31, unwatched = 1u << 30, unchecked = off | unwatched };

const u64 IN_SHARED = 1ull << 63;
enum { read, write, blockAtomic, deviceAtomic };
enum { unsynced, warpSynced, blockSynced };
enum { self, sameWarp, sameBlock, sameGrid };
enum { READ = 1, WRITE = 2 }; // states
enum { noteOther = 32, noteBefore = 64, noteMerged = 128 }; // flags in State.machine, above the state

// Fields of the word that describes an access to the device code. internal/instrument writes it.
enum { sizeShift = 32, accessShift = 40, spaceShift = 42, inGlobal = 0, inShared = 1, inGeneric = 2 };

// The state of this launch; null if nothing is checked.
extern "C" __device__ State *__fencepost_state = nullptr;

template <class T> static __device__ T load(const T *p) // relaxed
{
	T v;
	if (sizeof(T) == 8)
		asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(*(u64 *)&v) : "l"(__cvta_generic_to_global(p)) : "memory");
	else
		asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(*(u32 *)&v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
}

template <class T> static __device__ void store(T *p, T v) // relaxed
{
	if (sizeof(T) == 8)
		asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(__cvta_generic_to_global(p)), "l"(*(u64 *)&v) : "memory");
	else
		asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(__cvta_generic_to_global(p)), "r"(*(u32 *)&v) : "memory");
}

static __device__ u64 swapAcquire(u64 *p, u64 old, u64 next)
{
	u64 was;
	asm volatile("atom.cas.acquire.gpu.global.b64 %0, [%1], %2, %3;" : "=l"(was) : "l"(__cvta_generic_to_global(p)), "l"(old), "l"(next) : "memory");
	return was;
}

static __device__ void storeRelease(u64 *p, u64 v)
{
	asm volatile("st.release.gpu.global.u64 [%0], %1;" : : "l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
}

// Access is the access that a thread is about to make.
struct Access {
	State *s;
	u64 thread; // with its clocks, as in a shadow word
	u64 trace;
	u32 action, firstWarp, perBlock;
	u64 address;
	bool shared;
};

static __device__ u32 threadOf(u64 word) { return (u32)(word >> threadShift) & threadMask; }

static __device__ u32 relation(const Access &t, u32 a)
{
	u32 b = threadOf(t.thread);
	if (a == b)
		return self;
	if (a >> 5 == b >> 5)
		return sameWarp;
	return (a >> 5) - t.firstWarp < t.perBlock ? sameBlock : sameGrid;
}

static __device__ u32 barriersSince(const Access &t, u64 old)
{
	u64 x = (old ^ t.thread) >> clockShift;
	return x >> 16 ? blockSynced : x ? warpSynced : unsynced;
}

static __device__ u32 transition(const Access &t, u64 old)
{
	u32 label = t.action << 4 | barriersSince(t, old) << 2 | relation(t, threadOf(old));
	return t.s->machine[(old & stateBits) << 6 | label];
}

// conflict reports whether an earlier access and the current one can race.
static __device__ bool conflict(const Access &t, u64 trace, u32 thread)
{
	u32 a = trace >> actionShift & 3;
	if (trace == 0 || thread == threadOf(t.thread) || (a == read && t.action == read))
		return false;
	if (a < blockAtomic || t.action < blockAtomic)
		return true;
	return relation(t, thread) == sameGrid && (a == blockAtomic || t.action == blockAtomic);
}

// upTo returns how many of n ranges, sorted by address, begin at or before an address.
template <class T> static __device__ u64 upTo(const T *range, u64 n, u64 address)
{
	u64 low = 0, high = n; // the last such range is in [low-1, high)
	while (low < high) {
		u64 m = (low + high) / 2;
		if (range[m].from <= address)
			low = m + 1;
		else
			high = m;
	}
	return low;
}

// selected reports whether races on a location are reported.
static __device__ bool selected(State *s, u64 at, bool shared)
{
	if (s->selections == 0)
		return true;
	at |= shared ? IN_SHARED : 0;
	u64 n = upTo(s->selection, s->selections, at);
	return n > 0 && at - s->selection[n - 1].from < s->selection[n - 1].bytes;
}

// count counts a race for its pair of places: the place of the current access, and the place that the message names.
extern "C" __device__ __noinline__ void __fencepost_count(const Access &t, u64 old, const History *known, u64 at, u32 size)
{
	State *s = t.s;
	if (!selected(s, at, t.shared))
		return;
	History h = {};
	if (known)
		h = *known;
	u32 r = relation(t, threadOf(old)), y = barriersSince(t, old), thread = threadOf(old);
	u64 trace = h.last;
	if (conflict(t, h.last, thread) && (r == sameGrid || (r == sameBlock && y != blockSynced) || (r == sameWarp && y == unsynced))) {
	} else if (conflict(t, h.other, h.otherThread)) {
		trace = h.other;
		thread = h.otherThread;
	} else if (conflict(t, h.before, h.beforeThread)) {
		trace = h.before;
		thread = h.beforeThread;
	}
	const u64 place = (1 << placeBits) - 1;
	u64 key = (trace & place) << 33 | (t.trace & place) << 3 | (trace == t.trace ? 4 : 0) | relation(t, thread);
	u64 hash = key * 0x9E3779B97F4A7C15;
	for (u64 i = 0; i < s->pairs; i++) {
		Pair *p = &s->pair[(hash >> 32) + i & s->pairs - 1];
		u64 was = atomicCAS(&p->key, 0, key);
		if (was != 0 && was != key)
			continue;
		atomicAdd(&p->count, 1);
		atomicAdd(&p->bytes, (u64)size);
		if (was == 0) {
			p->word = old;
			p->history = h;
			p->trace = t.trace;
			p->thread = t.thread;
			p->address = t.address;
			p->at = at;
			p->what = size | (t.shared ? 256 : 0);
			p->whole = 1;
		}
		return;
	}
	atomicAdd(&s->dropped, 1);
}

// remember updates the history before the trace of the last access is replaced.
static __device__ void remember(const Access &t, u32 made, u64 old, History *h)
{
	u64 last = h->last;
	u32 thread = threadOf(old), a = last >> actionShift & 3;
	if (made & noteOther) {
		h->other = last;
		h->otherThread = thread;
	}
	if (made & noteBefore) {
		h->before = last;
		h->beforeThread = thread;
	}
	if (made & noteMerged && a != t.action) {
		if ((made & stateBits) != WRITE) { // atomic operations of both scopes
			if (a == blockAtomic) {
				h->before = last;
				h->beforeThread = thread;
			}
		} else if (a == write) {
			return; // the earlier access conflicts with more accesses
		} else {
			h->other = last;
			h->otherThread = thread;
		}
	}
	h->last = t.trace;
}

// take locks a shadow word, when no other thread is replacing it. It returns the word's value.
static __device__ u64 take(u64 *word)
{
	for (;;) {
		u64 old = load(word);
		if ((old & stateBits) != TAKEN && swapAcquire(word, old, old | TAKEN) == old)
			return old;
		__nanosleep(pause);
	}
}

// update makes the transition of an access in the shadow word of a location that is not split. It returns false if the
// location is split. The names of functions that are not inlined are not static, because the compiler would add a hash
// of the folder to them.
extern "C" __device__ __noinline__ bool __fencepost_update(const Access &t, u64 *word, History *h, u64 at, u32 size)
{
	for (;;) {
		u64 old = load(word);
		if ((old & stateBits) == TAKEN) {
			__nanosleep(pause);
			continue;
		}
		if (old & split)
			return false;
		if ((old & stateBits) == raced || (old & stateBits) == UNCHECKED)
			return true;
		u32 made = transition(t, old);
		u64 next = t.thread | made & stateBits;
		if (swapAcquire(word, old, h ? old | TAKEN : next) != old)
			continue;
		if ((made & stateBits) == raced) {
			__fencepost_count(t, old, h, at, size);
		} else if (h) {
			remember(t, made, old, h);
		}
		if (h)
			storeRelease(word, next);
		return true;
	}
}

// bytes returns the index of the shadow words of a word's bytes. It splits the word if necessary. It returns -1 if
// there is no room.
static __device__ long long bytes(State *s, u64 *word, History *h)
{
	u64 old = load(word);
	if ((old & stateBits) == TAKEN || !(old & split)) {
		old = take(word);
		if (!(old & split)) {
			u64 n = atomicAdd(&s->taken, 1);
			if (n >= s->bytes) {
				storeRelease(word, old);
				return -1;
			}
			for (u32 i = 0; i < 4; i++) {
				s->byteWord[4 * n + i] = old;
				if (h)
					s->byteHistory[4 * n + i] = *h;
			}
			old = split | n << threadShift;
		}
		storeRelease(word, old);
	} else {
		__threadfence(); // pairs with the release of the thread that split the word
	}
	return (long long)(old >> threadShift);
}

// check makes the transitions of an access at all locations that it touches. word and history are those of the location
// at from.
static __device__ void check(const Access &t, u64 from, u32 size, u64 *word, History *history, u64 at)
{
	bool words = t.s->coarse || (size >= 4 && at % 4 == 0);
	u64 end = at + size;
	if (t.s->coarse)
		at &= ~3ull;
	while (at < end) {
		u64 i = (at - from) / 4;
		if ((load(word + i) & stateBits) == UNCHECKED) {
			at = (at & ~3ull) + 4;
			continue;
		}
		History *h = history ? history + i : nullptr;
		if (words && __fencepost_update(t, word + i, h, at, 4)) {
			at += 4;
			continue;
		}
		long long n = bytes(t.s, word + i, h);
		u64 stop = (at & ~3ull) + 4;
		if (n < 0) {
			atomicAdd(&t.s->untracked, 1);
			at = stop;
			continue;
		}
		for (; at < stop && at < end; at++) {
			u64 b = 4 * n + at % 4;
			__fencepost_update(t, t.s->byteWord + b, history ? t.s->byteHistory + b : nullptr, at, 1);
		}
	}
}

// part returns this block's part of the shadow of shared memory, or -1 if there is none.
static __device__ long long part(State *s, u64 b)
{
	u32 mine = load(&s->block[b].shadow);
	for (u64 i = 0; mine == 0 && i < s->sharedParts; i++) {
		u64 p = (b + i) % s->sharedParts;
		u64 claim = b + 1;
		u32 was;
		asm volatile("atom.cas.acquire.gpu.global.b32 %0, [%1], 0, %2;" : "=r"(was) : "l"(__cvta_generic_to_global(&s->owner[p])), "r"((u32)claim) : "memory");
		if (was == claim) { // another thread of the block has the claim, and will publish it
			while ((mine = load(&s->block[b].shadow)) == 0)
				__nanosleep(pause);
			break;
		}
		if (was != 0)
			continue;
		mine = atomicCAS(&s->block[b].shadow, 0, (u32)p + 1);
		if (mine == 0)
			return p;
		store(&s->owner[p], 0u); // another thread of the block was faster
	}
	__threadfence();
	return (long long)mine - 1;
}

static __device__ u32 thisThread() { return warp() << 5 | lane(); }

// node returns the number of a site under the current calls of a thread: 1 plus a node, or 0 if there is no room.
static __device__ u32 nodeOf(State *s, u32 caller, u32 site)
{
	u64 key = (u64)caller << 32 | (site + 1), hash = key * 0x9E3779B97F4A7C15;
	for (u64 i = 0; i < s->nodes; i++) {
		u64 n = (hash >> 32) + i & s->nodes - 1;
		u64 was = load(&s->node[n].key);
		if (was == 0)
			was = atomicCAS(&s->node[n].key, 0, key);
		if (was == 0 || was == key)
			return (u32)n + 1;
	}
	return 0;
}

// Where is the place of a shadow, which begins with the word at from. word is null if there is no room for the shadow.
struct Where {
	u64 from;
	u64 *word;
	History *history;
};

// find returns the range that contains an access, or null if there is none.
static __device__ const Range *find(const Range *range, u64 ranges, u64 address, u32 size)
{
	u64 n = upTo(range, ranges, address);
	const Range *r = range + n - 1;
	return n > 0 && address - r->from < r->bytes && size <= r->bytes - (address - r->from) ? r : nullptr;
}

// shadow finds the shadow of shared memory of a block or of global memory. It returns false for memory that is to have
// none: memory that is not selected, and invalid addresses, for which the device reports a fault.
static __device__ bool shadow(State *s, bool shared, u64 b, u64 address, u32 size, Where *w)
{
	const Range *r = shared ? find(s->sharedRange, s->sharedRanges, address, size) : find(s->range, s->ranges, address, size);
	if (!r)
		return false;
	long long p = shared ? part(s, b) : 0;
	u64 skip = shared ? p * s->sharedWords : 0;
	w->from = r->from;
	w->word = p < 0 || !r->word ? nullptr : r->word + skip;
	w->history = r->history ? r->history + skip : nullptr;
	return true;
}

extern "C" __device__ __noinline__ void __fencepost_access(u64 address, u64 what)
{
	u32 lanes = __activemask();
	State *s = __fencepost_state;
	u64 b = block();
	if (!s || s->stopped || b >= s->groups)
		return;
	u32 me = thisThread(), caller = load(&s->caller[me]);
	bool there = !(caller & unchecked);
	lanes = __ballot_sync(lanes, there);
	if (!there)
		return;
	u32 space = what >> spaceShift & 3, size = what >> sizeShift & 255, site = (u32)what, leader = __ffs(lanes) - 1;
	u32 number = 0;
	if (lane() == leader)
		number = atomicAdd(&s->sequence[warp()], 1);
	number = __shfl_sync(lanes, number, leader);
	const void *p = (const void *)address;
	bool inside = space == inShared || (space == inGeneric && __isShared(p));
	if (inside && space == inGeneric)
		address = __cvta_generic_to_shared(p);
	Where w;
	there = (address & (size - 1)) == 0 && !(space == inGeneric && __isLocal(p)) && shadow(s, inside, b, address, size, &w);
	if (there && !w.word) {
		atomicAdd(&s->untracked, 1);
		there = false;
	}
	lanes = __ballot_sync(lanes, there);
	if (!there)
		return;
	Access t;
	u32 place = caller ? nodeOf(s, caller, site) : 0;
	t.s = s;
	t.thread = (u64)load(&s->clock[me]) << clockShift | (u64)me << threadShift;
	t.action = what >> accessShift & 3;
	t.trace = (u64)number << sequenceShift | t.action << actionShift | (place ? (1 << (placeBits - 1)) + place : site + 1);
	t.perBlock = (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
	t.firstWarp = (u32)b * t.perBlock;
	t.address = address;
	t.shared = inside;
	// Lanes that touch the same words take turns, so that no lane waits for another lane of its warp.
	u32 same = __match_any_sync(lanes, address / max(size, 4) << 1 | inside);
	u32 turn = __popc(same & ((1u << lane()) - 1));
	for (u32 i = 0;; i++) {
		if (turn == i)
			check(t, w.from, size, w.word, w.history, address);
		if (!__any_sync(lanes, turn > i))
			break;
	}
}

// copy is called before an asynchronous copy that reads n bytes of global memory. It reads in pieces whose sizes are
// powers of two, the largest first. what describes the write.
extern "C" __device__ __noinline__ void __fencepost_copy(u64 to, u64 from, u64 n, u64 what)
{
	u32 size = what >> sizeShift & 255, site = (u32)what;
	n = n < size ? n : size;
	for (u64 piece = size; piece != 0; piece /= 2) {
		if (n & piece) {
			__fencepost_access(from, site | piece << sizeShift | (u64)read << accessShift | (u64)inGlobal << spaceShift);
			from += piece;
		}
	}
	__fencepost_access(to, what);
}

// Fields of the word that describes a matrix. internal/instrument writes it.
enum { lineShift = 16, elementShift = 48 }; // in bytes; the low bits are the number of pieces

// tile is called before lanes access a matrix together. The matrix consists of pieces of lines that are stride elements
// apart. what describes the access to a piece.
extern "C" __device__ __noinline__ void __fencepost_tile(u64 address, u64 stride, u64 shape, u64 what)
{
	u64 piece = what >> sizeShift & 255, line = shape >> lineShift & 0xffffffff;
	u32 pieces = shape & 0xffff;
	for (u32 q = lane(); q < pieces; q += 32) {
		u64 at = q * piece;
		__fencepost_access(address + at / line * stride * (shape >> elementShift) + at % line, what);
	}
}

// overflows ends all checking of the launch and returns true if a clock would overflow.
static __device__ bool overflows(State *s, u32 clock)
{
	if (clock != s->lastTick)
		return false;
	atomicExch(&s->stopped, 1);
	return true;
}

static __device__ State *clocked() // null if clocks need not be kept
{
	State *s = __fencepost_state;
	return s && block() < s->groups ? s : nullptr;
}

static __device__ Barrier *barrierOf(State *s, u32 id) { return s->barrier + block() * s->barriers + id; }

// arrive is called before a barrier. It returns the phase.
extern "C" __device__ __noinline__ u32 __fencepost_arrive(u32 id)
{
	State *s = clocked();
	if (!s || id >= s->barriers)
		return 0;
	Barrier *b = barrierOf(s, id);
	u32 phase = load(&b->phase);
	atomicMax(&b->latest[phase & 1], (u64)(phase + 1) << 32 | load(&s->clock[thisThread()]));
	return phase;
}

// passed is called after a barrier by the threads that waited. Their clock becomes greater than that of each thread
// that arrived.
extern "C" __device__ __noinline__ void __fencepost_passed(u32 id, u32 phase)
{
	State *s = clocked();
	if (!s || id >= s->barriers)
		return;
	Barrier *b = barrierOf(s, id);
	u64 latest = load(&b->latest[phase & 1]);
	u32 *mine = &s->clock[thisThread()];
	u32 clock = latest >> 32 == phase + 1 ? (u32)latest : load(mine);
	if (!overflows(s, clock >> 16))
		store(mine, (clock & ~0xffffu) + 0x10000 | load(mine) & 0xffff);
	atomicCAS(&b->phase, phase, phase + 1);
}

// together is called after a warp barrier. The clock of the lanes that waited becomes greater than that of each of
// them.
extern "C" __device__ __noinline__ void __fencepost_together(u32 members)
{
	State *s = clocked();
	if (!s || !(members >> lane() & 1))
		return;
	u32 me = thisThread(), latest = 0;
	for (u32 m = members; m != 0; m &= m - 1)
		latest = max(latest, load(&s->clock[(me & ~31u) + __ffs(m) - 1]) & 0xffff);
	__syncwarp(members);
	if (!overflows(s, latest))
		store(&s->clock[me], load(&s->clock[me]) & ~0xffffu | latest + 1);
	__syncwarp(members);
}

// exit is called before the end of a thread. The last thread of a block frees the shadow of its shared memory.
extern "C" __device__ __noinline__ void __fencepost_exit()
{
	State *s = clocked();
	if (!s)
		return;
	store(&s->clock[thisThread()], 0u); // the thread no longer counts at warp barriers
	u64 b = block();
	__threadfence();
	u32 before = atomicAdd(&s->block[b].exited, 1);
	__threadfence();
	u32 p = load(&s->block[b].shadow);
	if (before + 1 != blockDim.x * blockDim.y * blockDim.z || p == 0)
		return;
	u64 n = s->sharedWords, first = (p - 1) * n;
	for (u64 i = 0; i < n; i++) {
		s->sharedWord[first + i] = initial;
		if (s->sharedHistory)
			s->sharedHistory[first + i] = {};
	}
	asm volatile("st.release.gpu.global.u32 [%0], 0;" : : "l"(__cvta_generic_to_global(&s->owner[p - 1])) : "memory");
}

// enter is called before a call. It returns the argument for leave, which is called after the call.
extern "C" __device__ __noinline__ u32 __fencepost_enter(u32 site)
{
	State *s = clocked();
	if (!s)
		return 0;
	u32 *caller = &s->caller[thisThread()], was = load(caller);
	if (u32 n = nodeOf(s, was & ~unchecked, site))
		store(caller, n | was & unchecked);
	return was & ~unchecked;
}

extern "C" __device__ __noinline__ void __fencepost_leave(u32 caller)
{
	if (State *s = clocked()) {
		u32 *p = &s->caller[thisThread()];
		store(p, caller | load(p) & unchecked);
	}
}

// The functions of fencepost.h, which do nothing in the original program.

extern "C" __device__ __noinline__ void __fencepost_check_thread(u32 on)
{
	if (State *s = clocked()) {
		u32 *p = &s->caller[thisThread()];
		store(p, load(p) & ~off | (on ? 0 : off));
	}
}

// forget resets a location, with checking on or off.
static __device__ void forget(u64 *word, History *h, u32 on)
{
	take(word);
	if (h)
		*h = {};
	storeRelease(word, on ? initial : UNCHECKED);
}

extern "C" __device__ __noinline__ void __fencepost_check_memory(u64 address, u64 size, u32 on)
{
	State *s = clocked();
	const void *p = (const void *)address;
	bool shared = __isShared(p);
	if (!s || size == 0 || __isLocal(p))
		return;
	if (shared)
		address = __cvta_generic_to_shared(p);
	u64 end = address + size < address ? ~0ull : address + size;
	const Range *range = shared ? s->sharedRange : s->range;
	u64 n = shared ? s->sharedRanges : s->ranges, i = upTo(range, n, address);
	for (i -= i > 0; i < n && range[i].from < end; i++) {
		u64 from = max(address, range[i].from), stop = range[i].from + range[i].bytes, to = end < stop ? end : (stop + 3) & ~3ull;
		Where w;
		if (from >= to || !shadow(s, shared, block(), from, 1, &w) || !w.word)
			continue;
		for (u64 at = from, next; at < to; at = next) {
			next = min((at & ~3ull) + 4, to);
			u64 *word = w.word + (at - w.from) / 4;
			History *h = w.history ? w.history + (at - w.from) / 4 : nullptr;
			if (next - at == 4) {
				forget(word, h, on);
				continue;
			}
			long long b = bytes(s, word, h); // the other bytes of the word do not change
			for (u64 k = at; b >= 0 && k < next; k++)
				forget(s->byteWord + 4 * b + k % 4, h ? s->byteHistory + 4 * b + k % 4 : nullptr, on);
			if (b < 0)
				atomicAdd(&s->untracked, 1);
		}
	}
}
