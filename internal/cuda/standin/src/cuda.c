// cuda.c: the driver API, based on bottom.h like the runtime API. Names are those of the binary interface: cuMemAlloc
// of cuda.h is cuMemAlloc_v2 here.
#include "bottom.h"

// driver_code converts error codes that only the runtime API has to those of the driver API.
static int driver_code(int e) {
  switch (e) {
    case 9: case 12: case 21: return fpInvalidValue;
    case 13: case 98: return fpNotFound;
  }
  return e;
}

static int finish_call(int e, const char *name) {
  int sticky = e == 700 || e == 702 || e == 710 || (e >= 714 && e <= 719);
  if (e && e != 600 && e != fpNotSupported && !sticky) fp_failed(e, name, NULL);
  return driver_code(e);
}

#define finish(e) finish_call(e, __func__)

// The contexts of the calling thread.
static char contexts[64];
THREAD void *stack[32] = {NULL};
THREAD int top;
THREAD int anywhere; // the calls of this thread need no context

// initialized reports whether this library is initialised. The runtime library may have initialised it before this
// library connected to the checker.
static int initialized(void) {
  if (!fp.alias && !fp_forked() && !fp_begin()) fp_end();
  return fp_shared() && fp_shared()->initialized;
}
static int in_context(void) { return !initialized() ? fpInitialization : stack[top] || fp_runtime_context(-1) ? 0 : fpInvalidContext; }

// fp_admit refuses requests before cuInit, or without a context.
static int fp_admit(u32 op) {
  switch (op) {
    case FP_Mapped: case FP_Output: case FP_Failed: case FP_Looked: case FP_Unsupported: case FP_Operator: case FP_Argument: case FP_Findings: case FP_Source:
    case FP_HostFunc: case FP_HostAccess:
      return 0;
  }
  if (anywhere || fp_executing || !fp_in_context(op)) return initialized() ? 0 : fpInitialization;
  return in_context();
}

static u64 stream_of(const void *s, int per_thread) {
  if (s) return (u64)s;
  return per_thread ? FP_STREAM_PER_THREAD : FP_STREAM_LEGACY;
}

static int present(void) {
  int value;
  return fp_attribute(1, &value);
}

#include "gen_errors.h"
#include "gen_forward_driver.h"
#include "gen_unsupported_driver.h"

static int error_text(int code, const char **text, int name) {
  if (!text) return fpInvalidValue;
  if (code) fp_looked(code);
  for (size_t i = 0; i < sizeof fp_errors / sizeof *fp_errors; i++) {
    const struct fp_error *e = &fp_errors[i];
    if (e->code == (u32)code && *e->driver) {
      *text = name ? e->driver : e->text;
      return 0;
    }
  }
  *text = NULL;
  return fpInvalidValue;
}

EXPORT int cuGetErrorName(int code, const char **text) { return error_text(code, text, 1); }
EXPORT int cuGetErrorString(int code, const char **text) { return error_text(code, text, 0); }

// Devices and contexts. Every context is the primary context of its device. The device of the current context is also
// that of the runtime API.

EXPORT int cuInit(unsigned flags) {
  int e = flags ? fpInvalidValue : fp_begin();
  if (e) return e;
  if (fp_shared()) fp_shared()->initialized = 1;
  fp_end();
  return present();
}

EXPORT int cuDriverGetVersion(int *version) {
  if (!version) return fpInvalidValue;
  *version = 13050;
  return 0;
}

static int check_device(int device) {
  int n = 0, e = initialized() ? fp_devices(NULL, &n) : fpInitialization;
  return e ? e : device < 0 || device >= n ? fpInvalidDevice : 0;
}

EXPORT int cuDeviceGetCount(int *n) {
  int e = !n ? fpInvalidValue : initialized() ? fp_devices(NULL, n) : fpInitialization;
  if (n && e) *n = 0;
  return e == fpNoDevice ? 0 : e;
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
  int e = device ? check_device(ordinal) : fpInvalidValue;
  if (!e) *device = ordinal;
  return e;
}
EXPORT int cuDeviceGetName(char *name, int n, int device) {
  if (!name || n <= 0) return fpInvalidValue;
  snprintf(name, (size_t)n, "Fencepost emulated GPU");
  return check_device(device);
}
EXPORT int cuDeviceGetUuid(char *uuid, int device) {
  if (!uuid) return fpInvalidValue;
  memcpy(uuid, "fencepost-device", 16);
  uuid[15] = (char)(uuid[15] + device);
  return check_device(device);
}
EXPORT int cuDeviceGetUuid_v2(char *uuid, int device) { return cuDeviceGetUuid(uuid, device); }
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  u64 r[2];
  int e = bytes ? check_device(device) : fpInvalidValue;
  anywhere = 1;
  if (!e) e = fp_request(FP_MemInfo, NULL, 0, r, 2);
  anywhere = 0;
  if (!e) *bytes = r[1];
  return e;
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int e = value ? check_device(device) : fpInvalidValue;
  return e ? e : fp_attribute(attribute, value);
}
EXPORT int cuDeviceComputeCapability(int *major, int *minor, int device) {
  int e = cuDeviceGetAttribute(major, 75, device);
  return e ? e : cuDeviceGetAttribute(minor, 76, device);
}
EXPORT int cuDeviceCanAccessPeer(int *can, int a, int b) {
  u64 r = 0;
  int e = can ? check_device(a) : fpInvalidValue;
  if (!e) e = check_device(b);
  if (!e && a != b) e = fp_request(FP_DeviceCanAccessPeer, (const u64[]){(u64)a, (u64)b}, 2, &r, 1);
  if (can) *can = (int)r;
  return e;
}
EXPORT int cuDeviceGetPCIBusId(char *text, int n, int device) {
  if (!text || n < 13) return fpInvalidValue;
  snprintf(text, (size_t)n, "0000:%02x:00.0", (unsigned)device & 0xff);
  return check_device(device);
}

