// Each thread copies to shared memory asynchronously, waits for its copy, and then the block meets.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 1, BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&tile[t], &in[t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[t] = tile[(t + 32) % BLOCK];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, STEPS * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < STEPS * BLOCK; i++) in[i] = i;
  load<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int t = 0; t < BLOCK; t++) {
    int want = 0;
    want = (t + 32) % BLOCK;
    wrong += out[t] != want;
  }
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
