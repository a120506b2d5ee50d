// Two blocks share two words, each with a lock of its own.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void lock_two(int *mutex, volatile int *balance) {
  if (blockIdx.x == 0) {
    lock(&mutex[0]);
    balance[0] += 1;
    unlock(&mutex[0]);
    lock(&mutex[1]);
    balance[1] += 1;
    unlock(&mutex[1]);
  } else {
    lock(&mutex[1]);
    balance[1] += 2;
    unlock(&mutex[1]);
    lock(&mutex[0]);
    balance[0] += 2;
    unlock(&mutex[0]);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 4 * sizeof(int));
  for (int i = 0; i < 4; i++) m[i] = 0;
  lock_two<<<2, 1>>>(m, m + 2);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[2]);
  return m[2] != 3;
}
