// All blocks count in a volatile variable. Volatile keeps the compiler from removing accesses, and makes none of them atomic.
#include <cstdio>

const int BLOCKS = 3, BLOCK = 64;

__global__ void count(const int *in, volatile int *counter) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (in[i] % 64 == 0) *counter = *counter + 1; // want warning:volatile
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
}
