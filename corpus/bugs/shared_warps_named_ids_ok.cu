// Each half of the block meets at a barrier of its own, and reads its own words.
__global__ void k(int *out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = t;
  asm volatile("bar.sync %0, 64;" ::"r"(1 + t / 64) : "memory");
  out[t] = s[t / 64 * 64 + 63 - t % 64];
}
