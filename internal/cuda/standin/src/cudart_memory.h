// cudart_memory.h: memory of the runtime API: allocation, copies, fills, symbols, pointers. Part of cudart.c.

static int allocate(void **p, u64 size, u64 kind, u64 flags) {
  u64 address = 0;
  if (!p) return fpInvalidValue;
  int e = fp_request(FP_Malloc, (const u64[]){size, kind | flags << 8}, 2, &address, 1);
  if (!e) *p = (void *)address;
  return e;
}

EXPORT int cudaHostAlloc(void **p, size_t n, unsigned flags) {
  return finish(flags > 7 ? fpInvalidValue : allocate(p, n, FP_KIND_PINNED, flags));
}

EXPORT int cudaMallocManaged(void **p, size_t n, unsigned flags) {
  return finish(flags != 1 && flags != 2 ? fpInvalidValue : allocate(p, n, FP_KIND_MANAGED, flags));
}

enum { pitch_alignment = 512 };

EXPORT int cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height) {
  if (!pitch || width >= 1ul << 40 || height >= 1ul << 40) return finish(fpInvalidValue);
  size_t row = (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
  if (row && height > (1ul << 47) / row) return finish(fpOutOfMemory);
  int e = allocate(p, row * height, FP_KIND_DEVICE, 0);
  if (!e) *pitch = row;
  return finish(e);
}

struct pitched {
  char *at;
  size_t pitch, width, height;
};

struct extent {
  size_t width, height, depth;
};

EXPORT int cudaMalloc3D(struct pitched *p, struct extent x) {
  if (!p || (x.depth && x.height > (1ul << 40) / x.depth)) return finish(fpInvalidValue);
  void *at = NULL;
  int e = cudaMallocPitch(&at, &p->pitch, x.width, x.height * x.depth);
  if (!e) p->at = at, p->width = x.width, p->height = x.height;
  return e;
}

EXPORT int cudaHostRegister(void *p, size_t n, unsigned flags) {
  (void)flags;
  return finish(fp_register(p, n));
}

EXPORT int cudaHostUnregister(void *p) { return finish(fp_unregister((u64)p)); }

// The checker's data about an address.
struct place {
  u64 type, base, size, flags, device;
};

static int place_of(const void *p, struct place *x) {
  u64 address = (u64)p;
  return fp_request(FP_Pointer, &address, 1, &x->type, 5);
}

EXPORT int cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  struct place x;
  int e = device && host && !flags ? place_of(host, &x) : fpInvalidValue;
  if (!e && x.type != 1 && x.type != 3) e = fpInvalidValue;
  if (!e) *device = host;
  return finish(e);
}

EXPORT int cudaHostGetFlags(unsigned *flags, void *host) {
  struct place x;
  int e = flags && host ? place_of(host, &x) : fpInvalidValue;
  if (!e && x.type != 1) e = fpInvalidValue;
  if (!e) *flags = (unsigned)x.flags;
  return finish(e);
}

struct pointer_attributes {
  int type, device;
  void *on_device, *on_host;
};

EXPORT int cudaPointerGetAttributes(struct pointer_attributes *a, const void *p) {
  struct place x;
  int e = a ? place_of(p, &x) : fpInvalidValue;
  if (e) return finish(e);
  void *address = (void *)p;
  *a = (struct pointer_attributes){.type = (int)x.type, .device = x.type ? (int)x.device : -2};
  if (x.type != 0) a->on_device = address;
  if (x.type == 1 || x.type == 3) a->on_host = address;
  if (x.type == 0) a->on_host = address;
  return 0;
}

// Copies. Every call has a variant whose default stream is the thread's own: _ptds for synchronous calls, _ptsz for the
// others.

#define COPY(name, kind_name, async)                                                                    \
  EXPORT int name(void *d, const void *s, size_t n, int kind) {                                         \
    return finish(fp_copy_linear((u64)d, (u64)s, n, kind, async, stream_of(NULL, kind_name)));          \
  }
COPY(cudaMemcpy, 0, 0)
COPY(cudaMemcpy_ptds, 1, 0)

#define COPY_ASYNC(name, per_thread)                                                                    \
  EXPORT int name(void *d, const void *s, size_t n, int kind, void *stream) {                           \
    return finish(fp_copy_linear((u64)d, (u64)s, n, kind, 1, stream_of(stream, per_thread)));           \
  }
