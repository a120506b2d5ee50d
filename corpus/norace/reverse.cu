// A barrier waits for all threads of the block and orders what they wrote.
#include <cstdio>

const int N = 64, BLOCK = 64;

__global__ void reverse(const int *in, int *out) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
  out[t] = tile[BLOCK - 1 - t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  reverse<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != 63 - i;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
