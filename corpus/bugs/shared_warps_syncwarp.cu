// __syncwarp() orders the lanes of a warp, not two warps.
__global__ void k(int *out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = t; // want error:missing-barrier
  __syncwarp();
  out[t] = s[63 - t]; // want error:missing-barrier
}
