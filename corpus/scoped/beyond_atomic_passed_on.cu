// Beyond ScoRD: an atomic of block scope, passed on to another block by fences and a flag of device scope.
#include <cstdio>

__global__ void beyond_atomic_passed_on(int *count, int *flag) {
  if (blockIdx.x == 0) {
    atomicAdd_block(count, 1);
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    atomicAdd(count, 1);
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  beyond_atomic_passed_on<<<2, 1>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
  return m[0] != 2;
}
