// Two buffers in turn need one barrier a step: who overwrites a buffer has met its readers at the barrier between.
#include <cstdio>

const int STEPS = 4, BLOCK = 128;

__global__ void smooth(const int *in, int *out) {
  __shared__ int buffer[2][BLOCK];
  int t = threadIdx.x, sum = 0;
  for (int step = 0; step < STEPS; step++) {
    buffer[step % 2][t] = in[step * BLOCK + t];
    __syncthreads();
    sum += buffer[step % 2][(t + 32) % BLOCK];
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
  for (int t = 0; t < BLOCK; t++) wrong += out[t] != 4 * ((t + 32) % BLOCK) + 6 * BLOCK;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
