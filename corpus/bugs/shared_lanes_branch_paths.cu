// One path of a branch stores what the other one loads: which path runs first is not defined.
__global__ void k(int *out) {
  __shared__ int s[16];
  int t = threadIdx.x;
  if (t < 16)
    s[t] = t; // want error:missing-barrier
  else
    out[t - 16] = s[t - 16]; // want error:missing-barrier
}
