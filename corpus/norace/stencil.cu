// Three-point stencil over a shared tile with halo: fill, barrier, read.
#include <cstdio>

const int N = 512, BLOCK = 128;

__global__ void stencil(const int *in, int *out, int n) {
  __shared__ int tile[BLOCK + 2];
  int i = blockIdx.x * BLOCK + threadIdx.x, t = threadIdx.x + 1;
  tile[t] = in[i];
  if (threadIdx.x == 0) tile[0] = i > 0 ? in[i - 1] : 0;
  if (threadIdx.x == BLOCK - 1) tile[BLOCK + 1] = i + 1 < n ? in[i + 1] : 0;
  __syncthreads();
  out[i] = tile[t - 1] + tile[t] + tile[t + 1];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  stencil<<<N / BLOCK, BLOCK>>>(in, out, N);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N - 1; i++) wrong += out[i] != (i == 0 ? 1 : 3 * i);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
