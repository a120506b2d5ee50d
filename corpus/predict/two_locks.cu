// Three blocks, two locks: the chain of sections that orders the accesses here is an accident.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void run(int *m, int *n, volatile int *a, int *out) {
  if (blockIdx.x == 0) {
    *a = 1; // want warning:volatile
    lock(m);
    unlock(m);
  } else if (blockIdx.x == 1) {
    lock(m);
    unlock(m);
    lock(n);
    unlock(n);
  } else {
    lock(n);
    unlock(n);
    *out = *a; // want warning:volatile
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 16 * sizeof(int));
  cudaMemset(m, 0, 16 * sizeof(int));
  run<<<3, 1>>>(m, m + 4, m + 8, m + 12);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
