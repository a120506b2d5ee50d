// One block adds atomically, another reads with a plain load.
#include <cstdio>

__global__ void run(int *a, int *out) {
  if (blockIdx.x == 0)
    atomicAdd(a, 1); // want error:atomic-mixed-with-plain
  else
    *out = *a; // want error:atomic-mixed-with-plain
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
