// cudart_device.h: the device, its properties and limits, timing, versions. Part of cudart.c.

#include "gen_properties.h"

static int check_device(int device) {
  int n, e = fp_devices(NULL, &n);
  return e ? e : device < 0 || device >= n ? fpInvalidDevice : 0;
}

EXPORT int cudaGetDeviceCount(int *n) {
  if (!n) return finish(fpInvalidValue);
  int e = fp_devices(NULL, n);
  if (e) *n = 0;
  return finish(e);
}

EXPORT int cudaGetDevice(int *device) {
  return finish(device ? fp_devices(device, NULL) : fpInvalidValue);
}

EXPORT int cudaSetDevice(int device) {
  int e = check_device(device), now;
  if (!e) e = fp_devices(&now, NULL);
  if (!e && now != device) e = fp_request(FP_SetDevice, (const u64[]){(u64)device}, 1, NULL, 0);
  if (!e) fp_runtime_context(1);
  return finish(e);
}

// cudaInitDevice makes neither a device nor a context the current one.
EXPORT int cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  (void)device_flags, (void)flags;
  return finish(check_device(device));
}

EXPORT int cudaSetValidDevices(int *devices, int n) {
  (void)devices, (void)n;
  return finish(present());
}

EXPORT int cudaChooseDevice(int *device, const void *properties) {
  (void)properties;
  return cudaGetDevice(device);
}

static unsigned device_flags;

EXPORT int cudaSetDeviceFlags(unsigned flags) {
  if (flags & ~0x1fu && flags & ~0xffu) return finish(fpInvalidValue);
  device_flags = flags;
  return finish(present());
}

EXPORT int cudaGetDeviceFlags(unsigned *flags) {
  if (!flags) return finish(fpInvalidValue);
  *flags = device_flags | 8; // pinned memory is always mapped
  return finish(present());
}

EXPORT int cudaDeviceGetAttribute(int *value, int attribute, int device) {
  if (!value) return finish(fpInvalidValue);
  int e = check_device(device);
  return finish(e ? e : fp_attribute(attribute, value));
}

static int properties(char *p, int device, int version) {
  int e = p ? check_device(device) : fpInvalidValue;
  if (e) return e;
  u64 memory[2] = {0, 0};
  e = fp_request(FP_MemInfo, NULL, 0, memory, 2);
  if (e) return e;
  memset(p, 0, version == 13 ? FP_PROPERTIES_13 : version == 12 ? FP_PROPERTIES_12 : FP_PROPERTIES_11);
  strcpy(p, "Fencepost emulated GPU");
  memcpy(p + 256, "fencepost-device", 16); // uuid
  p[271] = (char)(p[271] + device);
  memcpy(p + 288, &memory[1], 8);
  for (size_t i = 0; i < sizeof fp_properties / sizeof *fp_properties; i++) {
    const struct fp_property *q = &fp_properties[i];
    int at = version == 13 ? q->at13 : q->at12, value;
    if (at < 0 || (version == 11 && at >= FP_PROPERTIES_11) || fp_attribute(q->attribute, &value)) continue;
    int64_t wide = value;
    memcpy(p + at, &wide, (size_t)q->size);
  }
  return 0;
}

#if FP_RUNTIME >= 13
EXPORT int cudaGetDeviceProperties(char *p, int device) { return finish(properties(p, device, 13)); }
#else
EXPORT int cudaGetDeviceProperties(char *p, int device) { return finish(properties(p, device, 11)); }
#endif
EXPORT int cudaGetDeviceProperties_v2(char *p, int device) { return finish(properties(p, device, 12)); }

EXPORT int cudaDeviceReset(void) {
  int e = fp_request(FP_DeviceReset, NULL, 0, NULL, 0);
  fp_print();
  int n;
  if (!fp_devices(NULL, &n) && n == 1) forget_modules(); // with several devices, modules stay loaded
  return finish(e);
}
EXPORT int cudaThreadExit(void) { return cudaDeviceReset(); }

// Limits are stored so that they can be read back. The checker gets them for the size of the printf buffer.
static size_t limits[8] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};

EXPORT int cudaDeviceSetLimit(int limit, size_t value) {
  if (limit < 0 || limit > 7) return finish(215); // cudaErrorUnsupportedLimit
  limits[limit] = value;
  return finish(fp_request(FP_SetLimit, (u64[]){(u64)limit, value}, 2, NULL, 0));
}
EXPORT int cudaDeviceGetLimit(size_t *value, int limit) {
  if (!value || limit < 0 || limit > 7) return finish(value ? 215 : fpInvalidValue);
  *value = limits[limit];
  return finish(present());
}
EXPORT int cudaThreadSetLimit(int limit, size_t value) { return cudaDeviceSetLimit(limit, value); }
EXPORT int cudaThreadGetLimit(size_t *value, int limit) { return cudaDeviceGetLimit(value, limit); }

static int zero(int *value) {
  if (!value) return fpInvalidValue;
  *value = 0;
  return present();
}

