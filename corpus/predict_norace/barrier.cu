// A barrier orders what the warps of a block do to global memory.
#include <cstdio>

__global__ void run(int *a) {
  if (threadIdx.x == 0) *a = 1;
  __syncthreads();
  if (threadIdx.x == 32) *a += 1;
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
