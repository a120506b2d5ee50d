// One barrier a step is enough with two buffers, but only one is used: the next step overwrites what others still read.
#include <cstdio>

const int STEPS = 4, BLOCK = 128;

__global__ void smooth(const int *in, int *out) {
  __shared__ int buffer[2][BLOCK];
  int t = threadIdx.x, sum = 0;
  for (int step = 0; step < STEPS; step++) {
    buffer[0][t] = in[step * BLOCK + t]; // want error:missing-barrier
    __syncthreads();
    sum += buffer[0][(t + 32) % BLOCK]; // want error:missing-barrier
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
