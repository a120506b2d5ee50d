// cudart_array.h: arrays, texture and surface objects of the runtime API. Part of cudart.c.

struct channel {
  int bits[4], format;
};

EXPORT struct channel cudaCreateChannelDesc(int x, int y, int z, int w, int format) { return (struct channel){{x, y, z, w}, format}; }

EXPORT int cudaMallocArray(struct fp_array **a, const struct channel *c, size_t width, size_t height, unsigned flags) {
  return finish(c ? fp_array_make(a, c->bits, c->format, width, height, 0, flags) : fpInvalidValue);
}
EXPORT int cudaMalloc3DArray(struct fp_array **a, const struct channel *c, struct extent x, unsigned flags) {
  return finish(c ? fp_array_make(a, c->bits, c->format, x.width, x.height, x.depth, flags) : fpInvalidValue);
}
EXPORT int cudaFreeArray(const struct fp_array *a) { return finish(fp_array_free(a)); }

EXPORT int cudaMallocMipmappedArray(struct fp_mipmap **m, const struct channel *c, struct extent x, unsigned levels, unsigned flags) {
  return finish(c ? fp_mipmap_make(m, c->bits, c->format, x.width, x.height, x.depth, levels, flags) : fpInvalidValue);
}
EXPORT int cudaGetMipmappedArrayLevel(struct fp_array **a, const struct fp_mipmap *m, unsigned level) { return finish(fp_mipmap_level(a, m, level)); }
EXPORT int cudaFreeMipmappedArray(const struct fp_mipmap *m) { return finish(fp_mipmap_free(m)); }

EXPORT int cudaGetChannelDesc(struct channel *c, const struct fp_array *a) {
  if (!c || !a) return finish(fpInvalidValue);
  memcpy(c->bits, a->bits, sizeof c->bits);
  c->format = a->format;
  return 0;
}
EXPORT int cudaArrayGetInfo(struct channel *c, struct extent *x, unsigned *flags, const struct fp_array *a) {
  if (!a) return finish(fpInvalidHandle);
  if (c) cudaGetChannelDesc(c, a);
  if (x) *x = (struct extent){a->width, a->height, a->depth};
  if (flags) *flags = a->flags;
  return 0;
}
EXPORT int cudaDeviceGetTexture1DLinearMaxWidth(size_t *n, const struct channel *c, int device) {
  int value, e = n && c && !device ? fp_attribute(69, &value) : fpInvalidValue;
  if (!e) *n = (size_t)value;
  return finish(e);
}

// Copies between arrays and other memory, of height rows of width bytes.

static int copy_to_array(struct fp_array *to, size_t x, size_t y, const void *s, size_t pitch, size_t width, size_t height, int kind, int async, u64 stream) {
  struct fp_box box;
  int e = pitch < width ? 12 : fp_array_box(to, x, y, 0, width, height, 1, &box); // cudaErrorInvalidPitchValue
  return e ? e : fp_copy(box, (struct fp_box){(u64)s, pitch, 0}, width, height, 1, kind, async, stream);
}
static int copy_from_array(void *d, size_t pitch, const struct fp_array *from, size_t x, size_t y, size_t width, size_t height, int kind, int async, u64 stream) {
  struct fp_box box;
  int e = pitch < width ? 12 : fp_array_box(from, x, y, 0, width, height, 1, &box);
  return e ? e : fp_copy((struct fp_box){(u64)d, pitch, 0}, box, width, height, 1, kind, async, stream);
}
static int copy_arrays(struct fp_array *to, size_t tx, size_t ty, const struct fp_array *from, size_t x, size_t y, size_t width, size_t height, int kind, u64 stream) {
  struct fp_box d, s;
  int e = fp_array_box(to, tx, ty, 0, width, height, 1, &d);
  if (!e) e = fp_array_box(from, x, y, 0, width, height, 1, &s);
  return e ? e : fp_copy(d, s, width, height, 1, kind, 0, stream);
}