EXPORT int cudaDeviceGetCacheConfig(int *config) { return finish(zero(config)); }
EXPORT int cudaThreadGetCacheConfig(int *config) { return finish(zero(config)); }
EXPORT int cudaDeviceGetSharedMemConfig(int *config) {
  int e = finish(zero(config));
  if (!e) *config = 1; // four-byte banks
  return e;
}

EXPORT int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return finish(present());
}

EXPORT int cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  u64 r = 0;
  int e = can ? check_device(device) : fpInvalidValue;
  if (!e) e = check_device(peer);
  if (!e && device != peer) e = fp_request(FP_DeviceCanAccessPeer, (const u64[]){(u64)device, (u64)peer}, 2, &r, 1);
  if (can) *can = (int)r;
  return finish(e);
}
EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return finish(flags ? fpInvalidValue : fp_request(FP_PeerAccess, (const u64[]){(u64)peer, 1}, 2, NULL, 0));
}
EXPORT int cudaDeviceDisablePeerAccess(int peer) {
  return finish(fp_request(FP_PeerAccess, (const u64[]){(u64)peer, 0}, 2, NULL, 0));
}
EXPORT int cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to) {
  enum { rank = 1, access = 2, atomics = 3, arrays = 4 };
  int e = value && attribute >= rank && attribute <= arrays ? check_device(from) : fpInvalidValue;
  if (!e) e = from == to ? fpInvalidDevice : check_device(to);
  if (!e) *value = attribute == access || attribute == atomics;
  return finish(e);
}

static const char bus_id[] = "0000:00:00.0"; // of the first device; other devices have their number as the bus

EXPORT int cudaDeviceGetPCIBusId(char *text, int n, int device) {
  if (!text || n < (int)sizeof bus_id) return finish(fpInvalidValue);
  snprintf(text, (size_t)n, "0000:%02x:00.0", (unsigned)device & 0xff);
  return finish(check_device(device));
}
EXPORT int cudaDeviceGetByPCIBusId(int *device, const char *text) {
  if (!device || !text) return finish(fpInvalidValue);
  unsigned bus;
  char rest;
  if (sscanf(text, "0000:%2x:00.0%c", &bus, &rest) != 1) return finish(fpInvalidDevice);
  *device = (int)bus;
  return finish(check_device(*device));
}

enum { runtime_version = FP_RUNTIME >= 13 ? 13050 : 12090 };

EXPORT int cudaRuntimeGetVersion(int *version) {
  if (!version) return finish(fpInvalidValue);
  *version = runtime_version;
  return 0;
}
EXPORT int cudaDriverGetVersion(int *version) {
  if (!version) return finish(fpInvalidValue);
  *version = present() ? 0 : runtime_version; // 0 means no driver
  return 0;
}

static int elapsed(float *ms, void *start, void *end) {
  u64 ns = 0;
  int e = ms ? fp_request(FP_EventElapsed, (const u64[]){(u64)start, (u64)end}, 2, &ns, 1) : fpInvalidValue;
  if (!e) *ms = (float)((double)(int64_t)ns / 1e6);
  return e;
}

EXPORT int cudaEventElapsedTime(float *ms, void *start, void *end) { return finish(elapsed(ms, start, end)); }
EXPORT int cudaEventElapsedTime_v2(float *ms, void *start, void *end) { return finish(elapsed(ms, start, end)); }

EXPORT int cudaStreamGetDevice(void *s, int *device) {
  u64 r[4] = {0};
  int e = device ? fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 0)}, 1, r, 4) : fpInvalidValue;
  if (!e) *device = (int)r[3];
  return finish(e);
}
EXPORT int cudaStreamGetDevice_ptsz(void *s, int *device) { return cudaStreamGetDevice(s, device); }

// These conversions of double for old devices do nothing.
EXPORT int cudaSetDoubleForDevice(double *d) { return finish(d ? 0 : fpInvalidValue); }
EXPORT int cudaSetDoubleForHost(double *d) { return finish(d ? 0 : fpInvalidValue); }

// Functions of the driver API come from its library, which uses this process's connection to the checker.
static int driver_function(const char *name, void **f, unsigned version, u64 flags, int *status) {
  int (*find)(const char *, void **, int, u64, int *) = NULL;
  if (!name || !f) return fpInvalidValue;
  int e = present();
  if (e) return e;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library) *(void **)&find = dlsym(library, "cuGetProcAddress_v2");
  *f = NULL;
  if (find) find(name, f, (int)version, flags, NULL);
  if (status) *status = *f ? 0 : 1; // found, or not found
  return *f || status ? 0 : fpNotFound;
}

EXPORT int cudaGetDriverEntryPoint(const char *name, void **f, u64 flags, int *status) {
  return finish(driver_function(name, f, runtime_version, flags, status));
}
EXPORT int cudaGetDriverEntryPoint_ptsz(const char *name, void **f, u64 flags, int *status) {
  return finish(driver_function(name, f, runtime_version, flags | 2, status));
}
EXPORT int cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned version, u64 flags, int *status) {
  return finish(driver_function(name, f, version, flags, status));
}
EXPORT int cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **f, unsigned version, u64 flags, int *status) {
  return finish(driver_function(name, f, version, flags | 2, status));
}
