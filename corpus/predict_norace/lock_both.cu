// A lock of the block guards what is the block's own, one of the device what is everybody's.
#include <cstdio>

__device__ void lockBlock(int *mutex) {
  while (atomicCAS_block(mutex, 0, 1) != 0) {}
  __threadfence_block();
}

__device__ void unlockBlock(int *mutex) {
  __threadfence_block();
  atomicExch_block(mutex, 0);
}

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *mine, volatile int *own, int *mutex, volatile int *a) {
  if (threadIdx.x % 32 == 0) {
    lockBlock(mine + blockIdx.x);
    own[blockIdx.x] += 1;
    int n = own[blockIdx.x];
    unlockBlock(mine + blockIdx.x);
    lock(mutex);
    *a += n;
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 16 * sizeof(int));
  cudaMemset(m, 0, 16 * sizeof(int));
  run<<<2, 64>>>(m, m + 4, m + 8, m + 12);
  int got[1];
  cudaMemcpy(got, m + 12, sizeof got, cudaMemcpyDeviceToHost);
  printf("%d\n", got[0]);
  return got[0] != 6;
}
