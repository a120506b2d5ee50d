// cudart.c: the runtime API. Calls that are only a request are in gen_forward_runtime.h, and calls that are not
// supported in gen_unsupported_runtime.h. Both files are generated from the tables of package calls.
//
// It is built as libcudart.so.12 (FP_RUNTIME 12), and as libcudart.so.13 and libcudart_static.a (FP_RUNTIME 13).
#include "bottom.h"
#include "start.h"

// fp_admit initialises the driver API at the first request, and makes a context if the request needs one.
static int fp_admit(u32 op) {
  struct fp_shared *s = fp_shared();
  if (s && !s->initialized) s->initialized = 1;
  if (fp_in_context(op)) fp_runtime_context(1);
  return 0;
}

// Errors. Each host thread has its last error. The error of a kernel's fault remains for the whole process.
THREAD int last_error;
static int sticky_error;

// Torch calls cudaGetLastError and cudaFreeAsync in destructors of tensors, where an error ends the process. It does so
// only because "fencepost run" switches its own cache off. So both calls succeed for Torch after a fault.
static int torch_is_there;

EXPORT void __cudaFencepostTorch(void) { torch_is_there = 1; }

static int is_sticky(int e) { return e == 700 || e == 702 || (e >= 714 && e <= 719) || e == 710; }

// finish ends a call of the API. text is for fp_failed.
static int finish_call(int e, const char *name, const char *text) {
  if (is_sticky(e)) __atomic_store_n(&sticky_error, e, __ATOMIC_RELAXED);
  if (e == 0 || e == 600) return e;
  if (torch_is_there && is_sticky(e) && !strcmp(name, "cudaFreeAsync")) return 0;
  last_error = e;
  if (!is_sticky(e) && e != fpNotSupported) fp_failed(e, name, text);
  return e;
}

#define finish(e) finish_call(e, __func__, NULL)

EXPORT int cudaGetLastError(void) {
  fp_looked(0);
  int e = last_error;
  last_error = torch_is_there ? 0 : __atomic_load_n(&sticky_error, __ATOMIC_RELAXED);
  return e ? e : last_error;
}

EXPORT int cudaPeekAtLastError(void) {
  fp_looked(0);
  int e = last_error;
  return e ? e : __atomic_load_n(&sticky_error, __ATOMIC_RELAXED);
}

#include "gen_errors.h"

static const struct fp_error *error_entry(int code) {
  for (size_t i = 0; i < sizeof fp_errors / sizeof *fp_errors; i++)
    if (fp_errors[i].code == (u32)code && *fp_errors[i].name) return &fp_errors[i];
  return NULL;
}

EXPORT const char *cudaGetErrorName(int code) {
  if (code) fp_looked(code);
  const struct fp_error *e = error_entry(code);
  return e ? e->name : "unrecognized error code";
}

EXPORT const char *cudaGetErrorString(int code) {
  if (code) fp_looked(code);
  const struct fp_error *e = error_entry(code);
  return e ? e->text : "unrecognized error code";
}

static u64 stream_of(const void *s, int per_thread) {
  if (s) return (u64)s;
  return per_thread ? FP_STREAM_PER_THREAD : FP_STREAM_LEGACY;
}

// present opens the connection.
static int present(void) {
  int value;
  return fp_attribute(1, &value);
}

#include "gen_forward_runtime.h"
#include "gen_unsupported_runtime.h"

// Registration. The data that the compiler added to the program are kept here, and sent to the checker when they are
// first needed.

struct binary {
  const struct fp_wrapper *wrapper;
  struct binary *next;
  struct managed *managed;
  u64 handle;
  int loaded, error, dead;
};

struct managed {
  void **host;
  const char *name;
  u64 size;
  struct managed *next;
};

// An entity is a kernel or a variable, found by its address on the host. The kernel is the first field, so that a
// cudaKernel_t of a library is a CUkernel too.
struct entity {
  struct fp_kernel kernel;
  const void *host;
  struct binary *binary;
  struct entity *next;
  const char *name;
  int is_kernel;
  int known; // variable: address and size are set
  u64 address, size;
};

