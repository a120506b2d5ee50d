// graph_calls.h: the calls for graphs and captures, which differ little between the APIs except for their prefix. Each
// API defines API (the prefix), copy_params with copy_work and copy_shown, kernel_named and finish.

// The structures that both APIs have.

struct kernel_params {
  void *function;
  u32 grid[3], block[3], shared;
  void **params, **extra;
  void *kernel; // of the driver API's second version
};

struct fill_params {
  void *at;
  size_t pitch;
  u32 value, size;
  size_t width, height; // width in elements
};

struct host_params {
  void (*call)(void *);
  void *data;
};

struct alloc_params {
  char pool[88];
  const void *access;
  size_t accesses, size;
  void *at;
};

struct condition_params {
  u64 handle;
  int test;
  unsigned count;
  struct fp_graph **bodies; // out
  void *context;
};

struct node_params {
  int type, reserved[3];
  union {
    struct kernel_params kernel;
    struct {
      int flags, reserved;
      void *context;
      struct copy_params params;
    } copy;
    struct fill_params fill;
    struct host_params host;
    struct fp_graph *child;
    u64 object;
    struct alloc_params alloc;
    struct condition_params condition;
    long long space[29];
  } of;
  long long end;
};

static int kernel_work(struct fp_work *w, const struct kernel_params *p) {
  const void *buffer = NULL;
  size_t size = 0;
  if (!p) return fpInvalidValue;
  *w = (struct fp_work){.type = fpKernelNode, .function = p->function,
                        .launch = {{p->grid[0], p->grid[1], p->grid[2]}, {p->block[0], p->block[1], p->block[2]}, p->shared, 0, 0}};
  int e = kernel_named(p, &w->kernel);
  if (!e) e = fp_find_kernel(w->kernel);
  if (e) return e;
  for (void **x = p->extra; !p->params && x && *x; x += 2) {
    if (*x == (void *)1) buffer = x[1];
    if (*x == (void *)2) size = *(size_t *)x[1];
  }
  if (w->kernel->count && !p->params && !buffer) return fpInvalidValue;
  w->block = calloc(1, w->kernel->size + 1u);
  if (!w->block) return fpOutOfMemory;
  for (u32 i = 0; p->params && i < w->kernel->count; i++) memcpy(w->block + w->kernel->layout[2 * i], p->params[i], w->kernel->layout[2 * i + 1]);
  if (buffer) memcpy(w->block, buffer, size < w->kernel->size ? size : w->kernel->size);
  return 0;
}

// kernel_work_any uses the kernel of a library if no function is given. The runtime API does not distinguish the two.
static int kernel_work_any(struct fp_work *w, const struct kernel_params *p) {
#ifndef FP_RUNTIME
  if (p && !p->function) {
    struct kernel_params named = *p;
    named.function = p->kernel;
    return kernel_work(w, &named);
  }
#endif
  return kernel_work(w, p);
}

static int fill_work(struct fp_work *w, const struct fill_params *p) {
  if (!p || (p->size != 1 && p->size != 2 && p->size != 4)) return fpInvalidValue;
  *w = (struct fp_work){.type = fpFillNode, .to = {(u64)p->at, p->pitch, 0}, .value = p->value, .size = p->size,
                        .width = fp_times(p->width, p->size), .height = p->height, .depth = 1};
  return 0;
}

static int host_work(struct fp_work *w, const struct host_params *p) {
  if (!p || !p->call) return fpInvalidValue;
  *w = (struct fp_work){.type = fpHostNode, .call = p->call, .data = p->data};
  return 0;
}

static int alloc_work(struct fp_work *w, struct alloc_params *p) {
  if (!p) return fpInvalidValue;
  *w = (struct fp_work){.type = fpAllocNode, .width = p->size};
  int e = fp_graph_malloc(p->size, &w->object);
  p->at = (void *)w->object;
  return e;
}

static int condition_work(struct fp_work *w, const struct condition_params *p) {
  const unsigned most = p->test == fpSwitch ? 1u << 16 : p->test == fpIf ? 2 : 1;
  *w = (struct fp_work){.type = fpConditionNode, .object = p->handle, .test = p->test, .nbodies = p->count};
  return p->test < fpIf || p->test > fpSwitch || !p->count || p->count > most || !p->handle ? fpInvalidValue : 0;
}

static int node_work(struct fp_work *w, struct node_params *p) {
  if (!p) return fpInvalidValue;
  *w = (struct fp_work){.type = p->type, .object = p->of.object};
  switch (p->type) {
    case fpKernelNode: return kernel_work_any(w, &p->of.kernel);
    case fpCopyNode: return copy_work(w, &p->of.copy.params);
    case fpFillNode: return fill_work(w, &p->of.fill);
    case fpHostNode: return host_work(w, &p->of.host);
    case fpChildNode:
      w->child = p->of.child, w->object = 0;
      return w->child ? 0 : fpInvalidValue;
    case fpAllocNode: return alloc_work(w, &p->of.alloc);
    case fpConditionNode: return condition_work(w, &p->of.condition);
    case fpEmptyNode: case fpWaitNode: case fpRecordNode: case fpFreeNode: return 0;
  }
  return fp_unsupported("a graph node of a type beyond copies, fills, kernels, host functions, events, child graphs, conditions and memory");
}

