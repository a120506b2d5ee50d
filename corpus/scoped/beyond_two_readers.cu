// Beyond the letter of ScoRD's tables: a volatile word passed on to two blocks by a fence and a flag. The second reader meets the first one, which has no fence.
#include <cstdio>

__global__ void beyond_two_readers(volatile int *data, int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;
    __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    out[blockIdx.x - 1] = *data;
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 4 * sizeof(int));
  for (int i = 0; i < 4; i++) m[i] = 0;
  beyond_two_readers<<<3, 1>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("out %d\n", m[2]);
  return m[2] != 42;
}
