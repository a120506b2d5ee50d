// cuda_array.h: arrays, texture and surface objects of the driver API, and its three-dimensional copies. Part of cuda.c.

struct array_description {
  size_t width, height;
  int format;
  unsigned channels;
};
struct array_description_3d {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

// channels_of converts a CUarray_format and a number of channels to bits and a cudaChannelFormatKind.
static int channels_of(int format, unsigned channels, int bits[4], int *kind) {
  int width;
  switch (format) {
    case 1: case 2: case 3: *kind = fpChannelUnsigned, width = 4 << format; break;
    case 8: case 9: case 10: *kind = fpChannelSigned, width = 8 << (format - 8); break;
    case 0x10: *kind = fpChannelFloat, width = 16; break;
    case 0x20: *kind = fpChannelFloat, width = 32; break;
    default: return fp_unsupported("an array of a planar, normalized or compressed channel format");
  }
  if (channels != 1 && channels != 2 && channels != 4) return fpInvalidValue;
  for (unsigned i = 0; i < 4; i++) bits[i] = i < channels ? width : 0;
  return 0;
}

static int array_create(struct fp_array **a, const struct array_description_3d *d) {
  int bits[4], kind, e = d ? channels_of(d->format, d->channels, bits, &kind) : fpInvalidValue;
  return e ? e : fp_array_make(a, bits, kind, d->width, d->height, d->depth, d->flags);
}
EXPORT int cuArrayCreate_v2(struct fp_array **a, const struct array_description *d) {
  if (!d) return finish(fpInvalidValue);
  return finish(array_create(a, &(struct array_description_3d){d->width, d->height, 0, d->format, d->channels, 0}));
}
EXPORT int cuArray3DCreate_v2(struct fp_array **a, const struct array_description_3d *d) { return finish(array_create(a, d)); }
EXPORT int cuArrayDestroy(const struct fp_array *a) { return finish(a ? fp_array_free(a) : fpInvalidHandle); }
EXPORT int cuArray3DGetDescriptor_v2(struct array_description_3d *d, const struct fp_array *a) {
  if (!d || !a) return finish(fpInvalidValue);
  unsigned channels = a->bits[2] ? 4 : a->bits[1] ? 2 : 1;
  int size = a->bits[0] == 8 ? 0 : a->bits[0] == 16 ? 1 : 2;
  int format = a->format == fpChannelUnsigned ? 1 + size : a->format == fpChannelSigned ? 8 + size : 0x10 * size;
  *d = (struct array_description_3d){a->width, a->height, a->depth, format, channels, a->flags};
  return 0;
}
EXPORT int cuArrayGetDescriptor_v2(struct array_description *d, const struct fp_array *a) {
  struct array_description_3d all;
  if (!d || !a) return finish(fpInvalidValue);
  cuArray3DGetDescriptor_v2(&all, a);
  *d = (struct array_description){all.width, all.height, all.format, all.channels};
  return 0;
}

EXPORT int cuMipmappedArrayCreate(struct fp_mipmap **m, const struct array_description_3d *d, unsigned levels) {
  int bits[4], kind, e = d ? channels_of(d->format, d->channels, bits, &kind) : fpInvalidValue;
  return finish(e ? e : fp_mipmap_make(m, bits, kind, d->width, d->height, d->depth, levels, d->flags));
}
EXPORT int cuMipmappedArrayGetLevel(struct fp_array **a, const struct fp_mipmap *m, unsigned level) { return finish(fp_mipmap_level(a, m, level)); }
EXPORT int cuMipmappedArrayDestroy(const struct fp_mipmap *m) { return finish(m ? fp_mipmap_free(m) : fpInvalidHandle); }

// Copies.

static int copy_3d(const struct copy_params *c, int async, u64 stream) {
  struct fp_box to, from;
  int e = c ? side_box(&c->to, c, &to) : fpInvalidValue;
  if (!e) e = side_box(&c->from, c, &from);
  return e ? e : fp_copy(to, from, c->width, c->height, c->depth, fpDefault, async, stream);
}
EXPORT int cuMemcpy3D_v2(const struct copy_params *c) { return finish(copy_3d(c, 0, FP_STREAM_LEGACY)); }
EXPORT int cuMemcpy3D_v2_ptds(const struct copy_params *c) { return finish(copy_3d(c, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cuMemcpy3DAsync_v2(const struct copy_params *c, void *s) { return finish(copy_3d(c, 1, stream_of(s, 0))); }
EXPORT int cuMemcpy3DAsync_v2_ptsz(const struct copy_params *c, void *s) { return finish(copy_3d(c, 1, stream_of(s, 1))); }

// array_line copies n bytes between memory and an array of one dimension, or within a row.
static int array_line(struct fp_array *a, size_t x, u64 other, size_t n, int to, int kind, int async, u64 stream) {
  struct fp_box box;
  int e = fp_array_box(a, x, 0, 0, n, 1, 1, &box);
  if (e) return e;
  return to ? fp_copy_linear(box.at, other, n, kind, async, stream) : fp_copy_linear(other, box.at, n, kind, async, stream);
}
#define LINES(suffix, stream)                                                                                                         \
  EXPORT int cuMemcpyHtoA_v2##suffix(struct fp_array *a, size_t x, const void *s, size_t n) {                                         \
    return finish(array_line(a, x, (u64)s, n, 1, fpHostToDevice, 0, stream));                                                         \
  }                                                                                                                                   \
  EXPORT int cuMemcpyAtoH_v2##suffix(void *d, struct fp_array *a, size_t x, size_t n) {                                               \
    return finish(array_line(a, x, (u64)d, n, 0, fpDeviceToHost, 0, stream));                                                         \
  }                                                                                                                                   \
  EXPORT int cuMemcpyDtoA_v2##suffix(struct fp_array *a, size_t x, u64 s, size_t n) {                                                 \
    return finish(array_line(a, x, s, n, 1, fpDeviceToDevice, 0, stream));                                                            \
  }                                                                                                                                   \
  EXPORT int cuMemcpyAtoD_v2##suffix(u64 d, struct fp_array *a, size_t x, size_t n) {                                                 \
    return finish(array_line(a, x, d, n, 0, fpDeviceToDevice, 0, stream));                                                            \
  }                                                                                                                                   \
  EXPORT int cuMemcpyAtoA_v2##suffix(struct fp_array *to, size_t x, struct fp_array *from, size_t y, size_t n) {                      \
    struct fp_box box;                                                                                                                \
    int e = fp_array_box(from, y, 0, 0, n, 1, 1, &box);                                                                               \
    return finish(e ? e : array_line(to, x, box.at, n, 1, fpDeviceToDevice, 0, stream));                                              \
  }
