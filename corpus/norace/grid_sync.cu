// Cooperative groups: the grid's own barrier orders all blocks.
#include <cooperative_groups.h>
#include <cstdio>

const int BLOCKS = 4, BLOCK = 64, N = BLOCKS * BLOCK;

__global__ void reverse(const int *in, int *middle, int *out) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  int i = grid.thread_rank();
  middle[i] = 2 * in[i];
  grid.sync();
  out[i] = middle[N - 1 - i];
}

int main() {
  int *in, *middle, *out;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&middle, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) in[i] = i;
  void *args[] = {&in, &middle, &out};
  cudaLaunchCooperativeKernel((void *)reverse, BLOCKS, BLOCK, args, 0, 0);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += out[i] != 2 * (N - 1 - i);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
