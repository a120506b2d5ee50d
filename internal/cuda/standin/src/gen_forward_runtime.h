// Code generated from the tables of package calls by calls/gen; DO NOT EDIT.

EXPORT int cudaMallocHost(void **p, size_t n) {
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_Malloc, (const u64[]){(u64)n, 2}, 2, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cudaMalloc(void **p, size_t n) {
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_Malloc, (const u64[]){(u64)n, 0}, 2, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cudaFree(void *p) {
  int error = fp_request(FP_Free, (const u64[]){(u64)p, 3}, 2, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaFreeHost(void *p) {
  int error = fp_request(FP_Free, (const u64[]){(u64)p, 2}, 2, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaMallocAsync(void **p, size_t n, void *s) {
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_MallocAsync, (const u64[]){(u64)n, stream_of(s, 0), 0}, 3, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cudaMallocAsync_ptsz(void **p, size_t n, void *s) {
  if (!p) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_MallocAsync, (const u64[]){(u64)n, stream_of(s, 1), 0}, 3, r, 1);
  if (!error) *p = (void *)r[0];
  return finish(error);
}
EXPORT int cudaFreeAsync(void *p, void *s) {
  int error = fp_request(FP_FreeAsync, (const u64[]){(u64)p, stream_of(s, 0)}, 2, NULL, 0);
  return finish(error);
}
EXPORT int cudaFreeAsync_ptsz(void *p, void *s) {
  int error = fp_request(FP_FreeAsync, (const u64[]){(u64)p, stream_of(s, 1)}, 2, NULL, 0);
  return finish(error);
}
EXPORT int cudaMemGetInfo(size_t *free, size_t *total) {
  if (!free || !total) return finish(fpInvalidValue);
  u64 r[2] = {0};
  int error = fp_request(FP_MemInfo, NULL, 0, r, 2);
  if (!error) *free = (size_t)r[0];
  if (!error) *total = (size_t)r[1];
  return finish(error);
}
EXPORT int cudaStreamCreate(void **s) {
  if (!s) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamCreate, (const u64[]){0, 0}, 2, r, 1);
  if (!error) *s = (void *)r[0];
  return finish(error);
}
EXPORT int cudaStreamCreateWithFlags(void **s, unsigned flags) {
  if (!s) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamCreate, (const u64[]){(u64)flags, 0}, 2, r, 1);
  if (!error) *s = (void *)r[0];
  return finish(error);
}
EXPORT int cudaStreamCreateWithPriority(void **s, unsigned flags, int priority) {
  if (!s) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamCreate, (const u64[]){(u64)flags, (u64)priority}, 2, r, 1);
  if (!error) *s = (void *)r[0];
  return finish(error);
}
EXPORT int cudaStreamDestroy(void *s) {
  int error = fp_request(FP_StreamDestroy, (const u64[]){(u64)s}, 1, NULL, 0);
  return finish(error);
}
EXPORT int cudaStreamSynchronize(void *s) {
  int error = fp_request(FP_StreamSynchronize, (const u64[]){stream_of(s, 0)}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaStreamSynchronize_ptsz(void *s) {
  int error = fp_request(FP_StreamSynchronize, (const u64[]){stream_of(s, 1)}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaStreamQuery(void *s) {
  int error = fp_request(FP_StreamQuery, (const u64[]){stream_of(s, 0)}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaStreamQuery_ptsz(void *s) {
  int error = fp_request(FP_StreamQuery, (const u64[]){stream_of(s, 1)}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaStreamGetFlags(void *s, unsigned *flags) {
  if (!flags) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 0)}, 1, r, 1);
  if (!error) *flags = (unsigned)r[0];
  return finish(error);
}
EXPORT int cudaStreamGetFlags_ptsz(void *s, unsigned *flags) {
  if (!flags) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 1)}, 1, r, 1);
  if (!error) *flags = (unsigned)r[0];
  return finish(error);
}
EXPORT int cudaStreamGetPriority(void *s, int *priority) {
  if (!priority) return finish(fpInvalidValue);
  u64 r[2] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 0)}, 1, r, 2);
  if (!error) *priority = (int)r[1];
  return finish(error);
}
EXPORT int cudaStreamGetPriority_ptsz(void *s, int *priority) {
  if (!priority) return finish(fpInvalidValue);
  u64 r[2] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 1)}, 1, r, 2);
  if (!error) *priority = (int)r[1];
  return finish(error);
}
EXPORT int cudaStreamGetId(void *s, u64 *id) {
  if (!id) return finish(fpInvalidValue);
  u64 r[3] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 0)}, 1, r, 3);
  if (!error) *id = (u64)r[2];
  return finish(error);
}
EXPORT int cudaStreamGetId_ptsz(void *s, u64 *id) {
  if (!id) return finish(fpInvalidValue);
  u64 r[3] = {0};
  int error = fp_request(FP_StreamInfo, (const u64[]){stream_of(s, 1)}, 1, r, 3);
  if (!error) *id = (u64)r[2];
  return finish(error);
}
EXPORT int cudaEventCreate(void **e) {
  if (!e) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_EventCreate, (const u64[]){0}, 1, r, 1);
  if (!error) *e = (void *)r[0];
  return finish(error);
}
EXPORT int cudaEventCreateWithFlags(void **e, unsigned flags) {
  if (!e) return finish(fpInvalidValue);
  u64 r[1] = {0};
  int error = fp_request(FP_EventCreate, (const u64[]){(u64)flags}, 1, r, 1);
  if (!error) *e = (void *)r[0];
  return finish(error);
}
EXPORT int cudaEventSynchronize(void *e) {
  int error = fp_request(FP_EventSynchronize, (const u64[]){(u64)e}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaEventQuery(void *e) {
  int error = fp_request(FP_EventQuery, (const u64[]){(u64)e}, 1, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaEventDestroy(void *e) {
  int error = fp_request(FP_EventDestroy, (const u64[]){(u64)e}, 1, NULL, 0);
  return finish(error);
}
EXPORT int cudaDeviceSynchronize(void) {
  int error = fp_request(FP_DeviceSynchronize, NULL, 0, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaThreadSynchronize(void) {
  int error = fp_request(FP_DeviceSynchronize, NULL, 0, NULL, 0);
  fp_print();
  return finish(error);
}
EXPORT int cudaLibraryUnload(void *l) {
  int error = fp_request(FP_UnloadModule, (const u64[]){(u64)l}, 1, NULL, 0);
  return finish(error);
}
EXPORT int cudaDeviceSetCacheConfig(unsigned config) {
  (void)config;
  return finish(present());
}
EXPORT int cudaThreadSetCacheConfig(unsigned config) {
  (void)config;
  return finish(present());
}
EXPORT int cudaDeviceSetSharedMemConfig(unsigned config) {
  (void)config;
  return finish(present());
}
EXPORT int cudaFuncSetCacheConfig(void *f, unsigned config) {
  (void)f;
  (void)config;
  return finish(present());
}
EXPORT int cudaFuncSetSharedMemConfig(void *f, unsigned config) {
  (void)f;
  (void)config;
  return finish(present());
}
EXPORT int cudaProfilerStart(void) {
  return finish(present());
}
EXPORT int cudaProfilerStop(void) {
  return finish(present());
}
EXPORT int cudaStreamAttachMemAsync(void *s, void *p, size_t n, unsigned flags) {
  (void)s;
  (void)p;
  (void)n;
  (void)flags;
  return finish(present());
}
EXPORT int cudaStreamAttachMemAsync_ptsz(void *s, void *p, size_t n, unsigned flags) {
  (void)s;
  (void)p;
  (void)n;
  (void)flags;
  return finish(present());
}
EXPORT int cudaCtxResetPersistingL2Cache(void) {
  return finish(present());
}
EXPORT int cudaDeviceFlushGPUDirectRDMAWrites(unsigned target, unsigned scope) {
  (void)target;
  (void)scope;
  return finish(present());
}
EXPORT int cudaDeviceGraphMemTrim(unsigned device) {
  (void)device;
  return finish(present());
}
