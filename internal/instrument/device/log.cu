// Device code of the log. Instrumented programs call it to report their operations to the host (BARRACUDA, section
// 5.5.2).
//
// A record is one slot of 64 bytes. If the addresses are not affine in the lane, four slots of addresses follow. If the
// stored values are not affine in the lane, four slots of values follow.
//
// A block writes to one queue. The first lane of those that execute an operation together reserves slots at the head of
// the queue. It waits until the host has read the old contents of the slots, and publishes the record by a mark in
// its first slot, which the host removes. So no warp waits for another warp, as it would for the commit index of the
// paper. Indices only grow; the slot of an index is its remainder by the size of the queue.
//
// Stamps number the records of a launch over all queues. Synchronising operations run under a lock together with their
// stamps. So for each location, the order of stamps is the order in which the operations took effect. For shared
// memory, which no other block accesses, it is a lock of the block. For other memory it is the lock of the device.
// Other operations get their stamps before they run.
//
// internal/instrument/drain.go reads this layout.

#include "device.h"

struct Slot {
	u64 word[8];
};

struct Queue {
	u64 head; // the next slot to be reserved
	u64 read; // the next slot that the host will read; the host writes it
	u64 unused[6];
};

// Lock gives warps turns in the order of arrival, so that no warp waits forever.
struct Lock {
	u32 ticket; // the next ticket
	u32 turn;   // the ticket whose turn it is
};

struct Log {
	u64 queues;
	u64 slots; // of each queue; a power of two
	u64 stamp; // of the next record
	Lock device; // for synchronising operations
	Queue *queue;
	Slot *slot;
	u64 locks; // a power of two
	Lock *lock; // likewise, by block
};

// Flags in Slot.word[3]. A slot that is not published has 0 there.
enum { generic = 1, shared = 2, scattered = 4, stores = 8, scatteredData = 16, published = 32 };

// The log of this device; null if there is no reader.
extern "C" __device__ Log *__fencepost_log = nullptr;

static __device__ u64 reserve(Log *log, Queue *q, u32 n)
{
	u64 at = add(&q->head, n);
	while (at + n - acquire(&q->read) > log->slots)
		__nanosleep(pause);
	return at;
}

// series reports whether the values of the lanes that call it together are affine in the lane. It returns the first
// value and the stride.
static __device__ bool series(u32 lanes, u64 value, u64 *first, u64 *stride)
{
	u32 l = lane(), leader = __ffs(lanes) - 1, rest = lanes & (lanes - 1);
	*first = __shfl_sync(lanes, value, leader);
	long long step = 0;
	if (rest != 0) {
		int second = __ffs(rest) - 1, gap = second - (int)leader;
		long long far = (long long)(__shfl_sync(lanes, value, second) - *first);
		step = gap == 1 ? far : far / gap;
	}
	*stride = (u64)step;
	return __all_sync(lanes, value == *first + (u64)((long long)((int)l - (int)leader) * step));
}

// append writes one record for the lanes that call it together. data are the values that they store. The name is not
// static, because the compiler would add a hash of the folder to it.
extern "C" __device__ __noinline__ void __fencepost_append(Log *log, u32 lanes, u64 value, u64 data, u32 site, u32 flags, u32 failed)
{
	u32 l = lane(), leader = __ffs(lanes) - 1;
	u64 first, stride, firstData = 0, dataStride = 0;
	u32 slots = 1;
	if (!series(lanes, value, &first, &stride)) {
		flags |= scattered;
		slots += 4;
	}
	if (flags & stores && !series(lanes, data, &firstData, &dataStride)) {
		flags |= scatteredData;
		slots += 4;
	}
	u32 failures = __ballot_sync(lanes, failed != 0);

	u64 number = block() % log->queues;
	Queue *q = log->queue + number;
	Slot *slot = log->slot + number * log->slots;
	u64 at = 0;
	if (l == leader)
		at = reserve(log, q, slots);
	at = __shfl_sync(lanes, at, leader);
	if (flags & scattered)
		slot[(at + 1 + l / 8) & (log->slots - 1)].word[l % 8] = value;
	if (flags & scatteredData)
		slot[(at + slots - 4 + l / 8) & (log->slots - 1)].word[l % 8] = data;
	__syncwarp(lanes);
	if (l == leader) {
		Slot *s = slot + (at & (log->slots - 1));
		s->word[0] = add(&log->stamp, 1);
		s->word[1] = (u64)site << 32 | warp();
		s->word[2] = (u64)failures << 32 | lanes;
		s->word[4] = first;
		s->word[5] = stride;
		s->word[6] = firstData;
		s->word[7] = dataStride;
		release(&s->word[3], flags | published);
	}
	__syncwarp(lanes);
}

