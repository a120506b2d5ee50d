// A thread reads what it has copied itself, without having waited for the copy.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 1, BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&tile[t], &in[t], 4); // want error:copy-not-awaited
  __pipeline_commit();
  out[t] = tile[t]; // want error:copy-not-awaited
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
