// hints.h: the program's advice about managed memory, and attributes of streams, for both APIs, which define API (the
// prefix) and finish. They have no effect except that they can be read back. The libraries of a process share them.

enum { fpReadMostly = 1, fpPreferred, fpAccessedBy, fpPrefetched };

struct fp_hint {
  u64 from, to;
  int what;
  struct fp_location at; // type 0: no more
};

struct fp_stream_attribute {
  u64 key; // of the stream: fp_stream_key
  int id;
  u64 value[8];
};

static struct fp_location device_location(int device) { return device < 0 ? (struct fp_location){2, 0} : (struct fp_location){1, device}; }

// managed reports whether a range is inside one allocation of managed memory.
static int managed(u64 p, u64 n) {
  u64 x[5];
  int e = n ? fp_request(FP_Pointer, &p, 1, x, 5) : fpInvalidValue;
  return e ? e : x[0] != 3 || n > x[1] + x[2] - p ? fpInvalidValue : 0;
}

static int same_hint(const struct fp_hint *h, int what, int id) { return h->what == what && (what != fpAccessedBy || h->at.id == id); }

// tell_hint adds a hint. It replaces earlier hints that the new one covers.
static int tell_hint(struct fp_hint fresh) {
  struct fp_shared *s = fp_shared();
  int e = s ? 0 : fpInitialization;
  size_t kept = 0;
  if (e) return e;
  fp_graph_lock();
  for (size_t i = 0; i < s->nhints; i++) {
    const struct fp_hint *h = &s->hints[i];
    if (!same_hint(h, fresh.what, fresh.at.id) || h->from < fresh.from || h->to > fresh.to) s->hints[kept++] = *h;
  }
  struct fp_hint *grown = realloc(s->hints, (kept + 1) * sizeof *grown);
  if (grown) s->hints = grown, grown[kept++] = fresh;
  s->nhints = kept;
  fp_graph_unlock();
  return grown ? 0 : fpOutOfMemory;
}

// hint_of returns the last hint for a range. Its type is 0 if there is none, or if parts of the range have different
// ones.
static struct fp_location hint_of(u64 from, u64 to, int what, int id) {
  struct fp_shared *s = fp_shared();
  struct fp_location all = {0, 0};
  fp_graph_lock();
  for (u64 at = from, next; s && at < to; at = next) {
    struct fp_location here = {0, 0};
    next = to;
    for (size_t i = 0; i < s->nhints; i++) {
      const struct fp_hint *h = &s->hints[i];
      if (!same_hint(h, what, id)) continue;
      if (h->from <= at && at < h->to) here = h->at;
      if (h->from > at && h->from < next) next = h->from;
      if (h->to > at && h->to < next) next = h->to;
    }
    if (at == from) all = here;
    if (here.type != all.type || here.id != all.id) all.type = 0;
    if (!all.type) break;
  }
  fp_graph_unlock();
  return all;
}

// hint_place reports whether memory can be at a location.
static int hint_place(struct fp_location at) {
  enum { onDevice = 1, onHost, onNode, onThisNode };
  if (at.type == onDevice) return check_device(at.id);
  if (at.type == onNode && !fp_node(at.id)) return fpInvalidDevice;
  return at.type < onDevice || at.type > onThisNode ? fpInvalidValue : 0;
}

static int advise(u64 p, u64 n, int advice, struct fp_location at) {
  static const char what[] = {0, fpReadMostly, fpReadMostly, fpPreferred, fpPreferred, fpAccessedBy, fpAccessedBy};
  if (advice < 1 || advice > 6) return fpInvalidValue;
  int e = managed(p, n);
  if (!e && what[advice] != fpReadMostly && advice % 2) e = hint_place(at);
  if (what[advice] == fpReadMostly) at = (struct fp_location){1, 0};
  if (what[advice] == fpAccessedBy && at.type != 1) at.id = -1; // other locations of fpAccessedBy have no device number
  if (advice % 2 == 0) at.type = 0;
  return e ? e : tell_hint((struct fp_hint){p, p + n, what[advice], at});
}

