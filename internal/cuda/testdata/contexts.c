// flags: -lcuda -lcudart_static -lpthread
// stdout: ok
// The driver API before cuInit, without a context, and beside the runtime API, which makes one for the thread that calls it.
#include <pthread.h>
#include <sys/wait.h>
#include "api.h"

int cudaInitDevice(int, unsigned, unsigned), cuInit(unsigned), cuDeviceGetCount(int *), cuDeviceGet(int *, int), cuMemAlloc_v2(void **, size_t), cuMemFree_v2(void *), cuDriverGetVersion(int *);
int cuCtxGetCurrent(void **), cuCtxSetCurrent(void *), cuCtxPushCurrent_v2(void *), cuCtxPopCurrent_v2(void **), cuCtxGetDevice(int *), cuCtxSynchronize(void);
int cuDevicePrimaryCtxRetain(void **, int), cuStreamCreate(void **, unsigned), cuModuleLoadData(void **, const void *), cuDeviceTotalMem_v2(size_t *, int);
int cuGetErrorName(int, const char **), cuLibraryLoadData(void **, const void *, void *, void *, unsigned, void *, void *, unsigned), cuPointerGetAttribute(void *, int, void *);
int cuMemGetInfo_v2(size_t *, size_t *), cuCtxGetLimit(size_t *, int);

static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";

static void *elsewhere(void *p) {
  void *m;
  WANT(cuMemAlloc_v2(&m, 4), 201);
  OK(cudaMalloc(&m, 4));
  OK(cuMemFree_v2(m));
  return p;
}

// beside begins with the runtime API.
static int beside(void) {
  int n;
  void *p;
  OK(cudaGetDeviceCount(&n));
  OK(cuDeviceGet(&n, 0));
  OK(cudaInitDevice(0, 0, 0));
  WANT(cuMemAlloc_v2(&p, 4), 201);
  OK(cudaSetDevice(0));
  OK(cuMemAlloc_v2(&p, 4));
  return 0;
}

int main(void) {
  int n;
  size_t bytes, total;
  void *p = NULL, *c = &n, *d;
  const char *name;
  pthread_t t;
  if (!fork()) return beside();
  wait(NULL);
  OK(cuDriverGetVersion(&n));
  OK(cuGetErrorName(3, &name));
  WANT(cuDeviceGetCount(&n), 3);
  WANT(cuDeviceGet(&n, 0), 3);
  WANT(cuMemAlloc_v2(&p, 4), 3);
  WANT(cuCtxGetCurrent(&c), 3);
  WANT(cuCtxSetCurrent(NULL), 3);
  WANT(cuCtxSynchronize(), 3);
  WANT(cuLibraryLoadData(&p, text, NULL, NULL, 0, NULL, NULL, 0), 3);
  WANT(cuInit(1), 1);
  WANT(cuDeviceGet(&n, 0), 3);

  OK(cuInit(0));
  OK(cuDeviceGetCount(&n));
  OK(cuDeviceTotalMem_v2(&total, 0));
  OK(cuCtxGetCurrent(&c));
  TRUE(c == NULL);
  WANT(cuMemAlloc_v2(&p, 4), 201);
  WANT(cuStreamCreate(&p, 0), 201);
  WANT(cuModuleLoadData(&p, text), 201);
  WANT(cuMemGetInfo_v2(&bytes, &total), 201);
  WANT(cuCtxGetLimit(&bytes, 0), 201);
  WANT(cuCtxGetDevice(&n), 201);
  WANT(cuCtxPopCurrent_v2(&c), 201);
  OK(cuLibraryLoadData(&p, text, NULL, NULL, 0, NULL, NULL, 0));

  OK(cuDevicePrimaryCtxRetain(&c, 0));
  OK(cuCtxPushCurrent_v2(c));
  OK(cuMemAlloc_v2(&p, 4));
  OK(cuCtxPopCurrent_v2(&d));
  TRUE(c == d);
  WANT(cuMemFree_v2(p), 201);

  OK(cudaFree(NULL)); // makes the primary context that of the thread
  OK(cuCtxGetCurrent(&d));
  TRUE(c == d);
  OK(cuMemFree_v2(p));
  OK(cuCtxPopCurrent_v2(&d));
  WANT(cuMemAlloc_v2(&p, 4), 201);
  OK(cudaMalloc(&p, 4));
  OK(cuMemFree_v2(p));
  pthread_create(&t, NULL, elsewhere, NULL);
  pthread_join(t, NULL);
  printf("ok\n");
}
