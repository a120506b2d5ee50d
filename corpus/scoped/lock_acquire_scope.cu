// The second of two blocks takes a lock with a fence that reaches no further than itself.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void lock_acquire_scope(int *mutex, int *turn, int *balance) {
  if (blockIdx.x == 0) {
    lock(mutex);
    *balance += 1; // want error:insufficient-lock-scope
    unlock(mutex);
    atomicExch(turn, 1);
  } else {
    while (atomicAdd(turn, 0) == 0) {}
    while (atomicCAS(mutex, 0, 1) != 0) {}
    __threadfence_block();
    *balance += 2; // want error:insufficient-lock-scope
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  lock_acquire_scope<<<2, 1>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[2]);
}