static int prefetch(u64 p, u64 n, struct fp_location to) {
  int e = managed(p, n);
  if (!e) e = hint_place(to);
  return e ? e : tell_hint((struct fp_hint){p, p + n, fpPrefetched, to});
}

static int prefetch_batch(const u64 *p, const size_t *n, size_t count, const struct fp_location *to, const size_t *first, size_t places, u64 flags) {
  if (!p || !n || !count || !to || !first || !places || places > count || first[0] || flags) return fpInvalidValue;
  int e = 0;
  for (size_t i = 0, k = 0; i < count && !e; i++) {
    if (k + 1 < places && first[k + 1] == i) k++;
    e = prefetch(p[i], n[i], to[k]);
  }
  return e;
}

// range_attribute returns an attribute of a range (cudaMemRangeAttribute). The host is device -1, and none is -2.
static int range_attribute(int *out, size_t size, int attribute, u64 p, u64 n) {
  enum { readMostly = 1, preferred, accessedBy, prefetched, preferredType, preferredId, prefetchedType, prefetchedId, host = -1, none = -2 };
  int devices, e = out && size && size % sizeof *out == 0 && attribute >= readMostly && attribute <= prefetchedId ? managed(p, n) : fpInvalidValue;
  if (!e && attribute != accessedBy && size != sizeof *out) e = fpInvalidValue;
  if (!e) e = fp_devices(NULL, &devices);
  if (e) return e;
  const int which = attribute == preferred || attribute == preferredType || attribute == preferredId ? fpPreferred : fpPrefetched;
  const struct fp_location at = hint_of(p, p + n, which, 0);
  switch (attribute) {
    case readMostly: *out = hint_of(p, p + n, fpReadMostly, 0).type != 0; return 0;
    case preferred: case prefetched: *out = at.type == 1 ? at.id : at.type ? host : none; return 0;
    case preferredType: case prefetchedType: *out = at.type; return 0;
    case preferredId: case prefetchedId: *out = at.id; return 0;
  }
  size_t k = 0;
  for (int d = host; d < devices && k < size / sizeof *out; d++)
    if (hint_of(p, p + n, fpAccessedBy, d).type) out[k++] = d;
  while (k < size / sizeof *out) out[k++] = none;
  return 0;
}

static int range_attributes(int **out, const size_t *sizes, const int *attributes, size_t count, u64 p, u64 n) {
  int e = out && sizes && attributes && count ? 0 : fpInvalidValue;
  for (size_t i = 0; i < count && !e; i++) e = range_attribute(out[i], sizes[i], attributes[i], p, n);
  return e;
}
EXPORT int API(MemRangeGetAttribute)(int *out, size_t size, int attribute, u64 p, size_t n) { return finish(range_attribute(out, size, attribute, p, n)); }
EXPORT int API(MemRangeGetAttributes)(int **out, const size_t *sizes, const int *attributes, size_t count, u64 p, size_t n) {
  return finish(range_attributes(out, sizes, attributes, count, p, n));
}

// The device is a number up to CUDA 12, and a location in later versions.
EXPORT int API(MemAdvise_v2)(u64 p, size_t n, int advice, struct fp_location at) { return finish(advise(p, n, advice, at)); }
#if FP_RUNTIME == 13
EXPORT int API(MemAdvise)(u64 p, size_t n, int advice, struct fp_location at) { return finish(advise(p, n, advice, at)); }
#else
EXPORT int API(MemAdvise)(u64 p, size_t n, int advice, int device) { return finish(advise(p, n, advice, device_location(device))); }
#endif

