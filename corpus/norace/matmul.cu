// Tiled matrix product with both barriers: tiles are full before they are used, and used before they are refilled.
#include <cstdio>

const int N = 32, TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int col = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  for (int step = 0; step < N / TILE; step++) {
    as[y][x] = a[row * N + step * TILE + x];
    bs[y][x] = b[(step * TILE + y) * N + col];
    __syncthreads();
    for (int k = 0; k < TILE; k++) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }
  c[row * N + col] = sum;
}

int main() {
  float *a, *b, *c;
  cudaMallocManaged(&a, N * N * sizeof(float));
  cudaMallocManaged(&b, N * N * sizeof(float));
  cudaMallocManaged(&c, N * N * sizeof(float));
  for (int i = 0; i < N * N; i++) a[i] = 1, b[i] = i % N;
  matmul<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(a, b, c);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N * N; i++) wrong += c[i] != N * (i % N);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
