// guard.h: accesses of the program's own code to managed and pinned memory while a kernel or a copy may use it. While
// there is work that the host has not waited for, the pages of that memory are inaccessible. The first read and the
// first write of a page are then reported to the checker as accesses by the host, with the call stack, and continue.
//
// System calls cannot access such pages. They are redirected to this code (Syscall User Dispatch), which makes the
// pages accessible, executes the call, and reports what it reads or writes. A call that is not known to be harmless
// ends the guard until the next call of CUDA. A process is guarded only while three conditions hold. It has one thread.
// It has no signal handlers of its own, which would run, or return, where they cannot. It does not block the signals
// that the guard uses. Otherwise nothing is guarded, and the checker is told once.
#ifndef FP_GUARD_H
#define FP_GUARD_H

// The page before the alias belongs to the process: the data that its libraries share (graph.h) and, in the second
// half, the guard.
enum { FP_SHARED = 4096 };

static void fp_guard_open(void);
static void fp_guard_close(void);
static void fp_guard_stop(void);
static void fp_guard_hand_over(void);
static int fp_unsupported(const char *name);

static __thread int fp_in_place; // this thread, one of Fencepost's, executes code of the program while the program's own thread waits

#if defined(__x86_64__) && defined(__GLIBC__)
#define FP_GUARDS 1
#include <sys/prctl.h>
#include <ucontext.h>

struct fp_guard {
  u64 end;             // end of the guarded memory, which begins after device memory; 0 if there is none
  u32 closed;          // the pages are inaccessible
  u32 thread;          // thread whose system calls can be redirected
  const char *code;    // code from which system calls pass: that of the library that closed last
  u32 refused;         // the kernel of this machine does not support it
  u32 told;            // the checker knows that some accesses are not observed
  u32 functions;       // streams have called functions in threads of their own
  volatile char calls; // fpCallsPass or fpCallsCome
  struct fp_action {
    u64 handler, flags, restorer, mask;
  } segv, sys; // of the program
};

enum { fpCallsPass, fpCallsCome };

// Signal handlers return to this code. Its system call must pass. Its bytes are those by which unwinders recognise the
// frame of a signal. The kernel compares the address after the call with the section, so the section continues after
// it.
__asm__(".pushsection fencepost_guard,\"ax\",@progbits\n"
        ".hidden fp_guard_return\n.type fp_guard_return,@function\nnop\nfp_guard_return:\n"
        ".byte 0x48,0xc7,0xc0,0x0f,0,0,0,0x0f,0x05\n.size fp_guard_return,9\nnop\n.popsection");
extern const char fp_guard_return[] __attribute__((visibility("hidden")));

extern char __libc_single_threaded __attribute__((weak));

THREAD u64 fp_guard_at; // the instruction whose access is being reported

static struct fp_guard *fp_guard(void) { return fp.alias ? (struct fp_guard *)(fp.alias - FP_SHARED / 2) : NULL; }

// fp_guard_pass lets the system calls of Fencepost's signal handlers pass.
static void fp_guard_pass(void) {
  if (fp_guard()) fp_guard()->calls = fpCallsPass;
}

static long fp_guard_do(long number, const long a[6]) {
  register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}

static long fp_guard_action(int signal, const struct fp_action *new, struct fp_action *old) {
  return fp_guard_do(SYS_rt_sigaction, (const long[6]){signal, (long)new, (long)old, 8});
}

static u64 fp_guard_begin(void) { return fp.base + fp.device; }

static void fp_guard_reach(int protection) {
  mprotect((void *)fp_guard_begin(), fp_guard()->end - fp_guard_begin(), protection);
}

// fp_guard_open makes the pages accessible: for calls of CUDA, and for good.
static void fp_guard_open(void) {
  struct fp_guard *g = fp_guard();
  if (!g || !g->closed) return;
  g->calls = fpCallsPass, g->closed = 0;
  fp_guard_reach(PROT_READ | PROT_WRITE);
  fp_guard_action(SIGSEGV, &g->segv, NULL);
  fp_guard_action(SIGSYS, &g->sys, NULL);
}

