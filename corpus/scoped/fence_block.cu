// A volatile word between two warps of a block, with fences of block scope.
#include <cstdio>

__global__ void fence_block(volatile int *data, int *flag, int *out) {
  if (threadIdx.x == 0) {
    *data = 42;
    __threadfence_block();
    atomicExch_block(flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd_block(flag, 0) == 0) {}
    __threadfence_block();
    *out = *data;
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  fence_block<<<1, 64>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("out %d\n", m[2]);
  return m[2] != 42;
}
