// A volatile read and a volatile write with nothing but a fence between them.
#include <cstdio>

__global__ void run(volatile int *a, int *out) {
  if (blockIdx.x == 0) {
    out[0] = *a; // want warning:volatile
    __threadfence();
  } else {
    *a = 2; // want warning:volatile
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
