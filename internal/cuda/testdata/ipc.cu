// Memory and events that one process hands to another.
// stdout: ok
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#define OK(x) do { cudaError_t e_ = (x); if (e_) { printf("line %d: %s\n", __LINE__, cudaGetErrorName(e_)); exit(1); } } while (0)
#define WANT(x, y) do { cudaError_t e_ = (x); if (e_ != (y)) { printf("line %d: %s\n", __LINE__, cudaGetErrorName(e_)); exit(1); } cudaGetLastError(); } while (0)
#define TRUE(x) do { if (!(x)) { printf("line %d: not so: %s\n", __LINE__, #x); exit(1); } } while (0)
__global__ void add(int *p, int n) { p[threadIdx.x] += n; }
struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};
static int there[2], back[2];
static void tell(int fd) { TRUE(write(fd, "x", 1) == 1); }
static void hear(int fd) { char c; TRUE(read(fd, &c, 1) == 1); }
// The owner: fills the memory, and lets the other process go on after an event, without waiting for it.
static void owner() {
  int *a, *inner;
  OK(cudaMalloc(&a, 256));
  OK(cudaMemset(a, 0, 256));
  OK(cudaDeviceSynchronize());
  inner = a + 8;
  Handles h;
  OK(cudaIpcGetMemHandle(&h.memory, inner)); // of the allocation around
  cudaEvent_t e, plain;
  OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming | cudaEventInterprocess));
  OK(cudaEventCreate(&plain));
  WANT(cudaIpcGetEventHandle(&h.event, plain), cudaErrorInvalidValue);
  OK(cudaIpcGetEventHandle(&h.event, e));
  int *own;
  WANT(cudaIpcOpenMemHandle((void **)&own, h.memory, cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized);
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  add<<<1, 64, 0, s>>>(a, 1);
  OK(cudaEventRecord(e, s));
  TRUE(write(there[1], &h, sizeof h) == sizeof h);
  hear(back[0]); // the other one's kernel has ended
  add<<<1, 64, 0, s>>>(a, 100);
  OK(cudaEventRecord(e, s));
  tell(there[1]); // while this kernel may run
  hear(back[0]);
  int got[64];
  OK(cudaMemcpy(got, a, 256, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) TRUE(got[i] == 1111);
  OK(cudaFree(a));
  tell(there[1]);
}
static void user() {
  Handles h;
  TRUE(read(there[0], &h, sizeof h) == sizeof h);
  int *a;
  cudaEvent_t e;
  OK(cudaIpcOpenMemHandle((void **)&a, h.memory, cudaIpcMemLazyEnablePeerAccess));
  OK(cudaIpcOpenEventHandle(&e, h.event));
  cudaPointerAttributes x;
  OK(cudaPointerGetAttributes(&x, a));
  TRUE(x.type == cudaMemoryTypeDevice);
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  OK(cudaStreamWaitEvent(s, e));
  add<<<1, 64, 0, s>>>(a, 10);
  OK(cudaStreamSynchronize(s));
  tell(back[1]);
  hear(there[0]);
  OK(cudaEventSynchronize(e));
  add<<<1, 64, 0, s>>>(a, 1000);
  OK(cudaStreamSynchronize(s));
  OK(cudaIpcCloseMemHandle(a));
  WANT(cudaIpcCloseMemHandle(a), cudaErrorInvalidValue);
  OK(cudaEventDestroy(e));
  tell(back[1]);
  hear(there[0]);
  WANT(cudaIpcOpenMemHandle((void **)&a, h.memory, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidValue); // it is freed
  memset(&h, 0, sizeof h);
  WANT(cudaIpcOpenEventHandle(&e, h.event), cudaErrorInvalidResourceHandle);
}
int main() {
  TRUE(!pipe(there) && !pipe(back));
  pid_t child = fork(); // before the first call of CUDA
  if (!child) {
    user();
    return 0;
  }
  owner();
  int status;
  TRUE(waitpid(child, &status, 0) == child && status == 0);
  puts("ok");
}
