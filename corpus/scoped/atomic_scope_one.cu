// One block counts atomically for itself only, and then another does for the device.
#include <cstdio>

__global__ void atomic_scope_one(int *count, int *flag) {
  if (blockIdx.x == 0) {
    atomicAdd_block(count, 1); // want error:insufficient-atomic-scope
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    atomicAdd(count, 1); // want error:insufficient-atomic-scope
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  atomic_scope_one<<<2, 1>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
}
