// Two blocks take different locks.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void lock_other(int *mutex, volatile int *balance) {
  if (blockIdx.x == 0) {
    lock(&mutex[0]);
    *balance += 1; // want error:missing-lock
    unlock(&mutex[0]);
  } else {
    lock(&mutex[1]);
    *balance += 2; // want error:missing-lock
    unlock(&mutex[1]);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  lock_other<<<2, 1>>>(m, m + 2);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[2]);
}
