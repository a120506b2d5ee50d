// Transposes a matrix in place. Every thread moves one element, and overwrites another that its thread may not have read.
#include <cstdio>

const int N = 64, TILE = 16;

__global__ void transpose(float *m) {
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  float v = m[y * N + x]; // want error:unordered
  m[x * N + y] = v;       // want error:unordered
}

int main() {
  float *m;
  cudaMallocManaged(&m, N * N * sizeof(float));
  for (int i = 0; i < N * N; i++) m[i] = i;
  transpose<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(m);
  cudaDeviceSynchronize();
  printf("m[1] = %g\n", m[1]);
}
