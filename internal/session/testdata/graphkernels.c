// Launches of a graph with kernel nodes: conditional nodes and programmatic edges. The first argument is the scenario, the second, when
// there, adds what orders the accesses.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t ptr;
typedef struct { void *function; unsigned grid[3], block[3], shared; void **params, **extra; void *kernel, *context; } kernel;
typedef struct { ptr handle; int type; unsigned size; void **bodies; void *context; } condition;
typedef struct { int type, reserved[3]; union { kernel k; condition c; long long space[29]; } of; long long end; } params;
typedef struct { unsigned char from, to, type, rest[5]; } edge;
enum { If, While };

int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(ptr *, size_t), cuMemsetD32_v2(ptr, unsigned, size_t), cuCtxSynchronize(void);
int cuGraphCreate(void **, unsigned), cuGraphInstantiateWithFlags(void **, void *, unsigned long long), cuGraphLaunch(void *, void *);
int cuGraphAddNode_v2(void **, void *, void **, const edge *, size_t, params *), cuGraphConditionalHandleCreate(ptr *, void *, void *, unsigned, unsigned);

static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 c, .param .b32 v);\n"
    ".visible .entry set(.param .u64 c, .param .u64 p) {\n"
    ".reg .u64 %c, %p; .reg .u32 %v; .param .b64 a; .param .b32 b;\n"
    "ld.param.u64 %c, [c]; ld.param.u64 %p, [p]; ld.global.u32 %v, [%p];\n"
    "st.param.b64 [a], %c; st.param.b32 [b], %v; call cudaGraphSetConditional, (a, b); ret;\n}\n"
    ".visible .entry down(.param .u64 c, .param .u64 p) {\n"
    ".reg .u64 %c, %p; .reg .u32 %v; .param .b64 a; .param .b32 b;\n"
    "ld.param.u64 %c, [c]; ld.param.u64 %p, [p]; ld.global.u32 %v, [%p]; sub.u32 %v, %v, 1; st.global.u32 [%p], %v;\n"
    "st.param.b64 [a], %c; st.param.b32 [b], %v; call cudaGraphSetConditional, (a, b); ret;\n}\n"
    ".visible .entry put(.param .u64 c, .param .u64 p) {\n"
    ".reg .u64 %p; ld.param.u64 %p, [p]; st.global.u32 [%p], 7; ret;\n}\n"
    ".visible .entry trigger(.param .u64 c, .param .u64 p) {\n"
    ".reg .u64 %p; ld.param.u64 %p, [p]; griddepcontrol.launch_dependents; st.global.u32 [%p], 7; ret;\n}\n"
    ".visible .entry wait(.param .u64 c, .param .u64 p) {\n"
    ".reg .u64 %p; ld.param.u64 %p, [p]; griddepcontrol.wait; st.global.u32 [%p], 7; ret;\n}\n";

static void *module;
static ptr cond;

// add adds a kernel node behind another one, if that is not NULL.
static void *add(void *graph, const char *name, void *behind, int early, ptr p) {
  void *node = NULL, *args[] = {&cond, &p};
  params k = {.of.k = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params = args}};
  const edge data = {early, 0, early};
  if (cuModuleGetFunction(&k.of.k.function, module, name) || cuGraphAddNode_v2(&node, graph, &behind, &data, behind != NULL, &k)) printf("no node %s\n", name);
  return node;
}

int main(int argc, char **argv) {
  const int ordered = argc > 2;
  const char *which = argv[1];
  void *context, *g, *x, *node, *first = NULL;
  ptr p, q;
  cuInit(0), cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context);
  if (cuModuleLoadData(&module, text) || cuMemAlloc_v2(&p, 4) || cuMemAlloc_v2(&q, 4) || cuMemsetD32_v2(p, 1, 1) || cuMemsetD32_v2(q, 2, 1) || cuCtxSynchronize()) return 1;
  cuGraphCreate(&g, 0);
  cuGraphConditionalHandleCreate(&cond, g, NULL, 1, 1);
  params c = {.type = 13, .of.c = {.handle = cond, .size = 1}};
  if (!strcmp(which, "condition")) { // which the node reads
    first = add(g, "set", NULL, 0, p);
    cuGraphAddNode_v2(&node, g, &first, NULL, ordered, &c);
    add(c.of.c.bodies[0], "put", NULL, 0, q);
  } else if (!strcmp(which, "two")) { // kernels set it
    first = add(g, "set", NULL, 0, p);
    add(g, "set", ordered ? first : NULL, 0, p);
  } else if (!strcmp(which, "before")) { // what comes before the node comes before its body
    first = add(g, "put", NULL, 0, q);
    cuGraphAddNode_v2(&node, g, &first, NULL, ordered, &c);
    add(c.of.c.bodies[0], "put", NULL, 0, q);
  } else if (!strcmp(which, "behind")) { // what comes behind the node comes behind its body
    cuGraphAddNode_v2(&node, g, NULL, NULL, 0, &c);
    add(c.of.c.bodies[0], "put", NULL, 0, q);
    add(g, "put", ordered ? node : NULL, 0, q);
  } else if (!strcmp(which, "iterations")) { // follow each other, whatever they do; the nodes of one do not
    c.of.c.type = While;
    cuGraphAddNode_v2(&node, g, NULL, NULL, 0, &c);
    first = add(c.of.c.bodies[0], "put", NULL, 0, p);
    add(c.of.c.bodies[0], "put", ordered ? first : NULL, 0, p);
    add(c.of.c.bodies[0], "down", NULL, 0, q);
  } else if (!strcmp(which, "programmatic")) { // the one that follows may begin early
    first = add(g, "trigger", NULL, 0, q);
    add(g, ordered ? "wait" : "put", first, 1, q);
  } else if (!strcmp(which, "beside")) { // an edge that is not programmatic orders
    first = add(g, "trigger", NULL, 0, q);
    add(g, "put", first, 1, p);
    add(g, "put", ordered ? first : NULL, 0, q);
  }
  if (cuGraphInstantiateWithFlags(&x, g, 0)) return 2;
  cuGraphLaunch(x, NULL);
  if (strcmp(which, "iterations")) cuGraphLaunch(x, NULL); // that counts down once
  return cuCtxSynchronize();
}
