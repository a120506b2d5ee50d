// wire.h: the connection of this process to the checker, and device memory.
//
// The checker (internal/cuda in Go) owns device memory and executes kernels. This side sends requests through a Unix
// socket and moves bytes. It does as little as possible. All functions may be called by several host threads in
// parallel.
#ifndef FP_WIRE_H
#define FP_WIRE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
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

// The functions of the API have a section of their own, so that the call stack above them is known to be the program's.
#define EXPORT __attribute__((visibility("default"), section("fencepost_api")))
extern const char fp_api_begin[] __asm__("__start_fencepost_api") __attribute__((visibility("hidden")));
extern const char fp_api_end[] __asm__("__stop_fencepost_api") __attribute__((visibility("hidden")));
#define THREAD static __thread

typedef uint64_t u64;
typedef uint32_t u32;

#include "gen_wire.h"

// The error codes that this side returns by itself.
enum {
  fpSuccess = 0,
  fpInvalidValue = 1,
  fpOutOfMemory = 2,
  fpInitialization = 3, // of the driver API: not initialized
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
  fpOperatingSystem = 304,
  fpInvalidHandle = 400,
  fpNotFound = 500,
  fpNotReady = 600,
  fpPeerUnsupported = 217,
  fpPeerNotEnabled = 705,
  fpNotPermitted = 800,
  fpNotSupported = 801,
  fpUnknown = 999,
};

__attribute__((used)) static const char fp_marker[] = FP_MARKER;

#include "connection.h"
#include "python.h"

// A request and its reply. The caller sets the fields of the first half.
struct fp_call {
  u32 op;
  const void *blob; // sent after the arguments
  size_t blob_size;
  u64 *results; // takes at most results_max results
  int results_max;
  void **reply; // gets the reply's blob, which the caller frees; NULL drops it
  size_t *reply_size;
};

static int fp_swap(const struct fp_call *c, const u64 *args, int nargs);

#include "guard.h"

// fp_stack returns the return addresses of the call stack from the caller of the API on, or those of a guarded access.
static int fp_stack(u64 *frames, int most) {
  enum { own = 8 }; // at most, below the function of the API
  void *raw[FP_FRAMES + own];
  int n = backtrace(raw, most + own), i = 0, k = 0;
#ifdef FP_GUARDS
  if (fp_guard_at) {
    while (i < n && (u64)raw[i] != fp_guard_at) i++;
    if (i < n) frames[k++] = fp_guard_at + 1, i++;
    for (; i < n && k < most; i++) frames[k++] = (u64)raw[i];
    return k;
  }
#endif
#define FP_OF_API(p) ((const char *)(p) > fp_api_begin && (const char *)(p) <= fp_api_end)
  while (i < n && !FP_OF_API(raw[i])) i++;
  while (i < n && FP_OF_API(raw[i])) i++;
  for (; i < n && k < most; i++) frames[k++] = (u64)raw[i];
  return k;
}

// The place where a graph node was made and, while a launch of the graph executes it, the numbers of the node and of
// the launch.
struct fp_origin {
  u64 frames[FP_ORIGIN_FRAMES];
  int count;
};
THREAD const struct fp_origin *fp_node_origin;
THREAD u64 fp_graph_launch;

// fp_frames returns the places of a request.
static int fp_frames(u64 frames[FP_FRAMES]) {
  int k = 0;
  if (fp_node_origin) {
    k = fp_node_origin->count;
    memcpy(frames, fp_node_origin->frames, (size_t)k * sizeof *frames);
    frames[k++] = FP_OF_GRAPH_LAUNCH + fp_graph_launch;
  }
  return k + fp_stack(frames + k, FP_FRAMES - k);
}

// fp_header makes the header and the arguments of a request. tail is the number of bytes of fp_script that follow the
// blob.
static void fp_header(const struct fp_call *c, const u64 *args, int *nargs, u32 head[4], u64 all[16 + FP_FRAMES], u32 *tail) {
  THREAD u32 thread;
  THREAD pid_t process;
  if (!thread || process != fp.pid) thread = (u32)syscall(SYS_gettid), process = fp.pid;
  u32 script = fp_placed(c->op) ? (u32)fp_script_size : 0;
  if (*nargs > 0) memcpy(all, args, (size_t)*nargs * sizeof(u64));
  if (script)
    all[(*nargs)++] = script;
  else if (fp_placed(c->op))
    *nargs += fp_frames(all + *nargs);
  const u32 made[4] = {c->op | (script ? FP_SCRIPT : 0), (u32)*nargs, thread, (u32)c->blob_size + script};
  memcpy(head, made, sizeof made);
  *tail = script;
}

