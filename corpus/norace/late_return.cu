// Threads without work skip the accesses, not the barrier.
#include <cstdio>

const int N = 100, BLOCK = 128;

__global__ void reverse(const int *in, int *out, int n) {
  __shared__ int tile[BLOCK];
  int t = threadIdx.x;
  if (t < n) tile[t] = in[t];
  __syncthreads();
  if (t >= n) return;
  out[t] = tile[n - 1 - t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  reverse<<<1, BLOCK>>>(in, out, N);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != N - 1 - i;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
