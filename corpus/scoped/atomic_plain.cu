// A warp counts atomically for its block; another one reads the count as if nobody did.
#include <cstdio>

__global__ void atomic_plain(int *count, int *out) {
  if (threadIdx.x == 0) {
    atomicAdd_block(count, 1); // want error:atomic-mixed-with-plain
  } else if (threadIdx.x == 32) {
    *out = *count; // want error:atomic-mixed-with-plain
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  atomic_plain<<<1, 64>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
}
