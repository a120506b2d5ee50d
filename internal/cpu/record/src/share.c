// Work of OpenMP that any thread may get: single regions, sections, and loops with the schedules dynamic, guided and
// runtime.
//
// If there is little work, the first thread gets all of it, and no race can be observed. So a thread that has got the
// last share waits until another thread has asked for one. It waits some hundredths of a second at most, and only the
// first times at each place of the program. The wait orders nothing.

enum { SHARERS = 64, TURNS = 16, MOMENT = 300 };
static struct { uptr pc; u32 turns; } sharers[SHARERS]; // by the addresses of places in the program
static u32 last_share; // number of the thread that got the last share, plus one; 0 if no thread is to wait

static void offer(uptr pc) {
	struct thread *t = self;
	if (!t || __atomic_load_n(&last_share, __ATOMIC_RELAXED) != t->number + 1)
		return;
	uptr none = 0;
	u32 at = (pc ^ pc >> 6) % SHARERS;
	if (!__atomic_compare_exchange_n(&sharers[at].pc, &none, pc, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) && none != pc)
		return;
	u32 *turns = &sharers[at].turns;
	if (__atomic_fetch_add(turns, 1, __ATOMIC_RELAXED) >= TURNS || ((int (*)(void))LIBGOMP("omp_get_num_threads"))() < 2)
		return;
	for (int i = 0; __atomic_load_n(&last_share, __ATOMIC_RELAXED) == t->number + 1; i++) {
		if (i == MOMENT) {
			__atomic_fetch_add(turns, TURNS / 2, __ATOMIC_RELAXED); // no other thread has asked
			break;
		}
		nap(i);
	}
}

// came records whether the thread got a share (some), and whether another is left (more).
static void came(int some, int more) {
	if (self && (some || !more))
		__atomic_store_n(&last_share, some ? self->number + 1 : 0, __ATOMIC_RELAXED);
}

// The loops of both libraries have at most ten arguments. Passing more arguments than a loop has is harmless.
#define SHARED(result, name) \
	EXPORT result name(uptr a, uptr b, uptr c, uptr d, uptr e, uptr f, uptr g, uptr h, uptr i, uptr j) { \
		result (*get)(uptr, uptr, uptr, uptr, uptr, uptr, uptr, uptr, uptr, uptr) = LIBGOMP(#name), r; \
		offer(RETURN_ADDRESS); \
		r = get(a, b, c, d, e, f, g, h, i, j); \
		came(r != 0, 0); \
		return r; \
	}
#define SHARED_LOOP(name) SHARED(_Bool, name##_start) SHARED(_Bool, name##_next)
#define SHARED_LOOPS(name) SHARED_LOOP(GOMP_loop_##name) SHARED_LOOP(GOMP_loop_ull_##name)
SHARED_LOOPS(dynamic)
SHARED_LOOPS(guided)
SHARED_LOOPS(runtime)
SHARED_LOOPS(nonmonotonic_dynamic)
SHARED_LOOPS(nonmonotonic_guided)
SHARED_LOOPS(nonmonotonic_runtime)
SHARED_LOOPS(maybe_nonmonotonic_runtime)
SHARED_LOOPS(ordered_dynamic)
SHARED_LOOPS(ordered_guided)
SHARED_LOOPS(ordered_runtime)
SHARED(_Bool, GOMP_loop_start)
SHARED(_Bool, GOMP_loop_ull_start)
SHARED(unsigned, GOMP_sections_start)
SHARED(unsigned, GOMP_sections2_start)
SHARED(unsigned, GOMP_sections_next)
SHARED(int, __kmpc_dispatch_next_4)
SHARED(int, __kmpc_dispatch_next_4u)
SHARED(int, __kmpc_dispatch_next_8)
SHARED(int, __kmpc_dispatch_next_8u)

// A thread that finds a single region taken says nothing about the next region.
EXPORT _Bool GOMP_single_start(void) {
	_Bool (*f)(void) = LIBGOMP("GOMP_single_start"), r;
	offer(RETURN_ADDRESS);
	came(r = f(), 1);
	return r;
}

EXPORT int __kmpc_single(void *location, int thread) {
	int (*f)(void *, int) = LIBGOMP("__kmpc_single"), r;
	offer(RETURN_ADDRESS);
	came(r = f(location, thread), 1);
	return r;
}
