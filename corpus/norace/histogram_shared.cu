// Each block counts into bins of its own in shared memory: zero, barrier, count, barrier, add to the total.
#include <cstdio>

const int N = 1024, BINS = 64, BLOCK = 128;

__global__ void histogram(const int *in, int *bins) {
  __shared__ int own[BINS];
  int t = threadIdx.x;
  if (t < BINS) own[t] = 0;
  __syncthreads();
  atomicAdd(&own[in[blockIdx.x * BLOCK + t] % BINS], 1);
  __syncthreads();
  if (t < BINS) atomicAdd(&bins[t], own[t]);
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
