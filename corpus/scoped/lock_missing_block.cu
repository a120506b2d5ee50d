// Of two warps of a block one takes the lock, the other does not.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS_block(mutex, 0, 1) != 0) {}
  __threadfence_block();
}

__device__ void unlock(int *mutex) {
  __threadfence_block();
  atomicExch_block(mutex, 0);
}

__global__ void lock_missing_block(int *mutex, volatile int *balance) {
  if (threadIdx.x == 0) {
    lock(mutex);
    *balance += 1; // want error:missing-lock
    unlock(mutex);
  } else if (threadIdx.x == 32) {
    *balance += 2; // want error:missing-lock
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  lock_missing_block<<<1, 64>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[1]);
}
