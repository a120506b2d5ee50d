// A write and a read by two warps of a block, with neither fence nor barrier.
#include <cstdio>

__global__ void run(volatile int *a, int *out) {
  if (threadIdx.x == 0) {
    *a = 1; // want warning:volatile
  } else if (threadIdx.x == 32) {
    *out = *a; // want warning:volatile
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 8 * sizeof(int));
  cudaMemset(m, 0, 8 * sizeof(int));
  run<<<1, 64>>>(m, m + 4);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
