// Two lanes write crosswise, which only lockstep orders.
#include <cstdio>

__global__ void run(int *a) {
  a[threadIdx.x] = 2; // want warning:warp-synchronous
  a[1 - threadIdx.x] = 1; // want warning:warp-synchronous
}

int main() {
  int *m;
  cudaMalloc(&m, 4 * sizeof(int));
  cudaMemset(m, 0, 4 * sizeof(int));
  run<<<1, 2>>>(m);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
