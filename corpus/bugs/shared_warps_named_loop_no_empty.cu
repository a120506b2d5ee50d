// A writer that arrives at the barrier of each round and does not wait until the reader is done.
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x, sum = 0;
  for (int i = 0; i < 2; i++) {
    if (t < 32) {
      s[t] = t + i; // want error:missing-barrier
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + i) : "memory");
    } else {
      asm volatile("bar.sync %0, 64;" ::"r"(1 + i) : "memory");
      sum += s[t - 32]; // want error:missing-barrier
    }
  }
  if (t >= 32) out[t - 32] = sum;
}
