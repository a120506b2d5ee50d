// wire.h: the connection of this process to the checker, and device memory.
//
// The checker (internal/cuda in Go) owns device memory and executes kernels. This side sends requests over a Unix
// socket and moves bytes. It does as little as it can, and everything here may be called from several host threads.
#ifndef FP_WIRE_H
#define FP_WIRE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "gen_wire.h"

#define EXPORT __attribute__((visibility("default")))
#define THREAD static __thread

typedef uint64_t u64;
typedef uint32_t u32;

// The error codes this side gives by itself.
enum {
  fpSuccess = 0,
  fpInvalidValue = 1,
  fpOutOfMemory = 2,
  fpInitialization = 3,
  fpInvalidConfiguration = 9,
  fpInvalidSymbol = 13,
  fpMissingConfiguration = 52,
  fpInvalidDeviceFunction = 98,
  fpNoDevice = 100,
  fpInvalidDevice = 101,
  fpInvalidImage = 200,
  fpInvalidContext = 201,
  fpNoImage = 209,
  fpFileNotFound = 301,
  fpInvalidHandle = 400,
  fpNotFound = 500,
  fpPeerUnsupported = 217,
  fpPeerNotEnabled = 705,
  fpNotSupported = 801,
  fpUnknown = 999,
};

__attribute__((used)) static const char fp_marker[] = FP_MARKER;

enum { fpUnopened, fpOpen, fpAbsent, fpLost };

static struct {
  pthread_mutex_t lock;
  int fd;
  int state;
  pid_t pid;       // the process that opened the connection; a forked child must not use it
  u64 base, arena; // addresses of the arena
  u64 device;      // bytes of its first half, device memory, which faults when the host touches it
  char *alias;     // device memory as this side reads and writes it
  int memory;      // descriptor of the shared file, -1 when another library of this process mapped it
  u32 waiting;     // bytes of kernel output to fetch
} fp = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .memory = -1};

static int fp_send(const void *data, size_t n) {
  const char *p = data;
  while (n > 0) {
    ssize_t k = send(fp.fd, p, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return -1;
    p += k, n -= (size_t)k;
  }
  return 0;
}

static int fp_receive(void *data, size_t n) {
  char *p = data;
  while (n > 0) {
    ssize_t k = recv(fp.fd, p, n, 0);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return -1;
    p += k, n -= (size_t)k;
  }
  return 0;
}

// A request and its reply. The caller sets the first half.
struct fp_call {
  u32 op;
  const void *blob; // sent after the arguments
  size_t blob_size;
  u64 *results; // takes at most results_max results
  int results_max;
  void **reply; // takes the reply's blob, to be freed; NULL drops it
  size_t *reply_size;
};

static int fp_fail_connection(void) {
  fp.state = fpLost;
  close(fp.fd);
  fp.fd = -1;
  return fpUnknown;
}

static int fp_send_request(const struct fp_call *c, const u64 *args, int nargs) {
  u32 head[4] = {c->op, (u32)nargs, (u32)syscall(SYS_gettid), (u32)c->blob_size};
  char buffer[sizeof head + 16 * sizeof(u64)];
  memcpy(buffer, head, sizeof head);
  if (nargs > 0) memcpy(buffer + sizeof head, args, (size_t)nargs * sizeof(u64));
  if (fp_send(buffer, sizeof head + (size_t)nargs * sizeof(u64))) return -1;
  return c->blob_size ? fp_send(c->blob, c->blob_size) : 0;
}

static int fp_receive_reply(const struct fp_call *c, const u32 head[4]) {
  for (u32 i = 0; i < head[1]; i++) {
    u64 v;
    if (fp_receive(&v, sizeof v)) return -1;
    if ((int)i < c->results_max) c->results[i] = v;
  }
  if (c->reply_size) *c->reply_size = head[3];
  char *blob = head[3] || c->reply ? malloc(head[3] + 1u) : NULL;
  if ((head[3] || c->reply) && !blob) return -1;
  if (head[3] && fp_receive(blob, head[3])) {
    free(blob);
    return -1;
  }
  if (c->reply)
    *c->reply = blob;
  else
    free(blob);
  return 0;
}

// fp_exchange does one request with the lock held.
static int fp_exchange(const struct fp_call *c, const u64 *args, int nargs) {
  u32 head[4];
  if (c->blob_size > 0xffffffffu) return fpInvalidValue;
  if (fp_send_request(c, args, nargs) || fp_receive(head, sizeof head) || fp_receive_reply(c, head))
    return fp_fail_connection();
  fp.waiting = head[2];
  return (int)head[0];
}

// fp_receive_first takes the header of the first reply, which carries the descriptor of the shared file.
static int fp_receive_first(u32 head[4], int *descriptor) {
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec io = {head, 4 * sizeof(u32)};
  struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
  ssize_t k;
  do k = recvmsg(fp.fd, &m, MSG_CMSG_CLOEXEC);
  while (k < 0 && errno == EINTR);
  if (k <= 0) return -1;
  struct cmsghdr *h = CMSG_FIRSTHDR(&m);
  if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) memcpy(descriptor, CMSG_DATA(h), sizeof(int));
  size_t got = (size_t)k;
  return got < io.iov_len ? fp_receive((char *)head + got, io.iov_len - got) : 0;
}

