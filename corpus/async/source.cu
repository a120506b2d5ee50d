// A thread overwrites what a copy of another one may not have read yet.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 1, BLOCK = 128;

__global__ void move(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  out[t] = in[t];
  __syncthreads();
  __pipeline_memcpy_async(&tile[t], &out[t], 4); // want error:copy-not-awaited
  __pipeline_commit();
  __syncthreads();
  out[(t + 32) % BLOCK] = t; // want error:copy-not-awaited
  __pipeline_wait_prior(0);
  __syncthreads();
  if (tile[t] == t) out[(t + 32) % BLOCK] += BLOCK;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < STEPS * BLOCK; i++) in[i] = i;
  move<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