EXPORT int cuDevicePrimaryCtxRetain(void **c, int device) {
  int e = c ? check_device(device) : fpInvalidValue;
  if (!e) *c = &contexts[device];
  return e;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) { return check_device(device); }
EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  (void)flags;
  return check_device(device);
}
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  if (flags) *flags = 0;
  if (active) *active = top > 0 || stack[0] || fp_runtime_context(-1);
  return check_device(device);
}
EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
  int now, e = check_device(device);
  if (!e) e = fp_devices(&now, NULL);
  if (!e && now != device) return fp_unsupported("cuDevicePrimaryCtxReset of a device that is not the current one");
  return e ? e : fp_request(FP_DeviceReset, NULL, 0, NULL, 0);
}

// make_current makes the device of the context at the top of the stack the current one.
static int make_current(void) {
  int now, e = fp_devices(&now, NULL);
  if (e || !stack[top]) return e;
  int device = (int)((char *)stack[top] - contexts);
  return now == device ? 0 : fp_request(FP_SetDevice, (const u64[]){(u64)device}, 1, NULL, 0);
}

// refresh sets the top of the stack to the context of the current device, which the runtime API may have changed.
static int refresh(void) {
  int now, e = fp_devices(&now, NULL);
  if (!e && (stack[top] || fp_runtime_context(-1))) stack[top] = &contexts[now];
  return e;
}

// set_top sets the context of this thread, or none. This is also that of the runtime API, which makes its own again
// when it needs one.
static void set_top(void *c) {
  stack[top] = c;
  if (!c) fp_runtime_context(0);
}

static int is_context(const char *c) { return c >= contexts && c < contexts + sizeof contexts && !check_device((int)(c - contexts)); }

EXPORT int cuCtxSetCurrent(void *c) {
  if (!initialized()) return fpInitialization;
  if (c && !is_context(c)) return fpInvalidContext;
  set_top(c);
  return make_current();
}
EXPORT int cuCtxGetCurrent(void **c) {
  if (!c) return fpInvalidValue;
  int e = refresh();
  *c = stack[top];
  return e;
}
EXPORT int cuCtxPushCurrent_v2(void *c) {
  if (!initialized()) return fpInitialization;
  if (!c || top == 31 || !is_context(c)) return fpInvalidContext;
  int e = refresh();
  if (e) return e;
  stack[++top] = c;
  return make_current();
}
EXPORT int cuCtxPopCurrent_v2(void **c) {
  int e = in_context();
  if (!e) e = refresh();
  if (e) return e;
  if (c) *c = stack[top];
  if (top > 0)
    stack[top--] = NULL;
  else
    set_top(NULL);
  return make_current();
}
EXPORT int cuCtxCreate_v2(void **c, unsigned flags, int device) {
  (void)flags;
  int e = cuDevicePrimaryCtxRetain(c, device);
  return e ? e : cuCtxPushCurrent_v2(*c);
}
EXPORT int cuCtxCreate_v3(void **c, void *affinity, int n, unsigned flags, int device) {
  (void)affinity, (void)n;
  return cuCtxCreate_v2(c, flags, device);
}
EXPORT int cuCtxCreate_v4(void **c, void *params, unsigned flags, int device) {
  (void)params;
  return cuCtxCreate_v2(c, flags, device);
}
EXPORT int cuCtxDestroy_v2(void *c) {
  if (c == stack[top]) cuCtxPopCurrent_v2(NULL);
  return present();
}
EXPORT int cuCtxGetDevice(int *device) {
  if (!device) return fpInvalidValue;
  *device = 0;
  int e = in_context();
  return e ? e : fp_devices(device, NULL);
}
EXPORT int cuCtxGetFlags(unsigned *flags) {
  if (!flags) return fpInvalidValue;
  *flags = 0;
  return in_context();
}
EXPORT int cuCtxGetApiVersion(void *c, unsigned *version) {
  (void)c;
  if (!version) return fpInvalidValue;
  *version = 13050;
  return present();
}
EXPORT int cuCtxGetLimit(size_t *value, int limit) {
  static const size_t limits[8] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};
  if (!value || limit < 0 || limit > 7) return fpInvalidValue;
  *value = limits[limit];
  return in_context();
}
EXPORT int cuCtxGetCacheConfig(int *config) {
  if (!config) return fpInvalidValue;
  *config = 0;
  return in_context();
}
EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return in_context();
}

// Modules and kernels. A module handle is one of the checker, and a function handle is a struct fp_kernel.

static int load_image(void **module, const char *image) {
  u64 handle = 0;
  int e = module && image ? fp_load_image(image, &handle) : fpInvalidValue;
  if (!e) *module = (void *)handle;
  return e;
}

static int load_file(void **module, const char *path) {
  u64 handle = 0;
  int e = module && path ? fp_load_file(path, &handle) : fpInvalidValue;
  if (!e) *module = (void *)handle;
  return e;
}

EXPORT int cuModuleLoadData(void **module, const void *image) {
  int e = in_context();
  return finish(e ? e : load_image(module, image));
}
EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values) {
  (void)n, (void)options, (void)values;
  int e = in_context();
  return finish(e ? e : load_image(module, image));
}
EXPORT int cuModuleLoadFatBinary(void **module, const void *image) {
  int e = in_context();
  return finish(e ? e : load_image(module, image));
}

EXPORT int cuModuleLoad(void **module, const char *path) {
  int e = in_context();
  return finish(e ? e : load_file(module, path));
}

// Modules are loaded as a whole.
EXPORT int cuModuleGetLoadingMode(int *mode) {
  if (!mode) return finish(fpInvalidValue);
  *mode = 1; // CU_MODULE_EAGER_LOADING
  return 0;
}
EXPORT int cuFuncIsLoaded(int *state, struct fp_kernel *k) {
  if (!state || !k) return finish(fpInvalidValue);
  *state = 1; // CU_FUNCTION_LOADING_STATE_LOADED
  return 0;
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name) {
  if (!function || !name) return fpInvalidValue;
  struct fp_kernel *k = calloc(1, sizeof *k);
  if (!k) return fpOutOfMemory;
  k->module = (u64)module, k->name = strdup(name);
  int e = fp_find_kernel(k);
  if (e) {
    free((void *)k->name);
    free(k->layout);
    free(k);
    return finish(e);
  }
  *function = k;
  return 0;
}