// fp_map maps the arena: the device half as addresses only, the host-visible half as memory, and the alias.
static int fp_map(void) {
  const int fixed = MAP_FIXED_NOREPLACE | MAP_NORESERVE;
  void *at = (void *)fp.base;
  if (mmap(at, fp.device, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0) != at) return -1;
  void *visible = (void *)(fp.base + fp.device);
  if (mmap(visible, fp.arena - fp.device, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, fp.memory, (off_t)fp.device) != visible)
    return -1;
  fp.alias = mmap(NULL, fp.device, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fp.memory, 0);
  if (fp.alias == MAP_FAILED) return -1;
  madvise(visible, fp.arena - fp.device, MADV_DONTDUMP);
  madvise(fp.alias, fp.device, MADV_DONTDUMP);
  return 0;
}

static int fp_greet(void) {
  u64 r[5] = {0};
  const u64 version[1] = {FP_VERSION};
  struct fp_call c = {.op = FP_Hello, .results = r, .results_max = 5};
  u32 head[4];
  if (fp_send_request(&c, version, 1) || fp_receive_first(head, &fp.memory) || fp_receive_reply(&c, head) || head[0]) return -1;
  fp.base = r[0], fp.arena = r[1], fp.device = r[2], fp.alias = (char *)r[4];
  if (fp.alias) return 0; // another library of this process has mapped the memory
  if (fp_map()) {
    fprintf(stderr, "fencepost: the addresses of device memory are taken in this process: %s\n", strerror(errno));
    return -1;
  }
  const u64 alias[1] = {(u64)fp.alias};
  struct fp_call mapped = {.op = FP_Mapped};
  return fp_exchange(&mapped, alias, 1) ? -1 : 0;
}

static void fp_open(void) {
  const char *path = getenv(FP_ENV);
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  fp.state = fpAbsent;
  if (!path || !*path || strlen(path) >= sizeof a.sun_path) return;
  strcpy(a.sun_path, path);
  fp.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fp.fd < 0) return;
  if (connect(fp.fd, (struct sockaddr *)&a, sizeof a)) {
    close(fp.fd);
    fp.fd = -1;
    return;
  }
  fp.pid = getpid();
  fp.state = fpOpen;
  if (fp_greet()) fp_fail_connection();
}

// fp_begin takes the lock and sees that there is a connection. When it gives an error the lock is free.
static int fp_begin(void) {
  if (fp.pid && fp.pid != getpid()) return fpInitialization;
  pthread_mutex_lock(&fp.lock);
  if (fp.state == fpUnopened) fp_open();
  if (fp.state == fpOpen) return 0;
  int lost = fp.state == fpLost;
  pthread_mutex_unlock(&fp.lock);
  return lost ? fpUnknown : fpNoDevice;
}

static void fp_end(void) { pthread_mutex_unlock(&fp.lock); }

// fp_request does one request.
static int fp_request(u32 op, const u64 *args, int nargs, u64 *results, int nresults) {
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = op, .results = results, .results_max = nresults};
  e = fp_exchange(&c, args, nargs);
  fp_end();
  return e;
}

// fp_print writes what kernels have printed to this program's own stdout, as the synchronising calls of CUDA do.
static void fp_print(void) {
  if (fp.waiting == 0 || fp_begin()) return;
  void *text = NULL;
  size_t size = 0;
  struct fp_call c = {.op = FP_Output, .reply = &text, .reply_size = &size};
  int e = fp_exchange(&c, NULL, 0);
  fp_end();
  if (!e && size) fwrite(text, 1, size, stdout);
  free(text);
}

// fp_unsupported names a call that is not supported to the checker.
static int fp_unsupported(const char *name) {
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_Unsupported, .blob = name, .blob_size = strlen(name)};
  e = fp_exchange(&c, NULL, 0);
  fp_end();
  return e ? e : fpNotSupported;
}

// fp_host gives the address at which this side may touch memory that the program names by address.
static char *fp_host(u64 address) {
  if (address >= fp.base && address < fp.base + fp.device) return fp.alias + (address - fp.base);
  return (char *)address;
}

#endif