static int fp_send_request(const struct fp_call *c, const u64 *args, int nargs) {
  u64 all[16 + FP_FRAMES];
  u32 head[4], script;
  fp_header(c, args, &nargs, head, all, &script);
  // A short request is sent in one piece, because each piece is a system call here and usually one in the checker.
  char buffer[sizeof head + sizeof all + 2048];
  size_t n = sizeof head + (size_t)nargs * sizeof(u64), rest = c->blob_size + script;
  memcpy(buffer, head, sizeof head);
  memcpy(buffer + sizeof head, all, (size_t)nargs * sizeof(u64));
  if (n + rest <= sizeof buffer) {
    if (c->blob_size) memcpy(buffer + n, c->blob, c->blob_size);
    memcpy(buffer + n + c->blob_size, fp_script, script);
    return fp_send(fp.fd, buffer, n + rest);
  }
  if (fp_send(fp.fd, buffer, n)) return -1;
  if (c->blob_size && fp_send(fp.fd, c->blob, c->blob_size)) return -1;
  return script ? fp_send(fp.fd, fp_script, script) : 0;
}

static int fp_receive_reply(const struct fp_call *c, const u32 head[4]) {
  for (u32 i = 0; i < head[1]; i++) {
    u64 v;
    if (fp_receive(fp.fd, &v, sizeof v)) return -1;
    if ((int)i < c->results_max) c->results[i] = v;
  }
  if (c->reply_size) *c->reply_size = head[3];
  char *blob = head[3] || c->reply ? malloc(head[3] + 1u) : NULL;
  if ((head[3] || c->reply) && !blob) return -1;
  if (head[3] && fp_receive(fp.fd, blob, head[3])) {
    free(blob);
    return -1;
  }
  if (c->reply)
    *c->reply = blob;
  else
    free(blob);
  return 0;
}

static int fp_resume(void);

// fp_swap sends a request and receives its reply. The lock is held. If a request could not be sent completely, the
// checker has not read it, and it is sent again after the connection is resumed. If the reply is missing, the request
// may have been executed, and it is not repeated.
static int fp_swap(const struct fp_call *c, const u64 *args, int nargs) {
  u32 head[4];
  __atomic_fetch_add(&fp.requests, 1, __ATOMIC_RELAXED);
  if (c->blob_size > 0xffffffffu - FP_MAX_SCRIPT) return fpInvalidValue;
  if (!fp_own(fp.fd, &fp.socket) || fp_send_request(c, args, nargs)) {
    fp_lose();
    if (fp_resume() || fp_send_request(c, args, nargs)) return fp_undelivered();
  }
  if (fp_receive(fp.fd, head, sizeof head) || fp_receive_reply(c, head)) {
    fp_lose();
    return fp_undelivered();
  }
  fp.waiting = head[2] & ~FP_UNAWAITED, fp.unawaited = head[2] & FP_UNAWAITED;
  return (int)head[0];
}

#include "mail.h"

// fp_tell_thread reports which calls of other threads are ordered before the next call of this thread.
static void fp_tell_thread(void) {
  u64 words[2 + 2 * FP_THREADS];
  u64 n = fp_threads ? fp_threads(words) : 0;
  if (!n) return;
  struct fp_call c = {.op = FP_Thread, .blob = words + 2, .blob_size = (size_t)(n - 2) * sizeof(u64)};
  fp_swap(&c, words, 2);
}

static int fp_admit(u32 op);

// fp_exchange makes a request with the lock held. It posts the request if possible, and otherwise sends it.
static int fp_exchange(const struct fp_call *c, const u64 *args, int nargs) {
  int refused = fp_admit(c->op);
  if (refused) return refused;
  fp_tell_thread();
  if (fp_post(c, args, nargs)) return 0;
  if (fp.mail) fp_mail_before(c->op, args);
  int e = fp_swap(c, args, nargs);
  fp_guard_learn(c, args, e);
  if (fp.mail) fp_mail_after(c->op, args, c->results, e);
  return e;
}

// fp_receive_first receives the header of the first reply, which carries the descriptor of the shared file.
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
  return got < io.iov_len ? fp_receive(fp.fd, (char *)head + got, io.iov_len - got) : 0;
}