LINES(, FP_STREAM_LEGACY)
LINES(_ptds, FP_STREAM_PER_THREAD)

#define LINES_ASYNC(suffix, own)                                                                                                      \
  EXPORT int cuMemcpyHtoAAsync_v2##suffix(struct fp_array *a, size_t x, const void *s, size_t n, void *st) {                          \
    return finish(array_line(a, x, (u64)s, n, 1, fpHostToDevice, 1, stream_of(st, own)));                                             \
  }                                                                                                                                   \
  EXPORT int cuMemcpyAtoHAsync_v2##suffix(void *d, struct fp_array *a, size_t x, size_t n, void *st) {                                \
    return finish(array_line(a, x, (u64)d, n, 0, fpDeviceToHost, 1, stream_of(st, own)));                                             \
  }
LINES_ASYNC(, 0)
LINES_ASYNC(_ptsz, 1)

// Objects.

struct resource {
  int type;
  union {
    struct fp_array *array;
    struct fp_mipmap *mipmap;
    struct {
      u64 at;
      int format;
      unsigned channels;
      size_t size; // linear: bytes; pitched: elements of a row
      size_t height, pitch;
    } memory;
    int reserved[32];
  } of;
  unsigned flags;
};

struct texture_modes {
  int address[3], filter;
  unsigned flags, anisotropy;
  int mipmap_filter;
  float mipmap[3], border[4];
  int reserved[12];
};

