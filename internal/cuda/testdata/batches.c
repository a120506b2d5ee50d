// Batches of copies, advice about managed memory, attributes of streams, copies between devices by the driver API: what they do, and wrong uses.
// flags: -lcuda -lcudart_static -lpthread
// stdout: ok
#include "api.h"

typedef uint64_t ptr;
typedef struct { int type, id; } location;
typedef struct { int order; location from, to; unsigned flags; } how;
typedef struct { int type, pad; union { struct { void *at; size_t row, height; location hint; } pointer; struct { void *array; size_t x, y, z; } array; } of; } operand;
typedef struct { operand from, to; size_t width, height, depth; int order; unsigned flags; } box;
typedef struct { int bits[4], format; } channel;
int cudaMemcpyBatchAsync(void **, void **, size_t *, size_t, how *, size_t *, size_t, stream), cudaMemcpy3DBatchAsync(size_t, box *, unsigned long long, stream);
int cudaMemcpyWithAttributesAsync(void *, const void *, size_t, how *, stream), cudaMallocArray(void **, const channel *, size_t, size_t, unsigned);
int cudaMemcpyArrayToArray(void *, size_t, size_t, const void *, size_t, size_t, size_t, int), cudaMemcpyFromArray(void *, const void *, size_t, size_t, size_t, int);
int cudaMemAdvise_v2(const void *, size_t, int, location), cudaMemPrefetchAsync_v2(const void *, size_t, location, unsigned, stream);
int cudaMemRangeGetAttribute(void *, size_t, int, const void *, size_t), cudaMemRangeGetAttributes(void **, size_t *, int *, size_t, const void *, size_t);
int cudaStreamSetAttribute(stream, int, const void *), cudaStreamGetAttribute(stream, int, void *), cudaStreamCopyAttributes(stream, stream);
int cudaStreamBeginCapture(stream, int), cudaStreamEndCapture(stream, void **);
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuMemAdvise(ptr, size_t, int, int), cuStreamGetId(stream, uint64_t *);
int cuMemcpyBatchAsync(ptr *, ptr *, size_t *, size_t, how *, size_t *, size_t, size_t *, stream), cuMemcpyPeer(ptr, void *, ptr, void *, size_t);
int cuMemcpyBatchAsync_v2_ptsz(ptr *, ptr *, size_t *, size_t, how *, size_t *, size_t, stream), cuMemRangeGetAttribute(void *, size_t, int, ptr, size_t);
int cuCtxEnablePeerAccess(void *, unsigned), cuDeviceGetP2PAttribute(int *, int, int, int), cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

enum { inOrder = 1, duringCall, anyTime };
static const location host = {2, 0}, device = {1, 0};

