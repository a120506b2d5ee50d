// A message between warps of a block: fences of the block are enough.
#include <cstdio>

__global__ void run(volatile int *a, int *flag, int *out) {
  if (threadIdx.x == 0) {
    *a = 1;
    __threadfence_block();
    atomicExch_block(flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd_block(flag, 0) == 0) {}
    __threadfence_block();
    *out = *a;
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 12 * sizeof(int));
  cudaMemset(m, 0, 12 * sizeof(int));
  run<<<1, 64>>>(m, m + 4, m + 8);
  int got[1];
  cudaMemcpy(got, m + 8, sizeof got, cudaMemcpyDeviceToHost);
  printf("%d\n", got[0]);
  return got[0] != 1;
}
