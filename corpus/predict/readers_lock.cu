// Both sections only read what the lock guards, so their order is an accident.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *mutex, volatile int *a, volatile int *b, int *out) {
  if (blockIdx.x == 0) {
    *a = 1; // want warning:volatile
    lock(mutex);
    out[0] = *b;
    unlock(mutex);
  } else {
    lock(mutex);
    out[1] = *b;
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