static void batches(stream s) {
  char *d, in[64], out[64] = {0};
  size_t sizes[3] = {16, 16, 16}, first[] = {0, 2};
  how order[] = {{inOrder}, {duringCall}}, wrong = {4};
  for (int i = 0; i < 64; i++) in[i] = i;
  OK(cudaMalloc((void **)&d, 64));
  OK(cudaMemset(d, 0, 64));
  void *to[] = {d, d + 16, d + 32}, *from[] = {in, in + 32, in + 16}, *back[] = {out, out + 16, out + 32};
  OK(cudaMemcpyBatchAsync(to, from, sizes, 3, order, first, 2, s));
  OK(cudaMemcpyBatchAsync(back, to, sizes, 3, order, first, 1, s));
  OK(cudaStreamSynchronize(s));
  TRUE(!memcmp(out, in, 16) && !memcmp(out + 16, in + 32, 16) && !memcmp(out + 32, in + 16, 16));
  WANT(cudaMemcpyBatchAsync(to, from, sizes, 3, order, first, 2, 0), 1); // the legacy default stream
  WANT(cudaMemcpyBatchAsync(to, from, sizes, 0, order, first, 1, s), 1);
  WANT(cudaMemcpyBatchAsync(to, from, sizes, 3, &wrong, first, 1, s), 1);
  WANT(cudaMemcpyBatchAsync(to, from, sizes, 3, order, first + 1, 1, s), 1); // the first copy has no attributes
  WANT(cudaMemcpyBatchAsync(to, from, sizes, 1, order, first, 2, s), 1);
  OK(cudaMemcpyWithAttributesAsync(d + 48, in + 8, 8, &(how){anyTime}, s));
  OK(cudaMemcpyAsync(out, d + 48, 8, DeviceToHost, s));
  OK(cudaStreamSynchronize(s));
  TRUE(!memcmp(out, in + 8, 8));
  // By the driver API, which tells where it failed.
  size_t failed = 0;
  ptr p[] = {(ptr)d, (ptr)d + 60}, q[] = {(ptr)in, (ptr)in};
  WANT(cuMemcpyBatchAsync(p, q, sizes, 2, order, first, 1, &failed, s), 1);
  TRUE(failed == 1);
  OK(cuMemcpyBatchAsync(p, q, sizes, 1, order, first, 1, &failed, s));
  TRUE(failed == SIZE_MAX);
  OK(cuMemcpyBatchAsync_v2_ptsz(p, q, sizes, 1, order, first, 1, 0)); // the thread's own default stream
  // Boxes: rows of 4 elements out of rows of 8, and an array.
  void *a, *b;
  channel four = {{32, 0, 0, 0}, 0};
  OK(cudaMallocArray(&a, &four, 4, 2, 0));
  OK(cudaMallocArray(&b, &four, 4, 2, 0));
  box list[] = {{{1, 0, {.pointer = {in, 8, 0}}}, {1, 0, {.pointer = {d, 0, 0}}}, 4, 2, 1, inOrder},
                {{1, 0, {.pointer = {in, 4, 2}}}, {2, 0, {.array = {a, 0, 0, 0}}}, 4, 2, 1, inOrder}};
  OK(cudaMemcpy3DBatchAsync(2, list, 0, s));
  OK(cudaStreamSynchronize(s));
  OK(cudaMemcpy(out, d, 8, DeviceToHost));
  TRUE(!memcmp(out, in, 4) && !memcmp(out + 4, in + 8, 4));
  OK(cudaMemcpyArrayToArray(b, 0, 0, a, 0, 0, 32, DeviceToDevice));
  OK(cudaMemcpyFromArray(out, b, 0, 0, 32, DeviceToHost));
  TRUE(!memcmp(out, in, 32));
  WANT(cudaMemcpyArrayToArray(b, 0, 1, a, 0, 0, 32, DeviceToDevice), 1);
  list[1].width = 5;
  WANT(cudaMemcpy3DBatchAsync(2, list, 0, s), 1);
  list[1].width = 0;
  WANT(cudaMemcpy3DBatchAsync(2, list, 0, s), 1);
  cudaGetLastError();
}

static int attribute(int which, const char *p, size_t n) {
  int v = 99;
  OK(cudaMemRangeGetAttribute(&v, sizeof v, which, p, n));
  return v;
}

