// function.h: functions of the program that a stream calls. Each runs in a thread of its own, and is an agent that the checker orders with
// its stream alone. The call that puts it into the stream waits until it has ended, so that most programs run as if they had one thread;
// but not for one that waits itself, which the caller may have to let go on. Later work of the stream waits for such a function.
#ifndef FP_FUNCTION_H
#define FP_FUNCTION_H

#include <linux/futex.h>
#include <time.h>

enum { fpRunning, fpPending, fpEnded };

struct fp_function {
  struct fp_work work;
  u64 key;   // of the stream: fp_stream_key
  u64 agent; // of the stream
  int blocking; // the stream waits for the legacy stream, and that one for it
  u32 state, users;
  pid_t id;
  pthread_t thread;
  struct fp_function *next;
};

// Seconds that the caller waits for a function, and that work behind one waits for it while no other thread calls CUDA.
enum { fpShortly = 1, fpAtMost = 5 };

static __thread struct fp_function *fp_executing;

// fp_await waits until a function has reached a state, at most for so many seconds (0: for ever), and gives its state. It is no call of
// POSIX threads, which would order the program's threads.
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

// fp_waits is called by a function that is about to wait (threads.c): the caller goes on beside it.
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

// fp_function_drop takes a function out of the list, which is locked.
static void fp_function_drop(struct fp_function *f) {
  struct fp_function **at = &fp_shared()->functions;
  while (*at != f) at = &(*at)->next;
  __atomic_store_n(at, f->next, __ATOMIC_RELEASE);
}

// fp_function_leave is for who has waited for a function. If it has ended, its thread is gone afterwards: processes of one thread are
// seen better (guard.h).
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

// fp_first_before gives a function that comes before what is put into a stream, by its key; 0: into any. Or one that has ended.
static struct fp_function *fp_first_before(u64 key) {
  struct fp_function *f;
  fp_graph_lock();
  for (f = fp_shared()->functions; f; f = f->next)
    if (!key || f->state == fpEnded || f->key == key || f->key == FP_STREAM_LEGACY || (key == FP_STREAM_LEGACY && f->blocking)) break;
  if (f) f->users++;
  fp_graph_unlock();
  return f;
}

// fp_ends waits until a function has ended, and says whether it has: for ever, or until nothing moves.
static int fp_ends(struct fp_function *f, int forever) {
  u64 before;
  do {
    before = __atomic_load_n(&fp.requests, __ATOMIC_RELAXED);
    if (fp_await(f, fpEnded, forever ? 0 : fpAtMost) == fpEnded) return 1;
    if (!fp_take(&fp.lock, fpConnectionLock)) fp_give(&fp.lock, fpConnectionLock); // another thread may be in a call that takes long
  } while (before != __atomic_load_n(&fp.requests, __ATOMIC_RELAXED));
  return 0;
}

// fp_behind waits for the functions that a request comes after. It fails for work that would wait for what its own thread may do only
// after it: work is executed when it is put into a stream.
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
  // Signals to the process are for the program's own threads.
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
