// batch.h: batches of copies, for both APIs, which define API (the prefix) and finish. A batch is one operation of its
// stream, and its copies are not ordered: each is made in its own stream, between the stream's earlier and later
// operations.

struct batch_attributes {
  int order;                       // of the accesses to the source: fpStreamOrder...
  struct fp_location from, to;     // hints
  unsigned flags;                  // hints
};

enum { fpStreamOrder = 1, fpDuringCall, fpAnyTime };

struct batch_operand {
  int type; // 1 pointer, 2 array
  union {
    struct {
      u64 at, row, height; // in elements; 0: no gaps
      struct fp_location hint;
    } pointer;
    struct {
      struct fp_array *array;
      u64 x, y, z; // in elements
    } array;
  } of;
};

struct batch_copy {
  struct batch_operand from, to;
  u64 width, height, depth; // in elements
  int order;
  unsigned flags;
};

// A part is one copy of a batch.
struct batch_part {
  struct fp_box to, from;
  u64 width, height, depth;
  int order;
};

static int part_copy(const struct batch_part *p, u64 stream) {
  static const int async[] = {[fpStreamOrder] = 1, [fpDuringCall] = 1 | FP_COPY_DURING_CALL, [fpAnyTime] = 1 | FP_COPY_ANY_TIME};
  return fp_copy(p->to, p->from, p->width, p->height, p->depth, fpDefault, async[p->order], stream);
}

static int part_beside(const struct batch_part *p, u64 stream, u64 begin) {
  u64 own = 0, done = 0;
  int e = fp_request(FP_StreamCreate, (const u64[]){1 | FP_OF_BATCH, 0}, 2, &own, 1);
  if (!e) e = fp_after(own, begin);
  if (!e) e = part_copy(p, own);
  if (!e) e = fp_event_new(&done);
  if (!e) e = fp_record(own, done);
  if (!e) e = fp_after(stream, done);
  if (done) fp_request(FP_EventDestroy, &done, 1, NULL, 0);
  if (own) fp_request(FP_StreamDestroy, &own, 1, NULL, 0);
  return e;
}

// batch executes the parts. It returns in failed the index of the part that failed, or SIZE_MAX if no single part did.
static int batch(const struct batch_part *parts, size_t n, size_t *failed, u64 stream) {
  u64 begin = 0;
  struct fp_capture *capture;
  if (failed) *failed = SIZE_MAX;
  if (fp_stream_key(stream) == FP_STREAM_LEGACY) return fpInvalidValue;
  if (fp_capturing() && fp_branch_of(stream, &capture)) {
    capture->invalid = 1;
    return fp_unsupported("a batch of copies in a stream that captures");
  }
  if (n == 1) {
    int e = part_copy(parts, stream);
    if (e && failed) *failed = 0;
    return e;
  }
  int e = fp_event_new(&begin);
  if (!e) e = fp_record(stream, begin);
  for (size_t i = 0; i < n && !e; i++)
    if ((e = part_beside(&parts[i], stream, begin)) && failed) *failed = i;
  if (begin) fp_request(FP_EventDestroy, &begin, 1, NULL, 0);
  return e;
}

static int batch_linear(const u64 *to, const u64 *from, const size_t *sizes, size_t n, const struct batch_attributes *a, const size_t *first, size_t na,
                        size_t *failed, u64 stream) {
  if (failed) *failed = SIZE_MAX;
  if (!to || !from || !sizes || !n || !a || !first || !na || na > n || first[0]) return fpInvalidValue;
  for (size_t k = 0; k < na; k++)
    if (a[k].order < fpStreamOrder || a[k].order > fpAnyTime || first[k] >= n || (k && first[k] <= first[k - 1])) return fpInvalidValue;
  struct batch_part *parts = calloc(n, sizeof *parts);
  if (!parts) return fpOutOfMemory;
  for (size_t i = 0, k = 0; i < n; i++) {
    if (k + 1 < na && first[k + 1] == i) k++;
    parts[i] = (struct batch_part){{to[i], sizes[i], sizes[i]}, {from[i], sizes[i], sizes[i]}, sizes[i], 1, 1, a[k].order};
  }
  int e = batch(parts, n, failed, stream);
  free(parts);
  return e;
}