EXPORT int cuModuleGetGlobal_v2(u64 *address, size_t *size, void *module, const char *name) {
  u64 r[2] = {0, 0};
  int e = name ? fp_symbol((u64)module, name, r) : fpInvalidValue;
  if (!e && address) *address = r[0];
  if (!e && size) *size = r[1];
  return finish(e);
}

EXPORT int cuFuncGetName(const char **name, struct fp_kernel *k) {
  if (!name || !k) return fpInvalidValue;
  *name = k->name;
  return 0;
}
EXPORT int cuFuncGetModule(void **module, struct fp_kernel *k) {
  if (!module || !k) return fpInvalidValue;
  *module = (void *)k->module;
  return 0;
}
EXPORT int cuFuncGetAttribute(int *value, int attribute, struct fp_kernel *k) {
  // The order of the checker's results, by attribute number.
  static const signed char place[] = {3, 0, 1, 2, 4, 5, 6, -1, 7, 8};
  u64 r[9];
  if (!value || !k || attribute < 0 || attribute > 9) return fpInvalidValue;
  int e = fp_request(FP_FuncAttributes, &k->handle, 1, r, 9);
  if (!e) *value = place[attribute] < 0 ? 0 : (int)r[place[attribute]];
  return finish(e);
}
EXPORT int cuFuncSetAttribute(struct fp_kernel *k, int attribute, int value) {
  if (!k) return fpInvalidHandle;
  return finish(fp_request(FP_FuncSetAttribute, (const u64[]){k->handle, (u64)attribute, (u64)value}, 3, NULL, 0));
}

EXPORT int cuFuncGetParamCount(struct fp_kernel *k, size_t *count) {
  if (!k || !count) return fpInvalidValue;
  *count = k->count;
  return 0;
}
EXPORT int cuFuncGetParamInfo(struct fp_kernel *k, size_t i, size_t *offset, size_t *size) {
  if (!k || !offset || i >= k->count) return fpInvalidValue;
  *offset = k->layout[2 * i];
  if (size) *size = k->layout[2 * i + 1];
  return 0;
}

// The linker of the driver. PTX texts are kept, and linked when the image is loaded.

struct linker {
  struct fp_linked ptx;
};

EXPORT int cuLinkCreate_v2(unsigned n, int *options, void **values, struct linker **l) {
  (void)n, (void)options, (void)values;
  if (!l) return fpInvalidValue;
  *l = calloc(1, sizeof **l);
  return *l ? present() : fpOutOfMemory;
}

static int link_add(struct linker *l, int type, const char *text, size_t size, const char *name) {
  enum { ptx = 1 };
  if (!l) return fpInvalidHandle;
  if (fp_link_runtime(name)) return fp_link_device_runtime(&l->ptx) ? 0 : fpOutOfMemory;
  if (type != ptx || !text) return fp_unsupported("cuLinkAddData or cuLinkAddFile with an input that is no PTX");
  return fp_link(&l->ptx, text, size) ? 0 : fpOutOfMemory;
}

EXPORT int cuLinkAddData_v2(struct linker *l, int type, void *data, size_t size, const char *name, unsigned n, int *options, void **values) {
  (void)n, (void)options, (void)values;
  return finish(link_add(l, type, data, size, name));
}

EXPORT int cuLinkAddFile_v2(struct linker *l, int type, const char *path, unsigned n, int *options, void **values) {
  (void)n, (void)options, (void)values;
  if (!l || !path) return fpInvalidValue;
  if (fp_link_runtime(path)) return finish(fp_link_device_runtime(&l->ptx) ? 0 : fpOutOfMemory);
  size_t size;
  char *text = fp_link_read(path, &size);
  int e = text ? link_add(l, type, text, size, path) : access(path, R_OK) ? fpFileNotFound : fpInvalidImage;
  free(text);
  return finish(e);
}

EXPORT int cuLinkComplete(struct linker *l, void **image, size_t *size) {
  size_t n;
  if (!l || !image) return fpInvalidValue;
  if (!l->ptx.texts) return finish(fpInvalidImage);
  *image = (void *)fp_link_image(&l->ptx, &n);
  if (size) *size = n;
  return 0;
}

EXPORT int cuLinkDestroy(struct linker *l) {
  if (!l) return fpInvalidHandle;
  free(l->ptx.data);
  free(l);
  return 0;
}

// Libraries. There is one context, so a library is its one module, and a kernel of a library is its one function. The
// handles are the same, and every call that takes a function takes such a kernel. A reset of the device ends a library
// like other modules: later calls for it are refused.

EXPORT int cuLibraryLoadData(void **library, const void *code, int *jit, void **jit_values, unsigned jits, int *options, void **values,
                             unsigned n) {
  (void)jit, (void)jit_values, (void)jits, (void)values;
  if (fp_library_table(options, n)) return fp_unsupported("cuLibraryLoadData with a function and data table of the host");
  return finish(load_image(library, code));
}
EXPORT int cuLibraryLoadFromFile(void **library, const char *path, int *jit, void **jit_values, unsigned jits, int *options, void **values,
                                 unsigned n) {
  (void)jit, (void)jit_values, (void)jits, (void)values;
  if (fp_library_table(options, n)) return fp_unsupported("cuLibraryLoadFromFile with a function and data table of the host");
  return finish(load_file(library, path));
}
EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name) { return cuModuleGetFunction(kernel, library, name); }
EXPORT int cuLibraryGetModule(void **module, void *library) {
  if (!module) return fpInvalidValue;
  if (!library) return fpInvalidHandle;
  *module = library;
  return present();
}
EXPORT int cuLibraryGetGlobal(u64 *address, size_t *size, void *library, const char *name) {
  return address || size ? cuModuleGetGlobal_v2(address, size, library, name) : fpInvalidValue;
}

