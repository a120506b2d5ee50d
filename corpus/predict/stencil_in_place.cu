// A stencil in place whose accesses are ordered by a lock of the block that guards something else.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS_block(mutex, 0, 1) != 0) {}
  __threadfence_block();
}

__device__ void unlock(int *mutex) {
  __threadfence_block();
  atomicExch_block(mutex, 0);
}

__global__ void run(int *mutex, int *a, volatile int *current) {
  if (threadIdx.x == 0) {
    int left = a[1]; // want error:missing-lock
    lock(mutex);
    *current = left;
    unlock(mutex);
  } else if (threadIdx.x == 32) {
    lock(mutex);
    a[1] = 5; // want error:missing-lock
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
