// Atomic additions by two blocks, of device scope.
#include <cstdio>

__global__ void run(int *a) {
  if (threadIdx.x == 0) atomicAdd(a, 1);
}

int main() {
  int *m;
  cudaMalloc(&m, 4 * sizeof(int));
  cudaMemset(m, 0, 4 * sizeof(int));
  run<<<2, 32>>>(m);
  int got[1];
  cudaMemcpy(got, m, sizeof got, cudaMemcpyDeviceToHost);
  printf("%d\n", got[0]);
  return got[0] != 2;
}