// fp_guard_tell reports an access to n bytes to the checker. The instruction at rip makes it, directly or in a system
// call.
static void fp_guard_tell(u64 address, u64 n, int write, u64 rip) {
  struct fp_guard *g = fp_guard();
  if (address < fp_guard_begin() || address >= g->end || !n || fp_take(&fp.lock, fpConnectionLock)) return;
  if (n > g->end - address) n = g->end - address;
  const u64 args[3] = {address, n, (u64)write};
  struct fp_call c = {.op = FP_HostAccess};
  fp_guard_at = rip;
  fp_swap(&c, args, 3);
  fp_guard_at = 0;
  fp_give(&fp.lock, fpConnectionLock);
}

// fp_guard_fault handles a fault. A fault that the guard did not cause is repeated without the guard.
static void fp_guard_fault(int signal, siginfo_t *info, void *context) {
  enum { written = 2 };
  struct fp_guard *g = fp_guard();
  const greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
  u64 address = (u64)info->si_addr;
  int saved = errno, write = regs[REG_ERR] & written;
  (void)signal;
  fp_guard_pass();
  if (!g->closed || address < fp_guard_begin() || address >= g->end) {
    fp_guard_open();
    return;
  }
  fp_guard_tell(address, 1, write != 0, (u64)regs[REG_RIP]);
  mprotect((void *)(address & ~(u64)4095), 4096, write ? PROT_READ | PROT_WRITE : PROT_READ);
  errno = saved;
  g->calls = fpCallsCome;
}

// fp_guard_harmless reports whether a system call only reads and writes memory, files and the like, and returns.
static int fp_guard_harmless(long number) {
  static const short list[] = {SYS_read, SYS_write, SYS_open, SYS_close, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat, SYS_poll, SYS_lseek, SYS_mmap, SYS_munmap,
    SYS_brk, SYS_mremap, SYS_madvise, SYS_ioctl, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_access, SYS_select, SYS_sched_yield, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_clock_gettime, SYS_gettimeofday, SYS_getpid, SYS_gettid, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_fcntl, SYS_fsync,
    SYS_ftruncate, SYS_getcwd, SYS_uname, SYS_times, SYS_getrusage, SYS_futex, SYS_getdents64, SYS_openat, SYS_getrandom, SYS_time, SYS_mincore};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (list[i] == number) return 1;
  return 0;
}

// fp_guard_call executes a system call of the program.
static void fp_guard_call(int signal, siginfo_t *info, void *context) {
  struct fp_guard *g = fp_guard();
  greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
  const long number = info->si_syscall, a[6] = {regs[REG_RDI], regs[REG_RSI], regs[REG_RDX], regs[REG_R10], regs[REG_R8], regs[REG_R9]};
  int saved = errno;
  (void)signal;
  fp_guard_pass();
  if (!g->closed || !fp_guard_harmless(number)) {
    const int length = 2; // of the instruction, which is executed again
    fp_guard_open();
    regs[REG_RIP] -= length;
    return;
  }
  int reads = number == SYS_write || number == SYS_pwrite64 || number == SYS_sendto, writes = number == SYS_read || number == SYS_pread64 || number == SYS_recvfrom;
  if (reads) fp_guard_tell((u64)a[1], (u64)a[2], 0, (u64)regs[REG_RIP]);
  fp_guard_reach(PROT_READ | PROT_WRITE);
  long result = fp_guard_do(number, a);
  fp_guard_reach(PROT_NONE);
  if (writes && result > 0) fp_guard_tell((u64)a[1], (u64)result, 1, (u64)regs[REG_RIP]);
  regs[REG_RAX] = result;
  errno = saved;
  g->calls = fpCallsCome;
}

// fp_guard_hand_over prepares a thread to wait for another of Fencepost's threads, whose system calls are redirected
// instead.
static void fp_guard_hand_over(void) {
  enum { dispatch = 59, off = 0 };
  struct fp_guard *g = fp_guard();
  if (!g) return;
  fp_guard_open();
  g->functions = 1;
  if (g->thread == (u32)syscall(SYS_gettid) && !prctl(dispatch, off, 0, 0, 0)) g->thread = 0;
}

// fp_guard_stop makes the pages accessible for the rest of this thread's work.
static void fp_guard_stop(void) {
  fp_guard_open();
  fp_in_place = 0, fp_held |= fpGuardLock;
}

// fp_guard_alone reports whether this is the only running thread.
static int fp_guard_alone(const struct fp_guard *g) {
  struct stat s;
  if (!&__libc_single_threaded) return 0;
  const int self = 3; // links of the directory of threads if there is one thread
  return __libc_single_threaded || (g->functions && !stat("/proc/self/task", &s) && s.st_nlink == (nlink_t)(self + fp_in_place));
}