// linear_part returns where n bytes of an array begin, which may continue from row to row.
static int linear_part(const struct fp_array *a, size_t x, size_t y, size_t n, u64 *at) {
  struct fp_box box;
  int e = fp_array_box(a, x, y, 0, 0, 0, 0, &box);
  if (!e && n > a->slice - y * a->pitch - x) e = fpInvalidValue;
  if (!e) *at = box.at;
  return e;
}
static int linear_to_array(struct fp_array *to, size_t x, size_t y, const void *s, size_t n, int kind, int async, u64 stream) {
  u64 at;
  int e = linear_part(to, x, y, n, &at);
  return e ? e : fp_copy_linear(at, (u64)s, n, kind, async, stream);
}
static int linear_from_array(void *d, const struct fp_array *from, size_t x, size_t y, size_t n, int kind, int async, u64 stream) {
  u64 at;
  int e = linear_part(from, x, y, n, &at);
  return e ? e : fp_copy_linear((u64)d, at, n, kind, async, stream);
}

static int linear_between(struct fp_array *to, size_t tx, size_t ty, const struct fp_array *from, size_t x, size_t y, size_t n, int kind, u64 stream) {
  u64 d, s;
  int e = linear_part(to, tx, ty, n, &d);
  if (!e) e = linear_part(from, x, y, n, &s);
  return e ? e : fp_copy_linear(d, s, n, kind, 0, stream);
}

#define ARRAY_COPIES(suffix, own)                                                                                                                  \
  EXPORT int cudaMemcpy2DToArray##suffix(struct fp_array *to, size_t x, size_t y, const void *s, size_t pitch, size_t w, size_t h, int kind) {     \
    return finish(copy_to_array(to, x, y, s, pitch, w, h, kind, 0, stream_of(NULL, own)));                                                         \
  }                                                                                                                                                \
  EXPORT int cudaMemcpy2DFromArray##suffix(void *d, size_t pitch, const struct fp_array *from, size_t x, size_t y, size_t w, size_t h, int kind) { \
    return finish(copy_from_array(d, pitch, from, x, y, w, h, kind, 0, stream_of(NULL, own)));                                                     \
  }                                                                                                                                                \
  EXPORT int cudaMemcpy2DArrayToArray##suffix(struct fp_array *to, size_t tx, size_t ty, const struct fp_array *from, size_t x, size_t y,          \
                                              size_t w, size_t h, int kind) {                                                                      \
    return finish(copy_arrays(to, tx, ty, from, x, y, w, h, kind, stream_of(NULL, own)));                                                          \
  }                                                                                                                                                \
  EXPORT int cudaMemcpyToArray##suffix(struct fp_array *to, size_t x, size_t y, const void *s, size_t n, int kind) {                               \
    return finish(linear_to_array(to, x, y, s, n, kind, 0, stream_of(NULL, own)));                                                                 \
  }                                                                                                                                                \
  EXPORT int cudaMemcpyArrayToArray##suffix(struct fp_array *to, size_t tx, size_t ty, const struct fp_array *from, size_t x, size_t y, size_t n,    \
                                            int kind) {                                                                                            \
    return finish(linear_between(to, tx, ty, from, x, y, n, kind, stream_of(NULL, own)));                                                          \
  }                                                                                                                                                \
  EXPORT int cudaMemcpyFromArray##suffix(void *d, const struct fp_array *from, size_t x, size_t y, size_t n, int kind) {                           \
    return finish(linear_from_array(d, from, x, y, n, kind, 0, stream_of(NULL, own)));                                                             \
  }
ARRAY_COPIES(, 0)
ARRAY_COPIES(_ptds, 1)

#define ARRAY_COPIES_ASYNC(suffix, own)                                                                                                                      \
  EXPORT int cudaMemcpy2DToArrayAsync##suffix(struct fp_array *to, size_t x, size_t y, const void *s, size_t pitch, size_t w, size_t h, int kind, void *st) { \
    return finish(copy_to_array(to, x, y, s, pitch, w, h, kind, 1, stream_of(st, own)));                                                                     \
  }                                                                                                                                                          \
  EXPORT int cudaMemcpy2DFromArrayAsync##suffix(void *d, size_t pitch, const struct fp_array *from, size_t x, size_t y, size_t w, size_t h, int kind,        \
                                                void *st) {                                                                                                  \
    return finish(copy_from_array(d, pitch, from, x, y, w, h, kind, 1, stream_of(st, own)));                                                                 \
  }                                                                                                                                                          \
  EXPORT int cudaMemcpyToArrayAsync##suffix(struct fp_array *to, size_t x, size_t y, const void *s, size_t n, int kind, void *st) {                          \
    return finish(linear_to_array(to, x, y, s, n, kind, 1, stream_of(st, own)));                                                                             \
  }                                                                                                                                                          \
  EXPORT int cudaMemcpyFromArrayAsync##suffix(void *d, const struct fp_array *from, size_t x, size_t y, size_t n, int kind, void *st) {                      \
    return finish(linear_from_array(d, from, x, y, n, kind, 1, stream_of(st, own)));                                                                         \
  }
