// Two blocks take two locks.
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
  lock(mutex + blockIdx.x);
  *a += 1; // want error:missing-lock
  unlock(mutex + blockIdx.x);
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