// split appends a record for the lanes whose generic addresses are in global memory, and one for those in shared
// memory.
static __device__ void split(Log *log, u32 lanes, u64 address, u64 data, u32 site, u32 flags, u32 failed)
{
	const void *p = (const void *)address;
	bool in_shared = __isShared(p), in_global = !in_shared && !__isLocal(p);
	u32 shareds = __ballot_sync(lanes, in_shared), globals = __ballot_sync(lanes, in_global);
	if (in_global)
		__fencepost_append(log, globals, address, data, site, flags | generic, failed);
	__syncwarp(lanes);
	if (in_shared)
		__fencepost_append(log, shareds, __cvta_generic_to_shared(p), data, site, flags | shared, failed);
	__syncwarp(lanes);
}

// operation logs a value for the operation at a site: an address in the space of the instruction, or the value that the
// kind of record has.
extern "C" __device__ __noinline__ void __fencepost_operation(u64 value, u32 site)
{
	u32 lanes = __activemask();
	if (Log *log = __fencepost_log)
		__fencepost_append(log, lanes, value, 0, site, 0, 0);
}

// generic does the same for a generic address.
extern "C" __device__ __noinline__ void __fencepost_generic(u64 address, u32 site)
{
	u32 lanes = __activemask();
	if (Log *log = __fencepost_log)
		split(log, lanes, address, 0, site, 0, 0);
}

// store logs a store of up to 8 bytes of data.
extern "C" __device__ __noinline__ void __fencepost_store(u64 address, u64 data, u32 site)
{
	u32 lanes = __activemask();
	if (Log *log = __fencepost_log)
		__fencepost_append(log, lanes, address, data, site, stores, 0);
}

// store_generic does the same for a generic address.
extern "C" __device__ __noinline__ void __fencepost_store_generic(u64 address, u64 data, u32 site)
{
	u32 lanes = __activemask();
	if (Log *log = __fencepost_log)
		split(log, lanes, address, data, site, stores, 0);
}

static __device__ void enter(Lock *l)
{
	u32 mine = take(&l->ticket);
	while (acquire(&l->turn) != mine)
		__nanosleep(pause);
}

static __device__ void leave(Lock *l) { release(&l->turn, acquire(&l->turn) + 1); }

static __device__ Lock *blockLock(Log *log) { return log->lock + (block() & (log->locks - 1)); }

// begin is called before a synchronising operation on addresses in shared memory or in other memory. It returns the
// lanes that execute the operation together.
static __device__ u32 begin(u32 lanes, bool in_shared)
{
	if (Log *log = __fencepost_log) {
		u32 shareds = __ballot_sync(lanes, in_shared);
		if (lane() == __ffs(lanes) - 1) {
			if (shareds)
				enter(blockLock(log));
			if (shareds != lanes)
				enter(&log->device);
		}
		__syncwarp(lanes);
	}
	return lanes;
}

// end is called after the operation.
static __device__ void end(Log *log, u32 lanes, bool in_shared)
{
	u32 shareds = __ballot_sync(lanes, in_shared);
	if (lane() == __ffs(lanes) - 1) {
		if (shareds != lanes)
			leave(&log->device);
		if (shareds)
			leave(blockLock(log));
	}
	__syncwarp(lanes);
}

extern "C" __device__ __noinline__ u32 __fencepost_begin() { return begin(__activemask(), false); }

extern "C" __device__ __noinline__ u32 __fencepost_begin_shared() { return begin(__activemask(), true); }

extern "C" __device__ __noinline__ u32 __fencepost_begin_generic(u64 address) { return begin(__activemask(), __isShared((const void *)address)); }

static __device__ void finish(u64 address, u32 site, u32 lanes, u32 failed, bool in_shared)
{
	Log *log = __fencepost_log;
	if (!log)
		return;
	__syncwarp(lanes);
	__fencepost_append(log, lanes, address, 0, site, 0, failed);
	end(log, lanes, in_shared);
}

// failed is set if a compare-and-swap has not swapped.
extern "C" __device__ __noinline__ void __fencepost_end(u64 address, u32 site, u32 lanes, u32 failed) { finish(address, site, lanes, failed, false); }

extern "C" __device__ __noinline__ void __fencepost_end_shared(u64 address, u32 site, u32 lanes, u32 failed) { finish(address, site, lanes, failed, true); }

extern "C" __device__ __noinline__ void __fencepost_end_generic(u64 address, u32 site, u32 lanes, u32 failed)
{
	Log *log = __fencepost_log;
	if (!log)
		return;
	__syncwarp(lanes);
	split(log, lanes, address, 0, site, 0, failed);
	end(log, lanes, __isShared((const void *)address));
}
