// Mutexes, read-write locks, spin locks, condition variables, semaphores, barriers and once, of POSIX and C11.
//
// A release is recorded before it is done, and an acquire after.

// LLVM's libomp uses locks internally. They would order threads of unrelated regions, so they are not recorded. The
// callbacks of libomp record the order that OpenMP defines.
static uptr libomp_from, libomp_to;
static int by_libomp(uptr pc) { return pc - libomp_from < libomp_to - libomp_from; }

static void took(void *m, uptr pc) {
	if (!by_libomp(pc))
		record(m, LOCK, OF_MUTEX, 0, pc);
}

static void gives(void *m, uptr pc) {
	if (!by_libomp(pc))
		record(m, UNLOCK, OF_MUTEX, 0, pc);
}

#define LOCKING(result, name, params, args, m) \
	EXPORT result name params { \
		result e = REAL(name) args; \
		if (!e || e == EOWNERDEAD) \
			took(m, RETURN_ADDRESS); \
		return e; \
	}
#define UNLOCKING(name, type) \
	EXPORT int name(type *m) { \
		gives((void *)m, RETURN_ADDRESS); \
		return REAL(name)(m); \
	}

LOCKING(int, pthread_mutex_lock, (pthread_mutex_t *m), (m), m)
LOCKING(int, pthread_mutex_trylock, (pthread_mutex_t *m), (m), m)
LOCKING(int, pthread_mutex_timedlock, (pthread_mutex_t *m, const struct timespec *t), (m, t), m)
LOCKING(int, pthread_mutex_clocklock, (pthread_mutex_t *m, clockid_t c, const struct timespec *t), (m, c, t), m)
UNLOCKING(pthread_mutex_unlock, pthread_mutex_t)
LOCKING(int, pthread_spin_lock, (pthread_spinlock_t *m), (m), (void *)m)
LOCKING(int, pthread_spin_trylock, (pthread_spinlock_t *m), (m), (void *)m)
UNLOCKING(pthread_spin_unlock, pthread_spinlock_t)

// glibc's C11 functions do not call the POSIX ones. thrd_success is 0.
LOCKING(int, mtx_lock, (mtx_t *m), (m), m)
LOCKING(int, mtx_trylock, (mtx_t *m), (m), m)
LOCKING(int, mtx_timedlock, (mtx_t *restrict m, const struct timespec *restrict t), (m, t), m)
UNLOCKING(mtx_unlock, mtx_t)

// A stream, which its holder may use to protect more than the stream.
EXPORT void flockfile(FILE *f) {
	REAL(flockfile)(f);
	took(f, RETURN_ADDRESS);
}
LOCKING(int, ftrylockfile, (FILE *f), (f), f)
EXPORT void funlockfile(FILE *f) {
	gives(f, RETURN_ADDRESS);
	REAL(funlockfile)(f);
}

#define SHARING(name, params, args) \
	EXPORT int name params { \
		int e = REAL(name) args; \
		if (!e) \
			record(m, LOCK_SHARED, OF_MUTEX, 0, RETURN_ADDRESS); \
		return e; \
	}
SHARING(pthread_rwlock_rdlock, (pthread_rwlock_t *m), (m))
SHARING(pthread_rwlock_tryrdlock, (pthread_rwlock_t *m), (m))
SHARING(pthread_rwlock_timedrdlock, (pthread_rwlock_t *restrict m, const struct timespec *restrict t), (m, t))
SHARING(pthread_rwlock_clockrdlock, (pthread_rwlock_t *restrict m, clockid_t c, const struct timespec *restrict t), (m, c, t))
LOCKING(int, pthread_rwlock_wrlock, (pthread_rwlock_t *m), (m), m)
LOCKING(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *m), (m), m)
LOCKING(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *restrict m, const struct timespec *restrict t), (m, t), m)
LOCKING(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *restrict m, clockid_t c, const struct timespec *restrict t), (m, c, t), m)

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *m) {
	record(m, UNLOCK_RW, OF_MUTEX, 0, RETURN_ADDRESS);
	return REAL(pthread_rwlock_unlock)(m);
}

