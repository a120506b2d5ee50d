// The critical section ends one access too early.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *mutex, volatile int *a, volatile int *b) {
  lock(mutex);
  *b += 1;
  unlock(mutex);
  *a += 1; // want warning:volatile
}

int main() {
  int *m;
  cudaMalloc(&m, 12 * sizeof(int));
  cudaMemset(m, 0, 12 * sizeof(int));
  run<<<2, 1>>>(m, m + 4, m + 8);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