COPY_ASYNC(cudaMemcpyAsync, 0)
COPY_ASYNC(cudaMemcpyAsync_ptsz, 1)

static int check_device(int device);

static int check_pair(int a, int b) {
  int e = check_device(a);
  return e ? e : check_device(b);
}

EXPORT int cudaMemcpyPeer(void *d, int to, const void *s, int from, size_t n) {
  int e = check_pair(to, from);
  return finish(e ? e : fp_copy_linear((u64)d, (u64)s, n, fpDeviceToDevice, 0, FP_STREAM_LEGACY));
}

EXPORT int cudaMemcpyPeerAsync(void *d, int to, const void *s, int from, size_t n, void *stream) {
  int e = check_pair(to, from);
  return finish(e ? e : fp_copy_linear((u64)d, (u64)s, n, fpDeviceToDevice, 1, stream_of(stream, 0)));
}

static int copy_2d(void *d, size_t dpitch, const void *s, size_t spitch, size_t width, size_t height, int kind, int async, u64 stream) {
  if (width > dpitch || width > spitch) return 12; // cudaErrorInvalidPitchValue
  return fp_copy((struct fp_box){(u64)d, dpitch, 0}, (struct fp_box){(u64)s, spitch, 0}, width, height, 1, kind, async, stream);
}

#define COPY_2D(name, per_thread)                                                                                          \
  EXPORT int name(void *d, size_t dpitch, const void *s, size_t spitch, size_t width, size_t height, int kind) {           \
    return finish(copy_2d(d, dpitch, s, spitch, width, height, kind, 0, stream_of(NULL, per_thread)));                     \
  }
COPY_2D(cudaMemcpy2D, 0)
COPY_2D(cudaMemcpy2D_ptds, 1)

#define COPY_2D_ASYNC(name, per_thread)                                                                                    \
  EXPORT int name(void *d, size_t dpitch, const void *s, size_t spitch, size_t width, size_t height, int kind, void *st) { \
    return finish(copy_2d(d, dpitch, s, spitch, width, height, kind, 1, stream_of(st, per_thread)));                       \
  }
COPY_2D_ASYNC(cudaMemcpy2DAsync, 0)
COPY_2D_ASYNC(cudaMemcpy2DAsync_ptsz, 1)

struct copy_3d {
  struct fp_array *from_array;
  size_t from_at[3];
  struct pitched from;
  struct fp_array *to_array;
  size_t to_at[3];
  struct pitched to;
  struct extent extent;
  int kind;
};

static struct fp_box box_3d(const struct pitched *p, const size_t at[3]) {
  u64 slice = fp_times(p->pitch, p->height);
  return (struct fp_box){(u64)p->at + at[0] + at[1] * p->pitch + at[2] * slice, p->pitch, slice};
}

// boxes_3d returns both ends of a copy and its width in bytes. If an array takes part, extents are in elements of the
// array, like offsets into it.
static int boxes_3d(const struct copy_3d *c, struct fp_box *to, struct fp_box *from, u64 *width) {
  const struct fp_array *a = c->to_array, *b = c->from_array;
  if (a && b && a->element != b->element) return fpInvalidValue;
  const struct extent *x = &c->extent;
  *width = fp_times(x->width, a ? a->element : b ? b->element : 1);
  *to = box_3d(&c->to, c->to_at), *from = box_3d(&c->from, c->from_at);
  int e = a ? fp_array_box(a, fp_times(c->to_at[0], a->element), c->to_at[1], c->to_at[2], *width, x->height, x->depth, to) : 0;
  if (!e && b) e = fp_array_box(b, fp_times(c->from_at[0], b->element), c->from_at[1], c->from_at[2], *width, x->height, x->depth, from);
  return e;
}

static int copy_3d(const struct copy_3d *c, int async, u64 stream) {
  struct fp_box to, from;
  u64 width;
  int e = c ? boxes_3d(c, &to, &from, &width) : fpInvalidValue;
  return e ? e : fp_copy(to, from, width, c->extent.height, c->extent.depth, c->kind, async, stream);
}

