// The group of the whole grid meets.
#include <cooperative_groups.h>

__global__ void k(int *x, int *out) {
  auto grid = cooperative_groups::this_grid();
  x[grid.thread_rank()] = grid.thread_rank();
  grid.sync();
  out[grid.thread_rank()] = x[63 - grid.thread_rank()];
}
