// A write and a read by two blocks: the fence is of the block, and nothing tells the reader.
#include <cstdio>

__global__ void run(volatile int *a, int *out) {
  if (blockIdx.x == 0) {
    *a = 1; // want warning:volatile
    __threadfence_block();
  } else {
    *out = *a; // want warning:volatile
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
