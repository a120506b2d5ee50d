// Lanes call functions by a table of pointers; a barrier is before.
#include <cstdio>

const int N = 128, BLOCK = 128;

typedef int (*Operation)(const int *);

__device__ int twice(const int *v) { return 2 * *v; }
__device__ int next(const int *v) { return *v + 1; }
__device__ int square(const int *v) { return *v * *v; }

__device__ const Operation table[] = {twice, next, square};

__global__ void apply(const int *in, int *out) {
  __shared__ int v[BLOCK];
  int t = threadIdx.x;
  v[t] = in[t];
  __syncthreads();
  out[t] = table[t % 3](&v[(t + 32) % BLOCK]);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  apply<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != (i % 3 == 0 ? 2 * ((i + 32) % BLOCK) : i % 3 == 1 ? (i + 32) % BLOCK + 1 : ((i + 32) % BLOCK) * ((i + 32) % BLOCK));
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