EXPORT int cuKernelGetFunction(void **function, struct fp_kernel *k) {
  if (!function) return fpInvalidValue;
  if (!k) return fpInvalidHandle;
  *function = k;
  return present();
}
EXPORT int cuKernelGetLibrary(void **library, struct fp_kernel *k) { return cuFuncGetModule(library, k); }
EXPORT int cuKernelGetName(const char **name, struct fp_kernel *k) { return cuFuncGetName(name, k); }
EXPORT int cuKernelGetParamCount(struct fp_kernel *k, size_t *count) { return cuFuncGetParamCount(k, count); }
EXPORT int cuKernelGetParamInfo(struct fp_kernel *k, size_t i, size_t *offset, size_t *size) { return cuFuncGetParamInfo(k, i, offset, size); }
EXPORT int cuKernelGetAttribute(int *value, int attribute, struct fp_kernel *k, int device) {
  int e = check_device(device);
  return e ? e : cuFuncGetAttribute(value, attribute, k);
}
EXPORT int cuKernelSetAttribute(int attribute, int value, struct fp_kernel *k, int device) {
  int e = check_device(device);
  return e ? e : cuFuncSetAttribute(k, attribute, value);
}

// launch takes the parameters as pointers, or packed in a buffer (extra: 1 buffer, 2 pointer to its size, 0 end).
static int launch(struct fp_kernel *k, struct fp_launch l, void **params, void **extra) {
  if (!k) return fpInvalidHandle;
  if (params || !extra) return fp_launch(k, &l, params);
  const void *buffer = NULL;
  size_t size = 0;
  for (void **x = extra; *x; x += 2) {
    if (*x == (void *)1) buffer = x[1];
    if (*x == (void *)2) size = *(size_t *)x[1];
  }
  if (!buffer && k->size) return fpInvalidValue;
  char *block = calloc(1, k->size + 1u);
  if (!block) return fpOutOfMemory;
  memcpy(block, buffer, size < k->size ? size : k->size);
  int e = fp_launch_block(k, &l, block, k->size);
  free(block);
  return e;
}

#define LAUNCH(name, per_thread)                                                                                                \
  EXPORT int name(struct fp_kernel *k, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, void *s, void **params,      \
                  void **extra) {                                                                                               \
    return finish(launch(k, (struct fp_launch){{gx, gy, gz}, {bx, by, bz}, shared, stream_of(s, per_thread), 0}, params, extra)); \
  }
LAUNCH(cuLaunchKernel, 0)
LAUNCH(cuLaunchKernel_ptsz, 1)

#define LAUNCH_COOPERATIVE(name, per_thread)                                                                                    \
  EXPORT int name(struct fp_kernel *k, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, void *s, void **params) {    \
    return finish(launch(k, (struct fp_launch){{gx, gy, gz}, {bx, by, bz}, shared, stream_of(s, per_thread), FP_LAUNCH_COOPERATIVE}, \
                         params, NULL));                                                                                        \
  }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, 0)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, 1)

struct attribute {
  int id, pad;
  u32 value[16];
};

struct launch_config {
  u32 grid[3], block[3], shared;
  void *stream;
  struct attribute *attributes;
  unsigned count;
};

static int launch_config(const struct launch_config *c, struct fp_kernel *k, void **params, void **extra, int per_thread) {
  if (!c) return fpInvalidValue;
  struct fp_launch l = {{c->grid[0], c->grid[1], c->grid[2]}, {c->block[0], c->block[1], c->block[2]}, c->shared, stream_of(c->stream, per_thread), 0};
  u64 begun = 0, of = 0;
  for (unsigned i = 0; i < c->count; i++) {
    const struct attribute *a = &c->attributes[i];
    if (a->id == 2 && a->value[0]) l.flags |= FP_LAUNCH_COOPERATIVE;
    if (a->id == 4) l.flags |= fp_cluster(a->value[0], a->value[1], a->value[2]);
    if (a->id == 6 && a->value[0]) l.flags |= FP_LAUNCH_PROGRAMMATIC;
    if (a->id == 7 || a->id == 12) { // a programmatic event, a launch completion event
      memcpy(&begun, a->value, sizeof begun);
      of = a->id == 12 ? FP_RECORD_BEGIN : a->value[3] ? FP_RECORD_TRIGGER_AT_START : FP_RECORD_TRIGGER;
    }
  }
  int e = begun ? fp_begun(begun, l.stream, l.flags, of) : 0;
  if (e) return e;
  return launch(k, l, params, extra);
}

EXPORT int cuLaunchKernelEx(const struct launch_config *c, struct fp_kernel *k, void **p, void **x) { return finish(launch_config(c, k, p, x, 0)); }
EXPORT int cuLaunchKernelEx_ptsz(const struct launch_config *c, struct fp_kernel *k, void **p, void **x) { return finish(launch_config(c, k, p, x, 1)); }

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, struct fp_kernel *k, int threads, size_t shared, unsigned flags) {
  u64 r = 0;
  (void)flags;
  if (!blocks || !k || threads <= 0) return fpInvalidValue;
  int e = fp_request(FP_Occupancy, (const u64[]){k->handle, (u64)threads, shared}, 3, &r, 1);
  if (!e) *blocks = (int)r;
  return finish(e);
}
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct fp_kernel *k, int threads, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, k, threads, shared, 0);
}

EXPORT int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, struct fp_kernel *k, int blocks, int threads) {
  return finish(k ? fp_dynamic_shared(k->handle, blocks, threads, bytes) : fpInvalidValue);
}

