// Memory pools of the host and of managed memory, and events that launches record.
// stdout: ok
#include <cstdio>
#include <cstdlib>
#define OK(x) do { cudaError_t e = (x); if (e) { printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); exit(1); } } while (0)
#define WANT(x, y) do { cudaError_t e = (x); if (e != (y)) { printf("line %d: %s\n", __LINE__, cudaGetErrorName(e)); exit(1); } cudaGetLastError(); } while (0)
#define TRUE(x) do { if (!(x)) { printf("line %d: not so: %s\n", __LINE__, #x); exit(1); } } while (0)
__global__ void add(int *p, int n) { p[threadIdx.x] += n; }
static size_t used(cudaMemPool_t pool) {
  unsigned long long n = 0;
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &n));
  return n;
}
// Places that the machine does not have.
static void nowhere(cudaStream_t s) {
  cudaMemPoolProps p = {};
  cudaMemPool_t pool;
  cudaMemLocation node = {}, device = {};
  node.type = cudaMemLocationTypeHostNuma, node.id = 1 << 20;
  device.type = cudaMemLocationTypeDevice, device.id = 99;
  p.allocType = cudaMemAllocationTypePinned, p.location = node;
  WANT(cudaMemPoolCreate(&pool, &p), cudaErrorInvalidValue);
  WANT(cudaMemGetDefaultMemPool(&pool, &node, p.allocType), cudaErrorInvalidValue);
  p.location.id = -1;
  WANT(cudaMemPoolCreate(&pool, &p), cudaErrorInvalidValue);
  int *m;
  OK(cudaMallocManaged(&m, 128));
#if CUDART_VERSION >= 13000
  WANT(cudaMemPrefetchAsync(m, 128, node, 0, s), cudaErrorInvalidDevice);
  WANT(cudaMemPrefetchAsync(m, 128, device, 0, s), cudaErrorInvalidDevice);
  WANT(cudaMemAdvise(m, 128, cudaMemAdviseSetPreferredLocation, node), cudaErrorInvalidDevice);
  WANT(cudaMemAdvise(m, 128, cudaMemAdviseSetAccessedBy, device), cudaErrorInvalidDevice);
  OK(cudaMemAdvise(m, 128, cudaMemAdviseSetReadMostly, device));
  node.id = 0;
  OK(cudaMemPrefetchAsync(m, 128, node, 0, s));
#endif
  OK(cudaFree(m));
}
int main() {
  cudaStream_t s, t;
  OK(cudaStreamCreate(&s));
  OK(cudaStreamCreate(&t));
  nowhere(s);
  for (auto type : {cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma, cudaMemLocationTypeHostNumaCurrent, cudaMemLocationTypeNone}) {
    bool managed = type == cudaMemLocationTypeNone;
    cudaMemPoolProps p = {};
    p.allocType = managed ? cudaMemAllocationTypeManaged : cudaMemAllocationTypePinned, p.location.type = type;
    cudaMemPool_t pool, first, now;
    OK(cudaMemPoolCreate(&pool, &p));
    int *a;
    OK(cudaMallocFromPoolAsync(&a, 128, pool, s));
    OK(cudaMemsetAsync(a, 0, 128, s));
    add<<<1, 32, 0, s>>>(a, 3);
    OK(cudaStreamSynchronize(s));
    for (int i = 0; i < 32; i++) a[i] += i;
    cudaPointerAttributes x;
    OK(cudaPointerGetAttributes(&x, a));
    TRUE(x.type == (managed ? cudaMemoryTypeManaged : cudaMemoryTypeHost));
    add<<<1, 32, 0, s>>>(a, 1);
    OK(cudaStreamSynchronize(s));
    for (int i = 0; i < 32; i++) TRUE(a[i] == i + 4);
    TRUE(used(pool) == 128);
    OK(cudaFreeAsync(a, s));
    TRUE(used(pool) == 0);
    OK(cudaMemGetDefaultMemPool(&first, &p.location, p.allocType));
    OK(cudaMemSetMemPool(&p.location, p.allocType, pool));
    OK(cudaMemGetMemPool(&now, &p.location, p.allocType));
    TRUE(now == pool && first != pool);
    WANT(cudaDeviceSetMemPool(0, pool), cudaErrorInvalidValue); // which takes pools of the device
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    cudaMemAccessFlags flags;
    OK(cudaMemPoolGetAccess(&flags, pool, &here));
    TRUE(flags == cudaMemAccessFlagsProtReadWrite);
    OK(cudaMemPoolDestroy(pool));
    OK(cudaMallocAsync(&a, 64, s)); // from the pool of the device
    OK(cudaFreeAsync(a, s));
  }
  // What comes after the event comes after the copy, not after the kernel.
  int *a, *b;
  OK(cudaMalloc(&a, 128));
  OK(cudaMalloc(&b, 128));
  OK(cudaMemset(b, 0, 128));
  OK(cudaDeviceSynchronize());
  cudaEvent_t begun;
  OK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
  OK(cudaMemsetAsync(a, 0, 128, s));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeLaunchCompletionEvent, attribute.val.launchCompletionEvent.event = begun;
  cudaLaunchConfig_t c = {};
  c.gridDim = 1, c.blockDim = 32, c.stream = s, c.attrs = &attribute, c.numAttrs = 1;
  OK(cudaLaunchKernelEx(&c, add, b, 1));
  OK(cudaStreamWaitEvent(t, begun));
  add<<<1, 32, 0, t>>>(a, 2);
  OK(cudaDeviceSynchronize());
  // A programmatic event, of a kernel that triggers nothing: its end does.
  attribute.id = cudaLaunchAttributeProgrammaticEvent;
  attribute.val.programmaticEvent.event = begun, attribute.val.programmaticEvent.flags = 0, attribute.val.programmaticEvent.triggerAtBlockStart = 0;
  OK(cudaLaunchKernelEx(&c, add, b, 4));
  OK(cudaStreamWaitEvent(t, begun));
  add<<<1, 32, 0, t>>>(b, 8);
  OK(cudaDeviceSynchronize());
  int h[32];
  OK(cudaMemcpy(h, a, 128, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; i++) TRUE(h[i] == 2);
  OK(cudaMemcpy(h, b, 128, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; i++) TRUE(h[i] == 13);
  puts("ok");
}
