// Threads without an element take part with a zero.
#include <cstdio>

const int N = 32, BLOCK = 32;

__global__ void sum(const int *in, int *out, int n) {
  int i = threadIdx.x;
  int x = i < n ? in[i] : 0;
  for (int half = 16; half > 0; half /= 2) x += __shfl_down_sync(0xffffffff, x, half);
  if (i == 0) *out = x;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i, out[i] = 0;
  sum<<<1, BLOCK>>>(in, out, 20);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
  return out[0] != 190;
}
