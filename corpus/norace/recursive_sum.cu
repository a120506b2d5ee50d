// Each thread sums some values of the next warp by recursion, to a depth of its own; a barrier is before.
#include <cstdio>

const int N = 128, BLOCK = 128;

__device__ int sum(const int *v, int n) {
  if (n == 1)
    return v[0];
  return sum(v, n / 2) + sum(v + n / 2, n - n / 2);
}

__global__ void sums(const int *in, int *out) {
  __shared__ int v[BLOCK];
  int t = threadIdx.x;
  v[t] = in[t];
  __syncthreads();
  out[t] = sum(v + (t / 32 + 1) * 32 % BLOCK, 1 + t % 8);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  sums<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (1 + i % 8) * ((i / 32 + 1) * 32 % BLOCK) + (1 + i % 8) * (i % 8) / 2;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
