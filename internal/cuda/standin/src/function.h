// function.h: functions of the program that a stream calls. Each runs in a thread of its own, which the checker orders
// only with its stream. The call that enqueues the function waits until the function has ended, so most programs run as
// if they had one thread. It does not wait if the function itself waits, because the caller may have to continue for
// that. Later work of the stream waits for such a function.
#ifndef FP_FUNCTION_H
#define FP_FUNCTION_H

#include <linux/futex.h>
#include <time.h>

enum { fpRunning, fpPending, fpEnded };

struct fp_function {
  struct fp_work work;
  u64 key;   // of the stream: fp_stream_key
  u64 agent; // of the stream, as the checker knows it
  int blocking; // the stream and the legacy stream wait for each other
  u32 state, users;
  pid_t id;
  pthread_t thread;
  struct fp_function *next;
};

// fpShortly is how many seconds the caller waits for a function. fpAtMost is how many seconds work waits for an earlier
// function while no other thread calls CUDA.
enum { fpShortly = 1, fpAtMost = 5 };

static __thread struct fp_function *fp_executing;

// fp_await waits until a function has reached a state, for a number of seconds or, if that is 0, forever. It returns
// the function's state. It does not use POSIX threads, which would order the program's threads.
static u32 fp_await(struct fp_function *f, u32 state, time_t seconds) {
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += seconds;
  for (;;) {
    u32 is = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE);
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct timespec rest = {end.tv_sec - now.tv_sec, end.tv_nsec - now.tv_nsec};
    if (rest.tv_nsec < 0) rest.tv_sec--, rest.tv_nsec += 1000000000;
    if (is >= state || (seconds && rest.tv_sec < 0)) return is;
    syscall(SYS_futex, &f->state, FUTEX_WAIT_PRIVATE, is, seconds ? &rest : NULL, NULL, 0);
  }
}

