// Beyond ScoRD: a lock, and then a word that tells the other block that no lock is needed any more.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void beyond_unlocked_later(int *mutex, int *flag, volatile int *balance) {
  if (blockIdx.x == 0) {
    lock(mutex);
    *balance += 1;
    unlock(mutex);
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *balance += 2;
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  beyond_unlocked_later<<<2, 1>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[2]);
  return m[2] != 3;
}