// node_add adds a node, and frees what the work holds.
static int node_add(int e, struct fp_node **node, struct fp_graph *g, struct fp_node **from, size_t n, struct fp_work *w) {
  if (!e) e = node && g && (from || !n) ? fp_node_add(g, from, n, w, node) : fpInvalidValue;
  free(w->block);
  return e;
}

struct update_result {
  int result; // 0 success, 2 topology, 3 type of a node, 4 kernel, 5 parameters
  struct fp_node *error, *from;
};

// graphs_differ compares the nodes and edges of two graphs in their order of creation, as the API does.
static int graphs_differ(const struct fp_graph *a, const struct fp_graph *b, struct update_result *r) {
  if (a->count != b->count) return r->result = 2;
  for (size_t i = 0; i < b->count; i++) a->nodes[i]->mark = b->nodes[i]->mark = (u32)i;
  for (size_t i = 0; i < b->count; i++) {
    struct fp_node *x = a->nodes[i], *y = b->nodes[i];
    r->error = y;
    if (x->work.type != y->work.type) return r->result = 3;
    if (x->count != y->count) return r->result = 2;
    for (size_t k = 0; k < y->count; k++) {
      size_t j = 0;
      while (j < x->count && x->from[j]->mark != y->from[k]->mark) j++;
      if (j == x->count) {
        r->from = y->from[k];
        return r->result = 2;
      }
    }
    if (x->work.child && graphs_differ(x->work.child, y->work.child, r)) return r->result;
    if (x->work.nbodies != y->work.nbodies || (x->work.nbodies && (x->work.test != y->work.test || x->work.object != y->work.object))) return r->result = 5;
    for (u32 k = 0; k < x->work.nbodies; k++)
      if (graphs_differ(x->work.bodies[k], y->work.bodies[k], r)) return r->result;
  }
  r->error = NULL;
  return 0;
}

// graph_update gives each node the work of the corresponding node of the other graph.
static int graph_update(struct fp_graph *a, const struct fp_graph *b) {
  int e = 0;
  for (size_t i = 0; i < b->count && !e; i++) {
    struct fp_work *w = &b->nodes[i]->work, own;
    if (w->child) e = graph_update(a->nodes[i]->work.child, w->child);
    for (u32 k = 0; k < w->nbodies && !e; k++) e = graph_update(a->nodes[i]->work.bodies[k], w->bodies[k]);
    if (w->child || w->nbodies) continue;
    if ((e = fp_work_copy(&own, w))) break;
    fp_work_free(&a->nodes[i]->work);
    a->nodes[i]->work = own;
  }
  return e;
}

// node_set replaces the work of a node by other work of the same type. The nodes of a child graph stay, and so do the
// attributes of a kernel.
static int node_set(int e, struct fp_node *n, struct fp_work *w) {
  struct fp_work own;
  struct update_result r;
  if (!e && (!n || n->work.type != w->type || w->nbodies)) e = fpInvalidValue;
  if (!e && w->type == fpKernelNode) w->launch.flags = n->work.launch.flags, w->hints = n->work.hints;
  if (!e && w->child) {
    e = graphs_differ(n->work.child, w->child, &r) ? fpInvalidValue : graph_update(n->work.child, w->child);
  } else if (!e && !(e = fp_work_copy(&own, w))) {
    fp_work_free(&n->work);
    n->work = own;
  }
  free(w->block);
  return e;
}

// exec_node finds the node of an executable graph that corresponds to a node of the graph.
static struct fp_node *exec_node(struct fp_exec *x, const struct fp_node *n) { return x && n ? fp_node_in(x->graph, n) : NULL; }

#define NODE struct fp_node **node, struct fp_graph *g, struct fp_node **from, size_t n
#define ADD(name, work_of, type)                                                                                           \
  EXPORT int API(name)(NODE, type p) {                                                                                     \
    struct fp_work w = {0};                                                                                                \
    return finish(node_add(work_of(&w, p), node, g, from, n, &w));                                                         \
  }
#define PARAMS(name, work_of, type, show)                                                                                  \
  EXPORT int API(Graph##name##NodeSetParams)(struct fp_node *n, const type *p) {                                           \
    struct fp_work w = {0};                                                                                                \
    return finish(node_set(work_of(&w, p), n, &w));                                                                        \
  }                                                                                                                        \
  EXPORT int API(GraphExec##name##NodeSetParams)(struct fp_exec *x, struct fp_node *n, const type *p) {                    \
    struct fp_work w = {0};                                                                                                \
    return finish(node_set(work_of(&w, p), exec_node(x, n), &w));                                                          \
  }                                                                                                                        \
  EXPORT int API(Graph##name##NodeGetParams)(struct fp_node *n, type *p) {                                                 \
    if (!n || !p) return finish(fpInvalidValue);                                                                           \
    return finish(show(&n->work, p));                                                                                      \
  }

static int kernel_shown(const struct fp_work *w, struct kernel_params *p) {
  if (w->type != fpKernelNode) return fpInvalidValue;
  p->function = (void *)w->function, p->shared = (u32)w->launch.shared, p->params = w->params, p->extra = NULL;
  memcpy(p->grid, w->launch.grid, sizeof p->grid), memcpy(p->block, w->launch.block, sizeof p->block);
  return 0;
}

static int fill_shown(const struct fp_work *w, struct fill_params *p) {
  if (w->type != fpFillNode) return fpInvalidValue;
  *p = (struct fill_params){(void *)w->to.at, w->to.pitch, w->value, w->size, w->width / w->size, w->height};
  return 0;
}

