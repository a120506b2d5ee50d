// Kernels of the program, launched by the driver API, and their parameters.
// flags: -lcuda
// stdout: 4 4 6
// launches: _Z3addPisi _Z3addPisi _Z3addPisi
#include <cstdio>
#include <cuda.h>

__global__ void add(int *p, short n, int m) { *p += n + m; }
static int not_a_kernel;

static void want(int line, int got, int wanted) {
  if (got != wanted) printf("line %d gives %d\n", line, got);
}
#define WANT(call, code) want(__LINE__, (int)(call), (int)(code))
#define OK(call) WANT(call, 0)

int main() {
  CUfunction function;
  cudaKernel_t kernel;
  int *p, got[3], m = 1;
  short n = 3;
  size_t count = 0, offset = 0, size = 0;
  void *params[] = {&p, &n, &m};
  OK(cudaMalloc(&p, 4));
  OK(cudaMemset(p, 0, 4));
  // The first thing that asks for the kernel.
  OK(cudaGetFuncBySymbol(&function, (const void *)add));
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(cudaMemcpy(&got[0], p, 4, cudaMemcpyDefault));
  OK(cudaMemset(p, 0, 4));
  OK(cudaGetKernel(&kernel, (const void *)add));
  OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(cudaMemcpy(&got[1], p, 4, cudaMemcpyDefault));
  OK(cudaMemset(p, 0, 4));
  n = 5;
  OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), params, 0, 0));
  OK(cudaMemcpy(&got[2], p, 4, cudaMemcpyDefault));
  printf("%d %d %d\n", got[0], got[1], got[2]);

  OK(cudaFuncGetParamCount((const void *)add, &count));
  OK(cudaFuncGetParamInfo((const void *)add, 2, &offset, &size));
  if (count != 3 || offset != 12 || size != 4) printf("%zu parameters, the last of %zu bytes at %zu\n", count, size, offset);
  OK(cudaFuncGetParamInfo((const void *)add, 1, &offset, NULL));
  WANT(cudaFuncGetParamInfo((const void *)add, 3, &offset, &size), cudaErrorInvalidValue);
  WANT(cudaFuncGetParamCount(&not_a_kernel, &count), cudaErrorInvalidDeviceFunction);
  WANT(cudaGetKernel(&kernel, &not_a_kernel), cudaErrorInvalidDeviceFunction);
  WANT(cudaGetFuncBySymbol(&function, NULL), cudaErrorInvalidDeviceFunction);
}
