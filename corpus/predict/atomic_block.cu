// Atomic additions of block scope by two blocks, with a fence between them.
#include <cstdio>

__global__ void run(int *a) {
  if (blockIdx.x == 0) {
    atomicAdd_block(a, 1); // want error:insufficient-atomic-scope
    __threadfence();
  } else {
    atomicAdd_block(a, 1); // want error:insufficient-atomic-scope
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 4 * sizeof(int));
  cudaMemset(m, 0, 4 * sizeof(int));
  run<<<2, 1>>>(m);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