#define PREFETCH(suffix)                                                                                                                             \
  EXPORT int API(MemPrefetchAsync_v2##suffix)(u64 p, size_t n, struct fp_location to, unsigned flags, void *s) {                                   \
    (void)s;                                                                                                                                         \
    return finish(flags ? fpInvalidValue : prefetch(p, n, to));                                                                                      \
  }                                                                                                                                                  \
  EXPORT int API(MemPrefetchBatchAsync##suffix)(const u64 *p, const size_t *n, size_t count, const struct fp_location *to, const size_t *first,    \
                                                size_t places, u64 flags, void *s) {                                                                 \
    (void)s;                                                                                                                                         \
    return finish(prefetch_batch(p, n, count, to, first, places, flags));                                                                            \
  }
PREFETCH()
PREFETCH(_ptsz)
#if FP_RUNTIME == 13
#define PREFETCH_OLD(suffix)                                                                                                                         \
  EXPORT int API(MemPrefetchAsync##suffix)(u64 p, size_t n, struct fp_location to, unsigned flags, void *s) {                                      \
    return API(MemPrefetchAsync_v2)(p, n, to, flags, s);                                                                                             \
  }
#else
#define PREFETCH_OLD(suffix)                                                                                                                         \
  EXPORT int API(MemPrefetchAsync##suffix)(u64 p, size_t n, int device, void *s) {                                                                   \
    (void)s;                                                                                                                                         \
    return finish(prefetch(p, n, device_location(device)));                                                                                          \
  }
#endif
PREFETCH_OLD()
PREFETCH_OLD(_ptsz)

// Attributes of streams (cudaLaunchAttributeID). The priority is that which the stream was made with, until another one is set.

static int stream_attribute_kept(u64 key, int id, u64 *value, int set) {
  struct fp_shared *s = fp_shared();
  size_t i = 0;
  int e = 0;
  fp_graph_lock();
  while (i < s->nattributes && (s->attributes[i].key != key || s->attributes[i].id != id)) i++;
  if (set && i == s->nattributes) {
    if (fp_grow(&s->attributes, i, sizeof *s->attributes))
      s->attributes[s->nattributes++] = (struct fp_stream_attribute){.key = key, .id = id};
    else
      e = fpOutOfMemory;
  }
  if (!e && i < s->nattributes) memcpy(set ? s->attributes[i].value : value, set ? value : s->attributes[i].value, sizeof s->attributes[i].value);
  fp_graph_unlock();
  return e;
}

static int stream_attribute(u64 stream, int id, u64 *value, int set) {
  enum { window = 1, synchronization = 3, priority = 8, domains = 9, domain = 10, nvlink = 16 };
  u64 info[4] = {0};
  switch (id) {
    case window: case synchronization: case priority: case domains: case domain: case nvlink: break;
    default: return fpInvalidValue;
  }
  int e = value ? fp_request(FP_StreamInfo, &stream, 1, info, 4) : fpInvalidValue; // and there is a stream
  if (e) return e;
  if (!set) memset(value, 0, sizeof(u64[8]));
  if (!set && id == priority) memcpy(value, &info[1], sizeof(int));
  return stream_attribute_kept(fp_stream_key(stream), id, value, set);
}

static int stream_attributes_copy(u64 to, u64 from) {
  int e = 0;
  for (int id = 1; id <= 16 && !e; id++) {
    u64 value[8];
    if (stream_attribute(from, id, value, 0) == fpInvalidValue) continue;
    e = stream_attribute(to, id, value, 1);
  }
  return e;
}

#define STREAM_ATTRIBUTES(suffix, own)                                                                                                      \
  EXPORT int API(StreamGetAttribute##suffix)(void *s, int id, u64 *value) { return finish(stream_attribute(stream_of(s, own), id, value, 0)); } \
  EXPORT int API(StreamSetAttribute##suffix)(void *s, int id, const u64 *value) {                                                           \
    return finish(stream_attribute(stream_of(s, own), id, (u64 *)value, 1));                                                                \
  }                                                                                                                                         \
  EXPORT int API(StreamCopyAttributes##suffix)(void *to, void *from) { return finish(stream_attributes_copy(stream_of(to, own), stream_of(from, own))); }
STREAM_ATTRIBUTES(, 0)
STREAM_ATTRIBUTES(_ptsz, 1)
