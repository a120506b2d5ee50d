// Two blocks update a variable with no lock.
#include <cstdio>

__global__ void run(volatile int *a) {
  *a += 1; // want warning:volatile
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