static int host_shown(const struct fp_work *w, struct host_params *p) {
  if (w->type != fpHostNode) return fpInvalidValue;
  *p = (struct host_params){w->call, w->data};
  return 0;
}

ADD(GraphAddKernelNode, kernel_work, const struct kernel_params *)
ADD(GraphAddMemcpyNode, copy_work, const struct copy_params *)
ADD(GraphAddMemsetNode, fill_work, const struct fill_params *)
ADD(GraphAddHostNode, host_work, const struct host_params *)
ADD(GraphAddMemAllocNode, alloc_work, struct alloc_params *)
PARAMS(Kernel, kernel_work, struct kernel_params, kernel_shown)
PARAMS(Memcpy, copy_work, struct copy_params, copy_shown)
PARAMS(Memset, fill_work, struct fill_params, fill_shown)
PARAMS(Host, host_work, struct host_params, host_shown)

static int object_work(struct fp_work *w, int type, u64 object) {
  *w = (struct fp_work){.type = type, .object = object};
  return object ? 0 : fpInvalidValue;
}

static int child_work(struct fp_work *w, struct fp_graph *child) {
  *w = (struct fp_work){.type = fpChildNode, .child = child};
  return child ? 0 : fpInvalidValue;
}

#define OBJECT(name, kind, shown)                                                                                          \
  EXPORT int API(GraphAdd##name##Node)(NODE, u64 o) {                                                                      \
    struct fp_work w;                                                                                                      \
    return finish(node_add(object_work(&w, kind, o), node, g, from, n, &w));                                               \
  }                                                                                                                        \
  EXPORT int API(Graph##name##NodeGet##shown)(struct fp_node *n, u64 *o) {                                                 \
    if (!n || !o || n->work.type != kind) return finish(fpInvalidValue);                                                   \
    *o = n->work.object;                                                                                                   \
    return 0;                                                                                                              \
  }
#define EVENT(name, kind)                                                                                                  \
  EXPORT int API(Graph##name##NodeSetEvent)(struct fp_node *n, u64 o) {                                                    \
    struct fp_work w;                                                                                                      \
    return finish(node_set(object_work(&w, kind, o), n, &w));                                                              \
  }                                                                                                                        \
  EXPORT int API(GraphExec##name##NodeSetEvent)(struct fp_exec *x, struct fp_node *n, u64 o) {                             \
    struct fp_work w;                                                                                                      \
    return finish(node_set(object_work(&w, kind, o), exec_node(x, n), &w));                                                \
  }
OBJECT(EventRecord, fpRecordNode, Event)
OBJECT(EventWait, fpWaitNode, Event)
OBJECT(MemFree, fpFreeNode, Params)
EVENT(EventRecord, fpRecordNode)
EVENT(EventWait, fpWaitNode)

EXPORT int API(GraphMemAllocNodeGetParams)(struct fp_node *n, struct alloc_params *p) {
  if (!n || !p || n->work.type != fpAllocNode) return finish(fpInvalidValue);
  memset(p, 0, sizeof *p);
  p->size = n->work.width, p->at = (void *)n->work.object;
  return 0;
}

// node_shown fills in the parameters of a node of any type.
static int node_shown(struct fp_node *n, struct node_params *p) {
  const struct fp_work *w = &n->work;
  memset(p, 0, sizeof *p);
  p->type = w->type;
  switch (w->type) {
    case fpKernelNode: return kernel_shown(w, &p->of.kernel);
    case fpCopyNode: return copy_shown(w, &p->of.copy.params);
    case fpFillNode: return fill_shown(w, &p->of.fill);
    case fpHostNode: return host_shown(w, &p->of.host);
    case fpChildNode: p->of.child = w->child; break;
    case fpAllocNode: p->of.alloc.size = w->width, p->of.alloc.at = (void *)w->object; break;
    case fpConditionNode: p->of.condition = (struct condition_params){.handle = w->object, .test = w->test, .count = w->nbodies, .bodies = w->bodies}; break;
    default: p->of.object = w->object;
  }
  return 0;
}
EXPORT int API(GraphNodeGetParams)(struct fp_node *n, struct node_params *p) { return finish(n && p ? node_shown(n, p) : fpInvalidValue); }

static int condition_create(u64 *handle, struct fp_graph *g, unsigned value, unsigned flags) {
  enum { assignDefault = 1 };
  if (!handle || !g || flags > assignDefault) return fpInvalidValue;
  int e = fp_request(FP_Condition, (const u64[]){0, 0, 0, 0}, 4, handle, 1);
  return e || !flags ? e : fp_condition_add(g, *handle, value);
}

EXPORT int API(GraphAddEmptyNode)(NODE) {
  struct fp_work w = {.type = fpEmptyNode};
  return finish(node_add(0, node, g, from, n, &w));
}

EXPORT int API(GraphAddChildGraphNode)(NODE, struct fp_graph *child) {
  struct fp_work w;
  return finish(node_add(child_work(&w, child), node, g, from, n, &w));
}

EXPORT int API(GraphChildGraphNodeGetGraph)(struct fp_node *n, struct fp_graph **g) {
  if (!n || !g || n->work.type != fpChildNode) return finish(fpInvalidValue);
  *g = n->work.child;
  return 0;
}

// Attributes of kernel nodes (cudaLaunchAttributeID). Those that affect the launch are its flags.

enum { fpCooperative = 2, fpClusters = 4, fpUpdatable = 13 };

