// Several memory pools: what is allocated from them, their counts and bounds, access, and wrong uses.
// flags: -lcuda -lcudart_static -lpthread
// stdout: ok
#include "api.h"

typedef uint64_t ptr;
typedef struct { int type, id; } location;
typedef struct { int type, handles; location at; void *security; size_t most; unsigned short usage; char rest[54]; } properties;
typedef struct { location of; int flags; } grant;
int cudaMemPoolCreate(void **, const properties *), cudaMemPoolDestroy(void *), cudaMemPoolTrimTo(void *, size_t), cudaDeviceGetMemPool(void **, int);
int cudaDeviceSetMemPool(int, void *), cudaMemPoolSetAccess(void *, const grant *, size_t), cudaMemPoolGetAccess(int *, void *, location *);
int cudaMemGetDefaultMemPool(void **, location *, int), cudaMemSetMemPool(location *, int, void *);
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuMemPoolGetAttribute(void *, int, void *);
int cuMemAllocFromPoolAsync(ptr *, size_t, void *, stream), cuMemFreeAsync(ptr, stream);

enum { reuse = 1, threshold = 4, reserved, reservedPeak, used, usedPeak };
static uint64_t of(void *pool, int attribute) {
  uint64_t v = 0;
  OK(cudaMemPoolGetAttribute(pool, attribute, &v));
  return v;
}

int main(void) {
  properties p = {.type = 1, .at = {1, 0}}, bad;
  void *first, *second, *bounded, *now, *a, *b, *c;
  stream s;
  OK(cudaStreamCreate(&s));
  OK(cudaDeviceGetDefaultMemPool(&first, 0));
  OK(cudaMemPoolCreate(&second, &p));
  p.most = 1000;
  OK(cudaMemPoolCreate(&bounded, &p));
  TRUE(first != second && second != bounded);
  // Each counts its own.
  OK(cudaMallocAsync(&a, 100, s));
  OK(cudaMallocFromPoolAsync(&b, 200, second, s));
  TRUE(of(first, used) == 100 && of(second, used) == 200);
  OK(cudaFreeAsync(b, s));
  TRUE(of(second, used) == 0 && of(second, usedPeak) == 200 && of(first, used) == 100);
  uint64_t zero = 0, one = 1;
  OK(cudaMemPoolSetAttribute(second, usedPeak, &zero));
  TRUE(of(second, usedPeak) == 0 && of(second, reservedPeak) == 200);
  WANT(cudaMemPoolSetAttribute(second, usedPeak, &one), 1);
  WANT(cudaMemPoolSetAttribute(second, used, &zero), 1);
  uint64_t keep = 1ull << 40;
  OK(cudaMemPoolSetAttribute(second, threshold, &keep));
  TRUE(of(second, threshold) == keep && of(first, threshold) == 0);
  int off = 0;
  OK(cudaMemPoolSetAttribute(second, reuse, &off));
  TRUE(of(second, reuse) == 0 && of(first, reuse) == 1);
  // The one that is current gives what cudaMallocAsync allocates.
  OK(cudaDeviceSetMemPool(0, bounded));
  OK(cudaDeviceGetMemPool(&now, 0));
  TRUE(now == bounded);
  OK(cudaMallocAsync(&b, 600, s));
  TRUE(of(bounded, used) == 600 && of(first, used) == 100);
  WANT(cudaMallocAsync(&c, 500, s), 2); // of 1000
  OK(cudaMallocFromPoolAsync(&c, 500, first, s));
  OK(cudaFreeAsync(c, s));
  OK(cudaFreeAsync(b, s));
  OK(cudaMallocAsync(&b, 1000, s));
  // A pool that is destroyed lets its memory be; the default one is current again, and stays.
  OK(cudaMemPoolDestroy(bounded));
  OK(cudaDeviceGetMemPool(&now, 0));
  TRUE(now == first);
  OK(cudaMemsetAsync(b, 1, 1000, s));
  OK(cudaFreeAsync(b, s));
  WANT(cudaMemPoolDestroy(bounded), 1);
  WANT(cudaMallocFromPoolAsync(&b, 8, bounded, s), 1);
  WANT(cudaMallocFromPoolAsync(&b, 8, NULL, s), 1);
  WANT(cudaMemPoolTrimTo(bounded, 0), 1);
  WANT(cudaMemPoolDestroy(first), 1);
  OK(cudaMemPoolTrimTo(second, 0));
  location here = {1, 0}, there = {1, 1};
  OK(cudaMemSetMemPool(&here, 1, second));
  OK(cudaDeviceGetMemPool(&now, 0));
  TRUE(now == second);
  OK(cudaMemGetDefaultMemPool(&now, &here, 1));
  TRUE(now == first);
  int flags = 0;
  OK(cudaMemPoolGetAccess(&flags, second, &here));
  TRUE(flags == 3);
  OK(cudaMemPoolSetAccess(second, &(grant){here, 3}, 1));
  WANT(cudaMemPoolSetAccess(second, &(grant){here, 0}, 1), 1); // the device of the pool
  WANT(cudaMemPoolSetAccess(second, &(grant){there, 3}, 1), 101);
  bad = p, bad.at.id = 1;
  WANT(cudaMemPoolCreate(&now, &bad), 101);
  WANT(cudaMemPoolCreate(&now, NULL), 1);
  // Both APIs have the same pools.
  void *context;
  ptr q;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuMemAllocFromPoolAsync(&q, 50, second, s));
  uint64_t by_driver = 0;
  OK(cuMemPoolGetAttribute(second, used, &by_driver));
  TRUE(by_driver == 50 && of(second, used) == 50);
  OK(cuMemFreeAsync(q, s));
  cudaGetLastError();
  puts("ok");
}
