// The second of two warps of a block takes a lock without a fence.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS_block(mutex, 0, 1) != 0) {}
  __threadfence_block();
}

__device__ void unlock(int *mutex) {
  __threadfence_block();
  atomicExch_block(mutex, 0);
}

__global__ void lock_no_acquire(int *mutex, int *turn, volatile int *balance) {
  if (threadIdx.x == 0) {
    lock(mutex);
    *balance += 1; // want error:missing-fence
    unlock(mutex);
    atomicExch(turn, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd(turn, 0) == 0) {}
    while (atomicCAS_block(mutex, 0, 1) != 0) {}
    *balance += 2; // want error:missing-fence
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  lock_no_acquire<<<1, 64>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[2]);
}
