// The wait comes before the commit, so it waits for nothing.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 1, BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&tile[t], &in[t], 4); // want error:wait-before-commit
  __pipeline_wait_prior(0);
  __pipeline_commit();
  __syncthreads();
  out[t] = tile[(t + 32) % BLOCK]; // want error:wait-before-commit
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
