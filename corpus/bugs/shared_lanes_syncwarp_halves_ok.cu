// Each half of a warp has a __syncwarp() of its own, and reads its own words.
__global__ void k(int *out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t < 16) {
    s[t] = t;
    __syncwarp(0xffff);
    out[t] = s[15 - t];
  } else {
    s[t] = t;
    __syncwarp(0xffff0000);
    out[t] = s[47 - t];
  }
}
