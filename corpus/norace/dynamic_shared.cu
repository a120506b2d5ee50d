// Two arrays share the dynamic shared memory, one behind the other.
#include <cstdio>

const int N = 128, BLOCK = 128;

__global__ void combine(const int *in, int *out) {
  extern __shared__ int memory[];
  int *a = memory, *b = a + BLOCK;
  int t = threadIdx.x;
  a[t] = in[t];
  b[t] = 2 * in[t];
  __syncthreads();
  out[t] = a[BLOCK - 1 - t] + b[BLOCK - 1 - t];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  combine<<<N / BLOCK, BLOCK, 2 * BLOCK * sizeof(int)>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != 3 * (127 - i);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