static int attribute_hint(int id) {
  switch (id) {
    case 1: case 5: case 8: case 9: case 10: case 11: case 14: case 16: case 17: case 18: return 1;
  }
  return 0;
}

static int attribute_set(struct fp_work *w, int id, const u32 *value) {
  enum { shape = 0xffffff };
  u64 *flags = &w->launch.flags;
  if (w->type != fpKernelNode) return fpInvalidValue;
  switch (id) {
    case fpCooperative: *flags = (*flags & ~(u64)FP_LAUNCH_COOPERATIVE) | (value[0] ? FP_LAUNCH_COOPERATIVE : 0); return 0;
    case fpClusters:
      *flags = (*flags & ~((u64)shape << FP_LAUNCH_CLUSTER)) | fp_cluster(value[0], value[1], value[2]);
      return 0;
    case fpUpdatable: return value[0] ? fp_unsupported("a kernel node that kernels update") : 0;
  }
  if (!attribute_hint(id)) return fpInvalidValue;
  if (!w->hints && !(w->hints = calloc(1, sizeof *w->hints))) return fpOutOfMemory;
  memcpy(w->hints->of[id], value, sizeof w->hints->of[id]);
  return 0;
}

static int attribute_get(const struct fp_work *w, int id, u32 *value) {
  const u64 flags = w->launch.flags;
  if (w->type != fpKernelNode) return fpInvalidValue;
  if (id != fpCooperative && id != fpClusters && id != fpUpdatable && !attribute_hint(id)) return fpInvalidValue;
  memset(value, 0, sizeof(u64[8]));
  if (id == fpCooperative) value[0] = !!(flags & FP_LAUNCH_COOPERATIVE);
  for (int i = 0; id == fpClusters && i < 3; i++) value[i] = flags >> (FP_LAUNCH_CLUSTER + 8 * i) & 0xff;
  if (attribute_hint(id) && w->hints) memcpy(value, w->hints->of[id], sizeof w->hints->of[id]);
  return 0;
}

EXPORT int API(GraphKernelNodeSetAttribute)(struct fp_node *n, int id, const u32 *value) { return finish(n && value ? attribute_set(&n->work, id, value) : fpInvalidValue); }
EXPORT int API(GraphKernelNodeGetAttribute)(struct fp_node *n, int id, u32 *value) { return finish(n && value ? attribute_get(&n->work, id, value) : fpInvalidValue); }

static int attributes_copy(struct fp_node *to, const struct fp_node *from) {
  const u64 edge = FP_LAUNCH_PROGRAMMATIC; // it is not an attribute of the node
  struct fp_hints *hints = NULL;
  if (!to || !from || to->work.type != fpKernelNode || from->work.type != fpKernelNode) return fpInvalidValue;
  if (to == from) return 0;
  if (from->work.hints && !(hints = malloc(sizeof *hints))) return fpOutOfMemory;
  if (hints) *hints = *from->work.hints;
  free(to->work.hints);
  to->work.hints = hints, to->work.launch.flags = (from->work.launch.flags & ~edge) | (to->work.launch.flags & edge);
  return 0;
}
// Up to CUDA 12 the first parameter is the source.
#if FP_RUNTIME == 12
EXPORT int API(GraphKernelNodeCopyAttributes)(struct fp_node *from, struct fp_node *to) { return finish(attributes_copy(to, from)); }
#else
EXPORT int API(GraphKernelNodeCopyAttributes)(struct fp_node *to, struct fp_node *from) { return finish(attributes_copy(to, from)); }
#endif

// Edges. A programmatic edge lets a kernel begin before the one that it depends on has ended.

struct edge {
  unsigned char from, to, type, rest[5];
};

static int edge_plain(const struct edge *d) {
  const struct edge zero = {0};
  return !d || !memcmp(d, &zero, sizeof zero);
}

// edge_check reports whether an edge is valid: a programmatic edge connects kernels, and is the only edge to its node.
static int edge_check(const struct edge *d, const struct fp_node *from, int to_kernel, int alone) {
  const struct edge programmatic = {.from = 1, .type = 1}, begun = {.from = 2, .type = 1};
  if (edge_plain(d)) return 0;
  if (!memcmp(d, &begun, sizeof begun)) return fp_unsupported("an edge of a graph to a kernel that begins when another one has begun");
  if (memcmp(d, &programmatic, sizeof programmatic) || !from || from->work.type != fpKernelNode || !to_kernel) return fpInvalidValue;
  return alone ? 0 : fp_unsupported("a programmatic edge of a graph beside other edges to its node");
}

static int edges_plain(const struct edge *d, size_t n) {
  for (size_t i = 0; d && i < n; i++)
    if (!edge_plain(&d[i])) return fp_unsupported("a programmatic edge in a capture");
  return 0;
}

// edge_to returns the data of an edge.
static struct edge edge_to(const struct fp_node *from, const struct fp_node *to) {
  return from == fp_early(to) ? (struct edge){.from = 1, .type = 1} : (struct edge){0};
}

static int node_add_any(struct fp_node **node, struct fp_graph *g, struct fp_node **from, const struct edge *data, size_t n, struct node_params *p) {
  struct fp_work w = {0};
  int e = node_work(&w, p), early = 0;
  for (size_t i = 0; data && i < n && !e; i++) {
    e = from ? edge_check(&data[i], from[i], w.type == fpKernelNode, n == 1) : fpInvalidValue;
    early |= !edge_plain(&data[i]);
  }
  if (early) w.launch.flags |= FP_LAUNCH_PROGRAMMATIC;
  e = node_add(e, node, g, from, n, &w);
  if (!e && w.type == fpConditionNode) p->of.condition.bodies = (*node)->work.bodies;
  return e;
}

