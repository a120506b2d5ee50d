// The guard lets one thread too many through: i == n lies behind both arrays.
#include <cstdio>

const int N = 1000, BLOCK = 256;

__global__ void scale(const int *in, int *out, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i <= n) {
    int x = in[i]; // want error:out-of-bounds
    out[i] = 2 * x; // want error:out-of-bounds
  }
}

int main() {
  int *in, *out;
  cudaMalloc(&in, N * sizeof(int));
  cudaMalloc(&out, N * sizeof(int));
  cudaMemset(in, 0, N * sizeof(int));
  scale<<<(N + BLOCK - 1) / BLOCK, BLOCK>>>(in, out, N);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
