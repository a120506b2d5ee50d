// Two barriers in a row hand words on: of warps 0 and 1, then of warps 1 and 2.
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x, warp = t / 32;
  if (warp == 0) s[t] = t;
  if (warp <= 1) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (warp >= 1) asm volatile("bar.sync 2, 64;" ::: "memory");
  if (warp == 2) out[t - 64] = s[95 - t];
}
