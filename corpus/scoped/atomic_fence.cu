// A block counts, and another reads the count as volatile after a fence and a flag.
#include <cstdio>

__global__ void atomic_fence(int *count, int *flag, int *out) {
  if (blockIdx.x == 0) {
    atomicAdd(count, 1);
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *out = *(volatile int *)count;
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  atomic_fence<<<2, 1>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("out %d\n", m[2]);
  return m[2] != 1;
}