// best_block finds the largest block size among those with the most resident threads, like the runtime's header.
static int best_block(int *grid, int *block, struct fp_kernel *k, size_t (*shared_of)(int), size_t shared, int limit) {
  enum { warp = 32, maxThreads = 3, multiprocessors = 16, perMultiprocessor = 39 };
  int most = 0, threads = 0, processors = 0;
  u64 r[9];
  if (!grid || !block || !k) return fpInvalidValue;
  int e = fp_request(FP_FuncAttributes, &k->handle, 1, r, 9);
  if (!e) e = fp_attribute(perMultiprocessor, &threads);
  if (!e) e = fp_attribute(multiprocessors, &processors);
  if (e) return e;
  int largest = (int)r[maxThreads];
  if (limit > 0 && limit < largest) largest = limit;
  for (int size = (largest + warp - 1) / warp * warp; size > 0 && most < threads; size -= warp) {
    int tried = size < largest ? size : largest;
    u64 blocks = 0;
    e = fp_request(FP_Occupancy, (const u64[]){k->handle, (u64)tried, shared_of ? shared_of(tried) : shared}, 3, &blocks, 1);
    if (e) return e;
    if (tried * (int)blocks > most) most = tried * (int)blocks, *block = tried, *grid = (int)blocks * processors;
  }
  return 0;
}

EXPORT int cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, struct fp_kernel *k, size_t (*shared_of)(int), size_t shared, int limit, unsigned flags) {
  (void)flags;
  return finish(best_block(grid, block, k, shared_of, shared, limit));
}
EXPORT int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, struct fp_kernel *k, size_t (*shared_of)(int), size_t shared, int limit) {
  return finish(best_block(grid, block, k, shared_of, shared, limit));
}

static int clusters(const struct launch_config *c, struct fp_kernel *k, u64 r[2]) {
  u64 shape = 0;
  if (!c || !k) return fpInvalidValue;
  for (unsigned i = 0; i < c->count; i++) {
    const struct attribute *a = &c->attributes[i];
    if (a->id == 4) shape = fp_cluster(a->value[0], a->value[1], a->value[2]);
  }
  const u64 threads = (u64)c->block[0] * c->block[1] * c->block[2];
  return fp_request(FP_ClusterOccupancy, (const u64[]){k->handle, threads, c->shared, shape}, 4, r, 2);
}

EXPORT int cuOccupancyMaxActiveClusters(int *n, struct fp_kernel *k, const struct launch_config *c) {
  u64 r[2];
  int e = n ? clusters(c, k, r) : fpInvalidValue;
  if (!e) *n = (int)r[0];
  return finish(e);
}

EXPORT int cuOccupancyMaxPotentialClusterSize(int *blocks, struct fp_kernel *k, const struct launch_config *c) {
  u64 r[2];
  int e = blocks ? clusters(c, k, r) : fpInvalidValue;
  if (!e) *blocks = (int)r[1];
  return finish(e);
}

static int host_function(void *s, int per_thread, void (*f)(void *), void *data) {
  return fp_host_call(stream_of(s, per_thread), &(struct fp_work){.type = fpHostNode, .call = f, .data = data});
}
EXPORT int cuLaunchHostFunc(void *s, void (*f)(void *), void *data) { return finish(host_function(s, 0, f, data)); }
EXPORT int cuLaunchHostFunc_ptsz(void *s, void (*f)(void *), void *data) { return finish(host_function(s, 1, f, data)); }

static int add_callback(void *s, int per_thread, void (*f)(void *, int, void *), void *data, unsigned flags) {
  if (flags) return fpInvalidValue;
  return fp_host_call(stream_of(s, per_thread), &(struct fp_work){.type = fpHostNode, .callback = f, .data = data, .object = (u64)s});
}
EXPORT int cuStreamAddCallback(void *s, void (*f)(void *, int, void *), void *data, unsigned flags) { return finish(add_callback(s, 0, f, data, flags)); }
EXPORT int cuStreamAddCallback_ptsz(void *s, void (*f)(void *, int, void *), void *data, unsigned flags) { return finish(add_callback(s, 1, f, data, flags)); }

EXPORT int cuEventElapsedTime(float *ms, void *start, void *end) {
  u64 ns = 0;
  int e = ms ? fp_request(FP_EventElapsed, (const u64[]){(u64)start, (u64)end}, 2, &ns, 1) : fpInvalidValue;
  if (!e) *ms = (float)((double)(int64_t)ns / 1e6);
  return finish(e);
}
EXPORT int cuEventElapsedTime_v2(float *ms, void *start, void *end) { return cuEventElapsedTime(ms, start, end); }

// Copies and fills: the synchronous variants for the thread's own default stream end in _ptds, the others in _ptsz.

#define COPY(name, kind)                                                                                                       \
  EXPORT int name##_v2(u64 d, u64 s, size_t n) { return finish(fp_copy_linear(d, s, n, kind, 0, FP_STREAM_LEGACY)); }          \
  EXPORT int name##_v2_ptds(u64 d, u64 s, size_t n) { return finish(fp_copy_linear(d, s, n, kind, 0, FP_STREAM_PER_THREAD)); } \
  EXPORT int name##Async_v2(u64 d, u64 s, size_t n, void *st) { return finish(fp_copy_linear(d, s, n, kind, 1, stream_of(st, 0))); } \
  EXPORT int name##Async_v2_ptsz(u64 d, u64 s, size_t n, void *st) { return finish(fp_copy_linear(d, s, n, kind, 1, stream_of(st, 1))); }
COPY(cuMemcpyHtoD, fpHostToDevice)
COPY(cuMemcpyDtoH, fpDeviceToHost)
COPY(cuMemcpyDtoD, fpDeviceToDevice)

