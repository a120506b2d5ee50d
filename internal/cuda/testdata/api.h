// api.h: the part of the runtime API that the C test programs call, declared by hand.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *stream, *event;
typedef struct { void *at; size_t pitch, width, height; } pitched;
typedef struct { size_t width, height, depth; } extent;
typedef struct { void *from_array; size_t from_at[3]; pitched from; void *to_array; size_t to_at[3]; pitched to; extent size; int kind; } copy3d;
typedef struct { int type, device; void *on_device, *on_host; long reserved[8]; } attributes;

int cudaMalloc(void **, size_t), cudaFree(void *), cudaMallocHost(void **, size_t), cudaFreeHost(void *);
int cudaHostAlloc(void **, size_t, unsigned), cudaMallocManaged(void **, size_t, unsigned);
int cudaHostRegister(void *, size_t, unsigned), cudaHostUnregister(void *), cudaHostGetDevicePointer(void **, void *, unsigned);
int cudaHostGetFlags(unsigned *, void *), cudaPointerGetAttributes(attributes *, const void *);
int cudaMallocPitch(void **, size_t *, size_t, size_t), cudaMalloc3D(pitched *, extent);
int cudaMemcpy(void *, const void *, size_t, int), cudaMemcpyAsync(void *, const void *, size_t, int, stream);
int cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int), cudaMemcpy3D(const copy3d *);
int cudaMemset(void *, int, size_t), cudaMemset2D(void *, size_t, int, size_t, size_t), cudaMemset3D(pitched, int, extent);
int cudaMemsetAsync(void *, int, size_t, stream), cudaMemGetInfo(size_t *, size_t *);
int cudaMallocAsync(void **, size_t, stream), cudaFreeAsync(void *, stream);
int cudaMemAdvise(const void *, size_t, int, int);
int cudaDeviceGetDefaultMemPool(void **, int), cudaMemPoolSetAttribute(void *, int, void *), cudaMemPoolGetAttribute(void *, int, void *);
int cudaDeviceGetGraphMemAttribute(int, int, void *), cudaDeviceSetGraphMemAttribute(int, int, void *);
int cudaMallocFromPoolAsync(void **, size_t, void *, stream);
int cudaGetDeviceCount(int *), cudaGetDevice(int *), cudaSetDevice(int), cudaDeviceSynchronize(void), cudaDeviceReset(void);
int cudaDeviceGetAttribute(int *, int, int), cudaGetDeviceProperties(void *, int), cudaGetDeviceProperties_v2(void *, int);
int cudaDeviceSetLimit(int, size_t), cudaDeviceGetLimit(size_t *, int), cudaDeviceGetStreamPriorityRange(int *, int *);
int cudaDriverGetVersion(int *), cudaRuntimeGetVersion(int *), cudaDeviceGetPCIBusId(char *, int, int), cudaDeviceGetByPCIBusId(int *, const char *);
int cudaDeviceCanAccessPeer(int *, int, int);
int cudaGetLastError(void), cudaPeekAtLastError(void);
const char *cudaGetErrorName(int), *cudaGetErrorString(int);
int cudaStreamCreate(stream *), cudaStreamCreateWithFlags(stream *, unsigned), cudaStreamCreateWithPriority(stream *, unsigned, int);
int cudaStreamDestroy(stream), cudaStreamSynchronize(stream), cudaStreamQuery(stream), cudaStreamWaitEvent(stream, event, unsigned);
int cudaStreamGetFlags(stream, unsigned *), cudaStreamGetPriority(stream, int *), cudaStreamIsCapturing(stream, int *);
int cudaStreamAddCallback(stream, void (*)(stream, int, void *), void *, unsigned), cudaLaunchHostFunc(stream, void (*)(void *), void *);
int cudaEventCreate(event *), cudaEventCreateWithFlags(event *, unsigned), cudaEventRecord(event, stream), cudaEventSynchronize(event);
int cudaEventQuery(event), cudaEventDestroy(event), cudaEventElapsedTime(float *, event, event);
int cudaGraphCreate(void **, unsigned), cudaGraphicsMapResources(int, void *, stream);

enum { HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Default };

#define WANT(call, code)                                                                                              \
  do {                                                                                                                \
    int got_ = (call);                                                                                                \
    if (got_ != (code)) {                                                                                             \
      printf("line %d: %s gives %d (%s), not %d\n", __LINE__, #call, got_, cudaGetErrorName(got_), code);             \
      exit(9);                                                                                                        \
    }                                                                                                                 \
  } while (0)
#define OK(call) WANT(call, 0)
#define TRUE(x)                                                                                                       \
  do {                                                                                                                \
    if (!(x)) {                                                                                                       \
      printf("line %d: not so: %s\n", __LINE__, #x);                                                                  \
      exit(9);                                                                                                        \
    }                                                                                                                 \
  } while (0)
