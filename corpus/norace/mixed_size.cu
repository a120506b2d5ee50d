// A 64-bit counter is added to as a whole and cleared in its low half by an atomic of the same size.
#include <cstdio>

const int BLOCKS = 4;

__global__ void count(unsigned long long *counter) {
  if (blockIdx.x > 0)
    atomicAdd(counter, 1ull << 32 | 1);
  else
    atomicAnd(counter, 0xffffffff00000000ull);
}

int main() {
  unsigned long long *counter;
  cudaMallocManaged(&counter, sizeof *counter);
  *counter = 0;
  count<<<BLOCKS, 1>>>(counter);
  cudaDeviceSynchronize();
  printf("high %llu\n", *counter >> 32);
  return *counter >> 32 != BLOCKS - 1;
}
