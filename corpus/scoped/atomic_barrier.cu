// Two warps count atomically for their block, and a barrier is before the plain read.
#include <cstdio>

__global__ void atomic_barrier(int *count, int *out) {
  if (threadIdx.x % 32 == 0) atomicAdd_block(count, 1);
  __syncthreads();
  if (threadIdx.x == 32) *out = *count;
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  atomic_barrier<<<1, 64>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("out %d\n", m[1]);
  return m[1] != 2;
}
