// Counts values into bins in global memory with atomic additions.
#include <cstdio>

const int N = 1024, BINS = 16, BLOCK = 128;

__global__ void histogram(const int *in, int *bins) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  atomicAdd(&bins[in[i] % BINS], 1);
}

int main() {
  int *in, *bins;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&bins, BINS * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  for (int i = 0; i < BINS; i++) bins[i] = 0;
  histogram<<<N / BLOCK, BLOCK>>>(in, bins);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < BINS; i++) wrong += bins[i] != N / BINS;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
