// Creation and joining of threads.

// The numbers of threads by their handles. The search in this table begins at the place of the handle.
enum { HANDLES = 1 << 13 };
static struct handle { u64 handle; u32 number; } handles[HANDLES];
static int handles_lock;

static void remember(u64 h, u32 number) {
	while (__atomic_exchange_n(&handles_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	for (u32 i = 0, at = h >> 12; i < HANDLES; i++, at++) {
		struct handle *x = &handles[at % HANDLES];
		if (!x->handle || x->handle == h) {
			x->handle = h, x->number = number;
			break;
		}
	}
	__atomic_store_n(&handles_lock, 0, __ATOMIC_RELEASE);
}

static int known(u64 h, u32 *number) {
	int found = 0;
	while (__atomic_exchange_n(&handles_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	for (u32 i = 0, at = h >> 12; i < HANDLES && handles[at % HANDLES].handle; i++, at++)
		if (handles[at % HANDLES].handle == h) {
			*number = handles[at % HANDLES].number;
			found = 1;
			break;
		}
	__atomic_store_n(&handles_lock, 0, __ATOMIC_RELEASE);
	return found;
}

// newborn is what a thread gets from its creator. The creator waits until the thread has copied it.
struct newborn {
	void *(*run)(void *);
	int (*run11)(void *);
	void *argument;
	u32 number;
	int begun;
};

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

// last is one of the destructors of a thread's data. Other destructors may run after it once, and are recorded: last
// asks to be called again.
static void last(void *n) {
	if ((uptr)n > 1)
		pthread_setspecific(key, (void *)((uptr)n - 1));
	else
		finish();
}

static void make_key(void) { pthread_key_create(&key, last); }

// adopt handles a thread whose creation was not recorded. The thread can be joined, and it can end before the process.
static void adopt(void) {
	if (!self)
		return;
	remember((u64)pthread_self(), self->number);
	REAL(pthread_once)(&key_once, make_key);
	pthread_setspecific(key, (void *)3);
}

static struct newborn hello(void *p) {
	struct newborn *n = p, mine = *n;
	remember((u64)pthread_self(), mine.number);
	if (region)
		start(mine.number, 1);
	pthread_setspecific(key, (void *)3);
	__atomic_store_n(&n->begun, 1, __ATOMIC_RELEASE);
	return mine;
}

static void *run_thread(void *p) {
	struct newborn n = hello(p);
	return n.run(n.argument);
}

static int run_thread11(void *p) {
	struct newborn n = hello(p);
	return n.run11(n.argument);
}

static int create(struct newborn *n, uptr pc) {
	int off = over || (!self && !begin());
	if (!off) {
		REAL(pthread_once)(&key_once, make_key);
		n->number = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
		record(NULL, FORK, 0, n->number, pc);
	}
	return !off;
}

// begun waits until a new thread has begun. A thread that could not be created counts as joined.
static void begun(struct newborn *n, int ok, uptr pc) {
	if (!ok)
		record(NULL, JOIN, 1, n->number, pc);
	for (int i = 0; ok && !__atomic_load_n(&n->begun, __ATOMIC_ACQUIRE); i++)
		nap(i);
}

EXPORT int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *argument) {
	struct newborn n = {.run = run, .argument = argument};
	if (!create(&n, RETURN_ADDRESS))
		return REAL(pthread_create)(t, a, run, argument);
	int e = REAL(pthread_create)(t, a, run_thread, &n);
	begun(&n, !e, RETURN_ADDRESS);
	return e;
}

EXPORT int thrd_create(thrd_t *t, int (*run)(void *), void *argument) {
	struct newborn n = {.run11 = run, .argument = argument};
	if (!create(&n, RETURN_ADDRESS))
		return REAL(thrd_create)(t, run, argument);
	int e = REAL(thrd_create)(t, run_thread11, &n);
	begun(&n, e == thrd_success, RETURN_ADDRESS);
	return e;
}

// The number is looked up first, because after the join another thread may have the handle.
#define JOINING(name, params, args) \
	EXPORT int name params { \
		u32 number; \
		int is = known((u64)t, &number); \
		int e = REAL(name) args; \
		if (is && !e) \
			record(NULL, JOIN, 0, number, RETURN_ADDRESS); \
		if (result && !e && TRACED) \
			WRITES_TO(result, sizeof *result); \
		return e; \
	}
JOINING(pthread_join, (pthread_t t, void **result), (t, result))
JOINING(pthread_tryjoin_np, (pthread_t t, void **result), (t, result))
JOINING(pthread_timedjoin_np, (pthread_t t, void **result, const struct timespec *until), (t, result, until))
JOINING(pthread_clockjoin_np, (pthread_t t, void **result, clockid_t c, const struct timespec *until), (t, result, c, until))
JOINING(thrd_join, (thrd_t t, int *result), (t, result))
