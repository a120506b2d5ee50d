// Tiles of shared memory that wmma loads and stores are used by the other warp without a barrier.
#include <cstdint>
#include <cstdio>
#include <mma.h>

using namespace nvcuda;

const int N = 16, WARPS = 2;

// A warp fills a tile of shared memory, and multiplies that of the other warp by b.
__global__ void multiply(const signed char *a, const signed char *b, int *out) {
  __shared__ alignas(32) signed char tile[WARPS][N * N];
  __shared__ alignas(32) int sums[WARPS][N * N];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, other = WARPS - 1 - warp;
  for (int i = lane; i < N * N; i += 32) tile[warp][i] = a[warp * N * N + i];  // want error:missing-barrier
  __syncwarp();
  wmma::fragment<wmma::matrix_a, N, N, N, signed char, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, N, N, N, signed char, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, N, N, N, int> sum;
  wmma::fill_fragment(sum, 0);
  wmma::load_matrix_sync(x, tile[other], N);  // want error:missing-barrier
  wmma::load_matrix_sync(y, b, N);
  wmma::mma_sync(sum, x, y, sum);
  wmma::store_matrix_sync(sums[warp], sum, N, wmma::mem_row_major);  // want error:missing-barrier
  __syncwarp();
  for (int i = lane; i < N * N; i += 32) out[other * N * N + i] = sums[other][i];  // want error:missing-barrier
}

int main() {
  signed char *a, *b;
  int *out;
  cudaMallocManaged(&a, WARPS * N * N);
  cudaMallocManaged(&b, N * N);
  cudaMallocManaged(&out, WARPS * N * N * sizeof(int));
  for (int i = 0; i < WARPS * N * N; i++) a[i] = i % 7 - 3;
  for (int i = 0; i < N * N; i++) b[i] = i % 5 - 2;
  multiply<<<1, 32 * WARPS>>>(a, b, out);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < WARPS * N * N; i++) {
    int want = 0;
    for (int k = 0; k < N; k++) want += a[(WARPS - 1 - i / (N * N)) * N * N + i % (N * N) / N * N + k] * b[i % N * N + k];
    wrong += out[i] != want;
  }
  printf("%d wrong\n", wrong);
  return 0;
}
