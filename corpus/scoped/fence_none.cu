// A volatile word between two warps of a block: the flag that follows it is relaxed, and there is no fence.
#include <cstdio>

__global__ void fence_none(volatile int *data, int *flag, int *out) {
  if (threadIdx.x == 0) {
    *data = 42; // want error:missing-fence
    atomicExch_block(flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd_block(flag, 0) == 0) {}
    *out = *data; // want error:missing-fence
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 3 * sizeof(int));
  for (int i = 0; i < 3; i++) m[i] = 0;
  fence_none<<<1, 64>>>(m, m + 1, m + 2);
  cudaDeviceSynchronize();
  printf("out %d\n", m[2]);
}