EXPORT int API(GraphAddNode_v2)(struct fp_node **node, struct fp_graph *g, struct fp_node **from, const struct edge *data, size_t n, struct node_params *p) {
  return finish(node_add_any(node, g, from, data, n, p));
}

EXPORT int API(GraphNodeSetParams)(struct fp_node *n, struct node_params *p) {
  struct fp_work w = {0};
  return finish(node_set(node_work(&w, p), n, &w));
}

EXPORT int API(GraphExecNodeSetParams)(struct fp_exec *x, struct fp_node *n, struct node_params *p) {
  struct fp_work w = {0};
  return finish(node_set(node_work(&w, p), exec_node(x, n), &w));
}

static int depend_one(struct fp_node *from, struct fp_node *to, const struct edge *data, int add) {
  u64 *flags = &to->work.launch.flags;
  size_t k = 0;
  while (k < to->count && to->from[k] != from) k++;
  if ((k < to->count) == add) return fpInvalidValue;
  if (!add) {
    if (edge_plain(data) == (from == fp_early(to))) return fpInvalidValue;
    if (fp_early(to)) *flags &= ~(u64)FP_LAUNCH_PROGRAMMATIC;
    memmove(&to->from[k], &to->from[k + 1], (--to->count - k) * sizeof *to->from);
    return 0;
  }
  if (fp_early(to)) return fp_unsupported("a programmatic edge of a graph beside other edges to its node");
  int e = edge_check(data, from, to->work.type == fpKernelNode, !to->count);
  if (e) return e;
  *flags &= ~(u64)FP_LAUNCH_PROGRAMMATIC; // of a captured launch that did not follow a kernel
  if (!edge_plain(data)) *flags |= FP_LAUNCH_PROGRAMMATIC;
  return fp_join(&to->from, &to->count, from);
}

static int depend(struct fp_graph *g, struct fp_node **from, struct fp_node **to, const struct edge *data, size_t n, int add) {
  int e = g && ((from && to) || !n) ? 0 : fpInvalidValue;
  for (size_t i = 0; i < n && !e; i++) {
    if (!from[i] || !to[i] || from[i]->graph != g || to[i]->graph != g || from[i] == to[i]) return fpInvalidValue;
    e = depend_one(from[i], to[i], data ? &data[i] : NULL, add);
  }
  return e;
}

// list returns nodes as the API's calls do: their number, or the first of them.
static int list(struct fp_node *const *nodes, size_t count, struct fp_node **out, size_t *n) {
  if (!n) return fpInvalidValue;
  for (size_t i = 0; out && i < *n; i++) out[i] = i < count ? nodes[i] : NULL;
  if (!out || *n > count) *n = count;
  return 0;
}

// dot writes the nodes and edges of a graph in the format of Graphviz. A child graph is a frame.
static void dot(FILE *f, const struct fp_graph *g) {
  static const char *const types[] = {"kernel ", "memcpy", "memset", "host", "graph", "empty", "wait event", "record event", [fpAllocNode] = "mem alloc", "mem free",
                                      [fpConditionNode] = "conditional"};
  for (size_t i = 0; i < g->count; i++) {
    const struct fp_node *n = g->nodes[i];
    const struct fp_work *w = &n->work;
    fprintf(f, "\"%u\" [label=\"%u\\n%s%s\"];\n", n->id, n->id, types[w->type], w->kernel ? w->kernel->name : "");
    for (size_t k = 0; k < n->count; k++) fprintf(f, "\"%u\" -> \"%u\";\n", n->from[k]->id, n->id);
    for (u32 k = 0; k < w->nbodies + !!w->child; k++) {
      const struct fp_graph *in = w->child ? w->child : w->bodies[k];
      fprintf(f, "subgraph \"cluster_%u\" {\nlabel=\"%u\";\n", in->id, n->id);
      dot(f, in);
      fprintf(f, "}\n");
    }
  }
}

EXPORT int API(GraphDebugDotPrint)(struct fp_graph *g, const char *path, unsigned flags) {
  (void)flags; // flags select further data of nodes
  if (!g || !path) return finish(fpInvalidValue);
  FILE *f = fopen(path, "w");
  if (!f) return finish(fpOperatingSystem);
  fprintf(f, "digraph dot {\n");
  dot(f, g);
  fprintf(f, "}\n");
  return finish(fclose(f) ? fpOperatingSystem : 0);
}

enum { fpLossyQuery = 402 }; // edges with data were requested without their data

static int edges(struct fp_graph *g, struct fp_node **from, struct fp_node **to, struct edge *data, size_t *n) {
  size_t count = 0;
  int e = 0;
  if (!g || !n || !from != !to) return fpInvalidValue;
  for (size_t i = 0; i < g->count; i++)
    for (size_t k = 0; k < g->nodes[i]->count; k++, count++) {
      if (!from || count >= *n) continue;
      from[count] = g->nodes[i]->from[k], to[count] = g->nodes[i];
      const struct edge d = edge_to(from[count], to[count]);
      if (data)
        data[count] = d;
      else if (!edge_plain(&d))
        e = fpLossyQuery;
    }
  if (!from || *n > count) *n = count;
  return e;
}