static void advice(stream s) {
  enum { readMostly = 1, preferred, accessedBy, prefetched, preferredType, preferredId };
  char *m, *d;
  OK(cudaMallocManaged((void **)&m, 1 << 16, 1));
  OK(cudaMalloc((void **)&d, 64));
  TRUE(!attribute(readMostly, m, 1 << 16) && attribute(preferred, m, 100) == -2 && attribute(prefetched, m, 100) == -2);
  OK(cudaMemAdvise_v2(m, 8192, 1, device));
  OK(cudaMemAdvise_v2(m, 1 << 16, 3, host));
  TRUE(attribute(readMostly, m, 8192) && attribute(readMostly, m + 4096, 4096) && !attribute(readMostly, m, 8193));
  TRUE(attribute(preferred, m, 1 << 16) == -1 && attribute(preferredType, m, 1 << 16) == 2);
  OK(cuMemAdvise((ptr)m, 4096, 3, 0)); // both APIs know
  TRUE(attribute(preferred, m, 4096) == 0 && attribute(preferred, m, 4097) == -2 && attribute(preferred, m + 4096, 4096) == -1);
  OK(cudaMemAdvise_v2(m, 4096, 2, device));
  TRUE(!attribute(readMostly, m, 4096) && attribute(readMostly, m + 4096, 4096));
  OK(cudaMemPrefetchAsync_v2(m, 4096, device, 0, s));
  TRUE(attribute(prefetched, m, 4096) == 0 && attribute(prefetched, m, 8192) == -2);
  OK(cudaMemAdvise_v2(m, 4096, 5, device));
  OK(cudaMemAdvise_v2(m, 4096, 5, host));
  int by[3], one, which[] = {accessedBy, readMostly};
  void *out[] = {by, &one};
  size_t sizes[] = {sizeof by, sizeof one};
  OK(cudaMemRangeGetAttributes(out, sizes, which, 2, m, 4096));
  TRUE(by[0] == -1 && by[1] == 0 && by[2] == -2 && one == 0);
  OK(cudaMemAdvise_v2(m, 4096, 6, device));
  OK(cuMemRangeGetAttribute(by, sizeof by, accessedBy, (ptr)m, 4096));
  TRUE(by[0] == -1 && by[1] == -2);
  WANT(cudaMemAdvise_v2(m, 4096, 7, device), 1);
  WANT(cudaMemAdvise_v2(m, (1 << 16) + 1, 1, device), 1);
  WANT(cudaMemAdvise_v2(d, 64, 1, device), 1); // not managed
  WANT(cudaMemPrefetchAsync_v2(d, 64, device, 0, s), 1);
  WANT(cudaMemRangeGetAttribute(&one, 8, readMostly, m, 64), 1);
  WANT(cudaMemRangeGetAttribute(&one, 4, 9, m, 64), 1);
  WANT(cudaMemRangeGetAttribute(&one, 4, readMostly, d, 64), 1);
  cudaGetLastError();
}

static void streams(void) {
  stream s, t;
  int v[16] = {0}, got[16];
  uint64_t id, other;
  OK(cudaStreamCreateWithPriority(&s, 1, -2));
  OK(cudaStreamCreate(&t));
  OK(cudaStreamGetAttribute(s, 8, got));
  TRUE(got[0] == -2);
  v[0] = 3;
  OK(cudaStreamSetAttribute(s, 3, v));
  OK(cudaStreamCopyAttributes(t, s));
  OK(cudaStreamGetAttribute(t, 3, got));
  TRUE(got[0] == 3);
  OK(cudaStreamGetAttribute(t, 8, got));
  TRUE(got[0] == -2);
  WANT(cudaStreamSetAttribute(s, 2, v), 1); // of launches only
  OK(cuStreamGetId(s, &id));
  OK(cuStreamGetId(t, &other));
  TRUE(id != other);
  cudaGetLastError();
}

int main(void) {
  void *context, *graph, *f, *g;
  stream s;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cudaStreamCreate(&s));
  batches(s);
  advice(s);
  streams();
  char *p;
  OK(cudaMalloc((void **)&p, 64));
  OK(cuMemcpyPeer((ptr)p, context, (ptr)p + 32, context, 32));
  WANT(cuMemcpyPeer((ptr)p, NULL, (ptr)p + 32, context, 32), 201);
  WANT(cuCtxEnablePeerAccess(context, 0), 101);
  int value;
  WANT(cuDeviceGetP2PAttribute(&value, 2, 0, 0), 101);
  // The variants for per-thread default streams are other functions.
  const char *const names[] = {"cuMemcpyPeerAsync", "cuMemcpy2D", "cuMemcpyHtoA", "cuMemsetD2D8", "cuStreamGetId", "cuMemcpyBatchAsync", "cuStreamSetAttribute"};
  for (int i = 0; i < 7; i++) {
    OK(cuGetProcAddress_v2(names[i], &f, 13000, 0, NULL));
    OK(cuGetProcAddress_v2(names[i], &g, 13000, 2, NULL));
    TRUE(f != g);
  }
  puts("ok");
}
