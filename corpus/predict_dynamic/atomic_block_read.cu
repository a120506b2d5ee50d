// One block adds atomically for itself, another reads.
#include <cstdio>

__global__ void run(volatile int *a, int *out) {
  if (blockIdx.x == 0)
    atomicAdd_block((int *)a, 1); // want warning:volatile
  else
    *out = *a; // want warning:volatile
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
