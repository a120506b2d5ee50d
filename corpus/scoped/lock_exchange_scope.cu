// Two blocks give a lock back atomically for their block only; all else has device scope.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {} // want error:insufficient-atomic-scope
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch_block(mutex, 0); // want error:insufficient-atomic-scope
}

__global__ void lock_exchange_scope(int *mutex, volatile int *balance) {
  if (blockIdx.x == 0) {
    lock(mutex);
    *balance += 1; // want error:insufficient-lock-scope
    unlock(mutex);
  } else {
    lock(mutex);
    *balance += 2; // want error:insufficient-lock-scope
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  lock_exchange_scope<<<2, 1>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[1]);
}
