// Threads wait for their tile of 32, and read what it writes.
#include <cstdio>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

const int BLOCK = 128;

__global__ void shift(const int *in, int *out) {
  __shared__ int buffer[BLOCK];
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int t = threadIdx.x;
  buffer[t] = in[t];
  tile.sync();
  out[t] = buffer[t / 32 * 32 + (t + 1) % 32];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, BLOCK * sizeof(int));
  cudaMallocManaged(&out, BLOCK * sizeof(int));
  for (int i = 0; i < BLOCK; i++) in[i] = i;
  shift<<<1, BLOCK>>>(in, out);
  cudaDeviceSynchronize();
  printf("out[0] = %d\n", out[0]);
  return out[0] != 1;
}
