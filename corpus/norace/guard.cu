// The last block is only partly used, and the guard keeps its idle threads off the arrays.
#include <cstdio>

const int N = 1000, BLOCK = 256;

__global__ void scale(const int *in, int *out, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) {
    int x = in[i];
    out[i] = 2 * x;
  }
}

int main() {
  int *in, *out, back[N];
  for (int i = 0; i < N; i++) back[i] = i;
  cudaMalloc(&in, N * sizeof(int));
  cudaMalloc(&out, N * sizeof(int));
  cudaMemcpy(in, back, sizeof back, cudaMemcpyHostToDevice);
  scale<<<(N + BLOCK - 1) / BLOCK, BLOCK>>>(in, out, N);
  cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += back[i] != 2 * i;
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
