// gpu.c: executes launches on a GPU for fencepost, through NVIDIA's driver. It is a process of its own, so a crash ends
// only this process.
//
// Descriptor 3 is the connection. A request is its number, the length of the data that follows, and the data. An answer
// has the driver's result instead of the number, and text. Descriptor 4 is the file of device memory. The file is
// mapped at the same addresses as in all other processes, and registered with the driver piece by piece
// (cuMemHostRegister), so that the GPU accesses it there. internal/instrument/gpu is the other side.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint32_t u32;
typedef uint64_t u64;

enum { opOpen, opRegister, opUnregister, opLoad, opLaunch, opQuery, opPrinted };
enum { connection = 3, memory = 4 };
enum { notReady = 600, sharedLimit = 8, hostPointer = 91, errorLog = 5, errorLogSize = 6, inputPTX = 1, mapped = 1 | 2 };
enum { ownError = 1000000 }; // above all results of the driver

// The calls, by their names in the driver's binary interface.
#define CALLS(X) \
  X(cuInit, (unsigned)) \
  X(cuDeviceGet, (int *, int)) \
  X(cuDeviceGetName, (char *, int, int)) \
  X(cuDeviceGetAttribute, (int *, int, int)) \
  X(cuDevicePrimaryCtxRetain, (void **, int)) \
  X(cuCtxSetCurrent, (void *)) \
  X(cuCtxSynchronize, (void)) \
  X(cuStreamCreate, (void **, unsigned)) \
  X(cuStreamQuery, (void *)) \
  X(cuMemHostRegister_v2, (void *, size_t, unsigned)) \
  X(cuMemHostUnregister, (void *)) \
  X(cuMemHostGetDevicePointer_v2, (u64 *, void *, unsigned)) \
  X(cuLinkCreate_v2, (unsigned, int *, void **, void **)) \
  X(cuLinkAddData_v2, (void *, int, void *, size_t, const char *, unsigned, int *, void **)) \
  X(cuLinkComplete, (void *, void **, size_t *)) \
  X(cuLinkDestroy, (void *)) \
  X(cuModuleLoadData, (void **, const void *)) \
  X(cuModuleGetFunction, (void **, void *, const char *)) \
  X(cuFuncSetAttribute, (void *, int, int)) \
  X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)) \
  X(cuLaunchCooperativeKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **)) \
  X(cuGetErrorString, (int, const char **))

#define DECLARE(name, args) static int (*name) args;
CALLS(DECLARE)

static void *stream;
static char said[1 << 14]; // the text of an answer

static int fail(const char *what) {
  snprintf(said, sizeof said, "%s", what);
  return ownError;
}

