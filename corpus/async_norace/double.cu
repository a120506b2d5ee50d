// Two buffers: while one is computed with, the other is filled; the wait leaves only the newest group pending.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 4, BLOCK = 128;

__global__ void smooth(const int *in, int *out) {
  __shared__ int buffer[2][BLOCK];
  int t = threadIdx.x, sum = 0;
  __pipeline_memcpy_async(&buffer[0][t], &in[t], 4);
  __pipeline_commit();
  for (int step = 0; step < STEPS; step++) {
    if (step + 1 < STEPS) __pipeline_memcpy_async(&buffer[(step + 1) % 2][t], &in[(step + 1) * BLOCK + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += buffer[step % 2][(t + 32) % BLOCK];
    __syncthreads();
  }
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < STEPS * BLOCK; i++) in[i] = i;
  smooth<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int t = 0; t < BLOCK; t++) {
    int want = 0;
    for (int s = 0; s < STEPS; s++) want += s * BLOCK + (t + 32) % BLOCK;
    wrong += out[t] != want;
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
