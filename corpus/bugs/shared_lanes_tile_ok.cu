// Tiles of 16 lanes each meet on their own, and read their own words.
#include <cooperative_groups.h>

__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
  s[t] = t;
  tile.sync();
  out[t] = s[t ^ 15];
}
