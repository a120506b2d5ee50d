// Stream capture: what it takes, what it refuses, and that a refused call ends it.
// stdout: ok
// flags: -lcuda
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>

#define WANT(call, code)                                                                               \
  do {                                                                                                 \
    cudaError_t got = (cudaError_t)(call);                                                             \
    if (got != (code)) printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(got)), exit(9);   \
  } while (0)
#define OK(call) WANT(call, cudaSuccess)
#define TRUE(x)                                                \
  do {                                                         \
    if (!(x)) printf("line %d: not so: %s\n", __LINE__, #x), exit(9); \
  } while (0)

__global__ void add(int *p, int v) { p[threadIdx.x] += v; }

enum { n = 64 };
static int called;
static void CUDART_CB host(void *p) { called++; }

// broken captures a kernel and a call that is refused.
template <class F> static void broken(cudaStream_t s, int *p, cudaError_t want, F call) {
  cudaGraph_t g;
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  add<<<1, n, 0, s>>>(p, 1);
  WANT(call(), want);
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(s, &status));
  TRUE(status == cudaStreamCaptureStatusInvalidated);
  add<<<1, n, 0, s>>>(p, 1);
  WANT(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
  WANT(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureInvalidated);
  TRUE(!g);
  cudaGetLastError();
}

int main() {
  int *a, *b, *more, out[2 * n] = {};
  cudaStream_t s, t;
  cudaEvent_t fork, join;
  cudaGraph_t g;
  cudaGraphExec_t x;
  OK(cudaMalloc(&a, n * 4));
  OK(cudaMalloc(&b, n * 4));
  OK(cudaStreamCreate(&s));
  OK(cudaStreamCreate(&t));
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&join));
  OK(cudaMemset(a, 0, n * 4));
  OK(cudaDeviceSynchronize());

  WANT(cudaStreamWaitEvent(s, fork, cudaEventWaitExternal), cudaErrorInvalidValue); // outside of a capture
  WANT(cudaEventRecordWithFlags(fork, s, cudaEventRecordExternal), cudaErrorInvalidValue);
  WANT(cudaStreamWaitEvent(s, fork, 6), cudaErrorInvalidValue);
  cudaGetLastError();
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  OK(cudaMemsetAsync(a, 0, n * 4, s));
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(t, fork, 0));
  OK(cudaMemsetAsync(b, 0, n * 4, t));
  for (int i = 1; i <= 3; i++) add<<<1, n, 0, s>>>(a, i);
  add<<<1, n, 0, t>>>(b, 100);
  OK(cuMemsetD32Async((CUdeviceptr)b, 7, 1, t)); // the driver API sees the same capture
  OK(cudaMallocAsync(&more, n * 4, t));
  OK(cudaMemcpyAsync(more, b, n * 4, cudaMemcpyDeviceToDevice, t));
  OK(cudaMemcpyAsync(out + n, more, n * 4, cudaMemcpyDeviceToHost, t));
  OK(cudaFreeAsync(more, t));
  OK(cudaEventRecord(join, t));
  OK(cudaStreamWaitEvent(s, join, 0));
  OK(cudaMemcpyAsync(out, a, n * 4, cudaMemcpyDeviceToHost, s));
  OK(cudaLaunchHostFunc(s, host, nullptr));
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(t, &status));
  TRUE(status == cudaStreamCaptureStatusActive);
  WANT(cudaStreamIsCapturing(0, &status), cudaErrorStreamCaptureImplicit);
  CUstreamCaptureStatus other;
  OK(cuStreamIsCapturing(s, &other));
  TRUE(other == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cudaStreamEndCapture(s, &g));
  cudaGraphNode_t list[16];
  size_t many = 16, kernels = 0;
  OK(cudaGraphGetNodes(g, list, &many));
  for (size_t i = 0; i < many; i++) {
    cudaGraphNodeType type;
    cudaKernelNodeParams shown;
    OK(cudaGraphNodeGetType(list[i], &type));
    if (type != cudaGraphNodeTypeKernel) continue;
    OK(cudaGraphKernelNodeGetParams(list[i], &shown));
    TRUE(shown.func == (void *)add);
    kernels++;
  }
  TRUE(kernels == 4);
  OK(cudaGraphDebugDotPrint(g, "/dev/null", 0));
  WANT(cudaGraphDebugDotPrint(g, "/no/such/folder/g.dot", 0), cudaErrorOperatingSystem);
  TRUE(called == 0 && out[0] == 0);
  size_t nodes;
  OK(cudaGraphGetNodes(g, nullptr, &nodes));
  TRUE(nodes == 13);
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, s));
  OK(cudaGraphLaunch(x, t)); // after the first
  OK(cudaStreamSynchronize(t));
  TRUE(called == 2);
  for (int i = 0; i < n; i++) TRUE(out[i] == 6 && out[n + i] == (i ? 100 : 7));

  // A launch of a graph is captured as a child graph.
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  OK(cudaGraphLaunch(x, s));
  OK(cudaMalloc(&more, 4));
  OK(cudaStreamEndCapture(s, &g));
  OK(cudaGraphGetNodes(g, nullptr, &nodes));
  TRUE(nodes == 1);
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  TRUE(called == 3);

  // What is refused.
  WANT(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  broken(s, a, cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(s); });
  broken(s, a, cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamQuery(s); });
  broken(s, a, cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&more, 4); });
  broken(s, a, cudaErrorStreamCaptureUnsupported, [&] { return cudaDeviceSynchronize(); });
  broken(s, a, cudaErrorStreamCaptureImplicit, [&] { return cudaMemcpy(out, a, 4, cudaMemcpyDeviceToHost); });
  broken(s, a, cudaErrorStreamCaptureImplicit, [&] { return cudaMemsetAsync(b, 0, 4, 0); });
  broken(s, a, cudaErrorStreamCaptureIsolation, [&] {
    cudaEvent_t plain;
    OK(cudaEventCreate(&plain));
    OK(cudaEventRecord(plain, t));
    return cudaStreamWaitEvent(s, plain, 0);
  });
  broken(s, a, cudaErrorCapturedEvent, [&] {
    OK(cudaEventRecord(fork, s));
    return cudaEventSynchronize(fork);
  });
  // A fork that is not joined.
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  add<<<1, n, 0, s>>>(a, 1);
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(t, fork, 0));
  add<<<1, n, 0, t>>>(b, 1);
  WANT(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureUnjoined);
  WANT(cudaStreamEndCapture(s, &g), cudaErrorIllegalState);
  cudaGetLastError();
  // The streams are free again.
  add<<<1, n, 0, s>>>(a, 1);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(out, a, 4, cudaMemcpyDeviceToHost));
  TRUE(out[0] == 7);
  puts("ok");
}
