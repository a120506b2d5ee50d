// A group copies together, and waits for the copy, which synchronises the group.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCK = 128;

__global__ void load(const int *in, int *out) {
  __shared__ alignas(16) int tile[BLOCK];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in, sizeof(int) * BLOCK);
  cg::wait(block);
  int t = threadIdx.x;
  out[t] = tile[(t + 36) % BLOCK];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  load<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
}