// A cancelled wait locks the mutex again before the cleanup handlers run.
struct waiting { void *mutex; uptr pc; };
static void cancelled(void *w) { took(((struct waiting *)w)->mutex, ((struct waiting *)w)->pc); }

#define WAITING(name, params, args, awoken) \
	EXPORT int name params { \
		struct waiting w = {m, RETURN_ADDRESS}; \
		int e; \
		gives(m, w.pc); \
		pthread_cleanup_push(cancelled, &w); \
		e = REAL(name) args; \
		pthread_cleanup_pop(0); \
		took(m, w.pc); \
		if ((awoken) && !by_libomp(w.pc)) \
			record(c, LEARN, OF_CONDITION, 0, w.pc); \
		return e; \
	}
#define WAKING(name, type) \
	EXPORT int name(type *c) { \
		if (!by_libomp(RETURN_ADDRESS)) \
			record(c, PUBLISH, OF_CONDITION, 0, RETURN_ADDRESS); \
		return REAL(name)(c); \
	}

WAITING(pthread_cond_wait, (pthread_cond_t *restrict c, pthread_mutex_t *restrict m), (c, m), !e)
WAITING(pthread_cond_timedwait, (pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict t), (c, m, t), !e)
WAITING(pthread_cond_clockwait, (pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t clock, const struct timespec *restrict t), (c, m, clock, t), !e)
WAITING(cnd_wait, (cnd_t *c, mtx_t *m), (c, m), !e)
WAITING(cnd_timedwait, (cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict t), (c, m, t), !e)
WAKING(pthread_cond_signal, pthread_cond_t)
WAKING(pthread_cond_broadcast, pthread_cond_t)
WAKING(cnd_signal, cnd_t)
WAKING(cnd_broadcast, cnd_t)

#define SEMAPHORE(name, params, args) \
	EXPORT int name params { \
		int e = REAL(name) args; \
		if (!e) \
			record(s, LEARN, OF_SEMAPHORE, 0, RETURN_ADDRESS); \
		return e; \
	}
SEMAPHORE(sem_wait, (sem_t *s), (s))
SEMAPHORE(sem_trywait, (sem_t *s), (s))
SEMAPHORE(sem_timedwait, (sem_t *restrict s, const struct timespec *restrict t), (s, t))
SEMAPHORE(sem_clockwait, (sem_t *restrict s, clockid_t c, const struct timespec *restrict t), (s, c, t))
EXPORT int sem_post(sem_t *s) {
	record(s, PUBLISH, OF_SEMAPHORE, 0, RETURN_ADDRESS);
	return REAL(sem_post)(s);
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *b) {
	record(b, BARRIER_ENTER, OF_BARRIER, 0, RETURN_ADDRESS);
	int e = REAL(pthread_barrier_wait)(b);
	record(b, BARRIER_LEAVE, OF_BARRIER, 0, RETURN_ADDRESS);
	return e;
}

// A thread that waits for a signal, or reads a signalfd, is ordered after the threads that sent the signal.
static void of_signal(int n, u64 kind, uptr pc) { record((void *)(uptr)n, kind, OF_SIGNAL, 0, pc); }

#define SENDS(name, params, args) \
	EXPORT int name params { \
		of_signal(n, PUBLISH, RETURN_ADDRESS); \
		any(PUBLISH, RETURN_ADDRESS); \
		return REAL(name) args; \
	}
SENDS(pthread_kill, (pthread_t t, int n), (t, n))
SENDS(pthread_sigqueue, (pthread_t t, int n, const union sigval v), (t, n, v))
SENDS(kill, (pid_t p, int n), (p, n))
SENDS(raise, (int n), (n))
SENDS(sigqueue, (pid_t p, int n, const union sigval v), (p, n, v))

// A thread that the C library creates for an event is ordered after the program's request for it: see begin.
#define ASKS(name, params, args) \
	EXPORT int name params { \
		record(&asked_for, PUBLISH, OF_SIGNAL, 0, RETURN_ADDRESS); \
		return REAL(name) args; \
	}
