// A warp stores and is gone, which tells nobody anything.
__global__ void k(int *x, int *out) {
  int t = threadIdx.x;
  if (t >= 32) {
    x[t - 32] = t; // want error:missing-barrier
    return;
  }
  out[t] = x[t]; // want error:missing-barrier
}
