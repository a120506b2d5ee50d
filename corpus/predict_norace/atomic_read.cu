// What one block has added atomically another reads, after a fence, a flag and a fence.
#include <cstdio>

__global__ void run(volatile int *a, int *flag, int *out) {
  if (blockIdx.x == 0) {
    atomicAdd((int *)a, 1);
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *out = *a;
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 12 * sizeof(int));
  cudaMemset(m, 0, 12 * sizeof(int));
  run<<<2, 1>>>(m, m + 4, m + 8);
  int got[1];
  cudaMemcpy(got, m + 8, sizeof got, cudaMemcpyDeviceToHost);
  printf("%d\n", got[0]);
  return got[0] != 1;
}
