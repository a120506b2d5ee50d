// Each half of the block meets at a barrier of its own, and then reads the other half's words.
__global__ void k(int *out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = t; // want error:missing-barrier
  asm volatile("bar.sync %0, 64;" ::"r"(1 + t / 64) : "memory");
  out[t] = s[127 - t]; // want error:missing-barrier
}
