// A thread overwrites what was copied when the copies have been waited for, and a barrier has said so.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 1, BLOCK = 128;

__global__ void move(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  out[t] = in[t];
  __syncthreads();
  __pipeline_memcpy_async(&tile[t], &out[t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[(t + 32) % BLOCK] = t;
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
  int wrong = 0;
  for (int t = 0; t < BLOCK; t++) {
    int want = 0;
    want = (t + 96) % BLOCK + BLOCK;
    wrong += out[t] != want;
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
