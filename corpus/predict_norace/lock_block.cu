// Two warps of a block update a variable under one lock of the block.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS_block(mutex, 0, 1) != 0) {}
  __threadfence_block();
}

__device__ void unlock(int *mutex) {
  __threadfence_block();
  atomicExch_block(mutex, 0);
}

__global__ void run(int *mutex, volatile int *a) {
  if (threadIdx.x % 32 == 0) {
    lock(mutex);
    *a += 1;
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 8 * sizeof(int));
  cudaMemset(m, 0, 8 * sizeof(int));
  run<<<1, 64>>>(m, m + 4);
  int got[1];
  cudaMemcpy(got, m + 4, sizeof got, cudaMemcpyDeviceToHost);
  printf("%d\n", got[0]);
  return got[0] != 2;
}