EXPORT int cuMemcpy(u64 d, u64 s, size_t n) { return finish(fp_copy_linear(d, s, n, fpDefault, 0, FP_STREAM_LEGACY)); }
EXPORT int cuMemcpy_ptds(u64 d, u64 s, size_t n) { return finish(fp_copy_linear(d, s, n, fpDefault, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cuMemcpyAsync(u64 d, u64 s, size_t n, void *st) { return finish(fp_copy_linear(d, s, n, fpDefault, 1, stream_of(st, 0))); }
EXPORT int cuMemcpyAsync_ptsz(u64 d, u64 s, size_t n, void *st) { return finish(fp_copy_linear(d, s, n, fpDefault, 1, stream_of(st, 1))); }

struct copy_2d {
  size_t from_x, from_y;
  int from_type;
  const char *from_host;
  u64 from_device;
  struct fp_array *from_array;
  size_t from_pitch, to_x, to_y;
  int to_type;
  char *to_host;
  u64 to_device;
  struct fp_array *to_array;
  size_t to_pitch, width, height;
};

static int copy_2d(const struct copy_2d *c, int async, u64 stream) {
  if (!c) return fpInvalidValue;
  size_t from_pitch = c->from_pitch ? c->from_pitch : c->width, to_pitch = c->to_pitch ? c->to_pitch : c->width;
  u64 from = c->from_type == 1 ? (u64)c->from_host : c->from_device, to = c->to_type == 1 ? (u64)c->to_host : c->to_device;
  struct fp_box d = {to + c->to_x + c->to_y * to_pitch, to_pitch, 0}, s = {from + c->from_x + c->from_y * from_pitch, from_pitch, 0};
  int e = c->to_type == 3 ? fp_array_box(c->to_array, c->to_x, c->to_y, 0, c->width, c->height, 1, &d) : 0;
  if (!e && c->from_type == 3) e = fp_array_box(c->from_array, c->from_x, c->from_y, 0, c->width, c->height, 1, &s);
  return e ? e : fp_copy(d, s, c->width, c->height, 1, fpDefault, async, stream);
}

EXPORT int cuMemcpy2D_v2(const struct copy_2d *c) { return finish(copy_2d(c, 0, FP_STREAM_LEGACY)); }
EXPORT int cuMemcpy2DUnaligned_v2(const struct copy_2d *c) { return finish(copy_2d(c, 0, FP_STREAM_LEGACY)); }
EXPORT int cuMemcpy2D_v2_ptds(const struct copy_2d *c) { return finish(copy_2d(c, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cuMemcpy2DUnaligned_v2_ptds(const struct copy_2d *c) { return finish(copy_2d(c, 0, FP_STREAM_PER_THREAD)); }
EXPORT int cuMemcpy2DAsync_v2(const struct copy_2d *c, void *s) { return finish(copy_2d(c, 1, stream_of(s, 0))); }
EXPORT int cuMemcpy2DAsync_v2_ptsz(const struct copy_2d *c, void *s) { return finish(copy_2d(c, 1, stream_of(s, 1))); }

static int fill(u64 d, size_t pitch, u32 v, u32 size, size_t w, size_t h, int async, u64 stream) {
  return fp_fill((struct fp_box){d, pitch, 0}, v, size, fp_times(w, size), h, 1, async, stream);
}

#define FILL(bits, type)                                                                                                      \
  EXPORT int cuMemsetD##bits##_v2(u64 d, type v, size_t n) { return finish(fill(d, 0, v, bits / 8, n, 1, 0, FP_STREAM_LEGACY)); }     \
  EXPORT int cuMemsetD##bits##_v2_ptds(u64 d, type v, size_t n) { return finish(fill(d, 0, v, bits / 8, n, 1, 0, FP_STREAM_PER_THREAD)); } \
  EXPORT int cuMemsetD##bits##Async(u64 d, type v, size_t n, void *s) { return finish(fill(d, 0, v, bits / 8, n, 1, 1, stream_of(s, 0))); } \
  EXPORT int cuMemsetD##bits##Async_ptsz(u64 d, type v, size_t n, void *s) { return finish(fill(d, 0, v, bits / 8, n, 1, 1, stream_of(s, 1))); } \
  EXPORT int cuMemsetD2D##bits##_v2(u64 d, size_t pitch, type v, size_t w, size_t h) {                                        \
    return finish(fill(d, pitch, v, bits / 8, w, h, 0, FP_STREAM_LEGACY));                                                            \
  }                                                                                                                           \
  EXPORT int cuMemsetD2D##bits##Async(u64 d, size_t pitch, type v, size_t w, size_t h, void *s) {                             \
    return finish(fill(d, pitch, v, bits / 8, w, h, 1, stream_of(s, 0)));                                                             \
  }                                                                                                                           \
  EXPORT int cuMemsetD2D##bits##_v2_ptds(u64 d, size_t pitch, type v, size_t w, size_t h) {                                   \
    return finish(fill(d, pitch, v, bits / 8, w, h, 0, FP_STREAM_PER_THREAD));                                                        \
  }                                                                                                                           \
  EXPORT int cuMemsetD2D##bits##Async_ptsz(u64 d, size_t pitch, type v, size_t w, size_t h, void *s) {                        \
    return finish(fill(d, pitch, v, bits / 8, w, h, 1, stream_of(s, 1)));                                                             \
  }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

EXPORT int cuMemAllocPitch_v2(u64 *p, size_t *pitch, size_t width, size_t height, unsigned element) {
  (void)element;
  size_t row = (width + 511) & ~(size_t)511;
  u64 r = 0;
  if (!p || !pitch || row < width || !row || height > (1ul << 47) / row) return fpInvalidValue;
  int e = fp_request(FP_Malloc, (const u64[]){row * height, FP_KIND_DEVICE}, 2, &r, 1);
  if (!e) *p = r, *pitch = row;
  return finish(e);
}

static int place_of(u64 p, u64 place[5]) { return fp_request(FP_Pointer, &p, 1, place, 5); }

EXPORT int cuMemGetAddressRange_v2(u64 *base, size_t *size, u64 p) {
  u64 x[5];
  int e = place_of(p, x);
  if (e || !x[0]) return e ? e : fpNotFound;
  if (base) *base = x[1];
  if (size) *size = x[2];
  return 0;
}
EXPORT int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) {
  (void)flags;
  return finish(fp_register(p, n));
}
EXPORT int cuMemHostUnregister(void *p) { return finish(fp_unregister((u64)p)); }
EXPORT int cuMemHostGetDevicePointer_v2(u64 *d, void *p, unsigned flags) {
  u64 x[5];
  int e = d && !flags ? place_of((u64)p, x) : fpInvalidValue;
  if (!e && x[0] != 1 && x[0] != 3) e = fpInvalidValue;
  if (!e) *d = (u64)p;
  return e;
}
EXPORT int cuMemHostGetFlags(unsigned *flags, void *p) {
  u64 x[5];
  int e = flags ? place_of((u64)p, x) : fpInvalidValue;
  if (!e && x[0] != 1) e = fpInvalidValue;
  if (!e) *flags = (unsigned)x[3];
  return e;
}

static int pointer_attribute(void *value, int attribute, u64 p) {
  u64 x[5];
  int e = value ? place_of(p, x) : fpInvalidValue;
  if (e) return e;
  if (!x[0]) return fpInvalidValue;
  unsigned type = x[0] == 1 ? 1 : 2; // host or device; managed memory counts as device memory
  void *context = &contexts[x[4]];
  unsigned managed = x[0] == 3, device = (unsigned)x[4], one = 1;
  switch (attribute) {
    case 1: memcpy(value, &context, sizeof context); return 0;
    case 2: memcpy(value, &type, sizeof type); return 0;
    case 3: memcpy(value, &p, sizeof p); return 0;
    case 4:
      if (x[0] == 2) return fpInvalidValue;
      memcpy(value, &p, sizeof p);
      return 0;
    case 8: memcpy(value, &managed, sizeof managed); return 0;
    case 9: memcpy(value, &device, sizeof device); return 0;
    case 11: memcpy(value, &x[1], sizeof x[1]); return 0;
    case 12: memcpy(value, &x[2], sizeof x[2]); return 0;
    case 13: memcpy(value, &one, sizeof one); return 0;
  }
  return fpNotSupported;
}
EXPORT int cuPointerGetAttribute(void *value, int attribute, u64 p) { return pointer_attribute(value, attribute, p); }
EXPORT int cuPointerGetAttributes(unsigned n, int *attributes, void **values, u64 p) {
  for (unsigned i = 0; i < n; i++) {
    unsigned zero = 0;
    if (pointer_attribute(values[i], attributes[i], p)) memcpy(values[i], &zero, sizeof zero);
  }
  return present();
}

EXPORT int cuDeviceGetGraphMemAttribute(int device, int a, u64 *value) { return finish(fp_graph_memory(device, a, value, 0)); }
EXPORT int cuDeviceSetGraphMemAttribute(int device, int a, u64 *value) { return finish(fp_graph_memory(device, a, value, 1)); }

#include "cuda_graph.h"
#include "cuda_value.h"
#include "cuda_virtual.h"
#include "cuda_array.h"
#include "batch.h"
#include "hints.h"
#include "ipc.h"
#include "pool.h"
#include "cuda_copy.h"

EXPORT int cuIpcOpenMemHandle(u64 *p, struct ipc_handle h, unsigned flags) { return finish(ipc_open_memory(p, &h, flags)); }
EXPORT int cuIpcOpenMemHandle_v2(u64 *p, struct ipc_handle h, unsigned flags) { return finish(ipc_open_memory(p, &h, flags)); }

// Functions that only this library has, for Fencepost's Python code.

// fencepostHostAddress returns the address at which the host may access device memory.
EXPORT void *fencepostHostAddress(u64 p) {
  if (fp_begin()) return NULL;
  void *at = fp_host(p);
  fp_end();
  return at;
}

// fencepostOperator reports an operation that the host computes in place of a stream. boxes holds 7 numbers for each
// box that the operation touches, as the request needs them. The caller moves the bytes afterwards.
EXPORT int fencepostOperator(const char *name, void *stream, const u64 *boxes, size_t n) {
  const u64 args[1] = {stream_of(stream, 0)};
  struct fp_capture *capture;
  if (fp_capturing() && fp_branch_of(args[0], &capture)) {
    capture->invalid = 1;
    return fp_unsupported("an operator computed on the host in a stream that captures");
  }
  size_t head = strlen(name) + 1, size = head + n * 7 * sizeof(u64);
  char *blob = malloc(size);
  if (!blob) return fpOutOfMemory;
  memcpy(blob, name, head);
  memcpy(blob + head, boxes, size - head);
  fp_stand();
  int e = fp_behind(FP_Operator, args);
  if (!e) e = fp_begin();
  if (!e) {
    struct fp_call c = {.op = FP_Operator, .blob = blob, .blob_size = size};
    e = fp_exchange(&c, args, 1);
    fp_end();
  }
  free(blob);
  return finish_call(e, name);
}

// fencepostCompute is fencepostOperator for Fencepost's libraries that compute for the device. It also makes the
// computation: compute gets a function that returns the addresses at which the host may access memory.
EXPORT int fencepostCompute(const char *name, void *stream, const u64 *boxes, size_t n, void (*compute)(void *, char *(*)(u64)), void *data) {
  int e = fencepostOperator(name, stream, boxes, n);
  if (e || (e = fp_begin())) return e;
  compute(data, fp_host);
  fp_end();
  return 0;
}

// fencepostHostAccess reports that host code called name accesses n bytes of memory that kernels can access. It returns
// 1 if there is work that the host has not waited for, otherwise 0.
EXPORT int fencepostHostAccess(const char *name, u64 address, u64 n, int write) {
  const u64 args[3] = {address, n, (u64)write};
  fp_stand();
  if (fp_begin()) return 0;
  struct fp_call c = {.op = FP_HostAccess, .blob = name, .blob_size = strlen(name)};
  fp_exchange(&c, args, 3);
  int unawaited = fp.unawaited != 0;
  fp_end();
  return unawaited;
}

// fencepostArgument names n bytes for the next launch of this thread.
EXPORT int fencepostArgument(const char *name, u64 address, u64 n, u64 element) {
  const u64 args[3] = {address, n, element};
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_Argument, .blob = name, .blob_size = strlen(name)};
  e = fp_exchange(&c, args, 3);
  fp_end();
  return e;
}

