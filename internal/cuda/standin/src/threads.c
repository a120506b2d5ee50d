// threads.c: records what orders the host threads of a program. This library is loaded before all others (LD_PRELOAD),
// so it gets the calls of POSIX threads first: mutexes, condition variables, semaphores, barriers, read-write and spin
// locks, pthread_once, and the creation and joining of threads. Vector clocks determine which CUDA calls of other
// threads are ordered before a call. The other libraries query them at each of their calls (fencepost_threads). Nothing
// is recorded until a process has a second thread.
//
// The clock of a thread has, for each thread that has called CUDA, the number of its closed epochs. A thread's calls
// are in the epoch after its closed ones. The epoch is closed when the thread releases something.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;

#include "gen_wire.h"

#define EXPORT __attribute__((visibility("default")))

enum {
  fpNumbers = FP_THREADS, // threads that call CUDA; further threads share the last number
  fpObjects = 1 << 14,
  fpPhases = 4, // phases of a barrier that are distinguished
};

typedef u64 fp_clock[fpNumbers];

// An object that threads release to and acquire from, identified by its address. An object with several clocks has one
// entry for each, at adjacent addresses.
struct fp_object {
  uintptr_t key;
  u32 count, arrivals; // count: threads of a barrier; arrivals: at a barrier, or readers that hold a lock
  fp_clock clock;
};

static struct fp_object objects[fpObjects];
static fp_clock overflow; // one clock for all objects that there was no room for
static u32 used;          // number of objects
static int overflowed;
static fp_clock closed;   // number of closed epochs, by thread number
static u32 numbers;       // how many numbers are in use
static int several;       // there has been a second thread
static int called;        // CUDA has been called
static int lock;
static pthread_key_t leaving;

static __thread struct {
  int known;          // it began here, or is the first thread of the process
  int numbered, open; // it has a number; it has called CUDA in its epoch
  u32 number;
  u64 told; // one more than the number of closed epochs when it last reported them
  fp_clock clock, telling;
  void (*waits)(void); // for a thread that executes a function for a stream: called before the thread waits
} self;
static __thread int inside; // calls from inside this library are not recorded

static int fp_enter(void) {
  if (inside || !self.known) return 0;
  inside = 1;
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
  return 1;
}

static void fp_leave(void) {
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  inside = 0;
}

// fp_live reports whether the order of threads matters. Before it does, all clocks are zero.
static int fp_live(void) { return __atomic_load_n(&several, __ATOMIC_RELAXED) && __atomic_load_n(&called, __ATOMIC_RELAXED); }

static void fp_join(u64 *to, const u64 *from) {
  for (u32 i = 0; i < numbers; i++)
    if (from[i] > to[i]) to[i] = from[i];
}

// fp_find returns an object. If make is set, it makes a missing one. It returns NULL if there is none, or no room.
static struct fp_object *fp_find(uintptr_t key, int make) {
  u32 i = (u32)((key * 0x9e3779b97f4a7c15u) >> 50);
  for (; objects[i].key; i = (i + 1) % fpObjects)
    if (objects[i].key == key) return &objects[i];
  if (!make) return NULL;
  if (used > fpObjects / 4 * 3) {
    overflowed = 1;
    return NULL;
  }
  used++;
  objects[i].key = key;
  return &objects[i];
}

static void fp_release_to(u64 *clock) {
  if (self.open) self.clock[self.number] = ++closed[self.number], self.open = 0;
  fp_join(clock, self.clock);
}

static void fp_release_locked(uintptr_t key) {
  struct fp_object *o = fp_find(key, 1);
  fp_release_to(o ? o->clock : overflow);
}

static void fp_acquire_locked(uintptr_t key) {
  const struct fp_object *o = fp_find(key, 0);
  if (o) fp_join(self.clock, o->clock);
  if (overflowed) fp_join(self.clock, overflow);
}

static void fp_clear_locked(uintptr_t key) {
  struct fp_object *o = fp_find(key, 0);
  if (o) memset(o->clock, 0, sizeof o->clock), o->arrivals = 0;
}

static void fp_release(const volatile void *object) {
  if (!fp_live() || !fp_enter()) return;
  fp_release_locked((uintptr_t)object);
  fp_leave();
}

static void fp_acquire(const volatile void *object) {
  if (!fp_live() || !fp_enter()) return;
  fp_acquire_locked((uintptr_t)object);
  fp_leave();
}

static void *fp_real(const char *name) {
  // Old programs use condition variables of another layout under the same names.
  void *f = strncmp(name, "pthread_cond", 12) ? NULL : dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return f ? f : dlsym(RTLD_NEXT, name);
}

