// Each thread waits for its own copy, which tells nothing of the copies of others: the barrier is missing.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 1, BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&tile[t], &in[t], 4); // want error:missing-barrier
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[t] = tile[(t + 32) % BLOCK]; // want error:missing-barrier
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < STEPS * BLOCK; i++) in[i] = i;
  load<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
