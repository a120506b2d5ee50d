// Conditional nodes of graphs, attributes of kernel nodes and programmatic edges: what they do, and their wrong uses.
// stdout: ok
// flags: -rdc=true -lcudadevrt -gencode arch=compute_90,code=compute_90
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

#if CUDART_VERSION >= 13000
#define ADD(node, graph, from, n, params) cudaGraphAddNode(node, graph, from, nullptr, n, params)
#define ADD_EDGE(node, graph, from, data, n, params) cudaGraphAddNode(node, graph, from, data, n, params)
#define EDGES(graph, from, to, data, n) cudaGraphGetEdges(graph, from, to, data, n)
#else
#define ADD(node, graph, from, n, params) cudaGraphAddNode(node, graph, from, n, params)
#define ADD_EDGE(node, graph, from, data, n, params) cudaGraphAddNode_v2(node, graph, from, data, n, params)
#define EDGES(graph, from, to, data, n) cudaGraphGetEdges_v2(graph, from, to, data, n)
#endif

__global__ void decide(cudaGraphConditionalHandle c, const unsigned *p) { cudaGraphSetConditional(c, *p); }
__global__ void count_down(cudaGraphConditionalHandle c, unsigned *p, int *sum) {
  *sum += *p;
  cudaGraphSetConditional(c, --*p);
}
__global__ void add(int *sum, int v) { *sum += v; }
__global__ void shape(unsigned *p) {
  unsigned n;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
  if (blockIdx.x == 0) *p = n;
}

static cudaGraphNodeParams kernel(void *f, void **args) {
  cudaGraphNodeParams p = {cudaGraphNodeTypeKernel};
  p.kernel.func = f, p.kernel.gridDim = dim3(1), p.kernel.blockDim = dim3(1), p.kernel.kernelParams = args;
  return p;
}
static cudaGraphNodeParams condition(cudaGraphConditionalHandle c, cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams p = {cudaGraphNodeTypeConditional};
  p.conditional.handle = c, p.conditional.type = type, p.conditional.size = size;
  return p;
}

static int *sum;
static unsigned *value;
static cudaStream_t s;