enum { table_size = 4096 };
static struct entity *table[table_size];
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;

static size_t slot(const void *p) { return ((u64)p * 0x9e3779b97f4a7c15u) >> 52; }

static struct entity *find_entity(const void *host, int is_kernel) {
  if (fp_take(&registry, fpRegistryLock)) {
    fp_undelivered();
    return NULL;
  }
  struct entity *e = table[slot(host)];
  while (e && (e->host != host || e->is_kernel != is_kernel || e->binary->dead)) e = e->next;
  fp_give(&registry, fpRegistryLock);
  return e;
}

static void add_entity(struct entity *e) {
  fp_take(&registry, fpRegistryLock);
  e->next = table[slot(e->host)];
  table[slot(e->host)] = e;
  fp_give(&registry, fpRegistryLock);
}

static struct binary *binaries;

EXPORT void **__cudaRegisterFatBinary(void *wrapper) {
  struct binary *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  b->wrapper = wrapper;
  fp_take(&registry, fpRegistryLock);
  fp_built(wrapper);
  b->next = binaries;
  binaries = b;
  fp_give(&registry, fpRegistryLock);
  return (void **)b;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
                                   void *block, void *grid, int *warp) {
  (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
  struct entity *e = calloc(1, sizeof *e);
  if (!e || !handle) return;
  e->host = host, e->binary = (struct binary *)handle, e->is_kernel = 1, e->name = name;
  add_entity(e);
}

EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size, int constant, int global) {
  (void)device, (void)external, (void)constant, (void)global;
  struct entity *e = calloc(1, sizeof *e);
  if (!e || !handle) return;
  e->host = host, e->binary = (struct binary *)handle, e->name = name, e->size = size;
  add_entity(e);
}

EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t size, int constant, int global) {
  (void)device, (void)external, (void)constant, (void)global;
  struct binary *b = (struct binary *)handle;
  struct managed *m = calloc(1, sizeof *m);
  if (!m || !b) return;
  m->host = host, m->name = name, m->size = size, m->next = b->managed;
  b->managed = m;
}

EXPORT void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size) {
  (void)handle, (void)name, (void)host, (void)size;
}

EXPORT int __cudaRegisterUnifiedTable(void) { return 0; }

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

// load sends a binary to the checker once, and keeps the error.
static int load(struct binary *b) {
  if (__atomic_load_n(&b->loaded, __ATOMIC_ACQUIRE)) return b->error;
  if (fp_forked()) return fpInitialization; // another thread of the parent may have held the lock
  if (fp_take(&loading, fpLoadingLock)) return fp_undelivered();
  if (!b->loaded) {
    b->error = fp_load_wrapper(b->wrapper, &b->handle);
    for (struct managed *m = b->managed; m; m = m->next) {
      u64 where[2] = {0, 0};
      if (!b->error && !fp_symbol(b->handle, m->name, where))
        *m->host = (void *)where[0];
      else
        *m->host = calloc(1, m->size ? m->size : 1); // so that the program can continue without a device
    }
    __atomic_store_n(&b->loaded, 1, __ATOMIC_RELEASE);
  }
  int e = b->error;
  fp_give(&loading, fpLoadingLock);
  return e;
}

// forget_modules causes all modules to be loaded again when they are next needed, because the device was reset.
static void forget_modules(void) {
  if (fp_take(&loading, fpLoadingLock)) return;
  fp_take(&registry, fpRegistryLock);
  for (struct binary *b = binaries; b; b = b->next) b->loaded = 0;
  for (size_t i = 0; i < table_size; i++)
    for (struct entity *e = table[i]; e; e = e->next) e->known = e->kernel.found = 0;
  fp_give(&registry, fpRegistryLock);
  fp_give(&loading, fpLoadingLock);
}

