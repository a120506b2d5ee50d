// Hillis-Steele scan in place. A step's writes wait for its reads, but the next step's reads do not wait for them.
#include <cstdio>

const int BLOCK = 128;

__global__ void scan(const int *in, int *out) {
  __shared__ int sum[BLOCK];
  int t = threadIdx.x;
  sum[t] = in[t];
  __syncthreads();
  for (int d = 1; d < BLOCK; d *= 2) {
    int left = t >= d ? sum[t - d] : 0; // want error:missing-barrier
    __syncthreads();
    sum[t] += left; // want error:missing-barrier
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
  printf("last %d\n", out[BLOCK - 1]);
}
