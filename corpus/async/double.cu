// Two buffers: while one is computed with, the other is filled. The wait leaves the newest group pending, which is the one that is read.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 4, BLOCK = 128;

__global__ void smooth(const int *in, int *out) {
  __shared__ int buffer[2][BLOCK];
  int t = threadIdx.x, sum = 0;
  __pipeline_memcpy_async(&buffer[0][t], &in[t], 4); // want error:group-pending
  __pipeline_commit();
  for (int step = 0; step < STEPS; step++) {
    if (step + 1 < STEPS) __pipeline_memcpy_async(&buffer[(step + 1) % 2][t], &in[(step + 1) * BLOCK + t], 4); // want error:group-pending
    __pipeline_commit();
    __pipeline_wait_prior(2);
    __syncthreads();
    sum += buffer[step % 2][(t + 32) % BLOCK]; // want error:group-pending
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
  printf("out[0] = %d\n", out[0]);
}
