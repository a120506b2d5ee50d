// cudart_graph.h: graphs and captures of the runtime API: the definitions that graph_calls.h needs, and the calls that
// only this API has. Part of cudart.c.

#define API(name) cuda##name
#define copy_params copy_3d
struct kernel_params;
static int kernel_named(const struct kernel_params *p, struct fp_kernel **k);

static int copy_work(struct fp_work *w, const struct copy_3d *c) {
  if (!c) return fpInvalidValue;
  *w = (struct fp_work){.type = fpCopyNode, .height = c->extent.height, .depth = c->extent.depth, .direction = c->kind};
  return boxes_3d(c, &w->to, &w->from, &w->width);
}

static struct pitched pitched_of(struct fp_box b, u64 width) {
  return (struct pitched){(char *)b.at, b.pitch, width, b.pitch ? b.slice / b.pitch : 0};
}

static int copy_shown(const struct fp_work *w, struct copy_3d *c) {
  if (w->type != fpCopyNode) return fpInvalidValue;
  *c = (struct copy_3d){.from = pitched_of(w->from, w->width), .to = pitched_of(w->to, w->width), .extent = {w->width, w->height, w->depth}, .kind = w->direction};
  return 0;
}

#include "graph_calls.h"

static int kernel_named(const struct kernel_params *p, struct fp_kernel **k) {
  struct entity *e;
  int error = kernel_of(p->function, &e);
  if (!error) *k = &e->kernel;
  return error;
}

EXPORT int cudaGraphConditionalHandleCreate(u64 *handle, struct fp_graph *g, unsigned value, unsigned flags) { return finish(condition_create(handle, g, value, flags)); }
EXPORT int cudaGraphConditionalHandleCreate_v2(u64 *handle, struct fp_graph *g, void *context, unsigned value, unsigned flags) {
  (void)context;
  return finish(condition_create(handle, g, value, flags));
}

EXPORT int cudaGraphInstantiate(struct fp_exec **x, struct fp_graph *g, u64 flags) { return finish(instantiate(x, g, flags)); }

EXPORT int cudaGraphExecUpdate(struct fp_exec *x, struct fp_graph *g, struct update_result *r) { return finish(r ? exec_update(x, g, r) : fpInvalidValue); }

static int linear_work(struct fp_work *w, u64 to, u64 from, size_t n, int kind) {
  *w = (struct fp_work){.type = fpCopyNode, .to = {to, n, n}, .from = {from, n, n}, .width = n, .height = 1, .depth = 1, .direction = kind};
  return to && from ? 0 : fpInvalidValue;
}

static int symbol_work(struct fp_work *w, const void *symbol, u64 other, size_t n, size_t offset, int to, int kind) {
  u64 address, size;
  *w = (struct fp_work){0};
  int e = symbol_of(symbol, &address, &size);
  if (e) return e;
  if (offset > size || n > size - offset) return fpInvalidValue;
  return to ? linear_work(w, address + offset, other, n, kind) : linear_work(w, other, address + offset, n, kind);
}

// A copy node, in the form of cudaMemcpy and in those with symbols: to add, to set, and to set in an executable graph.
#define COPY_NODE(form, call, ...)                                                                \
  EXPORT int cudaGraphAddMemcpyNode##form(NODE, __VA_ARGS__) {                                    \
    struct fp_work w;                                                                             \
    return finish(node_add(call, node, g, from, n, &w));                                          \
  }                                                                                               \
  EXPORT int cudaGraphMemcpyNodeSetParams##form(struct fp_node *node, __VA_ARGS__) {              \
    struct fp_work w;                                                                             \
    return finish(node_set(call, node, &w));                                                      \
  }                                                                                               \
  EXPORT int cudaGraphExecMemcpyNodeSetParams##form(struct fp_exec *x, struct fp_node *node, __VA_ARGS__) { \
    struct fp_work w;                                                                             \
    return finish(node_set(call, exec_node(x, node), &w));                                        \
  }
COPY_NODE(1D, linear_work(&w, (u64)d, (u64)s, bytes, kind), void *d, const void *s, size_t bytes, int kind)
COPY_NODE(ToSymbol, symbol_work(&w, v, (u64)s, bytes, offset, 1, kind), const void *v, const void *s, size_t bytes, size_t offset, int kind)
COPY_NODE(FromSymbol, symbol_work(&w, v, (u64)d, bytes, offset, 0, kind), void *d, const void *v, size_t bytes, size_t offset, int kind)

#if FP_RUNTIME == 13
#define CAPTURE_OWN(suffix, own)                                                                                                        \
  EXPORT int cudaStreamGetCaptureInfo##suffix(void *s, int *status, u64 *id, struct fp_graph **g, struct fp_node *const **from, void **data, size_t *n) { \
    return finish(capture_info(stream_of(s, own), status, id, g, from, data, n));                                                       \
  }                                                                                                                                     \
  EXPORT int cudaStreamUpdateCaptureDependencies##suffix(void *s, struct fp_node **from, const void *data, size_t n, unsigned flags) {  \
    return finish(capture_depend(stream_of(s, own), from, data, n, flags));                                                             \
  }
#else
#define CAPTURE_OWN(suffix, own)                                                                                         \
  EXPORT int cudaStreamGetCaptureInfo##suffix(void *s, int *status, u64 *id) {                                           \
    return finish(capture_info(stream_of(s, own), status, id, NULL, NULL, NULL, NULL));                                  \
  }                                                                                                                      \
  EXPORT int cudaStreamUpdateCaptureDependencies##suffix(void *s, struct fp_node **from, size_t n, unsigned flags) {     \
    return finish(capture_depend(stream_of(s, own), from, NULL, n, flags));                                              \
  }
#endif
#define CAPTURE_BEGIN(suffix, own)                                                                                       \
  CAPTURE_OWN(suffix, own)                                                                                               \
  EXPORT int cudaStreamBeginCapture##suffix(void *s, int mode) { return finish(fp_capture_begin(stream_of(s, own), NULL, NULL, 0, mode)); }
CAPTURE_BEGIN(, 0)
CAPTURE_BEGIN(_ptsz, 1)
