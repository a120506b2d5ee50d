// Three stages; the wait leaves two groups pending where one is right, so that the stage that is read may still be written.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 6, BLOCK = 128, STAGES = 3;

__device__ void fetch(int (*stage)[BLOCK], const int *in, int step, int t) {
  if (step < STEPS) __pipeline_memcpy_async(&stage[step % STAGES][t], &in[step * BLOCK + t], 4); // want error:group-pending
  __pipeline_commit();
}

__global__ void smooth(const int *in, int *out) {
  __shared__ int stage[STAGES][BLOCK];
  int t = threadIdx.x, sum = 0;
  for (int s = 0; s < STAGES - 1; s++) fetch(stage, in, s, t);
  for (int step = 0; step < STEPS; step++) {
    __pipeline_wait_prior(STAGES - 1);
    __syncthreads();
    sum += stage[step % STAGES][(t + 32) % BLOCK]; // want error:group-pending
    __syncthreads();
    fetch(stage, in, step + STAGES - 1, t);
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
  printf("out[0] = %d\n", out[0]);
}
