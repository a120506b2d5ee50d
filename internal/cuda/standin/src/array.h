// array.h: CUDA arrays, texture objects and surface objects, for both APIs. Part of bottom.h.

// An array is device memory with elements in rows without gaps. The handle stays valid after the array is freed, so
// that the checker reports later uses.
struct fp_array {
  u64 mark; // fpIsArray
  u64 at;
  u64 width, height, depth; // in elements, as the program gave them: 0 for a dimension that the array lacks
  u64 pitch, slice;         // in bytes
  u32 element;              // bytes
  int bits[4], format;      // see cudaChannelFormatDesc
  unsigned flags;           // fpArray...
  int part;                 // it is a level of a mipmapped array, which is freed as a whole
};

enum { fpArrayLayered = 1, fpArraySurface = 2, fpArrayCube = 4, fpArrayGather = 8, fpArrayColor = 0x20 };
enum { fpIsArray = 0x79617261, fpIsMipmap = 0x70696d }; // so that a handle of the other kind is refused
enum { fpChannelSigned, fpChannelUnsigned, fpChannelFloat };

static u64 fp_least_one(u64 n) { return n ? n : 1; }

// fp_array_new makes an array without memory.
static int fp_array_new(struct fp_array **out, const int bits[4], int format, u64 width, u64 height, u64 depth, unsigned flags) {
  const unsigned known = fpArrayLayered | fpArraySurface | fpArrayCube | fpArrayGather | fpArrayColor;
  const u64 most = 1 << 20;
  if (!out || !width || width > most || height > most || depth > most) return fpInvalidValue;
  if (flags & ~known) return fp_unsupported("a sparse array or one with deferred mapping");
  if (format < 0 || format > fpChannelFloat) return fp_unsupported("an array of a planar, normalized or compressed channel format");
  if ((flags & (fpArrayLayered | fpArrayCube)) && !depth) return fpInvalidValue;
  if ((flags & fpArrayCube) && (width != height || depth % 6 || (depth != 6 && !(flags & fpArrayLayered)))) return fpInvalidValue;
  struct fp_array *a = calloc(1, sizeof *a);
  if (!a) return fpOutOfMemory;
  int all = 0;
  for (int i = 0; i < 4; i++) all += a->bits[i] = bits[i];
  a->mark = fpIsArray, a->format = format, a->width = width, a->height = height, a->depth = depth, a->flags = flags;
  a->element = (u32)all / 8;
  a->pitch = width * a->element, a->slice = a->pitch * fp_least_one(height);
  int e = a->element == 0 || all % 8 || a->element > 16 ? 20 : 0; // cudaErrorInvalidChannelDescriptor
  if (e)
    free(a);
  else
    *out = a;
  return e;
}

static int fp_array_make(struct fp_array **out, const int bits[4], int format, u64 width, u64 height, u64 depth, unsigned flags) {
  struct fp_array *a;
  int e = out ? fp_array_new(&a, bits, format, width, height, depth, flags) : fpInvalidValue;
  if (e) return e;
  e = fp_request(FP_Malloc, (const u64[]){fp_times(a->slice, fp_least_one(depth)), FP_KIND_ARRAY}, 2, &a->at, 1);
  if (e)
    free(a);
  else
    *out = a;
  return e;
}

// A mipmapped array: its levels are adjacent in one allocation, each at a multiple of 512 bytes from the first
// (descriptor.Texture.Level).
struct fp_mipmap {
  u64 mark; // fpIsMipmap
  unsigned levels;
  struct fp_array *level[32];
};

static void fp_mipmap_release(struct fp_mipmap *m) {
  for (unsigned i = 0; i < m->levels; i++) free(m->level[i]);
  free(m);
}

static int fp_mipmap_make(struct fp_mipmap **out, const int bits[4], int format, u64 width, u64 height, u64 depth, unsigned levels, unsigned flags) {
  struct fp_mipmap *m = out ? calloc(1, sizeof *m) : NULL;
  if (!m) return out ? fpOutOfMemory : fpInvalidValue;
  m->mark = fpIsMipmap;
  int layers = !!(flags & (fpArrayLayered | fpArrayCube)), e = 0;
  u64 most = width > height ? width : height, size = 0, at;
  if (!layers && depth > most) most = depth;
  unsigned all = 1;
  while (most >> all) all++;
  if (levels > all) levels = all;
  for (unsigned i = 0; i < fp_least_one(levels) && !e; i++) {
    u64 h = height ? fp_least_one(height >> i) : 0, d = layers || !depth ? depth : fp_least_one(depth >> i);
    e = fp_array_new(&m->level[i], bits, format, fp_least_one(width >> i), h, d, flags);
    if (e) break;
    m->levels++, m->level[i]->part = 1, m->level[i]->at = size;
    u64 bytes = fp_times(m->level[i]->slice, fp_least_one(d));
    size = bytes > (u64)1 << 60 ? bytes : (size + bytes + 511) & ~(u64)511;
  }
  if (!e) e = width ? fp_request(FP_Malloc, (const u64[]){size, FP_KIND_ARRAY}, 2, &at, 1) : fpInvalidValue;
  if (e) {
    fp_mipmap_release(m);
    return e;
  }
  for (unsigned i = 0; i < m->levels; i++) m->level[i]->at += at;
  *out = m;
  return 0;
}

