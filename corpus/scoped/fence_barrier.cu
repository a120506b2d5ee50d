// A word between two warps of a block, with a barrier in between.
#include <cstdio>

__global__ void fence_barrier(int *data, int *out) {
  if (threadIdx.x == 0) *data = 42;
  __syncthreads();
  if (threadIdx.x == 32) *out = *data;
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  fence_barrier<<<1, 64>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("out %d\n", m[1]);
  return m[1] != 42;
}
