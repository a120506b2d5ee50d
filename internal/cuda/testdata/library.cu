// Modules loaded as libraries, by the driver API and by the runtime API, with the toolkit's own headers.
// flags: -lcuda
// stdout: driver 11 22 32
// stdout: runtime 12 24 35
// launches: (module) add add add add (module) add add add add
// errors: cudaErrorInvalidResourceHandle: the module of add is not loaded
// unsupported: cuLibraryGetKernelCount cuLibraryLoadData with a function and data table of the host
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>

static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .u32 step = 10;\n"
    ".visible .entry add(.param .u64 p, .param .u32 n)\n{\n"
    ".reg .u64 %a; .reg .u32 %x, %n, %s;\n"
    "ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; ld.global.u32 %s, [step]; ld.global.u32 %x, [%a];\n"
    "add.u32 %x, %x, %n; add.u32 %x, %x, %s; st.global.u32 [%a], %x; ret;\n}\n";

#define WANT(call, code)                                            \
  do {                                                              \
    int got_ = (int)(call);                                         \
    if (got_ != (int)(code)) {                                      \
      printf("line %d: %s gives %d\n", __LINE__, #call, got_);      \
      exit(9);                                                      \
    }                                                               \
  } while (0)
#define OK(call) WANT(call, 0)
#define TRUE(x) WANT(!(x), 0)

static void refusals(CUlibrary library) {
  CUkernel kernel;
  CUdeviceptr address;
  unsigned count;
  CUlibraryOption table[] = {CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE};
  void *value[] = {NULL};
  WANT(cuLibraryLoadData(&library, "this is no PTX at all, is it?", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_PTX);
  WANT(cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  WANT(cuLibraryLoadData(&library, text, NULL, NULL, 0, table, value, 1), CUDA_ERROR_NOT_SUPPORTED);
  WANT(cuLibraryLoadFromFile(&library, "/no/such/file.ptx", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_FILE_NOT_FOUND);
  WANT(cuLibraryGetKernel(&kernel, library, "sub"), CUDA_ERROR_NOT_FOUND);
  WANT(cuLibraryGetKernel(&kernel, NULL, "add"), CUDA_ERROR_INVALID_HANDLE);
  WANT(cuLibraryGetGlobal(&address, NULL, library, "none"), CUDA_ERROR_NOT_FOUND);
  WANT(cuLibraryGetGlobal(NULL, NULL, library, "step"), CUDA_ERROR_INVALID_VALUE);
  WANT(cuLibraryGetKernelCount(&count, library), CUDA_ERROR_NOT_SUPPORTED);
}

static void driver(int got[3]) {
  CUlibrary library, of;
  CUkernel kernel;
  CUfunction function;
  CUmodule module;
  CUdeviceptr p, address;
  size_t size, count;
  int value;
  const char *name;
  CUlibraryOption preserved[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
  void *yes[] = {(void *)1};
  OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, preserved, yes, 1));
  refusals(library);
  OK(cuLibraryGetKernel(&kernel, library, "add"));
  OK(cuKernelGetLibrary(&of, kernel));
  TRUE(of == library);
  OK(cuKernelGetName(&name, kernel));
  TRUE(!strcmp(name, "add"));
  OK(cuKernelGetParamCount(kernel, &count));
  OK(cuKernelGetParamInfo(kernel, 1, &count, &size));
  TRUE(count == 8 && size == 4);
  WANT(cuKernelGetParamInfo(kernel, 2, &count, &size), CUDA_ERROR_INVALID_VALUE);
  OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
  TRUE(value == 1024);
  WANT(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 1), CUDA_ERROR_INVALID_DEVICE);
  OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 0));
  OK(cuLibraryGetGlobal(&address, &size, library, "step"));
  TRUE(size == 4);
  OK(cuMemAlloc(&p, 64));
  OK(cuMemsetD32(p, 0, 16));

  int n = 1;
  void *params[] = {&p, &n};
  OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 100000, NULL, params, NULL));
  OK(cuMemcpyDtoH(&got[0], p, 4));
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  OK(cuLaunchKernelEx(&config, (CUfunction)kernel, params, NULL));
  OK(cuMemcpyDtoH(&got[1], p, 4));
  OK(cuKernelGetFunction(&function, kernel));
  OK(cuLibraryGetModule(&module, library));
  CUmodule in;
  OK(cuFuncGetModule(&in, function));
  TRUE(in == module);
  n = 0;
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(cuMemcpyDtoH(&got[2], p, 4));
  OK(cuLibraryUnload(library));
  WANT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
  WANT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
  WANT(cuLibraryGetKernel(&kernel, library, "add"), CUDA_ERROR_INVALID_HANDLE);
}

static void runtime(int got[3]) {
  cudaLibrary_t library;
  cudaKernel_t kernel;
  int *p, *step, n = 2, twelve = 12;
  size_t size;
  WANT(cudaLibraryLoadData(&library, "this is no PTX at all, is it?", NULL, NULL, 0, NULL, NULL, 0), cudaErrorInvalidPtx);
  FILE *file = tmpfile();
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
  WANT(cudaLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0), cudaErrorInvalidKernelImage);
  fputs(text, file);
  fflush(file);
  OK(cudaLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
  fclose(file);
  OK(cudaLibraryUnload(library));
  OK(cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
  WANT(cudaLibraryGetKernel(&kernel, library, "sub"), cudaErrorSymbolNotFound);
  WANT(cudaLibraryGetKernel(&kernel, NULL, "add"), cudaErrorInvalidResourceHandle);
  OK(cudaLibraryGetKernel(&kernel, library, "add"));
  WANT(cudaLibraryGetGlobal((void **)&step, &size, library, "none"), cudaErrorSymbolNotFound);
  OK(cudaMalloc(&p, 64));
  OK(cudaMemset(p, 0, 64));
  void *params[] = {&p, &n};
  OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), params, 0, 0));
  OK(cudaMemcpy(&got[0], p, 4, cudaMemcpyDefault));
  // A cudaKernel_t is a CUkernel as well.
  OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(cudaMemcpy(&got[1], p, 4, cudaMemcpyDefault));
  OK(cudaLibraryGetGlobal((void **)&step, &size, library, "step"));
  TRUE(size == 4);
  OK(cudaMemcpy(step, &twelve, 4, cudaMemcpyDefault));
  OK(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000, 0));
  n = -1;
  OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), params, 100000, 0));
  OK(cudaMemcpy(&got[2], p, 4, cudaMemcpyDefault));
  OK(cudaLibraryUnload(library));
  WANT(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), params, 0, 0), cudaErrorInvalidResourceHandle);
  WANT(cudaLibraryGetKernel(&kernel, library, "add"), cudaErrorInvalidResourceHandle);

  // A library ends with a reset of the device.
  OK(cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
  OK(cudaLibraryGetKernel(&kernel, library, "add"));
  OK(cudaDeviceReset());
  WANT(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
  WANT(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), params, 0, 0), cudaErrorInvalidResourceHandle);
  WANT(cudaLibraryUnload(library), cudaErrorInvalidResourceHandle);
}

int main() {
  CUdevice device;
  CUcontext context;
  int a[3], b[3];
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  driver(a);
  printf("driver %d %d %d\n", a[0], a[1], a[2]);
  runtime(b);
  printf("runtime %d %d %d\n", b[0], b[1], b[2]);
}
