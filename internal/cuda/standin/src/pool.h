// pool.h: memory pools, for both APIs, which define API (the prefix), finish and check_device. The checker implements
// the pools.

struct pool_properties {
  int type, handles; // fpPoolPinned or fpPoolManaged
  struct fp_location at;
  void *reserved;
  size_t most;
};

enum { fpPoolPinned = 1, fpPoolManaged, fpPoolOnDevice = 1, fpPoolOnHost, fpPoolOnNode, fpPoolOnThisNode };

static int pool_ask(u64 what, u64 which, u64 number, u64 value, u64 *answer) {
  u64 r = 0;
  int e = fp_request(FP_Pool, (const u64[]){what, which, number, value}, 4, &r, 1);
  if (!e && answer) *answer = r;
  return e;
}

static int pool_of(u64 what, int device, u64 kind, u64 *pool) {
  int e = pool ? check_device(device) : fpInvalidValue;
  return e ? e : pool_ask(what, (u64)device, kind, 0, pool);
}

// pool_choose sets the pool of a device. The pool may refuse allocations, so allocations are sent from now on.
static int pool_choose(int device, u64 kind, u64 pool) {
  int e = check_device(device);
  if (!e) e = pool_ask(FP_POOL_CHOOSE, (u64)device, pool, kind, NULL);
  if (!e && fp.mail) __atomic_store_n(&fp.mail->pools, 1, __ATOMIC_RELAXED);
  return e;
}

EXPORT int API(DeviceGetDefaultMemPool)(u64 *pool, int device) { return finish(pool_of(FP_POOL_DEFAULT, device, FP_POOL_OF_DEVICE, pool)); }
EXPORT int API(DeviceGetMemPool)(u64 *pool, int device) { return finish(pool_of(FP_POOL_CURRENT, device, FP_POOL_OF_DEVICE, pool)); }
EXPORT int API(DeviceSetMemPool)(int device, u64 pool) { return finish(pool_choose(device, FP_POOL_OF_DEVICE, pool)); }

// pool_location returns the kind and the device of a pool. The host has no device, and managed memory need not have
// one.
static int pool_location(const struct fp_location *at, int type, int *device, u64 *kind) {
  if (!at || (at->type == fpPoolOnNode && !fp_node(at->id))) return fpInvalidValue;
  *device = at->type == fpPoolOnDevice ? at->id : 0;
  *kind = type == fpPoolManaged ? FP_POOL_OF_MANAGED : at->type == fpPoolOnDevice ? FP_POOL_OF_DEVICE : FP_POOL_OF_HOST;
  if (type == fpPoolManaged) return at->type > fpPoolOnThisNode ? fpInvalidValue : 0;
  return type == fpPoolPinned && at->type >= fpPoolOnDevice && at->type <= fpPoolOnThisNode ? 0 : fpInvalidValue;
}

static int pool_at(u64 what, u64 *pool, const struct fp_location *at, int type) {
  int device;
  u64 kind;
  int e = pool_location(at, type, &device, &kind);
  return e ? e : pool_of(what, device, kind, pool);
}

EXPORT int API(MemGetDefaultMemPool)(u64 *pool, const struct fp_location *at, int type) { return finish(pool_at(FP_POOL_DEFAULT, pool, at, type)); }
EXPORT int API(MemGetMemPool)(u64 *pool, const struct fp_location *at, int type) { return finish(pool_at(FP_POOL_CURRENT, pool, at, type)); }
static int pool_choose_at(const struct fp_location *at, int type, u64 pool) {
  int device;
  u64 kind;
  int e = pool_location(at, type, &device, &kind);
  return e ? e : pool_choose(device, kind, pool);
}
EXPORT int API(MemSetMemPool)(const struct fp_location *at, int type, u64 pool) { return finish(pool_choose_at(at, type, pool)); }

static int pool_create(u64 *pool, const struct pool_properties *p) {
  int device;
  u64 kind;
  int e = pool && p ? pool_location(&p->at, p->type, &device, &kind) : fpInvalidValue;
  if (!e) e = check_device(device);
  return e ? e : pool_ask(FP_POOL_CREATE, (u64)device, p->most, kind, pool);
}
EXPORT int API(MemPoolCreate)(u64 *pool, const struct pool_properties *p) { return finish(pool_create(pool, p)); }
EXPORT int API(MemPoolDestroy)(u64 pool) { return finish(pool_ask(FP_POOL_DESTROY, pool, 0, 0, NULL)); }
EXPORT int API(MemPoolTrimTo)(u64 pool, size_t n) {
  (void)n;
  return finish(pool_ask(FP_POOL_TRIM, pool, 0, 0, NULL));
}

// The first attributes are ints, and the others have 64 bits.
static size_t attribute_size(int a) { return a <= 3 ? sizeof(int) : sizeof(u64); }

static int pool_get(u64 pool, int a, void *value) {
  u64 r = 0;
  int e = value ? pool_ask(FP_POOL_GET, pool, (u64)a, 0, &r) : fpInvalidValue;
  if (!e) memcpy(value, &r, attribute_size(a));
  return e;
}
static int pool_set(u64 pool, int a, const void *value) {
  u64 v = 0;
  if (!value) return fpInvalidValue;
  memcpy(&v, value, attribute_size(a));
  return pool_ask(FP_POOL_SET, pool, (u64)a, v, NULL);
}
EXPORT int API(MemPoolGetAttribute)(u64 pool, int a, void *value) { return finish(pool_get(pool, a, value)); }
EXPORT int API(MemPoolSetAttribute)(u64 pool, int a, const void *value) { return finish(pool_set(pool, a, value)); }

static int pool_grant(u64 pool, const struct fp_access *list, size_t n) {
  int e = list && n ? 0 : fpInvalidValue;
  for (size_t i = 0; i < n && !e; i++) {
    if (list[i].at.type != fpPoolOnDevice) return fp_unsupported("access of the host to a memory pool of a device");
    e = check_device(list[i].at.id);
    if (!e) e = pool_ask(FP_POOL_GRANT, pool, (u64)list[i].at.id, (u64)list[i].flags, NULL);
  }
  return e;
}
static int pool_accessible(int *flags, u64 pool, const struct fp_location *of) {
  u64 r = 0;
  int e = flags && of && of->type == fpPoolOnDevice ? check_device(of->id) : fpInvalidValue;
  if (!e) e = pool_ask(FP_POOL_ACCESS, pool, (u64)of->id, 0, &r);
  if (!e) *flags = (int)r;
  return e;
}
EXPORT int API(MemPoolSetAccess)(u64 pool, const struct fp_access *list, size_t n) { return finish(pool_grant(pool, list, n)); }
EXPORT int API(MemPoolGetAccess)(int *flags, u64 pool, const struct fp_location *of) { return finish(pool_accessible(flags, pool, of)); }

static int pool_malloc(u64 *p, size_t n, u64 pool, u64 stream) {
  return p && pool ? fp_request(FP_MallocAsync, (const u64[]){n, stream, pool}, 3, p, 1) : fpInvalidValue;
}
