// The first thread sets the counter to zero, while other blocks may have counted already.
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64;

__global__ void count(const int *in, int *counter) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i == 0) *counter = 0; // want error:atomic-mixed-with-plain
  __syncthreads();
  if (in[i] % 3 == 0) atomicAdd(counter, 1); // want error:atomic-mixed-with-plain
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
}
