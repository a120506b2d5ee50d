// A block counts atomically for the device; another one reads the count as volatile, with nothing in between.
#include <cstdio>

__global__ void atomic_volatile(int *count, int *out) {
  if (blockIdx.x == 0) {
    atomicAdd(count, 1); // want warning:volatile
  } else {
    *out = *(volatile int *)count; // want warning:volatile
  }
}

int main() {
  int *m;
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int i = 0; i < 2; i++) m[i] = 0;
  atomic_volatile<<<2, 1>>>(m, m + 1);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
}
