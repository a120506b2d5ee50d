// Two warps of a block count in one word, one atomically for the block, the other for the device.
#include <cstdio>

__global__ void atomic_mixed(int *count) {
  if (threadIdx.x == 0) {
    atomicAdd_block(count, 1);
  } else if (threadIdx.x == 32) {
    atomicAdd(count, 1);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 1 * sizeof(int));
  for (int i = 0; i < 1; i++) m[i] = 0;
  atomic_mixed<<<1, 64>>>(m);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
  return m[0] != 2;
}
