// The writer takes the lock, the reader does not.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *mutex, volatile int *a, int *b, int *out) {
  if (blockIdx.x == 0) {
    lock(mutex);
    *a = *b + 1; // want error:missing-lock
    unlock(mutex);
  } else {
    *out = *a; // want error:missing-lock
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
