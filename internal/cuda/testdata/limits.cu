// Launches that the device cannot run give the API's errors, and are reported.
// stdout: 9 9 9 1 1 0 0 1 720 98 0
// errors: cudaErrorInvalidConfiguration
#include <cstdio>
extern __shared__ int dynamic[];
__global__ void k(int *p) { if (p) p[threadIdx.x] = dynamic[threadIdx.x]; }
__global__ void __launch_bounds__(64) small(int *p) { if (p) *p = 1; }
int err() { return cudaGetLastError(); }
int main() {
  int blocks, none = 0;
  k<<<1, 1025>>>(0); printf("%d ", err());
  k<<<0, 32>>>(0); printf("%d ", err());
  k<<<dim3(1, 65536), 32>>>(0); printf("%d ", err());
  k<<<1, 32, 100000>>>(0); printf("%d ", err());
  printf("%d ", cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20)); err();
  printf("%d ", cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  k<<<1, 32, 100000>>>(0); printf("%d ", err());
  k<<<1, 32, 100001>>>(0); printf("%d ", err());
  void *args[] = {&none, 0};
  int *null = 0;
  args[0] = &null;
  printf("%d ", cudaLaunchCooperativeKernel((const void *)k, dim3(1000000), dim3(32), args, 0, 0)); err();
  printf("%d ", cudaLaunchKernel((const void *)err, dim3(1), dim3(32), args, 0, 0)); err();
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 1024, 0);
  cudaFuncAttributes a;
  cudaFuncGetAttributes(&a, small);
  if (blocks != 2 || a.maxThreadsPerBlock != 64) return 1;
  int size, grid;
  cudaOccupancyMaxPotentialBlockSize(&grid, &size, k);
  if (size < 64 || grid < 1) return 2;
  printf("%d\n", (int)cudaDeviceSynchronize());
}
