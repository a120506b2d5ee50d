// A lock whose release has no fence.
#include <cstdio>

__device__ void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
}

__device__ void unlock(int *mutex) {
  atomicExch(mutex, 0);
}

__global__ void run(int *mutex, volatile int *a) {
  lock(mutex);
  *a += 1; // want error:missing-fence
  unlock(mutex);
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
