// The lanes that took a path meet as a coalesced group.
#include <cooperative_groups.h>

__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t % 4 < 2) {
    auto group = cooperative_groups::coalesced_threads();
    int i = group.thread_rank();
    s[i] = 2 * i;
    group.sync();
    out[(i + 5) % 16] = s[(i + 5) % 16];
  }
}
