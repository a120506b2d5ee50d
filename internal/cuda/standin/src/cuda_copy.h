// cuda_copy.h: copies between devices, hints about managed memory, and streams of the driver API. Part of cuda.c.

// Each device has one context, and an address determines its device.
static int check_contexts(const char *a, const char *b) { return is_context(a) && is_context(b) ? 0 : fpInvalidContext; }

static int copy_peer(u64 d, const void *to, u64 s, const void *from, size_t n, int async, u64 stream) {
  int e = check_contexts(to, from);
  return e ? e : fp_copy_linear(d, s, n, fpDeviceToDevice, async, stream);
}

#define PEER(sync, async, own)                                                                                                                      \
  EXPORT int cuMemcpyPeer##sync(u64 d, void *to, u64 s, void *from, size_t n) { return finish(copy_peer(d, to, s, from, n, 0, stream_of(NULL, own))); } \
  EXPORT int cuMemcpy3DPeer##sync(const struct copy_params *c) { return finish(copy_3d(c, 0, stream_of(NULL, own))); }                              \
  EXPORT int cuMemcpyPeerAsync##async(u64 d, void *to, u64 s, void *from, size_t n, void *st) {                                                     \
    return finish(copy_peer(d, to, s, from, n, 1, stream_of(st, own)));                                                                             \
  }                                                                                                                                                 \
  EXPORT int cuMemcpy3DPeerAsync##async(const struct copy_params *c, void *st) { return finish(copy_3d(c, 1, stream_of(st, own))); }
PEER(, , 0)
PEER(_ptds, _ptsz, 1)

static int peer_access(char *context, unsigned flags, u64 enable) {
  int e = flags ? fpInvalidValue : is_context(context) ? 0 : fpInvalidContext;
  return e ? e : fp_request(FP_PeerAccess, (const u64[]){(u64)(context - contexts), enable}, 2, NULL, 0);
}
EXPORT int cuCtxEnablePeerAccess(void *context, unsigned flags) { return finish(peer_access(context, flags, 1)); }
EXPORT int cuCtxDisablePeerAccess(void *context) { return finish(peer_access(context, 0, 0)); }

EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to) {
  enum { rank = 1, access = 2, atomics = 3, arrays = 4 };
  int e = value && attribute >= rank && attribute <= arrays ? check_device(from) : fpInvalidValue;
  if (!e) e = from == to ? fpInvalidDevice : check_device(to);
  if (!e) *value = attribute == access || attribute == atomics;
  return finish(e);
}
EXPORT int cuDeviceGetByPCIBusId(int *device, const char *text) {
  unsigned bus;
  char rest;
  if (!device || !text) return finish(fpInvalidValue);
  if (sscanf(text, "0000:%2x:00.0%c", &bus, &rest) != 1) return finish(fpInvalidDevice);
  *device = (int)bus;
  return finish(check_device(*device));
}

// Streams.

static int stream_info(const void *s, int own, int what, u64 *value) {
  u64 r[4] = {0};
  int e = value ? fp_request(FP_StreamInfo, (const u64[]){stream_of(s, own)}, 1, r, 4) : fpInvalidValue;
  if (!e) *value = r[what];
  return e;
}

static int stream_device(const void *s, int own, int *device) {
  u64 value = 0;
  int e = device ? stream_info(s, own, 3, &value) : fpInvalidValue;
  if (!e) *device = (int)value;
  return e;
}

static int stream_context(const void *s, int own, void **c) {
  u64 device = 0;
  int e = c ? stream_info(s, own, 3, &device) : fpInvalidValue;
  if (!e) *c = stack[top] ? &contexts[device] : NULL;
  return e;
}

#define STREAM(suffix, own)                                                                                              \
  EXPORT int cuStreamGetId##suffix(void *s, u64 *id) { return finish(stream_info(s, own, 2, id)); }                      \
  EXPORT int cuStreamGetDevice##suffix(void *s, int *device) { return finish(stream_device(s, own, device)); }           \
  EXPORT int cuStreamGetCtx##suffix(void *s, void **c) { return finish(stream_context(s, own, c)); }
STREAM(, 0)
STREAM(_ptsz, 1)

EXPORT int cuStreamAttachMemAsync_ptsz(void *s, u64 p, size_t n, unsigned flags) { return cuStreamAttachMemAsync(s, (void *)p, n, flags); }

EXPORT int cuLaunchHostFunc_v2(void *s, void (*f)(void *), void *data, unsigned mode) {
  (void)mode;
  return cuLaunchHostFunc(s, f, data);
}
EXPORT int cuLaunchHostFunc_v2_ptsz(void *s, void (*f)(void *), void *data, unsigned mode) {
  (void)mode;
  return cuLaunchHostFunc_ptsz(s, f, data);
}

EXPORT int cuMemAllocFromPoolAsync(u64 *p, size_t n, u64 pool, void *s) { return finish(pool_malloc(p, n, pool, stream_of(s, 0))); }
EXPORT int cuMemAllocFromPoolAsync_ptsz(u64 *p, size_t n, u64 pool, void *s) { return finish(pool_malloc(p, n, pool, stream_of(s, 1))); }