// edges_of adds the data of edges between a node and others.
static int edges_of(const struct fp_node *node, struct fp_node *const *others, size_t n, int dependents, struct edge *data) {
  for (size_t i = 0; i < n; i++) {
    const struct edge d = dependents ? edge_to(node, others[i]) : edge_to(others[i], node);
    if (data)
      data[i] = d;
    else if (!edge_plain(&d))
      return fpLossyQuery;
  }
  return 0;
}

static int dependencies(struct fp_node *node, struct fp_node **out, struct edge *data, size_t *n) {
  int e = node ? list(node->from, node->count, out, n) : fpInvalidValue;
  return e || !out ? e : edges_of(node, out, *n, 0, data);
}

static int dependents(struct fp_node *node, struct fp_node **out, struct edge *data, size_t *n) {
  struct fp_node **all = NULL;
  size_t count = 0;
  int e = node ? 0 : fpInvalidValue;
  for (size_t i = 0; !e && i < node->graph->count; i++)
    for (size_t k = 0; k < node->graph->nodes[i]->count && !e; k++)
      if (node->graph->nodes[i]->from[k] == node) e = fp_join(&all, &count, node->graph->nodes[i]);
  if (!e) e = list(all, count, out, n);
  if (!e && out) e = edges_of(node, out, *n, 1, data);
  free(all);
  return e;
}

// Each call about edges has a form without the data of edges and a form with it, _v2. The runtime API of CUDA 13 has
// only the second one.
#define EDGES(suffix, DATA, data)                                                                                                     \
  EXPORT int API(GraphAddDependencies##suffix)(struct fp_graph *g, struct fp_node **from, struct fp_node **to, DATA size_t n) {       \
    return finish(depend(g, from, to, data, n, 1));                                                                                   \
  }                                                                                                                                   \
  EXPORT int API(GraphRemoveDependencies##suffix)(struct fp_graph *g, struct fp_node **from, struct fp_node **to, DATA size_t n) {    \
    return finish(depend(g, from, to, data, n, 0));                                                                                   \
  }                                                                                                                                   \
  EXPORT int API(GraphGetEdges##suffix)(struct fp_graph *g, struct fp_node **from, struct fp_node **to, DATA size_t *n) {             \
    return finish(edges(g, from, to, data, n));                                                                                       \
  }                                                                                                                                   \
  EXPORT int API(GraphNodeGetDependencies##suffix)(struct fp_node *node, struct fp_node **out, DATA size_t *n) {                      \
    return finish(dependencies(node, out, data, n));                                                                                  \
  }                                                                                                                                   \
  EXPORT int API(GraphNodeGetDependentNodes##suffix)(struct fp_node *node, struct fp_node **out, DATA size_t *n) {                    \
    return finish(dependents(node, out, data, n));                                                                                    \
  }
#define NOTHING
#define DATA_OF_EDGES struct edge *edge_data,
EDGES(_v2, DATA_OF_EDGES, edge_data)
#if FP_RUNTIME == 13
EDGES(, DATA_OF_EDGES, edge_data)
EXPORT int API(GraphAddNode)(struct fp_node **node, struct fp_graph *g, struct fp_node **from, const struct edge *data, size_t n, struct node_params *p) {
  return finish(node_add_any(node, g, from, data, n, p));
}
#else
EDGES(, NOTHING, NULL)
EXPORT int API(GraphAddNode)(struct fp_node **node, struct fp_graph *g, struct fp_node **from, size_t n, struct node_params *p) {
  return finish(node_add_any(node, g, from, NULL, n, p));
}
#endif

// Graphs.

EXPORT int API(GraphCreate)(struct fp_graph **g, unsigned flags) {
  int e = g && !flags ? present() : fpInvalidValue;
  if (!e && !(*g = fp_graph_new())) e = fpOutOfMemory;
  return finish(e);
}

EXPORT int API(GraphDestroy)(struct fp_graph *g) {
  if (!g || g->nested) return finish(fpInvalidValue);
  fp_graph_free(g);
  return 0;
}

EXPORT int API(UserObjectCreate)(struct fp_user **u, void *data, void (*destroy)(void *), unsigned count, unsigned flags) {
  enum { noDestructorSync = 1 };
  if (!u || !destroy || !count || count > INT32_MAX || flags != noDestructorSync) return finish(fpInvalidValue);
  if (!(*u = malloc(sizeof **u))) return finish(fpOutOfMemory);
  **u = (struct fp_user){destroy, data, count};
  return 0;
}

EXPORT int API(UserObjectRetain)(struct fp_user *u, unsigned count) {
  if (!u || !count) return finish(fpInvalidValue);
  __atomic_add_fetch(&u->count, count, __ATOMIC_RELAXED);
  return 0;
}

EXPORT int API(UserObjectRelease)(struct fp_user *u, unsigned count) { return finish(u ? fp_user_release(u, count) : fpInvalidValue); }

EXPORT int API(GraphRetainUserObject)(struct fp_graph *g, struct fp_user *u, unsigned count, unsigned flags) {
  enum { move = 1 };
  if (!g || !u || !count || flags > move) return finish(fpInvalidValue);
  int e = fp_use_add(g, u, count);
  if (!e && !(flags & move)) __atomic_add_fetch(&u->count, count, __ATOMIC_RELAXED);
  return finish(e);
}

EXPORT int API(GraphReleaseUserObject)(struct fp_graph *g, struct fp_user *u, unsigned count) {
  return finish(g && u ? fp_use_remove(g, u, count) : fpInvalidValue);
}

