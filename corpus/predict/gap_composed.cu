// Conflicting sections of one lock, then an accident of another: composed with happens-before they hide a race.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *m, int *n, volatile int *a, volatile int *b) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      *a = 1; // gap warning:volatile
      lock(m);
      *b += 1;
      unlock(m);
    } else if (threadIdx.x == 32) {
      lock(m);
      *b += 1;
      unlock(m);
      lock(n);
      unlock(n);
    }
  } else if (threadIdx.x == 0) {
    lock(n);
    unlock(n);
    *a = 2; // gap warning:volatile
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 16 * sizeof(int));
  cudaMemset(m, 0, 16 * sizeof(int));
  run<<<2, 64>>>(m, m + 4, m + 8, m + 12);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
