// Sections that conflict before the access that races: weak causality keeps their order.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *mutex, int *x, volatile int *y) {
  if (threadIdx.x == 0) {
    *x = 1; // gap error:missing-lock
    lock(mutex);
    *y += 1;
    unlock(mutex);
  } else if (threadIdx.x == 32) {
    lock(mutex);
    *y += 1;
    *x = 2; // gap error:missing-lock
    unlock(mutex);
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 12 * sizeof(int));
  cudaMemset(m, 0, 12 * sizeof(int));
  run<<<1, 64>>>(m, m + 4, m + 8);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
