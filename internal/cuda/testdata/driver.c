// The driver API, alone and beside the runtime API in one process.
// flags: -lcuda -lcudart_static -lpthread
// stdout: 11 21 31 ok
// launches: (module) add add add add
// errors: cudaErrorInvalidConfiguration
#include "api.h"

typedef uint64_t ptr;
int cuInit(unsigned), cuDeviceGet(int *, int), cuDeviceGetName(char *, int, int), cuDeviceGetAttribute(int *, int, int);
int cuCtxCreate_v2(void **, unsigned, int), cuCtxDestroy_v2(void *), cuCtxGetCurrent(void **), cuStreamGetCtx(stream, void **), cuCtxSynchronize(void);
int cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *), cuModuleUnload(void *);
int cuModuleGetLoadingMode(int *), cuFuncIsLoaded(int *, void *);
int cuModuleGetGlobal_v2(ptr *, size_t *, void *, const char *), cuFuncGetAttribute(int *, int, void *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, stream, void **, void **);
int cuMemAlloc_v2(ptr *, size_t), cuMemFree_v2(ptr), cuMemcpyHtoD_v2(ptr, const void *, size_t), cuMemcpyDtoH_v2(void *, ptr, size_t);
int cuMemsetD32_v2(ptr, unsigned, size_t), cuMemGetAddressRange_v2(ptr *, size_t *, ptr);
int cuGetErrorName(int, const char **), cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
int cuPointerGetAttribute(void *, int, ptr);

static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .u32 step = 10;\n"
    ".visible .entry add(.param .u64 p, .param .u32 n)\n{\n"
    ".reg .u64 %a; .reg .u32 %x, %n, %s;\n"
    "ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; ld.global.u32 %s, [step]; ld.global.u32 %x, [%a];\n"
    "add.u32 %x, %x, %n; add.u32 %x, %x, %s; st.global.u32 [%a], %x; ret;\n}\n";

int main(void) {
  void *context, *now, *module, *add, *alloc;
  ptr p, base;
  size_t size;
  int device, value, status;
  const char *name;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  WANT(cuDeviceGet(&device, 1), 101);
  OK(cuDeviceGetAttribute(&value, 10, device));
  TRUE(value == 32);
  OK(cuCtxCreate_v2(&context, 0, device));
  OK(cuCtxGetCurrent(&now));
  TRUE(now == context);
  now = NULL;
  OK(cuStreamGetCtx(NULL, &now));
  TRUE(now == context);
  WANT(cuModuleLoadData(&module, "this is no PTX at all, is it?"), 218);
  OK(cuModuleLoadData(&module, text));
  OK(cuModuleGetFunction(&add, module, "add"));
  WANT(cuModuleGetFunction(&now, module, "sub"), 500);
  int loaded = 0, mode = 0;
  OK(cuFuncIsLoaded(&loaded, add));
  OK(cuModuleGetLoadingMode(&mode));
  TRUE(loaded == 1 && mode == 1);
  WANT(cuFuncIsLoaded(&loaded, NULL), 1);
  OK(cuModuleGetGlobal_v2(&base, &size, module, "step"));
  TRUE(size == 4);
  OK(cuFuncGetAttribute(&value, 0, add));
  TRUE(value == 1024);
  OK(cuMemAlloc_v2(&p, 64));
  OK(cuMemGetAddressRange_v2(&base, &size, p + 9));
  TRUE(base == p && size == 64);
  OK(cuPointerGetAttribute(&value, 2, p));
  TRUE(value == 2);
  OK(cuMemsetD32_v2(p, 0, 16));
  int n = 1, got[3] = {0};
  void *params[] = {&p, &n};
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(cuMemcpyDtoH_v2(&got[0], p, 4));
  // The same, with the parameters packed.
  struct { ptr p; int n; } packed = {p, 0};
  size_t bytes = sizeof packed;
  void *extra[] = {(void *)1, &packed, (void *)2, &bytes, NULL};
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
  OK(cuCtxSynchronize());
  OK(cudaMemcpy(&got[1], (void *)p, 4, DeviceToHost)); // the runtime sees the driver's memory
  OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
  OK(cuMemcpyDtoH_v2(&got[2], p, 4));
  WANT(cuLaunchKernel(add, 1, 1, 1, 2000, 1, 1, 0, NULL, params, NULL), 1);
  OK(cuGetErrorName(500, &name));
  TRUE(!strcmp(name, "CUDA_ERROR_NOT_FOUND"));
  OK(cuGetProcAddress_v2("cuMemAlloc", &alloc, 12000, 0, &status));
  TRUE(alloc == (void *)cuMemAlloc_v2 && status == 0);
  WANT(cuGetProcAddress_v2("cuNoSuchThing", &alloc, 12000, 0, &status), 500);
  TRUE(alloc == NULL && status == 1);
  OK(cuMemFree_v2(p));
  WANT(cuMemFree_v2(p), 1);
  OK(cuModuleUnload(module));
  OK(cuCtxDestroy_v2(context));
  printf("%d %d %d ok\n", got[0], got[1], got[2]);
}
