// driver.c is a libcuda.so.1 for tests, with the calls that gpu.c makes. A test executes the requests, at the other end
// of the socket that FENCEPOST_TEST_DRIVER names. The GPU of this driver is the test's engine.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CALL __attribute__((visibility("default")))

enum { opRegister, opUnregister, opLoad, opFunction, opLaunch, opQuery, opPrinted };

static int connection = -1;
static char *answer; // ends with a 0
static size_t length;

static void all(ssize_t (*f)(int, void *, size_t), void *data, size_t size) {
  for (char *p = data; size > 0;) {
    ssize_t n = f(connection, p, size);
    if (n <= 0) exit(9);
    p += n;
    size -= (size_t)n;
  }
}

static ssize_t put(int fd, void *data, size_t size) { return write(fd, data, size); }

static int ask(uint32_t op, void *data, size_t size) {
  uint32_t head[2] = {op, (uint32_t)size};
  all(put, head, sizeof head);
  all(put, data, size);
  all(read, head, sizeof head);
  free(answer);
  answer = calloc(1, (length = head[1]) + 1);
  all(read, answer, length);
  return (int)head[0];
}

CALL int cuInit(unsigned flags) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  (void)flags;
  snprintf(to.sun_path, sizeof to.sun_path, "%s", getenv("FENCEPOST_TEST_DRIVER"));
  connection = socket(AF_UNIX, SOCK_STREAM, 0);
  return connect(connection, (struct sockaddr *)&to, sizeof to) ? 100 : 0; // no device
}
CALL int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
CALL int cuDeviceGetName(char *name, int size, int device) { (void)device; snprintf(name, (size_t)size, "test"); return 0; }
CALL int cuDeviceGetAttribute(int *value, int attribute, int device) { (void)device; *value = attribute == 75 ? 9 : attribute == 91; return 0; }
CALL int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &connection; (void)device; return 0; }
CALL int cuCtxSetCurrent(void *context) { (void)context; return 0; }
CALL int cuStreamCreate(void **stream, unsigned flags) { *stream = &connection; (void)flags; return 0; }
CALL int cuStreamQuery(void *stream) { (void)stream; return ask(opQuery, NULL, 0); }
CALL int cuCtxSynchronize(void) {
  int e = ask(opPrinted, NULL, 0);
  fwrite(answer, 1, length, stdout);
  return e;
}
CALL int cuMemHostRegister_v2(void *at, size_t size, unsigned flags) {
  uint64_t range[2] = {(uint64_t)at, size};
  return flags == 3 ? ask(opRegister, range, sizeof range) : 1;
}
CALL int cuMemHostUnregister(void *at) { return ask(opUnregister, &at, 8); }
CALL int cuMemHostGetDevicePointer_v2(uint64_t *device, void *at, unsigned flags) { *device = (uint64_t)at; (void)flags; return 0; }

// A link is its texts, each with a 0 at its end.
struct link {
  char *text;
  size_t size;
  char *log;
};
CALL int cuLinkCreate_v2(unsigned n, int *options, void **values, struct link **link) {
  *link = calloc(1, sizeof **link);
  if (n == 2 && options[0] == 5) (*link)->log = values[0];
  return 0;
}
CALL int cuLinkAddData_v2(struct link *l, int type, void *data, size_t size, const char *name, unsigned n, int *options, void **values) {
  (void)name, (void)n, (void)options, (void)values;
  if (type != 1 || ((char *)data)[size - 1]) return 1;
  l->text = realloc(l->text, l->size + size + 1);
  memcpy(l->text + l->size, data, size);
  l->text[l->size += size] = 0;
  return 0;
}
CALL int cuLinkComplete(struct link *l, void **image, size_t *size) {
  int e = ask(opLoad, l->text, l->size);
  if (e && l->log) strcpy(l->log, answer);
  *size = 8;
  *image = memcpy(calloc(1, 8), answer, e ? 0 : 8);
  return e;
}
CALL int cuLinkDestroy(struct link *l) { (void)l; return 0; }
CALL int cuModuleLoadData(void **module, const void *image) { *module = *(void **)image; return 0; }

// A function is its number and the sizes of its parameters.
struct function {
  uint64_t number, n, size[];
};
CALL int cuModuleGetFunction(struct function **f, void *module, const char *name) {
  char data[512];
  int size = snprintf(data, sizeof data, "%llu %s", (unsigned long long)(uint64_t)module, name);
  int e = ask(opFunction, data, (size_t)size);
  *f = memcpy(calloc(1, length + 1), answer, length);
  return e;
}
CALL int cuFuncSetAttribute(void *f, int attribute, int value) { (void)f, (void)value; return attribute == 8 ? 0 : 1; }

static int launch(struct function *f, unsigned *shape, int cooperative, void **params) {
  static char data[1 << 16];
  char *to = data;
  memcpy(to, &f->number, 8);
  memcpy(to += 8, shape, 28);
  memcpy(to += 28, &cooperative, 4);
  to += 4;
  for (uint64_t i = 0; i < f->n; to += f->size[i++]) memcpy(to, params[i], f->size[i]);
  return ask(opLaunch, data, (size_t)(to - data));
}
CALL int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                        void **params, void **extra) {
  return stream != &connection || extra ? 1 : launch(f, (unsigned[]){gx, gy, gz, bx, by, bz, shared}, 0, params);
}
CALL int cuLaunchCooperativeKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   void *stream, void **params) {
  return stream != &connection ? 1 : launch(f, (unsigned[]){gx, gy, gz, bx, by, bz, shared}, 1, params);
}
CALL int cuGetErrorString(int e, const char **text) {
  *text = e == 700 ? "an illegal memory access was encountered" : e == 719 ? "unspecified launch failure" : e == 710 ? "device-side assert triggered" : "error";
  return 0;
}