// fp_map maps the arena: the device half only as addresses, the host-visible half as memory, and the alias.
static int fp_map(void) {
  const int fixed = MAP_FIXED_NOREPLACE | MAP_NORESERVE;
  void *at = (void *)fp.base;
  if (mmap(at, fp.device, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0) != at) return -1;
  void *visible = (void *)(fp.base + fp.device);
  if (mmap(visible, fp.arena - fp.device, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, fp.memory, (off_t)fp.device) != visible)
    return -1;
  char *alias = mmap(NULL, FP_SHARED + fp.device, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (alias == MAP_FAILED) return -1;
  fp.alias = alias + FP_SHARED;
  if (mmap(fp.alias, fp.device, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fp.memory, 0) == MAP_FAILED) return -1;
  madvise(visible, fp.arena - fp.device, MADV_DONTDUMP);
  madvise(fp.alias, fp.device, MADV_DONTDUMP);
  return 0;
}

// fp_hello identifies this process, and receives the layout of memory and the descriptor. again is the address of the
// alias if this process has connected before.
static int fp_hello(u64 again, u64 r[6]) {
  const u64 args[2] = {FP_VERSION, again};
  struct fp_call c = {.op = FP_Hello, .results = r, .results_max = 6};
  u32 head[4];
  int fresh = -1;
  if (fp_send_request(&c, args, 2) || fp_receive_first(head, &fresh) || fp_receive_reply(&c, head)) head[0] = fpUnknown;
  if (fresh < 0) {
    if (head[0] == 0) fp_tell(FP_NOT_MAPPED, strerror(EMFILE)); // if the process may have no more descriptors, the descriptor is dropped
    return -1;
  }
  struct fp_id id = fp_identify(fresh);
  if (head[0] || fp_own(fp.memory, &id)) {
    close(fresh);
    return head[0] ? -1 : 0;
  }
  fp.memory = fp_high(fresh), fp.file = id;
  return 0;
}

// fp_greet begins the exchange with the checker. If it cannot get the memory, nothing of this process can be checked,
// and it reports this.
static int fp_greet(void) {
  u64 r[6] = {0};
  if (fp_hello(0, r)) return -1;
  fp.base = r[0], fp.arena = r[1], fp.device = r[2], fp.alias = (char *)r[4], fp.pinned = (int)r[5];
  u32 *status = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fp.memory, (off_t)r[3]);
  int mapped = fp.alias != NULL; // another library of this process has mapped the memory
  if (status == MAP_FAILED || (!mapped && fp_map())) {
    const char *why = strerror(errno);
    fprintf(stderr, "fencepost: this process has no room at the addresses of device memory: %s\n", why);
    fp_tell(FP_NOT_MAPPED, why);
    return -1;
  }
  fp.status = status;
  if (mapped) return 0;
  const u64 alias[1] = {(u64)fp.alias};
  struct fp_call tell = {.op = FP_Mapped};
  return fp_exchange(&tell, alias, 1) ? -1 : 0;
}

// fp_probe reports whether the connection made when the library was loaded is still open. The program may have closed
// it, or shut it down.
static int fp_probe(void) {
  struct pollfd p = {fp.fd, POLLIN | POLLRDHUP, 0};
  return fp_own(fp.fd, &fp.socket) && poll(&p, 1, 0) == 0;
}

// fp_open makes the first connection of this process.
static void fp_open(void) {
  if (fp.state == fpConnected && !fp_probe()) {
    fp_lose();
    fp.state = fpUnopened;
  }
  if (fp.state == fpUnopened) fp_attach();
  if (fp.state == fpUnopened) {
    fp.state = fp.name[0] ? fpBroken : fpAbsent;
    if (fp.name[0]) fprintf(stderr, "fencepost: the checker cannot be reached from this process: its CUDA calls fail and are not checked\n");
    return;
  }
  fp.used = 1;
  fp.state = fpOpen; // for fp_exchange
  if (!fp_greet()) return;
  fp_lose();
  fp.state = fpBroken;
}

// fp_resume resumes a lost connection. The program may have closed the descriptor: daemons close all they find.
static int fp_resume(void) {
  u64 r[6] = {0};
  if (fp.state != fpLost || fp_connect()) return -1;
  if (!fp_hello((u64)fp.alias, r) && r[4] == (u64)fp.alias) {
    fp.state = fpOpen;
    return 0;
  }
  fp_lose();
  return -1;
}

