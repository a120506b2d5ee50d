// The last warp has eight lanes; __syncwarp() names them all and more.
__global__ void k(int *out) {
  __shared__ int s[40];
  int t = threadIdx.x;
  s[t] = t;
  __syncwarp();
  out[t] = s[t < 32 ? 31 - t : 71 - t];
}
