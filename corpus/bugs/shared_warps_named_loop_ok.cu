// Two barriers take turns: full and empty.
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x, sum = 0;
  for (int i = 0; i < 3; i++) {
    if (t < 32) {
      s[t] = t + i;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += s[t - 32] + 31;
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
  if (t >= 32) out[t - 32] = sum;
}
