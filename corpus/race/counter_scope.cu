// All blocks count into one word, but each addition is atomic only within its own block.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64;

__global__ void count(const int *in, int *positive) {
  if (in[blockIdx.x * BLOCK + threadIdx.x] > 0) atomicAdd_block(positive, 1); // want error:insufficient-atomic-scope
}

int main() {
  int *in, *positive;
  cudaMallocManaged(&in, BLOCKS * BLOCK * sizeof(int));
  cudaMallocManaged(&positive, sizeof(int));
  for (int i = 0; i < BLOCKS * BLOCK; i++) in[i] = i % 3;
  *positive = 0;
  count<<<BLOCKS, BLOCK>>>(in, positive);
  cudaDeviceSynchronize();
  printf("%d positive\n", *positive);
}
