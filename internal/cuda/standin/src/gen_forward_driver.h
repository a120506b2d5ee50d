// Code generated from the tables of package calls by calls/gen; DO NOT EDIT.

EXPORT int cuCtxSetLimit(unsigned limit, size_t n) {
  int error = fp_request(FP_SetLimit, (const u64[]){(u64)limit, (u64)n}, 2, NULL, 0);
  return finish(error);
}
EXPORT int cuMemAlloc_v2(void **p, size_t n) {
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_Malloc, (const u64[]){(u64)n, 0}, 2, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cuMemAllocHost_v2(void **p, size_t n) {
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_Malloc, (const u64[]){(u64)n, 2}, 2, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cuMemHostAlloc(void **p, size_t n, unsigned flags) {
  (void)flags;
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_Malloc, (const u64[]){(u64)n, 2}, 2, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cuMemAllocManaged(void **p, size_t n, unsigned flags) {
  (void)flags;
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_Malloc, (const u64[]){(u64)n, 1}, 2, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cuMemFree_v2(void *p) {
  int error = fp_request(FP_Free, (const u64[]){(u64)p, 3}, 2, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuMemFreeHost(void *p) {
  int error = fp_request(FP_Free, (const u64[]){(u64)p, 2}, 2, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuMemAllocAsync(void **p, size_t n, void *s) {
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_MallocAsync, (const u64[]){(u64)n, stream_of(s, 0), 0}, 3, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cuMemAllocAsync_ptsz(void **p, size_t n, void *s) {
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_MallocAsync, (const u64[]){(u64)n, stream_of(s, 1), 0}, 3, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cuMemFreeAsync(void *p, void *s) {
  int error = fp_request(FP_FreeAsync, (const u64[]){(u64)p, stream_of(s, 0)}, 2, NULL, 0);
  return finish(error);
}
EXPORT int cuMemFreeAsync_ptsz(void *p, void *s) {
  int error = fp_request(FP_FreeAsync, (const u64[]){(u64)p, stream_of(s, 1)}, 2, NULL, 0);
  return finish(error);
}
EXPORT int cuMemAddressFree(void *p, size_t n) {
  int error = fp_request(FP_AddressFree, (const u64[]){(u64)p, (u64)n}, 2, NULL, 0);
  return finish(error);
}
EXPORT int cuMemRelease(void *h) {
  int error = fp_request(FP_MemRelease, (const u64[]){(u64)h}, 1, NULL, 0);
  return finish(error);
}
EXPORT int cuMemUnmap(void *p, size_t n) {
  int error = fp_request(FP_MemUnmap, (const u64[]){(u64)p, (u64)n}, 2, NULL, 0);
  return finish(error);
}
EXPORT int cuMemGetInfo_v2(size_t *free, size_t *total) {
  if (!free || !total) return finish(fpInvalidValue);
  u64 r[2] = {0};
  int error = fp_request(FP_MemInfo, NULL, 0, r, 2);
  if (!error) *free = (size_t)r[0];
  if (!error) *total = (size_t)r[1];
  return finish(error);
}
EXPORT int cuStreamCreate(void **s, unsigned flags) {
  if (!s) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamCreate, (const u64[]){(u64)flags, 0}, 2, r, 1);
  if (!error) *s = (void *)r[0];
  return finish(error);
}
EXPORT int cuStreamCreateWithPriority(void **s, unsigned flags, int priority) {
  if (!s) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamCreate, (const u64[]){(u64)flags, (u64)priority}, 2, r, 1);
  if (!error) *s = (void *)r[0];
  return finish(error);
}
EXPORT int cuStreamDestroy_v2(void *s) {
  int error = fp_request(FP_StreamDestroy, (const u64[]){(u64)s}, 1, NULL, 0);
  return finish(error);
}
EXPORT int cuStreamSynchronize(void *s) {
  int error = fp_request(FP_StreamSynchronize, (const u64[]){stream_of(s, 0)}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuStreamSynchronize_ptsz(void *s) {
  int error = fp_request(FP_StreamSynchronize, (const u64[]){stream_of(s, 1)}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuStreamQuery(void *s) {
  int error = fp_request(FP_StreamQuery, (const u64[]){stream_of(s, 0)}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuStreamQuery_ptsz(void *s) {
  int error = fp_request(FP_StreamQuery, (const u64[]){stream_of(s, 1)}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuStreamGetFlags(void *s, unsigned *flags) {
  if (!flags) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 0)}, 1, r, 1);
  if (!error) *flags = (unsigned)r[0];
  return finish(error);
}
EXPORT int cuStreamGetFlags_ptsz(void *s, unsigned *flags) {
  if (!flags) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 1)}, 1, r, 1);
  if (!error) *flags = (unsigned)r[0];
  return finish(error);
}
EXPORT int cuStreamGetPriority(void *s, int *priority) {
  if (!priority) return finish(fpInvalidValue);
  u64 r[2] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 0)}, 1, r, 2);
  if (!error) *priority = (int)r[1];
  return finish(error);
}
EXPORT int cuStreamGetPriority_ptsz(void *s, int *priority) {
  if (!priority) return finish(fpInvalidValue);
  u64 r[2] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 1)}, 1, r, 2);
  if (!error) *priority = (int)r[1];
  return finish(error);
}
EXPORT int cuEventCreate(void **e, unsigned flags) {
  if (!e) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_EventCreate, (const u64[]){(u64)flags}, 1, r, 1);
  if (!error) *e = (void *)r[0];
  return finish(error);
}
EXPORT int cuEventSynchronize(void *e) {
  int error = fp_request(FP_EventSynchronize, (const u64[]){(u64)e}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuEventQuery(void *e) {
  int error = fp_request(FP_EventQuery, (const u64[]){(u64)e}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuEventDestroy_v2(void *e) {
  int error = fp_request(FP_EventDestroy, (const u64[]){(u64)e}, 1, NULL, 0);
  return finish(error);
}
EXPORT int cuCtxSynchronize(void) {
  int error = fp_request(FP_DeviceSynchronize, NULL, 0, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cuModuleUnload(void *m) {
  int error = fp_request(FP_UnloadModule, (const u64[]){(u64)m}, 1, NULL, 0);
  return finish(error);
}
EXPORT int cuLibraryUnload(void *l) {
  int error = fp_request(FP_UnloadModule, (const u64[]){(u64)l}, 1, NULL, 0);
  return finish(error);
}
EXPORT int cuCtxSetCacheConfig(unsigned config) {
  (void)config;
  return finish(present());
}
EXPORT int cuCtxSetSharedMemConfig(unsigned config) {
  (void)config;
  return finish(present());
}
EXPORT int cuFuncSetCacheConfig(void *f, unsigned config) {
  (void)f;
  (void)config;
  return finish(present());
}
EXPORT int cuFuncSetSharedMemConfig(void *f, unsigned config) {
  (void)f;
  (void)config;
  return finish(present());
}
EXPORT int cuKernelSetCacheConfig(void *k, unsigned config, unsigned device) {
  (void)k;
  (void)config;
  (void)device;
  return finish(present());
}
EXPORT int cuProfilerStart(void) {
  return finish(present());
}
EXPORT int cuProfilerStop(void) {
  return finish(present());
}
EXPORT int cuStreamAttachMemAsync(void *s, void *p, size_t n, unsigned flags) {
  (void)s;
  (void)p;
  (void)n;
  (void)flags;
  return finish(present());
}
EXPORT int cuCtxResetPersistingL2Cache(void) {
  return finish(present());
}
EXPORT int cuDeviceGraphMemTrim(unsigned device) {
  (void)device;
  return finish(present());
}
EXPORT int cuFuncLoad(void *f) {
  (void)f;
  return finish(present());
}
