// The counter is zero before the kernel begins.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64;

__global__ void count(const int *in, int *counter) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (in[i] % 3 == 0) atomicAdd(counter, 1);
}

int main() {
  int *in, *counter;
  cudaMallocManaged(&in, BLOCKS * BLOCK * sizeof(int));
  cudaMallocManaged(&counter, sizeof(int));
  for (int i = 0; i < BLOCKS * BLOCK; i++) in[i] = i;
  cudaMemset(counter, 0, sizeof(int));
  count<<<BLOCKS, BLOCK>>>(in, counter);
  cudaDeviceSynchronize();
  printf("counted %d\n", *counter);
  return *counter != 86;
}
