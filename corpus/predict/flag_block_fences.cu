// A flag with fences of block scope hands data to another block.
#include <cstdio>

__global__ void run(int *a, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *a = 1; // want error:insufficient-fence-scope
    __threadfence_block();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence_block();
    *out = *a; // want error:insufficient-fence-scope
  }
}

int main() {
  int *m;
  cudaMalloc(&m, 12 * sizeof(int));
  cudaMemset(m, 0, 12 * sizeof(int));
  run<<<2, 1>>>(m, m + 4, m + 8);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
