// One of two blocks takes the lock.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *mutex, volatile int *a) {
  if (blockIdx.x == 0) lock(mutex);
  *a += 1; // want error:missing-lock
  if (blockIdx.x == 0) unlock(mutex);
}

int main() {
  int *m;
  cudaMalloc(&m, 8 * sizeof(int));
  cudaMemset(m, 0, 8 * sizeof(int));
  run<<<2, 1>>>(m, m + 4);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
