// A flag without fences hands data over: the order of this run does not hold.
#include <cstdio>

__global__ void run(int *a, volatile int *flag, int *out) {
  if (blockIdx.x == 0) {
    *a = 1; // want error:missing-fence
    atomicExch((int *)flag, 1);
  } else {
    while (atomicAdd((int *)flag, 0) == 0) {}
    *out = *a; // want error:missing-fence
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
