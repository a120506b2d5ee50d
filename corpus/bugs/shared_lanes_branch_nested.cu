// Two paths of a branch within a branch touch the same words.
__global__ void k(int *out) {
  __shared__ int s[8];
  int t = threadIdx.x;
  if (t < 16) {
    if (t < 8)
      s[t] = t; // want error:missing-barrier
    else
      out[t - 8] = s[t - 8]; // want error:missing-barrier
  }
}
