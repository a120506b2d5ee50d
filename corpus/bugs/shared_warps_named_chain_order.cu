// The warp in the middle meets the reader before the writer: nothing is handed on.
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x, warp = t / 32;
  if (warp == 0) s[t] = t; // want error:missing-barrier
  if (warp >= 1) asm volatile("bar.sync 2, 64;" ::: "memory");
  if (warp <= 1) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (warp == 2) out[t - 64] = s[95 - t]; // want error:missing-barrier
}