EXPORT char __cudaInitModule(void **handle) {
  if (handle) finish(load((struct binary *)handle));
  return 1;
}

EXPORT void __cudaUnregisterFatBinary(void **handle) {
  struct binary *b = (struct binary *)handle;
  if (!b) return;
  fp_take(&registry, fpRegistryLock);
  b->dead = 1;
  fp_give(&registry, fpRegistryLock);
  if (b->loaded && !b->error) fp_request(FP_UnloadModule, &b->handle, 1, NULL, 0);
}

// entity_of returns the kernel of a host function or of a kernel handle, or NULL if there is none.
static struct entity *entity_of(const void *f) {
  struct entity *e = f ? find_entity(f, 1) : NULL;
  if (!e && f) { // a cudaKernel_t is the entity itself
    for (size_t i = 0; i < table_size && !e; i++)
      for (struct entity *c = table[i]; c && !e; c = c->next)
        if (c == f && c->is_kernel) e = c;
  }
  return e;
}

// kernel_of finds the kernel of a host function or of a kernel handle, and loads it.
static int kernel_of(const void *f, struct entity **found) {
  struct entity *e = entity_of(f);
  if (!e) return fp_absent() ? fpNoDevice : fpInvalidDeviceFunction;
  int error = load(e->binary);
  if (error && !e->binary->handle) return error;
  e->kernel.module = e->binary->handle, e->kernel.name = e->name, e->kernel.host = e->host;
  *found = e;
  return fp_find_kernel(&e->kernel);
}

EXPORT int __cudaGetKernel(void **kernel, const void *f) {
  struct entity *e = find_entity(f, 1);
  if (!e) return finish(fpInvalidDeviceFunction);
  *kernel = e;
  return 0;
}

// The driver API takes the kernel as one of its own, so it is looked up here and not when it is launched.
EXPORT int cudaGetKernel(void **kernel, const void *f) {
  struct entity *e;
  int error = kernel ? kernel_of(f, &e) : fpInvalidValue;
  if (!error) *kernel = e;
  return finish(error);
}

EXPORT int cudaGetFuncBySymbol(void **function, const void *f) { return cudaGetKernel(function, f); }

EXPORT int cudaFuncGetParamCount(const void *f, size_t *count) {
  struct entity *e;
  int error = count ? kernel_of(f, &e) : fpInvalidValue;
  if (!error) *count = e->kernel.count;
  return finish(error);
}

EXPORT int cudaFuncGetParamInfo(const void *f, size_t i, size_t *offset, size_t *size) {
  struct entity *e;
  int error = offset ? kernel_of(f, &e) : fpInvalidValue;
  if (!error && i >= e->kernel.count) error = fpInvalidValue;
  if (error) return finish(error);
  *offset = e->kernel.layout[2 * i];
  if (size) *size = e->kernel.layout[2 * i + 1];
  return 0;
}

EXPORT int cudaFuncGetName(const char **name, const void *f) {
  struct entity *e;
  int error = name ? kernel_of(f, &e) : fpInvalidValue;
  if (!error) *name = e->name;
  return finish(error);
}

// Libraries. A library is one of the checker's modules, so a cudaLibrary_t is a CUlibrary too. A reset of the device
// ends it: later calls for it are refused.

// not_found converts the errors for names that a module lacks to the error of the calls for libraries.
static int not_found(int e) { return e == fpInvalidDeviceFunction || e == fpInvalidSymbol ? fpNotFound : e; }

EXPORT int cudaLibraryLoadData(void **library, const void *code, int *jit, void **jit_values, unsigned jits, int *options, void **values,
                               unsigned n) {
  (void)jit, (void)jit_values, (void)jits, (void)values;
  u64 handle = 0;
  if (fp_library_table(options, n)) return finish(fp_unsupported("cudaLibraryLoadData with a function and data table of the host"));
  int e = library && code ? fp_load_image(code, &handle) : fpInvalidValue;
  if (!e) *library = (void *)handle;
  return finish(e);
}

