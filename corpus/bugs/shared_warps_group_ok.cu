// The group that is the whole block meets at the block's barrier.
#include <cooperative_groups.h>

__global__ void k(int *out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = t;
  cooperative_groups::this_thread_block().sync();
  out[t] = s[63 - t];
}
