// Counts bytes into bins in global memory with a plain increment: reading, adding and writing are three steps.
#include <cstdio>

const int N = 1024, BINS = 16, BLOCK = 128;

__global__ void histogram(const int *in, int *bins) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  bins[in[i] % BINS]++; // want error:unordered
}

int main() {
  int *in, *bins;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&bins, BINS * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  for (int i = 0; i < BINS; i++) bins[i] = 0;
  histogram<<<N / BLOCK, BLOCK>>>(in, bins);
  cudaDeviceSynchronize();
  printf("bins[0] = %d\n", bins[0]);
}
