// Two blocks take a lock within another one, in the same order.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void lock_nested(int *mutex, volatile int *balance) {
  if (blockIdx.x == 0) {
    lock(&mutex[0]);
    lock(&mutex[1]);
    *balance += 1;
    unlock(&mutex[1]);
    unlock(&mutex[0]);
  } else {
    lock(&mutex[0]);
    lock(&mutex[1]);
    *balance += 2;
    unlock(&mutex[1]);
    unlock(&mutex[0]);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  lock_nested<<<2, 1>>>(m, m + 2);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[2]);
  return m[2] != 3;
}