EXPORT int API(GraphClone)(struct fp_graph **clone, struct fp_graph *g) {
  if (!clone || !g) return finish(fpInvalidValue);
  *clone = fp_graph_clone(g);
  return finish(*clone ? 0 : fpOutOfMemory);
}

EXPORT int API(GraphNodeFindInClone)(struct fp_node **node, struct fp_node *n, struct fp_graph *clone) {
  if (!node || !n || !clone) return finish(fpInvalidValue);
  *node = fp_node_in(clone, n);
  return finish(*node ? 0 : fpInvalidValue);
}

EXPORT int API(GraphDestroyNode)(struct fp_node *node) {
  if (!node) return finish(fpInvalidValue);
  struct fp_graph *g = node->graph;
  size_t at = 0;
  for (size_t i = 0; i < g->count; i++) {
    struct fp_node *n = g->nodes[i];
    if (n == node) at = i;
    for (size_t k = 0; k < n->count; k++)
      if (n->from[k] == node) memmove(&n->from[k], &n->from[k + 1], (--n->count - k) * sizeof *n->from);
  }
  memmove(&g->nodes[at], &g->nodes[at + 1], (--g->count - at) * sizeof *g->nodes);
  fp_node_free(node);
  return 0;
}

EXPORT int API(GraphNodeGetType)(struct fp_node *n, int *type) {
  if (!n || !type) return finish(fpInvalidValue);
  *type = n->work.type;
  return 0;
}

EXPORT int API(GraphNodeGetContainingGraph)(struct fp_node *n, struct fp_graph **g) {
  if (!n || !g) return finish(fpInvalidValue);
  *g = n->graph;
  return 0;
}

EXPORT int API(GraphNodeGetLocalId)(struct fp_node *n, unsigned *id) {
  if (!n || !id) return finish(fpInvalidValue);
  *id = n->id;
  return 0;
}

EXPORT int API(GraphGetId)(struct fp_graph *g, unsigned *id) {
  if (!g || !id) return finish(fpInvalidValue);
  *id = g->id;
  return 0;
}

EXPORT int API(GraphGetNodes)(struct fp_graph *g, struct fp_node **out, size_t *n) { return finish(g ? list(g->nodes, g->count, out, n) : fpInvalidValue); }

EXPORT int API(GraphGetRootNodes)(struct fp_graph *g, struct fp_node **out, size_t *n) {
  struct fp_node **all = NULL;
  size_t count = 0;
  int e = g ? 0 : fpInvalidValue;
  for (size_t i = 0; !e && i < g->count; i++)
    if (!g->nodes[i]->count) e = fp_join(&all, &count, g->nodes[i]);
  if (!e) e = list(all, count, out, n);
  free(all);
  return finish(e);
}

// Executable graphs.

static int instantiate(struct fp_exec **x, struct fp_graph *g, u64 flags) {
  if (!x || !g || flags > 15) return fpInvalidValue;
  if (flags & 4) return fp_unsupported("a graph that is launched by a kernel");
  return fp_exec_new(g, flags, x);
}

struct instantiate_params {
  u64 flags;
  void *stream;
  struct fp_node *error;
  int result; // 0 success, 1 error, 2 invalid structure
};

EXPORT int API(GraphInstantiateWithFlags)(struct fp_exec **x, struct fp_graph *g, u64 flags) { return finish(instantiate(x, g, flags)); }
static int instantiate_params(struct fp_exec **x, struct fp_graph *g, struct instantiate_params *p) {
  if (!p) return fpInvalidValue;
  int e = instantiate(x, g, p->flags);
  p->error = NULL, p->result = e ? 2 : 0;
  return e;
}
EXPORT int API(GraphInstantiateWithParams)(struct fp_exec **x, struct fp_graph *g, struct instantiate_params *p) { return finish(instantiate_params(x, g, p)); }
EXPORT int API(GraphInstantiateWithParams_ptsz)(struct fp_exec **x, struct fp_graph *g, struct instantiate_params *p) { return finish(instantiate_params(x, g, p)); }

EXPORT int API(GraphExecGetFlags)(struct fp_exec *x, u64 *flags) {
  if (!x || !flags) return finish(fpInvalidValue);
  *flags = x->flags;
  return 0;
}

EXPORT int API(GraphExecDestroy)(struct fp_exec *x) {
  if (!x) return finish(fpInvalidValue);
  fp_exec_free(x);
  return 0;
}

EXPORT int API(GraphUpload)(struct fp_exec *x, void *s) {
  (void)s;
  return finish(x ? present() : fpInvalidValue);
}
EXPORT int API(GraphUpload_ptsz)(struct fp_exec *x, void *s) { return API(GraphUpload)(x, s); }

#define GRAPH_LAUNCH(suffix, own)                                              \
  EXPORT int API(GraphLaunch##suffix)(struct fp_exec *x, void *s) {            \
    int e = finish(x ? fp_exec_launch(x, stream_of(s, own)) : fpInvalidValue); \
    fp_node_origin = NULL;                                                     \
    return e;                                                                  \
  }
GRAPH_LAUNCH(, 0)
GRAPH_LAUNCH(_ptsz, 1)

EXPORT int API(GraphNodeSetEnabled)(struct fp_exec *x, struct fp_node *n, unsigned on) {
  struct fp_node *own = exec_node(x, n);
  if (!own || own->work.type > fpFillNode) return finish(fpInvalidValue);
  own->disabled = !on;
  return 0;
}