// fp_guard_obstacle returns the reason why the process cannot be guarded, or NULL.
static const char *fp_guard_obstacle(const struct fp_guard *g) {
  enum { blocks = 1ULL << (SIGSEGV - 1) | 1ULL << (SIGSYS - 1) };
  struct fp_action old;
  u64 mask;
  if (g->refused) return "the kernel of this machine has no Syscall User Dispatch";
  if (!fp_guard_alone(g)) return "the process has several threads";
  if (fp_guard_do(SYS_rt_sigprocmask, (const long[6]){SIG_BLOCK, 0, (long)&mask, 8}) || mask & blocks) return "the process blocks SIGSEGV or SIGSYS";
  for (int s = 1; s <= 64; s++) {
    if (s == SIGKILL || s == SIGSTOP || s == 32 || s == 33 || s == FP_FLUSH_SIGNAL) continue; // glibc uses 32 and 33
    if (fp_guard_action(s, NULL, &old) || (old.handler != (u64)SIG_DFL && old.handler != (u64)SIG_IGN)) return "the process has signal handlers of its own";
  }
  return NULL;
}

// fp_guard_missed reports once to the checker that accesses are not observed, and the reason. It omits this for Python,
// whose interpreter always has signal handlers.
static void fp_guard_missed(struct fp_guard *g, const char *why) {
  char text[200];
  pthread_once(&fp_py_once, fp_py_find);
  if (g->told || fp_py_known) return;
  g->told = 1; // before the request, because the end of the request calls this function
  snprintf(text, sizeof text, "what host code does with managed and pinned memory while work is pending: %s, so it is not observed", why);
  fp_unsupported(text);
}

// fp_guard_close makes the pages inaccessible to the program, after the checker has reported that there is work that
// the host has not waited for.
static void fp_guard_close(void) {
  enum { dispatch = 59, on = 1, restored = 0x04000000 }; // PR_SET_SYSCALL_USER_DISPATCH, SA_RESTORER
  extern const char begin[] __asm__("__start_fencepost_guard") __attribute__((visibility("hidden")));
  extern const char end[] __asm__("__stop_fencepost_guard") __attribute__((visibility("hidden")));
  struct fp_guard *g = fp_guard();
  if (!g || !g->end || g->closed || fp_held) return;
  const char *obstacle = fp_guard_obstacle(g);
  if (obstacle) {
    fp_guard_missed(g, obstacle);
    return;
  }
  u32 thread = (u32)syscall(SYS_gettid);
  if (g->thread != thread || g->code != begin) {
    if (prctl(dispatch, on, begin, end - begin, &g->calls)) {
      g->refused = 1;
      fp_guard_missed(g, fp_guard_obstacle(g));
      return;
    }
    g->thread = thread, g->code = begin;
  }
  struct fp_action fault = {(u64)fp_guard_fault, SA_SIGINFO | restored, (u64)fp_guard_return, 0}, call = fault;
  call.handler = (u64)fp_guard_call;
  if (fp_guard_action(SIGSEGV, &fault, &g->segv) || fp_guard_action(SIGSYS, &call, &g->sys)) return;
  g->closed = 1;
  fp_guard_reach(PROT_NONE);
  g->calls = fpCallsCome;
}

// fp_guard_learn records memory that the host can access.
static void fp_guard_learn(const struct fp_call *c, const u64 *args, int error) {
  struct fp_guard *g = fp_guard();
  int allocates = c->op == FP_Malloc || c->op == FP_MallocAsync;
  if (error || !g || (!allocates && c->op != FP_GetSymbol) || c->results_max < (allocates ? 1 : 2)) return;
  u64 from = c->results[0], end = (from + (allocates ? args[0] : c->results[1]) + 4095) & ~(u64)4095;
  if (from >= fp_guard_begin() && end <= fp.base + fp.arena && end > g->end) g->end = end;
}

#else
static void fp_guard_pass(void) {}
static void fp_guard_open(void) {}
static void fp_guard_close(void) {}
static void fp_guard_stop(void) {}
static void fp_guard_hand_over(void) {}
static void fp_guard_learn(const struct fp_call *c, const u64 *args, int error) { (void)c, (void)args, (void)error; }
#endif

#endif
