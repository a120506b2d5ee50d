// Atomic additions of block scope by two blocks.
#include <cstdio>

__global__ void run(int *a) {
  if (threadIdx.x == 0) atomicAdd_block(a, 1); // want error:insufficient-atomic-scope
}

int main() {
  int *m;
  cudaMalloc(&m, 4 * sizeof(int));
  cudaMemset(m, 0, 4 * sizeof(int));
  run<<<2, 32>>>(m);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
