// Transposes a matrix in place. One thread exchanges the two elements of a pair.
#include <cstdio>

const int N = 64, TILE = 16;

__global__ void transpose(float *m) {
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x <= y) return;
  float v = m[y * N + x];
  m[y * N + x] = m[x * N + y];
  m[x * N + y] = v;
}

int main() {
  float *m;
  cudaMallocManaged(&m, N * N * sizeof(float));
  for (int i = 0; i < N * N; i++) m[i] = i;
  transpose<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(m);
  cudaDeviceSynchronize();
  printf("m[1] = %g\n", m[1]);
  return m[1] != N;
}
