// The writer stores when it has arrived.
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t < 32) {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    s[t] = t; // want error:missing-barrier
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t - 32] = s[63 - t]; // want error:missing-barrier
  }
}