static void fp_become(struct fp_function *f, u32 state) {
  __atomic_store_n(&f->state, state, __ATOMIC_RELEASE);
  syscall(SYS_futex, &f->state, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

// fp_waits is called by a function that is about to wait (threads.c). The caller then continues in parallel.
static void fp_waits(void) {
  if (__atomic_load_n(&fp_executing->state, __ATOMIC_RELAXED) != fpRunning) return;
  fp_guard_stop();
  fp_become(fp_executing, fpPending);
}

static void *fp_function_run(void *p) {
  struct fp_function *f = fp_executing = p;
  f->id = (pid_t)syscall(SYS_gettid);
  fp_in_place = 1;
  if (fp_thread_of) fp_thread_of(f->key, fp_waits);
  fp_request(FP_HostFunc, (const u64[]){f->agent, FP_FUNCTION_BEGINS}, 2, NULL, 0);
  fp_mark_thread(0, (u32)f->id);
  if (f->work.call) f->work.call(f->work.data);
  if (f->work.callback) f->work.callback((void *)f->work.object, 0, f->work.data);
  fp_mark_thread((u32)f->id, 0);
  fp_guard_stop();
  fp_request(FP_HostFunc, (const u64[]){f->agent, FP_FUNCTION_ENDS}, 2, NULL, 0);
  fp_become(f, fpEnded);
  return NULL;
}

// fp_function_drop removes a function from the list. The list must be locked.
static void fp_function_drop(struct fp_function *f) {
  struct fp_function **at = &fp_shared()->functions;
  while (*at != f) at = &(*at)->next;
  __atomic_store_n(at, f->next, __ATOMIC_RELEASE);
}

// fp_function_leave is called after waiting for a function. If the function has ended, its thread ends too, because
// accesses of processes with one thread are better observed (guard.h).
static void fp_function_leave(struct fp_function *f) {
  fp_graph_lock();
  int last = --f->users == 0 && __atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == fpEnded;
  if (last) fp_function_drop(f);
  fp_graph_unlock();
  if (!last) return;
  fp_join_thread(f->thread, NULL);
  while (!syscall(SYS_tgkill, getpid(), f->id, 0)) sched_yield();
  free(f);
}

// fp_first_before returns a function that is ordered before new work of the stream with a key (0 for any stream), or a
// function that has ended.
static struct fp_function *fp_first_before(u64 key) {
  struct fp_function *f;
  fp_graph_lock();
  for (f = fp_shared()->functions; f; f = f->next)
    if (!key || f->state == fpEnded || f->key == key || f->key == FP_STREAM_LEGACY || (key == FP_STREAM_LEGACY && f->blocking)) break;
  if (f) f->users++;
  fp_graph_unlock();
  return f;
}

// fp_ends waits until a function has ended, forever or until nothing progresses, and reports whether it has ended.
static int fp_ends(struct fp_function *f, int forever) {
  u64 before;
  do {
    before = __atomic_load_n(&fp.requests, __ATOMIC_RELAXED);
    if (fp_await(f, fpEnded, forever ? 0 : fpAtMost) == fpEnded) return 1;
    if (!fp_take(&fp.lock, fpConnectionLock)) fp_give(&fp.lock, fpConnectionLock); // another thread may be in a long call
  } while (before != __atomic_load_n(&fp.requests, __ATOMIC_RELAXED));
  return 0;
}

// fp_behind waits for the functions before a request. It fails for work that would wait for something that its own
// thread can do only later, because work is executed when it is enqueued.
static int fp_behind(u32 op, const u64 *args) {
  u64 key = 0;
  if (!fp_shared() || fp_executing || fp_forked() || !__atomic_load_n(&fp_shared()->functions, __ATOMIC_ACQUIRE) || fp_called_back()) return 0;
  switch (op) {
    case FP_Copy: key = fp_stream_key(args[10]); break;
    case FP_Fill: key = fp_stream_key(args[7]); break;
    case FP_Launch: case FP_MallocAsync: case FP_FreeAsync: case FP_EventRecord: key = fp_stream_key(args[1]); break;
    case FP_StreamSynchronize: case FP_StreamQuery: case FP_StreamWaitEvent: case FP_StreamDestroy: case FP_HostFunc: case FP_Operator: case FP_StreamValue:
      key = fp_stream_key(args[0]); break;
    case FP_Free:
      if (!args[0]) return 0;
      break;
    case FP_DeviceSynchronize: case FP_DeviceReset: case FP_HostUnregister: break;
    default: return 0;
  }
  for (struct fp_function *f; (f = fp_first_before(key));) {
    int ended = op == FP_StreamQuery ? f->state == fpEnded : fp_ends(f, !key || op == FP_StreamSynchronize);
    fp_function_leave(f);
    if (!ended && op == FP_StreamQuery) return fpNotReady;
    if (!ended) return fp_unsupported("work put into a stream behind a host function that waits, perhaps for what the calling thread does next");
  }
  return 0;
}

// fp_function_start executes a function of the program as work of a stream.
static int fp_function_start(u64 stream, const struct fp_work *w) {
  u64 agent = 0, info[3] = {0};
  sigset_t most, before;
  int e = fp_request(FP_HostFunc, (const u64[]){stream, FP_FUNCTION_PUT}, 2, &agent, 1);
  struct fp_function *f = e ? NULL : malloc(sizeof *f);
  if (!f) return e ? e : fpOutOfMemory;
  *f = (struct fp_function){.work = *w, .key = fp_stream_key(stream), .agent = agent, .users = 1};
  fp_graph_lock();
  f->next = fp_shared()->functions;
  __atomic_store_n(&fp_shared()->functions, f, __ATOMIC_RELEASE);
  fp_graph_unlock();
  fp_guard_hand_over();
  // Only the program's own threads get signals to the process.
  sigfillset(&most);
  for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, FP_FLUSH_SIGNAL, 0}; *s; s++) sigdelset(&most, *s);
  pthread_sigmask(SIG_SETMASK, &most, &before);
  e = pthread_create(&f->thread, NULL, fp_function_run, f);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (e) {
    fp_graph_lock();
    fp_function_drop(f);
    fp_graph_unlock();
    free(f);
    return fpOutOfMemory;
  }
  u32 running = fpRunning;
  if (fp_await(f, fpPending, fpShortly) == fpRunning && __atomic_compare_exchange_n(&f->state, &running, fpPending, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) fp_guard_open();
  if (f->state == fpPending && !fp_request(FP_StreamInfo, &stream, 1, info, 3)) f->blocking = !(info[0] & 1);
  fp_function_leave(f);
  if (fp.unawaited) fp_guard_close();
  return 0;
}

#endif