ASKS(timer_create, (clockid_t c, struct sigevent *restrict e, timer_t *restrict t), (c, e, t))
ASKS(timer_settime, (timer_t t, int flags, const struct itimerspec *restrict when, struct itimerspec *restrict before), (t, flags, when, before))
ASKS(mq_notify, (mqd_t q, const struct sigevent *e), (q, e))

EXPORT int sigwait(const sigset_t *restrict set, int *restrict n) {
	int e = REAL(sigwait)(set, n);
	if (!e)
		of_signal(*n, LEARN, RETURN_ADDRESS);
	return e;
}

#define WAITS_FOR_SIGNAL(name, params, args) \
	EXPORT int name params { \
		int n = REAL(name) args; \
		if (n > 0) \
			of_signal(n, LEARN, RETURN_ADDRESS); \
		return n; \
	}
WAITS_FOR_SIGNAL(sigwaitinfo, (const sigset_t *restrict set, siginfo_t *restrict i), (set, i))
WAITS_FOR_SIGNAL(sigtimedwait, (const sigset_t *restrict set, siginfo_t *restrict i, const struct timespec *restrict t), (set, i, t))

// once is the current call of the thread. Init functions may make further calls.
struct once { void *control; void (*init)(void); uptr pc; struct once *outer; };
static __thread struct once *once __attribute__((tls_model("initial-exec")));

static void init_once(void) {
	struct once *o = once;
	o->init();
	record(o->control, PUBLISH, OF_ONCE, 0, o->pc);
}

#define ONCE(result, name, type) \
	EXPORT result name(type *control, void (*init)(void)) { \
		struct once o = {control, init, RETURN_ADDRESS, once}; \
		once = &o; \
		AROUND_##result(REAL(name)(control, init_once)); \
	}
#define AROUND_int(call) int e = call; once = o.outer; record(control, LEARN, OF_ONCE, 0, o.pc); return e
#define AROUND_void(call) call; once = o.outer; record(control, LEARN, OF_ONCE, 0, o.pc)
ONCE(int, pthread_once, pthread_once_t)
ONCE(void, call_once, once_flag)

// Guards of static variables in functions. The compiler reads the first byte of a guard with acquire.
extern int __cxa_guard_acquire(u64 *) __attribute__((weak));
extern void __cxa_guard_release(u64 *) __attribute__((weak));
static int (*guard_acquire)(u64 *);
static void (*guard_release)(u64 *);

EXPORT int __cxa_guard_acquire(u64 *g) {
	if (!guard_acquire)
		guard_acquire = real("__cxa_guard_acquire");
	int first = guard_acquire(g);
	record(g, LEARN, OF_ATOMIC, 0, RETURN_ADDRESS);
	return first;
}

EXPORT void __cxa_guard_release(u64 *g) {
	if (!guard_release)
		guard_release = real("__cxa_guard_release");
	record(g, PUBLISH, OF_ATOMIC, 0, RETURN_ADDRESS);
	guard_release(g);
}

// std::promise::set_value_at_thread_exit. libstdc++ makes the state of the future ready at the end of the thread, by a
// store to the status of the state. That store is recorded before it is done: a thread that loads the status afterwards
// is ordered after this thread.
struct make_ready {
	void *next;
	void (*run)(void *);
	char *state;                       // a std::weak_ptr: the object, in which the status follows two pointers,
	struct { void *table; int uses, others; } *count; // and its reference counts
};
static void (*run_ready)(void *);

static void ready_at_exit(void *p) {
	struct make_ready *r = p;
	struct thread *t = r->count && __atomic_load_n(&r->count->uses, __ATOMIC_RELAXED) ? enter() : NULL;
	if (t) {
		char *status = r->state + 2 * sizeof(void *);
		struct stripe *s = stripe_of(status);
		lock_stripe(s);
		change(s, WRITES);
		settle(t, s, status, sizeof(int), WRITES, RELEASES, 0);
		unlock_stripe(s);
		leave(t);
	}
	run_ready(p);
}

EXPORT void _ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv(struct make_ready *r) {
	REAL(_ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv)(r);
	__atomic_store_n(&run_ready, r->run, __ATOMIC_RELAXED);
	r->run = ready_at_exit;
}
