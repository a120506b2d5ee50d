// graph.h: graphs and stream capture, for both APIs. A graph is data of this process. Its nodes hold the arguments of
// calls. A launch makes the calls in streams that only the edges order, so nodes without a path between them are not
// ordered for the checker.
#ifndef FP_GRAPH_H
#define FP_GRAPH_H

struct fp_function;
struct fp_hint;
struct fp_stream_attribute;

// The types of nodes (CUgraphNodeType).
enum { fpKernelNode, fpCopyNode, fpFillNode, fpHostNode, fpChildNode, fpEmptyNode, fpWaitNode, fpRecordNode, fpAllocNode = 10, fpFreeNode, fpConditionNode = 13 };

// The errors of captures.
enum {
  fpCaptureUnsupported = 900,
  fpCaptureInvalidated = 901,
  fpCaptureMerge = 902,
  fpCaptureUnmatched = 903,
  fpCaptureUnjoined = 904,
  fpCaptureIsolation = 905,
  fpCaptureImplicit = 906,
  fpCapturedEvent = 907,
  fpCaptureWrongThread = 908,
  fpUpdateFailure = 910,
};

// The attributes of a kernel node that are hints. They are stored so that they can be read back.
struct fp_hints {
  u64 of[20][8]; // by number: cudaLaunchAttributeID
};

// The work of a node: the fields depend on its type. The work owns what block, params, hints and bodies point to.
struct fp_work {
  int type;
  struct fp_kernel *kernel;
  const void *function; // as the program named the kernel
  struct fp_launch launch; // FP_LAUNCH_PROGRAMMATIC if the edge to the node is programmatic: see fp_early
  char *block;
  void **params;
  struct fp_hints *hints; // NULL if none was set
  struct fp_box to, from;
  u64 width, height, depth; // width in bytes
  int direction;
  u32 value, size;
  void (*call)(void *);
  void (*callback)(void *, int, void *);
  void *data;
  u64 object; // an event, an address, a condition, or the stream that a callback gets
  struct fp_graph *child;
  struct fp_graph **bodies; // of a conditional node
  u32 nbodies;
  int test; // fpIf, fpWhile, fpSwitch
};

enum { fpIf, fpWhile, fpSwitch };

struct fp_node {
  struct fp_graph *graph;
  struct fp_node **from; // the nodes that it depends on
  size_t count;
  const struct fp_node *original; // of a clone
  struct fp_work work;
  struct fp_origin origin;
  int disabled;
  u32 id, mark;
  // In an executable graph: the nodes that it waits for, with child graphs replaced by their nodes; its lane; and the
  // event after it, 0 if it is not needed.
  struct fp_node **waits;
  size_t waiting;
  u32 lane;
  u64 event;
  struct fp_node *follower; // the node to which there is a programmatic edge from here
  struct fp_exec **inner;   // the bodies of a conditional node
};

// A user object is destroyed with its last reference. Graphs own some references.
struct fp_user {
  void (*destroy)(void *);
  void *data;
  u32 count;
};

struct fp_use {
  struct fp_user *object;
  u32 count;
  struct fp_use *next;
};

// A condition. Every launch of the graph begins with its value.
struct fp_condition {
  u64 handle;
  u32 value;
  struct fp_condition *next;
};

struct fp_graph {
  struct fp_node **nodes;
  size_t count;
  struct fp_use *uses;
  struct fp_condition *conditions;
  u32 id;
  const struct fp_graph *original; // of a clone
  int nested;                      // it belongs to a node
};

struct fp_exec {
  struct fp_graph *graph; // a clone; for the body of a conditional node, the graph in the clone
  struct fp_node **order;
  size_t count;
  u64 *lanes; // streams; the first one is that of the launch
  u32 nlanes;
  u64 begin, end; // events
  int launched;
  u64 flags;
};

// A branch of a capture: a stream, and the nodes that its next node will depend on.
struct fp_branch {
  u64 stream;
  int blocking; // the legacy stream waits for it
  struct fp_node **set;
  size_t count;
  struct fp_branch *next;
};

// An event that was recorded in a capture, and the nodes that it represents.
struct fp_mark {
  u64 event;
  struct fp_node **set;
  size_t count;
  struct fp_mark *next;
};

struct fp_capture {
  u64 id, thread;
  int mode, invalid, to_graph;
  struct fp_graph *graph;
  struct fp_branch *branches; // the last one is the origin
  struct fp_branch *origin;
  struct fp_mark *marks;
  struct fp_capture *next;
};

enum { fpGlobal, fpThreadLocal, fpRelaxed };
THREAD int fp_capture_mode;

// Data that the libraries of a process share. They are in a page before the alias.
struct fp_shared {
  pthread_mutex_t lock;
  u32 initialized;               // the driver API was initialised, by cuInit or by the runtime API
  u32 key;                       // 1 plus the key of the threads in which the runtime API has a context; 0 for none
  u32 called_back[32];           // threads that execute functions of the program for streams
  struct fp_function *functions; // functions that streams call and that have not ended: see function.h
  struct fp_capture *captures;
  u64 captured; // number of captures so far
  u32 ids;
  u64 *memory; // addresses of allocation nodes
  size_t memories;
  struct fp_hint *hints; // see hints.h
  size_t nhints;
  struct fp_stream_attribute *attributes;
  size_t nattributes;
};

static struct fp_shared *fp_shared(void) { return fp.alias ? (struct fp_shared *)(fp.alias - FP_SHARED) : NULL; }

// fp_capturing reports whether any stream of this process captures. The other library of the process may have begun the
// capture before this one connected to the checker.
static int fp_capturing(void) {
  if (!fp.alias && !fp_forked() && !fp_begin()) fp_end();
  struct fp_shared *s = fp_shared();
  return s && __atomic_load_n(&s->captures, __ATOMIC_ACQUIRE) && !fp_forked();
}

