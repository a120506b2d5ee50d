// Each path of a branch meets as a coalesced group of its own, and one reads the other's words.
#include <cooperative_groups.h>

__global__ void k(int *out) {
  __shared__ int s[16];
  int t = threadIdx.x;
  if (t % 2) {
    s[t / 2] = t; // want error:missing-barrier
    cooperative_groups::coalesced_threads().sync();
  } else {
    cooperative_groups::coalesced_threads().sync();
    out[t / 2] = s[t / 2]; // want error:missing-barrier
  }
}