EXPORT int cudaMemcpy3D(const struct copy_3d *c) { return finish(copy_3d(c, 0, FP_STREAM_LEGACY)); }
EXPORT int cudaMemcpy3D_ptds(const struct copy_3d *c) { return finish(copy_3d(c, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cudaMemcpy3DAsync(const struct copy_3d *c, void *s) { return finish(copy_3d(c, 1, stream_of(s, 0))); }
EXPORT int cudaMemcpy3DAsync_ptsz(const struct copy_3d *c, void *s) { return finish(copy_3d(c, 1, stream_of(s, 1))); }

struct copy_peer {
  struct fp_array *from_array;
  size_t from_at[3];
  struct pitched from;
  int from_device;
  struct fp_array *to_array;
  size_t to_at[3];
  struct pitched to;
  int to_device;
  struct extent extent;
};

static int copy_3d_peer(const struct copy_peer *c, int async, u64 stream) {
  int e = c ? check_pair(c->to_device, c->from_device) : fpInvalidValue;
  if (e) return e;
  struct copy_3d all = {c->from_array, {c->from_at[0], c->from_at[1], c->from_at[2]}, c->from,
                        c->to_array, {c->to_at[0], c->to_at[1], c->to_at[2]}, c->to, c->extent, fpDeviceToDevice};
  return copy_3d(&all, async, stream);
}
EXPORT int cudaMemcpy3DPeer(const struct copy_peer *c) { return finish(copy_3d_peer(c, 0, FP_STREAM_LEGACY)); }
EXPORT int cudaMemcpy3DPeer_ptds(const struct copy_peer *c) { return finish(copy_3d_peer(c, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cudaMemcpy3DPeerAsync(const struct copy_peer *c, void *s) { return finish(copy_3d_peer(c, 1, stream_of(s, 0))); }
EXPORT int cudaMemcpy3DPeerAsync_ptsz(const struct copy_peer *c, void *s) { return finish(copy_3d_peer(c, 1, stream_of(s, 1))); }

// Fills.

static int fill(void *d, size_t pitch, size_t slice, int value, size_t width, size_t height, size_t rows, int async, u64 stream) {
  return fp_fill((struct fp_box){(u64)d, pitch, slice}, (u32)value & 0xff, 1, width, height, rows, async, stream);
}

EXPORT int cudaMemset(void *d, int v, size_t n) { return finish(fill(d, n, n, v, n, 1, 1, 0, FP_STREAM_LEGACY)); }
EXPORT int cudaMemset_ptds(void *d, int v, size_t n) { return finish(fill(d, n, n, v, n, 1, 1, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cudaMemsetAsync(void *d, int v, size_t n, void *s) { return finish(fill(d, n, n, v, n, 1, 1, 1, stream_of(s, 0))); }
EXPORT int cudaMemsetAsync_ptsz(void *d, int v, size_t n, void *s) { return finish(fill(d, n, n, v, n, 1, 1, 1, stream_of(s, 1))); }

EXPORT int cudaMemset2D(void *d, size_t pitch, int v, size_t w, size_t h) { return finish(fill(d, pitch, 0, v, w, h, 1, 0, FP_STREAM_LEGACY)); }
EXPORT int cudaMemset2D_ptds(void *d, size_t pitch, int v, size_t w, size_t h) { return finish(fill(d, pitch, 0, v, w, h, 1, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cudaMemset2DAsync(void *d, size_t pitch, int v, size_t w, size_t h, void *s) { return finish(fill(d, pitch, 0, v, w, h, 1, 1, stream_of(s, 0))); }
EXPORT int cudaMemset2DAsync_ptsz(void *d, size_t pitch, int v, size_t w, size_t h, void *s) { return finish(fill(d, pitch, 0, v, w, h, 1, 1, stream_of(s, 1))); }

static int fill_3d(struct pitched p, int v, struct extent x, int async, u64 stream) {
  return fill(p.at, p.pitch, fp_times(p.pitch, p.height), v, x.width, x.height, x.depth, async, stream);
}

EXPORT int cudaMemset3D(struct pitched p, int v, struct extent x) { return finish(fill_3d(p, v, x, 0, FP_STREAM_LEGACY)); }
EXPORT int cudaMemset3D_ptds(struct pitched p, int v, struct extent x) { return finish(fill_3d(p, v, x, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cudaMemset3DAsync(struct pitched p, int v, struct extent x, void *s) { return finish(fill_3d(p, v, x, 1, stream_of(s, 0))); }
EXPORT int cudaMemset3DAsync_ptsz(struct pitched p, int v, struct extent x, void *s) { return finish(fill_3d(p, v, x, 1, stream_of(s, 1))); }

// Symbols.

// symbol_of finds the address and size of a variable. A managed variable has the same address on the host.
static int symbol_of(const void *host, u64 *address, u64 *size) {
  struct entity *v = find_entity(host, 0);
  if (!v) {
    struct place x;
    int e = place_of(host, &x);
    if (e) return e;
    if (x.type != 3) return fpInvalidSymbol;
    *address = x.base, *size = x.size;
    return 0;
  }
  int e = load(v->binary);
  if (e) return e;
  int devices; // number of devices; the variable has another address on each
  if (!v->known || fp_devices(NULL, &devices) || devices > 1) {
    u64 r[2] = {0, 0};
    e = fp_symbol(v->binary->handle, v->name, r);
    if (e) return e;
    v->address = r[0], v->size = r[1], v->known = 1;
  }
  *address = v->address, *size = v->size;
  return 0;
}

EXPORT int cudaGetSymbolAddress(void **p, const void *symbol) {
  u64 address, size;
  int e = p ? symbol_of(symbol, &address, &size) : fpInvalidValue;
  if (!e) *p = (void *)address;
  return finish(e);
}

EXPORT int cudaGetSymbolSize(size_t *n, const void *symbol) {
  u64 address, size;
  int e = n ? symbol_of(symbol, &address, &size) : fpInvalidValue;
  if (!e) *n = size;
  return finish(e);
}

static int copy_symbol(const char *name, const void *symbol, u64 other, size_t n, size_t offset, int to, int kind, int async, u64 stream) {
  u64 address, size;
  int e = symbol_of(symbol, &address, &size);
  if (e) return finish_call(e, name, NULL);
  if (offset > size || n > size - offset) {
    char text[160];
    snprintf(text, sizeof text, "%zu bytes at byte %zu of a variable of %llu bytes", n, offset, (unsigned long long)size);
    return finish_call(fpInvalidValue, name, text);
  }
  address += offset;
  e = to ? fp_copy_linear(address, other, n, kind, async, stream) : fp_copy_linear(other, address, n, kind, async, stream);
  return finish_call(e, name, NULL);
}

EXPORT int cudaMemcpyToSymbol(const void *v, const void *s, size_t n, size_t offset, int kind) {
  return copy_symbol(__func__, v, (u64)s, n, offset, 1, kind, 0, FP_STREAM_LEGACY);
}
EXPORT int cudaMemcpyToSymbol_ptds(const void *v, const void *s, size_t n, size_t offset, int kind) {
  return copy_symbol(__func__, v, (u64)s, n, offset, 1, kind, 0, FP_STREAM_PER_THREAD);
}
EXPORT int cudaMemcpyToSymbolAsync(const void *v, const void *s, size_t n, size_t offset, int kind, void *stream) {
  return copy_symbol(__func__, v, (u64)s, n, offset, 1, kind, 1, stream_of(stream, 0));
}
EXPORT int cudaMemcpyToSymbolAsync_ptsz(const void *v, const void *s, size_t n, size_t offset, int kind, void *stream) {
  return copy_symbol(__func__, v, (u64)s, n, offset, 1, kind, 1, stream_of(stream, 1));
}
EXPORT int cudaMemcpyFromSymbol(void *d, const void *v, size_t n, size_t offset, int kind) {
  return copy_symbol(__func__, v, (u64)d, n, offset, 0, kind, 0, FP_STREAM_LEGACY);
}
EXPORT int cudaMemcpyFromSymbol_ptds(void *d, const void *v, size_t n, size_t offset, int kind) {
  return copy_symbol(__func__, v, (u64)d, n, offset, 0, kind, 0, FP_STREAM_PER_THREAD);
}
EXPORT int cudaMemcpyFromSymbolAsync(void *d, const void *v, size_t n, size_t offset, int kind, void *stream) {
  return copy_symbol(__func__, v, (u64)d, n, offset, 0, kind, 1, stream_of(stream, 0));
}
EXPORT int cudaMemcpyFromSymbolAsync_ptsz(void *d, const void *v, size_t n, size_t offset, int kind, void *stream) {
  return copy_symbol(__func__, v, (u64)d, n, offset, 0, kind, 1, stream_of(stream, 1));
}

EXPORT int cudaDeviceGetGraphMemAttribute(int device, int a, u64 *value) { return finish(fp_graph_memory(device, a, value, 0)); }
EXPORT int cudaDeviceSetGraphMemAttribute(int device, int a, u64 *value) { return finish(fp_graph_memory(device, a, value, 1)); }