ARRAY_COPIES_ASYNC(, 0)
ARRAY_COPIES_ASYNC(_ptsz, 1)

// Objects.

struct resource {
  int type;
  union {
    struct fp_array *array;
    struct fp_mipmap *mipmap;
    struct {
      void *at;
      struct channel channel;
      size_t size; // linear: bytes; pitched: elements of a row
      size_t height, pitch;
    } memory;
    int reserved[32];
  } of;
  unsigned flags;
};

struct texture_modes {
  int address[3], filter, as_float, srgb;
  float border[4];
  int normalized;
  unsigned anisotropy;
  int blend; // between levels
  float bias, least, most;
  int no_trilinear_optimization, seamless_cubes;
};

static int texture_object(u64 *object, const struct resource *r, const struct texture_modes *m, const struct fp_view *view) {
  enum { array, mipmapped, linear, pitched };
  struct fp_texture t;
  if (!r || !m || ((r->type == array || r->type == mipmapped) && !r->of.array)) return fpInvalidValue;
  if ((r->type == array && r->of.array->mark != fpIsArray) || (r->type == mipmapped && r->of.mipmap->mark != fpIsMipmap)) return fpInvalidHandle;
  switch (r->type) {
    case array: t = fp_texture_of_array(r->of.array); break;
    case mipmapped:
      t = fp_texture_of_array(r->of.mipmap->level[0]);
      fp_texture_mipmap(&t, r->of.mipmap, m->blend, m->bias, m->least, m->most);
      break;
    case linear: t = fp_texture_of_memory((u64)r->of.memory.at, r->of.memory.channel.bits, r->of.memory.channel.format, r->of.memory.size, 1, 0); break;
    case pitched:
      if (!r->of.memory.pitch) return fpInvalidValue;
      t = fp_texture_of_memory((u64)r->of.memory.at, r->of.memory.channel.bits, r->of.memory.channel.format, r->of.memory.size, r->of.memory.height,
                               r->of.memory.pitch);
      break;
    default: return fpInvalidValue;
  }
  int e = view ? fp_view_of(&t, r->type == array ? r->of.array : NULL, r->type == mipmapped ? r->of.mipmap : NULL, view) : 0;
  if (e) return e;
  for (int i = 0; i < 3; i++) t.address[i] = (u64)m->address[i];
  t.filter = (u64)m->filter, t.normalized = !!m->normalized, t.as_float = !!m->as_float, t.srgb = !!m->srgb;
  fp_texture_border(&t, m->border);
  e = fp_texture_create(&t, 0, object);
  return e ? e : fp_describe(*object, r, sizeof *r, m, sizeof *m, view);
}

static int surface_object(u64 *object, const struct resource *r) {
  int e = r && r->type == 0 ? fp_surface_create(r->of.array, object) : fpInvalidValue;
  return e ? e : fp_describe(*object, r, sizeof *r, NULL, 0, NULL);
}

EXPORT int cudaCreateTextureObject(u64 *object, const struct resource *r, const struct texture_modes *m, const struct fp_view *view) {
  return finish(texture_object(object, r, m, view));
}
EXPORT int cudaDestroyTextureObject(u64 object) { return finish(fp_texture_destroy(object)); }

EXPORT int cudaCreateSurfaceObject(u64 *object, const struct resource *r) {
  return finish(surface_object(object, r));
}
EXPORT int cudaGetTextureObjectResourceDesc(struct resource *r, u64 object) { return finish(fp_described(object, fpObjectResource, r, sizeof *r, 1)); }
EXPORT int cudaGetTextureObjectTextureDesc(struct texture_modes *m, u64 object) { return finish(fp_described(object, fpObjectModes, m, sizeof *m, 1)); }
EXPORT int cudaGetTextureObjectResourceViewDesc(struct fp_view *v, u64 object) { return finish(fp_view_back(v, object)); }
EXPORT int cudaGetSurfaceObjectResourceDesc(struct resource *r, u64 object) { return finish(fp_described(object, fpObjectResource, r, sizeof *r, 1)); }
EXPORT int cudaDestroySurfaceObject(u64 object) { return finish(fp_texture_destroy(object)); }
