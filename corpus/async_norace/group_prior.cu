// A group copies two tiles ahead; the wait leaves the second one pending.
// -arch=compute_80
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cstdint>
#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCK = 128, TILES = 4;

__global__ void reverse(const int *in, int *out) {
  __shared__ alignas(16) int tile[2][BLOCK];
  auto block = cg::this_thread_block();
  int t = threadIdx.x, sum = 0;
  cg::memcpy_async(block, tile[0], in, sizeof(int) * BLOCK);
  for (int i = 0; i < TILES; i++) {
    int next = min(i + 1, TILES - 1);
    cg::memcpy_async(block, tile[(i + 1) % 2], in + next * BLOCK, sizeof(int) * BLOCK);
    cg::wait_prior<1>(block);
    sum += tile[i % 2][BLOCK - 1 - t];
    block.sync();
  }
  cg::wait(block);
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, TILES * BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < TILES * BLOCK; i++) in[i] = i;
  reverse<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
  return out[1] != 1272;
}
