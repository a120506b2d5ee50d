// A volatile word between two blocks, and fences that reach no further than the own block.
#include <cstdio>

__global__ void fence_scope(volatile int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42; // want error:insufficient-fence-scope
    __threadfence_block();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence_block();
    *out = *data; // want error:insufficient-fence-scope
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  fence_scope<<<2, 1>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("out %d\n", m[2]);
}
