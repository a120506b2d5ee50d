// Each half of a warp has a __syncwarp() of its own, and then reads the other half's words.
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t < 16) {
    s[t] = t; // want error:missing-barrier
    __syncwarp(0xffff);
    out[t] = s[31 - t]; // want error:missing-barrier
  } else {
    s[t] = t; // want error:missing-barrier
    __syncwarp(0xffff0000);
    out[t] = s[31 - t]; // want error:missing-barrier
  }
}
