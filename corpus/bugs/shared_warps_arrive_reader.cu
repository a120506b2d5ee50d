// It is the reader that arrives and does not wait.
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t < 32) {
    s[t] = t; // want error:missing-barrier
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    out[t - 32] = s[63 - t]; // want error:missing-barrier
  }
}
