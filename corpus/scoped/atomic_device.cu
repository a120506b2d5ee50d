// Two blocks count in one word, atomically for the device.
#include <cstdio>

__global__ void atomic_device(int *count) {
  if (threadIdx.x == 0) atomicAdd(count, 1);
}

int main() {
  int *m;
  cudaMallocManaged(&m, 1 * sizeof(int));
  for (int i = 0; i < 1; i++) m[i] = 0;
  atomic_device<<<2, 1>>>(m);
  cudaDeviceSynchronize();
  printf("count %d\n", m[0]);
  return m[0] != 2;
}
