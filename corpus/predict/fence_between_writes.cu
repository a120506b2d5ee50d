// Two volatile writes with nothing but a fence between them: it orders nothing that nobody observes.
#include <cstdio>

__global__ void run(volatile int *a) {
  if (blockIdx.x == 0) {
    *a = 1; // want warning:volatile
    __threadfence();
  } else {
    *a = 2; // want warning:volatile
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 4 * sizeof(int));
  cudaMemset(m, 0, 4 * sizeof(int));
  run<<<2, 1>>>(m);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
