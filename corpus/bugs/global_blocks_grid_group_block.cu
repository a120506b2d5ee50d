// A block meets where the grid should.
#include <cooperative_groups.h>

__global__ void k(int *x, int *out) {
  auto grid = cooperative_groups::this_grid();
  x[grid.thread_rank()] = grid.thread_rank(); // want error:unordered
  cooperative_groups::this_thread_block().sync();
  out[grid.thread_rank()] = x[63 - grid.thread_rank()]; // want error:unordered
}
