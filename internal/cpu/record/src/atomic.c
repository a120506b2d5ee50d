// Atomic operations. The compiler calls these functions instead. They perform the operation and record it.
//
// A lock for a set of addresses (a stripe) makes the operation and its ticket one step, so the checker sees the
// modification order of each object. In the number of a record, bit 0 means reads, bit 1 means writes, 3 bits are the
// memory order, and 3 more bits are the order on failure.

enum { STRIPES = 256, READS = 1, WRITES = 2 };

static struct stripe {
	int lock;
	u64 version; // increased twice by each write
	char pad[48];
} stripes[STRIPES];

static inline struct stripe *stripe_of(const volatile void *a) {
	return &stripes[((uptr)a >> 4 ^ (uptr)a >> 12) % STRIPES];
}

static inline void lock_stripe(struct stripe *s) {
	for (int i = 0; __atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE);)
		if (++i > 100)
			sched_yield();
}

// change makes the version odd, and settle makes it even again. A load in between may return either value.
static inline void change(struct stripe *s, u64 does) {
	if (does & WRITES)
		__atomic_store_n(&s->version, s->version + 1, __ATOMIC_SEQ_CST);
}

static inline void unlock_stripe(struct stripe *s) { __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE); }

enum { CONSUME = 1, ACQUIRE, RELEASES, ACQ_REL, SEQ_CST };

// The last loads of a thread. A load that finds the version of the load before gives no new order.
struct loaded { const volatile void *address; u64 version, epoch; };
static __thread struct loaded loads[16] __attribute__((tls_model("initial-exec")));

// settle records an atomic operation while its stripe is locked.
static inline void settle(struct thread *t, struct stripe *s, const volatile void *a, u64 size, u64 does, int order, uptr pc) {
	if (does & WRITES)
		__atomic_store_n(&s->version, s->version + 1, __ATOMIC_RELEASE);
	synchronise(t, (uptr)a, ATOMIC, size, does | (u64)(order & 7) << 2, pc);
}

typedef unsigned __int128 u128;

// A signal handler that interrupts an atomic operation must not wait for its stripe. So an operation of a thread that
// is inside the recorder is performed without a lock and not recorded.
#define OPERATION(a, type, does, order, body) ({ \
	struct thread *t = enter(); \
	struct stripe *s = stripe_of(a); \
	type result; \
	if (!t) { \
		result = (body); \
	} else { \
		lock_stripe(s); \
		change(s, does); \
		result = (body); \
		settle(t, s, a, sizeof(type), does, order, RETURN_ADDRESS); \
		unlock_stripe(s); \
		leave(t); \
	} \
	result; })

// again reports whether the thread has loaded from the address since it was last written.
static inline int again(const volatile void *a, struct thread *t) {
	struct loaded *l = &loads[((uptr)a >> 2) % 16];
	return l->address == a && l->epoch == t->epoch && l->version == __atomic_load_n(&stripe_of(a)->version, __ATOMIC_ACQUIRE);
}

#define LOADED(a) do { struct thread *t = self; if (t) { \
	struct loaded *l = &loads[((uptr)(a) >> 2) % 16]; \
	l->address = (a), l->version = version, l->epoch = t->epoch; } } while (0)

#define ATOMICS(bits, type) \
	EXPORT type __tsan_atomic##bits##_load(const volatile type *a, int order) { \
		struct thread *me = self; \
		if (me && again(a, me)) { \
			type v = __atomic_load_n(a, __ATOMIC_SEQ_CST); \
			if (again(a, me)) \
				return v; \
		} \
		u64 version = 0; \
		type v = OPERATION(a, type, READS, order, (version = s->version, __atomic_load_n(a, __ATOMIC_SEQ_CST))); \
		LOADED(a); \
		return v; \
	} \
	EXPORT void __tsan_atomic##bits##_store(volatile type *a, type v, int order) { \
		OPERATION(a, type, WRITES, order, (__atomic_store_n(a, v, __ATOMIC_SEQ_CST), v)); \
	} \
	EXPORT type __tsan_atomic##bits##_exchange(volatile type *a, type v, int order) { \
		return OPERATION(a, type, READS | WRITES, order, __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST)); \
	} \
	FETCH(bits, type, add) FETCH(bits, type, sub) FETCH(bits, type, and) FETCH(bits, type, or) FETCH(bits, type, xor) FETCH(bits, type, nand) \
	static inline type exchange##bits(volatile type *a, type *expected, type v, int order, int failure, int *ok, uptr pc) { \
		struct thread *t = enter(); \
		if (!t) { \
			*ok = __atomic_compare_exchange_n(a, expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
			return *expected; \
		} \
		struct stripe *s = stripe_of(a); \
		lock_stripe(s); \
		change(s, READS | WRITES); \
		*ok = __atomic_compare_exchange_n(a, expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		__atomic_store_n(&s->version, s->version + 1, __ATOMIC_RELEASE); \
		synchronise(t, (uptr)a, ATOMIC, sizeof(type), (*ok ? READS | WRITES : READS) | (u64)((*ok ? order : failure) & 7) << 2, pc); \
		unlock_stripe(s); \
		leave(t); \
		return *expected; \
	} \
	EXPORT int __tsan_atomic##bits##_compare_exchange_strong(volatile type *a, type *e, type v, int order, int failure) { \
		int ok; \
		exchange##bits(a, e, v, order, failure, &ok, RETURN_ADDRESS); \
		return ok; \
	} \
	EXPORT int __tsan_atomic##bits##_compare_exchange_weak(volatile type *a, type *e, type v, int order, int failure) { \
		int ok; \
		exchange##bits(a, e, v, order, failure, &ok, RETURN_ADDRESS); \
		return ok; \
	} \
	EXPORT type __tsan_atomic##bits##_compare_exchange_val(volatile type *a, type e, type v, int order, int failure) { \
		int ok; \
		return exchange##bits(a, &e, v, order, failure, &ok, RETURN_ADDRESS); \
	}

