// All blocks count by atomic operations.
#include <cstdio>

const int BLOCKS = 3, BLOCK = 64;

__global__ void count(const int *in, int *counter) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (in[i] % 64 == 0) atomicAdd(counter, 1);
}

int main() {
  int *in, *counter;
  cudaMallocManaged(&in, BLOCKS * BLOCK * sizeof(int));
  cudaMallocManaged(&counter, sizeof(int));
  for (int i = 0; i < BLOCKS * BLOCK; i++) in[i] = i;
  *counter = 0;
  count<<<BLOCKS, BLOCK>>>(in, counter);
  cudaDeviceSynchronize();
  printf("counted %d\n", *counter);
  return *counter != BLOCKS;
}
