// Hillis-Steele scan in place, with a barrier after the reads of a step and another after its writes.
#include <cstdio>

const int BLOCK = 128;

__global__ void scan(const int *in, int *out) {
  __shared__ int sum[BLOCK];
  int t = threadIdx.x;
  sum[t] = in[t];
  __syncthreads();
  for (int d = 1; d < BLOCK; d *= 2) {
    int left = t >= d ? sum[t - d] : 0;
    __syncthreads();
    sum[t] += left;
    __syncthreads();
  }
  out[t] = sum[t];
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
