// Two lanes write crosswise, with __syncwarp between.
#include <cstdio>

__global__ void run(int *a) {
  a[threadIdx.x] = 2;
  __syncwarp();
  a[1 - threadIdx.x] = 1;
}

int main() {
  int *m;
  cudaMalloc(&m, 4 * sizeof(int));
  cudaMemset(m, 0, 4 * sizeof(int));
  run<<<1, 2>>>(m);
  int got[2];
  cudaMemcpy(got, m, sizeof got, cudaMemcpyDeviceToHost);
  printf("%d %d\n", got[0], got[1]);
  return got[0] != 1 || got[1] != 1;
}