EXPORT int cudaLibraryLoadFromFile(void **library, const char *path, int *jit, void **jit_values, unsigned jits, int *options, void **values,
                                   unsigned n) {
  (void)jit, (void)jit_values, (void)jits, (void)values;
  u64 handle = 0;
  if (fp_library_table(options, n)) return finish(fp_unsupported("cudaLibraryLoadFromFile with a function and data table of the host"));
  int e = library && path ? fp_load_file(path, &handle) : fpInvalidValue;
  if (!e) *library = (void *)handle;
  return finish(e);
}

// cudaLibraryGetKernel makes a kernel with a handle of its own, of a binary that is loaded.
EXPORT int cudaLibraryGetKernel(void **kernel, void *library, const char *name) {
  if (!kernel || !name) return finish(fpInvalidValue);
  struct entity *e = calloc(1, sizeof *e);
  struct binary *b = calloc(1, sizeof *b);
  char *own = strdup(name);
  int error = e && b && own ? 0 : fpOutOfMemory;
  if (!error) {
    b->handle = (u64)library, b->loaded = 1;
    e->host = e, e->binary = b, e->is_kernel = 1, e->name = own;
    e->kernel.module = b->handle, e->kernel.name = own;
    error = fp_find_kernel(&e->kernel);
  }
  if (error) {
    if (e) free(e->kernel.layout);
    free(e), free(b), free(own);
    return finish(not_found(error));
  }
  add_entity(e);
  *kernel = e;
  return 0;
}

EXPORT int cudaLibraryGetGlobal(void **address, size_t *size, void *library, const char *name) {
  u64 r[2] = {0, 0};
  int e = name && (address || size) ? fp_symbol((u64)library, name, r) : fpInvalidValue;
  if (!e && address) *address = (void *)r[0];
  if (!e && size) *size = r[1];
  return finish(not_found(e));
}

// Launches.

struct dim3 {
  u32 x, y, z;
};

struct configuration {
  struct dim3 grid, block;
  size_t shared;
  void *stream;
};

enum { deepest = 64 };
THREAD struct configuration configurations[deepest];
THREAD int depth;
THREAD u64 from_configuration; // the next launch is one of <<<...>>>, whose error nobody receives

EXPORT unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared, void *stream) {
  if (depth == deepest) return fpMissingConfiguration;
  configurations[depth++] = (struct configuration){grid, block, shared, stream};
  return 0;
}

EXPORT int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void *stream) {
  if (depth == 0) return finish(fpMissingConfiguration);
  from_configuration = FP_LAUNCH_CONFIGURED;
  struct configuration c = configurations[--depth];
  *grid = c.grid, *block = c.block, *shared = c.shared;
  *(void **)stream = c.stream;
  return 0;
}

static int launch(const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared, u64 stream, u64 flags) {
  struct entity *e;
  if (fp_forked()) {
    e = entity_of(f);
    return finish(fp_refused(e ? e->name : ""));
  }
  int error = kernel_of(f, &e);
  if (error) return error;
  struct fp_launch l = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, stream, flags | from_configuration};
  from_configuration = 0;
  return fp_launch(&e->kernel, &l, args);
}

#define LAUNCH(name, flags, per_thread)                                                                              \
  EXPORT int name(const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared, void *stream) {   \
    return finish(launch(f, grid, block, args, shared, stream_of(stream, per_thread), flags));                       \
  }
LAUNCH(cudaLaunchKernel, 0, 0)
LAUNCH(cudaLaunchKernel_ptsz, 0, 1)
LAUNCH(__cudaLaunchKernel, 0, 0)
LAUNCH(__cudaLaunchKernel_ptsz, 0, 1)
LAUNCH(cudaLaunchCooperativeKernel, FP_LAUNCH_COOPERATIVE, 0)
LAUNCH(cudaLaunchCooperativeKernel_ptsz, FP_LAUNCH_COOPERATIVE, 1)

