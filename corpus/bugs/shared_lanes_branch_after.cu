// What one path stored is loaded where the paths have met, which is no __syncwarp().
__global__ void k(int *out) {
  __shared__ int s[16];
  int t = threadIdx.x;
  if (t < 16) s[t] = t; // want warning:warp-synchronous
  out[t] = s[t % 16];   // want warning:warp-synchronous
}
