// Tiled matrix product. The barrier at the end of a step is missing: the next step overwrites tiles still in use.
// A row of a tile is used by the warp that wrote it (lockstep would order that), a column by all warps of the block.
#include <cstdio>

const int N = 32, TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int col = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  for (int step = 0; step < N / TILE; step++) {
    as[y][x] = a[row * N + step * TILE + x];   // want warning:warp-synchronous
    bs[y][x] = b[(step * TILE + y) * N + col]; // want error:missing-barrier
    __syncthreads();
    for (int k = 0; k < TILE; k++)
      sum += as[y][k] * bs[k][x]; // want warning:warp-synchronous error:missing-barrier
  }
  c[row * N + col] = sum;
}

int main() {
  float *a, *b, *c;
  cudaMallocManaged(&a, N * N * sizeof(float));
  cudaMallocManaged(&b, N * N * sizeof(float));
  cudaMallocManaged(&c, N * N * sizeof(float));
  for (int i = 0; i < N * N; i++) a[i] = b[i] = 1;
  matmul<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(a, b, c);
  cudaDeviceSynchronize();
  printf("c[0] = %g\n", c[0]);
}
