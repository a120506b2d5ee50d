// connection.h: how this process finds the checker and keeps the connection, even if the program changes its
// descriptors or its environment, or forks.
#ifndef FP_CONNECTION_H
#define FP_CONNECTION_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

enum {
  fpUnopened,
  fpConnected, // since the library was loaded; no request has been made
  fpOpen,
  fpAbsent, // the program runs without a checker
  fpLost,   // to be resumed
  fpBroken, // there is a checker, but this process cannot use it
};

// fp_id distinguishes an open file from another file that later got the same descriptor.
struct fp_id {
  dev_t device;
  ino_t inode;
};

static struct {
  pthread_mutex_t lock;
  int state;
  int used;             // CUDA was used, so a forked child may not continue with it
  pid_t pid;            // the process that opened the connection
  char name[80];        // of the checker's socket, an abstract address; empty if unknown
  int fd;               // of the connection
  struct fp_id socket;  // identity that fd must have
  u64 base, arena;      // addresses of the arena
  u64 device;           // size of its first half, the device memory, which faults when the host accesses it
  int pinned;           // its pages must stay where they are
  char *alias;          // device memory as this side accesses it
  int memory;           // descriptor of the shared file
  struct fp_id file;    // identity that memory must have
  u32 *status;          // page of the shared file for calls that did not reach the checker
  u32 waiting;          // bytes of kernel output that can be fetched
  u64 requests;         // number of requests
  u32 unawaited;        // not 0 if there is work that the host has not waited for
  struct fp_mail *mail; // of this process, see mail.h; NULL if there is none
  int mailless;         // a mailbox has been requested
  u64 failures;         // failed calls whose error the program has not queried
} fp = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .memory = -1};

// Functions of threads.c, if it is loaded: what to report about a thread before a call, and locks that do not order the
// program's threads.
static u64 (*fp_threads)(u64 *);
static int (*fp_lock)(pthread_mutex_t *) = pthread_mutex_lock, (*fp_unlock)(pthread_mutex_t *) = pthread_mutex_unlock;
// Likewise, for Fencepost's threads that execute a function of the program for a stream.
static void (*fp_thread_of)(u64 stream, void (*waits)(void));
static int (*fp_join_thread)(pthread_t, void **) = pthread_join;

static void fp_find_threads(void) {
  void *threads = dlsym(RTLD_DEFAULT, "fencepost_threads"), *lock = dlsym(RTLD_DEFAULT, "fencepost_lock"), *unlock = dlsym(RTLD_DEFAULT, "fencepost_unlock");
  void *of = dlsym(RTLD_DEFAULT, "fencepost_thread_of"), *join = dlsym(RTLD_DEFAULT, "fencepost_join");
  if (!threads || !lock || !unlock || !of || !join) return;
  fp_thread_of = (void (*)(u64, void (*)(void)))of, fp_join_thread = (int (*)(pthread_t, void **))join;
  fp_threads = (u64(*)(u64 *))threads;
  fp_lock = (int (*)(pthread_mutex_t *))lock, fp_unlock = (int (*)(pthread_mutex_t *))unlock;
}

// Locks. A signal handler that calls CUDA while its thread is inside a call would wait for itself, so it gets an error.
enum { fpConnectionLock = 1, fpRegistryLock = 2, fpLoadingLock = 4, fpGuardLock = 8 };
THREAD unsigned fp_held;
THREAD int fp_cancel;

static int fp_take(pthread_mutex_t *m, unsigned bit) {
  if (fp_held & bit) return -1;
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  if (!fp_held) fp_cancel = before;
  fp_held |= bit;
  fp_lock(m);
  return 0;
}

static void fp_give(pthread_mutex_t *m, unsigned bit) {
  fp_unlock(m);
  fp_held &= ~bit;
  if (!fp_held) pthread_setcancelstate(fp_cancel, NULL);
}

// fp_undelivered counts a call that did not reach the checker. The checker reads the count.
static int fp_undelivered(void) {
  if (fp.status) __atomic_fetch_add(fp.status, 1, __ATOMIC_RELAXED);
  return fpUnknown;
}

// fp_forked reports whether this process is a forked child of a process that has used CUDA. CUDA refuses its calls.
static int fp_forked(void) { return fp.used && fp.pid != getpid(); }

// fp_absent reports whether there is no device.
static int fp_absent(void) { return fp.state == fpAbsent || fp.state == fpBroken; }

static int fp_send(int fd, const void *data, size_t n) {
  const char *p = data;
  while (n > 0) {
    ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return -1;
    p += k, n -= (size_t)k;
  }
  return 0;
}

static int fp_receive(int fd, void *data, size_t n) {
  char *p = data;
  while (n > 0) {
    ssize_t k = recv(fd, p, n, 0);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return -1;
    p += k, n -= (size_t)k;
  }
  return 0;
}

static struct fp_id fp_identify(int fd) {
  struct stat s;
  return fstat(fd, &s) ? (struct fp_id){0, 0} : (struct fp_id){s.st_dev, s.st_ino};
}

// fp_own reports whether a descriptor is still the library's.
static int fp_own(int fd, const struct fp_id *id) {
  if (fd < 0) return 0;
  struct fp_id now = fp_identify(fd);
  return now.inode && now.device == id->device && now.inode == id->inode;
}

