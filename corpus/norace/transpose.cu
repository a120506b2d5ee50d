// Transposes a matrix through a shared tile; the barrier is between filling the tile and reading it.
#include <cstdio>

const int N = 32, TILE = 16;

__global__ void transpose(const float *in, float *out) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * N + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  out[y * N + x] = tile[threadIdx.x][threadIdx.y];
}

int main() {
  float *in, *out;
  cudaMallocManaged(&in, N * N * sizeof(float));
  cudaMallocManaged(&out, N * N * sizeof(float));
  for (int i = 0; i < N * N; i++) in[i] = i;
  transpose<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(in, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N * N; i++) wrong += out[i] != in[i % N * N + i / N];
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
