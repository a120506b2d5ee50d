// Three-point stencil over a shared tile with halo. The halo is filled, but nobody waits for the neighbours.
#include <cstdio>

const int N = 512, BLOCK = 128;

__global__ void stencil(const int *in, int *out, int n) {
  __shared__ int tile[BLOCK + 2];
  int i = blockIdx.x * BLOCK + threadIdx.x, t = threadIdx.x + 1;
  tile[t] = in[i]; // want error:missing-barrier
  if (threadIdx.x == 0) tile[0] = i > 0 ? in[i - 1] : 0;
  if (threadIdx.x == BLOCK - 1) tile[BLOCK + 1] = i + 1 < n ? in[i + 1] : 0;
  out[i] = tile[t - 1] + tile[t] + tile[t + 1]; // want error:missing-barrier
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  stencil<<<N / BLOCK, BLOCK>>>(in, out, N);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
