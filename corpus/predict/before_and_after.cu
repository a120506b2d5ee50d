// Writes before one critical section and after another, whose contents do not conflict.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *mutex, volatile int *a, volatile int *b, volatile int *c) {
  if (blockIdx.x == 0) {
    *a = 1; // want warning:volatile
    lock(mutex);
    *b = 1;
    unlock(mutex);
  } else {
    lock(mutex);
    *c = 1;
    unlock(mutex);
    *a = 2; // want warning:volatile
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 16 * sizeof(int));
  cudaMemset(m, 0, 16 * sizeof(int));
  run<<<2, 1>>>(m, m + 4, m + 8, m + 12);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
