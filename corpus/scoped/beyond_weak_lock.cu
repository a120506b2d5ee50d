// Beyond ScoRD: plain accesses under a lock of device scope.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void beyond_weak_lock(int *mutex, int *balance) {
  if (blockIdx.x == 0) {
    lock(mutex);
    *balance += 1;
    unlock(mutex);
  } else {
    lock(mutex);
    *balance += 2;
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  beyond_weak_lock<<<2, 1>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("balance %d\n", m[1]);
  return m[1] != 3;
}
