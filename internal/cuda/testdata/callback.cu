// A function that a stream calls gets an error from calls of both APIs, whichever has put it there; the thread that puts it there does not.
// flags: -lcuda
// stdout: ok
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>

#define WANT(call, code) do { int e = (call); if (e != (code)) printf("line %d: %s gives %d\n", __LINE__, #call, e), exit(9); } while (0)
#define OK(call) WANT(call, 0)

static CUstream s;
static std::atomic<int> calls, go;

static void refused(void *p) {
  void *q;
  CUdeviceptr d;
  WANT(cudaMalloc(&q, 4), cudaErrorNotPermitted);
  WANT(cuMemAlloc(&d, 4), CUDA_ERROR_NOT_PERMITTED);
  WANT(cudaStreamSynchronize(s), cudaErrorNotPermitted);
  WANT(cuStreamSynchronize(s), CUDA_ERROR_NOT_PERMITTED);
  WANT(cuLaunchHostFunc(s, refused, nullptr), CUDA_ERROR_NOT_PERMITTED);
  calls++;
}

static void waits(void *p) {
  while (!go) continue;
  refused(p);
}

int main() {
  CUdeviceptr d;
  OK(cudaStreamCreate(&s));
  OK(cuMemAlloc(&d, 4));
  OK(cudaLaunchHostFunc(s, refused, nullptr));
  OK(cuLaunchHostFunc(s, refused, nullptr));
  OK(cudaStreamSynchronize(s));
  OK(cuLaunchHostFunc(s, waits, nullptr));
  OK(cuMemFree(0));
  WANT(cudaStreamQuery(s), cudaErrorNotReady);
  go = 1;
  OK(cuStreamSynchronize(s));
  if (calls == 3) puts("ok");
}
