// Two blocks take a lock atomically for their block only; all else has device scope. The second one tries while the first holds it.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS_block(mutex, 0, 1) != 0) {} // want error:insufficient-atomic-scope
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0); // want error:insufficient-atomic-scope
}

__global__ void lock_cas_scope(int *mutex, int *turn, volatile int *balance) {
  if (blockIdx.x == 0) {
    lock(mutex);
    atomicExch(turn, 1);
    while (atomicAdd(turn, 0) != 2) {}
    *balance += 1; // want error:insufficient-lock-scope
    unlock(mutex);
  } else {
    while (atomicAdd(turn, 0) == 0) {}
    while (atomicCAS_block(mutex, 0, 1) != 0) atomicExch(turn, 2); // want error:insufficient-atomic-scope
    __threadfence();
    *balance += 2; // want error:insufficient-lock-scope
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  lock_cas_scope<<<2, 1>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[2]);
}