// REAL declares the system's function of a name, with its type.
#define REAL(name)                                                                            \
  static __typeof__(&name) real;                                                              \
  if (!__atomic_load_n(&real, __ATOMIC_RELAXED)) __atomic_store_n(&real, (__typeof__(&name))fp_real(#name), __ATOMIC_RELAXED)

// ACQUIRES and RELEASES define functions that acquire from, or release to, the object of their first argument.
#define ACQUIRES(name, parameters, arguments, object) \
  EXPORT int name parameters {                        \
    REAL(name);                                       \
    int e = real arguments;                           \
    if (!e) fp_acquire(object);                       \
    return e;                                         \
  }
#define RELEASES(name, parameters, arguments, object) \
  EXPORT int name parameters {                        \
    REAL(name);                                       \
    fp_release(object);                               \
    return real arguments;                            \
  }
// fp_waits is called when this thread is about to wait.
static void fp_waits(void) {
  if (self.waits) self.waits();
}

// A mutex whose owner has died is acquired too (EOWNERDEAD).
#define LOCKS(name, parameters, arguments, object)  \
  EXPORT int name parameters {                      \
    REAL(name);                                     \
    int e = real arguments;                         \
    if (!e || e == EOWNERDEAD) fp_acquire(object);  \
    return e;                                       \
  }

EXPORT int pthread_mutex_lock(pthread_mutex_t *m) {
  REAL(pthread_mutex_lock);
  int e = self.waits ? pthread_mutex_trylock(m) : EBUSY;
  if (e != EBUSY) return e;
  fp_waits();
  e = real(m);
  if (!e || e == EOWNERDEAD) fp_acquire(m);
  return e;
}
LOCKS(pthread_mutex_trylock, (pthread_mutex_t * m), (m), m)
LOCKS(pthread_mutex_timedlock, (pthread_mutex_t * m, const struct timespec *t), (m, t), m)
RELEASES(pthread_mutex_unlock, (pthread_mutex_t * m), (m), m)

ACQUIRES(pthread_spin_lock, (pthread_spinlock_t * s), (s), s)
ACQUIRES(pthread_spin_trylock, (pthread_spinlock_t * s), (s), s)
RELEASES(pthread_spin_unlock, (pthread_spinlock_t * s), (s), s)

RELEASES(sem_post, (sem_t * s), (s), s)
EXPORT int sem_wait(sem_t *s) {
  REAL(sem_wait);
  if (self.waits && sem_trywait(s) == 0) return 0;
  fp_waits();
  int e = real(s);
  if (!e) fp_acquire(s);
  return e;
}
ACQUIRES(sem_trywait, (sem_t * s), (s), s)
ACQUIRES(sem_timedwait, (sem_t * s, const struct timespec *t), (s, t), s)

RELEASES(pthread_cond_signal, (pthread_cond_t * c), (c), c)
RELEASES(pthread_cond_broadcast, (pthread_cond_t * c), (c), c)

// fp_waited is called when a wait for a condition variable ends.
static int fp_waited(int e, pthread_cond_t *c, pthread_mutex_t *m) {
  if (!e) fp_acquire(c);
  fp_acquire(m);
  return e;
}

EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
  REAL(pthread_cond_wait);
  fp_release(m);
  fp_waits();
  return fp_waited(real(c, m), c, m);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t) {
  REAL(pthread_cond_timedwait);
  fp_release(m);
  fp_waits();
  return fp_waited(real(c, m, t), c, m);
}

#if __GLIBC_PREREQ(2, 30)
LOCKS(pthread_mutex_clocklock, (pthread_mutex_t * m, clockid_t k, const struct timespec *t), (m, k, t), m)
ACQUIRES(sem_clockwait, (sem_t * s, clockid_t k, const struct timespec *t), (s, k, t), s)

EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t k, const struct timespec *t) {
  REAL(pthread_cond_clockwait);
  fp_release(m);
  fp_waits();
  return fp_waited(real(c, m, k, t), c, m);
}
#endif

// A reader of a read-write lock is ordered after earlier writers, and a writer after all earlier holders. The readers'
// clock is adjacent to that of the writers.
static uintptr_t fp_readers(const void *l) { return (uintptr_t)l + 1; }

static int fp_shares(int e, const void *l) {
  if (e || !fp_live() || !fp_enter()) return e;
  struct fp_object *readers = fp_find(fp_readers(l), 1);
  if (readers) readers->arrivals++;
  fp_acquire_locked((uintptr_t)l);
  fp_leave();
  return e;
}

