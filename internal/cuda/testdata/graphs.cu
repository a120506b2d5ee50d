// Graphs by hand: every type of node, edges, clones, updates, child graphs; and their launches.
// stdout: ok
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define WANT(call, code)                                                                               \
  do {                                                                                                 \
    cudaError_t got = (call);                                                                          \
    if (got != (code)) printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(got)), exit(9);   \
  } while (0)
#define OK(call) WANT(call, cudaSuccess)
#define TRUE(x)                                                \
  do {                                                         \
    if (!(x)) printf("line %d: not so: %s\n", __LINE__, #x), exit(9); \
  } while (0)

__global__ void add(int *p, int n, int v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += v;
}
__global__ void sum(int *to, const int *a, const int *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = a[i] + b[i];
}
__constant__ int symbol[4];

static int called;
static void CUDART_CB host(void *p) { called += *(int *)p; }

enum { n = 64 };

static cudaKernelNodeParams kernel(void *f, void **args) {
  cudaKernelNodeParams k = {};
  k.func = f, k.gridDim = dim3(1), k.blockDim = dim3(n), k.kernelParams = args;
  return k;
}

int main() {
  int *a, *b, *c, out[n], in[n], ten = 10, one = 1, count = n;
  for (int i = 0; i < n; i++) in[i] = i;
  OK(cudaMalloc(&a, sizeof in));
  OK(cudaMalloc(&b, sizeof in));
  OK(cudaMalloc(&c, sizeof in));
  cudaStream_t s;
  OK(cudaStreamCreate(&s));

  // Two branches and their join: a = in, a += 10; b = 0, b += 1; c = a + b; out = c.
  cudaGraph_t g, g2;
  cudaGraphNode_t toA, addA, zeroB, addB, join, back, call;
  OK(cudaGraphCreate(&g, 0));
  OK(cudaGraphAddMemcpyNode1D(&toA, g, nullptr, 0, a, in, sizeof in, cudaMemcpyHostToDevice));
  void *argsA[] = {&a, &count, &ten}, *argsB[] = {&b, &count, &one}, *argsC[] = {&c, &a, &b, &count};
  cudaKernelNodeParams k = kernel((void *)add, argsA);
  OK(cudaGraphAddKernelNode(&addA, g, &toA, 1, &k));
  cudaMemsetParams m = {};
  m.dst = b, m.elementSize = 4, m.width = n, m.height = 1, m.value = 0;
  OK(cudaGraphAddMemsetNode(&zeroB, g, nullptr, 0, &m));
  k = kernel((void *)add, argsB);
  OK(cudaGraphAddKernelNode(&addB, g, nullptr, 0, &k));
  cudaGraphNode_t from[] = {zeroB}, to[] = {addB};
#if CUDART_VERSION >= 13000
  OK(cudaGraphAddDependencies(g, from, to, nullptr, 1));
  WANT(cudaGraphAddDependencies(g, from, to, nullptr, 1), cudaErrorInvalidValue);
#else
  OK(cudaGraphAddDependencies(g, from, to, 1));
#endif
  k = kernel((void *)sum, argsC);
  cudaGraphNode_t both[] = {addA, addB};
  OK(cudaGraphAddKernelNode(&join, g, both, 2, &k));
  cudaMemcpy3DParms box = {};
  box.srcPtr = make_cudaPitchedPtr(c, sizeof in, n, 1), box.dstPtr = make_cudaPitchedPtr(out, sizeof in, n, 1);
  box.extent = make_cudaExtent(sizeof in, 1, 1), box.kind = cudaMemcpyDeviceToHost;
  OK(cudaGraphAddMemcpyNode(&back, g, &join, 1, &box));
  cudaHostNodeParams h = {host, &one};
  OK(cudaGraphAddHostNode(&call, g, &back, 1, &h));
  size_t nodes = 0, roots = 0, edges = 0;
  OK(cudaGraphGetNodes(g, nullptr, &nodes));
  OK(cudaGraphGetRootNodes(g, nullptr, &roots));
#if CUDART_VERSION >= 13000
  OK(cudaGraphGetEdges(g, nullptr, nullptr, nullptr, &edges));
#else
  OK(cudaGraphGetEdges(g, nullptr, nullptr, &edges));
#endif
  TRUE(nodes == 7 && roots == 2 && edges == 6);
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(zeroB, &type));
  TRUE(type == cudaGraphNodeTypeMemset);

  cudaGraphExec_t x;
  OK(cudaGraphInstantiate(&x, g, 0));
  ten = 1000; // the parameters were copied
  for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  for (int i = 0; i < n; i++) TRUE(out[i] == i + 11);
  TRUE(called == 3);

  // Parameters of the executable graph, its update, and a node that is off.
  int twenty = 20;
  void *argsA2[] = {&a, &count, &twenty};
  k = kernel((void *)add, argsA2);
  OK(cudaGraphExecKernelNodeSetParams(x, addA, &k));
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  for (int i = 0; i < n; i++) TRUE(out[i] == i + 21);
  cudaKernelNodeParams shown;
  OK(cudaGraphKernelNodeGetParams(addA, &shown));
  TRUE(shown.blockDim.x == n && *(int *)shown.kernelParams[2] == 10);
  OK(cudaGraphClone(&g2, g));
  cudaGraphNode_t addA2;
  OK(cudaGraphNodeFindInClone(&addA2, addA, g2));
  twenty = 30;
  OK(cudaGraphKernelNodeSetParams(addA2, &k));
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(x, g2, &info));
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  for (int i = 0; i < n; i++) TRUE(out[i] == i + 31);
  OK(cudaGraphNodeSetEnabled(x, addB, 0));
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  for (int i = 0; i < n; i++) TRUE(out[i] == i + 30);
  OK(cudaGraphDestroyNode(call));
  WANT(cudaGraphExecUpdate(x, g, &info), cudaErrorGraphExecUpdateFailure);
  TRUE(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  OK(cudaGraphExecDestroy(x));

  // A child graph, events, memory, a symbol; and a cycle.
  cudaGraph_t outer;
  cudaGraphNode_t child, wait, record, alloc, freed, fill, empty, copy;
  cudaEvent_t ev, done;
  OK(cudaEventCreate(&ev));
  OK(cudaEventCreate(&done));
  OK(cudaGraphCreate(&outer, 0));
  OK(cudaGraphAddEventWaitNode(&wait, outer, nullptr, 0, ev));
  OK(cudaGraphAddChildGraphNode(&child, outer, &wait, 1, g2));
  OK(cudaGraphAddEventRecordNode(&record, outer, &child, 1, done));
  cudaMemAllocNodeParams mem = {};
  mem.bytesize = 256;
  OK(cudaGraphAddMemAllocNode(&alloc, outer, nullptr, 0, &mem));
  m.dst = mem.dptr, m.value = 0x01010101;
  OK(cudaGraphAddMemsetNode(&fill, outer, &alloc, 1, &m));
  OK(cudaGraphAddMemcpyNodeToSymbol(&copy, outer, &fill, 1, symbol, mem.dptr, 8, 8, cudaMemcpyDeviceToDevice));
  OK(cudaGraphAddMemFreeNode(&freed, outer, &copy, 1, mem.dptr));
  cudaGraphNode_t ends[] = {record, freed};
  OK(cudaGraphAddEmptyNode(&empty, outer, ends, 2));
  OK(cudaGraphInstantiate(&x, outer, 0));
  OK(cudaEventRecord(ev, s));
  OK(cudaGraphLaunch(x, s));
  OK(cudaEventSynchronize(done));
  for (int i = 0; i < n; i++) TRUE(out[i] == i + 31);
  int part[4] = {};
  OK(cudaStreamSynchronize(s));
  OK(cudaMemcpyFromSymbol(part, symbol, sizeof part));
  TRUE(part[1] == 0 && part[2] == 0x01010101 && part[3] == 0x01010101);
  OK(cudaFreeAsync(mem.dptr, s)); // the next launch allocates it again
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  OK(cudaFree(mem.dptr));
  OK(cudaGraphExecDestroy(x));
#if CUDART_VERSION >= 13000
  OK(cudaGraphAddDependencies(outer, &empty, &wait, nullptr, 1));
#else
  OK(cudaGraphAddDependencies(outer, &empty, &wait, 1));
#endif
  WANT(cudaGraphInstantiate(&x, outer, 0), cudaErrorInvalidValue);
  cudaGetLastError();
  OK(cudaGraphDestroy(outer));
  OK(cudaGraphDestroy(g2));

  cudaUserObject_t object;
  static int destroyed;
  WANT(cudaUserObjectCreate(&object, &destroyed, [](void *p) { ++*(int *)p; }, 1, (cudaUserObjectFlags)0), cudaErrorInvalidValue);
  OK(cudaUserObjectCreate(&object, &destroyed, [](void *p) { ++*(int *)p; }, 2, cudaUserObjectNoDestructorSync));
  OK(cudaGraphRetainUserObject(g, object, 1, 0));
  OK(cudaGraphRetainUserObject(g, object, 2, cudaGraphUserObjectMove));
  OK(cudaUserObjectRetain(object, 1));
  OK(cudaUserObjectRelease(object, 1));
  WANT(cudaGraphReleaseUserObject(g, object, 4), cudaErrorInvalidValue);
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphReleaseUserObject(g, object, 2));
  TRUE(destroyed == 0);
  OK(cudaGraphDestroy(g));
  TRUE(destroyed == 0);
  OK(cudaGraphExecDestroy(x));
  TRUE(destroyed == 1);
  cudaGetLastError();
  puts("ok");
}