static int fp_mipmap_level(struct fp_array **a, const struct fp_mipmap *m, unsigned level) {
  if (!m || m->mark != fpIsMipmap) return fpInvalidHandle;
  if (!a || level >= m->levels) return fpInvalidValue;
  *a = m->level[level];
  return 0;
}

// fp_mipmap_free frees the memory. The handles stay valid, like those of arrays.
static int fp_mipmap_free(const struct fp_mipmap *m) {
  if (m && m->mark != fpIsMipmap) return fpInvalidHandle;
  return m ? fp_request(FP_Free, (const u64[]){m->level[0]->at, FP_KIND_ARRAY}, 2, NULL, 0) : 0;
}

static int fp_array_free(const struct fp_array *a) {
  if (a && (a->mark != fpIsArray || a->part)) return fpInvalidHandle;
  return a ? fp_request(FP_Free, (const u64[]){a->at, FP_KIND_ARRAY}, 2, NULL, 0) : 0;
}

// fp_array_box returns the box of an array that begins at byte x of row y of slice z. It returns an error if width
// bytes, height rows and depth slices from there exceed the array.
static int fp_array_box(const struct fp_array *a, u64 x, u64 y, u64 z, u64 width, u64 height, u64 depth, struct fp_box *box) {
  if (!a || a->mark != fpIsArray) return fpInvalidHandle;
  u64 rows = fp_least_one(a->height), slices = fp_least_one(a->depth);
  if (x > a->pitch || width > a->pitch - x || y > rows || height > rows - y || z > slices || depth > slices - z) return fpInvalidValue;
  *box = (struct fp_box){a->at + x + y * a->pitch + z * a->slice, a->pitch, a->slice};
  return 0;
}

// fp_texture is the description of a texture or surface for the checker: numbers, in the order of the request.
struct fp_texture {
  u64 at, pitch, slice, width, height, depth, dims, layered, cube, linear, format, bits[4];
  u64 address[3], filter, normalized, as_float, srgb, border[4];
  u64 levels, blend, bias, least, most;
};

static struct fp_texture fp_texture_of_array(const struct fp_array *a) {
  struct fp_texture t = {.at = a->at, .pitch = a->pitch, .slice = a->slice, .width = a->width, .height = fp_least_one(a->height),
                         .depth = fp_least_one(a->depth), .format = (u64)a->format};
  t.layered = !!(a->flags & fpArrayLayered), t.cube = !!(a->flags & fpArrayCube);
  t.levels = 1;
  t.dims = !a->height ? 1 : !a->depth || t.layered || t.cube ? 2 : 3;
  for (int i = 0; i < 4; i++) t.bits[i] = (u64)a->bits[i];
  return t;
}

// fp_texture_of_memory describes memory of height rows. If pitch is 0, it is linear memory of width bytes.
static struct fp_texture fp_texture_of_memory(u64 at, const int bits[4], int format, u64 width, u64 height, u64 pitch) {
  struct fp_texture t = {.at = at, .pitch = pitch, .width = width, .height = height, .depth = 1, .dims = 2, .format = (u64)format, .levels = 1};
  u64 element = 0;
  for (int i = 0; i < 4; i++) t.bits[i] = (u64)bits[i], element += (u64)bits[i] / 8;
  if (!pitch) t.linear = 1, t.dims = 1, t.width = width / fp_least_one(element), t.pitch = t.width * element;
  t.slice = t.pitch * t.height;
  return t;
}

static u64 fp_bits_of(float f) {
  u32 bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static void fp_texture_border(struct fp_texture *t, const float border[4]) {
  for (int i = 0; i < 4; i++) t->border[i] = fp_bits_of(border[i]);
}

// fp_texture_mipmap sets the levels of a texture and how they are read.
static void fp_texture_mipmap(struct fp_texture *t, const struct fp_mipmap *m, int blend, float bias, float least, float most) {
  t->levels = m->levels, t->blend = !!blend;
  t->bias = fp_bits_of(bias), t->least = fp_bits_of(least), t->most = fp_bits_of(most);
}

static int fp_texture_create(const struct fp_texture *t, int surface, u64 *object) {
  const u64 args[1] = {(u64)surface};
  if (!object) return fpInvalidValue;
  fp_stand();
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_Texture, .blob = t, .blob_size = sizeof *t, .results = object, .results_max = 1};
  e = fp_exchange(&c, args, 1);
  fp_end();
  return e;
}

