// One block adds atomically, another resets with a plain store.
#include <cstdio>

__global__ void run(int *a) {
  if (blockIdx.x == 0)
    atomicAdd(a, 1); // want error:atomic-mixed-with-plain
  else
    *a = 0; // want error:atomic-mixed-with-plain
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