#define FETCH(bits, type, op) \
	EXPORT type __tsan_atomic##bits##_fetch_##op(volatile type *a, type v, int order) { \
		return OPERATION(a, type, READS | WRITES, order, __atomic_fetch_##op(a, v, __ATOMIC_SEQ_CST)); \
	}

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

EXPORT void __tsan_atomic_thread_fence(int order) {
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	record(NULL, FENCE, 0, (u64)(order & 7) << 2, RETURN_ADDRESS);
}

EXPORT void __tsan_atomic_signal_fence(int order) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// Operations of 16 bytes. The lock of the stripe makes them atomic, since all accesses come here. Whether an operation
// writes may depend on the old value.
#define WIDE(a, does, order, body) ({ \
	struct thread *t = enter(); \
	struct stripe *s = stripe_of(a); \
	lock_stripe(s); \
	u128 old = *a; \
	body; \
	if (t) { \
		settle(t, s, a, 16, does, order, RETURN_ADDRESS); \
	} \
	unlock_stripe(s); \
	if (t) \
		leave(t); \
	old; })

EXPORT u128 __tsan_atomic128_load(const volatile u128 *a, int order) { return WIDE(a, READS, order, (void)0); }
EXPORT void __tsan_atomic128_store(volatile u128 *a, u128 v, int order) { WIDE(a, WRITES, order, *a = v); }
EXPORT u128 __tsan_atomic128_exchange(volatile u128 *a, u128 v, int order) { return WIDE(a, READS | WRITES, order, *a = v); }
#define WIDE_FETCH(name, value) \
	EXPORT u128 __tsan_atomic128_fetch_##name(volatile u128 *a, u128 v, int order) { return WIDE(a, READS | WRITES, order, *a = (value)); }
WIDE_FETCH(add, old + v)
WIDE_FETCH(sub, old - v)
WIDE_FETCH(and, old & v)
WIDE_FETCH(or, old | v)
WIDE_FETCH(xor, old ^ v)
WIDE_FETCH(nand, ~(old & v))

EXPORT u128 __tsan_atomic128_compare_exchange_val(volatile u128 *a, u128 e, u128 v, int order, int failure) {
	return WIDE(a, old == e ? READS | WRITES : READS, old == e ? order : failure, if (old == e) *a = v);
}
EXPORT int __tsan_atomic128_compare_exchange_strong(volatile u128 *a, u128 *e, u128 v, int order, int failure) {
	u128 was = __tsan_atomic128_compare_exchange_val(a, *e, v, order, failure);
	int ok = was == *e;
	*e = was;
	return ok;
}
EXPORT int __tsan_atomic128_compare_exchange_weak(volatile u128 *a, u128 *e, u128 v, int order, int failure) {
	return __tsan_atomic128_compare_exchange_strong(a, e, v, order, failure);
}

// For 16 bytes or more, where clang knows no instruction, it calls libatomic, which is not instrumented. These
// functions have the names of built-in functions.
#define OF_LIBATOMIC(name) __asm__("__atomic_" #name)
EXPORT void any_load(size_t n, const volatile void *a, void *to, int order) OF_LIBATOMIC(load);
EXPORT void any_store(size_t n, volatile void *a, void *from, int order) OF_LIBATOMIC(store);
EXPORT void any_exchange(size_t n, volatile void *a, void *from, void *to, int order) OF_LIBATOMIC(exchange);
EXPORT _Bool any_compare_exchange(size_t n, volatile void *a, void *e, void *from, int order, int failure) OF_LIBATOMIC(compare_exchange);

// ANY executes body while the stripe is locked. It records the first bytes of the variable: a power of two, at most 16.
#define ANY(n, a, does, order, body) do { \
	struct thread *t = enter(); \
	struct stripe *s = stripe_of(a); \
	lock_stripe(s); \
	body; \
	if (t) \
		settle(t, s, a, (n) >= 16 ? 16 : 1ULL << (63 - __builtin_clzll(n)), does, order, RETURN_ADDRESS); \
	unlock_stripe(s); \
	if (t) \
		leave(t); } while (0)

// memcpy and memcmp would be recorded.
static void copy(volatile char *to, const volatile char *from, size_t n) {
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
}

static _Bool same(const volatile char *a, const volatile char *b, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

void any_load(size_t n, const volatile void *a, void *to, int order) { ANY(n, a, READS, order, copy(to, a, n)); }
void any_store(size_t n, volatile void *a, void *from, int order) { ANY(n, a, WRITES, order, copy(a, from, n)); }
void any_exchange(size_t n, volatile void *a, void *from, void *to, int order) {
	ANY(n, a, READS | WRITES, order, (copy(to, a, n), copy(a, from, n)));
}
_Bool any_compare_exchange(size_t n, volatile void *a, void *e, void *from, int order, int failure) {
	_Bool ok;
	ANY(n, a, ok ? READS | WRITES : READS, ok ? order : failure, {
		ok = same(a, e, n);
		if (ok)
			copy(a, from, n);
		else
			copy(e, a, n);
	});
	return ok;
}
