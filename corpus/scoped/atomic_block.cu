// Two warps of a block count in one word, atomically for the block.
#include <cstdio>

__global__ void atomic_block(int *count) {
  if (threadIdx.x % 32 == 0) atomicAdd_block(count, 1);
}

int main() {
  int *m;
  cudaMallocManaged(&m, 1 * sizeof(int));
  for (int i = 0; i < 1; i++) m[i] = 0;
  atomic_block<<<1, 64>>>(m);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
  return m[0] != 2;
}
