// Hillis-Steele scan between two buffers: one barrier a step is enough, since a step never writes what it reads.
#include <cstdio>

const int BLOCK = 128;

__global__ void scan(const int *in, int *out) {
  __shared__ int sum[2][BLOCK];
  int t = threadIdx.x, from = 0;
  sum[from][t] = in[t];
  __syncthreads();
  for (int d = 1; d < BLOCK; d *= 2) {
    sum[1 - from][t] = sum[from][t] + (t >= d ? sum[from][t - d] : 0);
    from = 1 - from;
    __syncthreads();
  }
  out[t] = sum[from][t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = 1;
  scan<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < BLOCK; i++) wrong += out[i] != i + 1;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