// fp_high moves a descriptor to a high number, because programs expect theirs to be small numbers.
static int fp_high(int fd) {
  const int first = 700; // the usual limit is 1024
  int high = fcntl(fd, F_DUPFD_CLOEXEC, first);
  if (high < 0) return fd;
  close(fd);
  return high;
}

static int fp_parent(int pid) {
  char path[40], text[400];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC), parent = 0;
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  const char *end = strrchr(text, ')'); // the name before it may contain any character
  return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

// fp_distance returns how many generations this process is below another one, or 0 if it is not a descendant.
static int fp_distance(int ancestor) {
  for (int pid = getppid(), n = 1; pid > 0 && n < 100; pid = fp_parent(pid), n++)
    if (pid == ancestor) return n;
  return 0;
}

// fp_search searches the ancestors of this process for the nearest checker, because a process may be started without
// the environment variable. The address of a socket contains the number of the process that made it.
static void fp_search(void) {
  const char *prefix = "@" FP_SOCKET_PREFIX;
  char line[400];
  int nearest = 0;
  FILE *f = fopen("/proc/net/unix", "re");
  if (!f) return;
  while (fgets(line, sizeof line, f)) {
    char *at = strstr(line, prefix);
    int n = at ? fp_distance(atoi(at + strlen(prefix))) : 0;
    if (!n || (nearest && n >= nearest)) continue;
    at[strcspn(at, "\n")] = 0;
    if (strlen(at + 1) >= sizeof fp.name) continue;
    strcpy(fp.name, at + 1);
    nearest = n;
  }
  fclose(f);
}

// fp_dial connects to the checker. It returns the descriptor, or -1 if it cannot connect.
static int fp_dial(void) {
  struct sockaddr_un a = {.sun_family = AF_UNIX}; // the path begins with a zero byte: an abstract address
  size_t n = strlen(fp.name);
  if (!n) return -1;
  memcpy(a.sun_path + 1, fp.name, n);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), e;
  if (fd < 0) return -1;
  do e = connect(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n));
  while (e && errno == EINTR);
  if (!e) return fp_high(fd);
  close(fd);
  return -1;
}

static int fp_connect(void) {
  int fd = fp_dial();
  if (fd < 0) return -1;
  fp.fd = fd, fp.socket = fp_identify(fd);
  return 0;
}

// fp_lose gives up the connection until fp_resume. The descriptor may belong to the program now.
static void fp_lose(void) {
  if (fp_own(fp.fd, &fp.socket)) close(fp.fd);
  fp.fd = -1;
  fp.state = fpLost;
}

// fp_inherit resets a forked child, because the connection belongs to its parent.
static void fp_inherit(void) {
  fp_lose();
  fp.state = fpUnopened;
  fp.pid = getpid();
  fp.mail = NULL, fp.mailless = 0;
}

static void fp_attach(void) {
  if (!fp.name[0]) fp_search();
  fp.pid = getpid();
  if (!fp_connect()) fp.state = fpConnected;
}

// fp_tell reports to the checker what is not checked in this process: through a connection of its own, or through the
// existing one if there can be no other.
static void fp_tell(u64 reason, const char *text) {
  u32 head[4] = {FP_NotChecked, 1, (u32)syscall(SYS_gettid), (u32)strlen(text)};
  int fresh = fp_dial(), fd = fresh;
  if (fd < 0 && fp.pid == getpid() && fp_own(fp.fd, &fp.socket)) fd = fp.fd;
  if (fd < 0 || fp_send(fd, head, sizeof head) || fp_send(fd, &reason, sizeof reason) || fp_send(fd, text, head[3]) ||
      fp_receive(fd, head, sizeof head))
    fp_undelivered();
  if (fresh >= 0) close(fresh);
}

static void fp_guard_pass(void);

// fp_flush writes the buffer of the standard output and ends the process. The checker sends this signal before it
// kills, to the group and to each of its processes. So a second thread may get here, and only one writes. The lock of
// the stream may be held, so the fields of the stream are read without it.
static void fp_flush(int signal) {
  static int begun;
  (void)signal;
  fp_guard_pass();
  if (__atomic_exchange_n(&begun, 1, __ATOMIC_RELAXED)) return;
#ifdef __GLIBC__
  const FILE *f = stdout;
  if (f && f->_IO_write_base) {
    const char *from = f->_IO_write_base, *to = f->_IO_write_ptr;
    while (from < to && to - from <= 1 << 20) {
      ssize_t k = write(f->_fileno, from, (size_t)(to - from));
      if (k <= 0) break;
      from += k;
    }
  }
#endif
  kill(getpid(), SIGKILL);
}

// fp_load_time connects when the library is loaded. Later the environment may be gone, and the program may have left
// the network namespace, or forbidden itself to create sockets.
__attribute__((constructor)) static void fp_load_time(void) {
  const char *name = getenv(FP_ENV);
  if (!name || !*name || strlen(name) >= sizeof fp.name) return;
  strcpy(fp.name, name);
  fp_find_threads();
  fp_attach();
  struct sigaction old, flush = {.sa_handler = fp_flush};
  if (!sigaction(FP_FLUSH_SIGNAL, NULL, &old) && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
    sigaction(FP_FLUSH_SIGNAL, &flush, NULL);
}

#endif