static int load_driver(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!driver) return fail(dlerror());
#define FIND(name, args) \
  if (!(name = (int(*) args)dlsym(driver, #name))) return fail("the driver (libcuda.so.1) has no " #name);
  CALLS(FIND)
  return 0;
}

// TRY calls the driver, and returns the result from the function if it is an error.
#define TRY(call) \
  do { \
    int e_ = (call); \
    if (e_) return e_; \
  } while (0)

// open_device maps the memory at the given addresses, before the driver can use the addresses, and describes the
// device.
static int open_device(const u64 *args) {
  void *context, *at = (void *)args[0];
  int device, major, minor, same;
  char name[128];
  if (mmap(at, args[1], PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, memory, 0) != at)
    return fail("the process that drives the GPU has no room at the addresses of device memory");
  TRY(load_driver());
  TRY(cuInit(0));
  TRY(cuDeviceGet(&device, 0));
  TRY(cuDeviceGetName(name, sizeof name, device));
  TRY(cuDeviceGetAttribute(&major, 75, device));
  TRY(cuDeviceGetAttribute(&minor, 76, device));
  TRY(cuDeviceGetAttribute(&same, hostPointer, device));
  if (!same) return fail("the GPU has registered memory of the host at other addresses than the host has");
  TRY(cuDevicePrimaryCtxRetain(&context, device));
  TRY(cuCtxSetCurrent(context));
  TRY(cuStreamCreate(&stream, 1)); // a stream that does not wait for the default stream
  snprintf(said, sizeof said, "%s (sm_%d%d)", name, major, minor);
  return 0;
}

static int register_memory(const u64 *args) {
  u64 at;
  TRY(cuMemHostRegister_v2((void *)args[0], args[1], mapped));
  TRY(cuMemHostGetDevicePointer_v2(&at, (void *)args[0], 0));
  return at == args[0] ? 0 : fail("the GPU has registered memory of the host at other addresses than the host has");
}

// load links texts, each preceded by its length, and answers with the module.
static int load(const char *data, size_t size) {
  void *link, *image, *module;
  size_t bytes;
  int options[] = {errorLog, errorLogSize};
  void *values[] = {said, (void *)(sizeof said - 1)};
  TRY(cuLinkCreate_v2(2, options, values, &link));
  int e = 0;
  for (size_t at = 0; !e && at + 8 <= size;) {
    u64 n;
    memcpy(&n, data + at, 8);
    at += 8;
    if (n > size - at) return fail("BUG: a text is longer than its request");
    e = cuLinkAddData_v2(link, inputPTX, (void *)(data + at), n, "kernel", 0, NULL, NULL);
    at += n;
  }
  if (!e) e = cuLinkComplete(link, &image, &bytes);
  if (!e) e = cuModuleLoadData(&module, image);
  cuLinkDestroy(link);
  if (!e) snprintf(said, sizeof said, "%llu", (unsigned long long)(u64)module);
  return e;
}

struct launch {
  u64 module;
  u32 grid[3], block[3], shared, cooperative, params, bytes;
  // then params offsets of 32 bits, the parameters, and the name with a 0 at its end
};

static int launch(char *data, size_t size) {
  struct launch l;
  void *f, *values[4096];
  if (size < sizeof l) return fail("BUG: a launch of too few bytes");
  memcpy(&l, data, sizeof l);
  char *offsets = data + sizeof l, *block = offsets + 4 * (size_t)l.params;
  if (l.params > 4096 || sizeof l + 4 * (size_t)l.params + l.bytes >= size || data[size - 1]) return fail("BUG: a launch of too few bytes");
  for (u32 i = 0; i < l.params; i++) {
    u32 at;
    memcpy(&at, offsets + 4 * i, 4);
    values[i] = block + at;
  }
  TRY(cuModuleGetFunction(&f, (void *)l.module, block + l.bytes));
  if (l.shared > 48 << 10) TRY(cuFuncSetAttribute(f, sharedLimit, (int)l.shared));
  if (l.cooperative)
    return cuLaunchCooperativeKernel(f, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.shared, stream, values);
  return cuLaunchKernel(f, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.shared, stream, values, NULL);
}

// query reports whether the launch has ended. When it has, the driver writes what kernels printed to the standard
// output.
static int query(void) {
  int e = cuStreamQuery(stream);
  if (e == notReady) return e;
  int ended = cuCtxSynchronize();
  return e ? e : ended;
}

static int answer(u32 op, char *data, size_t size) {
  switch (op) {
    case opOpen: return open_device((u64 *)data);
    case opRegister: return register_memory((u64 *)data);
    case opUnregister: return cuMemHostUnregister(*(void **)data);
    case opLoad: return load(data, size);
    case opLaunch: return launch(data, size);
    case opQuery: return query();
  }
  return fail("BUG: an unknown request");
}

static int all(ssize_t (*f)(int, void *, size_t), void *data, size_t size) {
  for (char *p = data; size > 0;) {
    ssize_t n = f(connection, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    p += n;
    size -= (size_t)n;
  }
  return 1;
}

static ssize_t put(int fd, void *data, size_t size) { return write(fd, data, size); }

static int reply(int result, char *text, size_t size) {
  u32 head[2] = {(u32)result, (u32)size};
  return all(put, head, sizeof head) && all(put, text, size);
}

// printed answers with what kernels have printed since the last request. The standard output is a file.
static int printed(void) {
  fflush(stdout);
  off_t size = lseek(1, 0, SEEK_CUR);
  char *text = malloc((size_t)size + 1);
  int ok = text && pread(1, text, (size_t)size, 0) == size && reply(0, text, (size_t)size);
  free(text);
  return ok && lseek(1, 0, SEEK_SET) == 0 && ftruncate(1, 0) == 0;
}

int main(void) {
  char *data = NULL;
  size_t room = 0;
  int file = memfd_create("fencepost-printed", MFD_CLOEXEC);
  if (file < 0 || dup2(file, 1) < 0) return 1;
  for (u32 head[2]; all(read, head, sizeof head);) {
    if (head[1] > room) {
      free(data);
      room = head[1];
      if (!(data = malloc(room))) return 1;
    }
    if (head[1] && !all(read, data, head[1])) return 1;
    if (head[0] == opPrinted) {
      if (!printed()) return 1;
      continue;
    }
    *said = 0;
    int e = answer(head[0], data, head[1]);
    const char *text = NULL;
    if (e && e != notReady && !*said && cuGetErrorString && !cuGetErrorString(e, &text) && text) snprintf(said, sizeof said, "%s", text);
    if (!reply(e, said, strlen(said))) return 1;
  }
  return 0;
}
