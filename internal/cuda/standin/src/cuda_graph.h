// cuda_graph.h: graphs and captures of the driver API: the definitions that graph_calls.h needs, and the calls that
// only this API has. Part of cuda.c.

#define API(name) cu##name
struct kernel_params;
static int kernel_named(const struct kernel_params *p, struct fp_kernel **k);

struct copy_side {
  size_t x, y, z, level;
  int type;
  char *host;
  u64 device;
  struct fp_array *array;
  void *reserved;
  size_t pitch, height;
};

struct copy_params {
  struct copy_side from, to;
  size_t width, height, depth;
};

static int side_box(const struct copy_side *s, const struct copy_params *c, struct fp_box *box) {
  if (s->type == 3) return fp_array_box(s->array, s->x, s->y, s->z, c->width, c->height, c->depth, box);
  u64 pitch = s->pitch ? s->pitch : c->width, slice = fp_times(pitch, s->height ? s->height : c->height);
  *box = (struct fp_box){(s->type == 1 ? (u64)s->host : s->device) + s->x + s->y * pitch + s->z * slice, pitch, slice};
  return 0;
}

static int copy_work(struct fp_work *w, const struct copy_params *c) {
  if (!c) return fpInvalidValue;
  *w = (struct fp_work){.type = fpCopyNode, .width = c->width, .height = c->height, .depth = c->depth, .direction = fpDefault};
  int e = side_box(&c->to, c, &w->to);
  return e ? e : side_box(&c->from, c, &w->from);
}

static struct copy_side side_shown(struct fp_box b) {
  return (struct copy_side){.type = 4, .device = b.at, .pitch = b.pitch, .height = b.pitch ? b.slice / b.pitch : 0};
}

static int copy_shown(const struct fp_work *w, struct copy_params *c) {
  if (w->type != fpCopyNode) return fpInvalidValue;
  *c = (struct copy_params){side_shown(w->from), side_shown(w->to), w->width, w->height, w->depth};
  return 0;
}

#include "graph_calls.h"

static int kernel_named(const struct kernel_params *p, struct fp_kernel **k) {
  *k = p->function;
  return *k ? 0 : fpInvalidHandle;
}

EXPORT int cuGraphAddKernelNode_v2(NODE, const struct kernel_params *p) {
  struct fp_work w = {0};
  return finish(node_add(kernel_work_any(&w, p), node, g, from, n, &w));
}
EXPORT int cuGraphKernelNodeSetParams_v2(struct fp_node *n, const struct kernel_params *p) {
  struct fp_work w = {0};
  return finish(node_set(kernel_work_any(&w, p), n, &w));
}
EXPORT int cuGraphExecKernelNodeSetParams_v2(struct fp_exec *x, struct fp_node *n, const struct kernel_params *p) {
  struct fp_work w = {0};
  return finish(node_set(kernel_work_any(&w, p), exec_node(x, n), &w));
}
EXPORT int cuGraphKernelNodeGetParams_v2(struct fp_node *n, struct kernel_params *p) {
  if (!n || !p) return finish(fpInvalidValue);
  p->kernel = NULL;
  return finish(kernel_shown(&n->work, p));
}

EXPORT int cuGraphConditionalHandleCreate(u64 *handle, struct fp_graph *g, void *context, unsigned value, unsigned flags) {
  (void)context;
  return finish(condition_create(handle, g, value, flags));
}

static int instantiate_log(struct fp_exec **x, struct fp_graph *g, struct fp_node **error, char *log, size_t n) {
  if (error) *error = NULL;
  if (log && n) *log = 0;
  return instantiate(x, g, 0);
}
EXPORT int cuGraphInstantiate(struct fp_exec **x, struct fp_graph *g, struct fp_node **error, char *log, size_t n) { return finish(instantiate_log(x, g, error, log, n)); }
EXPORT int cuGraphInstantiate_v2(struct fp_exec **x, struct fp_graph *g, struct fp_node **error, char *log, size_t n) { return finish(instantiate_log(x, g, error, log, n)); }

EXPORT int cuGraphExecUpdate(struct fp_exec *x, struct fp_graph *g, struct fp_node **error, int *result) {
  struct update_result r;
  int e = exec_update(x, g, &r);
  if (error) *error = r.error;
  if (result) *result = r.result;
  return finish(e);
}
EXPORT int cuGraphExecUpdate_v2(struct fp_exec *x, struct fp_graph *g, struct update_result *r) { return finish(r ? exec_update(x, g, r) : fpInvalidValue); }

#define CAPTURE_OWN(suffix, own)                                                                                                             \
  EXPORT int cuStreamBeginCapture##suffix(void *s) { return finish(fp_capture_begin(stream_of(s, own), NULL, NULL, 0, fpGlobal)); }          \
  EXPORT int cuStreamBeginCapture_v2##suffix(void *s, int mode) { return finish(fp_capture_begin(stream_of(s, own), NULL, NULL, 0, mode)); } \
  EXPORT int cuStreamGetCaptureInfo##suffix(void *s, int *status, u64 *id) {                                                                 \
    return finish(capture_info(stream_of(s, own), status, id, NULL, NULL, NULL, NULL));                                                      \
  }                                                                                                                                          \
  EXPORT int cuStreamUpdateCaptureDependencies##suffix(void *s, struct fp_node **from, size_t n, unsigned flags) {                           \
    return finish(capture_depend(stream_of(s, own), from, NULL, n, flags));                                                                  \
  }
CAPTURE_OWN(, 0)
CAPTURE_OWN(_ptsz, 1)
