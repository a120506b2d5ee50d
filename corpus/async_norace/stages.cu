// Three stages, and two groups stay pending; the copy into the next stage is issued behind the barrier that says that all have read it.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 6, BLOCK = 128, STAGES = 3;

__device__ void fetch(int (*stage)[BLOCK], const int *in, int step, int t) {
  if (step < STEPS) __pipeline_memcpy_async(&stage[step % STAGES][t], &in[step * BLOCK + t], 4);
  __pipeline_commit();
}

__global__ void smooth(const int *in, int *out) {
  __shared__ int stage[STAGES][BLOCK];
  int t = threadIdx.x, sum = 0;
  for (int s = 0; s < STAGES - 1; s++) fetch(stage, in, s, t);
  for (int step = 0; step < STEPS; step++) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    fetch(stage, in, step + STAGES - 1, t);
    sum += stage[step % STAGES][(t + 32) % BLOCK];
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
