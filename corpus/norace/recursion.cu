// Each thread recurses to a depth of its own, on a stack of its own.
#include <cstdio>

const int N = 64, BLOCK = 32;

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void numbers(const int *in, int *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  out[i] = fibonacci(in[i] % 8);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  numbers<<<N / BLOCK, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  const int want[8] = {0, 1, 1, 2, 3, 5, 8, 13};
  for (int i = 0; i < N; i++) wrong += out[i] != want[i % 8];
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