// fencepostSource passes on a text from which code was compiled: its name, a newline, and the text.
EXPORT int fencepostSource(const char *source) {
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_Source, .blob = source, .blob_size = strlen(source)};
  e = fp_exchange(&c, NULL, 0);
  fp_end();
  return e;
}

// fencepostFindings returns the findings since the last call of this process, as JSON that the caller frees. It returns
// NULL in a forked child that cannot use CUDA.
EXPORT int fencepostFindings(char **text, size_t *size) {
  *text = NULL, *size = 0;
  if (fp_forked()) return 0;
  int e = fp_begin();
  if (e) return e;
  void *reply = NULL;
  struct fp_call c = {.op = FP_Findings, .reply = &reply, .reply_size = size};
  e = fp_exchange(&c, NULL, 0);
  fp_end();
  *text = reply;
  return e;
}

// fencepostUnsupported reports to the checker that the call called name is not supported.
EXPORT void fencepostUnsupported(const char *name) { fp_unsupported(name); }

// A CUtensorMap is opaque, and the checker makes its bytes. arrays holds the sizes, strides, box, element strides, and
// the two corners of im2col mode.
enum { mapRank = 5, mapBox = 2 * mapRank - 1, mapSteps = mapBox + mapRank, mapCorners = mapSteps + mapRank, mapArrays = mapCorners + 2 * (mapRank - 2) };
static int fp_tensor_map(void *map, const u64 *args, const u64 *arrays) {
  int e = fp_begin();
  if (e) return e;
  void *reply = NULL;
  size_t size = 0;
  struct fp_call c = {.op = FP_TensorMap, .blob = arrays, .blob_size = mapArrays * sizeof *arrays, .reply = &reply, .reply_size = &size};
  e = fp_exchange(&c, args, 9);
  fp_end();
  if (!e) memcpy(map, reply, size);
  free(reply);
  return e;
}
static void fp_map_shape(u64 *arrays, unsigned rank, const u64 *sizes, const u64 *strides, const unsigned *steps) {
  for (unsigned i = 0; i < rank && i < mapRank; i++) {
    arrays[i] = sizes[i], arrays[mapSteps + i] = steps[i];
    if (i + 1 < rank && i + 1 < mapRank) arrays[mapRank + i] = strides[i];
  }
}
EXPORT int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const u64 *sizes, const u64 *strides, const unsigned *box,
                                  const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
  u64 arrays[mapArrays] = {0};
  if (!map || !sizes || !box || !steps || (rank > 1 && !strides)) return fpInvalidValue;
  fp_map_shape(arrays, rank, sizes, strides, steps);
  for (unsigned i = 0; i < rank && i < mapRank; i++) arrays[mapBox + i] = box[i];
  const u64 args[] = {(u64)map, (u64)type, rank, (u64)address, (u64)interleave, (u64)swizzle, (u64)promotion, (u64)fill, 0};
  return fp_tensor_map(map, args, arrays);
}
EXPORT int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *address, const u64 *sizes, const u64 *strides, const int *lower,
                                   const int *upper, unsigned channels, unsigned pixels, const unsigned *steps, int interleave, int swizzle,
                                   int promotion, int fill) {
  u64 arrays[mapArrays] = {0};
  if (!map || !sizes || !strides || !lower || !upper || !steps) return fpInvalidValue;
  fp_map_shape(arrays, rank, sizes, strides, steps);
  arrays[mapBox] = channels, arrays[mapBox + 1] = pixels;
  for (unsigned i = 0; i + 2 < rank && i + 2 < mapRank; i++) arrays[mapCorners + i] = (u64)lower[i], arrays[mapCorners + mapRank - 2 + i] = (u64)upper[i];
  const u64 args[] = {(u64)map, (u64)type, rank, (u64)address, (u64)interleave, (u64)swizzle, (u64)promotion, (u64)fill, 1};
  return fp_tensor_map(map, args, arrays);
}
EXPORT int cuTensorMapReplaceAddress(void *map, void *address) {
  enum { place = 8 }; // see TensorMap in internal/engine/descriptor
  if (!map || (u64)address % 16) return fpInvalidValue;
  memcpy((char *)map + place, &address, sizeof address);
  return 0;
}