// fp_talk takes the lock and opens the connection if necessary. If it returns an error, the lock is free.
static int fp_talk(void) {
  if (fp_forked()) return fpInitialization;
  if (fp_take(&fp.lock, fpConnectionLock)) return fp_undelivered();
  if (fp.pid != getpid()) fp_inherit();
  if (fp.state == fpUnopened || fp.state == fpConnected) fp_open();
  if (fp.state == fpLost) fp_resume();
  if (fp.state == fpOpen) {
    fp_guard_open();
    return 0;
  }
  int absent = fp.state == fpAbsent;
  fp_give(&fp.lock, fpConnectionLock);
  return absent ? fpNoDevice : fp_undelivered();
}

static int fp_called_back(void);

// fp_begin is fp_talk for requests of the program.
static int fp_begin(void) { return fp_called_back() ? fpNotPermitted : fp_talk(); }

static void fp_end(void) {
  u32 unawaited = fp.unawaited;
  fp_give(&fp.lock, fpConnectionLock);
  if (unawaited) fp_guard_close();
}

static int fp_capture_request(u32 op, const u64 *args, u64 *results, int *e);
static int fp_behind(u32 op, const u64 *args);

// fp_request makes one request.
static int fp_request(u32 op, const u64 *args, int nargs, u64 *results, int nresults) {
  int e;
  if (fp_capture_request(op, args, results, &e)) return e;
  if ((e = fp_behind(op, args))) return e;
  // A forked child has nothing to free. In Python, torch would end it because of the error: with torch's own allocator
  // it makes no call there.
  if (op == FP_FreeAsync && fp_py_known && fp_forked()) return 0;
  if (fp_placed(op)) fp_stand();
  e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = op, .results = results, .results_max = nresults};
  e = fp_exchange(&c, args, nargs);
  fp_end();
  return e;
}

// fp_print writes what kernels have printed to the program's stdout, as the synchronising calls of CUDA do.
static void fp_print(void) {
  if (fp.waiting == 0 || fp_talk()) return;
  void *text = NULL;
  size_t size = 0;
  struct fp_call c = {.op = FP_Output, .reply = &text, .reply_size = &size};
  int e = fp_exchange(&c, NULL, 0);
  fp_end();
  if (!e && size) fwrite(text, 1, size, stdout);
  free(text);
}

// fp_unsupported reports a call that is not supported to the checker.
static int fp_unsupported(const char *name) {
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_Unsupported, .blob = name, .blob_size = strlen(name)};
  e = fp_exchange(&c, NULL, 0);
  fp_end();
  return e ? e : fpNotSupported;
}

// fp_failed reports to the checker that the call called name fails with e, and its place. The checker knows the reason
// if a request has just failed. If this side refused the call without a request, text tells what is out of bounds.
static void fp_failed(int e, const char *name, const char *text) {
  char blob[512];
  int n = snprintf(blob, sizeof blob, "%s%c%s", name, 0, text ? text : "");
  fp_stand();
  if (fp_talk()) return;
  const u64 args[1] = {(u64)e};
  u64 failures = fp.failures;
  struct fp_call c = {.op = FP_Failed, .blob = blob, .blob_size = (size_t)n < sizeof blob ? (size_t)n : sizeof blob - 1, .results = &failures, .results_max = 1};
  fp_exchange(&c, args, 1);
  __atomic_store_n(&fp.failures, failures, __ATOMIC_RELAXED);
  fp_end();
}

// fp_looked reports that the program queries the errors of this thread (0), or the text of an error.
static void fp_looked(int e) {
  if (!__atomic_load_n(&fp.failures, __ATOMIC_RELAXED) || fp_talk()) return;
  const u64 args[1] = {(u64)e};
  u64 failures = fp.failures;
  struct fp_call c = {.op = FP_Looked, .results = &failures, .results_max = 1};
  fp_exchange(&c, args, 1);
  __atomic_store_n(&fp.failures, failures, __ATOMIC_RELAXED);
  fp_end();
}

// fp_host returns the address at which this side may access memory, given the program's address. The connection is
// locked.
static char *fp_host(u64 address) {
  if (address < fp.base || address >= fp.base + fp.device) return (char *)address;
  char *pooled = fp_mail_host(address);
  return pooled ? pooled : fp.alias + (address - fp.base);
}

#endif
