// A barrier for two warps, and a third warp that reads what they stored.
__global__ void k(int *out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  if (t < 64) {
    s[t] = t; // want error:missing-barrier
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = s[63 - t];
  } else {
    out[t] = s[t - 64]; // want error:missing-barrier
  }
}
