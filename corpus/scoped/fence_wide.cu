// A volatile word between two warps of a block, with fences of device scope.
#include <cstdio>

__global__ void fence_wide(volatile int *data, int *flag, int *out) {
  if (threadIdx.x == 0) {
    *data = 42;
    __threadfence();
    atomicExch(flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *out = *data;
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  fence_wide<<<1, 64>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("out %d\n", m[2]);
  return m[2] != 42;
}
