// Each block counts into bins of its own in shared memory. Nobody waits until they are zero, or until all are done.
#include <cstdio>

const int N = 1024, BINS = 64, BLOCK = 128;

__global__ void histogram(const int *in, int *bins) {
  __shared__ int own[BINS];
  int t = threadIdx.x;
  if (t < BINS) own[t] = 0; // want error:atomic-mixed-with-plain
  atomicAdd(&own[in[blockIdx.x * BLOCK + t] % BINS], 1); // want error:atomic-mixed-with-plain
  if (t < BINS) atomicAdd(&bins[t], own[t]); // want error:atomic-mixed-with-plain
}

int main() {
  int *in, *bins;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&bins, BINS * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i / 3;
  for (int i = 0; i < BINS; i++) bins[i] = 0;
  histogram<<<N / BLOCK, BLOCK>>>(in, bins);
  cudaDeviceSynchronize();
  printf("bins[0] = %d\n", bins[0]);
}
