// Lanes store and are gone; those that are left meet without them.
__global__ void k(int *x, int *out) {
  int t = threadIdx.x;
  if (t >= 16) {
    x[t - 16] = t; // want error:missing-barrier
    return;
  }
  __syncwarp(0xffff);
  out[t] = x[t]; // want error:missing-barrier
}
