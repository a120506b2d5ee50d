// A 64-bit counter is added to as a whole, and its low half is cleared alone: atomics of different sizes do not meet.
#include <cstdio>

const int BLOCKS = 4;

__global__ void count(unsigned long long *counter) {
  if (blockIdx.x > 0)
    atomicAdd(counter, 1ull << 32 | 1); // want warning:mixed-size
  else
    atomicExch((unsigned *)counter, 0); // want warning:mixed-size
}

int main() {
  unsigned long long *counter;
  cudaMallocManaged(&counter, sizeof *counter);
  *counter = 0;
  count<<<BLOCKS, 1>>>(counter);
  cudaDeviceSynchronize();
  printf("high %llu\n", *counter >> 32);
}
