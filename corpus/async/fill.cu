// A thread fills the rest of its row with zeros, which the copy that it has issued before writes too.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 1, BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ alignas(16) int tile[BLOCK][4];
  int t = threadIdx.x, fill = t % 4 * 4;
  const int *from = &in[t / 4 * 4];
  __pipeline_memcpy_async(tile[t], from, 16, 0); // want error:copy-not-awaited
  __pipeline_commit();
  if (fill) tile[t][3] = 0; // want error:copy-not-awaited
  __pipeline_wait_prior(0);
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 4; i++) sum += tile[t ^ 32][i];
  out[t] = sum;
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