static int fp_surface_create(const struct fp_array *a, u64 *object) {
  if (!a || a->mark != fpIsArray) return fpInvalidHandle;
  if (!(a->flags & fpArraySurface)) return fpInvalidValue;
  struct fp_texture t = fp_texture_of_array(a);
  return fp_texture_create(&t, 1, object);
}

// The program's descriptions of an object follow the engine's data of the object: the resource, the modes of reading,
// and the view.
enum { fpObjectResource = FP_TEXTURE, fpObjectModes = fpObjectResource + 160, fpObjectView = fpObjectModes + 160, fpObjectEnd = FP_OBJECT };

// fp_described stores n bytes of a description at an object, or reads them (get). It returns an error if there is no
// such object.
static int fp_described(u64 object, int at, void *description, size_t n, int get) {
  u64 place[4] = {0};
  int e = description ? fp_request(FP_Pointer, &object, 1, place, 4) : fpInvalidValue;
  if (!e && (place[1] != object || place[2] != fpObjectEnd || at + n > fpObjectEnd)) e = fpInvalidValue;
  if (!e) e = fp_begin();
  if (e) return e;
  char *p = fp_host(object) + at;
  if (get)
    memcpy(description, p, n);
  else
    memcpy(p, description, n);
  fp_end();
  return 0;
}

// fp_view is a view of a resource (cudaResourceViewDesc): some of its levels and layers, possibly in another format.
struct fp_view {
  int format; // 0: that of the resource; see fp_view_format
  size_t width, height, depth;
  unsigned first_level, last_level, first_layer, last_layer, reserved[16];
};

// fp_view_format sets a texture's format to that of a view. Each kind of channel has three formats, of one, two and
// four channels.
static int fp_view_format(struct fp_texture *t, int format) {
  static const struct {
    char kind, bits;
  } kinds[] = {{fpChannelUnsigned, 8}, {fpChannelSigned, 8}, {fpChannelUnsigned, 16}, {fpChannelSigned, 16}, {fpChannelUnsigned, 32}, {fpChannelSigned, 32},
               {fpChannelFloat, 16}, {fpChannelFloat, 32}};
  if (!format) return 0;
  if (format < 0 || format > 24) return fp_unsupported("a resource view of a compressed format");
  u64 before = 0, after = 0;
  for (int i = 0; i < 4; i++) {
    before += t->bits[i];
    t->bits[i] = i < 1 << (format - 1) % 3 ? (u64)kinds[(format - 1) / 3].bits : 0;
    after += t->bits[i];
  }
  t->format = (u64)kinds[(format - 1) / 3].kind;
  return before == after ? 0 : fpInvalidValue;
}

// fp_view_of makes a view of an array, or of a mipmapped array, a texture.
static int fp_view_of(struct fp_texture *t, const struct fp_array *a, const struct fp_mipmap *m, const struct fp_view *v) {
  if (!a && !m) return fpInvalidValue; // memory has no views
  if (m && (v->last_level >= m->levels || v->first_level > v->last_level)) return fpInvalidValue;
  if (!m && (v->first_level || v->last_level)) return fpInvalidValue;
  if (m) {
    struct fp_texture level = fp_texture_of_array(m->level[v->first_level]);
    t->at = level.at, t->pitch = level.pitch, t->slice = level.slice, t->width = level.width, t->height = level.height, t->depth = level.depth;
    t->levels = v->last_level - v->first_level + 1;
  }
  if (t->width != v->width || t->height != fp_least_one(v->height) || (t->dims == 3 && t->depth != v->depth)) return fpInvalidValue;
  if (t->layered || t->cube) {
    u64 layers = v->last_layer - v->first_layer + 1;
    if (v->first_layer > v->last_layer || v->last_layer >= t->depth || (t->cube && (layers % 6 || v->first_layer % 6))) return fpInvalidValue;
    if (layers != t->depth && t->levels > 1) return fp_unsupported("a resource view of some layers and several levels");
    t->at += v->first_layer * t->slice, t->depth = layers;
  } else if (v->first_layer || v->last_layer) {
    return fpInvalidValue;
  }
  return fp_view_format(t, v->format);
}

// fp_describe stores the descriptions of a new object.
static int fp_describe(u64 object, const void *resource, size_t n, const void *modes, size_t m, const struct fp_view *view) {
  int e = fp_described(object, fpObjectResource, (void *)resource, n, 0);
  if (!e && modes) e = fp_described(object, fpObjectModes, (void *)modes, m, 0);
  return e || !view ? e : fp_described(object, fpObjectView, (void *)view, sizeof *view, 0);
}

static int fp_view_back(struct fp_view *v, u64 object) {
  int e = fp_described(object, fpObjectView, v, sizeof *v, 1);
  return e || v->width ? e : fpInvalidValue; // the resource has no view
}

static int fp_texture_destroy(u64 object) { return fp_request(FP_Free, (const u64[]){object, FP_KIND_OBJECT}, 2, NULL, 0); }