// fp_in_context reports whether a request needs a context of the calling thread.
static int fp_in_context(u32 op) {
  switch (op) {
    case FP_Launch: case FP_Malloc: case FP_Free: case FP_MallocAsync: case FP_FreeAsync: case FP_HostRegister: case FP_HostUnregister: case FP_Copy:
    case FP_Fill: case FP_StreamCreate: case FP_StreamSynchronize: case FP_StreamQuery: case FP_StreamWaitEvent: case FP_StreamInfo: case FP_StreamValue: case FP_Condition: case FP_EventCreate:
    case FP_EventRecord: case FP_EventSynchronize: case FP_EventQuery: case FP_EventElapsed: case FP_DeviceSynchronize: case FP_SetLimit: case FP_MemInfo: case FP_Occupancy:
      return 1;
  }
  return 0;
}

// fp_runtime_context returns whether the runtime API has made a context current in the calling thread. If set is not
// negative, it then changes this. A thread calls the runtime API in one library and the driver API in another.
static int fp_runtime_context(int set) {
  struct fp_shared *s = fp_shared();
  if (!s) return 0;
  u32 key = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);
  if (!key && set > 0) {
    pthread_key_t fresh;
    if (pthread_key_create(&fresh, NULL)) return 0;
    if (__atomic_compare_exchange_n(&s->key, &key, fresh + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      key = fresh + 1;
    else
      pthread_key_delete(fresh);
  }
  if (!key) return 0;
  if (set >= 0 && !pthread_getspecific(key - 1) != !set) pthread_setspecific(key - 1, set ? s : NULL);
  return pthread_getspecific(key - 1) != NULL;
}

// fp_mark_thread replaces a thread in the list of those that execute functions by another one. 0 is none.
static int fp_mark_thread(u32 from, u32 to) {
  struct fp_shared *s = fp_shared();
  for (size_t i = 0; s && i < sizeof s->called_back / sizeof *s->called_back; i++) {
    u32 expected = from;
    if (__atomic_compare_exchange_n(&s->called_back[i], &expected, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return 1;
  }
  return 0;
}

// fp_called_back reports whether this thread executes a function of the program for a stream. Such a thread must not
// call CUDA through any library.
static int fp_called_back(void) {
  struct fp_shared *s = fp_shared();
  if (!s || !__atomic_load_n(&s->functions, __ATOMIC_ACQUIRE)) return 0;
  const u32 self = (u32)syscall(SYS_gettid);
  return fp_mark_thread(self, self);
}

static void fp_graph_lock(void) {
  if (fp_shared()) fp_lock(&fp_shared()->lock);
}
static void fp_graph_unlock(void) {
  if (fp_shared()) fp_unlock(&fp_shared()->lock);
}

// fp_grow makes room for one more element. It returns 0 if there is none.
static int fp_grow(void *array, size_t count, size_t size) {
  void **p = array;
  if (count & (count - 1)) return 1; // the capacity is a power of two
  void *grown = realloc(*p, (count ? 2 * count : 1) * size);
  if (grown) *p = grown;
  return grown != NULL;
}

// Memory of allocation nodes has its address from the creation of the node on, and every launch of the graph allocates
// it again. Here it is allocated once, by fp_graph_malloc, and never freed: freeing it, in a graph or outside, orders
// nothing.
static int fp_graph_malloc(u64 size, u64 *address) {
  const int mode = fp_capture_mode;
  fp_capture_mode = fpRelaxed;
  int e = fp_request(FP_Malloc, (const u64[]){size, FP_KIND_DEVICE | FP_OF_GRAPH}, 2, address, 1);
  fp_capture_mode = mode;
  struct fp_shared *s = fp_shared();
  if (e || !s) return e;
  fp_graph_lock();
  if (fp_grow(&s->memory, s->memories, sizeof *s->memory))
    s->memory[s->memories++] = *address;
  else
    e = fpOutOfMemory;
  fp_graph_unlock();
  return e;
}

static int fp_graph_memory_at(u64 address) {
  struct fp_shared *s = fp_shared();
  int found = 0;
  if (!s || !s->memories || fp_forked()) return 0;
  fp_graph_lock();
  for (size_t i = 0; i < s->memories && !found; i++) found = s->memory[i] == address;
  fp_graph_unlock();
  return found;
}

static u32 fp_graph_id(void) { return fp_shared() ? __atomic_add_fetch(&fp_shared()->ids, 1, __ATOMIC_RELAXED) : 1; }

// fp_join adds a node to a set.
static int fp_join(struct fp_node ***set, size_t *count, struct fp_node *n) {
  for (size_t i = 0; i < *count; i++)
    if ((*set)[i] == n) return 0;
  if (!fp_grow(set, *count, sizeof **set)) return fpOutOfMemory;
  (*set)[(*count)++] = n;
  return 0;
}

static struct fp_graph *fp_graph_new(void) {
  struct fp_graph *g = calloc(1, sizeof *g);
  if (g) g->id = fp_graph_id();
  return g;
}

static void fp_graph_free(struct fp_graph *g);

static void fp_work_free(struct fp_work *w) {
  free(w->block), free(w->params), free(w->hints);
  if (w->child) fp_graph_free(w->child);
  for (u32 i = 0; w->bodies && i < w->nbodies; i++)
    if (w->bodies[i]) fp_graph_free(w->bodies[i]);
  free(w->bodies);
}

static void fp_exec_free(struct fp_exec *x);

// fp_inner_free frees the bodies of a conditional node of an executable graph. The node owns their graphs.
static void fp_inner_free(struct fp_node *n) {
  for (u32 i = 0; n->inner && i < n->work.nbodies; i++) {
    if (!n->inner[i]) continue;
    n->inner[i]->graph = NULL;
    fp_exec_free(n->inner[i]);
  }
  free(n->inner);
}

static void fp_node_free(struct fp_node *n) {
  fp_inner_free(n);
  fp_work_free(&n->work);
  free(n->from), free(n->waits), free(n);
}

static int fp_user_release(struct fp_user *u, u32 count) {
  u32 had = __atomic_load_n(&u->count, __ATOMIC_RELAXED);
  do
    if (!count || count > had) return fpInvalidValue;
  while (!__atomic_compare_exchange_n(&u->count, &had, had - count, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  if (had > count) return 0;
  u->destroy(u->data);
  free(u);
  return 0;
}

// fp_use_add gives a graph references to an object. The references have been counted already.
static int fp_use_add(struct fp_graph *g, struct fp_user *u, u32 count) {
  struct fp_use *x = g->uses;
  while (x && x->object != u) x = x->next;
  if (!x) {
    if (!(x = calloc(1, sizeof *x))) return fpOutOfMemory;
    x->object = u, x->next = g->uses, g->uses = x;
  }
  x->count += count;
  return 0;
}

static int fp_use_remove(struct fp_graph *g, struct fp_user *u, u32 count) {
  struct fp_use **p = &g->uses, *x;
  while (*p && (*p)->object != u) p = &(*p)->next;
  if (!(x = *p) || !count || count > x->count) return fpInvalidValue;
  if (!(x->count -= count)) *p = x->next, free(x);
  return fp_user_release(u, count);
}

static void fp_graph_free(struct fp_graph *g) {
  while (g->uses) fp_use_remove(g, g->uses->object, g->uses->count);
  for (struct fp_condition *c; (c = g->conditions);) g->conditions = c->next, free(c);
  for (size_t i = 0; i < g->count; i++) fp_node_free(g->nodes[i]);
  free(g->nodes), free(g);
}

static struct fp_graph *fp_graph_clone(const struct fp_graph *g);

// fp_params sets the pointers to the parameters in the block.
static int fp_params(struct fp_work *w) {
  if (w->type != fpKernelNode) return 0;
  w->params = calloc(w->kernel->count + 1u, sizeof *w->params);
  for (u32 i = 0; w->params && i < w->kernel->count; i++) w->params[i] = w->block + w->kernel->layout[2 * i];
  return w->params ? 0 : fpOutOfMemory;
}

// fp_bodies makes the bodies of a conditional node: copies, or empty graphs if there are none yet.
static int fp_bodies(struct fp_work *to, struct fp_graph *const *bodies) {
  to->bodies = calloc(to->nbodies, sizeof *to->bodies);
  for (u32 i = 0; to->bodies && i < to->nbodies; i++) {
    if (!(to->bodies[i] = bodies ? fp_graph_clone(bodies[i]) : fp_graph_new())) return fpOutOfMemory;
    to->bodies[i]->nested = 1;
  }
  return to->bodies ? 0 : fpOutOfMemory;
}

// fp_work_copy copies work, with all data that it owns.
static int fp_work_copy(struct fp_work *to, const struct fp_work *w) {
  *to = *w;
  to->block = NULL, to->params = NULL, to->hints = NULL, to->child = NULL, to->bodies = NULL;
  if (w->type == fpKernelNode) {
    to->block = calloc(1, w->kernel->size + 1u);
    if (w->hints && (to->hints = malloc(sizeof *to->hints))) *to->hints = *w->hints;
    if (!to->block || !w->hints != !to->hints) return fpOutOfMemory;
    memcpy(to->block, w->block, w->kernel->size);
    return fp_params(to);
  }
  if (w->type == fpConditionNode) return fp_bodies(to, w->bodies);
  if (w->type != fpChildNode) return 0;
  to->child = fp_graph_clone(w->child);
  if (to->child) to->child->nested = 1;
  return to->child ? 0 : fpOutOfMemory;
}

// fp_early returns the kernel node from which a node has a programmatic edge as its only edge. The node may then begin
// before that kernel has ended. The attribute of a captured launch that follows a kernel has the same meaning.
static struct fp_node *fp_early(const struct fp_node *n) {
  return n->work.launch.flags & FP_LAUNCH_PROGRAMMATIC && n->count == 1 && n->from[0]->work.type == fpKernelNode ? n->from[0] : NULL;
}

static int fp_condition_add(struct fp_graph *g, u64 handle, u32 value) {
  struct fp_condition *c = malloc(sizeof *c);
  if (!c) return fpOutOfMemory;
  *c = (struct fp_condition){handle, value, g->conditions};
  g->conditions = c;
  return 0;
}

// fp_node_add adds a node after other nodes of the graph. It copies the work.
static int fp_node_add(struct fp_graph *g, struct fp_node *const *from, size_t count, const struct fp_work *w, struct fp_node **made) {
  for (size_t i = 0; i < count; i++) {
    if (!from || !from[i] || from[i]->graph != g) return fpInvalidValue;
    for (size_t k = 0; k < i; k++)
      if (from[k] == from[i]) return fpInvalidValue;
  }
  struct fp_node *n = calloc(1, sizeof *n);
  if (!n) return fpOutOfMemory;
  n->graph = g, n->id = fp_graph_id(), n->origin.count = fp_stack(n->origin.frames, FP_ORIGIN_FRAMES);
  int e = fp_work_copy(&n->work, w);
  for (size_t i = 0; !e && i < count; i++) e = fp_join(&n->from, &n->count, from[i]);
  if (!e && !fp_grow(&g->nodes, g->count, sizeof *g->nodes)) e = fpOutOfMemory;
  if (e) {
    fp_node_free(n);
    return e;
  }
  g->nodes[g->count++] = n;
  if (made) *made = n;
  return 0;
}

static struct fp_graph *fp_graph_clone(const struct fp_graph *g) {
  struct fp_graph *c = fp_graph_new();
  if (!c) return NULL;
  c->original = g;
  for (struct fp_use *x = g->uses; x; x = x->next) {
    if (fp_use_add(c, x->object, x->count)) goto fail;
    __atomic_add_fetch(&x->object->count, x->count, __ATOMIC_RELAXED);
  }
  for (struct fp_condition *x = g->conditions; x; x = x->next)
    if (fp_condition_add(c, x->handle, x->value)) goto fail;
  for (size_t i = 0; i < g->count; i++) {
    g->nodes[i]->mark = (u32)i;
    if (fp_node_add(c, NULL, 0, &g->nodes[i]->work, NULL)) goto fail;
    c->nodes[i]->original = g->nodes[i], c->nodes[i]->origin = g->nodes[i]->origin, c->nodes[i]->disabled = g->nodes[i]->disabled;
  }
  for (size_t i = 0; i < g->count; i++)
    for (size_t k = 0; k < g->nodes[i]->count; k++)
      if (fp_join(&c->nodes[i]->from, &c->nodes[i]->count, c->nodes[g->nodes[i]->from[k]->mark])) goto fail;
  return c;
fail:
  fp_graph_free(c);
  return NULL;
}

// fp_node_in finds the node of a clone that corresponds to a node of the cloned graph, also in child graphs and bodies.
static struct fp_node *fp_node_in(const struct fp_graph *g, const struct fp_node *original) {
  for (size_t i = 0; i < g->count; i++) {
    const struct fp_work *w = &g->nodes[i]->work;
    if (g->nodes[i]->original == original) return g->nodes[i];
    struct fp_node *n = w->child ? fp_node_in(w->child, original) : NULL;
    for (u32 k = 0; k < w->nbodies && !n; k++) n = fp_node_in(w->bodies[k], original);
    if (n) return n;
  }
  return NULL;
}

// Instantiation.

// fp_open_up lists the nodes of a graph, whose first nodes wait for before. The nodes of a child graph come before the
// node of the child graph, which then joins the child's last nodes.
static int fp_open_up(struct fp_exec *x, struct fp_graph *g, struct fp_node *const *before, size_t nbefore) {
  int e = 0;
  for (size_t i = 0; i < g->count && !e; i++) {
    struct fp_node *n = g->nodes[i];
    struct fp_node *const *from = n->count ? n->from : before;
    size_t count = n->count ? n->count : nbefore;
    for (size_t k = 0; k < count && !e; k++) e = fp_join(&n->waits, &n->waiting, from[k]);
    struct fp_graph *child = n->work.child;
    if (!e && child) {
      e = fp_open_up(x, child, n->waits, n->waiting);
      for (size_t k = 0; k < child->count && !e; k++) e = fp_join(&n->waits, &n->waiting, child->nodes[k]);
    }
    if (!e && !fp_grow(&x->order, x->count, sizeof *x->order)) e = fpOutOfMemory;
    if (!e) x->order[x->count++] = n;
  }
  return e;
}

static int fp_ready(const struct fp_node *n) {
  for (size_t i = 0; i < n->waiting; i++)
    if (!n->waits[i]->mark) return 0;
  return !n->mark;
}

// fp_sort puts each node after the nodes that it waits for. A host function comes as late as possible: the thread that
// launches the graph may wait for it by means that are not recorded, and continue.
static int fp_sort(struct fp_exec *x) {
  struct fp_node **sorted = calloc(x->count + 1, sizeof *sorted);
  size_t n = 0;
  if (!sorted) return fpOutOfMemory;
  for (size_t i = 0; i < x->count; i++) x->order[i]->mark = 0;
  while (n < x->count) {
    size_t before = n;
    for (size_t i = 0; i < x->count; i++)
      if (x->order[i]->work.type != fpHostNode && fp_ready(x->order[i])) (sorted[n++] = x->order[i])->mark = 1;
    for (size_t i = 0; i < x->count && n == before; i++)
      if (fp_ready(x->order[i])) (sorted[n++] = x->order[i])->mark = 1;
    if (n == before) break; // a cycle
  }
  int e = n < x->count ? fpInvalidValue : 0;
  if (!e) memcpy(x->order, sorted, n * sizeof *sorted);
  free(sorted);
  return e;
}

static int fp_event_new(u64 *event) { return *event ? 0 : fp_request(FP_EventCreate, (const u64[]){2 | FP_OF_GRAPH}, 1, event, 1); }

// fp_followers finds the programmatic followers of nodes: two of them cannot both directly follow a node in its lane.
static int fp_followers(struct fp_exec *x) {
  for (size_t i = 0; i < x->count; i++) {
    struct fp_node *n = x->order[i], *early = fp_early(n);
    if (early && early->follower) return fp_unsupported("several programmatic edges from one node of a graph");
    if (early) early->follower = n;
  }
  return 0;
}

// fp_lanes gives each node a lane: that of a node it waits for, if no other node follows there, or a new one.
static int fp_lanes(struct fp_exec *x) {
  struct fp_node **last = calloc(x->count + 1, sizeof *last);
  int e = last ? fp_followers(x) : fpOutOfMemory;
  u32 lanes = 0;
  for (size_t i = 0; i < x->count && !e; i++) {
    struct fp_node *n = x->order[i];
    n->lane = lanes;
    for (size_t k = 0; k < n->waiting && n->lane == lanes; k++) {
      const struct fp_node *f = n->waits[k]->follower;
      if (last[n->waits[k]->lane] == n->waits[k] && (!f || f == n)) n->lane = n->waits[k]->lane;
    }
    if (n->lane == lanes) lanes++;
    last[n->lane] = n;
    for (size_t k = 0; k < n->waiting && !e; k++)
      if (n->waits[k]->lane != n->lane) e = fp_event_new(&n->waits[k]->event);
  }
  for (u32 i = 1; i < lanes && !e; i++) e = fp_event_new(&last[i]->event);
  if (!e) e = fp_event_new(&x->begin);
  if (!e) e = fp_event_new(&x->end);
  x->lanes = calloc(lanes + 1u, sizeof *x->lanes);
  if (!x->lanes) e = fpOutOfMemory;
  for (u32 i = 1; i < lanes && !e; i++) e = fp_request(FP_StreamCreate, (const u64[]){1 | FP_OF_GRAPH, 0}, 2, &x->lanes[i], 1);
  x->nlanes = lanes;
  free(last);
  return e;
}

static void fp_exec_free(struct fp_exec *x) {
  for (size_t i = 0; i < x->count; i++)
    if (x->order[i]->event) fp_request(FP_EventDestroy, &x->order[i]->event, 1, NULL, 0);
  for (u32 i = 1; x->lanes && i < x->nlanes; i++)
    if (x->lanes[i]) fp_request(FP_StreamDestroy, &x->lanes[i], 1, NULL, 0);
  if (x->begin) fp_request(FP_EventDestroy, &x->begin, 1, NULL, 0);
  if (x->end) fp_request(FP_EventDestroy, &x->end, 1, NULL, 0);
  if (x->graph) fp_graph_free(x->graph);
  free(x->order), free(x->lanes), free(x);
}

// fp_exec_open makes a graph executable, and takes ownership of it. fp_inner does the same with the bodies of a
// conditional node.
static int fp_exec_open(struct fp_graph *g, u64 flags, struct fp_exec **made);

static int fp_inner(struct fp_node *n) {
  int e = n->work.nbodies && !(n->inner = calloc(n->work.nbodies, sizeof *n->inner)) ? fpOutOfMemory : 0;
  for (u32 i = 0; i < n->work.nbodies && !e; i++) e = fp_exec_open(n->work.bodies[i], 0, &n->inner[i]);
  return e;
}

static int fp_exec_open(struct fp_graph *g, u64 flags, struct fp_exec **made) {
  struct fp_exec *x = calloc(1, sizeof *x);
  if (!x) return fpOutOfMemory;
  x->flags = flags, x->graph = g;
  int e = fp_open_up(x, g, NULL, 0);
  if (!e) e = fp_sort(x);
  if (!e) e = fp_lanes(x);
  for (size_t i = 0; i < x->count && !e; i++) e = fp_inner(x->order[i]);
  if (e) {
    x->graph = NULL;
    fp_exec_free(x);
  } else {
    *made = x;
  }
  return e;
}

static int fp_exec_new(struct fp_graph *g, u64 flags, struct fp_exec **made) {
  struct fp_graph *own = fp_graph_clone(g);
  int e = own ? fp_exec_open(own, flags, made) : fpOutOfMemory;
  if (e && own) fp_graph_free(own);
  return e;
}

// Launches.

static int fp_host_call(u64 stream, const struct fp_work *w);

static int fp_condition_do(struct fp_node *n, u64 stream);

static int fp_record(u64 stream, u64 event) { return fp_request(FP_EventRecord, (const u64[]){event, stream, FP_RECORD_WORK}, 3, NULL, 0); }

static int fp_node_do(struct fp_node *n, u64 stream) {
  struct fp_work *w = &n->work;
  struct fp_launch l = w->launch;
  int e;
  switch (w->type) {
    case fpKernelNode:
      l.stream = stream;
      if (!fp_early(n)) l.flags &= ~(u64)FP_LAUNCH_PROGRAMMATIC;
      e = fp_find_kernel(w->kernel);
      return e ? e : fp_launch_block(w->kernel, &l, w->block, w->kernel->size);
    case fpConditionNode: return fp_condition_do(n, stream);
    case fpCopyNode: return fp_copy(w->to, w->from, w->width, w->height, w->depth, w->direction, 1, stream);
    case fpFillNode: return fp_fill(w->to, w->value, w->size, w->width, w->height, w->depth, 1, stream);
    case fpHostNode: return fp_host_call(stream, w);
    case fpWaitNode: return fp_request(FP_StreamWaitEvent, (const u64[]){stream, w->object}, 2, NULL, 0);
    case fpRecordNode: return fp_record(stream, w->object);
  }
  return 0;
}

static int fp_after(u64 stream, u64 event) { return fp_request(FP_StreamWaitEvent, (const u64[]){stream, event}, 2, NULL, 0); }

static int fp_capture_work(u64 stream, const struct fp_work *w, int *e);

// fp_exec_run enqueues the nodes of an executable graph into a stream, after the earlier work of the stream and after
// their own previous run.
static int fp_exec_run(struct fp_exec *x, u64 stream) {
  int e = 0;
  if (x->launched) e = fp_after(stream, x->end);
  if (!e && x->nlanes > 1) e = fp_record(stream, x->begin);
  for (u32 i = 1; i < x->nlanes && !e; i++) e = fp_after(x->lanes[i], x->begin);
  if (x->lanes) x->lanes[0] = stream;
  for (size_t i = 0; i < x->count && !e; i++) {
    struct fp_node *n = x->order[i];
    u64 lane = x->lanes[n->lane];
    for (size_t k = 0; k < n->waiting && !e; k++)
      if (n->waits[k]->lane != n->lane) e = fp_after(lane, n->waits[k]->event);
    fp_node_origin = &n->origin;
    if (!e && !n->disabled) e = fp_node_do(n, lane);
    if (!e) fp_node_origin = NULL; // the failing call also reports the node
    if (!e && n->event) e = fp_record(lane, n->event);
  }
  for (size_t i = 0; i < x->count && !e; i++)
    if (x->order[i]->lane && x->order[i]->event) e = fp_after(stream, x->order[i]->event);
  if (!e) e = fp_record(stream, x->end);
  x->launched = 1;
  return e;
}

// fp_condition_do executes a conditional node. Work is executed when it is enqueued, so the condition has its value.
static int fp_condition_do(struct fp_node *n, u64 stream) {
  for (;;) {
    u64 value = 0;
    int e = fp_request(FP_Condition, (const u64[]){stream, n->work.object, 0, 0}, 4, &value, 1);
    u64 body = n->work.test == fpSwitch ? value : n->work.test == fpIf ? !value : value ? 0 : n->work.nbodies;
    if (e || body >= n->work.nbodies) return e;
    e = fp_exec_run(n->inner[body], stream);
    if (e || n->work.test != fpWhile) return e;
  }
}

// fp_conditions_begin sets the conditions of a graph, and of the graphs in it, to their initial values.
static int fp_conditions_begin(const struct fp_graph *g, u64 stream) {
  int e = 0;
  for (struct fp_condition *c = g->conditions; c && !e; c = c->next) {
    u64 value;
    e = fp_request(FP_Condition, (const u64[]){stream, c->handle, 1, c->value}, 4, &value, 1);
  }
  for (size_t i = 0; i < g->count && !e; i++) {
    const struct fp_work *w = &g->nodes[i]->work;
    if (w->child) e = fp_conditions_begin(w->child, stream);
    for (u32 k = 0; k < w->nbodies && !e; k++) e = fp_conditions_begin(w->bodies[k], stream);
  }
  return e;
}

static int fp_exec_launch(struct fp_exec *x, u64 stream) {
  int e = 0;
  struct fp_work nested = {.type = fpChildNode, .child = x->graph};
  if (fp_capture_work(stream, &nested, &e)) return e;
  if (x->launched) e = fp_after(stream, x->end); // the conditions too
  fp_graph_launch = fp_graph_id();
  if (!e) e = fp_conditions_begin(x->graph, stream);
  return e ? e : fp_exec_run(x, stream);
}

// Captures.

static u64 fp_stream_key(u64 stream) {
  return stream == FP_STREAM_PER_THREAD ? (u64)1 << 63 | (u64)syscall(SYS_gettid) : stream == 0 ? FP_STREAM_LEGACY : stream;
}

static struct fp_branch *fp_branch_of(u64 stream, struct fp_capture **capture) {
  u64 key = fp_stream_key(stream);
  for (struct fp_capture *c = fp_shared() ? fp_shared()->captures : NULL; c; c = c->next)
    for (struct fp_branch *b = c->branches; b; b = b->next)
      if (b->stream == key) {
        *capture = c;
        return b;
      }
  return NULL;
}

static struct fp_mark *fp_mark_of(u64 event, struct fp_capture **capture) {
  for (struct fp_capture *c = fp_shared()->captures; c; c = c->next)
    for (struct fp_mark *m = c->marks; m; m = m->next)
      if (m->event == event) {
        *capture = c;
        return m;
      }
  return NULL;
}

// fp_implicit reports whether work in a stream would order itself with a stream that captures: work of the legacy
// stream, with the streams that wait for it. The capture is then invalid, unless ask is set.
static int fp_implicit(u64 stream, int ask) {
  if (fp_stream_key(stream) != FP_STREAM_LEGACY) return 0;
  int e = 0;
  for (struct fp_capture *c = fp_shared()->captures; c; c = c->next)
    for (struct fp_branch *b = c->branches; b; b = b->next)
      if (b->blocking) c->invalid |= !ask, e = fpCaptureImplicit;
  return e;
}

// fp_unsafe reports whether a call that may wait for the device is refused because of captures
// (cudaThreadExchangeStreamCaptureMode).
static int fp_unsafe(void) {
  u64 thread = (u64)syscall(SYS_gettid);
  int e = 0;
  for (struct fp_capture *c = fp_shared()->captures; c && fp_capture_mode != fpRelaxed; c = c->next)
    if (c->thread == thread ? c->mode != fpRelaxed : c->mode == fpGlobal && fp_capture_mode == fpGlobal) c->invalid = 1, e = fpCaptureUnsupported;
  return e;
}

// fp_capture_node appends a node to a branch.
static int fp_capture_node(struct fp_capture *c, struct fp_branch *b, const struct fp_work *w) {
  struct fp_node *n;
  if (c->invalid) return fpCaptureInvalidated;
  int e = fp_node_add(c->graph, b->set, b->count, w, &n);
  if (e) {
    c->invalid = 1;
    return e;
  }
  b->count = 0;
  free(b->set);
  b->set = NULL;
  return fp_join(&b->set, &b->count, n);
}

// fp_capture_work records work for a stream that captures. It returns 0 if the stream does not capture, and the work is
// to be executed. *e is an error in both cases.
static int fp_capture_work(u64 stream, const struct fp_work *w, int *e) {
  struct fp_capture *c;
  *e = 0;
  if (!fp_capturing()) return 0;
  fp_graph_lock();
  struct fp_branch *b = fp_branch_of(stream, &c);
  *e = b ? fp_capture_node(c, b, w) : fp_implicit(stream, 0);
  fp_graph_unlock();
  return b != NULL || *e;
}

static int fp_capture_copy(struct fp_box to, struct fp_box from, u64 width, u64 height, u64 depth, int direction, int async, u64 stream, int *e) {
  const struct fp_work w = {.type = fpCopyNode, .to = to, .from = from, .width = width, .height = height, .depth = depth, .direction = direction};
  *e = 0;
  if (!fp_capturing()) return 0;
  struct fp_capture *c;
  if (!async) {
    fp_graph_lock();
    struct fp_branch *b = fp_branch_of(stream, &c);
    *e = fp_implicit(stream, 0);
    if (!*e && b) c->invalid = 1, *e = fpCaptureUnsupported;
    if (!*e) *e = fp_unsafe();
    fp_graph_unlock();
    return *e;
  }
  return fp_capture_work(stream, &w, e);
}

static int fp_capture_fill(struct fp_box to, u32 value, u32 size, u64 width, u64 height, u64 depth, u64 stream, int *e) {
  const struct fp_work w = {.type = fpFillNode, .to = to, .value = value, .size = size, .width = width, .height = height, .depth = depth};
  return fp_capture_work(stream, &w, e);
}

static int fp_capture_launch(struct fp_kernel *k, const struct fp_launch *l, const void *block, int *e) {
  const struct fp_work w = {.type = fpKernelNode, .kernel = k, .function = k->host ? k->host : k, .launch = *l, .block = (char *)block};
  return fp_capture_work(l->stream, &w, e);
}

// fp_refuse_wait refuses a call that waits for a stream or an event of a capture, or may wait for the device.
static int fp_refuse_wait(u32 op, const u64 *args) {
  struct fp_capture *c = NULL;
  int e = 0;
  fp_graph_lock();
  switch (op) {
    case FP_StreamSynchronize:
    case FP_StreamQuery:
      e = fp_branch_of(args[0], &c) ? fpCaptureUnsupported : fp_implicit(args[0], 0);
      break;
    case FP_EventSynchronize:
    case FP_EventQuery:
      e = fp_mark_of(args[0], &c) ? fpCapturedEvent : 0;
      break;
  }
  if (c) c->invalid = 1;
  if (!e && op != FP_StreamSynchronize && op != FP_StreamQuery) e = fp_unsafe();
  fp_graph_unlock();
  return e;
}

// fp_capture_request records or refuses a request because of a capture. It returns 0 if the request is to be executed.
static int fp_capture_request(u32 op, const u64 *args, u64 *results, int *e) {
  struct fp_work w = {.type = fpEmptyNode};
  struct fp_capture *c;
  *e = 0;
  if (!fp_capturing()) {
    if ((op != FP_Free && op != FP_FreeAsync) || !fp_graph_memory_at(args[0])) return 0;
    if (op == FP_Free) *e = fp_request(FP_DeviceSynchronize, NULL, 0, NULL, 0);
    return 1;
  }
  switch (op) {
    case FP_MallocAsync: {
      fp_graph_lock();
      int of_graph = fp_branch_of(args[1], &c) != NULL;
      fp_graph_unlock();
      if (!of_graph) return (*e = fp_implicit(args[1], 0));
      *e = fp_graph_malloc(args[0], results);
      w.type = fpAllocNode, w.object = *e ? 0 : results[0], w.width = args[0];
      return *e || fp_capture_work(args[1], &w, e) || 1;
    }
    case FP_FreeAsync:
      w.type = fpFreeNode, w.object = args[0];
      return fp_capture_work(args[1], &w, e);
    case FP_StreamSynchronize: case FP_StreamQuery: case FP_EventSynchronize: case FP_EventQuery: case FP_DeviceSynchronize:
    case FP_Malloc: case FP_Free: case FP_DeviceReset:
      return (*e = fp_refuse_wait(op, args));
  }
  return 0;
}

#include "function.h"

// fp_host_call enqueues a host function into a stream.
static int fp_host_call(u64 stream, const struct fp_work *w) {
  int e;
  if (!w->call && !w->callback) return fpInvalidValue;
  return fp_capture_work(stream, w, &e) ? e : fp_function_start(stream, w);
}

enum { fpExternal = 1 }; // the flag of records and waits: a node of the graph that is captured

// fp_external handles a record or a wait with flags, which is valid only in a stream that captures.
static int fp_external(u64 stream, const struct fp_work *w, unsigned flags) {
  int e = 0;
  if (flags != fpExternal || !fp_capturing()) return fpInvalidValue;
  return fp_capture_work(stream, w, &e) || e ? e : fpInvalidValue;
}

static int fp_event_record(u64 event, u64 stream, unsigned flags) {
  const struct fp_work w = {.type = fpRecordNode, .object = event};
  struct fp_capture *c, *other;
  int e = 0;
  if (flags) return fp_external(stream, &w, flags);
  if (!fp_capturing()) return fp_record(stream, event);
  fp_graph_lock();
  struct fp_branch *b = fp_branch_of(stream, &c);
  struct fp_mark *m = fp_mark_of(event, &other);
  if (m) { // the newest record is used
    for (struct fp_mark **p = &other->marks; *p; p = &(*p)->next)
      if (*p == m) {
        *p = m->next;
        break;
      }
    free(m->set), free(m);
  }
  if (!b) e = fp_implicit(stream, 0);
  if (b && c->invalid) e = fpCaptureInvalidated;
  if (b && !e) {
    m = calloc(1, sizeof *m);
    if (m) {
      m->event = event, m->next = c->marks, c->marks = m;
      for (size_t i = 0; i < b->count && !e; i++) e = fp_join(&m->set, &m->count, b->set[i]);
    } else {
      e = fpOutOfMemory;
    }
  }
  fp_graph_unlock();
  return b || e ? e : fp_record(stream, event);
}

// fp_begun records the event of a launch before the launch. It is a launch completion event, which tells that the
// kernel's blocks have begun (cudaLaunchAttributeLaunchCompletionEvent), so the earlier work of the stream has ended,
// or a programmatic event. The kernel's operations are not ordered before it.
static int fp_begun(u64 event, u64 stream, u64 flags, u64 of) {
  struct fp_capture *c;
  if (flags & FP_LAUNCH_PROGRAMMATIC) return fp_unsupported("a launch with an event and programmatic stream serialization");
  if (of == FP_RECORD_BEGIN) return fp_event_record(event, stream, 0);
  if (fp_capturing()) {
    fp_graph_lock();
    int captured = !!fp_branch_of(stream, &c);
    fp_graph_unlock();
    if (captured) return fp_unsupported("a launch with a programmatic event in a capture");
  }
  return fp_request(FP_EventRecord, (const u64[]){event, stream, of}, 3, NULL, 0);
}

// fp_branch_add adds a stream to a capture.
static int fp_branch_add(struct fp_capture *c, u64 stream) {
  u64 info[3] = {0};
  if (fp_stream_key(stream) == FP_STREAM_LEGACY) return fpCaptureImplicit;
  int e = fp_request(FP_StreamInfo, &stream, 1, info, 3);
  struct fp_branch *b = e ? NULL : calloc(1, sizeof *b);
  if (!b) return e ? e : fpOutOfMemory;
  b->stream = fp_stream_key(stream), b->blocking = !(info[0] & 1);
  b->next = c->branches, c->branches = b;
  return 0;
}

static int fp_event_wait(u64 stream, u64 event, unsigned flags) {
  const struct fp_work w = {.type = fpWaitNode, .object = event};
  struct fp_capture *c = NULL, *of = NULL;
  int e = 0;
  if (flags) return fp_external(stream, &w, flags);
  if (!fp_capturing()) return fp_after(stream, event);
  fp_graph_lock();
  struct fp_branch *b = fp_branch_of(stream, &c);
  struct fp_mark *m = fp_mark_of(event, &of);
  if (m && of->invalid) e = fpCaptureInvalidated;
  if (!e && m && b && c != of) e = fpCaptureMerge, c->invalid = of->invalid = 1;
  if (!e && b && !m) e = fpCaptureIsolation, c->invalid = 1;
  if (!e && m && !b && !(e = fp_branch_add(of, stream))) b = of->branches;
  for (size_t i = 0; m && i < m->count && !e; i++) e = fp_join(&b->set, &b->count, m->set[i]);
  if (!b && !e) e = fp_implicit(stream, 0);
  fp_graph_unlock();
  return m || b || e ? e : fp_after(stream, event);
}

static int fp_capture_begin(u64 stream, struct fp_graph *g, struct fp_node *const *from, size_t count, int mode) {
  struct fp_capture *c;
  u64 info[3];
  if (mode < fpGlobal || mode > fpRelaxed) return fpInvalidValue;
  if (fp_stream_key(stream) == FP_STREAM_LEGACY) return fpCaptureUnsupported;
  int e = fp_request(FP_StreamInfo, &stream, 1, info, 3); // also opens the connection
  if (e) return e;
  fp_graph_lock();
  struct fp_shared *s = fp_shared();
  if (fp_branch_of(stream, &c)) {
    e = c->invalid ? fpCaptureInvalidated : 401; // illegal state
  } else if (!(c = calloc(1, sizeof *c)) || !(c->graph = g ? g : fp_graph_new())) {
    e = fpOutOfMemory;
  } else {
    c->mode = mode, c->thread = (u64)syscall(SYS_gettid), c->to_graph = g != NULL, c->id = ++s->captured;
    e = fp_branch_add(c, stream);
    c->origin = c->branches;
    for (size_t i = 0; i < count && !e; i++) e = from[i] && from[i]->graph == g ? fp_join(&c->origin->set, &c->origin->count, from[i]) : fpInvalidValue;
    if (!e) {
      c->next = s->captures;
      __atomic_store_n(&s->captures, c, __ATOMIC_RELEASE);
    }
  }
  fp_graph_unlock();
  return e;
}

static void fp_reach(struct fp_node *n) {
  if (n->mark) return;
  n->mark = 1;
  for (size_t i = 0; i < n->count; i++) fp_reach(n->from[i]);
}

// fp_unjoined reports whether a branch has work that the origin does not wait for.
static int fp_unjoined(struct fp_capture *c) {
  for (size_t i = 0; i < c->graph->count; i++) c->graph->nodes[i]->mark = 0;
  for (size_t i = 0; i < c->origin->count; i++) fp_reach(c->origin->set[i]);
  for (struct fp_branch *b = c->branches; b; b = b->next)
    for (size_t i = 0; i < b->count; i++)
      if (!b->set[i]->mark) return 1;
  return 0;
}

static int fp_capture_end(u64 stream, struct fp_graph **made) {
  struct fp_capture *c;
  if (made) *made = NULL;
  if (!fp_capturing()) return made ? 401 : fpInvalidValue;
  fp_graph_lock();
  struct fp_branch *b = fp_branch_of(stream, &c);
  int e = !b ? 401 : !made && !c->to_graph ? fpInvalidValue : b != c->origin ? fpCaptureUnmatched : 0;
  if (!e && c->mode != fpRelaxed && c->thread != (u64)syscall(SYS_gettid)) e = fpCaptureWrongThread;
  if (e == fpCaptureUnmatched) c->invalid = 1;
  if (!e) {
    e = c->invalid ? fpCaptureInvalidated : fp_unjoined(c) ? fpCaptureUnjoined : 0;
    for (struct fp_capture **p = &fp_shared()->captures; *p; p = &(*p)->next)
      if (*p == c) {
        __atomic_store_n(p, c->next, __ATOMIC_RELEASE);
        break;
      }
    if (!e && made) *made = c->graph;
    if (e && !c->to_graph) fp_graph_free(c->graph);
    while ((b = c->branches)) c->branches = b->next, free(b->set), free(b);
    for (struct fp_mark *m; (m = c->marks);) c->marks = m->next, free(m->set), free(m);
    free(c);
  }
  fp_graph_unlock();
  return e;
}

struct fp_capture_state {
  int status; // 0 none, 1 active, 2 invalidated
  u64 id;
  struct fp_graph *graph;
  struct fp_node *const *from;
  size_t count;
};

static int fp_capture_state(u64 stream, struct fp_capture_state *s) {
  struct fp_capture *c;
  memset(s, 0, sizeof *s);
  if (!fp_capturing()) return 0;
  fp_graph_lock();
  struct fp_branch *b = fp_branch_of(stream, &c);
  int e = b ? 0 : fp_implicit(stream, 1);
  if (b) *s = (struct fp_capture_state){c->invalid ? 2 : 1, c->id, c->graph, b->set, b->count};
  fp_graph_unlock();
  return e;
}

#endif