struct attribute {
  int id;
  char pad[4];
  union {
    int integer;
    struct dim3 shape;
    struct {
      u64 event;
      int flags, at_start;
    } begun;
    char space[64];
  } value;
};

struct launch_config {
  struct dim3 grid, block;
  size_t shared;
  void *stream;
  struct attribute *attributes;
  unsigned count;
};

static int launch_config(const struct launch_config *c, const void *f, void **args, int per_thread) {
  u64 flags = 0, begun = 0, of = 0;
  if (!c) return fpInvalidValue;
  for (unsigned i = 0; i < c->count; i++) {
    const struct attribute *a = &c->attributes[i];
    switch (a->id) {
      case 2:
        if (a->value.integer) flags |= FP_LAUNCH_COOPERATIVE;
        break;
      case 4: // cluster dimension
        flags |= fp_cluster(a->value.shape.x, a->value.shape.y, a->value.shape.z);
        break;
      case 6: // programmatic stream serialization
        if (a->value.integer) flags |= FP_LAUNCH_PROGRAMMATIC;
        break;
      case 7: // programmatic event
        begun = a->value.begun.event, of = a->value.begun.at_start ? FP_RECORD_TRIGGER_AT_START : FP_RECORD_TRIGGER;
        break;
      case 12: // launch completion event
        begun = a->value.begun.event, of = FP_RECORD_BEGIN;
        break;
      default: // hints
        break;
    }
  }
  const u64 stream = stream_of(c->stream, per_thread);
  int e = begun ? fp_begun(begun, stream, flags, of) : 0;
  return e ? e : launch(f, c->grid, c->block, args, c->shared, stream, flags);
}

EXPORT int cudaLaunchKernelExC(const struct launch_config *c, const void *f, void **args) { return finish(launch_config(c, f, args, 0)); }
EXPORT int cudaLaunchKernelExC_ptsz(const struct launch_config *c, const void *f, void **args) { return finish(launch_config(c, f, args, 1)); }

struct function_attributes {
  size_t shared, constant, local;
  int threads, registers, ptx, binary, cache, dynamic, carveout, rest[18];
};

EXPORT int cudaFuncGetAttributes(struct function_attributes *a, const void *f) {
  struct entity *e;
  u64 r[9];
  int error = a ? kernel_of(f, &e) : fpInvalidValue;
  if (!error) error = fp_request(FP_FuncAttributes, &e->kernel.handle, 1, r, 9);
  if (error) return finish(error);
  memset(a, 0, sizeof *a);
  a->shared = r[0], a->constant = r[1], a->local = r[2], a->threads = (int)r[3], a->registers = (int)r[4];
  a->ptx = (int)r[5], a->binary = (int)r[6], a->dynamic = (int)r[7], a->carveout = (int)r[8];
  return 0;
}

EXPORT int cudaFuncSetAttribute(const void *f, int attribute, int value) {
  struct entity *e;
  int error = kernel_of(f, &e);
  if (error) return finish(error);
  const u64 args[3] = {e->kernel.handle, (u64)attribute, (u64)value};
  return finish(fp_request(FP_FuncSetAttribute, args, 3, NULL, 0));
}

EXPORT int cudaKernelSetAttributeForDevice(const void *f, int attribute, int value, int device) {
  int now, e = fp_devices(&now, NULL);
  if (e) return finish(e);
  if (device != now) return finish(fp_unsupported("cudaKernelSetAttributeForDevice of a device that is not the current one"));
  return cudaFuncSetAttribute(f, attribute, value);
}

EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *f, int threads, size_t shared, unsigned flags) {
  struct entity *e;
  u64 r = 0;
  (void)flags;
  int error = blocks && threads > 0 ? kernel_of(f, &e) : fpInvalidValue;
  if (!error) error = fp_request(FP_Occupancy, (const u64[]){e->kernel.handle, (u64)threads, shared}, 3, &r, 1);
  if (!error) *blocks = (int)r;
  return finish(error);
}

EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, 0);
}

