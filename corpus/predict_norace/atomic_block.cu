// Atomic additions by two warps of a block, of block scope.
#include <cstdio>

__global__ void run(int *a) {
  if (threadIdx.x % 32 == 0) atomicAdd_block(a, 1);
}

int main() {
  int *m;
  cudaMalloc(&m, 4 * sizeof(int));
  cudaMemset(m, 0, 4 * sizeof(int));
  run<<<1, 64>>>(m);
  int got[1];
  cudaMemcpy(got, m, sizeof got, cudaMemcpyDeviceToHost);
  printf("%d\n", got[0]);
  return got[0] != 2;
}
