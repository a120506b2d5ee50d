// Beyond ScoRD: a block counts atomically for the device, and then another one for itself only.
#include <cstdio>

__global__ void beyond_scope_last(int *count, int *flag) {
  if (blockIdx.x == 0) {
    atomicAdd(count, 1); // want error:insufficient-atomic-scope
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    atomicAdd_block(count, 1); // want error:insufficient-atomic-scope
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  beyond_scope_last<<<2, 1>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
}