static int operand_box(const struct batch_operand *o, const struct batch_copy *c, u64 element, struct fp_box *box) {
  if (o->type == 2) {
    const u64 x = fp_times(o->of.array.x, element);
    return fp_array_box(o->of.array.array, x, o->of.array.y, o->of.array.z, fp_times(c->width, element), c->height, c->depth, box);
  }
  const u64 row = o->of.pointer.row ? o->of.pointer.row : c->width, height = o->of.pointer.height ? o->of.pointer.height : c->height;
  if (o->type != 1 || row < c->width || height < c->height) return fpInvalidValue;
  *box = (struct fp_box){o->of.pointer.at, fp_times(row, element), fp_times(fp_times(row, element), height)};
  return 0;
}

static int copy_part(const struct batch_copy *c, struct batch_part *p) {
  const struct fp_array *to = c->to.type == 2 ? c->to.of.array.array : NULL, *from = c->from.type == 2 ? c->from.of.array.array : NULL;
  if (c->order < fpStreamOrder || c->order > fpAnyTime || !c->width || !c->height || !c->depth) return fpInvalidValue;
  if (to && from && to->element != from->element) return fpInvalidValue;
  const u64 element = to ? to->element : from ? from->element : 1;
  *p = (struct batch_part){.width = fp_times(c->width, element), .height = c->height, .depth = c->depth, .order = c->order};
  int e = operand_box(&c->to, c, element, &p->to);
  return e ? e : operand_box(&c->from, c, element, &p->from);
}

static int batch_boxes(size_t n, const struct batch_copy *list, size_t *failed, u64 flags, u64 stream) {
  int e = 0;
  if (failed) *failed = SIZE_MAX;
  if (!n || !list || flags) return fpInvalidValue;
  struct batch_part *parts = calloc(n, sizeof *parts);
  if (!parts) return fpOutOfMemory;
  for (size_t i = 0; i < n && !e; i++)
    if ((e = copy_part(&list[i], &parts[i])) && failed) *failed = i;
  if (!e) e = batch(parts, n, failed, stream);
  free(parts);
  return e;
}

#define BATCHES(name, suffix, FAILED, failed, own)                                                                                            \
  EXPORT int API(MemcpyBatchAsync##name##suffix)(const u64 *to, const u64 *from, const size_t *sizes, size_t n, const struct batch_attributes *a, \
                                                 const size_t *first, size_t na, FAILED void *s) {                                           \
    return finish(batch_linear(to, from, sizes, n, a, first, na, failed, stream_of(s, own)));                                                 \
  }                                                                                                                                           \
  EXPORT int API(Memcpy3DBatchAsync##name##suffix)(size_t n, const struct batch_copy *list, FAILED u64 flags, void *s) {                      \
    return finish(batch_boxes(n, list, failed, flags, stream_of(s, own)));                                                                    \
  }
#define FAILED_AT size_t *failed_at,
#define NO_FAILED_AT
#if FP_RUNTIME == 13
BATCHES(, , NO_FAILED_AT, NULL, 0)
BATCHES(, _ptsz, NO_FAILED_AT, NULL, 1)
#else
BATCHES(, , FAILED_AT, failed_at, 0)
BATCHES(, _ptsz, FAILED_AT, failed_at, 1)
#endif
#ifndef FP_RUNTIME
BATCHES(_v2, , NO_FAILED_AT, NULL, 0)
BATCHES(_v2, _ptsz, NO_FAILED_AT, NULL, 1)
#endif

#define ATTRIBUTED(suffix, own)                                                                                                  \
  EXPORT int API(MemcpyWithAttributesAsync##suffix)(u64 to, u64 from, size_t n, const struct batch_attributes *a, void *s) {     \
    const size_t first = 0;                                                                                                      \
    return finish(batch_linear(&to, &from, &n, 1, a, &first, 1, NULL, stream_of(s, own)));                                       \
  }                                                                                                                              \
  EXPORT int API(Memcpy3DWithAttributesAsync##suffix)(const struct batch_copy *c, u64 flags, void *s) {                          \
    return finish(batch_boxes(1, c, NULL, flags, stream_of(s, own)));                                                            \
  }
ATTRIBUTED(, 0)
ATTRIBUTED(_ptsz, 1)
