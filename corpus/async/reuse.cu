// The next copy into the buffer is issued while other threads still read it.
#include <cstdio>
#include <cuda_pipeline.h>

const int STEPS = 4, BLOCK = 128;

__global__ void smooth(const int *in, int *out) {
  __shared__ int buffer[BLOCK];
  int t = threadIdx.x, sum = 0;
  for (int step = 0; step < STEPS; step++) {
    __pipeline_memcpy_async(&buffer[t], &in[step * BLOCK + t], 4); // want error:stage-reuse
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += buffer[(t + 32) % BLOCK]; // want error:stage-reuse
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