static int texture_object(u64 *object, const struct resource *r, const struct texture_modes *m, const struct fp_view *view) {
  enum { array, mipmapped, linear, pitched };
  enum { as_integer = 1, normalized = 2, srgb = 0x10 };
  struct fp_texture t;
  int bits[4], kind, e;
  if (!r || !m || ((r->type == array || r->type == mipmapped) && !r->of.array)) return fpInvalidValue;
  if ((r->type == array && r->of.array->mark != fpIsArray) || (r->type == mipmapped && r->of.mipmap->mark != fpIsMipmap)) return fpInvalidHandle;
  switch (r->type) {
    case array: t = fp_texture_of_array(r->of.array); break;
    case mipmapped:
      t = fp_texture_of_array(r->of.mipmap->level[0]);
      fp_texture_mipmap(&t, r->of.mipmap, m->mipmap_filter, m->mipmap[0], m->mipmap[1], m->mipmap[2]);
      break;
    case linear:
    case pitched:
      e = channels_of(r->of.memory.format, r->of.memory.channels, bits, &kind);
      if (e) return e;
      if (r->type == pitched && !r->of.memory.pitch) return fpInvalidValue;
      t = fp_texture_of_memory(r->of.memory.at, bits, kind, r->of.memory.size, r->type == pitched ? r->of.memory.height : 1,
                               r->type == pitched ? r->of.memory.pitch : 0);
      break;
    default: return fpInvalidValue;
  }
  e = view ? fp_view_of(&t, r->type == array ? r->of.array : NULL, r->type == mipmapped ? r->of.mipmap : NULL, view) : 0;
  if (e) return e;
  for (int i = 0; i < 3; i++) t.address[i] = (u64)m->address[i];
  t.filter = (u64)m->filter, t.normalized = !!(m->flags & normalized), t.srgb = !!(m->flags & srgb);
  t.as_float = !(m->flags & as_integer) && t.bits[0] < 32;
  fp_texture_border(&t, m->border);
  e = fp_texture_create(&t, 0, object);
  return e ? e : fp_describe(*object, r, sizeof *r, m, sizeof *m, view);
}

static int surface_object(u64 *object, const struct resource *r) {
  int e = r && r->type == 0 ? fp_surface_create(r->of.array, object) : fpInvalidValue;
  return e ? e : fp_describe(*object, r, sizeof *r, NULL, 0, NULL);
}

EXPORT int cuTexObjectCreate(u64 *object, const struct resource *r, const struct texture_modes *m, const struct fp_view *view) {
  return finish(texture_object(object, r, m, view));
}
EXPORT int cuTexObjectDestroy(u64 object) { return finish(fp_texture_destroy(object)); }
EXPORT int cuSurfObjectCreate(u64 *object, const struct resource *r) {
  return finish(surface_object(object, r));
}
EXPORT int cuTexObjectGetResourceDesc(struct resource *r, u64 object) { return finish(fp_described(object, fpObjectResource, r, sizeof *r, 1)); }
EXPORT int cuTexObjectGetTextureDesc(struct texture_modes *m, u64 object) { return finish(fp_described(object, fpObjectModes, m, sizeof *m, 1)); }
EXPORT int cuTexObjectGetResourceViewDesc(struct fp_view *v, u64 object) { return finish(fp_view_back(v, object)); }
EXPORT int cuSurfObjectGetResourceDesc(struct resource *r, u64 object) { return finish(fp_described(object, fpObjectResource, r, sizeof *r, 1)); }
EXPORT int cuSurfObjectDestroy(u64 object) { return finish(fp_texture_destroy(object)); }
