// All lanes write a different value to one word, in one instruction.
#include <cstdio>

__global__ void run(int *a) {
  *a = threadIdx.x; // want error:unordered
}

int main() {
  int *m;
  cudaMalloc(&m, 4 * sizeof(int));
  cudaMemset(m, 0, 4 * sizeof(int));
  run<<<1, 32>>>(m);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e;
}
