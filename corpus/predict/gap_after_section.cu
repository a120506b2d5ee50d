// An access outside of the lock, behind a section that conflicts with the other one: weak causality keeps their order.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *mutex, volatile int *x) {
  if (threadIdx.x == 0) {
    lock(mutex);
    *x = 1; // gap warning:volatile
    unlock(mutex);
  } else if (threadIdx.x == 32) {
    lock(mutex);
    *x = 2;
    unlock(mutex);
    *x = 3; // gap warning:volatile
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 8 * sizeof(int));
  cudaMemset(m, 0, 8 * sizeof(int));
  run<<<1, 64>>>(m, m + 4);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
