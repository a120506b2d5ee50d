// stdout: ok
#include "api.h"

static int seen;
static void on_host(void *data) { seen += *(int *)data; }
static void calls_cuda(void *data) {
  void *p;
  seen = cudaMalloc(&p, 4) == 800 && cudaStreamSynchronize(NULL) == 800;
}
static void on_default(stream s, int status, void *data) { seen += status == 0 && !s ? *(int *)data : 0; }
static void on_stream(stream s, int status, void *data) { seen += status == 0 && s ? *(int *)data : 0; }

static int number(const char *p, int at) {
  int v;
  memcpy(&v, p + at, 4);
  return v;
}

static void device(void) {
  int n, v, major;
  size_t x;
  char p[2048], id[32];
  OK(cudaGetDeviceCount(&n));
  TRUE(n == 1);
  OK(cudaSetDevice(0));
  WANT(cudaSetDevice(1), 101);
  WANT(cudaGetLastError(), 101);
  OK(cudaGetDevice(&v));
  TRUE(v == 0);
  OK(cudaDeviceGetAttribute(&v, 10, 0)); // warp size
  TRUE(v == 32);
  OK(cudaDeviceGetAttribute(&major, 75, 0));
  WANT(cudaDeviceGetAttribute(&v, 5000, 0), 1);
  memset(p, 0xee, sizeof p);
  OK(cudaGetDeviceProperties(p, 0)); // CUDA 13
  TRUE(number(p, 308) == 32 && number(p, 320) == 1024 && number(p, 360) == major && number(p, 384) > 0);
  TRUE((unsigned char)p[1008] == 0xee && (unsigned char)p[1007] == 0);
  memset(p, 0xee, sizeof p);
  OK(cudaGetDeviceProperties_v2(p, 0)); // CUDA 12
  TRUE(number(p, 308) == 32 && number(p, 360) == major && number(p, 388) > 0 && number(p, 576) == 1);
  TRUE((unsigned char)p[1032] == 0xee && (unsigned char)p[1031] == 0);
  OK(cudaDeviceSetLimit(0, 4096));
  OK(cudaDeviceGetLimit(&x, 0));
  TRUE(x == 4096);
  WANT(cudaDeviceSetLimit(99, 1), 215);
  OK(cudaRuntimeGetVersion(&v));
  TRUE(v >= 13000);
  OK(cudaDriverGetVersion(&n));
  TRUE(n >= v);
  OK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
  OK(cudaDeviceGetByPCIBusId(&v, id));
  TRUE(v == 0);
  WANT(cudaDeviceCanAccessPeer(&v, 0, 1), 101);
}

static void streams(void) {
  stream s, t;
  event e, f, quick;
  unsigned flags;
  int priority, least, greatest, one = 1, ten = 10;
  float ms = -1;
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  TRUE(least >= greatest);
  OK(cudaStreamCreateWithFlags(&s, 1));
  OK(cudaStreamCreateWithPriority(&t, 0, greatest));
  WANT(cudaStreamCreateWithFlags(&s + 0, 8), 1);
  OK(cudaStreamGetFlags(s, &flags));
  TRUE(flags == 1);
  OK(cudaStreamGetPriority(t, &priority));
  TRUE(priority == greatest);
  OK(cudaStreamIsCapturing(s, &one));
  TRUE(one == 0);
  one = 1;
  OK(cudaEventCreate(&e));
  OK(cudaEventCreateWithFlags(&f, 1));
  OK(cudaEventCreateWithFlags(&quick, 2));
  OK(cudaEventRecord(e, s));
  OK(cudaStreamWaitEvent(t, e, 0));
  OK(cudaEventRecord(f, t));
  OK(cudaEventRecord(quick, 0));
  OK(cudaEventSynchronize(f));
  OK(cudaEventQuery(f));
  OK(cudaStreamQuery(t));
  OK(cudaEventElapsedTime(&ms, e, f));
  TRUE(ms > 0);
  WANT(cudaEventElapsedTime(&ms, e, quick), 400);
  OK(cudaLaunchHostFunc(s, calls_cuda, &one));
  WANT(cudaGetLastError(), 400); // the other is of the function's thread
  TRUE(seen == 1);
  seen = 0;
  OK(cudaLaunchHostFunc(s, on_host, &one));
  OK(cudaStreamAddCallback(s, on_stream, &ten, 0));
  OK(cudaStreamSynchronize(s));
  TRUE(seen == 11);
  OK(cudaStreamAddCallback(NULL, on_default, &ten, 0));
  WANT(cudaStreamAddCallback(NULL, on_default, &ten, 1), 1);
  OK(cudaDeviceSynchronize());
  TRUE(seen == 21);
  OK(cudaEventDestroy(e));
  WANT(cudaEventDestroy(e), 400);
  WANT(cudaEventRecord(e, s), 400);
  OK(cudaStreamDestroy(s));
  WANT(cudaStreamSynchronize(s), 400);
  OK(cudaStreamSynchronize((stream)1));
  OK(cudaStreamSynchronize((stream)2));
}

static void errors(void) {
  void *x;
  cudaGetLastError();
  OK(cudaGetLastError());
  WANT(cudaMalloc(NULL, 1), 1);
  OK(cudaDeviceSynchronize());
  WANT(cudaPeekAtLastError(), 1);
  WANT(cudaGetLastError(), 1);
  OK(cudaGetLastError());
  TRUE(!strcmp(cudaGetErrorName(700), "cudaErrorIllegalAddress"));
  TRUE(!strcmp(cudaGetErrorString(0), "no error"));
  TRUE(cudaGetErrorString(123456) != NULL);
  WANT(cudaGraphicsMapResources(1, &x, NULL), 801);
  WANT(cudaGetLastError(), 801);
}

int main(void) {
  void *p;
  device();
  streams();
  errors();
  OK(cudaMalloc(&p, 16));
  OK(cudaDeviceReset());
  WANT(cudaFree(p), 1);
  OK(cudaMalloc(&p, 16));
  OK(cudaFree(p));
  puts("ok");
}
