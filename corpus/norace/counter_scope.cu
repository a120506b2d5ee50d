// Each block counts into a word of its own with block scope, then adds it to the total with device scope.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64;

__global__ void count(const int *in, int *own, int *positive) {
  if (in[blockIdx.x * BLOCK + threadIdx.x] > 0) atomicAdd_block(&own[blockIdx.x], 1);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(positive, own[blockIdx.x]);
}

int main() {
  int *in, *own, *positive;
  cudaMallocManaged(&in, BLOCKS * BLOCK * sizeof(int));
  cudaMallocManaged(&own, BLOCKS * sizeof(int));
  cudaMallocManaged(&positive, sizeof(int));
  for (int i = 0; i < BLOCKS * BLOCK; i++) in[i] = i;
  for (int i = 0; i < BLOCKS; i++) own[i] = 0;
  *positive = 0;
  count<<<BLOCKS, BLOCK>>>(in, own, positive);
  cudaDeviceSynchronize();
  printf("%d positive\n", *positive);
  return *positive != BLOCKS * BLOCK - 1;
}