static int result(cudaGraphExec_t x, unsigned with) {
  int zero = 0, now = 0;
  OK(cudaMemcpy(value, &with, 4, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(sum, &zero, 4, cudaMemcpyHostToDevice));
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  OK(cudaMemcpy(&now, sum, 4, cudaMemcpyDeviceToHost));
  return now;
}

// branches: the body that the condition chooses, of two or of four.
static void branches(cudaGraphConditionalNodeType type, unsigned bodies) {
  cudaGraph_t g;
  cudaGraphExec_t x;
  cudaGraphNode_t first, node, n;
  cudaGraphConditionalHandle c;
  OK(cudaGraphCreate(&g, 0));
  OK(cudaGraphConditionalHandleCreate(&c, g, 0, 0));
  void *args[] = {&c, &value};
  cudaGraphNodeParams p = kernel((void *)decide, args), q = condition(c, type, bodies);
  OK(ADD(&first, g, nullptr, 0, &p));
  OK(ADD(&node, g, &first, 1, &q));
  int v = 1;
  for (unsigned i = 0; i < bodies; i++, v *= 10) {
    void *added[] = {&sum, &v};
    p = kernel((void *)add, added);
    OK(ADD(&n, q.conditional.phGraph_out[i], nullptr, 0, &p));
  }
  OK(cudaGraphInstantiate(&x, g, 0));
  if (type == cudaGraphCondTypeIf) {
    TRUE(result(x, 3) == 1);
    TRUE(result(x, 0) == (bodies == 2 ? 10 : 0));
  } else {
    TRUE(result(x, 0) == 1 && result(x, 2) == 100 && result(x, 3) == 1000 && result(x, 4) == 0);
  }
  // The kernel in a body of the executable graph gets other parameters.
  int other = 7;
  void *added[] = {&sum, &other};
  cudaKernelNodeParams k = {};
  k.func = (void *)add, k.gridDim = k.blockDim = dim3(1), k.kernelParams = added;
  OK(cudaGraphExecKernelNodeSetParams(x, n, &k));
  TRUE(result(x, bodies == 4 ? 3 : bodies == 2 ? 0 : 1) == 7);
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(x, g, &info));
  TRUE(result(x, bodies == 4 ? 3 : bodies == 2 ? 0 : 1) == (bodies == 4 ? 1000 : bodies == 2 ? 10 : 1));
  OK(cudaGraphAddEmptyNode(&node, q.conditional.phGraph_out[0], nullptr, 0));
  WANT(cudaGraphExecUpdate(x, g, &info), cudaErrorGraphExecUpdateFailure);
  TRUE(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
}

// loops: the body is captured, and each launch begins with the condition's own value.
static void loops() {
  cudaGraph_t g;
  cudaGraphExec_t x;
  cudaGraphNode_t node;
  cudaGraphConditionalHandle c;
  cudaStream_t t;
  OK(cudaStreamCreate(&t));
  OK(cudaGraphCreate(&g, 0));
  OK(cudaGraphConditionalHandleCreate(&c, g, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams q = condition(c, cudaGraphCondTypeWhile, 1);
  OK(ADD(&node, g, nullptr, 0, &q));
  WANT(cudaGraphDestroy(q.conditional.phGraph_out[0]), cudaErrorInvalidValue);
  OK(cudaStreamBeginCaptureToGraph(t, q.conditional.phGraph_out[0], nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, t>>>(sum, 100);
  count_down<<<1, 1, 0, t>>>(c, value, sum);
  OK(cudaStreamEndCapture(t, nullptr));
  OK(cudaGraphInstantiate(&x, g, 0));
  TRUE(result(x, 4) == 410);
  TRUE(result(x, 1) == 101);
  cudaGraphNodeParams shown = {};
  OK(cudaGraphNodeGetParams(node, &shown));
  TRUE(shown.type == cudaGraphNodeTypeConditional && shown.conditional.size == 1 && shown.conditional.phGraph_out == q.conditional.phGraph_out);
  // A loop in a loop: the inner condition is set by the body of the outer one.
  cudaGraph_t outer;
  cudaGraphNode_t first, inner, last;
  cudaGraphConditionalHandle d;
  static unsigned *left;
  OK(cudaMalloc(&left, 4));
  OK(cudaGraphCreate(&outer, 0));
  OK(cudaGraphConditionalHandleCreate(&c, outer, 1, cudaGraphCondAssignDefault));
  OK(cudaGraphConditionalHandleCreate(&d, outer, 0, 0));
  q = condition(c, cudaGraphCondTypeWhile, 1);
  OK(ADD(&node, outer, nullptr, 0, &q));
  cudaGraph_t body = q.conditional.phGraph_out[0];
  cudaGraphNode_t fill;
  cudaMemsetParams m = {};
  m.dst = left, m.value = 2, m.elementSize = 4, m.width = m.height = 1;
  OK(cudaGraphAddMemsetNode(&fill, body, nullptr, 0, &m));
  void *decided[] = {&d, &left}, *down[] = {&d, &left, &sum}, *out[] = {&c, &value, &sum};
  cudaGraphNodeParams p = kernel((void *)decide, decided);
  OK(ADD(&first, body, &fill, 1, &p));
  q = condition(d, cudaGraphCondTypeWhile, 1);
  OK(ADD(&inner, body, &first, 1, &q));
  p = kernel((void *)count_down, down);
  OK(ADD(&node, q.conditional.phGraph_out[0], nullptr, 0, &p));
  p = kernel((void *)count_down, out);
  OK(ADD(&last, body, &inner, 1, &p));
  OK(cudaGraphInstantiate(&x, outer, 0));
  TRUE(result(x, 3) == 3 * (2 + 1) + 3 + 2 + 1);
  OK(cudaGraphDebugDotPrint(outer, "/dev/null", 0));
}

static void wrong() {
  cudaGraph_t g;
  cudaGraphNode_t n;
  cudaGraphConditionalHandle c;
  OK(cudaGraphCreate(&g, 0));
  WANT(cudaGraphConditionalHandleCreate(&c, g, 0, 2), cudaErrorInvalidValue);
  WANT(cudaGraphConditionalHandleCreate(&c, nullptr, 0, 0), cudaErrorInvalidValue);
  OK(cudaGraphConditionalHandleCreate(&c, g, 0, 0));
  for (auto bad : {condition(c, cudaGraphCondTypeIf, 3), condition(c, cudaGraphCondTypeIf, 0), condition(c, cudaGraphCondTypeWhile, 2),
                   condition(c, (cudaGraphConditionalNodeType)3, 1), condition(0, cudaGraphCondTypeIf, 1)})
    WANT(ADD(&n, g, nullptr, 0, &bad), cudaErrorInvalidValue);
  cudaGetLastError();
}

static void attributes() {
  cudaGraph_t g;
  cudaGraphExec_t x;
  cudaGraphNode_t n, copy, fill;
  unsigned now = 0;
  void *args[] = {&value};
  OK(cudaGraphCreate(&g, 0));
  cudaGraphNodeParams p = kernel((void *)shape, args);
  p.kernel.gridDim = dim3(4);
  OK(ADD(&n, g, nullptr, 0, &p));
  cudaLaunchAttributeValue v = {}, w;
  v.clusterDim.x = 2, v.clusterDim.y = v.clusterDim.z = 1;
  OK(cudaGraphKernelNodeSetAttribute(n, cudaLaunchAttributeClusterDimension, &v));
  OK(cudaGraphKernelNodeGetAttribute(n, cudaLaunchAttributeClusterDimension, &w));
  TRUE(w.clusterDim.x == 2 && w.clusterDim.y == 1);
  v.priority = -3;
  OK(cudaGraphKernelNodeSetAttribute(n, cudaLaunchAttributePriority, &v));
  OK(cudaGraphKernelNodeGetAttribute(n, cudaLaunchAttributePriority, &w));
  TRUE(w.priority == -3);
  OK(cudaGraphInstantiate(&x, g, 0));
  result(x, 0);
  OK(cudaMemcpy(&now, value, 4, cudaMemcpyDeviceToHost));
  TRUE(now == 2);
  // New parameters leave the attributes alone.
  cudaKernelNodeParams k = {};
  k.func = (void *)shape, k.gridDim = dim3(4), k.blockDim = dim3(1), k.kernelParams = args;
  OK(cudaGraphExecKernelNodeSetParams(x, n, &k));
  result(x, 0);
  OK(cudaMemcpy(&now, value, 4, cudaMemcpyDeviceToHost));
  TRUE(now == 2);
  OK(ADD(&copy, g, &n, 1, &p));
#if CUDART_VERSION >= 13000
  OK(cudaGraphKernelNodeCopyAttributes(copy, n));
#else
  OK(cudaGraphKernelNodeCopyAttributes(n, copy));
#endif
  OK(cudaGraphKernelNodeGetAttribute(copy, cudaLaunchAttributeClusterDimension, &w));
  TRUE(w.clusterDim.x == 2);
  OK(cudaGraphKernelNodeGetAttribute(copy, cudaLaunchAttributePriority, &w));
  TRUE(w.priority == -3);
  OK(cudaGraphKernelNodeGetAttribute(copy, cudaLaunchAttributeCooperative, &w));
  TRUE(w.cooperative == 0);
  v.cooperative = 1;
  OK(cudaGraphKernelNodeSetAttribute(copy, cudaLaunchAttributeCooperative, &v));
  OK(cudaGraphKernelNodeGetAttribute(copy, cudaLaunchAttributeCooperative, &w));
  TRUE(w.cooperative == 1);
  WANT(cudaGraphKernelNodeSetAttribute(n, cudaLaunchAttributeProgrammaticStreamSerialization, &v), cudaErrorInvalidValue);
  cudaMemsetParams m = {};
  m.dst = value, m.elementSize = 4, m.width = m.height = 1;
  OK(cudaGraphAddMemsetNode(&fill, g, nullptr, 0, &m));
  WANT(cudaGraphKernelNodeSetAttribute(fill, cudaLaunchAttributePriority, &v), cudaErrorInvalidValue);
  WANT(cudaGraphKernelNodeGetAttribute(fill, cudaLaunchAttributePriority, &v), cudaErrorInvalidValue);
  cudaGetLastError();
}

static void programmatic() {
  cudaGraph_t g;
  cudaGraphExec_t x;
  cudaGraphNode_t a, b, c, from[4], to[4];
  cudaGraphEdgeData early = {}, data[4], strange = {};
  int one = 1;
  size_t edges = 4;
  void *args[] = {&sum, &one};
  early.from_port = cudaGraphKernelNodePortProgrammatic, early.type = cudaGraphDependencyTypeProgrammatic;
  strange.from_port = 9;
  OK(cudaGraphCreate(&g, 0));
  cudaGraphNodeParams p = kernel((void *)add, args);
  OK(ADD(&a, g, nullptr, 0, &p));
  WANT(ADD_EDGE(&b, g, &a, &strange, 1, &p), cudaErrorInvalidValue);
  OK(ADD_EDGE(&b, g, &a, &early, 1, &p));
  OK(ADD(&c, g, &a, 1, &p));
  OK(EDGES(g, from, to, data, &edges));
  TRUE(edges == 2 && to[0] == b && data[0].type == 1 && data[0].from_port == 1 && to[1] == c && data[1].type == 0);
  WANT(EDGES(g, from, to, nullptr, &edges), cudaErrorLossyQuery);
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  cudaGraphNodeParams q = {cudaGraphNodeTypeEmpty};
  WANT(ADD_EDGE(&c, g, &a, &early, 1, &q), cudaErrorInvalidValue);
  cudaGetLastError();
}

int main() {
  OK(cudaMalloc(&sum, 4));
  OK(cudaMalloc(&value, 4));
  OK(cudaStreamCreate(&s));
  branches(cudaGraphCondTypeIf, 1);
  branches(cudaGraphCondTypeIf, 2);
  branches(cudaGraphCondTypeSwitch, 4);
  loops();
  wrong();
  attributes();
  programmatic();
  puts("ok");
}
