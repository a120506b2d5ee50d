// A tiled product of constant matrices with both barriers.
#include <cstdio>

const int N = 32, TILE = 8;

__global__ void product_constant(const int *a, const int *b, int *c) {
  __shared__ int x[TILE][TILE], y[TILE][TILE];
  int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x, sum = 0;
  for (int t = 0; t < N; t += TILE) {
    x[threadIdx.y][threadIdx.x] = a[i * N + t + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * N + j];
    __syncthreads();
    for (int k = 0; k < TILE; k++) sum += x[threadIdx.y][k] * y[k][threadIdx.x];
    __syncthreads();
  }
  c[i * N + j] = sum;
}

int main() {
  int *a, *b, *c, wrong = 0;
  cudaMallocManaged(&a, N * N * sizeof(int));
  cudaMallocManaged(&b, N * N * sizeof(int));
  cudaMallocManaged(&c, N * N * sizeof(int));
  for (int i = 0; i < N * N; i++) a[i] = 2, b[i] = 3;
  product_constant<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(a, b, c);
  cudaDeviceSynchronize();
  for (int i = 0; i < N * N; i++) wrong += c[i] != 6 * N;
  printf("%d elements are wrong\n", wrong);
  return wrong != 0;
}
