// __syncthreads orders the block's accesses to global memory as well.
#include <cstdio>

const int N = 256, BLOCK = 64;

__global__ void reverse(const int *in, int *out) {
  int t = threadIdx.x, base = blockIdx.x * BLOCK;
  out[base + t] = 2 * in[base + t];
  __syncthreads();
  int other = out[base + BLOCK - 1 - t];
  __syncthreads();
  out[base + t] = other;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  reverse<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != 2 * (i / BLOCK * BLOCK + BLOCK - 1 - i % BLOCK);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
