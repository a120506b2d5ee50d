// Atomic additions of block scope by two blocks, with a fence somewhere between them.
#include <cstdio>

__global__ void run(int *a, int *b) {
  if (blockIdx.x == 0) {
    atomicAdd_block(a, 1); // want error:insufficient-atomic-scope
    *b = 1;
    __threadfence();
  } else {
    atomicAdd_block(a, 1); // want error:insufficient-atomic-scope
  }
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
