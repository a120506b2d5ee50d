// Tiles of 16 lanes each meet on their own, and read the other tile's words.
#include <cooperative_groups.h>

__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
  s[t] = t; // want warning:warp-synchronous
  tile.sync();
  out[t] = s[t ^ 31]; // want warning:warp-synchronous
}
