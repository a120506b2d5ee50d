// Occupancy is what NVIDIA's own formula (cuda_occupancy.h) gives, by the runtime and the driver API.
// stdout: 1626 numbers, 0 wrong
#include <cuda_occupancy.h>
#include <cstdio>
__global__ void bare() {}
__global__ void __launch_bounds__(384) tile(float *p) {
  __shared__ float t[777];
  t[threadIdx.x] = *p, p[1] = t[0];
}
typedef int (*available)(size_t *, cudaFunction_t, int, int);
typedef int (*potential)(int *, int *, cudaFunction_t, size_t (*)(int), size_t, int);
static size_t per_thread(int block) { return 40 * block; }
static int numbers, wrong;
static void want(const char *what, long got, long wanted) {
  numbers++;
  if (got != wanted && wrong++ < 9) printf("%s: %ld, not %ld\n", what, got, wanted);
}
template <typename K> static void compare(K k, int optin) {
  cudaDeviceProp prop;
  cudaFuncAttributes of;
  cudaFunction_t f;
  cudaGetDeviceProperties(&prop, 0);
  if (optin) cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10);
  cudaFuncGetAttributes(&of, k);
  cudaGetFuncBySymbol(&f, (const void *)k);
  cudaOccDeviceProp device(prop);
  cudaOccFuncAttributes kernel(of);
  cudaOccDeviceState state;
  if (optin) kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, kernel.maxDynamicSharedSizeBytes = 100 << 10;
  cudaOccResult r;
  for (int block = 1; block <= of.maxThreadsPerBlock; block += 37)
    for (int shared = 0; shared <= of.maxDynamicSharedSizeBytes; shared += 4093) {
      int blocks = -1;
      cudaOccMaxActiveBlocksPerMultiprocessor(&r, &device, &kernel, &state, block, shared);
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, block, shared);
      want("blocks", blocks, r.activeBlocksPerMultiprocessor);
    }
  void *p = NULL, *q = NULL;
  cudaGetDriverEntryPointByVersion("cuOccupancyMaxPotentialBlockSize", &p, CUDART_VERSION, 0);
  cudaGetDriverEntryPointByVersion("cuOccupancyAvailableDynamicSMemPerBlock", &q, CUDART_VERSION, 0);
  for (int limit = 0; limit < 500; limit += 90) {
    int grid, block, grid2, block2;
    cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, k, per_thread, limit);
    ((potential)p)(&grid2, &block2, f, per_thread, 0, limit);
    want("grid", grid2, grid), want("block", block2, block);
  }
  // With the memory that is available so many blocks are resident, and with 128 bytes more they are not, if that may be asked for.
  for (int blocks = 1; blocks < 9; blocks++) {
    size_t bytes = 0, bytes2 = 0;
    int resident = 0, more = 0;
    if (cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, k, blocks, 96) || ((available)q)(&bytes2, f, blocks, 96)) bytes = 1;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, k, 96, bytes);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&more, k, 96, bytes + 128);
    want("available", resident >= blocks && more < blocks, 1), want("available, by the driver", bytes2, bytes);
  }
  size_t none = 77;
  want("more than are resident", cudaOccupancyAvailableDynamicSMemPerBlock(&none, k, 33, 96), cudaErrorInvalidValue);
}
int main() {
  compare(bare, 0), compare(tile, 0), compare(bare, 1), compare(tile, 1);
  cudaGetLastError();
  printf("%d numbers, %d wrong\n", numbers, wrong);
}