static int fp_owns(int e, const void *l) {
  if (e || !fp_live() || !fp_enter()) return e;
  fp_acquire_locked((uintptr_t)l);
  fp_acquire_locked(fp_readers(l));
  fp_leave();
  return e;
}

#define SHARES(name, parameters, arguments) \
  EXPORT int name parameters {              \
    REAL(name);                             \
    return fp_shares(real arguments, l);    \
  }
#define OWNS(name, parameters, arguments) \
  EXPORT int name parameters {            \
    REAL(name);                           \
    return fp_owns(real arguments, l);    \
  }
SHARES(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
SHARES(pthread_rwlock_tryrdlock, (pthread_rwlock_t * l), (l))
SHARES(pthread_rwlock_timedrdlock, (pthread_rwlock_t * l, const struct timespec *t), (l, t))
OWNS(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
OWNS(pthread_rwlock_trywrlock, (pthread_rwlock_t * l), (l))
OWNS(pthread_rwlock_timedwrlock, (pthread_rwlock_t * l, const struct timespec *t), (l, t))
#if __GLIBC_PREREQ(2, 30)
SHARES(pthread_rwlock_clockrdlock, (pthread_rwlock_t * l, clockid_t k, const struct timespec *t), (l, k, t))
OWNS(pthread_rwlock_clockwrlock, (pthread_rwlock_t * l, clockid_t k, const struct timespec *t), (l, k, t))
#endif

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l) {
  REAL(pthread_rwlock_unlock);
  if (fp_live() && fp_enter()) {
    struct fp_object *readers = fp_find(fp_readers(l), 1);
    int reads = readers && readers->arrivals; // otherwise it is a writer, or a reader that began before the process had two threads
    if (reads)
      readers->arrivals--;
    else
      fp_release_locked((uintptr_t)l);
    fp_release_locked(fp_readers(l));
    fp_leave();
  }
  return real(l);
}

EXPORT int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *a, unsigned count) {
  REAL(pthread_barrier_init);
  int e = real(b, a, count);
  if (!e && fp_enter()) {
    struct fp_object *o = fp_find((uintptr_t)b, 1);
    if (o) o->count = count, o->arrivals = 0;
    fp_leave();
  }
  return e;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *b) {
  REAL(pthread_barrier_wait);
  uintptr_t phase = (uintptr_t)b;
  if (fp_enter()) {
    struct fp_object *o = fp_find((uintptr_t)b, 0);
    if (o && o->count) {
      phase += 1 + o->arrivals / o->count % fpPhases;
      if (o->arrivals % o->count == 0) fp_clear_locked(phase);
      o->arrivals = (o->arrivals + 1) % (o->count * fpPhases);
    }
    if (fp_live()) fp_release_locked(phase);
    fp_leave();
  }
  int e = real(b);
  if (!e || e == PTHREAD_BARRIER_SERIAL_THREAD) fp_acquire((void *)phase);
  return e;
}

static __thread struct fp_once {
  pthread_once_t *control;
  void (*f)(void);
} once;

static void fp_first(void) {
  struct fp_once own = once; // the function that it calls may use another control
  own.f();
  fp_release(own.control);
}

EXPORT int pthread_once(pthread_once_t *control, void (*f)(void)) {
  REAL(pthread_once);
  struct fp_once before = once;
  once = (struct fp_once){control, f};
  int e = real(control, fp_first);
  once = before;
  fp_acquire(control);
  return e;
}

// The arguments of a new thread.
struct fp_start {
  void *(*f)(void *);
  void *argument;
  fp_clock clock;
};

static void *fp_begin(void *p) {
  struct fp_start *s = p;
  void *(*f)(void *) = s->f, *argument = s->argument;
  self.known = 1;
  memcpy(self.clock, s->clock, sizeof self.clock);
  free(s);
  pthread_setspecific(leaving, &self);
  if (fp_enter()) {
    fp_clear_locked((uintptr_t)pthread_self()); // a thread that was not joined may have had the same name
    fp_leave();
  }
  return f(argument);
}

// fp_end runs when a thread ends. It runs again, because the destructors of other keys may call CUDA.
static void fp_end(void *p) {
  static __thread int times;
  fp_release((void *)pthread_self());
  if (++times < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(leaving, p);
}

EXPORT int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *argument) {
  REAL(pthread_create);
  struct fp_start *s = self.known ? calloc(1, sizeof *s) : NULL;
  if (!s) return real(t, a, f, argument);
  s->f = f, s->argument = argument;
  __atomic_store_n(&several, 1, __ATOMIC_RELAXED);
  if (fp_enter()) {
    fp_release_to(s->clock);
    fp_leave();
  }
  int e = real(t, a, fp_begin, s);
  if (e) free(s);
  return e;
}