// clusters returns how many clusters of a launch are resident at a time, and how many blocks the largest one has.
static int clusters(const struct launch_config *c, const void *f, u64 r[2]) {
  struct entity *e;
  u64 shape = 0;
  int error = c ? kernel_of(f, &e) : fpInvalidValue;
  if (error) return error;
  for (unsigned i = 0; i < c->count; i++) {
    const struct attribute *a = &c->attributes[i];
    if (a->id == 4) shape = fp_cluster(a->value.shape.x, a->value.shape.y, a->value.shape.z);
  }
  const u64 threads = (u64)c->block.x * c->block.y * c->block.z;
  return fp_request(FP_ClusterOccupancy, (const u64[]){e->kernel.handle, threads, c->shared, shape}, 4, r, 2);
}

EXPORT int cudaOccupancyMaxActiveClusters(int *n, const void *f, const struct launch_config *c) {
  u64 r[2];
  int error = n ? clusters(c, f, r) : fpInvalidValue;
  if (!error) *n = (int)r[0];
  return finish(error);
}

EXPORT int cudaOccupancyMaxPotentialClusterSize(int *blocks, const void *f, const struct launch_config *c) {
  u64 r[2];
  int error = blocks ? clusters(c, f, r) : fpInvalidValue;
  if (!error) *blocks = (int)r[1];
  return finish(error);
}

EXPORT int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *f, int blocks, int threads) {
  struct entity *e;
  int error = kernel_of(f, &e);
  return finish(error ? error : fp_dynamic_shared(e->kernel.handle, blocks, threads, bytes));
}

static int host_function(u64 stream, void (*f)(void *), void *data) {
  return fp_host_call(stream, &(struct fp_work){.type = fpHostNode, .call = f, .data = data});
}

EXPORT int cudaLaunchHostFunc(void *s, void (*f)(void *), void *data) { return finish(host_function(stream_of(s, 0), f, data)); }
EXPORT int cudaLaunchHostFunc_ptsz(void *s, void (*f)(void *), void *data) { return finish(host_function(stream_of(s, 1), f, data)); }
EXPORT int cudaLaunchHostFunc_v2(void *s, void (*f)(void *), void *data, unsigned mode) {
  (void)mode;
  return cudaLaunchHostFunc(s, f, data);
}
EXPORT int cudaLaunchHostFunc_v2_ptsz(void *s, void (*f)(void *), void *data, unsigned mode) {
  (void)mode;
  return cudaLaunchHostFunc_ptsz(s, f, data);
}

typedef void callback(void *stream, int status, void *data);

static int add_callback(void *s, int per_thread, callback *f, void *data, unsigned flags) {
  if (flags) return fpInvalidValue;
  return fp_host_call(stream_of(s, per_thread), &(struct fp_work){.type = fpHostNode, .callback = f, .data = data, .object = (u64)s});
}

EXPORT int cudaStreamAddCallback(void *s, callback *f, void *data, unsigned flags) {
  return finish(add_callback(s, 0, f, data, flags));
}
EXPORT int cudaStreamAddCallback_ptsz(void *s, callback *f, void *data, unsigned flags) {
  return finish(add_callback(s, 1, f, data, flags));
}

#include "cudart_memory.h"
#include "cudart_array.h"
#include "cudart_device.h"
#include "cudart_graph.h"
#include "batch.h"
#include "hints.h"
#include "ipc.h"
#include "pool.h"

EXPORT int cudaIpcOpenMemHandle(u64 *p, struct ipc_handle h, unsigned flags) { return finish(ipc_open_memory(p, &h, flags)); }

EXPORT int cudaMallocFromPoolAsync(u64 *p, size_t n, u64 pool, void *s) { return finish(pool_malloc(p, n, pool, stream_of(s, 0))); }
EXPORT int cudaMallocFromPoolAsync_ptsz(u64 *p, size_t n, u64 pool, void *s) { return finish(pool_malloc(p, n, pool, stream_of(s, 1))); }
