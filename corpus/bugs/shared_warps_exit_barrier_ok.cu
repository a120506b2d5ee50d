// A warp that has nothing to do leaves at once; the two others have a barrier for two.
__global__ void k(int *out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  if (t >= 64) return;
  s[t] = t;
  asm volatile("bar.sync 1, 64;" ::: "memory");
  out[t] = s[63 - t];
}