static int fp_joined(int e, pthread_t t) {
  if (e || !fp_live() || !fp_enter()) return e;
  fp_acquire_locked((uintptr_t)t);
  fp_leave();
  return e;
}

EXPORT int pthread_join(pthread_t t, void **result) {
  REAL(pthread_join);
  return fp_joined(real(t, result), t);
}

EXPORT int pthread_tryjoin_np(pthread_t t, void **result) {
  REAL(pthread_tryjoin_np);
  return fp_joined(real(t, result), t);
}

EXPORT int pthread_timedjoin_np(pthread_t t, void **result, const struct timespec *until) {
  REAL(pthread_timedjoin_np);
  return fp_joined(real(t, result, until), t);
}

#if __GLIBC_PREREQ(2, 31)
EXPORT int pthread_clockjoin_np(pthread_t t, void **result, clockid_t k, const struct timespec *until) {
  REAL(pthread_clockjoin_np);
  return fp_joined(real(t, result, k, until), t);
}
#endif

// fencepost_lock, fencepost_unlock and fencepost_join are for Fencepost's libraries. They do not order the program's
// threads.
EXPORT int fencepost_lock(pthread_mutex_t *m) {
  REAL(pthread_mutex_lock);
  return real(m);
}

EXPORT int fencepost_unlock(pthread_mutex_t *m) {
  REAL(pthread_mutex_unlock);
  return real(m);
}

EXPORT int fencepost_join(pthread_t t, void **result) {
  REAL(pthread_join);
  return real(t, result);
}

// fp_unseen reports whether the process uses OpenMP, which orders threads in ways that this library does not record.
static int fp_unseen(void) {
  static int asked, unseen;
  if (!asked) unseen = dlsym(RTLD_DEFAULT, "GOMP_parallel") || dlsym(RTLD_DEFAULT, "__kmpc_fork_call"), asked = 1;
  return unseen;
}

// fencepost_thread_of records that the calling thread, which is one of Fencepost's, executes a function of the program
// for a stream. The thread has the number of the stream. Its clock begins empty: the stream orders it after the thread
// that enqueued the function.
EXPORT void fencepost_thread_of(u64 stream, void (*waits)(void)) {
  static u64 streams[fpNumbers];
  if (fp_unseen()) return;
  self.known = 1;
  if (!fp_enter()) return;
  u32 n = 0;
  while (n < numbers && streams[n] != stream) n++;
  if (n == fpNumbers) n--;
  if (n == numbers) numbers++;
  streams[n] = stream;
  memset(self.clock, 0, sizeof self.clock);
  self.clock[n] = closed[n], self.number = n, self.numbered = 1, self.waits = waits;
  fp_leave();
}

// fencepost_threads is called before a call of CUDA. It returns the number of words to report about the calling thread,
// or 0 for none: its number, its closed epochs, and for each thread in its clock that thread's number and epochs.
EXPORT u64 fencepost_threads(u64 out[2 + 2 * fpNumbers]) {
  u64 n = 0;
  if (fp_unseen() || !fp_enter()) return 0;
  __atomic_store_n(&called, 1, __ATOMIC_RELAXED);
  if (!self.numbered) {
    self.number = numbers < fpNumbers ? numbers++ : fpNumbers - 1;
    self.numbered = 1;
  }
  self.open = 1;
  if (__atomic_load_n(&several, __ATOMIC_RELAXED)) {
    u64 own = self.clock[self.number];
    out[n++] = self.number | (self.waits ? FP_THREAD_OF_STREAM : 0), out[n++] = own;
    for (u32 i = 0; i < numbers; i++)
      if (i != self.number && self.clock[i] > self.telling[i]) out[n++] = i, out[n++] = self.telling[i] = self.clock[i];
    if (n == 2 && self.told == own + 1) n = 0;
    self.told = own + 1;
  }
  fp_leave();
  return n;
}

// A forked child has one thread, and begins with empty clocks.
static void fp_before_fork(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void fp_parent(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

static void fp_child(void) {
  for (u32 i = 0; used && i < fpObjects; i++)
    if (objects[i].key) memset(objects[i].clock, 0, sizeof objects[i].clock);
  memset(overflow, 0, sizeof overflow), memset(closed, 0, sizeof closed), memset(&self, 0, sizeof self);
  numbers = 0, several = called = 0, self.known = 1;
  fp_parent();
}

__attribute__((constructor)) static void fp_load(void) {
  self.known = 1;
  pthread_key_create(&leaving, fp_end);
  pthread_atfork(fp_before_fork, fp_parent, fp_child);
}