EXPORT int API(GraphNodeGetEnabled)(struct fp_exec *x, struct fp_node *n, unsigned *on) {
  struct fp_node *own = exec_node(x, n);
  if (!own || !on) return finish(fpInvalidValue);
  *on = !own->disabled;
  return 0;
}

static int exec_update(struct fp_exec *x, struct fp_graph *g, struct update_result *r) {
  *r = (struct update_result){0};
  if (!x || !g) return fpInvalidValue;
  return graphs_differ(x->graph, g, r) ? fpUpdateFailure : graph_update(x->graph, g);
}

EXPORT int API(GraphExecChildGraphNodeSetParams)(struct fp_exec *x, struct fp_node *n, struct fp_graph *g) {
  struct fp_work w;
  return finish(node_set(child_work(&w, g), exec_node(x, n), &w));
}

// Captures. Each call has the variant whose default stream is the thread's own.

static int capture_to_graph(u64 stream, struct fp_graph *g, struct fp_node **from, const void *data, size_t n, int mode) {
  int e = g && (from || !n) ? edges_plain(data, n) : fpInvalidValue;
  return e ? e : fp_capture_begin(stream, g, from, n, mode);
}

static int capture_status(u64 stream, int *status) {
  struct fp_capture_state s;
  int e = status ? fp_capture_state(stream, &s) : fpInvalidValue;
  if (!e) *status = s.status;
  return e ? e : present();
}

static int capture_info(u64 stream, int *status, u64 *id, struct fp_graph **g, struct fp_node *const **from, void **data, size_t *n) {
  struct fp_capture_state s;
  int e = status ? fp_capture_state(stream, &s) : fpInvalidValue;
  if (e) return e;
  *status = s.status;
  if (id) *id = s.id;
  if (g) *g = s.graph;
  if (from) *from = s.from;
  if (data) *data = NULL;
  if (n) *n = s.count;
  return present();
}

// capture_depend sets the dependences of the next node of a stream, or adds to them (flags 0).
static int capture_depend(u64 stream, struct fp_node **from, const void *data, size_t n, unsigned flags) {
  struct fp_capture *c;
  int e = from || !n ? edges_plain(data, n) : fpInvalidValue;
  if (e || !fp_capturing()) return e ? e : 401;
  fp_graph_lock();
  struct fp_branch *b = fp_branch_of(stream, &c);
  if (!b) e = 401;
  if (b && c->invalid) e = fpCaptureInvalidated;
  for (size_t i = 0; i < n && !e; i++)
    if (!from[i] || from[i]->graph != c->graph) e = fpInvalidValue;
  if (!e && flags) {
    free(b->set);
    b->set = NULL, b->count = 0;
  }
  for (size_t i = 0; i < n && !e; i++) e = fp_join(&b->set, &b->count, from[i]);
  fp_graph_unlock();
  return e;
}

#define CAPTURE(suffix, own)                                                                                                              \
  EXPORT int API(StreamEndCapture##suffix)(void *s, struct fp_graph **g) { return finish(fp_capture_end(stream_of(s, own), g)); }         \
  EXPORT int API(StreamIsCapturing##suffix)(void *s, int *status) { return finish(capture_status(stream_of(s, own), status)); }           \
  EXPORT int API(StreamBeginCaptureToGraph##suffix)(void *s, struct fp_graph *g, struct fp_node **from, const void *data, size_t n, int mode) { \
    return finish(capture_to_graph(stream_of(s, own), g, from, data, n, mode));                                                           \
  }                                                                                                                                       \
  EXPORT int API(StreamGetCaptureInfo_v2##suffix)(void *s, int *status, u64 *id, struct fp_graph **g, struct fp_node *const **from, size_t *n) { \
    return finish(capture_info(stream_of(s, own), status, id, g, from, NULL, n));                                                         \
  }                                                                                                                                       \
  EXPORT int API(StreamGetCaptureInfo_v3##suffix)(void *s, int *status, u64 *id, struct fp_graph **g, struct fp_node *const **from,       \
                                                  void **data, size_t *n) {                                                               \
    return finish(capture_info(stream_of(s, own), status, id, g, from, data, n));                                                         \
  }                                                                                                                                       \
  EXPORT int API(StreamUpdateCaptureDependencies_v2##suffix)(void *s, struct fp_node **from, const void *data, size_t n, unsigned flags) { \
    return finish(capture_depend(stream_of(s, own), from, data, n, flags));                                                               \
  }                                                                                                                                       \
  EXPORT int API(StreamWaitEvent##suffix)(void *s, u64 event, unsigned flags) { return finish(fp_event_wait(stream_of(s, own), event, flags)); } \
  EXPORT int API(EventRecord##suffix)(u64 event, void *s) { return finish(fp_event_record(event, stream_of(s, own), 0)); }                \
  EXPORT int API(EventRecordWithFlags##suffix)(u64 event, void *s, unsigned flags) {                                                      \
    return finish(fp_event_record(event, stream_of(s, own), flags));                                                                      \
  }
CAPTURE(, 0)
CAPTURE(_ptsz, 1)

EXPORT int API(ThreadExchangeStreamCaptureMode)(int *mode) {
  if (!mode || *mode < fpGlobal || *mode > fpRelaxed) return finish(fpInvalidValue);
  int before = fp_capture_mode;
  fp_capture_mode = *mode;
  *mode = before;
  return finish(present());
}