// Export tables are private interfaces between parts of NVIDIA's software. This library has none.
EXPORT int cuGetExportTable(const void **table, const void *id) {
  (void)id;
  if (table) *table = NULL;
  return fpInvalidValue;
}

#include "gen_procedures.h"

// find_procedure finds a function by its name in cuda.h or in the library. Flag 2 requests the variant whose default
// stream is the thread's own.
static void *find_procedure(const char *name, u64 flags) {
  static const char *const own[] = {"_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds"}, *const plain[] = {"_v2", ""};
  char full[128];
  for (int i = (flags & 2) ? 0 : 4; i < 6; i++) {
    if (snprintf(full, sizeof full, "%s%s", name, i < 4 ? own[i] : plain[i - 4]) >= (int)sizeof full) return NULL;
    for (size_t k = 0; k < sizeof procedures / sizeof *procedures; k++)
      if (!strcmp(procedures[k].name, full)) return procedures[k].address;
  }
  return NULL;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **f, int version, u64 flags, int *status) {
  (void)version;
  if (!name || !f) return fpInvalidValue;
  *f = find_procedure(name, flags);
  if (status) *status = *f ? 0 : 1; // found, or not found
  return *f ? 0 : fpNotFound;
}
EXPORT int cuGetProcAddress(const char *name, void **f, int version, u64 flags) {
  // If this function looks up its own name, the name means its newest version.
  return cuGetProcAddress_v2(name, f, version, flags, NULL);
}
